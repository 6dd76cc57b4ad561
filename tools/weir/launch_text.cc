// What users of launchers write.
#include <fmt/format.h>

#include "core/base/errors.h"
#include "core/cluster/launch.h"
#include "tools/weir/cluster_commands.h"

namespace weir::cli {
namespace {

constexpr char kKubernetes[] = R"(# One Indexed Job per job of the cluster, behind a headless service; port 2222.
apiVersion: v1
kind: Service
metadata: {{name: weir}}
spec: {{clusterIP: None, publishNotReadyAddresses: true, selector: {{app: weir}}, ports: [{{port: 2222}}]}}
---
apiVersion: batch/v1
kind: Job
metadata: {{name: weir}}
spec:
  completions: {0}
  parallelism: {0}
  completionMode: Indexed
  template:
    metadata: {{labels: {{app: weir}}}}
    spec:
      subdomain: weir
      restartPolicy: Never
      containers:
      - name: task
        image: IMAGE
        command: [{1}]
        env: [{{name: WEIR_CLUSTER_ROLES, value: "{2}"}}]
        ports: [{{containerPort: 2222}}]
)";

}  // namespace

Result<std::string> LauncherText(const std::string& launcher, const LaunchOptions& options) {
  WEIR_ASSIGN(const cluster::Roles roles, cluster::Roles::Parse(options.jobs));
  const int size = roles.size().value_or(0);
  if (size < 1) return InvalidArgument("--jobs '{}': wanted a number for each job", options.jobs);
  const std::vector<std::string> serve = {"weir", "serve"};
  const std::vector<std::string>& command = options.command.empty() ? serve : options.command;
  const std::string line = fmt::format("{}", fmt::join(command, " "));
  if (launcher == "slurm") {
    return fmt::format(
        "#!/bin/sh\n#SBATCH --ntasks={}\n# 75 and 128 + n: a restart may cure it.\nexport WEIR_CLUSTER_ROLES='{}'\n"
        "srun --kill-on-bad-exit=1 {}",
        size, options.jobs, line);
  }
  if (launcher == "mpirun") {
    return fmt::format("# Rank 0 collects the addresses.\nmpirun -np {} -x WEIR_CLUSTER_ROLES='{}' {}", size,
                       options.jobs, line);
  }
  if (launcher == "torchrun") {
    return fmt::format(
        "# Rank 0 collects the addresses, at the port after torchrun's own. On several machines as torchrun\n"
        "# wants it: --nnodes, --rdzv-backend=c10d, --rdzv-endpoint; --max-restarts restarts all ranks.\n"
        "WEIR_CLUSTER_ROLES='{}' torchrun --no-python --standalone --nproc-per-node={} {}",
        options.jobs, size, line);
  }
  if (launcher == "kubernetes") {
    return fmt::format(kKubernetes, size, fmt::format("\"{}\"", fmt::join(command, "\", \"")), options.jobs);
  }
  return InvalidArgument("no launcher '{}': slurm, mpirun, torchrun or kubernetes", launcher);
}

}  // namespace weir::cli
