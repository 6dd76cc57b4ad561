// Dynamic kernels: the host's side of a call, and the object that makes calls.
#ifndef WEIR_CORE_KERNEL_CONTEXT_H_
#define WEIR_CORE_KERNEL_CONTEXT_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/kernel/host.h"
#include "core/kernel/registry.h"
#include "core/runtime/cancellation.h"
#include "core/runtime/completion.h"
#include "core/tensor/buffer.h"
#include "core/tensor/tensor.h"
#include "sdk/abi/kernel.h"

namespace weir::kernel {

/// The flattened inputs of one argument of an op definition.
struct InputRange {
  std::string name;
  uint32_t first = 0;
  uint32_t count = 0;
};

/// The memory of a kernel's operands: the masks of its record, which are by argument, and the argument of each operand.
struct OperandPlaces {
  uint64_t host_inputs = 0;
  uint64_t host_outputs = 0;
  uint64_t variable_writes = 0;
  std::vector<int> input_args;   // by flattened input
  std::vector<int> output_args;  // by flattened output
};

/// Arguments of a call besides its inputs.
struct CallArgs {
  Allocator* allocator = nullptr;  // for device memory; null = the host's
  int64_t step_id = 0;
  runtime::Cancellation* cancellation = nullptr;  // the step's; may be null
  int threads = 0;                                // limit of parallel_for; 0 = all
  weir_device* device = nullptr;
  weir_stream* stream = nullptr;  // the step's; null for a synchronous device
  uint64_t native_stream = 0;
  /// Receives the temporary memory of Compute, which the stream may still use; null = freed when the call ends.
  std::vector<std::shared_ptr<Buffer>>* temporaries = nullptr;
  uint32_t* error_flags = nullptr;  // receives WEIR_ERROR_* of a failed call's record; may be null
};

/// State of a call that completes later. Must not move until `done` was run; callbacks of the call must not destroy it.
struct Later {
  runtime::Completion done;
  runtime::CancelCallback cancel;  // for use by the caller
  uint32_t error_flags = 0;        // WEIR_ERROR_* if the call failed immediately
};

struct PendingCall;
class KernelFault;

/// Owns the state from a plugin's `create` for one node, and calls `compute` with it. Thread-safe: calls run
/// concurrently, except for STATEFUL kernels, whose calls are serialized.
class DynamicKernel {
 public:
  /// Unimplemented if the kernel has no dynamic form; other errors come from the plugin. Errors do not name the node.
  /// `entry.record` and `device` must outlive the result; `node` is used during the call only.
  static Result<std::unique_ptr<DynamicKernel>> Make(const KernelEntry& entry, const weir_node& node,
                                                     weir_device* device);
  ~DynamicKernel();
  DynamicKernel(const DynamicKernel&) = delete;
  DynamicKernel& operator=(const DynamicKernel&) = delete;

  /// True if calls may complete later.
  bool async() const { return (entry_->record->flags & WEIR_KERNEL_ASYNC) != 0; }
  /// Makes one call. Inputs are in device memory; strings and the inputs of host_inputs are on the host. An input with
  /// an unshared buffer may become an output (`forward`), so the caller keeps a reference to inputs that must not
  /// change. Inputs of variable_writes are writable under the lock that the caller holds. `output_types` are value
  /// types. Outputs come from `allocator`; strings and the outputs of host_outputs are on the host. Internal if the
  /// kernel left an output unset; if the step was cancelled and the kernel failed, the step's status. Blocks for an
  /// ASYNC kernel.
  Result<std::vector<Tensor>> Compute(std::vector<Tensor> inputs, std::span<const DType> output_types,
                                      const CallArgs& args);
  /// Starts a call of an ASYNC kernel, which runs `later.done`, possibly before this returns. If the step is cancelled
  /// first, the kernel's `cancel` is called. A call of a STATEFUL kernel waits for the previous one without holding a
  /// thread. The kernel must live until `done` was run. If a plugin completes a call twice, later calls fail with
  /// Internal, naming the kernel.
  void Start(std::vector<Tensor> inputs, std::vector<DType> output_types, const CallArgs& args, Later& later);

  const KernelEntry& entry() const { return *entry_; }

 private:
  using Call = std::shared_ptr<PendingCall>;
  DynamicKernel() = default;
  bool stateful() const { return (entry_->record->flags & WEIR_KERNEL_STATEFUL) != 0; }
  void Fill(weir_ctx& ctx, std::vector<Tensor> inputs, std::span<const DType> output_types, const CallArgs& args) const;
  Status CallCompute(weir_ctx* handle, const std::string& name, uint32_t* error_flags);
  /// The outputs of a call that ended with `status`.
  Result<std::vector<Tensor>> Outputs(weir_ctx& ctx, Status status) const;
  void Begin(const Call& call);
  /// Completes a call that is no longer pending.
  void Complete(PendingCall& call, Status status);
  friend void CompletePending(const weir_ctx* handle, Status status);
  /// Ends a queued call that has not started.
  void Withdraw(const PendingCall* call);
  /// Starts the oldest queued call.
  void BeginNext();

  const KernelEntry* entry_ = nullptr;
  std::string name_;
  std::vector<InputRange> ranges_;
  OperandPlaces places_;
  void* state_ = nullptr;
  bool owned_ = false;        // create succeeded, so destroy must be called
  std::mutex mutex_;          // serializes the calls of a STATEFUL kernel; protects waiting_ and running_
  std::deque<Call> waiting_;  // queued behind the running call
  bool running_ = false;
  std::shared_ptr<KernelFault> fault_;  // ASYNC kernels only
};

/// The host table's `done`: completes a pending call. For a call that was already completed only records the fault.
void CompletePending(const weir_ctx* handle, Status status);

}  // namespace weir::kernel

#endif  // WEIR_CORE_KERNEL_CONTEXT_H_
