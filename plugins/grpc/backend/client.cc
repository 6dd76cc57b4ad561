#include "plugins/grpc/backend/client.h"

#include <grpcpp/channel.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>

#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "plugins/grpc/backend/bytes.h"
#include "sdk/cpp/status.h"

namespace weir_grpc {
namespace {

class Client {
 public:
  int32_t Start(const weir_door_options& options, const weir::sdk::Error& error) {
    service_ = Copy(options.service);
    std::shared_ptr<grpc::ChannelCredentials> credentials = grpc::InsecureChannelCredentials();
    if (options.tls_authorities.size != 0) {
      grpc::SslCredentialsOptions tls;
      if (!ReadFile(options.tls_authorities, tls.pem_root_certs) || tls.pem_root_certs.empty()) {
        return error.InvalidArgument(weir::sdk::ToView(options.tls_authorities), ": no certificates can be read");
      }
      if (options.tls_certificate.size != 0 &&
          (!ReadFile(options.tls_certificate, tls.pem_cert_chain) || !ReadFile(options.tls_key, tls.pem_private_key) ||
           tls.pem_cert_chain.empty() || tls.pem_private_key.empty())) {
        return error.InvalidArgument(weir::sdk::ToView(options.tls_certificate),
                                     ": no certificate and key can be read");
      }
      credentials = grpc::SslCredentials(tls);
    }
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(-1);
    arguments.SetMaxSendMessageSize(-1);
    arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
    arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    stub_ = std::make_unique<grpc::GenericStub>(
        grpc::CreateCustomChannel(Copy(options.address), std::move(credentials), arguments));
    return WEIR_OK;
  }

  using Done = void (*)(void* arg, int32_t code, weir_str message, weir_str body);
  void Begin(uint64_t number, const weir_door_request& request, Done done, void* arg) {
    auto made = std::make_unique<Running>();
    Running& call = *made;
    call.request = BufferOf(request.body);
    if (request.time_left_ns != INT64_MAX) {
      call.context.set_deadline(std::chrono::system_clock::now() + std::chrono::nanoseconds(request.time_left_ns));
    }
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      running_.emplace(number, std::move(made));
    }
    stub_->UnaryCall(&call.context, "/" + service_ + "/" + Copy(request.method), grpc::StubOptions(), &call.request,
                     &call.reply, [this, number, done, arg](const grpc::Status& status) {
                       End(number, status, done, arg);
                     });
  }
  void Cancel(uint64_t number) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = running_.find(number);
    if (found != running_.end()) found->second->context.TryCancel();
  }
  void Stop() {
    std::unique_lock<std::mutex> lock(mutex_);
    for (const auto& [number, call] : running_) call->context.TryCancel();
    idle_.wait(lock, [&] { return running_.empty(); });
  }

 private:
  struct Running {
    grpc::ClientContext context;
    grpc::ByteBuffer request, reply;
  };
  void End(uint64_t number, const grpc::Status& status, Done done, void* arg) {
    grpc::ByteBuffer reply;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      reply.Swap(&running_.at(number)->reply);
    }
    grpc::Slice slice;
    std::string storage;
    const weir_str body = status.ok() ? WholeOf(reply, slice, storage) : weir_str{};
    done(arg, static_cast<int32_t>(status.error_code()), View(status.error_message()), body);
    const std::lock_guard<std::mutex> lock(mutex_);
    running_.erase(number);
    if (running_.empty()) idle_.notify_all();
  }

  std::string service_;
  std::unique_ptr<grpc::GenericStub> stub_;
  std::mutex mutex_;  // protects all below
  std::condition_variable idle_;
  std::map<uint64_t, std::unique_ptr<Running>> running_;
};

Client* ClientOf(weir_door_client* client) { return reinterpret_cast<Client*>(client); }

}  // namespace

int32_t Connect(const weir_door_options* options, weir_door_client** client, weir_error* error) noexcept {
  return weir::sdk::Guard(error, [&] {
    auto made = std::make_unique<Client>();
    if (const int32_t code = made->Start(*options, weir::sdk::Error(error)); code != WEIR_OK) return code;
    *client = reinterpret_cast<weir_door_client*>(made.release());
    return static_cast<int32_t>(WEIR_OK);
  });
}

int32_t Call(weir_door_client* client, uint64_t call, const weir_door_request* request,
             void (*done)(void* arg, int32_t code, weir_str message, weir_str body), void* arg,
             weir_error* error) noexcept {
  return weir::sdk::Guard(error, [&] {
    ClientOf(client)->Begin(call, *request, done, arg);
    return static_cast<int32_t>(WEIR_OK);
  });
}

void Cancel(weir_door_client* client, uint64_t call) noexcept {
  static_cast<void>(weir::sdk::Guard(nullptr, [&] {
    ClientOf(client)->Cancel(call);
    return WEIR_OK;
  }));
}

void Disconnect(weir_door_client* client) noexcept {
  static_cast<void>(weir::sdk::Guard(nullptr, [&] {
    const std::unique_ptr<Client> own(ClientOf(client));
    own->Stop();
    return WEIR_OK;
  }));
}

}  // namespace weir_grpc
