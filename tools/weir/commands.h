// The commands of `weir`. Each prints its answer for people, or fills `report` for --json; both never.
#ifndef WEIR_TOOLS_WEIR_COMMANDS_H_
#define WEIR_TOOLS_WEIR_COMMANDS_H_

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "core/config/sources.h"
#include "tools/weir/console.h"

namespace weir::cli {

using Json = nlohmann::ordered_json;

/// What of the configuration is odd but no error: lines for people, `notes` for --json.
void PrintNotes(const std::vector<std::string>& notes, const Console& console, Json& report);

/// `weir devices`: what plugins enumerate; no device is opened.
Status ShowDevices(const Console& console, Json& report);

struct PluginsOptions {
  bool why = false;
};
/// `weir plugins`: every file of the plugin folders with its verdict.
Status ShowPlugins(const PluginsOptions& options, const Console& console, Json& report);

struct CheckCommandOptions {
  std::string plugin;
  std::vector<std::string> stages;  // empty = all
  std::string junit;                // where a JUnit report goes; empty = nowhere
};
/// `weir check`: FailedPrecondition naming the rules that a plugin breaks.
Status CheckPlugin(const CheckCommandOptions& options, const Console& console, Json& report);

struct OpsOptions {
  std::string name;  // empty = all
  bool markdown = false;
};
/// `weir ops`: the catalogue with the kernels that the plugins bring.
Status ShowOps(const OpsOptions& options, const Console& console, Json& report);

struct ConfigShowOptions {
  config::Sources sources;
  bool effective = false;
};
/// `weir config show`: the keys that are set, or all keys and plugins' options, with where each value came from.
Status ShowConfig(const ConfigShowOptions& options, const Console& console, Json& report);
/// `weir config check`: whether a file is right, for the plugins and devices that are here.
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
  std::string metadata;
  bool check_numerics = false;
  int runs = 1;
  bool dump_command = false;
  std::vector<std::pair<std::string, std::string>> config_words;  // --config and --set with their values
};
/// `weir run`: feeds, runs and fetches of a graph file.
Status RunGraph(const RunCommandOptions& options, const Console& console, Json& report);

struct ExplainOptions {
  RunCommandOptions run;  // its graph, feeds, fetches, targets and device
  std::string algorithm;  // empty = the configuration's
  bool soft = true;
  std::vector<std::string> words;  // GRAPH, or memory GRAPH
  bool memory = false;
};
/// `weir explain`: where such a run would put each node, and why; or what it would need of each device's memory.
Status ExplainGraph(const ExplainOptions& options, const Console& console, Json& report);

/// `weir ckpt ls`: the tensors of a checkpoint, or the checkpoints of a folder, as their indexes say.
Status ListCheckpoint(const std::string& path, const Console& console, Json& report);
/// `weir ckpt verify`: the same with a verdict on each, for which everything is read. The first error of a checkpoint
/// that cannot be restored whole.
Status VerifyCheckpoint(const std::string& path, const Console& console, Json& report);

}  // namespace weir::cli

#endif  // WEIR_TOOLS_WEIR_COMMANDS_H_
