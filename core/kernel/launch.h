// Kernel calls on tensors, in both forms: output and scratch memory, aliases, registers, streams, errors.
//
// A plan's tape binds registers once and calls fn by pointer; all other calls are made here.
#ifndef WEIR_CORE_KERNEL_LAUNCH_H_
#define WEIR_CORE_KERNEL_LAUNCH_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "core/device/device.h"
#include "core/device/stream.h"
#include "core/kernel/context.h"
#include "core/kernel/prepared.h"
#include "core/runtime/cancellation.h"
#include "core/tensor/tensor.h"
#include "sdk/abi/kernel.h"

namespace weir::kernel {

/// A register for a tensor; `shape` must outlive it.
inline weir_reg RegisterOf(const Tensor& tensor, const weir_shape* shape) {
  weir_reg reg{};
  reg.shape = shape;
  reg.dtype = static_cast<uint32_t>(tensor.dtype());
  if (tensor.buffer() == nullptr) return reg;
  const weir_buf& memory = tensor.buffer()->memory();
  reg.handle = memory.handle;
  reg.data = memory.host != nullptr ? reinterpret_cast<uint64_t>(memory.host) + tensor.offset()
                                    : memory.offset + tensor.offset();
  return reg;
}

/// The context of a call. Referenced objects must outlive the call and, with a stream, the enqueued work.
struct LaunchArgs {
  device::Device* device = nullptr;               // not null
  device::Stream* stream = nullptr;               // the step's; null for a synchronous device
  Allocator* allocator = nullptr;                 // for outputs and scratch in device memory; null = the device's
  Allocator* host_allocator = nullptr;            // for host outputs of a prepared call; null = HostAllocator()
  std::mutex* serial = nullptr;                   // serializes calls of a STATEFUL prepared kernel; may be null
  int64_t step_id = 0;                            // this and the following: for dynamic kernels
  runtime::Cancellation* cancellation = nullptr;  // the step's; may be null
  int threads = 0;                                // limit of parallel_for; 0 = all
};

/// Calls fn for the tiles [begin, end) and classifies its error. `registers`: inputs, outputs, and the scratch memory
/// of all tiles if the kernel has any. With `stream` the work is enqueued there. Thread-safe for different registers.
Status CallTiles(const PreparedKernel& kernel, std::span<const weir_reg> registers, uint64_t begin, uint64_t end,
                 const device::Device& device, device::Stream* stream = nullptr);

/// One call of a prepared kernel: Bind, then Run. Outputs are complete when Run returns; with a stream, when its work
/// is done. Single-threaded; `kernel` must outlive the call.
class Launch {
 public:
  Launch(std::shared_ptr<const PreparedKernel> kernel, const LaunchArgs& args);
  Launch(const Launch&) = delete;
  Launch& operator=(const Launch&) = delete;

  /// Uses a MAY alias of the kernel: the output shares the input's memory. Call before Bind.
  void InPlace(const weir_alias& alias) { in_place_ = &alias; }
  /// Binds memory for all operands. Inputs must be in the memory for which the kernel was prepared. An output marked
  /// `variable` is the first input itself; one with a MUST alias shares the input's memory; all others get new memory,
  /// on the host if the spec says so and the device memory is not host memory.
  Status Bind(std::span<const Tensor> inputs, std::span<const OperandSpec> outputs);
  /// Calls fn once for all tiles, or once per tile.
  enum class Tiling { kOneCall, kTileByTile };
  Status Run(Tiling tiling = Tiling::kOneCall);

  const std::vector<Tensor>& outputs() const { return outputs_; }
  std::vector<Tensor> TakeOutputs() { return std::move(outputs_); }
  /// Null if the kernel uses no scratch memory. The kernel's part starts at byte `scratch_begin`.
  const std::shared_ptr<Buffer>& scratch() const { return scratch_; }
  uint64_t scratch_begin() const { return scratch_begin_; }

 private:
  Status BindScratch();
  void AddRegister(const Tensor& tensor);

  const std::shared_ptr<const PreparedKernel> kernel_;
  const LaunchArgs args_;
  const weir_alias* in_place_ = nullptr;
  std::vector<Tensor> outputs_;
  std::shared_ptr<Buffer> scratch_;
  uint64_t scratch_begin_ = 0;
  std::vector<weir_shape> shapes_;
  std::vector<weir_reg> registers_;
};

/// One call of a dynamic kernel; see DynamicKernel::Compute. A kernel without WEIR_KERNEL_STREAM is called after all
/// work on args.stream is done. A kernel with it gets the stream, which keeps memory used by the call until its work is
/// done. Nullopt if the kernel is ASYNC: `later.done` will be run, possibly before this returns.
Result<std::optional<std::vector<Tensor>>> LaunchDynamic(DynamicKernel& kernel, std::vector<Tensor> inputs,
                                                         std::span<const DType> output_types, const LaunchArgs& args,
                                                         Later& later);
/// As above for a caller that can wait: blocks for calls that complete later.
Result<std::vector<Tensor>> LaunchDynamic(DynamicKernel& kernel, std::vector<Tensor> inputs,
                                          std::span<const DType> output_types, const LaunchArgs& args);

}  // namespace weir::kernel

#endif  // WEIR_CORE_KERNEL_LAUNCH_H_
