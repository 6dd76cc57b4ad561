#include "core/cluster/negotiated_transport.h"

#include <algorithm>
#include <mutex>
#include <string>
#include <utility>

#include "core/base/errors.h"
#include "core/runtime/blocking_pool.h"

namespace weir::cluster {
namespace {

using Preferred = std::vector<std::shared_ptr<PluginTransport>>;

/// A task behind one of several transports.
class NegotiatedWorker final : public Worker {
 public:
  NegotiatedWorker(std::shared_ptr<RemoteWorker> base, std::string base_scheme, Preferred preferred, LocalEnd self,
                   TransportNote note)
      : base_(std::move(base)),
        base_scheme_(std::move(base_scheme)),
        preferred_(std::move(preferred)),
        self_(std::move(self)),
        note_(std::move(note)),
        current_(base_) {}

  const TaskName& task() const override { return base_->task(); }

  /// The first call of a master: it may wait for the negotiation.
  Result<WorkerStatus> GetStatus(Clock::time_point deadline) override {
    WEIR_ASSIGN(WorkerStatus status, base_->GetStatus(deadline));
    if (Begin()) Negotiate(status.incarnation);
    return status;
  }
  Status CreateSession(const WorkerSessionSpec& spec, Clock::time_point deadline) override {
    return Judge(Use()->CreateSession(spec, deadline));
  }
  Result<std::vector<kernel::KernelDescription>> GetKernels(Clock::time_point deadline) override {
    return base_->GetKernels(deadline);
  }
  Status DeleteSession(uint64_t session) override { return Judge(Use()->DeleteSession(session)); }
  std::shared_ptr<const void> HoldSession(uint64_t session, std::function<void(const Status&)> ended) override {
    return base_->HoldSession(session, std::move(ended));
  }
  Result<PartHandle> RegisterPart(uint64_t session, const std::string& graph, Clock::time_point deadline) override {
    Result<PartHandle> handle = Use()->RegisterPart(session, graph, deadline);
    static_cast<void>(Judge(handle.status()));
    return handle;
  }
  Status DeregisterPart(uint64_t session, uint64_t part) override {
    return Judge(Use()->DeregisterPart(session, part));
  }
  void RunStep(StepRequest request, StepDone done) override {
    const auto shared = std::make_shared<StepDone>(std::move(done));
    Use()->RunStep(std::move(request), StepDone([self = Self(), shared](Result<std::vector<Tensor>> fetches) {
                     static_cast<void>(self->Judge(fetches.status()));
                     (*shared)(std::move(fetches));
                   }));
  }
  void RecvTensor(const TransferRequest& request, runtime::Rendezvous::Received received) override {
    const auto shared = std::make_shared<runtime::Rendezvous::Received>(std::move(received));
    Use()->RecvTensor(request, runtime::Rendezvous::Received([self = Self(), shared](Result<runtime::Message> came) {
                        static_cast<void>(self->Judge(came.status()));
                        (*shared)(std::move(came));
                      }));
  }
  void SendTensor(const TransferRequest& request, runtime::Message message, SendDone done) override {
    Use()->SendTensor(request, std::move(message), [self = Self(), done = std::move(done)](const Status& status) {
      static_cast<void>(self->Judge(status));
      done(status);
    });
  }
  Result<std::chrono::nanoseconds> Measure(uint64_t bytes, Clock::time_point deadline) override {
    return Use()->Measure(bytes, deadline);
  }
  Status CancelStep(uint64_t session, uint64_t step, const Status& why) override {
    return Use()->CancelStep(session, step, why);
  }
  Result<trace::StepTrace> TakeTrace(uint64_t session, uint64_t step, Clock::time_point deadline) override {
    return Use()->TakeTrace(session, step, deadline);
  }
  Status CleanupStep(uint64_t session, uint64_t step) override { return Use()->CleanupStep(session, step); }
  Status ResetContainers(const std::vector<std::string>& containers) override {
    return Judge(Use()->ResetContainers(containers));
  }

 private:
  std::shared_ptr<NegotiatedWorker> Self() { return std::static_pointer_cast<NegotiatedWorker>(shared_from_this()); }

  /// True for the caller that negotiates.
  bool Begin() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return !std::exchange(begun_, true);
  }

  /// The worker to call now. The first call begins the negotiation on another thread.
  std::shared_ptr<Worker> Use() {
    if (Begin()) {
      auto* const held = new std::shared_ptr<NegotiatedWorker>(Self());
      const auto run = [](void* arg) {
        const std::unique_ptr<std::shared_ptr<NegotiatedWorker>> own(
            static_cast<std::shared_ptr<NegotiatedWorker>*>(arg));
        const Result<WorkerStatus> status = (*own)->base_->GetStatus((*own)->Limit());
        if (status.ok()) (*own)->Negotiate(status->incarnation);
      };
      if (!runtime::RunBlocking(run, held).ok()) delete held;
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    return current_;
  }

  Clock::time_point Limit() const { return Clock::now() + self_.peer_timeout; }

  void Negotiate(uint64_t incarnation) {
    const Result<std::vector<Alternate>> offered = base_->GetTransports(Limit());
    for (const std::shared_ptr<PluginTransport>& transport : preferred_) {
      const auto unused = [&](const std::string& why) {
        note_(fmt::format("{}: the transport '{}' is not used: {}; '{}' is used instead", task().ToString(),
                          transport->scheme(), why, base_scheme_));
      };
      if (!offered.ok()) {
        unused(offered.status().message());
        continue;
      }
      const auto found = std::ranges::find(*offered, transport->scheme(), &Alternate::scheme);
      if (found == offered->end()) {
        unused("the task does not offer it");
        continue;
      }
      Result<std::shared_ptr<RemoteWorker>> made = transport->Connect(task(), found->address, self_);
      if (made.ok()) {
        const Result<WorkerStatus> status = (*made)->GetStatus(Limit());
        if (status.ok() && status->incarnation == incarnation) {
          const std::lock_guard<std::mutex> lock(mutex_);
          current_ = *std::move(made);
          return;
        }
        made = status.ok() ? Aborted("another incarnation answers at {}", found->address) : status.status();
      }
      unused(made.status().message());
    }
  }

  /// Goes back to the base after an error of another transport.
  Status Judge(const Status& status) {
    if (status.code() != Code::kUnavailable) return status;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (current_ == base_) return status;
      current_ = base_;
    }
    note_(fmt::format("{}: '{}' is used from now on: {}", task().ToString(), base_scheme_, status.message()));
    return status;
  }

  const std::shared_ptr<RemoteWorker> base_;
  const std::string base_scheme_;
  const Preferred preferred_;
  const LocalEnd self_;
  const TransportNote note_;
  std::mutex mutex_;  // protects all below
  bool begun_ = false;
  std::shared_ptr<Worker> current_;
};

/// Listens by several transports.
class Listeners final : public Listener {
 public:
  explicit Listeners(std::vector<std::unique_ptr<Listener>> all) : all_(std::move(all)) {}
  ~Listeners() override { Close(); }
  std::string address() const override { return all_.back()->address(); }
  Status Drain(Clock::time_point deadline) override {
    Status first;
    for (const auto& listener : all_) {
      const Status status = listener->Drain(deadline);
      if (first.ok()) first = status;
    }
    return first;
  }
  void Close() override {
    for (const auto& listener : all_) listener->Close();
  }

 private:
  const std::vector<std::unique_ptr<Listener>> all_;  // the base is last
};

class NegotiatedTransport final : public Transport {
 public:
  NegotiatedTransport(Preferred preferred, std::shared_ptr<PluginTransport> base, TransportNote note)
      : preferred_(std::move(preferred)), base_(std::move(base)), note_(std::move(note)) {}

  std::string scheme() const override {
    std::string text;
    for (const auto& transport : preferred_) text += transport->scheme() + "+";
    return text + base_->scheme();
  }

  Result<std::unique_ptr<Listener>> Listen(const Services& services, const ListenOptions& options) override {
    std::vector<std::unique_ptr<Listener>> all;
    std::vector<Alternate> alternates;
    ListenOptions other = options;
    other.inherited_socket = -1;
    other.address = options.address.substr(0, options.address.rfind(':')) + ":0";
    // A Unix socket has the permissions of its file; a port of the machine would be open to all of its users.
    const bool file = options.address.starts_with("unix:");
    for (const auto& transport : preferred_) {
      if (file) {
        note_(fmt::format("the transport '{}' is not offered: the server has a Unix socket", transport->scheme()));
        continue;
      }
      Result<std::unique_ptr<Listener>> made = transport->Listen(services, other);
      if (!made.ok()) {
        note_(fmt::format("the transport '{}' is not offered: {}", transport->scheme(), made.status().message()));
        continue;
      }
      alternates.push_back({transport->scheme(), (*made)->address()});
      all.push_back(*std::move(made));
    }
    WEIR_ASSIGN(std::unique_ptr<Listener> base, base_->Listen(services, options, std::move(alternates)));
    all.push_back(std::move(base));
    return std::unique_ptr<Listener>(std::make_unique<Listeners>(std::move(all)));
  }

  Result<std::shared_ptr<Worker>> ConnectWorker(const TaskName& task, const std::string& address,
                                                const LocalEnd& self) override {
    WEIR_ASSIGN(std::shared_ptr<RemoteWorker> base, base_->Connect(task, address, self));
    return std::shared_ptr<Worker>(
        std::make_shared<NegotiatedWorker>(std::move(base), base_->scheme(), preferred_, self, note_));
  }

  Result<std::shared_ptr<MasterService>> ConnectMaster(const std::string& address, const LocalEnd& self) override {
    return base_->ConnectMaster(address, self);
  }

  Status Renew(const LocalEnd& self) override {
    for (const auto& transport : preferred_) {
      const Status status = transport->Renew(self);
      if (!status.ok()) note_(std::string(status.message()));
    }
    return base_->Renew(self);
  }

 private:
  const Preferred preferred_;
  const std::shared_ptr<PluginTransport> base_;
  const TransportNote note_;
};

}  // namespace

std::shared_ptr<Transport> MakeNegotiated(Preferred preferred, std::shared_ptr<PluginTransport> base,
                                          TransportNote note) {
  return std::make_shared<NegotiatedTransport>(std::move(preferred), std::move(base), std::move(note));
}

}  // namespace weir::cluster
