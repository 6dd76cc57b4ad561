// A cluster whose tasks are in this process and reach one another through sockets.
#ifndef WEIR_TESTS_SUPPORT_WIRED_CLUSTER_H_
#define WEIR_TESTS_SUPPORT_WIRED_CLUSTER_H_

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/cluster/local_worker.h"
#include "core/cluster/master.h"
#include "core/cluster/plugin_transport.h"
#include "tests/support/local_cluster.h"

namespace weir::testing {

/// The transport of the plugin `remote`.
inline std::shared_ptr<cluster::Transport> SocketTransport() {
  static const std::shared_ptr<cluster::Transport> transport = [] {
    auto found = cluster::FindTransport(*RuntimeOf({"worker", 0})->plugins, "weir");
    EXPECT_TRUE(found.ok()) << found.status().ToString();
    return found.ok() ? *found : nullptr;
  }();
  return transport;
}

class WiredCluster {
 public:
  struct Task {
    std::shared_ptr<cluster::Workers> workers = std::make_shared<cluster::Workers>();
    std::shared_ptr<cluster::LocalWorker> worker;
    std::unique_ptr<cluster::Listener> listener;
    cluster::LocalEnd self;
  };

  /// `address`: of all listeners, "localhost:0" or a prefix "unix:/…/" for files named after the task.
  explicit WiredCluster(const std::vector<cluster::TaskName>& names, const cluster::LocalEnd& self = {},
                        const std::string& address = "localhost:0")
      : first_(names.front()) {
    for (const cluster::TaskName& name : names) {
      Task& task = tasks_[name];
      task.self = self;
      Start(name, address.starts_with("unix:") ? address + name.job + std::to_string(name.index) : address);
    }
    for (const cluster::TaskName& name : names) Connect(name);
  }
  ~WiredCluster() {
    for (auto& [name, task] : tasks_) Stop(name);
  }
  WiredCluster(const WiredCluster&) = delete;
  WiredCluster& operator=(const WiredCluster&) = delete;

  /// Also a new incarnation of a task that was stopped.
  void Start(const cluster::TaskName& name, const std::string& address) {
    Task& task = tasks_[name];
    auto made = cluster::LocalWorker::Make({name, RuntimeOf(name), task.workers});
    ASSERT_TRUE(made.ok()) << made.status().ToString();
    task.worker = *made;
    task.workers->Add(*made);
    task.self.task = name;
    task.self.incarnation = (*made)->incarnation();
    auto listener = SocketTransport()->Listen({task.worker, nullptr}, {address, -1, task.self});
    ASSERT_TRUE(listener.ok()) << listener.status().ToString();
    task.listener = *std::move(listener);
  }
  /// Connects a task to all others.
  void Connect(const cluster::TaskName& name) {
    Task& task = tasks_[name];
    for (const auto& [other, peer] : tasks_) {
      if (other == name || peer.listener == nullptr) continue;
      auto made = SocketTransport()->ConnectWorker(other, peer.listener->address(), task.self);
      ASSERT_TRUE(made.ok()) << made.status().ToString();
      task.workers->Add(*made);
    }
  }
  void Stop(const cluster::TaskName& name) {
    Task& task = tasks_[name];
    if (task.listener != nullptr) task.listener->Close();
    if (task.worker != nullptr) task.worker->Close();
  }
  Task& task(const cluster::TaskName& name) { return tasks_.at(name); }
  cluster::LocalWorker& worker(const cluster::TaskName& name) { return *tasks_.at(name).worker; }
  cluster::LocalWorker::Counts CountsOf(const cluster::TaskName& name) { return worker(name).counts(); }

  /// A session whose master is the first task.
  Result<cluster::ClusterSession> Prepare(cluster::MasterOptions master = {}) const {
    if (master.task.job.empty()) master.task = first_;
    session::SessionOptions options;
    options.explain = session::SessionOptions::Explain::kNone;
    options.placement_log = [](const std::string&) {};
    return cluster::OpenClusterSession(RuntimeOf(master.task), tasks_.at(master.task).workers, master,
                                       std::move(options));
  }
  Result<std::unique_ptr<session::Session>> Open(const graph::Definition& graph,
                                                 const cluster::MasterOptions& master = {}) const {
    WEIR_ASSIGN(cluster::ClusterSession prepared, Prepare(master));
    return session::Session::Make(std::move(prepared.runtime), graph, std::move(prepared.options));
  }

 private:
  const cluster::TaskName first_;
  std::map<cluster::TaskName, Task> tasks_;
};

}  // namespace weir::testing

#endif  // WEIR_TESTS_SUPPORT_WIRED_CLUSTER_H_
