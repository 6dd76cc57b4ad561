// Shared by the sources that read launch conventions.
#ifndef WEIR_CORE_CLUSTER_LAUNCH_INTERNAL_H_
#define WEIR_CORE_CLUSTER_LAUNCH_INTERNAL_H_

#include <optional>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/cluster/launch.h"

namespace weir::cluster {

/// Variables of an environment, which outlives it.
class Variables {
 public:
  explicit Variables(const Environment& environment) : environment_(environment) {}
  /// Null if it is not set or empty.
  const std::string* Find(const std::string& name) const;
  /// A number that is not negative. InvalidArgument names the variable; also if it is not set and `otherwise` is empty.
  Result<int> Int(const std::string& name, std::optional<int> otherwise) const;

 private:
  const Environment& environment_;
};

/// The cluster of tasks at these addresses, in the same order.
Result<ClusterSpec> SpecOf(const std::vector<TaskName>& tasks, const std::vector<std::string>& addresses);

/// TensorFlow's variable, with a dense or a sparse cluster.
Result<Launch> FromTfConfig(const std::string& text);

}  // namespace weir::cluster

#endif  // WEIR_CORE_CLUSTER_LAUNCH_INTERNAL_H_
