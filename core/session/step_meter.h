// Times of a step's nodes and transfers from traces of its runs.
#ifndef WEIR_CORE_SESSION_STEP_METER_H_
#define WEIR_CORE_SESSION_STEP_METER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/kernel/measured.h"
#include "core/session/compile.h"
#include "core/session/measurement.h"
#include "core/trace/span.h"

namespace weir::session {

/// The time of a fused op is divided among the nodes that it stands for, in proportion to their predicted times.
/// Of kernels and copies on streams only times that the device took count (Span::on_device), not those of enqueueing.
/// Not thread-safe.
class StepMeter {
 public:
  static Result<StepMeter> Make(const CompileContext& context, const graph::Definition& graph,
                                const graph::StepRequest& request);

  /// Adds a traced run, and, if it is known, the time of a run without trace.
  void Add(const trace::StepTrace& trace, int64_t untraced_ns = 0);

  /// The devices of the step's nodes, by name.
  std::map<std::string, std::string> devices() const;
  size_t runs() const { return step_ns_.size(); }
  /// The times of all runs added, on their devices.
  kernel::MeasuredCosts Costs(const Runtime& runtime) const;
  /// The median of each node on its device, and of the step.
  StepMeasurement Medians() const;

 private:
  friend struct NoValue<StepMeter>;
  StepMeter() = default;

  /// A node of the placed step.
  struct Part {
    std::string key;  // MeasuredKey; empty if the times of its kernel are not kept
    std::string name;
    std::string device;  // full name
    double declared_ns = 0;
  };
  std::map<std::string, std::vector<Part>, std::less<>> parts_of_;  // by node of the compiled step
  std::map<std::string, std::string> fingerprints_;                 // by full device name
  std::map<std::string, std::string> short_names_;
  std::set<std::string> with_streams_;  // full names of devices
  std::string host_;                    // the full name of the host's device
  kernel::MeasuredCosts costs_;
  std::map<std::string, std::vector<double>> node_ns_;
  std::vector<double> step_ns_;
  std::vector<double> gap_ns_;  // by run: time between ops
  int64_t predicted_ns_ = 0;
};

/// Calls `run` once, then `runs` times without and with a trace, in turn. InvalidArgument for less than one.
Result<StepMeasurement> MeasureRuns(StepMeter meter, const Runtime& runtime, int runs,
                                    const std::function<Status(trace::StepTrace*)>& run);

}  // namespace weir::session

#endif  // WEIR_CORE_SESSION_STEP_METER_H_
