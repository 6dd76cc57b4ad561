// The loops that gradients of loops run in.
#ifndef WEIR_CORE_CLIENT_GRADIENTS_LOOP_GRADIENT_INTERNAL_H_
#define WEIR_CORE_CLIENT_GRADIENTS_LOOP_GRADIENT_INTERNAL_H_

#include <memory>
#include <string_view>
#include <vector>

#include "core/client/control_flow/control_flow_internal.h"
#include "core/client/graph/graph_internal.h"

namespace weir {

/// The gradient loop of one forward loop: it runs as many iterations, from the last to the first. A counter is added to
/// the forward loop for that. A forward value that the gradient uses is pushed on a stack in each forward iteration and
/// popped in each gradient iteration; invariants of the forward loop and constants are used as they are.
/// The nodes that order pushes and pops are added last, by Finish. Single-threaded.
/// Source: Yu et al., Dynamic Control Flow in Large-Scale Machine Learning (EuroSys 2018), section 5.1.
class LoopGradient final : public LoopHistory {
 public:
  /// Adds the counters. `around`: of the loop around the forward loop, null when that one is not gone back through.
  /// `home`: the context that gradients were asked for in; stacks are made there.
  static Result<std::unique_ptr<LoopGradient>> Make(Graph& graph, WhileContext& forward, LoopGradient* around,
                                                    ControlFlowContext* home, const Where& where);
  ~LoopGradient() override { context_->SetHistory(nullptr); }
  LoopGradient(const LoopGradient&) = delete;
  LoopGradient& operator=(const LoopGradient&) = delete;

  WhileContext& context() const { return *context_; }
  const WhileContext& forward() const override { return forward_; }
  Result<graph::Endpoint> Recall(graph::Endpoint value) override;

  /// A variable of the gradient loop that begins with `initial`.
  struct Carried {
    Output merge;
    Output value;  // in an iteration
    Output last;   // when there is no further one
  };
  /// `shape`: in every iteration. The Enter and the Merge are named `enter` and `merge`.
  Result<Carried> Carry(const Output& initial, const PartialShape& shape, std::string_view enter,
                        std::string_view merge);
  /// Gives the variable its value in the next iteration. Called in the gradient loop.
  Status Close(const Carried& carried, const Output& next);
  /// The variable after the last iteration.
  Result<Output> Leave(const Carried& carried, std::string_view name);

  /// The sum of `gradient`, a value of the gradient loop, over all iterations. `invariant`: what it is a gradient of,
  /// as it is outside of the forward loop; a handle stands for its variable.
  Result<Output> Accumulate(const Output& invariant, const Output& gradient);
  /// Rows of all iterations one after the other, those of the last iteration first. Of `rows` all extents but the first
  /// are known.
  Result<Output> AccumulateRows(const Output& rows);

  /// Closes the counters' loops behind all pushes and pops.
  Status Finish();

 private:
  LoopGradient(Graph& graph, WhileContext& forward, LoopGradient* around, ControlFlowContext* home, const Where& where)
      : graph_(graph),
        flow_(Internals(graph).control_flow),
        forward_(forward),
        around_(around),
        home_(home),
        where_(where) {}

  Status CountForward();
  Status CountBack();
  Result<Output> EnterAndMerge(WhileContext& loop, const Output& initial, const PartialShape& shape,
                               std::string_view enter, std::string_view merge);
  Result<Output> Push(const Output& value);
  Result<graph::Endpoint> Pop(const Output& stack, const Output& value);
  /// `index` in the next iteration, which begins after `before` and, dead or alive, after `sync`.
  Status CloseCounter(WhileContext& loop, const Output& merge, const Output& index, std::vector<Operation> before,
                      const std::vector<Operation>& sync, std::string_view sync_name);

  Graph& graph_;
  ControlFlow& flow_;
  WhileContext& forward_;
  LoopGradient* around_;
  ControlFlowContext* home_;
  Where where_;
  WhileContext* context_ = nullptr;
  Output forward_merge_, forward_index_, trips_;
  Output merge_, index_;
  std::vector<Operation> pushes_;
  std::vector<Operation> guarded_pushes_;  // in conds: dead in some iterations
  std::vector<Operation> pops_;            // and the ends of gradient loops within this one
};

/// Whether nodes are being made in a gradient loop.
bool InGradientLoop(const ControlFlow& flow);

/// Zeros of the shape of a forward value, or of the variable behind a handle, and of its type `dtype`, in the current
/// context. A gradient loop recalls no more than the shape.
Result<Output> ZerosLikeForward(const Output& value, DType dtype, const Where& where);

/// What a shape query (Shape, Size, Rank) says of a forward value, for use in a gradient loop: a constant where it is
/// known, else a node beside the value, so that the answer is kept and not the value.
Result<Output> QueryForward(std::string_view op, const Output& value, DType out_type, const Where& where);

}  // namespace weir

#endif  // WEIR_CORE_CLIENT_GRADIENTS_LOOP_GRADIENT_INTERNAL_H_
