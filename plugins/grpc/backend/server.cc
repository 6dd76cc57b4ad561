#include "plugins/grpc/backend/server.h"

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plugins/grpc/backend/acceptor.h"
#include "plugins/grpc/backend/bytes.h"
#include "sdk/cpp/status.h"

namespace weir_grpc {
namespace {

class Server;

/// A call from its first message to its end. It is one of gRPC's streams with one message each way.
class ServerCall final : public grpc::ServerGenericBidiReactor {
 public:
  ServerCall(Server& server, grpc::GenericCallbackServerContext& context, std::string method)
      : server_(server), context_(context), method_(std::move(method)) {
    StartRead(&request_);
  }
  void Answer(int32_t code, weir_str message, weir_str body) {
    if (code != WEIR_OK) return Finish(grpc::Status(static_cast<grpc::StatusCode>(code), Copy(message)));
    reply_ = BufferOf(body);
    StartWriteAndFinish(&reply_, grpc::WriteOptions(), grpc::Status::OK);
  }

 private:
  void OnReadDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

  Server& server_;
  grpc::GenericCallbackServerContext& context_;
  const std::string method_;
  std::atomic<uint64_t> number_{0};  // 0: not shown to the core
  grpc::ByteBuffer request_, reply_;
};

/// The answer to a call that is none of the core's: an error, or the state of health.
class ShortCall final : public grpc::ServerGenericBidiReactor {
 public:
  explicit ShortCall(const grpc::Status& status) { Finish(status); }

 private:
  void OnDone() override { delete this; }
};

/// What a HealthCheckRequest asks for: field 1 is the name of a service, empty for the server.
enum class Asked { kKnown, kUnknown, kMalformed };
Asked ReadHealthRequest(grpc::ByteBuffer& request, std::string_view service) {
  grpc::Slice slice;
  std::string storage;
  const weir_str bytes = WholeOf(request, slice, storage);
  const std::string_view text(bytes.data == nullptr ? "" : bytes.data, bytes.size);
  const bool named = text.size() >= 2 && text[0] == '\x0a' && text.size() == size_t{2} + static_cast<uint8_t>(text[1]);
  if (!text.empty() && !named) return Asked::kMalformed;
  return !named || text.size() == 2 || text.substr(2) == service ? Asked::kKnown : Asked::kUnknown;
}

/// Field 1 of a HealthCheckResponse.
enum class Health : char { kServing = 1, kNotServing = 2, kUnknown = 3 };
grpc::ByteBuffer HealthReply(Health health) {
  const char bytes[] = {'\x08', static_cast<char>(health)};
  return BufferOf({bytes, sizeof bytes});
}
const grpc::Status kNoHealthRequest(grpc::StatusCode::INVALID_ARGUMENT, "no HealthCheckRequest");

class HealthCall final : public grpc::ServerGenericBidiReactor {
 public:
  HealthCall(std::string service, bool serving) : service_(std::move(service)), serving_(serving) {
    StartRead(&request_);
  }

 private:
  void OnReadDone(bool ok) override {
    const Asked asked = ok ? ReadHealthRequest(request_, service_) : Asked::kMalformed;
    if (asked == Asked::kMalformed) return Finish(kNoHealthRequest);
    if (asked == Asked::kUnknown) return Finish({grpc::StatusCode::NOT_FOUND, "unknown service"});
    reply_ = HealthReply(serving_ ? Health::kServing : Health::kNotServing);
    StartWriteAndFinish(&reply_, grpc::WriteOptions(), grpc::Status::OK);
  }
  void OnDone() override { delete this; }

  const std::string service_;
  const bool serving_;
  grpc::ByteBuffer request_, reply_;
};

/// Tells the state of health, and each change of it, until its caller has gone or the server ends.
class WatchCall final : public grpc::ServerGenericBidiReactor {
 public:
  explicit WatchCall(Server& server) : server_(server) { StartRead(&request_); }
  /// Writes the state if it has changed. No effect before the request is there and after the end.
  void Update();

 private:
  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override { End(grpc::Status(grpc::StatusCode::CANCELLED, "nobody waits")); }
  void OnDone() override;
  void End(const grpc::Status& status);

  Server& server_;
  grpc::ByteBuffer request_, reply_;
  std::recursive_mutex mutex_;  // protects all below; gRPC may call back while it is held
  Asked asked_ = Asked::kMalformed;
  Health shown_{};
  bool writing_ = false, ended_ = false;
};

/// "ipv4:127.0.0.1:40001" -> "127.0.0.1", "ipv6:%5B::1%5D:40001" -> "%5B::1%5D".
std::string HostOfPeer(const std::string& peer) {
  const size_t begin = peer.find(':'), end = peer.rfind(':');
  if (begin == std::string::npos || end <= begin) return peer;
  return peer.substr(begin + 1, end - begin - 1);
}

int64_t TimeLeft(std::chrono::system_clock::time_point deadline) {
  if (deadline == std::chrono::system_clock::time_point::max()) return INT64_MAX;
  const auto left = deadline - std::chrono::system_clock::now();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(left).count();
}

/// What the files of TLS say.
struct TlsFiles {
  std::string certificate, key, authorities;

  static int32_t Read(const weir_door_options& options, const weir::sdk::Error& error, TlsFiles& files) {
    const auto read = [](weir_str path, std::string& text) {
      return ReadFile(path, text) && text.find("-----BEGIN ") != std::string::npos;
    };
    if (!read(options.tls_certificate, files.certificate)) {
      return error.InvalidArgument(weir::sdk::ToView(options.tls_certificate), ": no certificate can be read");
    }
    if (!read(options.tls_key, files.key)) {
      return error.InvalidArgument(weir::sdk::ToView(options.tls_key), ": no key can be read");
    }
    if (options.tls_authorities.size != 0 && !read(options.tls_authorities, files.authorities)) {
      return error.InvalidArgument(weir::sdk::ToView(options.tls_authorities), ": no certificates can be read");
    }
    return WEIR_OK;
  }
};

/// Credentials whose certificates can change: gRPC asks for them before each handshake, and keeps those that it has if
/// the new ones do not fit each other.
class RenewableCredentials final : public grpc::ServerCredentials {
 public:
  explicit RenewableCredentials(TlsFiles files) : asks_(!files.authorities.empty()), files_(std::move(files)) {
    credentials_ =
        grpc_ssl_server_credentials_create_with_options(grpc_ssl_server_credentials_create_options_using_config_fetcher(
            asks_ ? GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY
                  : GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE,
            &RenewableCredentials::Fetch, this));
  }
  ~RenewableCredentials() override { grpc_server_credentials_release(credentials_); }

  bool asks() const { return asks_; }
  void Renew(TlsFiles files) {
    const std::lock_guard<std::mutex> lock(mutex_);
    files_ = std::move(files);
    fetched_ = false;
  }
  void SetAuthMetadataProcessor(const std::shared_ptr<grpc::AuthMetadataProcessor>&) override {}

 private:
  int AddPortToServer(const std::string& address, grpc_server* server) override {
    return grpc_server_add_http2_port(server, address.c_str(), credentials_);
  }
  static grpc_ssl_certificate_config_reload_status Fetch(void* self, grpc_ssl_server_certificate_config** config) {
    return static_cast<RenewableCredentials*>(self)->Give(config);
  }
  grpc_ssl_certificate_config_reload_status Give(grpc_ssl_server_certificate_config** config) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (fetched_) return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
    const grpc_ssl_pem_key_cert_pair pair = {files_.key.c_str(), files_.certificate.c_str()};
    *config = grpc_ssl_server_certificate_config_create(asks_ ? files_.authorities.c_str() : nullptr, &pair, 1);
    fetched_ = *config != nullptr;
    return fetched_ ? GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW : GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_FAIL;
  }

  const bool asks_;
  grpc_server_credentials* credentials_ = nullptr;
  std::mutex mutex_;  // protects all below
  TlsFiles files_;
  bool fetched_ = false;
};

class Server final : public grpc::CallbackGenericService {
 public:
  explicit Server(const weir_door_handler& handler) : handler_(handler) {}

  int32_t Renew(const weir_door_options& options, const weir::sdk::Error& error) {
    const bool has = options.tls_certificate.size != 0, asks = options.tls_authorities.size != 0;
    if (tls_ == nullptr && !has) return WEIR_OK;
    if (tls_ == nullptr || !has || asks != tls_->asks()) {
      return error.Fail(
          WEIR_FAILED_PRECONDITION,
          "the protection of a door by TLS and by certificates of clients begins and ends with its server");
    }
    TlsFiles files;
    if (const int32_t code = TlsFiles::Read(options, error, files); code != WEIR_OK) return code;
    tls_->Renew(std::move(files));
    return WEIR_OK;
  }

  int32_t Start(const weir_door_options& options, const weir::sdk::Error& error) {
    service_ = Copy(options.service);
    std::shared_ptr<grpc::ServerCredentials> credentials;
    if (const int32_t code = MakeCredentials(options, error, credentials); code != WEIR_OK) return code;
    const std::string address = Copy(options.address);
    const size_t colon = address.rfind(':');
    if (options.inherited_socket < 0 && colon == std::string::npos) {
      return error.InvalidArgument("'", address, "' is not host:port");
    }
    std::string host = colon == std::string::npos ? "" : address.substr(0, colon);
    if (host.size() >= 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
    bool taken = false;
    const std::string why =
        acceptor_.Listen(host, colon == std::string::npos ? "0" : address.substr(colon + 1), options.inherited_socket,
                         &taken);
    if (!why.empty()) return error.Fail(taken ? WEIR_FAILED_PRECONDITION : WEIR_INVALID_ARGUMENT, why);
    address_ = acceptor_.Address();
    Build(options, std::move(credentials));
    if (server_ == nullptr) return error.Fail(WEIR_INTERNAL, "gRPC did not start a server");
    AcceptLimits limits;
    if (options.max_connections != 0) limits.connections = options.max_connections;
    if (options.max_connections_host != 0) limits.connections_of_host = options.max_connections_host;
    acceptor_.Start(limits, [this](int fd) {
      grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
      connection.listener_fd = acceptor_.listening();
      connection.fd = fd;
      connections_->HandleNewConnection(&connection);
    });
    return WEIR_OK;
  }

  const std::string& address() const { return address_; }

  void Answer(uint64_t number, int32_t code, weir_str message, weir_str body) {
    if (ServerCall* const call = Take(number)) call->Answer(code, message, body);
  }
  void Refuse() {
    refusing_ = true;
    std::vector<std::shared_ptr<WatchCall>> watchers;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      for (const auto& [call, owner] : watchers_) watchers.push_back(owner);
    }
    for (const auto& call : watchers) call->Update();
  }
  void Stop() {
    Refuse();
    acceptor_.Stop();
    std::vector<ServerCall*> open;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      for (const auto& [number, call] : open_) open.push_back(call);
      open_.clear();
    }
    for (ServerCall* const call : open) call->Answer(WEIR_CANCELLED, View("the server is closed"), {});
    server_->Shutdown(std::chrono::system_clock::now());
    server_->Wait();
    std::unique_lock<std::mutex> lock(mutex_);
    idle_.wait(lock, [&] { return live_ == 0; });
  }

  // --- Of calls

  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* context) override {
    const std::string& path = context->method();
    const size_t slash = path.rfind('/');
    const std::string service = slash == std::string::npos || slash == 0 ? "" : path.substr(1, slash - 1);
    if (path == "/grpc.health.v1.Health/Check") return new HealthCall(service_, !refusing_);
    if (path == "/grpc.health.v1.Health/Watch") return Watch();
    // Clients made from TensorFlow's own file use another package.
    if (service != service_ && service != "tensorflow.grpc.MasterService") {
      return new ShortCall({grpc::StatusCode::UNIMPLEMENTED, "unknown method"});
    }
    if (refusing_) return new ShortCall({grpc::StatusCode::UNAVAILABLE, "the server takes no more calls"});
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      ++live_;
    }
    return new ServerCall(*this, *context, path.substr(slash + 1));
  }
  uint64_t Open(ServerCall* call) {
    const std::lock_guard<std::mutex> lock(mutex_);
    open_.emplace(++last_, call);
    return last_;
  }
  void Show(uint64_t number, const weir_door_request& request) { handler_.call(handler_.arg, number, &request); }
  void Cancelled(uint64_t number) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (!open_.contains(number)) return;
    }
    handler_.cancelled(handler_.arg, number);
  }
  void Ended() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (--live_ == 0) idle_.notify_all();
  }

  const std::string& service() const { return service_; }
  Health health() const { return refusing_ ? Health::kNotServing : Health::kServing; }
  /// The watcher ends with this.
  void Forget(WatchCall* call) {
    std::shared_ptr<WatchCall> last;  // its mutex may be held by Refuse
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = watchers_.find(call);
    last = std::move(found->second);
    watchers_.erase(found);
  }

 private:
  /// The call, which nobody else answers then; null if it was answered.
  ServerCall* Take(uint64_t number) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = open_.find(number);
    if (found == open_.end()) return nullptr;
    ServerCall* const call = found->second;
    open_.erase(found);
    return call;
  }

  WatchCall* Watch() {
    auto made = std::make_shared<WatchCall>(*this);
    WatchCall* const call = made.get();
    const std::lock_guard<std::mutex> lock(mutex_);
    ++live_;
    watchers_.emplace(call, std::move(made));
    return call;
  }

  int32_t MakeCredentials(const weir_door_options& options, const weir::sdk::Error& error,
                          std::shared_ptr<grpc::ServerCredentials>& credentials) {
    if (options.tls_certificate.size == 0) {
      credentials = grpc::InsecureServerCredentials();
      return WEIR_OK;
    }
    TlsFiles files;
    if (const int32_t code = TlsFiles::Read(options, error, files); code != WEIR_OK) return code;
    tls_ = std::make_shared<RenewableCredentials>(std::move(files));
    credentials = tls_;
    return WEIR_OK;
  }

  void Build(const weir_door_options& options, std::shared_ptr<grpc::ServerCredentials> credentials) {
    const auto or_else = [](uint64_t value, uint64_t usual) {
      return static_cast<int>(std::min<uint64_t>(value == 0 ? usual : value, INT32_MAX));
    };
    grpc::ServerBuilder builder;
    builder.RegisterCallbackGenericService(this);
    builder.SetMaxReceiveMessageSize(or_else(options.max_request_bytes, INT32_MAX));
    builder.SetMaxSendMessageSize(-1);
    // A client's threads of queues hold one call each.
    builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, or_else(options.max_calls, 1024));
    builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, 8 << 10);
    builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, or_else(options.handshake_ms, 5000));
    builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, 3600 * 1000);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 10 * 1000);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 20 * 1000);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 5 * 1000);
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    connections_ = builder.experimental().AddExternalConnectionAcceptor(
        grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD, std::move(credentials));
    server_ = builder.BuildAndStart();
  }

  const weir_door_handler handler_;
  std::string service_, address_;
  Acceptor acceptor_;
  std::shared_ptr<RenewableCredentials> tls_;  // null without TLS; outlives the server, which asks it
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> connections_;
  std::unique_ptr<grpc::Server> server_;
  std::atomic<bool> refusing_{false};
  std::mutex mutex_;  // protects all below
  std::condition_variable idle_;
  std::map<uint64_t, ServerCall*> open_;  // shown to the core and not answered
  uint64_t last_ = 0;
  size_t live_ = 0;  // calls of the core, and watchers, that exist
  std::map<WatchCall*, std::shared_ptr<WatchCall>> watchers_;
};

void ServerCall::OnReadDone(bool ok) {
  if (!ok) return Finish({grpc::StatusCode::INVALID_ARGUMENT, "the call has no message"});
  grpc::Slice slice;
  std::string storage;
  weir_door_request request{};
  request.struct_size = sizeof request;
  request.method = View(method_);
  request.body = WholeOf(request_, slice, storage);
  const std::string peer = HostOfPeer(context_.peer());
  request.peer = View(peer);
  request.time_left_ns = TimeLeft(context_.deadline());
  const uint64_t number = server_.Open(this);
  number_ = number;
  server_.Show(number, request);
  // OnCancel may have come before the core knew the call. OnDone comes after this function at the earliest.
  if (context_.IsCancelled()) server_.Cancelled(number);
}

void ServerCall::OnCancel() {
  if (const uint64_t number = number_; number != 0) server_.Cancelled(number);
}

void ServerCall::OnDone() {
  Server& server = server_;
  delete this;
  server.Ended();
}

void WatchCall::OnReadDone(bool ok) {
  const Asked asked = ok ? ReadHealthRequest(request_, server_.service()) : Asked::kMalformed;
  if (asked == Asked::kMalformed) return End(kNoHealthRequest);
  {
    const std::lock_guard<std::recursive_mutex> lock(mutex_);
    asked_ = asked;
  }
  Update();
}

void WatchCall::Update() {
  const std::lock_guard<std::recursive_mutex> lock(mutex_);
  const Health health = asked_ == Asked::kKnown ? server_.health() : Health::kUnknown;
  if (asked_ == Asked::kMalformed || writing_ || ended_ || shown_ == health) return;
  writing_ = true;
  shown_ = health;
  reply_ = HealthReply(health);
  StartWrite(&reply_);
}

void WatchCall::OnWriteDone(bool ok) {
  const std::lock_guard<std::recursive_mutex> lock(mutex_);
  writing_ = !ok;  // after a failure nobody is told
  Update();
}

void WatchCall::End(const grpc::Status& status) {
  const std::lock_guard<std::recursive_mutex> lock(mutex_);
  if (std::exchange(ended_, true)) return;
  Finish(status);
}

void WatchCall::OnDone() {
  Server& server = server_;
  server.Forget(this);
  server.Ended();
}

Server* Of(weir_door_server* server) { return reinterpret_cast<Server*>(server); }

}  // namespace

int32_t Serve(const weir_door_options* options, const weir_door_handler* handler, weir_door_server** server,
              weir_error* error) noexcept {
  return weir::sdk::Guard(error, [&] {
    auto made = std::make_unique<Server>(*handler);
    if (const int32_t code = made->Start(*options, weir::sdk::Error(error)); code != WEIR_OK) return code;
    *server = reinterpret_cast<weir_door_server*>(made.release());
    return static_cast<int32_t>(WEIR_OK);
  });
}

void Address(weir_door_server* server, void (*emit)(void* ctx, weir_str text), void* ctx) noexcept {
  emit(ctx, View(Of(server)->address()));
}

void Answer(weir_door_server* server, uint64_t call, int32_t code, weir_str message, weir_str body) noexcept {
  static_cast<void>(weir::sdk::Guard(nullptr, [&] {
    Of(server)->Answer(call, code, message, body);
    return WEIR_OK;
  }));
}

void Refuse(weir_door_server* server) noexcept { Of(server)->Refuse(); }

void Stop(weir_door_server* server) noexcept {
  static_cast<void>(weir::sdk::Guard(nullptr, [&] {
    const std::unique_ptr<Server> own(Of(server));
    own->Stop();
    return WEIR_OK;
  }));
}

int32_t Renew(weir_door_server* server, const weir_door_options* options, weir_error* error) noexcept {
  return weir::sdk::Guard(error, [&] { return Of(server)->Renew(*options, weir::sdk::Error(error)); });
}

}  // namespace weir_grpc
