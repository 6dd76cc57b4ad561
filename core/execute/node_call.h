// Runs one node on tensors: shapes are inferred, memory is allocated, the kernel is prepared for this call.
#ifndef WEIR_CORE_EXECUTE_NODE_CALL_H_
#define WEIR_CORE_EXECUTE_NODE_CALL_H_

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/kernel/context.h"
#include "core/kernel/prepared.h"
#include "core/kernel/run_control.h"
#include "core/plan/plan.h"
#include "core/tensor/tensor.h"

namespace weir::execute {

struct Recipe;
class RunStreams;
class TapeTrace;

/// What one run of a plan keeps to.
struct StepArgs {
  int64_t step_id = 0;
  const kernel::RunControl* control = nullptr;  // null = nothing ends it early
  int inter_op = 1;                             // tasks at once
  int intra_op = 0;                             // threads of parallel_for in one op; 0 = all
  bool check_numerics = false;                  // a NaN or an infinity ends the step
  TapeTrace* trace = nullptr;                   // null = nobody asks when what ran
  RunStreams* streams = nullptr;                // of the run; work on a device with streams is enqueued there
};

/// The slow path for nodes that a plan cannot bind, and the way constants are folded. Thread-safe.
class NodeCall {
 public:
  explicit NodeCall(plan::CallSpec spec);
  ~NodeCall();
  NodeCall(NodeCall&&) noexcept;

  /// Inputs lie where the best kernel wants them (the device's memory, or the host for host operands). An input that is
  /// a variable which the kernel writes is written in place; the caller holds its lock and made its memory unshared.
  /// Outputs of reference type are the first input. Errors name the node.
  Result<std::vector<Tensor>> Run(std::vector<Tensor> inputs, const StepArgs& step = {});

 private:
  struct Cache;
  Result<std::vector<Tensor>> RunUniversal(const std::vector<Tensor>& inputs, RunStreams* streams);
  Result<std::vector<Tensor>> RunBuiltin(std::vector<Tensor> inputs, RunStreams* streams);
  Result<std::vector<Tensor>> RunStrings(std::vector<Tensor> inputs, const StepArgs& step);
  Result<std::vector<Tensor>> RunKernels(const std::vector<const kernel::KernelEntry*>& entries, op::AttrView attrs,
                                         std::vector<Tensor> inputs, std::span<const DType> output_types,
                                         const StepArgs& step);
  Result<std::vector<Tensor>> Follow(const Recipe& recipe, std::vector<Tensor>& inputs,
                                     std::span<const DType> output_types, RunStreams* streams);
  Result<kernel::DynamicKernel*> Dynamic(const kernel::KernelEntry& entry, op::AttrView attrs);
  /// Null when no recent call was like this one.
  std::shared_ptr<const Recipe> Find(const kernel::KernelEntry* first, const std::vector<Tensor>& inputs);
  /// For later calls, unless what steers the kernel is too large to compare; `asked` are the inputs whose values shape
  /// inference looked at.
  void Keep(Recipe recipe, const std::vector<bool>& asked, const std::vector<Tensor>& inputs);
  /// What is wrong with operands that the shape function refuses: the kernel's words, which are TensorFlow's at run
  /// time, where it has some.
  Status Refusal(const Status& inferred, const std::vector<const kernel::KernelEntry*>& entries, op::AttrView attrs,
                 const std::vector<Tensor>& inputs, std::span<const DType> output_types);
  Status Launch(const kernel::PreparedKernel& kernel, const std::vector<weir_reg>& regs, device::Stream* stream);
  /// Binds recipe.entry to these operands. Unimplemented: another kernel has to.
  Status Prepare(op::AttrView attrs, const std::vector<Tensor>& inputs, std::span<const DType> output_types,
                 const std::vector<PartialShape>& shapes, Recipe& recipe);
  Result<std::vector<PartialShape>> Infer(const std::vector<Tensor>& inputs, RunStreams* streams,
                                          std::vector<bool>* asked = nullptr);
  Result<Tensor> ToHost(const Tensor& tensor, RunStreams* streams);

  plan::CallSpec spec_;
  std::vector<int> input_args_;
  std::vector<int> output_args_;
  std::unique_ptr<Cache> cache_;
};

/// A tensor as a kernel's register; `shape` outlives its use.
weir_reg RegisterOf(const Tensor& tensor, const weir_shape* shape);

}  // namespace weir::execute

#endif  // WEIR_CORE_EXECUTE_NODE_CALL_H_
