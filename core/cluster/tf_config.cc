#include <charconv>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "core/base/errors.h"
#include "core/cluster/launch_internal.h"

namespace weir::cluster {
namespace {

using Json = nlohmann::json;
constexpr char kEvaluator[] = "evaluator";

Result<int> IndexFrom(const Json& value, const std::string& what) {
  if (value.is_number_integer() && value >= 0 && value <= INT32_MAX) return value.get<int>();
  if (value.is_string()) {
    const std::string& text = value.get_ref<const std::string&>();
    int number = -1;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error == std::errc() && end == text.data() + text.size() && number >= 0) return number;
  }
  return InvalidArgument("TF_CONFIG: {} is {}, wanted an index", what, value.dump());
}

/// Tasks as a list of addresses, or as an object from index to address.
Result<ClusterSpec::Tasks> TasksFrom(const std::string& job, const Json& value) {
  ClusterSpec::Tasks tasks;
  const auto add = [&](int index, const Json& address) -> Status {
    if (!address.is_string()) {
      return InvalidArgument("TF_CONFIG: the address of task {} of '{}' is {}, wanted \"host:port\"", index, job,
                             address.dump());
    }
    if (!tasks.emplace(index, address.get<std::string>()).second) {
      return InvalidArgument("TF_CONFIG: the job '{}' has two tasks {}", job, index);
    }
    return Status();
  };
  if (value.is_array()) {
    for (const Json& address : value) WEIR_TRY(add(static_cast<int>(tasks.size()), address));
    return tasks;
  }
  if (!value.is_object()) {
    return InvalidArgument("TF_CONFIG: the job '{}' is {}, wanted a list of addresses", job, value.dump());
  }
  for (const auto& [key, address] : value.items()) {
    WEIR_ASSIGN(const int index, IndexFrom(Json(key), "a task of '" + job + "'"));
    WEIR_TRY(add(index, address));
  }
  return tasks;
}

}  // namespace

Result<Launch> FromTfConfig(const std::string& text) {
  const Json config = Json::parse(text, nullptr, false);
  if (config.is_discarded() || !config.is_object()) return InvalidArgument("TF_CONFIG is no JSON object: {}", text);
  const char* const name = config.contains("sparseCluster") ? "sparseCluster" : "cluster";
  Launch launch;
  launch.source = "TF_CONFIG";
  std::map<std::string, ClusterSpec::Tasks> jobs;
  if (const auto cluster = config.find(name); cluster != config.end()) {
    if (!cluster->is_object()) {
      return InvalidArgument("TF_CONFIG: \"{}\" is {}, wanted an object", name, cluster->dump());
    }
    for (const auto& [job, tasks] : cluster->items()) {
      WEIR_ASSIGN(ClusterSpec::Tasks made, TasksFrom(job, tasks));
      if (job != kEvaluator) jobs.emplace(job, std::move(made));
    }
  }
  Result<ClusterSpec> made = ClusterSpec::Make(std::move(jobs));
  if (!made.ok()) return made.status().Prepend("TF_CONFIG: ");
  launch.cluster = std::move(*made);
  launch.task = {launch.cluster.empty() ? "worker" : launch.cluster.jobs().begin()->first, 0};
  const auto task = config.find("task");
  if (task == config.end()) {
    if (launch.cluster.tasks().size() > 1) return InvalidArgument("TF_CONFIG has a cluster, but no \"task\"");
    return launch;
  }
  if (!task->is_object()) return InvalidArgument("TF_CONFIG: \"task\" is {}, wanted an object", task->dump());
  const auto type = task->find("type");
  if (type != task->end()) {
    if (!type->is_string()) return InvalidArgument("TF_CONFIG: the task's \"type\" is {}, wanted a job", type->dump());
    launch.task.job = type->get<std::string>();
  }
  if (const auto index = task->find("index"); index != task->end()) {
    WEIR_ASSIGN(launch.task.index, IndexFrom(*index, "the task's \"index\""));
  }
  if (launch.task.job == kEvaluator || launch.cluster.empty()) return launch;
  const Result<TaskName> own = OwnTask(launch.cluster, launch.task.job, launch.task.index);
  if (!own.ok()) return InvalidArgument("TF_CONFIG: {}", own.status().message());
  return launch;
}

}  // namespace weir::cluster
