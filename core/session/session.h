// Session: runs subgraphs of a graph and keeps variables between runs.
#ifndef WEIR_CORE_SESSION_SESSION_H_
#define WEIR_CORE_SESSION_SESSION_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "core/config/config.h"
#include "core/graph/definition.h"
#include "core/place/explanation.h"
#include "core/runtime/cancellation.h"
#include "core/runtime/resource.h"
#include "core/session/call.h"
#include "core/session/measurement.h"
#include "core/session/memory_report.h"
#include "core/session/reports.h"
#include "core/session/run_options.h"
#include "core/session/runtime.h"
#include "core/tensor/tensor.h"

namespace weir::place {
struct PlaceOptions;
}  // namespace weir::place
namespace weir::runtime {
class NodeResources;
}  // namespace weir::runtime

namespace weir::session {

class Tasks;

/// kAuto: where the declared gain of many runs repays the compilation. kOn: all regions that a compiler claims.
enum class CompileRegions : uint8_t { kOff, kAuto, kOn };

struct SessionOptions {
  bool allow_soft_placement = true;
  /// Logs "name: (Op): device" once for every node that runs need, and again if a later plan moves it. Fed and folded
  /// nodes are logged with their requested device, or the host's.
  bool log_device_placement = false;
  /// Receives these lines, the one-line summary of every plan and the placer's warnings, in calls with whole lines.
  /// Empty: they go to standard error, each summary once.
  std::function<void(const std::string& lines)> placement_log = {};
  /// A file to which the same lines are appended and flushed, instead of standard error; empty = none.
  std::string placement_log_file = {};
  /// Algorithm, pins and other options; null = defaults. The two options above and `default_device` take precedence.
  std::shared_ptr<const place::PlaceOptions> placement = {};
  /// A placement's file (core/session/plan_file.h): a candidate, or with `plan_decides` requests of nodes without one.
  std::string plan_file = {};
  bool plan_decides = false;
  /// Reports on placements: none, a line for each plan, or every node with the cost of each device.
  enum class Explain : uint8_t { kNone, kSummary, kAll };
  Explain explain = Explain::kSummary;
  /// A file to which these reports are appended and flushed, instead of where the other lines go; empty = none.
  std::string explain_file = {};
  /// Runs of a step after which it is measured and placed again, by the measured times; also after twice, four times …
  /// as many. 0 = never. The new placement is used if it is predicted to take less by a share of at least `min_gain`.
  int64_t replace_period = 0;
  double min_gain = 0.05;
  /// Placing again may choose other devices for variables, which then move there.
  bool replace_moves_state = false;
  /// Float values cross between devices as their upper 16 bits. Implies `cut_between_devices`.
  bool bfloat16_transfers = false;
  /// After partitioning, checks that each node is on its placed device.
  bool verify_placement = true;
  /// Makes each device a separate part with transfers between them, which is slower than one plan for all devices.
  bool cut_between_devices = false;
  /// Runs nodes, receives among them, as late as their users allow: less memory, but less runs at the same time.
  bool late_scheduling = false;
  /// Device of nodes without a request, such as "GPU:0"; empty = the placer's choice.
  std::string default_device = {};
  bool constant_folding = true;
  bool common_subexpressions = true;
  /// Replaces several ops by a fused op if a device has a kernel for it (core/fuse).
  bool fusion = true;
  /// Whether compilers of plugins take regions of ops when a plan is made; never without fusion. Results may then
  /// differ from those of the ops in the last places, and from those of a plan that is cut otherwise, so that it is
  /// off until a configuration, whose default is kAuto, asks for it.
  CompileRegions compile_regions = CompileRegions::kOff;
  /// Time limit of a compilation.
  int64_t compile_limit_ms = 10000;
  /// Compiled regions are kept in the user's cache folder.
  bool keep_compiled_regions = true;
  /// Ops of one step that may run concurrently; 0 = the number of CPUs of the process; below 0 = one, on the caller's
  /// thread.
  int inter_op_parallelism_threads = 0;
  /// Threads that one op may use; 0 or less = the number of CPUs of the process.
  int intra_op_parallelism_threads = 0;
  /// All runs of a program give the same bits: random ops need seeds, and nondeterministic kernels decline.
  bool deterministic = false;
  /// Time limit of runs that specify none; 0 or less = none.
  int64_t operation_timeout_in_ms = 0;
  /// Time limit for ops and devices to finish after a step was cancelled. The step then returns without them; memory
  /// that they use is kept, and a device other than the host counts as lost.
  int64_t cancel_limit_ms = 2000;
  /// A calibration file (core/kernel/calibration.h) used to choose kernels; empty = declared costs; "auto" = the one
  /// that the runtime found in the user's cache folder, unless the session is deterministic.
  std::string profile_file = {};
  /// Results larger than this and larger than their operands are not folded.
  uint64_t max_folded_bytes = 10u << 20;
  /// Combinations of fed shapes per signature that get an exact plan. Others share a slower one (signature.h).
  int exact_plans = 4;
  /// The scope of variables; null = a scope owned by this session.
  std::shared_ptr<runtime::ResourceScope> resources = {};
  /// What kernels keep between steps, by node; null = owned by this session.
  std::shared_ptr<runtime::NodeResources> node_resources = {};
  /// The tasks of a cluster that run the steps, cut at their borders; null = this process. The runtime has the devices
  /// of all tasks.
  std::shared_ptr<Tasks> tasks = {};
};

/// The devices visible to sessions of the runtime; does not open them.
std::vector<DeviceAttributes> ListDevices(const Runtime& runtime);

/// The stage shown by Session::ExplainStage.
enum class Stage : uint8_t { kGraph, kPlan, kPasses };

/// Thread-safe: runs may be concurrent. The graph is borrowed and may grow between runs (detected by its number of
/// nodes), but must not change during a run.
class Session {
 public:
  /// FailedPrecondition, naming the folders searched, if there is no device.
  static Result<std::unique_ptr<Session>> Make(std::shared_ptr<Runtime> runtime, const graph::Definition& graph,
                                               SessionOptions options = {});
  ~Session();

  /// Runs the nodes that `fetches` ("name:0", "name") and `targets` need. Fetched tensors are on the host, in order,
  /// and outlive the session; later runs do not change them. A fetched feed or constant is a copy of that tensor
  /// (core/tensor/tensor.h). Errors have TensorFlow's codes and texts and name the node.
  Result<std::vector<Tensor>> Run(std::span<const Feed> feeds, std::span<const std::string> fetches,
                                  std::span<const std::string> targets, const RunOptions& options = {},
                                  RunReport* report = nullptr);

  /// As Run, with a handle that avoids name look-ups.
  Result<CallableHandle> MakeCallable(const CallableOptions& options);
  /// `feeds` are in the callable's order; `fetches` is overwritten.
  Status RunCallable(CallableHandle handle, std::span<const Tensor> feeds, std::vector<Tensor>* fetches,
                     const RunOptions& options = {}, RunReport* report = nullptr);
  /// Calls in progress continue.
  Status ReleaseCallable(CallableHandle handle);

  /// Sets up a partial run, in which every op runs at most once over all parts. Returns a handle that contains feeds,
  /// fetches and targets. ResourceExhausted if 1024 such runs are in progress.
  Result<std::string> PRunSetup(std::span<const std::string> feeds, std::span<const std::string> fetches,
                                std::span<const std::string> targets);
  /// Runs the next part: everything that the feeds given so far allow. InvalidArgument with TensorFlow's texts for
  /// feeds and fetches that are not in the setup, are repeated or cannot be computed yet, and for feeds of another type
  /// or shape. The run ends when everything was fed and fetched, or on any other error. `options` are of this part;
  /// nothing is reported.
  Result<std::vector<Tensor>> PRun(const std::string& handle, std::span<const Feed> feeds,
                                   std::span<const std::string> fetches, const RunOptions& options = {});

  /// Later runs fail with Cancelled "Session has been closed."; runs in progress are cancelled but not waited for.
  /// Plans, and variables unless SessionOptions::resources is set, are freed with the last run. Repeated calls have no
  /// effect.
  Status Close();
  /// As in TensorFlow, clears the named containers (default: "localhost") in all sessions of this process and closes
  /// these sessions. Unimplemented for a `target` other than "" and "local".
  static Status Reset(const std::string& target = {}, const std::vector<std::string>& containers = {});
  /// The device of each node in such a run, with the reason and all candidates; runs nothing.
  Result<place::Explanation> ExplainPlacement(std::span<const Feed> feeds, std::span<const std::string> fetches,
                                              std::span<const std::string> targets);
  /// The result of compiling such a run as text: the placed step (graph::ToString), its plan (plan::ToString), or what
  /// each pass of the stages left, for those that changed it. Runs nothing.
  Result<std::string> ExplainStage(Stage stage, std::span<const Feed> feeds, std::span<const std::string> fetches,
                                   std::span<const std::string> targets);
  /// Runs the step `runs` times after a first one that does not count, each run once with and once without a trace: its
  /// updates happen as in any run. InvalidArgument for less than one run.
  Result<StepMeasurement> MeasureStep(std::span<const Feed> feeds, std::span<const std::string> fetches,
                                      std::span<const std::string> targets, int runs);
  /// The devices of all nodes that this session has run, each from the latest plan with the node.
  Placement ReportPlacement() const;
  /// The devices of the runtime; does not open them.
  std::vector<DeviceAttributes> ListDevices() const;
  DeviceReport ReportDevices() const;
  /// The memory that this session holds on each device, and the memory left there.
  MemoryReport ReportMemory() const;
  const std::shared_ptr<runtime::ResourceScope>& resources() const;

 private:
  class Impl;
  explicit Session(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace weir::session

#endif  // WEIR_CORE_SESSION_SESSION_H_
