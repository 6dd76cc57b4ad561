// A task that keeps what it was asked, for tests of transports.
#ifndef WEIR_TESTS_UNIT_CLUSTER_FAKE_WORKER_H_
#define WEIR_TESTS_UNIT_CLUSTER_FAKE_WORKER_H_

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/base/errors.h"
#include "core/cluster/transport.h"
#include "core/cluster/worker.h"
#include "core/runtime/cancellation.h"

namespace weir::testing {

/// Session 13 is unknown. Steps return their feeds, or wait until they are cancelled or Finish is called.
class FakeWorker final : public cluster::Worker {
 public:
  explicit FakeWorker(cluster::TaskName task) : task_(std::move(task)) {}
  const cluster::TaskName& task() const override { return task_; }

  Result<cluster::WorkerStatus> GetStatus(cluster::Clock::time_point) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    return status;
  }
  Status CreateSession(const cluster::WorkerSessionSpec& asked, cluster::Clock::time_point deadline) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    spec = asked;
    has_deadline = deadline != cluster::Clock::time_point::max();
    return Status();
  }
  Result<std::vector<kernel::KernelDescription>> GetKernels(cluster::Clock::time_point) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    return kernels;
  }
  void SendTensor(const cluster::TransferRequest& request, runtime::Message message,
                  cluster::SendDone done) override {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      sent.emplace_back(request.key, std::move(message));
    }
    done(request.key == "bad" ? Aborted("no such key") : Status());
  }
  Status DeleteSession(uint64_t session) override { return Known(session, "DeleteSession " + std::to_string(session)); }
  Result<cluster::PartHandle> RegisterPart(uint64_t session, const std::string& asked,
                                           cluster::Clock::time_point) override {
    WEIR_TRY(Known(session, "RegisterPart"));
    const std::lock_guard<std::mutex> lock(mutex_);
    graph = asked;
    return cluster::PartHandle{8, {0, 2}, {1}};
  }
  Status DeregisterPart(uint64_t session, uint64_t part) override {
    return Known(session, "DeregisterPart " + std::to_string(part));
  }
  bool IsShort(uint64_t, uint64_t) const override {
    const std::lock_guard<std::mutex> lock(mutex_);
    return is_short;
  }
  void RunStep(cluster::StepRequest request, cluster::StepDone done) override {
    std::unique_lock<std::mutex> lock(mutex_);
    ++steps;
    if (request.on_this_thread) {
      ++steps_there;
      changed_.wait(lock, [this] { return !blocks; });
    }
    if (holds) {
      held_.emplace(request.step, std::move(done));
      changed_.notify_all();
      return;
    }
    last = request;
    lock.unlock();
    done(std::move(request.feeds));
  }
  void RecvTensor(const cluster::TransferRequest& request, runtime::Rendezvous::Received received) override {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (request.key == "wait") {
        received_.push_back(std::move(received));
        changed_.notify_all();
        return;
      }
    }
    if (request.key == "dead") return received(runtime::Message{Tensor(), true});
    if (request.key == "bad") return received(Aborted("no such key").WithNode("n", "model.py:3"));
    received(runtime::Message{value, false});
  }
  Status CancelStep(uint64_t session, uint64_t step, const Status& why) override {
    cluster::StepDone done;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      calls.push_back("CancelStep " + std::to_string(session) + " " + std::to_string(step) + " " + why.ToString());
      const auto found = held_.find(step);
      if (found != held_.end()) {
        done = std::move(found->second);
        held_.erase(found);
      }
      changed_.notify_all();
    }
    if (done) done(why);
    return Status();
  }
  Status CleanupStep(uint64_t session, uint64_t step) override {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      blocks = false;
      changed_.notify_all();
    }
    return Known(session, "CleanupStep " + std::to_string(step));
  }
  Status ResetContainers(const std::vector<std::string>& containers) override {
    std::string text = "ResetContainers";
    for (const std::string& container : containers) text += " " + container;
    return Known(0, text);
  }

  /// Ends the steps and transfers that wait.
  void Finish() {
    std::map<uint64_t, cluster::StepDone> steps_held;
    std::vector<runtime::Rendezvous::Received> receives;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      steps_held.swap(held_);
      receives.swap(received_);
    }
    for (auto& [step, done] : steps_held) done(std::vector<Tensor>{});
    for (auto& received : receives) received(runtime::Message{value, false});
  }
  size_t waiting() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return held_.size() + received_.size();
  }
  bool Has(const std::string& call) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const std::string& one : calls) {
      if (one.starts_with(call)) return true;
    }
    return false;
  }
  template <class Read>
  auto Locked(Read&& read) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return read(*this);
  }

  // What was asked, and what to answer; read by Locked while calls are under way.
  cluster::WorkerStatus status;
  cluster::WorkerSessionSpec spec;
  cluster::StepRequest last;
  std::vector<kernel::KernelDescription> kernels;
  std::vector<std::pair<std::string, runtime::Message>> sent;
  std::string graph;
  std::vector<std::string> calls;
  Tensor value = Tensor::Scalar<float>(1);
  int steps = 0;
  int steps_there = 0;  // on the thread of the transport
  bool has_deadline = false, holds = false;
  bool is_short = false;
  bool blocks = false;  // steps on the thread of the transport, until CleanupStep

 private:
  Status Known(uint64_t session, const std::string& call) {
    const std::lock_guard<std::mutex> lock(mutex_);
    calls.push_back(call);
    return session == 13 ? Aborted("Session 13 is not found") : Status();
  }

  const cluster::TaskName task_;
  mutable std::mutex mutex_;  // protects all but task_
  std::condition_variable changed_;
  std::map<uint64_t, cluster::StepDone> held_;
  std::vector<runtime::Rendezvous::Received> received_;
};

/// A master that returns requests, or waits until it is cancelled.
class FakeMaster final : public cluster::MasterService {
 public:
  void Call(cluster::MasterCall call, cluster::MasterDone done) override {
    if (call.method == "Fail") return done(InvalidArgument("bad {}", call.request));
    if (call.method != "Wait") return done(call.method + ":" + call.peer + ":" + call.request);
    auto waits = std::make_shared<Waiting>();
    waits->done = std::move(done);
    waits->cancellation = call.cancellation;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      ++waiting_;
    }
    // The call keeps its callback until it ends.
    const auto end = [this, waits] {
      {
        const std::lock_guard<std::mutex> lock(mutex_);
        --waiting_;
      }
      waits->done(waits->cancellation->status());
    };
    runtime::CancelCallback* callback = nullptr;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      kept_.push_back(call.cancellation);
      callback = callbacks_.emplace_back(std::make_unique<runtime::CancelCallback>()).get();
    }
    if (!callback->Register(*call.cancellation, end)) end();
  }
  int waiting() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return waiting_;
  }

 private:
  struct Waiting {
    cluster::MasterDone done;
    std::shared_ptr<runtime::Cancellation> cancellation;
  };
  mutable std::mutex mutex_;  // protects all below
  int waiting_ = 0;
  std::vector<std::shared_ptr<runtime::Cancellation>> kept_;  // outlive the callbacks
  std::vector<std::unique_ptr<runtime::CancelCallback>> callbacks_;
};

}  // namespace weir::testing

#endif  // WEIR_TESTS_UNIT_CLUSTER_FAKE_WORKER_H_
