// One kernel in prepared form: bound once to a node with known types and shapes, then called by pointer in every step.
#ifndef WEIR_CORE_KERNEL_PREPARED_H_
#define WEIR_CORE_KERNEL_PREPARED_H_

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/kernel/host.h"
#include "core/kernel/registry.h"
#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"
#include "core/tensor/tensor.h"
#include "sdk/abi/kernel.h"

namespace weir::kernel {

/// One flattened input or output of the node.
struct OperandSpec {
  DType dtype = DType::kInvalid;  // a reference type counts as its value type
  Shape shape;
  const Tensor* value = nullptr;  // the constant that the input is, in host memory; borrowed until Make returns
  bool variable = false;          // the value of a variable, whose lock the caller holds during fn
  bool host = false;              // lies in host memory, else in the device's
};

/// Owns what a plugin's `prepare` made and gives it back with `unprepare`. Immutable; fn may be called concurrently
/// with different registers unless the kernel is STATEFUL.
class PreparedKernel {
 public:
  /// Asks the kernel to prepare itself. Unimplemented when it has no prepared form or declines (the caller goes on to
  /// the dynamic form or the next candidate); ResourceExhausted when it asks for more scratch memory than there can be;
  /// other errors are the plugin's. Errors do not name the node. `entry.record` and `device` outlive the result; `node`
  /// is needed during the call only.
  static Result<std::unique_ptr<PreparedKernel>> Make(const KernelEntry& entry, const weir_node& node,
                                                      std::span<const OperandSpec> inputs,
                                                      std::span<const OperandSpec> outputs, weir_device* device,
                                                      uint64_t max_tiles = 1);
  ~PreparedKernel();
  PreparedKernel(const PreparedKernel&) = delete;
  PreparedKernel& operator=(const PreparedKernel&) = delete;

  /// Null only when every output is a MUST alias: there is nothing to call.
  weir_kernel_fn fn() const { return prepared_.fn; }
  void* state() const { return prepared_.state; }
  /// Bytes of the register after the outputs; 0 = there is no such register.
  uint64_t scratch_bytes() const { return prepared_.scratch_bytes; }
  /// The same for one tile of several, which run beside each other: a multiple of the alignment.
  uint64_t tile_scratch_bytes() const {
    return tiles() == 1 ? scratch_bytes() : (scratch_bytes() + scratch_alignment() - 1) & ~(scratch_alignment() - 1);
  }
  /// A power of two, at least 1.
  uint64_t scratch_alignment() const { return prepared_.scratch_alignment; }
  /// Scratch memory of all tiles, with room to align it beyond what every buffer is.
  uint64_t reserved_scratch_bytes() const {
    const uint64_t room = scratch_alignment() > kBufferAlignment ? scratch_alignment() - 1 : 0;
    return tile_scratch_bytes() * tiles() + room;
  }
  /// Checked: operands in range, the output no larger than the input, MUST claimed at most once per output.
  std::span<const weir_alias> aliases() const { return {prepared_.aliases, prepared_.alias_count}; }
  /// WEIR_KERNEL_* of the record and of the prepared instance together.
  uint32_t flags() const { return flags_; }
  /// At least 1, at most as many as the kernel was prepared for.
  uint64_t tiles() const { return prepared_.tiles > 1 ? prepared_.tiles : 1; }
  const KernelEntry& entry() const { return *entry_; }

 private:
  PreparedKernel() = default;
  const KernelEntry* entry_ = nullptr;
  uint32_t flags_ = 0;
  bool owned_ = false;  // prepare succeeded, so unprepare is due
  weir_prepared prepared_{};
};

/// Asks `supports` of the record; ok when the kernel has no such question. Unimplemented with the plugin's reason.
Status Supports(const KernelEntry& entry, const weir_node& node, std::span<const OperandSpec> inputs,
                std::span<const OperandSpec> outputs, weir_device* device);

/// Asks `estimate` of the record. Unimplemented when the kernel has none; Internal when it answers NaN in every field
/// or a negative number.
Result<weir_cost> Estimate(const KernelEntry& entry, const weir_node& node, std::span<const OperandSpec> inputs,
                           std::span<const OperandSpec> outputs, weir_device* device, const weir_profile* profile);

}  // namespace weir::kernel

#endif  // WEIR_CORE_KERNEL_PREPARED_H_
