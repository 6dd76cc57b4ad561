// Kernels in dynamic form: the host's side of one call, and the object that makes calls.
#ifndef WEIR_CORE_KERNEL_CONTEXT_H_
#define WEIR_CORE_KERNEL_CONTEXT_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/kernel/host.h"
#include "core/kernel/registry.h"
#include "core/kernel/run_control.h"
#include "core/tensor/buffer.h"
#include "core/tensor/tensor.h"
#include "sdk/abi/kernel.h"

namespace weir::kernel {

/// Where one argument of an op definition lies among the flattened inputs.
struct InputRange {
  std::string name;
  uint32_t first = 0;
  uint32_t count = 0;
};

/// Where the operands of a kernel lie: the masks of its record, which are by argument, and each operand's argument.
struct OperandPlaces {
  uint64_t host_inputs = 0;
  uint64_t host_outputs = 0;
  uint64_t variable_writes = 0;
  std::vector<int> input_args;   // by flattened input
  std::vector<int> output_args;  // by flattened output
};

/// What a call has to keep to.
struct CallLimits {
  const RunControl* control = nullptr;  // may be null
  int threads = 0;                      // that parallel_for may use; 0 = all
  uint32_t* error_flags = nullptr;      // WEIR_ERROR_* of a failed call's record go here; may be null
};

/// Owns the state that a plugin's `create` made for a node and calls `compute` with it. Thread-safe: calls run
/// concurrently, except for STATEFUL kernels, which are serialized here.
class DynamicKernel {
 public:
  /// Unimplemented when the kernel has no dynamic form; other errors are the plugin's. Errors do not name the node.
  /// `entry.record` and `device` outlive the result; `node` is needed during the call only.
  static Result<std::unique_ptr<DynamicKernel>> Make(const KernelEntry& entry, const weir_node& node,
                                                     weir_device* device);
  ~DynamicKernel();
  DynamicKernel(const DynamicKernel&) = delete;
  DynamicKernel& operator=(const DynamicKernel&) = delete;

  /// One call. Inputs lie in device memory, or on the host where the record's host_inputs says so or the type is a
  /// string; an input whose buffer nobody else holds may become an output (`forward`), so the caller keeps a reference
  /// to what has to stay as it is. Inputs in variable_writes are given writable, under the lock that the caller holds.
  /// `output_types` are value types; outputs come from `allocator`, from the host for host_outputs and strings.
  /// An ASYNC kernel is waited for, on this thread; when `control` ends the step before, it is told so by `cancel`.
  /// Internal when the kernel left an output unset; of a kernel that gave up because the step was to end, why it was.
  Result<std::vector<Tensor>> Compute(std::vector<Tensor> inputs, std::span<const DType> output_types,
                                      Allocator& allocator, int64_t step_id, const CallLimits& limits = {});

  const KernelEntry& entry() const { return *entry_; }

 private:
  DynamicKernel() = default;
  /// Until the kernel said `done`.
  Status Await(weir_ctx& ctx);
  const KernelEntry* entry_ = nullptr;
  std::vector<InputRange> ranges_;
  OperandPlaces places_;
  void* state_ = nullptr;
  bool owned_ = false;  // create succeeded, so destroy is due
  std::mutex mutex_;    // serializes STATEFUL kernels
};

}  // namespace weir::kernel

#endif  // WEIR_CORE_KERNEL_CONTEXT_H_
