#include "core/cluster/cluster_spec.h"

#include <fmt/format.h>

#include <charconv>
#include <utility>

#include "core/base/errors.h"
#include "core/base/nearest.h"
#include "core/device/device_name.h"
#include "core/proto/parse.h"
#include "weir/proto/cluster.pb.h"

namespace weir::cluster {
namespace {

constexpr int kMostPort = 65535;
constexpr std::string_view kUnix = "unix:";
constexpr size_t kLongestPath = 107;  // of sockaddr_un, without the zero behind it

bool IsJobName(std::string_view name) {
  const Result<device::DeviceName> parsed = device::ParseDeviceName(fmt::format("/job:{}/task:0", name));
  return parsed.ok() && parsed->job == name;
}

std::string JobList(const std::map<std::string, ClusterSpec::Tasks>& jobs) {
  if (jobs.empty()) return "; the cluster has no jobs";
  std::string text = "; the jobs of the cluster are ";
  bool first = true;
  for (const auto& [name, tasks] : jobs) {
    text += fmt::format("{}'{}'", first ? "" : ", ", name);
    first = false;
  }
  return text;
}

std::string TaskList(const ClusterSpec::Tasks& tasks) {
  std::string text = "; its tasks are ";
  bool first = true;
  for (const auto& [index, address] : tasks) {
    text += fmt::format("{}{}", first ? "" : ", ", index);
    first = false;
  }
  return text;
}

}  // namespace

std::string TaskName::ToString() const { return fmt::format("/job:{}/replica:0/task:{}", job, index); }

Result<TaskName> TaskOfDevice(std::string_view device) {
  WEIR_ASSIGN(const device::DeviceName name, device::ParseDeviceName(device));
  if (!name.job || !name.task) return InvalidArgument("the device '{}' names no job and task", device);
  if (name.replica.value_or(0) != 0) return InvalidArgument("the device '{}' is of another replica than 0", device);
  return TaskName{*name.job, *name.task};
}

std::string Address::ToString() const {
  return host.find(':') == std::string::npos ? fmt::format("{}:{}", host, port) : fmt::format("[{}]:{}", host, port);
}

Result<Address> ParseAddress(std::string_view text) {
  Address address;
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return InvalidArgument("'{}' is no address: wanted host:port", text);
  std::string_view host = text.substr(0, colon);
  const std::string_view port = text.substr(colon + 1);
  int number = -1;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), number);
  if (error != std::errc() || end != port.data() + port.size() || number < 0 || number > kMostPort) {
    return InvalidArgument("'{}' is no address: the port '{}' is no number from 0 to {}", text, port, kMostPort);
  }
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return InvalidArgument("'{}' is no address: an IPv6 host stands in brackets, as [::1]:2222", text);
  }
  if (host.empty()) return InvalidArgument("'{}' is no address: it has no host", text);
  for (const char c : host) {
    if (c <= ' ' || c == '/' || c == '[' || c == ']' || c == 127) {
      return InvalidArgument("'{}' is no address: the host '{}' has a character that no host has", text, host);
    }
  }
  address.host = std::string(host);
  address.port = static_cast<uint16_t>(number);
  return address;
}

Status CheckTaskAddress(std::string_view text) {
  if (!text.starts_with(kUnix)) return ParseAddress(text).status();
  const std::string_view path = text.substr(kUnix.size());
  if (!path.starts_with('/')) return InvalidArgument("'{}' is no address: wanted an absolute path, unix:/path", text);
  if (path.size() > kLongestPath) {
    return InvalidArgument("'{}' is no address: the path of a Unix socket has {} bytes, at most {}", text, path.size(),
                           kLongestPath);
  }
  for (const char c : path) {
    if (static_cast<unsigned char>(c) < ' ' || c == 127) {
      return InvalidArgument("'{}' is no address: the path has a control character", text);
    }
  }
  return {};
}

Result<ClusterSpec> ClusterSpec::Make(std::map<std::string, Tasks> jobs) {
  std::map<std::string, TaskName> at;
  for (const auto& [job, tasks] : jobs) {
    if (!IsJobName(job)) {
      return InvalidArgument("'{}' is no name of a job: wanted a letter, then letters, digits and underscores", job);
    }
    for (const auto& [index, address] : tasks) {
      if (index < 0) return InvalidArgument("the job '{}' has a task with the index {}", job, index);
      if (const Status status = CheckTaskAddress(address); !status.ok()) {
        return status.Prepend(fmt::format("task {} of the job '{}': ", index, job));
      }
      const auto [other, fresh] = at.emplace(address, TaskName{job, index});
      if (fresh || (address.ends_with(":0") && !address.starts_with(kUnix))) continue;
      return InvalidArgument("{} and {} have the same address {}", other->second.ToString(),
                             TaskName{job, index}.ToString(), address);
    }
  }
  ClusterSpec made;
  made.jobs_ = std::move(jobs);
  return made;
}

Result<ClusterSpec> ClusterSpec::Make(const std::map<std::string, std::vector<std::string>>& jobs) {
  std::map<std::string, Tasks> numbered;
  for (const auto& [job, addresses] : jobs) {
    Tasks& tasks = numbered[job];
    for (const std::string& address : addresses) tasks.emplace(static_cast<int>(tasks.size()), address);
  }
  return Make(std::move(numbered));
}

Result<ClusterSpec> ClusterSpec::Parse(std::string_view cluster_def) {
  tf::ClusterDef message;
  WEIR_TRY(proto::ParseEither(cluster_def, "ClusterDef", message));
  std::map<std::string, Tasks> jobs;
  for (const tf::JobDef& job : message.job()) {
    const auto [made, fresh] = jobs.emplace(job.name(), Tasks());
    if (!fresh) return InvalidArgument("the ClusterDef has two jobs '{}'", job.name());
    for (const auto& [index, address] : job.tasks()) made->second.emplace(index, address);
  }
  return Make(std::move(jobs));
}

Result<ClusterSpec> ClusterSpec::ParseFlag(std::string_view text) {
  std::map<std::string, std::vector<std::string>> jobs;
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::string_view entry = rest.substr(0, rest.find(','));
    rest = entry.size() == rest.size() ? std::string_view() : rest.substr(entry.size() + 1);
    const size_t sign = entry.find('=');
    if (sign == std::string_view::npos || sign == 0) {
      return InvalidArgument("'{}' describes no job: wanted JOB=host:port;host:port", entry);
    }
    const auto [job, fresh] = jobs.emplace(std::string(entry.substr(0, sign)), std::vector<std::string>());
    if (!fresh) return InvalidArgument("'{}' has two jobs '{}'", text, job->first);
    std::string_view addresses = entry.substr(sign + 1);
    while (!addresses.empty()) {
      const std::string_view address = addresses.substr(0, addresses.find(';'));
      addresses = address.size() == addresses.size() ? std::string_view() : addresses.substr(address.size() + 1);
      job->second.emplace_back(address);
    }
  }
  if (jobs.empty()) return InvalidArgument("'{}' names no job: wanted JOB=host:port;host:port,JOB=…", text);
  return Make(jobs);
}

Result<std::string> ClusterSpec::ToClusterDef() const {
  tf::ClusterDef message;
  for (const auto& [name, tasks] : jobs_) {
    tf::JobDef& job = *message.add_job();
    job.set_name(name);
    for (const auto& [index, address] : tasks) (*job.mutable_tasks())[index] = address;
  }
  return proto::Serialize(message, "ClusterDef");
}

std::vector<TaskName> ClusterSpec::tasks() const {
  std::vector<TaskName> all;
  for (const auto& [job, tasks] : jobs_) {
    for (const auto& [index, address] : tasks) all.push_back({job, index});
  }
  return all;
}

Result<const ClusterSpec::Tasks*> ClusterSpec::Find(const std::string& job) const {
  const auto found = jobs_.find(job);
  if (found == jobs_.end()) return InvalidArgument("No such job in cluster: '{}'{}", job, JobList(jobs_));
  return &found->second;
}

Result<int> ClusterSpec::NumTasks(const std::string& job) const {
  WEIR_ASSIGN(const Tasks* const tasks, Find(job));
  return static_cast<int>(tasks->size());
}

Result<std::vector<int>> ClusterSpec::TaskIndices(const std::string& job) const {
  WEIR_ASSIGN(const Tasks* const tasks, Find(job));
  std::vector<int> indices;
  for (const auto& [index, address] : *tasks) indices.push_back(index);
  return indices;
}

Result<std::string> ClusterSpec::TaskAddress(const std::string& job, int index) const {
  WEIR_ASSIGN(const Tasks* const tasks, Find(job));
  const auto found = tasks->find(index);
  if (found == tasks->end()) {
    return InvalidArgument("No task with index {} in job '{}'{}", index, job, TaskList(*tasks));
  }
  return found->second;
}

Result<std::vector<std::string>> ClusterSpec::JobTasks(const std::string& job) const {
  constexpr int kMost = 1 << 20;
  WEIR_ASSIGN(const Tasks* const tasks, Find(job));
  std::vector<std::string> addresses;
  if (tasks->empty()) return addresses;
  const int last = tasks->rbegin()->first;
  if (last >= kMost) return ResourceExhausted("the job '{}' has a task {}: a list of so many is too long", job, last);
  addresses.resize(static_cast<size_t>(last) + 1);
  for (const auto& [index, address] : *tasks) addresses[static_cast<size_t>(index)] = address;
  return addresses;
}

std::string ClusterSpec::ToString() const {
  std::string text;
  for (const auto& [job, tasks] : jobs_) {
    text += fmt::format("{}{}: ", text.empty() ? "" : "; ", job);
    const bool dense = tasks.empty() || tasks.rbegin()->first == static_cast<int>(tasks.size()) - 1;
    bool first = true;
    for (const auto& [index, address] : tasks) {
      text += first ? "" : ", ";
      text += dense ? address : fmt::format("{}: {}", index, address);
      first = false;
    }
  }
  return text;
}

Result<TaskName> OwnTask(const ClusterSpec& cluster, const std::optional<std::string>& job, std::optional<int> index) {
  TaskName own;
  if (job) {
    own.job = *job;
  } else {
    if (cluster.jobs().size() != 1) {
      return InvalidArgument("Must specify an explicit `job_name`.{}", JobList(cluster.jobs()));
    }
    own.job = cluster.jobs().begin()->first;
  }
  const auto found = cluster.jobs().find(own.job);
  if (found == cluster.jobs().end()) {
    std::vector<std::string_view> names;
    for (const auto& [name, tasks] : cluster.jobs()) names.push_back(name);
    return Internal("Job \"{}\" was not defined in cluster{}{}", own.job, JobList(cluster.jobs()),
                    NearestHint(own.job, names));
  }
  if (!index && found->second.size() != 1) {
    return InvalidArgument("Must specify an explicit `task_index`.{}", TaskList(found->second));
  }
  own.index = index ? *index : found->second.begin()->first;
  if (!found->second.contains(own.index)) {
    return Internal("Task {} was not defined in job \"{}\"{}", own.index, own.job, TaskList(found->second));
  }
  return own;
}

}  // namespace weir::cluster
