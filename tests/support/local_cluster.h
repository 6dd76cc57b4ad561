// A cluster whose tasks are all in this process, each with devices, variables and plans of its own.
#ifndef WEIR_TESTS_SUPPORT_LOCAL_CLUSTER_H_
#define WEIR_TESTS_SUPPORT_LOCAL_CLUSTER_H_

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/cluster/local_worker.h"
#include "core/cluster/master.h"
#include "core/session/options.h"
#include "tests/support/test_device.h"

namespace weir::testing {

/// The runtime of a task, with one CPU; loaded once.
inline std::shared_ptr<session::Runtime> RuntimeOf(const cluster::TaskName& task) {
  static std::map<cluster::TaskName, std::shared_ptr<session::Runtime>> loaded;
  std::shared_ptr<session::Runtime>& runtime = loaded[task];
  if (runtime != nullptr) return runtime;
  config::Config config;
  config.plugins.isa = TestIsa();
  plugin::LoadOptions options = session::LoadOptionsFrom(config);
  options.job = task.job;
  options.task = task.index;
  Result<std::shared_ptr<session::Runtime>> made = session::Runtime::Load(options);
  EXPECT_TRUE(made.ok()) << made.status().ToString();
  if (made.ok()) runtime = std::move(*made);
  return runtime;
}

class LocalCluster {
 public:
  explicit LocalCluster(const std::vector<cluster::TaskName>& tasks) : first_(tasks.front()) {
    for (const cluster::TaskName& task : tasks) Start(task);
  }
  ~LocalCluster() {
    for (const auto& [task, worker] : own_) worker->Close();
  }
  LocalCluster(const LocalCluster&) = delete;
  LocalCluster& operator=(const LocalCluster&) = delete;

  /// Also replaces a task by another incarnation.
  void Start(const cluster::TaskName& task) {
    auto made = cluster::LocalWorker::Make({task, RuntimeOf(task), workers_});
    ASSERT_TRUE(made.ok()) << made.status().ToString();
    if (own_.contains(task)) own_[task]->Close();
    own_[task] = *made;
    workers_->Add(*made);
  }
  cluster::LocalWorker& worker(const cluster::TaskName& task) { return *own_.at(task); }
  cluster::LocalWorker::Counts CountsOf(const cluster::TaskName& task) { return worker(task).counts(); }
  const std::shared_ptr<cluster::Workers>& workers() const { return workers_; }

  /// A session whose master is the first task.
  Result<cluster::ClusterSession> Prepare(cluster::MasterOptions master = {}) const {
    if (master.task.job.empty()) master.task = first_;
    session::SessionOptions options;
    options.explain = session::SessionOptions::Explain::kNone;
    options.placement_log = [](const std::string&) {};
    return cluster::OpenClusterSession(RuntimeOf(master.task), workers_, master, std::move(options));
  }
  Result<std::unique_ptr<session::Session>> Open(const graph::Definition& graph,
                                                 const cluster::MasterOptions& master = {}) const {
    WEIR_ASSIGN(cluster::ClusterSession prepared, Prepare(master));
    return session::Session::Make(std::move(prepared.runtime), graph, std::move(prepared.options));
  }

 private:
  const cluster::TaskName first_;
  const std::shared_ptr<cluster::Workers> workers_ = std::make_shared<cluster::Workers>();
  std::map<cluster::TaskName, std::shared_ptr<cluster::LocalWorker>> own_;
};

}  // namespace weir::testing

#endif  // WEIR_TESTS_SUPPORT_LOCAL_CLUSTER_H_
