// The emitters: each writes the instructions of one kind of node. They take the node as an argument and keep only what
// holds for the whole step.
#ifndef WEIR_CORE_PLAN_EMITTERS_INTERNAL_H_
#define WEIR_CORE_PLAN_EMITTERS_INTERNAL_H_

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/plan/bound_kernels_internal.h"
#include "core/plan/emit_context_internal.h"

namespace weir::plan {

/// Variables, handles and references. A reference that is chosen while running is a reference cell: a variable of the
/// plan that stands for one of several.
class VariableEmitter {
 public:
  explicit VariableEmitter(EmitContext& context) : c_(context), tape_(context.tape) {}

  /// Binds the variable that the node names; no instruction. Repeated calls have no effect.
  Status EmitVariable(graph::NodeId id);
  /// A snapshot of the variable behind input `index` becomes output `index`.
  Status EmitRead(graph::NodeId id, int index);
  Status EmitAssign(graph::NodeId id);
  /// kIsInitialized or kVariableShape.
  Status EmitQuery(graph::NodeId id, Opcode opcode);
  /// RefSelect.
  Status EmitSelect(graph::NodeId id);

  /// The value of a variable at this point of the tape; of `shape` unless the variable declares one.
  ValueId Snapshot(ValueId variable, PartialShape shape);
  /// The first input as it goes on: a reference that is asked for its value is read.
  Result<ValueId> Forwarded(graph::NodeId id);
  /// An input as a value in the memory of the host; a variable is read.
  Result<ValueId> HostInput(graph::NodeId id, size_t input);

  /// A cell for a reference to any variable that one of `references` stands for; the reference itself if they stand for
  /// one variable. Unimplemented for values, and for variables of several types or devices.
  Result<ValueId> CellFor(graph::NodeId id, std::span<const ValueId> references);
  /// The same for all variables whose reference may reach an endpoint, also through loops; none if other values may.
  Result<ValueId> CellFor(graph::NodeId id, graph::Endpoint reference);
  /// A place to which a move may copy a value: a cell for a reference, else memory.
  Result<ValueId> RoomFor(graph::NodeId id, ValueId value);
  /// True if only known variables that fit one cell may reach a handle.
  Result<bool> StaysVariable(graph::Endpoint handle);
  /// The handle tensor of a variable; any other value as it is.
  ValueId HandleValue(ValueId value);
  /// HandleValue of each, under its guard, unless all fit one cell.
  void UnifyHandles(std::span<const GuardId> guards, std::vector<ValueId>* handles);
  /// A cell for the variable to which a handle input, a value, refers while running.
  Result<ValueId> Resolved(graph::NodeId id, int input);
  /// InvalidArgument if the input is a handle and `variable` holds another type than the op wants.
  Status CheckHeld(graph::NodeId id, int input, ValueId variable) const;

 private:
  Result<ValueId> VariableInput(graph::NodeId id, int input);
  Result<std::vector<ValueId>> VariablesAt(graph::Endpoint reference);
  bool FitOneCell(std::span<const ValueId> references) const;

  EmitContext& c_;
  TapeBuilder& tape_;
};

/// Ops with kernels: prepared where everything is known, else a call on tensors.
class KernelEmitter {
 public:
  /// `stands_for`: the nodes that a fused node replaces. Borrowed, as the others.
  KernelEmitter(EmitContext& context, VariableEmitter& variables,
                const std::map<const graph::Node*, const std::vector<const graph::Node*>*>& stands_for)
      : c_(context), tape_(context.tape), variables_(variables), stands_for_(stands_for) {}

  Status Emit(graph::NodeId id);
  /// Leaves the choice of a kernel to the step; without kernels, calls `host`, or computes a universal op on tensors.
  Status EmitCall(graph::NodeId id, std::vector<const kernel::KernelEntry*> kernels,
                  const kernel::BuiltinKernel* host = nullptr);

 private:
  /// Operands of a node with what its kernels need to know. One object serves all nodes, for its memory.
  struct Operands {
    std::vector<ValueId> inputs;               // not yet moved to a space
    const op::Signature* signature = nullptr;  // that the two below are of
    std::vector<int> input_args;
    std::vector<int> output_args;
    std::vector<kernel::OperandSpec> input_specs;
    std::vector<kernel::OperandSpec> output_specs;
    bool shapes_known = true;
    bool strings = false;
  };

  /// Emits the node by a kernel of its device, else by the core's for the host. False if neither takes the operands;
  /// `declined` (may be null) gets the reasons.
  Result<bool> EmitOnDevice(graph::NodeId id, std::string* declined);
  /// Devices on which the node may run instead.
  std::vector<DeviceId> OtherDevices(graph::NodeId id) const;
  /// Sets operands_.
  Status Gather(graph::NodeId id);
  Status GatherInputs(graph::NodeId id);
  /// The value of a constant on the host, else null. Valid until the tape gets another storage.
  const Tensor* ConstantAt(ValueId value) const;
  /// A handle as the op takes it: kernels of the host take the handle itself, others the variable.
  Result<ValueId> HandleOperand(graph::NodeId id, int input);
  /// True if the core's kernel for the host runs the node, since its device has none.
  bool RunsOnHost(graph::NodeId id) const;
  /// kDeclined: the kernel cannot run the node. kNotNow: it can be asked only when the step runs.
  enum class Prepared : uint8_t { kBound, kDeclined, kNotNow };
  Result<Prepared> TryPrepared(graph::NodeId id, const kernel::KernelEntry& entry, const weir_node& node,
                               std::string* declined);
  /// Emits a region of elementwise ops whose operands are known.
  Status EmitRegion(graph::NodeId id);
  Result<std::unique_ptr<kernel::PreparedKernel>> Prepare(const kernel::KernelEntry& entry, const weir_node& node,
                                                          device::Device& device, double ns) const;
  /// Emits the node by kernel number `bound.kernel` of the plan.
  Status Bind(graph::NodeId id, const BoundKernels::Bound& bound);
  /// Copies the inputs to where the kernel wants them.
  Status MoveInputs(graph::NodeId id, const weir_kernel& record);
  /// `kernel` (may be null): the outputs that are views of inputs.
  std::vector<ValueId> MakeOutputs(graph::NodeId id, const weir_kernel& record, Placing placing,
                                   const kernel::PreparedKernel* kernel);
  /// Of the variables among the inputs. `record` (may be null): those that the kernel writes.
  std::vector<Lock> LocksOf(const weir_kernel* record) const;

  EmitContext& c_;
  TapeBuilder& tape_;
  VariableEmitter& variables_;
  const std::map<const graph::Node*, const std::vector<const graph::Node*>*>& stands_for_;
  BoundKernels bound_;
  Operands operands_;
};

/// Ops that the core runs on every device: aliases become views, variables are bound to their resource.
class UniversalEmitter {
 public:
  UniversalEmitter(EmitContext& context, VariableEmitter& variables, KernelEmitter& kernels)
      : c_(context), tape_(context.tape), variables_(variables), kernels_(kernels) {}

  Status Emit(graph::NodeId id);

 private:
  Status EmitAlias(graph::NodeId id, int output);

  EmitContext& c_;
  TapeBuilder& tape_;
  VariableEmitter& variables_;
  KernelEmitter& kernels_;
};

/// Switch and Merge outside loops.
class CondEmitter {
 public:
  CondEmitter(EmitContext& context, VariableEmitter& variables)
      : c_(context), tape_(context.tape), variables_(variables) {}

  Status EmitSwitch(graph::NodeId id);
  Status EmitMerge(graph::NodeId id);

 private:
  /// The predicate of a Switch; the step checks that it is a scalar if the plan cannot know.
  Result<ValueId> Predicate(graph::NodeId id);
  /// Sets the guard of a Merge; if it is not a conjunction of predicates, while running.
  void SetGuardOf(graph::NodeId id, std::span<const GuardId> inputs);

  EmitContext& c_;
  TapeBuilder& tape_;
  VariableEmitter& variables_;
};

/// Loops: variables are moved or exchanged at the end of an iteration, and the tape jumps back.
class LoopEmitter {
 public:
  LoopEmitter(EmitContext& context, VariableEmitter& variables);

  Status Begin(FrameId frame);
  Status End(FrameId frame);
  Status EmitExit(graph::NodeId id);
  /// The outputs of an Exit are there when the loop has ended.
  void DeferExit(graph::NodeId id) { open_.back().exits.push_back(id); }
  bool IsLoopVariable(graph::NodeId merge) const;
  /// The exits of the loop that ended last, whose values are there now.
  std::vector<graph::NodeId> TakeExits() { return std::exchange(exits_, {}); }
  /// The values that count the iterations of the loops around a node, outermost first.
  std::vector<ValueId> Iterations(graph::NodeId id) const;
  /// Storages that are exchanged are of one kind. Call when the tape is complete.
  void MatchSwapped();

 private:
  /// A loop whose end has not come yet.
  struct OpenLoop {
    std::optional<uint32_t> skip;       // the jump over it
    uint32_t first = 0;                 // its first instruction
    StorageId first_storage;            // of those made inside
    IndexedVector<GuardId, bool> sets;  // guards that were set before
    std::vector<graph::NodeId> exits;
  };
  /// The next value of a loop variable.
  struct Carried {
    ValueId from, to;
    GuardId guard;
    graph::NodeId merge;
    bool may_swap;  // the new value may give its storage away
    bool swaps;     // the two exchange storages; else bytes are copied
  };

  bool Structured(FrameId frame) const { return c_.guards.structured[frame]; }
  const std::vector<graph::NodeId>& MergesOf(FrameId frame) const { return merges_of_[frame]; }
  Status BeginExits(FrameId frame);
  Status Enter(graph::NodeId merge);
  Result<ValueId> EnteringValue(graph::NodeId merge, size_t input);
  /// The value that a loop variable has in all iterations, when it first is `entering`.
  Result<ValueId> LoopVariable(graph::NodeId merge, ValueId entering);
  Status NotAlwaysVariable(graph::NodeId id) const;
  /// Moves the next values to the loop variables. `returns`: the guard of each variable in the next iteration.
  Status CarryVariables(FrameId frame, std::vector<GuardId>* returns);
  /// Adds the moves of one returning input of a loop's Merge, under the current guard.
  Status CarryBack(graph::NodeId merge, size_t input, std::vector<Carried>* moves);
  /// The guard of a variable with the NextIteration nodes of guards `alive`: one of them.
  GuardId EitherReturns(std::span<const GuardId> alive, graph::NodeId merge);
  /// Gives each loop variable the guard of its next value. `again`: whether one is live.
  void CarryGuards(FrameId frame, std::vector<GuardId> returns, GuardId again);
  /// Copies next values that other moves overwrite to memory of their own.
  Status SaveOverwritten(std::vector<Carried>* moves);
  void FindSwaps(std::vector<Carried>* moves);
  void EmitSwaps(std::span<const Carried> moves);
  void BeginCount(FrameId frame);
  void Count(FrameId frame);

  EmitContext& c_;
  TapeBuilder& tape_;
  VariableEmitter& variables_;
  IndexedVector<FrameId, std::vector<graph::NodeId>> merges_of_;  // by frame
  IndexedVector<FrameId, bool> counted_;        // by frame: transfers need the number of the iteration
  IndexedVector<FrameId, ValueId> iterations_;  // by frame: that number
  std::vector<OpenLoop> open_;
  std::vector<graph::NodeId> exits_;
};

/// Stacks that the plan keeps itself.
class StackEmitter {
 public:
  /// Decides which stacks of the step these are.
  explicit StackEmitter(EmitContext& context);

  /// True for ops on those stacks.
  bool Emits(graph::NodeId id) const { return numbers_.contains(id); }
  Status Emit(graph::NodeId id);

 private:
  EmitContext& c_;
  TapeBuilder& tape_;
  std::map<graph::NodeId, uint32_t> numbers_;  // by op: its stack
};

/// Values from and for other parts of a cut step.
class TransferEmitter {
 public:
  TransferEmitter(EmitContext& context, VariableEmitter& variables, const LoopEmitter& loops)
      : c_(context), tape_(context.tape), variables_(variables), loops_(loops) {}

  Status EmitSend(graph::NodeId id);
  Status EmitRecv(graph::NodeId id);

 private:
  Result<uint32_t> AddTransfer(graph::NodeId id, GuardId guard);

  EmitContext& c_;
  TapeBuilder& tape_;
  VariableEmitter& variables_;
  const LoopEmitter& loops_;
};

/// True if the step is one part of several: it has Send or Recv nodes.
bool IsPart(const graph::StepGraph& step);

/// The node names a variable.
bool NamesVariable(const graph::StepNode& node);

}  // namespace weir::plan

#endif  // WEIR_CORE_PLAN_EMITTERS_INTERNAL_H_
