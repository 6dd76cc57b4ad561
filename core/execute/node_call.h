// Runs one node on tensors: infers shapes, allocates memory and prepares the kernel for the call.
#ifndef WEIR_CORE_EXECUTE_NODE_CALL_H_
#define WEIR_CORE_EXECUTE_NODE_CALL_H_

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/kernel/context.h"
#include "core/kernel/prepared.h"
#include "core/plan/plan.h"
#include "core/runtime/cancellation.h"
#include "core/runtime/rendezvous.h"
#include "core/tensor/tensor.h"

namespace weir::execute {

struct Recipe;
class RunStreams;
class TapeTrace;

/// The parameters of one run of a plan.
struct StepArgs {
  int64_t step_id = 0;
  runtime::Cancellation* cancellation = nullptr;  // null = cannot be cancelled
  bool watched = false;                           // may be cancelled by itself: checked before every instruction
  std::chrono::milliseconds grace{2000};          // for its ops to complete after a cancellation
  /// Must live as long as an op of the step that did not complete by then; null = the caller ensures this.
  const std::weak_ptr<const void>* owner = nullptr;
  int inter_op = 1;                             // concurrent tasks
  int intra_op = 0;                             // threads of parallel_for in one op; 0 = all
  bool check_numerics = false;                  // NaN and infinity fail the step
  TapeTrace* trace = nullptr;                   // null = no trace
  bool apart = false;                           // with a trace: awaits work on streams that else has no times
  runtime::ResourceScope* resources = nullptr;  // those that end with the run
  RunStreams* streams = nullptr;                // of the run, for work on devices with streams
  runtime::Rendezvous* rendezvous = nullptr;    // of a partitioned step
};

/// The slow path for nodes that a plan cannot bind, also used for constant folding. Thread-safe.
class NodeCall {
 public:
  explicit NodeCall(plan::CallSpec spec);
  ~NodeCall();
  NodeCall(NodeCall&&) noexcept;

  /// Inputs must be where the best kernel needs them (in device memory, or on the host for host operands). A variable
  /// that the kernel writes is updated in place; the caller holds its lock and has made its memory unshared. Outputs of
  /// reference type are the first input. Unshared inputs may be overwritten. Errors name the node. Blocks for a call
  /// that completes later.
  Result<std::vector<Tensor>> Run(std::vector<Tensor> inputs, const StepArgs& step = {});
  /// As Run, for a call that may complete later: returns the outputs, or nullopt if `later.done` will be run, possibly
  /// before this returns. Finish converts the result that `later.done` gets to the result of Run.
  Result<std::optional<std::vector<Tensor>>> Start(std::vector<Tensor> inputs, const StepArgs& step,
                                                   kernel::Later& later);
  Result<std::vector<Tensor>> Finish(Result<std::vector<Tensor>> made, const kernel::Later& later) const;
  const plan::CallSpec& spec() const { return spec_; }

 private:
  /// The outputs of a call; nullopt if it completes later.
  using Outputs = std::optional<std::vector<Tensor>>;
  struct Cache;
  /// Operand descriptions for kernels.
  struct Operands {
    std::vector<kernel::OperandSpec> in, out;
  };
  Result<std::vector<Tensor>> RunUniversal(const std::vector<Tensor>& inputs, RunStreams* streams);
  Result<Outputs> RunBuiltin(std::vector<Tensor> inputs, const StepArgs& step, kernel::Later& later);
  Status CheckBuiltin(const std::vector<Tensor>& outputs) const;
  Result<std::vector<Tensor>> RunStrings(std::vector<Tensor> inputs, const StepArgs& step);
  Result<Outputs> RunKernels(const std::vector<const kernel::KernelEntry*>& entries, op::AttrView attrs,
                             std::vector<Tensor> inputs, std::span<const DType> output_types, const StepArgs& step,
                             kernel::Later& later);
  Result<Outputs> RunDynamic(const kernel::KernelEntry& entry, op::AttrView attrs, std::vector<Tensor> inputs,
                             std::span<const DType> output_types, const StepArgs& step, kernel::Later& later);
  Result<std::vector<Tensor>> Follow(const Recipe& recipe, const std::vector<Tensor>& inputs, RunStreams* streams);
  /// The kernels that accept the operands where they are, cheapest first. `declined` gets the reasons of the others.
  std::vector<const kernel::KernelEntry*> Ranked(const std::vector<const kernel::KernelEntry*>& entries,
                                                 op::AttrView attrs, const std::vector<Tensor>& inputs,
                                                 std::span<const DType> output_types,
                                                 const std::vector<PartialShape>& shapes, std::string* declined);
  Result<Operands> Describe(const weir_kernel& record, const std::vector<Tensor>& inputs,
                            std::span<const DType> output_types, const std::vector<PartialShape>& shapes) const;
  Result<kernel::DynamicKernel*> Dynamic(const kernel::KernelEntry& entry, op::AttrView attrs);
  /// Null if no recent call matches.
  std::shared_ptr<const Recipe> Find(const kernel::KernelEntry* first, const std::vector<Tensor>& inputs);
  /// Adds the values of shape operands to the recipe; false if they are too large to compare. `asked` are the inputs
  /// whose values shape inference read.
  bool Remember(Recipe& recipe, const std::vector<bool>& asked, const std::vector<Tensor>& inputs);
  /// Caches a recipe for later calls.
  void Keep(Recipe recipe);
  /// The error for operands that the shape function rejects: the kernel's text if it has one, which is TensorFlow's
  /// run-time text.
  Status Refusal(const Status& inferred, const std::vector<const kernel::KernelEntry*>& entries, op::AttrView attrs,
                 const std::vector<Tensor>& inputs, std::span<const DType> output_types);
  /// Binds recipe.entry to these operands. Unimplemented if another kernel must be used.
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

}  // namespace weir::execute

#endif  // WEIR_CORE_EXECUTE_NODE_CALL_H_
