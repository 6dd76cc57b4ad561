// The commands for clusters: serve, launch, doctor, and profile attach.
#ifndef WEIR_TOOLS_WEIR_CLUSTER_COMMANDS_H_
#define WEIR_TOOLS_WEIR_CLUSTER_COMMANDS_H_

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/config/sources.h"
#include "tools/weir/console.h"

namespace CLI {
class App;
}

namespace weir::cli {

/// Exit statuses beside 0, 1 and 2: a fault that a restart may cure, and the end by a signal.
inline constexpr int kTryAgain = 75, kSignalled = 128;

/// 75 for faults of peers and of the network, else 1.
int StatusOfFailure(const Status& status);

struct ServeOptions {
  std::vector<std::string> sets;  // of the command's flags: "cluster.listen=…"
  config::Sources sources;
};
/// `weir serve`: a task of a cluster, until it is told to end. Sets the exit status.
Status Serve(const ServeOptions& options, const Console& console, int& exit_status);

struct LaunchOptions {
  std::string jobs = "worker=1";     // "ps=2,worker=2"
  std::string print;                 // a launcher, for which lines are printed instead
  std::vector<std::string> command;  // empty: `weir serve`
};
/// `weir launch`: the tasks of a cluster as processes of this machine; their lines with the task before them. Ends with
/// the first failure, or when all tasks but those of `ps` have ended. Sets the exit status.
Status LaunchCluster(const LaunchOptions& options, const Console& console, int& exit_status);
/// What users of a launcher write: slurm, mpirun, torchrun or kubernetes.
Result<std::string> LauncherText(const std::string& launcher, const LaunchOptions& options);

struct DoctorOptions {
  std::vector<std::string> sets;
  int limit_ms = 5000;  // for each task
  config::Sources sources;
};
/// `weir doctor`: reaches every task of a cluster, and every task from every other. FailedPrecondition with the number
/// of ways that do not work.
Status Doctor(const DoctorOptions& options, const Console& console, nlohmann::ordered_json& report);

struct AttachOptions {
  std::vector<std::string> sets;
  std::string address;           // of a server, host:port
  double seconds = 5;            // that steps are recorded
  std::string by = "op,device";  // as of `weir profile summary`
  std::string out;               // file for the trace; empty = none
  config::Sources sources;
};
/// `weir profile attach`: what ops a running server runs for a while, with times and memory, and what holds its memory.
Status AttachProfiler(const AttachOptions& options, const Console& console, nlohmann::ordered_json& report);

/// All options; they outlive the parser.
struct ClusterCommands {
  ServeOptions serve;
  LaunchOptions launch;
  DoctorOptions doctor;
  AttachOptions attach;
  int exit_status = 0;  // of a command that succeeded
};
/// Adds the commands to the parser, which has `profile` already. `choose` gets the one that was called.
void AddClusterCommands(
    CLI::App& app, ClusterCommands& options, const std::function<config::Sources()>& sources,
    const std::function<void(std::function<Status(const Console&, nlohmann::ordered_json&)>)>& choose);

}  // namespace weir::cli

#endif  // WEIR_TOOLS_WEIR_CLUSTER_COMMANDS_H_
