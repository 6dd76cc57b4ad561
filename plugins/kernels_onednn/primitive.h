// Owners of oneDNN's objects: a primitive that gets the addresses of its operands at each call.
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

/// While an object of this class exists, OpenMP regions of the calling thread have one thread: oneDNN works on its
/// caller's thread, and other users of OpenMP in the process keep their setting.
class OneThread {
 public:
  OneThread();
  ~OneThread();
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int before_;
};

/// The process's CPU engine; null if oneDNN cannot make one. Created once, never destroyed.
dnnl_engine_t Engine();

struct OperandDesc {
  int argument;  // DNNL_ARG_*
  dnnl_memory_desc_t memory;
};

/// Thread-safe after Make. If scratch_bytes() is not 0, the caller passes scratch memory as the last operand.
class Primitive {
 public:
  static constexpr size_t kMaxOperands = 5;

  /// Makes the primitive of any operation descriptor. Unimplemented with oneDNN's status if oneDNN has no such
  /// primitive. oneDNN chooses the formats that the descriptor leaves open, see desc().
  int32_t Make(const_dnnl_op_desc_t op, std::vector<int> arguments, const sdk::Error& error);
  /// Makes the copy from one layout into another; its operands are the two arrays.
  int32_t MakeReorder(const dnnl_memory_desc_t& from, const dnnl_memory_desc_t& to, const sdk::Error& error);
  /// `addresses` in the order of Make's arguments, then scratch.
  int32_t Run(std::array<const void*, kMaxOperands> addresses, const sdk::Error& error) const;

  /// The memory layout that the primitive requires for argument i of Make.
  const dnnl_memory_desc_t& desc(size_t i) const { return operands_[i].memory; }
  uint64_t scratch_bytes() const { return scratch_bytes_; }

 private:
  struct Call;
  static constexpr size_t kCalls = 8;  // preallocated objects for concurrent calls
  struct Shared;

  /// Makes the primitive of `made`, which is destroyed, and the objects of its calls.
  int32_t Finish(dnnl_primitive_desc_t made, const sdk::Error& error);

  std::vector<OperandDesc> operands_;
  uint64_t scratch_bytes_ = 0;
  std::shared_ptr<Shared> shared_;
};

/// Copies a tensor from one layout into another.
int32_t Reorder(const dnnl_memory_desc_t& from_desc, const void* from, const dnnl_memory_desc_t& to_desc, void* to,
                const sdk::Error& error);

}  // namespace weir::kernels_onednn

#endif  // WEIR_PLUGINS_KERNELS_ONEDNN_PRIMITIVE_H_
