// oneDNN's objects, owned: a primitive whose operands are given by address at each call.
#ifndef WEIR_PLUGINS_KERNELS_ONEDNN_PRIMITIVE_H_
#define WEIR_PLUGINS_KERNELS_ONEDNN_PRIMITIVE_H_

#include <oneapi/dnnl/dnnl.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "sdk/cpp/status.h"

namespace weir::kernels_onednn {

/// While it lives, OpenMP regions that the calling thread enters have one thread: oneDNN works on its caller's thread,
/// and other users of OpenMP in the process keep their setting.
class OneThread {
 public:
  OneThread();
  ~OneThread();
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int before_;
};

/// The process's CPU engine; null when oneDNN cannot make one. Made once, never given back.
dnnl_engine_t Engine();

struct OperandDesc {
  int argument;  // DNNL_ARG_*
  dnnl_memory_desc_t memory;
};

/// Thread-safe once made. Memory for scratch is the caller's, as the last operand, when scratch_bytes() is not 0.
class Primitive {
 public:
  static constexpr size_t kMaxOperands = 4;

  /// Of any operation descriptor of oneDNN. Unimplemented with oneDNN's status when it has no such primitive. A format
  /// that the descriptor left open is chosen by oneDNN: see desc().
  int32_t Make(const_dnnl_op_desc_t op, std::vector<int> arguments, const sdk::Error& error);
  /// `addresses` in the order of Make's arguments, then scratch.
  int32_t Run(std::array<const void*, kMaxOperands> addresses, const sdk::Error& error) const;

  /// How the primitive wants argument number i of Make to lie in memory.
  const dnnl_memory_desc_t& desc(size_t i) const { return operands_[i].memory; }
  uint64_t scratch_bytes() const { return scratch_bytes_; }

 private:
  struct Call;
  static constexpr size_t kCalls = 8;  // objects made ahead of time for calls at the same moment
  struct Shared;

  std::vector<OperandDesc> operands_;
  uint64_t scratch_bytes_ = 0;
  std::shared_ptr<Shared> shared_;
};

/// Copies a tensor from one layout into another.
int32_t Reorder(const dnnl_memory_desc_t& from_desc, const void* from, const dnnl_memory_desc_t& to_desc, void* to,
                const sdk::Error& error);

}  // namespace weir::kernels_onednn

#endif  // WEIR_PLUGINS_KERNELS_ONEDNN_PRIMITIVE_H_
