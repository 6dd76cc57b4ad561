// Placing a step again by the times of its runs.
#ifndef WEIR_CORE_SESSION_REPLACING_H_
#define WEIR_CORE_SESSION_REPLACING_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "core/base/status.h"
#include "core/session/compile.h"
#include "core/session/step_meter.h"

namespace weir::session {

/// Counts the runs of a plan and measures some. Thread-safe.
struct Replacing {
  /// Runs that are measured before each placement.
  static constexpr int64_t kMeasured = 4;

  /// `period`: runs until the first placement, at least 1; the later ones follow after twice, four times … as many.
  static Result<std::shared_ptr<Replacing>> Make(const CompileContext& context, const graph::Definition& graph,
                                                 const graph::StepRequest& request, int64_t period);

  /// The number of a run that begins, from 1.
  int64_t Begin() { return runs.fetch_add(1, std::memory_order_relaxed) + 1; }
  /// True for the last runs before a placement. The first run of a plan is never measured.
  bool Measures(int64_t run) const;
  /// Adds a measured run. True if the step is now to be placed again.
  bool Add(int64_t run, const trace::StepTrace& trace);

  std::atomic<int64_t> runs{0};
  std::atomic<int64_t> next{0};  // the run after which the step is placed again
  std::mutex mutex;              // protects meter
  StepMeter meter;

 private:
  explicit Replacing(StepMeter made) : meter(std::move(made)) {}
};

/// What placing a step again found.
struct NewPlacement {
  int64_t old_ns = 0;  // predicted with measured times
  int64_t new_ns = 0;
  std::map<graph::NodeId, int> moves;  // state with its new device
};

/// Places the step by measured times, with `devices` (node name -> device) as one of the plans, and compares. With
/// `move_state`, state that consists of variables may go elsewhere if that is what makes it worth. nullopt if the gain
/// is less than `min_gain`.
Result<std::optional<NewPlacement>> PlaceAgain(const CompileContext& context, const graph::Definition& graph,
                                               const graph::StepRequest& request,
                                               const std::map<std::string, std::string>& devices, double min_gain,
                                               bool move_state);

/// A line about it: "run 8: placed again, predicted 1.2 ms/step instead of 3.1 ms; measured 3 ms, predicted before
/// 1 ms".
std::string ReplaceText(int64_t run, const StepMeasurement& took, const Result<std::optional<NewPlacement>>& found);

/// Moves the values of variables to other devices, and their entries in `context.places`. No run may be in progress.
Status MoveState(const CompileContext& context, const graph::Definition& graph,
                 const std::map<graph::NodeId, int>& moves);

}  // namespace weir::session

#endif  // WEIR_CORE_SESSION_REPLACING_H_
