// The state of building one plan.
#ifndef WEIR_CORE_PLAN_BUILDER_INTERNAL_H_
#define WEIR_CORE_PLAN_BUILDER_INTERNAL_H_

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "core/graph/frames.h"
#include "core/plan/guards_internal.h"
#include "core/plan/memory_internal.h"
#include "core/plan/plan.h"
#include "core/plan/tasks_internal.h"
#include "core/plan/unroll_internal.h"

namespace weir::plan {

/// An output of this type still stands for the variable behind the input, not for its value.
inline bool KeepsVariable(DType type) { return IsRef(type) || BaseType(type) == DType::kResource; }

/// The node names a variable.
bool NamesVariable(const graph::StepNode& node);

class Builder {
 public:
  Builder(const PlanOptions& options, const graph::StepGraph& step, const graph::Placement& placement,
          const Receivers& receivers, size_t feeds);
  Result<std::unique_ptr<ExecutionPlan>> Run();

  /// Once Run is over: what its loops are like, by frame.
  const std::map<int, LoopWork>& loops() const { return loops_; }

 private:
  /// kPlanned: in the arena when the shape is known. kAtRun: a tensor made while running.
  enum class Placing { kPlanned, kAtRun };

  /// Flattened operands of the current node with what its kernels need to know.
  struct Operands {
    std::vector<int> inputs;  // values, not yet moved to a space
    std::vector<int> input_args;
    std::vector<int> output_args;
    std::vector<kernel::OperandSpec> input_specs;
    std::vector<kernel::OperandSpec> output_specs;
    bool shapes_known = true;
    bool strings = false;
  };

  // Nodes (build.cc).
  const graph::StepNode& Current() const { return step_.node(current_); }
  graph::NodeId NodeIndex();
  Status EmitNode();
  /// Sends and fetches the outputs of the current node.
  Status HandOut();
  /// Copies what other devices receive from the current node.
  Status EmitSends();
  Status EmitFetch(int fetch);
  void Finish();
  Status Fail(const Status& status) const;

  // Control flow (build_flow.cc).
  Status EmitFlow(graph::Flow flow);
  Status EmitSwitch();
  Status EmitMerge();
  Status EmitExit();
  /// An input as a value that the host reads: what a reference stands for when the tape comes there.
  Result<int> HostInput(int input);
  /// The predicate of a Switch; the step checks that it is a scalar where the plan cannot know.
  Result<int> Predicate();
  /// The first input as it goes on: a variable's reference that is asked for its value becomes a snapshot.
  Result<int> Forwarded();
  Status BeginLoop(int frame);
  Status EnterVariable(graph::NodeId merge);
  /// What a loop variable is in all iterations, when it first is `entering`.
  Result<int> LoopVariable(int entering);
  Status NotAlwaysVariable() const;
  Status EndLoop(int frame);
  /// What a loop variable becomes in the next iteration.
  struct Carried {
    int from, to;  // values
    int guard;
    graph::NodeId merge;
    bool may_swap;  // where the new value lies in a place that nobody needs any more
    bool swaps;     // the two change places; else bytes are copied
  };
  Status CarryVariables(int frame, std::vector<int>* go_on);
  /// Adds what a returning input of the current node, a loop's Merge, brings under the current guard.
  Status CarryBack(size_t input, std::vector<Carried>* moves);
  /// The guard of a loop's Merge in the next iteration: one of `alive`.
  int EitherReturns(const std::vector<int>& alive, graph::NodeId merge);
  /// Loop variables are as alive in the next iteration as what they become; `again`: whether one of them is.
  void CarryGuards(int frame, std::vector<int> go_on, int again);
  void FindSwaps(std::vector<Carried>* moves);
  void EmitSwaps(const std::vector<Carried>& moves);
  /// What changes places with something that is fetched is memory of the same kind.
  void FetchSwapped();
  /// Instructions emitted from now on run under `guard`.
  void Under(int guard);
  /// Makes sure that the byte of `guard` is set by then.
  void Ensure(int guard);
  void EmitGuard(GuardStep step, const std::vector<int>& inputs, const std::vector<int>& outputs = {});
  void EmitMove(int from, int to);
  int AddJump(int guard);

  // References that are chosen while running (build_choice.cc).
  /// A place for a reference to any variable that one of `references` may stand for.
  Result<int> PlaceFor(const std::vector<int>& references);
  /// The same for what may come to an endpoint on any way, loops included; a variable itself where only that one comes,
  /// -1 where none does.
  Result<int> PlaceFor(graph::Endpoint reference);
  bool IsPlace(int value) const;
  /// Where a move may keep what a value is now.
  Result<int> RoomFor(int value);
  Status EmitSelect();

  // Values (build.cc).
  int SpaceOf(int device) const;
  device::Device* DeviceOf(graph::NodeId id) const;
  int AddStorage(Storage storage);
  int StorageOf(int value) const { return plan_->values[static_cast<size_t>(value)].storage; }
  int AddValue(Value value);
  int AddConstant(const Tensor& tensor);
  int NewValue(DType dtype, const PartialShape& shape, int space, Placing placing);
  /// Another shape for the same memory.
  int ViewOf(int value, const PartialShape& shape);
  Instruction& Emit(Opcode opcode, const std::vector<int>& inputs, const std::vector<int>& outputs);
  int& ValueAt(graph::Endpoint e);
  bool IsVariable(int value) const;
  int VariableOf(int value) const;
  /// The value in `space`, copied there on first need.
  Result<int> Located(int value, int space);
  void SetLocks(std::vector<Lock> locks, Instruction& instruction);

  // Ops that the core runs on every device (build_universal.cc).
  Status EmitUniversal();
  Status EmitAlias(int output);
  Status EmitVariable();
  /// A snapshot of the variable behind input `index` becomes output `index`.
  Status EmitRead(int index);
  /// The value that a variable has when the tape comes there; of the shape given unless the variable has one.
  int Snapshot(int variable, PartialShape shape);
  Status EmitAssign();
  Status EmitVariableQuery(Opcode opcode);
  Result<int> VariableInput(int input);
  /// InvalidArgument when input number `input` is a handle and `variable`, the value that it is, holds another type.
  Status CheckHeld(int input, int variable) const;

  // Kernels (build_kernel.cc).
  Status EmitKernel();
  Result<Operands> Gather();
  /// Unimplemented when the input is a resource handle: what is bound to it is the variable, not the handle.
  Status CheckNoHandle(int input);
  /// kDeclined: the kernel says that it cannot run the node. kNotNow: nor can it be asked before the step runs.
  enum class Prepared { kBound, kDeclined, kNotNow };
  Result<Prepared> TryPrepared(const kernel::KernelEntry& entry, const weir_node& node, Operands& operands);
  Status Bind(std::unique_ptr<kernel::PreparedKernel> kernel, const std::vector<int>& inputs, const Operands& operands);
  Result<std::vector<int>> MoveInputs(const weir_kernel& record, const Operands& operands);
  std::vector<int> MakeOutputs(const weir_kernel& record, const Operands& operands, Placing placing,
                               const std::vector<int>& inputs, const kernel::PreparedKernel* kernel);
  std::vector<Lock> LocksOf(const weir_kernel* record, const std::vector<int>& inputs, const Operands& operands) const;
  Status EmitCall(std::vector<const kernel::KernelEntry*> kernels);

  const PlanOptions& options_;
  const graph::StepGraph& step_;
  const graph::Placement& placement_;
  const Receivers& receivers_;
  std::unique_ptr<ExecutionPlan> plan_;
  graph::NodeId current_ = -1;
  std::vector<std::vector<int>> value_of_;    // by step node and output
  std::vector<std::vector<int>> fetches_of_;  // by step node
  struct CopyMade {
    int value = -1;
    int guard = 0;
  };
  /// A loop whose end has not come yet.
  struct OpenLoop {
    int base = 0;           // the guard that the whole loop runs under
    int skip = -1;          // the jump over it
    uint32_t first = 0;     // its first instruction
    int first_storage = 0;  // of those made inside
    std::vector<bool> ready;
    std::vector<graph::NodeId> exits;
  };

  std::map<std::pair<int, int>, CopyMade> copies_;  // by (value, space)
  StepGuards guards_;
  int guard_ = kAlways;      // of what is emitted
  std::vector<bool> ready_;  // guards whose byte is set by the instructions so far
  std::vector<OpenLoop> open_loops_;
  std::vector<std::vector<graph::NodeId>> merges_of_;  // by frame: the Merge nodes of its variables
  TapeShape shape_;
  std::map<int, LoopWork> loops_;
  std::vector<TapeNote> notes_;           // by instruction
  std::vector<Range> node_instructions_;  // by step node
  double next_ns_ = 0;                    // declared time of the kernel that is emitted next
  bool next_blocks_ = false;
  std::map<const graph::Node*, const std::vector<const graph::Node*>*> stands_for_;  // of nodes in no graph
};

}  // namespace weir::plan

#endif  // WEIR_CORE_PLAN_BUILDER_INTERNAL_H_
