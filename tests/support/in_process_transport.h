// A transport between servers of one process: calls go straight to the services of an address.
#ifndef WEIR_TESTS_SUPPORT_IN_PROCESS_TRANSPORT_H_
#define WEIR_TESTS_SUPPORT_IN_PROCESS_TRANSPORT_H_

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "core/base/errors.h"
#include "core/cluster/transport.h"

namespace weir::testing {

class InProcessTransport final : public cluster::Transport, public std::enable_shared_from_this<InProcessTransport> {
 public:
  explicit InProcessTransport(std::string scheme) : scheme_(std::move(scheme)) {}

  std::string scheme() const override { return scheme_; }
  Result<std::unique_ptr<cluster::Listener>> Listen(const cluster::Services& services,
                                                    const cluster::ListenOptions& options) override {
    WEIR_ASSIGN(cluster::Address address, cluster::ParseAddress(options.address));
    const std::lock_guard<std::mutex> lock(mutex_);
    if (address.port == 0) address.port = ++last_port_;
    const std::string name = address.ToString();
    if (!listening_.emplace(name, services).second) return FailedPrecondition("{} is taken", name);
    return std::unique_ptr<cluster::Listener>(std::make_unique<OwnListener>(shared_from_this(), name));
  }
  Result<std::shared_ptr<cluster::Worker>> ConnectWorker(const cluster::TaskName& task, const std::string& address,
                                                         const cluster::LocalEnd&) override {
    return std::shared_ptr<cluster::Worker>(std::make_shared<PeerWorker>(weak_from_this(), task, address));
  }
  Result<std::shared_ptr<cluster::MasterService>> ConnectMaster(const std::string& address,
                                                                const cluster::LocalEnd&) override {
    return std::shared_ptr<cluster::MasterService>(std::make_shared<PeerMaster>(weak_from_this(), address));
  }
  /// Addresses that are listened at.
  size_t listening() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return listening_.size();
  }

 private:
  class OwnListener final : public cluster::Listener {
   public:
    OwnListener(std::shared_ptr<InProcessTransport> in, std::string name)
        : in_(std::move(in)), name_(std::move(name)) {}
    ~OwnListener() override { Close(); }
    std::string address() const override { return name_; }
    Status Drain(cluster::Clock::time_point) override { return Status(); }
    void Close() override {
      const std::shared_ptr<InProcessTransport> in = std::exchange(in_, nullptr);
      if (in == nullptr) return;
      const std::lock_guard<std::mutex> lock(in->mutex_);
      in->listening_.erase(name_);
    }

   private:
    std::shared_ptr<InProcessTransport> in_;
    const std::string name_;
  };

  static Result<cluster::Services> At(const std::weak_ptr<InProcessTransport>& of, const std::string& address) {
    const std::shared_ptr<InProcessTransport> in = of.lock();
    if (in == nullptr) return Unavailable("the transport is gone");
    const std::lock_guard<std::mutex> lock(in->mutex_);
    const auto found = in->listening_.find(address);
    if (found == in->listening_.end()) return Unavailable("nobody listens at {}", address);
    return found->second;
  }

  class PeerMaster final : public cluster::MasterService {
   public:
    PeerMaster(std::weak_ptr<InProcessTransport> in, std::string address)
        : in_(std::move(in)), address_(std::move(address)) {}
    void Call(cluster::MasterCall call, cluster::MasterDone done) override {
      const Result<cluster::Services> at = At(in_, address_);
      if (!at.ok()) return done(at.status());
      if (at->master == nullptr) return done(Unimplemented("{} has no master", address_));
      at->master->Call(std::move(call), std::move(done));
    }

   private:
    const std::weak_ptr<InProcessTransport> in_;
    const std::string address_;
  };

  class PeerWorker final : public cluster::Worker {
   public:
    PeerWorker(std::weak_ptr<InProcessTransport> in, cluster::TaskName task, std::string address)
        : in_(std::move(in)), task_(std::move(task)), address_(std::move(address)) {}
    const cluster::TaskName& task() const override { return task_; }
    Result<cluster::WorkerStatus> GetStatus(cluster::Clock::time_point deadline) override {
      WEIR_ASSIGN(const cluster::Services at, At(in_, address_));
      return at.worker->GetStatus(deadline);
    }
    Status CreateSession(const cluster::WorkerSessionSpec& spec, cluster::Clock::time_point deadline) override {
      WEIR_ASSIGN(const cluster::Services at, At(in_, address_));
      return at.worker->CreateSession(spec, deadline);
    }
    Status DeleteSession(uint64_t session) override {
      WEIR_ASSIGN(const cluster::Services at, At(in_, address_));
      return at.worker->DeleteSession(session);
    }
    Result<cluster::PartHandle> RegisterPart(uint64_t session, const std::string& graph,
                                             cluster::Clock::time_point deadline) override {
      WEIR_ASSIGN(const cluster::Services at, At(in_, address_));
      return at.worker->RegisterPart(session, graph, deadline);
    }
    Status DeregisterPart(uint64_t session, uint64_t part) override {
      WEIR_ASSIGN(const cluster::Services at, At(in_, address_));
      return at.worker->DeregisterPart(session, part);
    }
    void RunStep(cluster::StepRequest request, cluster::StepDone done) override {
      const Result<cluster::Services> at = At(in_, address_);
      if (!at.ok()) return done(at.status());
      request.on_this_thread = false;
      at->worker->RunStep(std::move(request), std::move(done));
    }
    void RecvTensor(const cluster::TransferRequest& request, runtime::Rendezvous::Received received) override {
      const Result<cluster::Services> at = At(in_, address_);
      if (!at.ok()) return received(at.status());
      at->worker->RecvTensor(request, std::move(received));
    }
    Result<trace::StepTrace> TakeTrace(uint64_t session, uint64_t step, cluster::Clock::time_point deadline) override {
      WEIR_ASSIGN(const cluster::Services at, At(in_, address_));
      return at.worker->TakeTrace(session, step, deadline);
    }
    Status CancelStep(uint64_t session, uint64_t step, const Status& why) override {
      WEIR_ASSIGN(const cluster::Services at, At(in_, address_));
      return at.worker->CancelStep(session, step, why);
    }
    Status CleanupStep(uint64_t session, uint64_t step) override {
      WEIR_ASSIGN(const cluster::Services at, At(in_, address_));
      return at.worker->CleanupStep(session, step);
    }
    Status ResetContainers(const std::vector<std::string>& containers) override {
      WEIR_ASSIGN(const cluster::Services at, At(in_, address_));
      return at.worker->ResetContainers(containers);
    }

   private:
    const std::weak_ptr<InProcessTransport> in_;
    const cluster::TaskName task_;
    const std::string address_;
  };

  const std::string scheme_;
  mutable std::mutex mutex_;  // protects all below
  std::map<std::string, cluster::Services> listening_;
  uint16_t last_port_ = 20000;
};

}  // namespace weir::testing

#endif  // WEIR_TESTS_SUPPORT_IN_PROCESS_TRANSPORT_H_
