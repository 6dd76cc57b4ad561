// A compiled step: one plan, or one per part of a partitioned step.
#ifndef WEIR_CORE_SESSION_PROGRAM_H_
#define WEIR_CORE_SESSION_PROGRAM_H_

#include <deque>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "core/execute/plan_runner.h"
#include "core/execute/tape_trace.h"
#include "core/graph/part.h"
#include "core/trace/span.h"

namespace weir::session {

/// Thread-safe.
class Program {
 public:
  /// A part with its plan.
  struct Piece {
    std::unique_ptr<graph::Part> part;  // the plan refers to its nodes
    std::vector<int> feeds, fetches;    // positions among those of the step
    std::unique_ptr<execute::PlanRunner> runner;
  };

  Program() = default;
  explicit Program(std::unique_ptr<execute::PlanRunner> whole) : whole_(std::move(whole)) {}
  explicit Program(std::vector<Piece> pieces);

  /// As PlanRunner::Run. Pieces run concurrently, each on its own thread, and meet in `step.rendezvous`, or, if that is
  /// null, in a rendezvous of this run. The first failing piece cancels the others; its error is returned.
  Status Run(std::span<const Tensor> feeds, std::vector<Tensor>* fetches, const execute::StepArgs& step) const {
    return whole_ != nullptr ? whole_->Run(feeds, fetches, step) : RunPieces(feeds, fetches, step, nullptr);
  }
  /// As Run; `trace` gets the times of all ops, also if the run fails.
  Status RunTraced(std::span<const Tensor> feeds, std::vector<Tensor>* fetches, execute::StepArgs step,
                   trace::StepTrace* trace) const;

  /// The runner of the whole step, or of each part.
  std::vector<execute::PlanRunner*> runners() const;

 private:
  using Traces = std::deque<execute::TapeTrace>;  // by piece
  /// `traces` may be null.
  Status RunPieces(std::span<const Tensor> feeds, std::vector<Tensor>* fetches, execute::StepArgs step,
                   Traces* traces) const;

  std::unique_ptr<execute::PlanRunner> whole_;
  std::vector<Piece> pieces_;
  size_t fetches_ = 0;  // of all pieces
};

}  // namespace weir::session

#endif  // WEIR_CORE_SESSION_PROGRAM_H_
