// The command line of the trainer.
#ifndef WEIR_TOOLS_EXAMPLES_CLUSTER_FLAGS_H_
#define WEIR_TOOLS_EXAMPLES_CLUSTER_FLAGS_H_

#include <string>
#include <vector>

#include "core/base/status.h"

namespace weir::trainer {

struct Flags {
  std::vector<std::string> ps_hosts, worker_hosts;  // "host:port"
  std::string job_name;                             // "ps" or "worker"
  int task_index = 0;
  int steps = 1000;   // of all workers together
  bool sync = false;  // one update for as many gradients as there are workers
};

/// "--name=value" in any order. InvalidArgument names a flag that is unknown, malformed or missing.
Result<Flags> ParseFlags(const std::vector<std::string>& words);

}  // namespace weir::trainer

#endif  // WEIR_TOOLS_EXAMPLES_CLUSTER_FLAGS_H_
