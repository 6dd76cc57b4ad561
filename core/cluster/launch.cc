#include "core/cluster/launch.h"

#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <limits>
#include <utility>

#include "core/base/errors.h"
#include "core/cluster/launch_internal.h"
#include "core/cluster/nodelist.h"

namespace weir::cluster {
namespace {

constexpr int kMostTasks = static_cast<int>(kMostNodes);
/// Ports above those that Linux gives to clients; jobs of one machine rarely meet there.
constexpr int kFirstPort = 61440, kLastPort = 65535;
constexpr int kTaskPort = 2222;

}  // namespace

const std::string* Variables::Find(const std::string& name) const {
  const auto found = environment_.find(name);
  return found == environment_.end() || found->second.empty() ? nullptr : &found->second;
}

Result<int> Variables::Int(const std::string& name, std::optional<int> otherwise) const {
  const std::string* const text = Find(name);
  if (text == nullptr) {
    if (otherwise) return *otherwise;
    return InvalidArgument("the variable {} is not set", name);
  }
  int value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc() || end != text->data() + text->size() || value < 0) {
    return InvalidArgument("{}='{}' is no number from 0 to {}", name, *text, std::numeric_limits<int>::max());
  }
  return value;
}

Result<ClusterSpec> SpecOf(const std::vector<TaskName>& tasks, const std::vector<std::string>& addresses) {
  std::map<std::string, ClusterSpec::Tasks> jobs;
  for (size_t i = 0; i < tasks.size(); ++i) jobs[tasks[i].job].emplace(tasks[i].index, addresses[i]);
  return ClusterSpec::Make(std::move(jobs));
}

namespace {

/// A task by its rank. The cluster is left to the caller.
Result<Launch> Ranked(const char* source, const Variables& variables, const Roles& roles, const std::string& rank_name,
                      const std::string& size_name) {
  Launch launch;
  launch.source = source;
  WEIR_ASSIGN(launch.rank, variables.Int(rank_name, std::nullopt));
  WEIR_ASSIGN(launch.size, variables.Int(size_name, std::nullopt));
  if (launch.size < 1 || launch.size > kMostTasks || launch.rank >= launch.size) {
    return InvalidArgument("{}={} and {}={} contradict each other or exceed {} tasks", rank_name, launch.rank,
                           size_name, launch.size, kMostTasks);
  }
  WEIR_ASSIGN(const std::vector<TaskName> tasks, roles.TasksOf(launch.size));
  launch.task = tasks[static_cast<size_t>(launch.rank)];
  return launch;
}

/// A port for tasks of this job, with room for `local` tasks above it.
int PortOfJob(uint64_t job, int local) {
  const int room = std::max(kLastPort - kFirstPort + 1 - local, 1);
  return kFirstPort + static_cast<int>(job % static_cast<uint64_t>(room));
}

/// FNV-1a: stable across machines.
uint64_t HashOf(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

Result<Launch> FromSlurm(const Variables& variables, const Roles& roles) {
  const char* const tasks_name = variables.Find("SLURM_STEP_NUM_TASKS") ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS";
  WEIR_ASSIGN(Launch launch, Ranked("Slurm", variables, roles, "SLURM_PROCID", tasks_name));
  WEIR_ASSIGN(launch.local_rank, variables.Int("SLURM_LOCALID", 0));
  WEIR_ASSIGN(launch.restarts, variables.Int("SLURM_RESTART_COUNT", 0));
  const std::string* const nodes = variables.Find("SLURM_STEP_NODELIST");
  const char* const list_name = nodes != nullptr ? "SLURM_STEP_NODELIST" : "SLURM_JOB_NODELIST";
  const std::string* const list = nodes != nullptr ? nodes : variables.Find(list_name);
  if (list == nullptr) return InvalidArgument("Slurm set SLURM_PROCID but no SLURM_STEP_NODELIST");
  WEIR_ASSIGN(const std::vector<std::string> names, ExpandNodeList(*list));
  const bool of_step = variables.Find("SLURM_STEP_TASKS_PER_NODE") != nullptr;
  const char* const counts_name = of_step ? "SLURM_STEP_TASKS_PER_NODE" : "SLURM_TASKS_PER_NODE";
  const std::string* const per_node = variables.Find(counts_name);
  if (per_node == nullptr) return InvalidArgument("Slurm set no SLURM_STEP_TASKS_PER_NODE");
  WEIR_ASSIGN(const std::vector<int> counts, ExpandCounts(*per_node));
  if (counts.size() != names.size()) {
    return InvalidArgument("{}='{}' has {} nodes, {}='{}' has counts for {}", list_name, *list, names.size(),
                           counts_name, *per_node, counts.size());
  }
  WEIR_ASSIGN(const int job, variables.Int("SLURM_JOB_ID", 0));
  std::vector<std::string> addresses;
  int own_node = -1, own_local = -1;
  const int base = PortOfJob(static_cast<uint64_t>(job), launch.size);
  for (size_t n = 0; n < names.size(); ++n) {
    for (int local = 0; local < counts[n] && static_cast<int>(addresses.size()) < launch.size; ++local) {
      if (static_cast<int>(addresses.size()) == launch.rank) {
        own_node = static_cast<int>(n);
        own_local = local;
      }
      addresses.push_back(fmt::format("{}:{}", names[n], base + local));
    }
  }
  if (static_cast<int>(addresses.size()) != launch.size) {
    return InvalidArgument("{}='{}' gives {} tasks, {} says {}", counts_name, *per_node, addresses.size(), tasks_name,
                           launch.size);
  }
  WEIR_ASSIGN(const int node, variables.Int("SLURM_NODEID", own_node));
  if (node != own_node || launch.local_rank != own_local) {
    return InvalidArgument(
        "SLURM_PROCID={} is task {} of node {}, but would be task {} of node {} if tasks were packed; start them with "
        "srun --distribution=block",
        launch.rank, launch.local_rank, node, own_local, own_node);
  }
  WEIR_ASSIGN(const std::vector<TaskName> tasks, roles.TasksOf(launch.size));
  WEIR_ASSIGN(launch.cluster, SpecOf(tasks, addresses));
  return launch;
}

/// The first host in "123.0;tcp://10.0.0.1,192.168.1.2:41234".
std::string HostOfUri(std::string_view uri) {
  const size_t scheme = uri.find("tcp://");
  if (scheme == std::string_view::npos) return {};
  const std::string_view hosts = uri.substr(scheme + 6);
  return std::string(hosts.substr(0, hosts.find_first_of(",:;")));
}

Result<Launch> FromOpenMpi(const Variables& variables, const Roles& roles) {
  WEIR_ASSIGN(Launch launch, Ranked("Open MPI", variables, roles, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"));
  WEIR_ASSIGN(launch.local_rank, variables.Int("OMPI_COMM_WORLD_LOCAL_RANK", 0));
  WEIR_ASSIGN(const int local, variables.Int("OMPI_COMM_WORLD_LOCAL_SIZE", launch.size));
  const std::string* const uri = variables.Find("OMPI_MCA_orte_hnp_uri");
  const std::string host = local == launch.size ? "127.0.0.1" : uri == nullptr ? std::string() : HostOfUri(*uri);
  const std::string* const job = variables.Find("OMPI_MCA_ess_base_jobid");
  if (!host.empty()) {
    launch.registry = fmt::format("{}:{}", host, PortOfJob(HashOf(job == nullptr ? "" : *job), 1));
  }
  return launch;
}

Result<Launch> FromPmi(const Variables& variables, const Roles& roles) {
  WEIR_ASSIGN(Launch launch, Ranked("PMI", variables, roles, "PMI_RANK", "PMI_SIZE"));
  WEIR_ASSIGN(launch.local_rank, variables.Int("MPI_LOCALRANKID", 0));
  return launch;
}

Result<Launch> FromTorchrun(const Variables& variables, const Roles& roles) {
  WEIR_ASSIGN(Launch launch, Ranked("torchrun", variables, roles, "RANK", "WORLD_SIZE"));
  WEIR_ASSIGN(launch.local_rank, variables.Int("LOCAL_RANK", 0));
  WEIR_ASSIGN(launch.restarts, variables.Int("TORCHELASTIC_RESTART_COUNT", 0));
  WEIR_ASSIGN(int port, variables.Int("MASTER_PORT", std::nullopt));
  // The agents of torchrun listen at the port themselves.
  const std::string* const agents = variables.Find("TORCHELASTIC_USE_AGENT_STORE");
  if (agents != nullptr && *agents == "True") ++port;
  const std::string host = *variables.Find("MASTER_ADDR");
  launch.registry = fmt::format("{}:{}", host, port);
  if (host.find(':') != std::string::npos) launch.registry = fmt::format("[{}]:{}", host, port);
  if (const Status status = ParseAddress(launch.registry).status(); !status.ok()) {
    return status.Prepend("MASTER_ADDR and MASTER_PORT: ");
  }
  return launch;
}

Result<Launch> FromKubernetes(const Variables& variables, const Roles& roles) {
  const std::string& pod = *variables.Find("HOSTNAME");
  WEIR_ASSIGN(const int index, variables.Int("JOB_COMPLETION_INDEX", std::nullopt));
  const std::string tail = fmt::format("-{}", index);
  if (!pod.ends_with(tail)) {
    return InvalidArgument("HOSTNAME='{}' does not end in JOB_COMPLETION_INDEX={}", pod, index);
  }
  const std::optional<int> size = roles.size();
  if (!size) {
    return InvalidArgument("a Kubernetes Job does not say how many pods it has: give every role a count, as ps=1,"
                           "worker=3");
  }
  if (index >= *size) return InvalidArgument("JOB_COMPLETION_INDEX={}, but the roles have {} tasks", index, *size);
  WEIR_ASSIGN(const std::vector<TaskName> tasks, roles.TasksOf(*size));
  Launch launch;
  launch.source = "Kubernetes";
  launch.rank = index;
  launch.size = *size;
  launch.task = tasks[static_cast<size_t>(index)];
  const std::string job = pod.substr(0, pod.size() - tail.size());
  const std::string* const set = variables.Find("JOBSET_NAME");
  std::vector<std::string> addresses;
  for (int i = 0; i < *size; ++i) {
    addresses.push_back(fmt::format("{}-{}.{}:{}", job, i, set == nullptr ? job : *set, kTaskPort));
  }
  WEIR_ASSIGN(launch.cluster, SpecOf(tasks, addresses));
  return launch;
}

/// Some launcher, the variables that show it, and how it is read. Those that another one may have started stand before
/// it.
struct Convention {
  std::vector<const char*> variables;
  Result<Launch> (*read)(const Variables&, const Roles&);
};

const std::vector<Convention>& Conventions() {
  static const std::vector<Convention> all = {
      {{"TF_CONFIG"}, [](const Variables& given, const Roles&) { return FromTfConfig(*given.Find("TF_CONFIG")); }},
      {{"TORCHELASTIC_RUN_ID", "RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}, FromTorchrun},
      {{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"}, FromOpenMpi},
      {{"SLURM_PROCID", "SLURM_STEP_ID"}, FromSlurm},  // a shell in an allocation is no step
      {{"PMI_RANK", "PMI_SIZE"}, FromPmi},
      {{"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}, FromTorchrun},
      {{"JOB_COMPLETION_INDEX", "HOSTNAME"}, FromKubernetes},
  };
  return all;
}

}  // namespace

Environment EnvironmentOfProcess() {
  Environment environment;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const size_t sign = text.find('=');
    if (sign != std::string_view::npos) environment.emplace(text.substr(0, sign), text.substr(sign + 1));
  }
  return environment;
}

Result<Roles> Roles::Parse(std::string_view text) {
  Roles roles;
  roles.jobs_.clear();
  bool rest_taken = false;
  std::string_view rest = text;
  do {
    const std::string_view entry = rest.substr(0, rest.find(','));
    rest = entry.size() == rest.size() ? std::string_view() : rest.substr(entry.size() + 1);
    const size_t sign = entry.find('=');
    if (sign == std::string_view::npos || sign == 0) {
      return InvalidArgument("'{}' in the roles '{}' is no role: wanted JOB=2 or JOB=*", entry, text);
    }
    const std::string job(entry.substr(0, sign));
    const std::string_view count = entry.substr(sign + 1);
    for (const auto& [other, tasks] : roles.jobs_) {
      if (other == job) return InvalidArgument("the roles '{}' have the job '{}' twice", text, job);
    }
    int number = kRest;
    if (count != "*") {
      const auto [end, error] = std::from_chars(count.data(), count.data() + count.size(), number);
      if (error != std::errc() || end != count.data() + count.size() || number < 1 || number > kMostTasks) {
        return InvalidArgument("'{}' in the roles '{}' is no number of tasks", count, text);
      }
    } else if (std::exchange(rest_taken, true)) {
      return InvalidArgument("two roles in '{}' take the rest", text);
    }
    roles.jobs_.emplace_back(job, number);
  } while (!rest.empty());
  return roles;
}

std::optional<int> Roles::size() const {
  int all = 0;
  for (const auto& [job, count] : jobs_) {
    if (count == kRest) return std::nullopt;
    all += count;
  }
  return all;
}

Result<std::vector<TaskName>> Roles::TasksOf(int size) const {
  int fixed = 0;
  bool rest = false;
  for (const auto& [job, count] : jobs_) {
    rest |= count == kRest;
    fixed += count == kRest ? 0 : count;
  }
  if (rest ? fixed > size : fixed != size) {
    return InvalidArgument("the roles have {}{} tasks, the job has {}", rest ? "at least " : "", fixed, size);
  }
  std::vector<TaskName> tasks;
  for (const auto& [job, count] : jobs_) {
    const int many = count == kRest ? size - fixed : count;
    for (int i = 0; i < many; ++i) tasks.push_back({job, i});
  }
  return tasks;
}

std::string Launch::ToString() const {
  if (!cluster.empty()) return fmt::format("{}: {} of {}", source, task.ToString(), cluster.ToString());
  return fmt::format("{}: {}, rank {} of {}{}{}", source, task.ToString(), rank, size,
                     registry.empty() ? "" : ", registry at ", registry);
}

Result<std::optional<Launch>> FindLaunch(const Environment& environment, const Roles& roles) {
  const Variables variables(environment);
  for (const Convention& convention : Conventions()) {
    bool all = true;
    for (const char* const name : convention.variables) all = all && variables.Find(name) != nullptr;
    if (!all) continue;
    WEIR_ASSIGN(Launch launch, convention.read(variables, roles));
    return std::optional<Launch>(std::move(launch));
  }
  return std::optional<Launch>();
}

}  // namespace weir::cluster
