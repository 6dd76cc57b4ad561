// The core's kernels for platform `host`: functions over host tensors, registered by explicit calls.
#ifndef WEIR_CORE_KERNEL_BUILTIN_H_
#define WEIR_CORE_KERNEL_BUILTIN_H_

#include <functional>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/device/device.h"
#include "core/op/attrs.h"
#include "core/runtime/cancellation.h"
#include "core/runtime/completion.h"
#include "core/runtime/node_resources.h"
#include "core/runtime/resource.h"
#include "core/tensor/tensor.h"

namespace weir::kernel {

/// One call. All inputs are valid host tensors, flattened; the function sets every output. Pointers are valid until the
/// call has ended: for an asynchronous call, until its completion was run.
struct BuiltinCall {
  std::string_view node_name;
  op::AttrView attrs;
  std::vector<Tensor> inputs;
  std::vector<Tensor> outputs;                    // one per output of the node, set by the function
  runtime::NodeResources* resources = nullptr;    // kept by the node between calls; null = none
  runtime::ResourceScope* scope = nullptr;        // the session's; null in constant folding
  runtime::Cancellation* cancellation = nullptr;  // the step's; null = cannot be cancelled
  int64_t step_id = 0;
  device::Device* device = nullptr;              // the node's device; null = the host
  Allocator* allocator = nullptr;                // for outputs in host memory; null = HostAllocator()
  runtime::ResourceScope* step_scope = nullptr;  // for resources that end with the step; null if `scope` is null
};

/// The caller adds the node to errors. Called concurrently by several steps. Deterministic unless the op is stateful.
using BuiltinFn = std::function<Status(BuiltinCall&)>;

/// As BuiltinFn, for an op that may wait, such as a dequeue or a receive. The function does not block: it runs `done`
/// exactly once with the outputs or an error, before it returns or later, on any thread and without holding a lock. A
/// waiting op holds no thread. It registers a CancelCallback with `call.cancellation` and completes soon after that is
/// called.
///
/// ```cpp
/// struct Waiter { CancelCallback cancel; Completion done; };   // in the queue's list, under its mutex
/// ```
/// The code that serves a waiter removes it from the list under the mutex, unlocks, deregisters `cancel` and runs
/// `done`; `cancel` does the same. The Cancellation may be gone once `done` was called.
using AsyncBuiltinFn = std::function<void(BuiltinCall call, runtime::Completion done)>;

/// Whether a resource keeps inputs after the call. Kept buffers are never written; the step copies those that it would
/// reuse.
enum class InputUse : uint8_t { kDuringCall, kKept };

/// Exactly one of the two functions is set.
struct BuiltinKernel {
  BuiltinFn fn;
  AsyncBuiltinFn async;
  bool blocks = false;  // `fn` may wait for something other than the CPU, such as a file
  InputUse inputs = InputUse::kDuringCall;
};

}  // namespace weir::kernel

#endif  // WEIR_CORE_KERNEL_BUILTIN_H_
