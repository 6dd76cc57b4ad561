// A cluster of two tasks: the master's in this process, the other one a process of `weir serve`.
#ifndef WEIR_TESTS_E2E_SERVED_CLUSTER_H_
#define WEIR_TESTS_E2E_SERVED_CLUSTER_H_

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/cluster/server.h"
#include "tests/e2e/server_process.h"
#include "tests/support/wired_cluster.h"

namespace weir::testing {

class ServedCluster {
 public:
  /// Two tasks of one job, with the indices 0 and 1.
  explicit ServedCluster(const std::vector<cluster::TaskName>& tasks) : own_({tasks.front()}), far_(tasks.back()) {
    const WiredCluster::Task& here = own_.task(tasks.front());
    const std::string spec = far_.job + "=" + here.listener->address() + ";127.0.0.1:0";
    process_ = std::make_unique<ServerProcess>(std::vector<std::string>{
        WEIR_COMMAND, "serve", "--cluster", spec, "--job", far_.job, "--task", std::to_string(far_.index)});
    const std::string target = process_->ReadPast(" at ");
    const std::string address = target.substr(target.find("//") + 2);
    auto worker = SocketTransport()->ConnectWorker(far_, address, here.self);
    auto master = SocketTransport()->ConnectMaster(address, here.self);
    EXPECT_TRUE(worker.ok() && master.ok()) << worker.status().ToString() << master.status().ToString();
    if (!worker.ok() || !master.ok()) return;
    here.workers->Add(*worker);
    far_master_ = *master;
  }

  Result<cluster::ClusterSession> Prepare(const cluster::MasterOptions& master = {}) const {
    return own_.Prepare(master);
  }
  cluster::LocalWorker::Counts CountsOf(const cluster::TaskName& task) {
    if (task != far_) return own_.worker(task).counts();
    const auto view = cluster::AskServer(*far_master_, {}, cluster::Clock::now() + std::chrono::minutes(2));
    EXPECT_TRUE(view.ok()) << view.status().ToString();
    return view->counts;
  }

 private:
  WiredCluster own_;
  const cluster::TaskName far_;
  std::unique_ptr<ServerProcess> process_;
  std::shared_ptr<cluster::MasterService> far_master_;
};

}  // namespace weir::testing

#endif  // WEIR_TESTS_E2E_SERVED_CLUSTER_H_
