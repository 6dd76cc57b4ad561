// A compiled step: one plan, one per part of a partitioned step, or parts in other processes.
#ifndef WEIR_CORE_SESSION_PROGRAM_H_
#define WEIR_CORE_SESSION_PROGRAM_H_

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "core/execute/parts_runner.h"
#include "core/execute/plan_runner.h"
#include "core/graph/part.h"
#include "core/session/tasks.h"
#include "core/trace/span.h"

namespace weir::session {

/// Thread-safe.
class Program {
 public:
  Program() = default;
  explicit Program(std::unique_ptr<execute::PlanRunner> whole) : whole_(std::move(whole)) {}
  /// `graphs`: those of the parts, to whose nodes the plans refer.
  Program(std::vector<std::unique_ptr<graph::Part>> graphs, std::vector<execute::PartsRunner::Part> parts)
      : graphs_(std::move(graphs)), parts_(std::make_unique<execute::PartsRunner>(std::move(parts))) {}
  explicit Program(std::unique_ptr<TaskProgram> away) : away_(std::move(away)) {}

  /// As PlanRunner::Run, PartsRunner::Run or TaskProgram::Run.
  Status Run(std::span<const Tensor> feeds, std::vector<Tensor>* fetches, const execute::StepArgs& step) const {
    if (away_ != nullptr) [[unlikely]]
      return away_->Run(feeds, fetches, step.cancellation, nullptr);
    return whole_ != nullptr ? whole_->Run(feeds, fetches, step) : parts_->Run(feeds, fetches, step);
  }
  /// As Run; `trace` gets the times of all ops, also if the run fails.
  Status RunTraced(std::span<const Tensor> feeds, std::vector<Tensor>* fetches, execute::StepArgs step,
                   trace::StepTrace* trace) const;

  /// The runner of the whole step; null for parts.
  execute::PlanRunner* whole() const { return whole_.get(); }
  /// The plan of the whole step, or of each part in this process.
  std::vector<const plan::ExecutionPlan*> plans() const;
  std::vector<execute::PlanRunner::Held> held() const ;
  /// Frees the memory cached for later runs; false if there was none.
  bool DropIdle() const;

 private:
  std::unique_ptr<execute::PlanRunner> whole_;
  std::vector<std::unique_ptr<graph::Part>> graphs_;
  std::unique_ptr<execute::PartsRunner> parts_;
  std::unique_ptr<TaskProgram> away_;
};

}  // namespace weir::session

#endif  // WEIR_CORE_SESSION_PROGRAM_H_
