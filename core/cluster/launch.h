// The cluster and the own task according to the program that started this process.
#ifndef WEIR_CORE_CLUSTER_LAUNCH_H_
#define WEIR_CORE_CLUSTER_LAUNCH_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "core/cluster/cluster_spec.h"

namespace weir::cluster {

using Environment = std::map<std::string, std::string>;
/// The environment of this process.
Environment EnvironmentOfProcess();

/// The jobs of ranks: "ps=2,worker=*" gives ranks 0 and 1 to ps and the others to worker.
class Roles {
 public:
  /// All ranks are workers.
  Roles() : jobs_{{"worker", kRest}} {}
  /// InvalidArgument for a repeated job, a count that is no number above 0, and a second '*'.
  static Result<Roles> Parse(std::string_view text);

  /// The tasks of `size` ranks, in order. InvalidArgument if the counts do not give that size.
  Result<std::vector<TaskName>> TasksOf(int size) const;
  /// The number of ranks, or nullopt if a role takes the rest.
  std::optional<int> size() const;

 private:
  static constexpr int kRest = -1;
  std::vector<std::pair<std::string, int>> jobs_;
};

struct Launch {
  /// What said it: "TF_CONFIG", "Slurm", "Open MPI", "PMI", "torchrun" or "Kubernetes".
  std::string source;
  /// Empty if only ranks are known: rank 0 then collects the addresses at `registry`.
  ClusterSpec cluster;
  /// The own task. An evaluator is not in the cluster.
  TaskName task;
  int rank = 0, size = 1, local_rank = 0;  // all 0, 1 and 0 for TF_CONFIG
  /// Where rank 0 listens for the addresses of the others; empty if the cluster is known, or if nothing says it.
  std::string registry;
  /// How often the launcher has restarted the job.
  int restarts = 0;

  /// One line: the source, the task and the cluster or the rank.
  std::string ToString() const;
};

/// The first launcher that has set its variables; nullopt if there is none. A launcher that another one started counts
/// before it: mpirun and torchrun within a job of Slurm. InvalidArgument names the variable whose value is malformed or
/// contradicts another.
Result<std::optional<Launch>> FindLaunch(const Environment& environment, const Roles& roles = {});

}  // namespace weir::cluster

#endif  // WEIR_CORE_CLUSTER_LAUNCH_H_
