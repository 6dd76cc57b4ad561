// The commands of `weir`. Each prints text, or fills `report` for --json; never both.
#ifndef WEIR_TOOLS_WEIR_COMMANDS_H_
#define WEIR_TOOLS_WEIR_COMMANDS_H_

#include <nlohmann/json_fwd.hpp>

#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "core/config/sources.h"
#include "tools/weir/console.h"

namespace weir::cli {

using Json = nlohmann::ordered_json;

/// Configuration notes that are not errors: printed as lines, or stored as `notes` for --json.
void PrintNotes(const std::vector<std::string>& notes, const Console& console, Json& report);

/// `weir devices`: the devices that plugins enumerate; opens no device.
Status ShowDevices(const Console& console, Json& report);

struct PluginsOptions {
  bool why = false;
};
/// `weir plugins`: every file of the plugin folders with its verdict.
Status ShowPlugins(const PluginsOptions& options, const Console& console, Json& report);

struct CheckCommandOptions {
  std::string plugin;
  std::vector<std::string> stages;  // empty = all
  std::string cases;                // folder of op cases; empty = the installed one
  std::string json, junit;          // files for reports; empty = none
  int time_limit_s = 120;           // for each stage
  bool rules = false;               // list the rules instead
  config::Sources sources;
};
/// `weir check`: FailedPrecondition naming the rules that a plugin breaks.
Status CheckPlugin(const CheckCommandOptions& options, const Console& console, Json& report);

struct OpsOptions {
  std::string name;  // empty = all
  bool markdown = false;
};
/// `weir ops`: the catalogue with the plugins' kernels.
Status ShowOps(const OpsOptions& options, const Console& console, Json& report);

struct ConfigShowOptions {
  config::Sources sources;
  bool effective = false;
};
/// `weir config show`: the keys that are set, or all keys and plugin options, with the source of each value.
Status ShowConfig(const ConfigShowOptions& options, const Console& console, Json& report);
/// `weir config check`: checks a file against the installed plugins and devices.
Status CheckConfig(const std::string& file, const Console& console, Json& report);

struct RunCommandOptions {
  std::string graph;
  std::vector<std::string> feeds;  // NAME=FILE.npy or NAME=LITERAL
  std::vector<std::string> fetches;
  std::vector<std::string> targets;
  std::vector<std::string> inits;
  std::string out_dir;
  std::string device;
  std::string trace;
  std::vector<int64_t> trace_schedule;  // skip, wait, warmup, active, repeat; missing ones as in TracerOptions
  double trace_limit_mb = 0;            // 0 = none
  std::string metadata;
  bool check_numerics = false;
  int runs = 1;
  bool dump_command = false;
  std::vector<std::pair<std::string, std::string>> config_words;  // --config and --set with their values
};
/// `weir run`: feeds, runs and fetches of a graph file.
Status RunGraph(const RunCommandOptions& options, const Console& console, Json& report);

/// `weir model show`: the inputs that the fetches and targets need, the outputs, and a `weir run` with zeros.
Status ShowModel(const RunCommandOptions& options, const Console& console, Json& report);

struct ExplainOptions {
  RunCommandOptions run;  // its graph, feeds, fetches, targets and device
  std::string algorithm;  // empty = the configured one
  bool soft = true;
  std::vector<std::string> words;  // GRAPH, or memory, graph, plan or passes GRAPH
  std::string what;                // the word before GRAPH; empty = the placement
  std::string html;                // file for a page; empty = none
  int measure = 0;                 // runs whose times are shown beside the prediction; 0 = nothing runs
};
/// `weir explain`: the device of each node in such a run, with reasons; or the memory it needs on each device; or the
/// step or its plan as text.
Status ExplainGraph(const ExplainOptions& options, const Console& console, Json& report);

struct DotOptions {
  RunCommandOptions run;  // its graph; with colours by device also feeds, fetches, targets and device
  std::string color;      // one of DotColors; empty = the variable WEIR_DOT_COLOR, else none
  std::string out;        // file; empty = standard output
};
/// `weir graph dot`: the graph for Graphviz.
Status GraphAsDot(const DotOptions& options, const Console& console, Json& report);
const std::vector<std::string>& DotColors();

/// `weir bench`: times of many runs, and where the time of a run goes.
struct BenchOptions {
  RunCommandOptions run;
  int warmup = 5;  // runs that are not measured
};
Status BenchGraph(const BenchOptions& options, const Console& console, Json& report);

struct ProfileOptions {
  std::vector<std::string> files;
  std::string by = "op,device";  // of summary: op, device, op,device, kernel or node
  std::string out;               // of merge, record and calibrate
  double seconds = 18;           // of calibrate: no point is begun later
  RunCommandOptions run;         // of record
};
/// `weir profile record`: runs a graph, and adds the times of its kernels and transfers to the files that
/// `placement.profile = "auto"` finds, one for each kind of device, or to `out`.
Status RecordProfile(const ProfileOptions& options, const Console& console, Json& report);
/// `weir profile clear`: removes the files that `placement.profile = "auto"` finds for the devices here.
Status ClearProfiles(const ProfileOptions& options, const Console& console, Json& report);
/// `weir profile calibrate`: times the kernels of the CPU and writes the file that `placement.profile = "auto"` finds,
/// or `out`.
Status CalibrateProfile(const ProfileOptions& options, const Console& console, Json& report);
/// `weir profile show`: the points of a file of measured times, with the fastest kernel.
Status ShowProfile(const ProfileOptions& options, const Console& console, Json& report);
/// `weir profile merge`: writes the points of all files to `out`; of equal points, the times of later files count.
/// InvalidArgument for files of different machines.
Status MergeProfiles(const ProfileOptions& options, const Console& console, Json& report);
/// `weir profile summary`: the spans of a trace by op and device, by kernel or by node, most time first.
Status SummarizeProfile(const ProfileOptions& options, const Console& console, Json& report);
/// The same of the text of a trace; `what` names it in errors.
Status SummarizeTrace(const std::string& trace, const std::string& by, const std::string& what, const Console& console,
                      Json& report);
/// `weir profile diff`: the times of two files side by side.
Status DiffProfiles(const ProfileOptions& options, const Console& console, Json& report);

struct CkptOptions {
  std::vector<std::string> paths;  // prefixes, or folders of checkpoints, whose newest one counts except for ls, verify
  std::vector<std::string> tensors;  // of show; empty = all
  std::vector<std::string> exclude;  // regular expressions: tensors with a match in their name are left out
};
/// `weir ckpt ls`: the tensors of a checkpoint, or the checkpoints of a folder, according to their indexes.
Status ListCheckpoint(const CkptOptions& options, const Console& console, Json& report);
/// `weir ckpt verify`: the same, with a verdict on each after reading all data. Returns the first error of a checkpoint
/// that cannot be restored completely.
Status VerifyCheckpoint(const CkptOptions& options, const Console& console, Json& report);
/// `weir ckpt show`: values of tensors. NotFound for a name that the checkpoint lacks.
Status ShowCheckpoint(const CkptOptions& options, const Console& console, Json& report);
/// `weir ckpt stats`: how many numbers there are, their range, mean and deviation, NaN and infinities.
Status CheckpointStats(const CkptOptions& options, const Console& console, Json& report);
/// `weir ckpt diff`: tensors of only one of two checkpoints, of another type or shape, or with other values.
/// FailedPrecondition if there are any.
Status DiffCheckpoints(const CkptOptions& options, const Console& console, Json& report);

/// The names that `exclude` leaves. InvalidArgument for a text that is no regular expression.
class NameFilter {
 public:
  static Result<NameFilter> Make(const std::vector<std::string>& exclude);
  bool Keeps(const std::string& name) const;

 private:
  friend struct NoValue<NameFilter>;
  NameFilter() = default;
  std::vector<std::regex> exclude_;
};

}  // namespace weir::cli

#endif  // WEIR_TOOLS_WEIR_COMMANDS_H_
