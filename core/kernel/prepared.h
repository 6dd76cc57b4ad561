// Prepared kernels: bound once to a node with known types and shapes, then called by pointer in every step.
#ifndef WEIR_CORE_KERNEL_PREPARED_H_
#define WEIR_CORE_KERNEL_PREPARED_H_

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/kernel/host.h"
#include "core/kernel/registry.h"
#include "core/tensor/buffer.h"
#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"
#include "core/tensor/tensor.h"
#include "sdk/abi/kernel.h"

namespace weir::kernel {

/// One flattened input or output of the node.
struct OperandSpec {
  DType dtype = DType::kInvalid;  // a reference type counts as its value type
  Shape shape;
  const Tensor* value = nullptr;  // the constant value of the input in host memory; borrowed until Make returns
  bool variable = false;          // the value of a variable; the caller holds its lock during fn
  bool host = false;              // in host memory, otherwise in the device's
};

/// Owns the result of a plugin's `prepare` and releases it by `unprepare`. Immutable. fn may be called concurrently
/// with different registers unless the kernel is STATEFUL.
class PreparedKernel {
 public:
  /// Calls the kernel's `prepare`. Unimplemented if it has no prepared form or declines (the caller then tries the
  /// dynamic form or the next candidate); ResourceExhausted for impossible scratch sizes; other errors come from the
  /// plugin. Errors do not name the node. `entry.record` and `device` must outlive the result; `node` is used during
  /// the call only.
  static Result<std::unique_ptr<PreparedKernel>> Make(const KernelEntry& entry, const weir_node& node,
                                                      std::span<const OperandSpec> inputs,
                                                      std::span<const OperandSpec> outputs, weir_device* device,
                                                      uint64_t max_tiles = 1);
  /// Takes over a kernel of the core's own, such as one that calls others: the record's `unprepare` releases it.
  static std::unique_ptr<PreparedKernel> Own(const KernelEntry& entry, const weir_prepared& prepared);
  ~PreparedKernel();
  PreparedKernel(const PreparedKernel&) = delete;
  PreparedKernel& operator=(const PreparedKernel&) = delete;

  /// Null only if every output is a MUST alias, so that there is nothing to call.
  weir_kernel_fn fn() const { return prepared_.fn; }
  void* state() const { return prepared_.state; }
  /// Size of the register after the outputs; 0 = no such register.
  uint64_t scratch_bytes() const { return prepared_.scratch_bytes; }
  /// Scratch bytes per tile if there are several tiles, which may run concurrently: a multiple of the alignment.
  uint64_t tile_scratch_bytes() const {
    return tiles() == 1 ? scratch_bytes() : (scratch_bytes() + scratch_alignment() - 1) & ~(scratch_alignment() - 1);
  }
  /// A power of two, at least 1.
  uint64_t scratch_alignment() const { return prepared_.scratch_alignment; }
  /// Scratch bytes of all tiles, including padding for alignments above that of buffers.
  uint64_t reserved_scratch_bytes() const {
    const uint64_t room = scratch_alignment() > kBufferAlignment ? scratch_alignment() - 1 : 0;
    return tile_scratch_bytes() * tiles() + room;
  }
  /// Validated: operands in range, output no larger than the input, at most one MUST per output.
  std::span<const weir_alias> aliases() const { return {prepared_.aliases, prepared_.alias_count}; }
  /// WEIR_KERNEL_* of the record and of the prepared instance combined.
  uint32_t flags() const { return flags_; }
  /// At least 1, at most the number for which the kernel was prepared.
  uint64_t tiles() const { return prepared_.tiles > 1 ? prepared_.tiles : 1; }
  const KernelEntry& entry() const { return *entry_; }

 private:
  PreparedKernel() = default;
  const KernelEntry* entry_ = nullptr;
  uint32_t flags_ = 0;
  bool owned_ = false;  // prepare succeeded, so unprepare must be called
  weir_prepared prepared_{};
};

/// A device's handle for Supports and Estimate. Opens the device; null for a device of another process, whose handle is
/// not its plugin's.
Result<weir_device*> HandleToAsk(device::Device& device);

/// Calls the record's `supports`; ok if the kernel has none. Unimplemented with the plugin's reason.
Status Supports(const KernelEntry& entry, const weir_node& node, std::span<const OperandSpec> inputs,
                std::span<const OperandSpec> outputs, weir_device* device);

/// Calls the record's `estimate`. Unimplemented if the kernel has none; Internal if all fields are NaN or one is
/// negative.
Result<weir_cost> Estimate(const KernelEntry& entry, const weir_node& node, std::span<const OperandSpec> inputs,
                           std::span<const OperandSpec> outputs, weir_device* device, const weir_profile* profile);

}  // namespace weir::kernel

#endif  // WEIR_CORE_KERNEL_PREPARED_H_
