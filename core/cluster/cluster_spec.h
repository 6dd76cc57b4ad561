// The jobs of a cluster and the addresses of their tasks.
#ifndef WEIR_CORE_CLUSTER_CLUSTER_SPEC_H_
#define WEIR_CORE_CLUSTER_CLUSTER_SPEC_H_

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"

namespace weir::cluster {

/// One process of a job.
struct TaskName {
  std::string job;
  int index = 0;
  auto operator<=>(const TaskName&) const = default;
  /// "/job:ps/replica:0/task:1"
  std::string ToString() const;
};

/// The task of a full or partial device name. InvalidArgument if the name has no job or no task, or another replica
/// than 0.
Result<TaskName> TaskOfDevice(std::string_view device);

/// "host:port"; an IPv6 host stands in brackets.
struct Address {
  std::string host;
  uint16_t port = 0;
  std::string ToString() const;
};
/// InvalidArgument names the fault. Port 0 means that the system chooses.
Result<Address> ParseAddress(std::string_view text);

/// Where a task listens: "host:port", or "unix:/path" for a socket of this machine. InvalidArgument names the fault:
/// also for a path that is not absolute, longer than sockets' can be, or has control characters.
Status CheckTaskAddress(std::string_view text);

/// Immutable. Job names and indices are those of TensorFlow's ClusterSpec; an index may be missing.
class ClusterSpec {
 public:
  /// By index.
  using Tasks = std::map<int, std::string>;

  ClusterSpec() = default;
  /// InvalidArgument for a job name that device names cannot hold, a negative index, an address that CheckTaskAddress
  /// refuses, and an address of two tasks (unless its port is 0).
  static Result<ClusterSpec> Make(std::map<std::string, Tasks> jobs);
  /// Tasks are numbered from 0.
  static Result<ClusterSpec> Make(const std::map<std::string, std::vector<std::string>>& jobs);
  /// A ClusterDef, serialized or in text format.
  static Result<ClusterSpec> Parse(std::string_view cluster_def);
  /// "ps=h1:1;h2:1,worker=h3:1": jobs separated by commas, tasks by semicolons.
  static Result<ClusterSpec> ParseFlag(std::string_view text);
  /// A serialized ClusterDef with sorted entries.
  Result<std::string> ToClusterDef() const;

  bool empty() const { return jobs_.empty(); }
  const std::map<std::string, Tasks>& jobs() const { return jobs_; }
  /// Sorted by job, then by index.
  std::vector<TaskName> tasks() const;
  /// InvalidArgument "No such job in cluster: 'x'", with the jobs that exist, here and below.
  Result<int> NumTasks(const std::string& job) const;
  Result<std::vector<int>> TaskIndices(const std::string& job) const;
  /// InvalidArgument "No task with index 5 in job 'ps'".
  Result<std::string> TaskAddress(const std::string& job, int index) const;
  /// Addresses by index; empty for an index that is missing.
  Result<std::vector<std::string>> JobTasks(const std::string& job) const;
  /// "ps: h1:1, h2:1; worker: 0: h3:1, 3: h4:1"
  std::string ToString() const;
  bool operator==(const ClusterSpec&) const = default;

 private:
  Result<const Tasks*> Find(const std::string& job) const;
  std::map<std::string, Tasks> jobs_;
};

/// The task that a server of the cluster is. Without a job the only one, without an index the only task of the job.
/// Errors have TensorFlow's codes and texts: InvalidArgument "Must specify an explicit `job_name`.", Internal "Job
/// \"local\" was not defined in cluster" and "Task 7 was not defined in job \"ps\"", followed by what exists.
Result<TaskName> OwnTask(const ClusterSpec& cluster, const std::optional<std::string>& job, std::optional<int> index);

}  // namespace weir::cluster

#endif  // WEIR_CORE_CLUSTER_CLUSTER_SPEC_H_
