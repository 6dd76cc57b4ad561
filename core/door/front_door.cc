#include "core/door/front_door.h"

#include <fmt/format.h>

#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "core/base/errors.h"
#include "core/cluster/cluster_spec.h"
#include "core/device/error_record.h"

namespace weir::door {
namespace {

using cluster::Clock;
using kernel::FrontDoorEntry;

constexpr char kService[] = "tensorflow.MasterService";

weir_str Str(std::string_view text) { return {text.data(), text.size()}; }
std::string Copy(weir_str text) { return text.size == 0 ? std::string() : std::string(text.data, text.size); }

weir_door_options OptionsOf(const cluster::Security& security, const std::string& address) {
  weir_door_options options{};
  options.struct_size = sizeof options;
  options.inherited_socket = -1;
  options.address = Str(address);
  options.service = Str(kService);
  options.tls_certificate = Str(security.tls_certificate);
  options.tls_key = Str(security.tls_key);
  options.tls_authorities = Str(security.tls_authorities);
  return options;
}

bool IsLoopback(std::string_view host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

/// Calls of clients, by the plugin's number, on their way to a master.
class Desk {
 public:
  Desk(const FrontDoorEntry& entry, std::shared_ptr<cluster::MasterService> master)
      : entry_(entry), master_(std::move(master)) {}

  void SetServer(weir_door_server* server) {
    const std::lock_guard<std::mutex> lock(mutex_);
    server_ = server;
    started_.notify_all();
  }
  weir_door_server* server() {
    std::unique_lock<std::mutex> lock(mutex_);
    started_.wait(lock, [&] { return server_ != nullptr; });
    return server_;
  }

  void Begin(const std::shared_ptr<Desk>& self, uint64_t number, const weir_door_request& request) {
    cluster::MasterCall call;
    call.method = Copy(request.method);
    call.request = Copy(request.body);
    call.peer = Copy(request.peer);
    call.cancellation = std::make_shared<runtime::Cancellation>();
    const std::chrono::nanoseconds left(request.time_left_ns);
    const Clock::time_point now = Clock::now();
    if (left < Clock::time_point::max() - now) call.deadline = now + left;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      calls_.emplace(number, call.cancellation);
    }
    master_->Call(std::move(call), cluster::MasterDone([self, number](Result<std::string> reply) {
                    self->Answer(number, reply);
                  }));
  }

  void Cancel(uint64_t number) {
    std::shared_ptr<runtime::Cancellation> cancellation;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      const auto found = calls_.find(number);
      if (found == calls_.end()) return;
      cancellation = found->second;
    }
    cancellation->Cancel(Cancelled("the caller has gone"));
  }

  /// Cancels all calls and waits until they are answered.
  void End() {
    std::vector<std::shared_ptr<runtime::Cancellation>> all;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      for (const auto& [number, cancellation] : calls_) all.push_back(cancellation);
    }
    for (const auto& cancellation : all) cancellation->Cancel(Cancelled("the server is closed"));
    std::unique_lock<std::mutex> lock(mutex_);
    idle_.wait(lock, [&] { return calls_.empty(); });
  }

  Status WaitIdle(Clock::time_point deadline) {
    std::unique_lock<std::mutex> lock(mutex_);
    const auto idle = [&] { return calls_.empty(); };
    if (deadline == Clock::time_point::max()) {
      idle_.wait(lock, idle);
      return Status();
    }
    if (idle_.wait_until(lock, deadline, idle)) return Status();
    return DeadlineExceeded("{} calls are still under way", calls_.size());
  }

 private:
  void Answer(uint64_t number, const Result<std::string>& reply) {
    weir_door_server* const at = server();
    const std::string_view message = reply.ok() ? std::string_view() : reply.status().message();
    const std::string_view body = reply.ok() ? std::string_view(*reply) : std::string_view();
    entry_.api->answer(at, number, static_cast<int32_t>(reply.status().code()), Str(message), Str(body));
    const std::lock_guard<std::mutex> lock(mutex_);
    calls_.erase(number);
    if (calls_.empty()) idle_.notify_all();
  }

  const FrontDoorEntry entry_;
  const std::shared_ptr<cluster::MasterService> master_;
  std::mutex mutex_;  // protects all below
  std::condition_variable started_, idle_;
  weir_door_server* server_ = nullptr;
  std::map<uint64_t, std::shared_ptr<runtime::Cancellation>> calls_;
};

class DoorListener;

/// The listeners of a transport that are open. Thread-safe.
class OpenDoors {
 public:
  void Add(DoorListener* listener) {
    const std::lock_guard<std::mutex> lock(mutex_);
    open_.insert(listener);
  }
  /// `listener` is not used once this has returned.
  void Remove(DoorListener* listener) {
    const std::lock_guard<std::mutex> lock(mutex_);
    open_.erase(listener);
  }
  /// The first error; the other listeners have the new certificates nevertheless.
  Status Renew(const cluster::Security& security);

 private:
  std::mutex mutex_;  // protects open_
  std::set<DoorListener*> open_;
};

class DoorListener final : public cluster::Listener {
 public:
  static Result<std::unique_ptr<cluster::Listener>> Make(const FrontDoorEntry& entry, std::shared_ptr<OpenDoors> open,
                                                         std::shared_ptr<cluster::MasterService> master,
                                                         const cluster::ListenOptions& options) {
    std::unique_ptr<DoorListener> made(new DoorListener(entry, std::move(open), std::move(master)));
    weir_door_options given = OptionsOf(options.self.security, options.address);
    given.inherited_socket = options.inherited_socket;
    weir_door_handler handler{};
    handler.struct_size = sizeof handler;
    handler.arg = &made->desk_;
    handler.call = [](void* arg, uint64_t call, const weir_door_request* request) {
      const auto& desk = *static_cast<std::shared_ptr<Desk>*>(arg);
      desk->Begin(desk, call, *request);
    };
    handler.cancelled = [](void* arg, uint64_t call) { (*static_cast<std::shared_ptr<Desk>*>(arg))->Cancel(call); };
    WEIR_TRY(device::CallPlugin("serve", [&](weir_error* error) {
      return entry.api->serve(&given, &handler, &made->server_, error);
    }));
    if (made->server_ == nullptr) return Internal("plugin {}: serve gave no server", entry.plugin);
    made->desk_->SetServer(made->server_);
    entry.api->address(
        made->server_, [](void* ctx, weir_str text) { *static_cast<std::string*>(ctx) = Copy(text); },
        &made->address_);
    made->open_->Add(made.get());
    return std::unique_ptr<cluster::Listener>(std::move(made));
  }
  ~DoorListener() override { Close(); }

  std::string address() const override { return address_; }
  Status Drain(Clock::time_point deadline) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (server_ == nullptr) return Status();
    entry_.api->refuse(server_);
    return desk_->WaitIdle(deadline);
  }
  Status Renew(const cluster::Security& security) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (server_ == nullptr) return Status();
    const weir_door_options options = OptionsOf(security, address_);
    return device::CallPlugin("renew", [&](weir_error* error) { return entry_.api->renew(server_, &options, error); });
  }
  void Close() override {
    open_->Remove(this);
    const std::lock_guard<std::mutex> lock(mutex_);
    if (server_ == nullptr) return;
    entry_.api->refuse(server_);
    desk_->End();
    entry_.api->stop(std::exchange(server_, nullptr));
  }

 private:
  DoorListener(const FrontDoorEntry& entry, std::shared_ptr<OpenDoors> open,
               std::shared_ptr<cluster::MasterService> master)
      : entry_(entry), open_(std::move(open)), desk_(std::make_shared<Desk>(entry, std::move(master))) {}

  const FrontDoorEntry entry_;
  const std::shared_ptr<OpenDoors> open_;
  std::shared_ptr<Desk> desk_;
  std::string address_;
  std::mutex mutex_;  // protects server_
  weir_door_server* server_ = nullptr;
};

Status OpenDoors::Renew(const cluster::Security& security) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Status first;
  for (DoorListener* const listener : open_) {
    const Status status = listener->Renew(security);
    if (first.ok()) first = status;
  }
  return first;
}

/// A server's master behind a connection.
class FarMaster final : public cluster::MasterService {
 public:
  FarMaster(const FrontDoorEntry& entry, std::string address, weir_door_client* client)
      : entry_(entry), address_(std::move(address)), client_(client) {}
  ~FarMaster() override { entry_.api->disconnect(client_); }

  void Call(cluster::MasterCall call, cluster::MasterDone done) override {
    weir_door_request request{};
    request.struct_size = sizeof request;
    request.method = Str(call.method);
    request.body = Str(call.request);
    request.time_left_ns = INT64_MAX;
    if (call.deadline != Clock::time_point::max()) {
      request.time_left_ns = std::chrono::nanoseconds(call.deadline - Clock::now()).count();
      if (request.time_left_ns <= 0) return done(DeadlineExceeded("{} {}: Deadline Exceeded", address_, call.method));
    }
    auto* const waiting = new Waiting{address_, call.method, call.cancellation, {}, std::move(done)};
    const uint64_t number = next_.fetch_add(1, std::memory_order_relaxed);
    const Status begun = device::CallPlugin("call", [&](weir_error* error) {
      if (waiting->cancellation != nullptr &&
          !waiting->on_cancel.Register(*waiting->cancellation,
                                       [this, number] { entry_.api->cancel(client_, number); })) {
        return static_cast<int32_t>(WEIR_CANCELLED);
      }
      return entry_.api->call(client_, number, &request, &FarMaster::Ended, waiting, error);
    });
    if (begun.ok()) {
      // The callback may have come before the plugin knew the call.
      if (call.cancellation != nullptr && call.cancellation->cancelled()) entry_.api->cancel(client_, number);
      return;
    }
    const std::unique_ptr<Waiting> own(waiting);
    own->on_cancel.Deregister();
    own->done(begun);
  }

 private:
  struct Waiting {
    std::string address, method;
    std::shared_ptr<runtime::Cancellation> cancellation;
    runtime::CancelCallback on_cancel;
    cluster::MasterDone done;
  };
  static void Ended(void* arg, int32_t code, weir_str message, weir_str body) {
    const std::unique_ptr<Waiting> own(static_cast<Waiting*>(arg));
    own->on_cancel.Deregister();
    if (code == WEIR_OK) return own->done(Copy(body));
    own->done(Status(static_cast<Code>(code), Copy(message)));
  }

  const FrontDoorEntry entry_;
  const std::string address_;
  weir_door_client* const client_;
  std::atomic<uint64_t> next_{1};
};

class DoorTransport final : public cluster::Transport {
 public:
  explicit DoorTransport(FrontDoorEntry entry) : entry_(std::move(entry)) {}

  std::string scheme() const override { return Copy(entry_.api->scheme); }

  Result<std::unique_ptr<cluster::Listener>> Listen(const cluster::Services& services,
                                                    const cluster::ListenOptions& options) override {
    if (services.master == nullptr) return InvalidArgument("{}: there is no master to listen for", scheme());
    const cluster::Security& security = options.self.security;
    if (!security.token.empty()) {
      return InvalidArgument("{}: clients of this protocol have no token; protect it by certificates", scheme());
    }
    const bool tls = !security.tls_certificate.empty() && !security.tls_authorities.empty();
    if (options.inherited_socket < 0) {
      WEIR_ASSIGN(const cluster::Address address, cluster::ParseAddress(options.address));
      if (!tls && !security.insecure_listen && !IsLoopback(address.host)) {
        return FailedPrecondition(
            "{}: {} is not loopback, and whoever connects may run graphs: set tls_certificate, tls_key and "
            "tls_authorities, or insecure_listen",
            scheme(), options.address);
      }
    }
    return DoorListener::Make(entry_, open_, services.master, options);
  }

  Status Renew(const cluster::LocalEnd& self) override {
    if (!WEIR_HAS(entry_.api, renew)) return cluster::Transport::Renew(self);
    return open_->Renew(self.security);
  }

  Result<std::shared_ptr<cluster::Worker>> ConnectWorker(const cluster::TaskName& task, const std::string&,
                                                         const cluster::LocalEnd&) override {
    return Unimplemented("{}: {} cannot be a worker behind this protocol, which has masters only", scheme(),
                         task.ToString());
  }

  Result<std::shared_ptr<cluster::MasterService>> ConnectMaster(const std::string& address,
                                                                const cluster::LocalEnd& self) override {
    WEIR_TRY(cluster::ParseAddress(address).status());
    const weir_door_options options = OptionsOf(self.security, address);
    weir_door_client* client = nullptr;
    WEIR_TRY(device::CallPlugin(
        "connect", [&](weir_error* error) { return entry_.api->connect(&options, &client, error); }));
    if (client == nullptr) return Internal("plugin {}: connect gave no client", entry_.plugin);
    return std::shared_ptr<cluster::MasterService>(std::make_shared<FarMaster>(entry_, address, client));
  }

 private:
  const FrontDoorEntry entry_;
  const std::shared_ptr<OpenDoors> open_ = std::make_shared<OpenDoors>();
};

}  // namespace

std::shared_ptr<cluster::Transport> MakeFrontDoor(const kernel::FrontDoorEntry& entry) {
  return std::make_shared<DoorTransport>(entry);
}

Result<std::shared_ptr<cluster::Transport>> FrontDoor(const plugin::Catalogue& plugins, std::string_view scheme) {
  std::vector<std::string> there;
  for (const kernel::FrontDoorEntry& entry : plugins.front_doors()) {
    there.push_back(Copy(entry.api->scheme));
    if (there.back() == scheme) return MakeFrontDoor(entry);
  }
  std::string text = fmt::format("no plugin speaks '{}'; schemes: {}", scheme,
                                 there.empty() ? "none" : fmt::format("{}", fmt::join(there, ", ")));
  for (const std::string& absent : plugins.Absent()) text += "\n  " + absent;
  return NotFound("{}", text);
}

}  // namespace weir::door
