#include "core/session/program.h"

#include <deque>
#include <iterator>
#include <utility>

#include "core/execute/tape_trace.h"

namespace weir::session {

Status Program::RunTraced(std::span<const Tensor> feeds, std::vector<Tensor>* fetches, execute::StepArgs step,
                          trace::StepTrace* trace) const {
  if (away_ != nullptr) {
    Status status = away_->Run(feeds, fetches, step.cancellation, trace);
    trace->step_id = step.step_id;
    return status;
  }
  if (whole_ != nullptr) {
    execute::TapeTrace tape;
    step.trace = &tape;
    Status status = whole_->Run(feeds, fetches, step);
    *trace = tape.Finish(whole_->plan(), step.step_id);
    return status;
  }
  const std::vector<const plan::ExecutionPlan*> plans = parts_->plans();
  std::deque<execute::TapeTrace> traces;
  for (size_t p = 0; p < plans.size(); ++p) p == 0 ? traces.emplace_back() : traces.emplace_back(traces.front());
  Status status = parts_->Run(feeds, fetches, step, &traces);
  *trace = traces.front().Finish(*plans.front(), step.step_id);
  for (size_t p = 1; p < plans.size(); ++p) {
    trace::StepTrace part = traces[p].Finish(*plans[p], step.step_id);
    std::ranges::move(part.spans, std::back_inserter(trace->spans));
  }
  return status;
}

std::vector<const plan::ExecutionPlan*> Program::plans() const {
  if (whole_ != nullptr) return {&whole_->plan()};
  return parts_ != nullptr ? parts_->plans() : std::vector<const plan::ExecutionPlan*>();
}

std::vector<execute::PlanRunner::Held> Program::held() const {
  if (whole_ != nullptr) return whole_->held();
  return parts_ != nullptr ? parts_->held() : std::vector<execute::PlanRunner::Held>();
}

bool Program::DropIdle() const {
  if (whole_ != nullptr) return whole_->DropIdle();
  return parts_ != nullptr && parts_->DropIdle();
}

}  // namespace weir::session
