// The transport `toy`: calls between listeners and channels of one process.
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "sdk/abi/transport.h"
#include "sdk/cpp/plugin.h"

namespace toy {

using weir::sdk::Str;
using weir::sdk::ToView;

struct Server {
  weir_service service;
  std::string address;
  std::string peer;
  uint64_t incarnation;
  ~Server() { service.release(service.ctx); }
};

/// A request on its way; `call` is the core's.
struct Passing {
  std::shared_ptr<Server> server;
  weir_receiver receiver;
  uint64_t number = 0;
  void* call = nullptr;
  bool told = false;  // the caller has its end
};

std::mutex mutex;  // protects all below
std::map<std::string, std::shared_ptr<Server>> servers;
std::map<uint64_t, std::shared_ptr<Passing>> passing;
uint64_t next_port = 1, next_number = 1;

void End(const std::shared_ptr<Passing>& one, int32_t code, std::string_view text) {
  {
    const std::lock_guard<std::mutex> lock(mutex);
    if (std::exchange(one->told, true)) return;
    passing.erase(one->number);
  }
  one->receiver.done(one->receiver.ctx, code, Str(text));
}

/// Copies bodies to where the receiver wants them; `begin` gives the places.
template <class Begin>
int32_t Move(const weir_message& message, weir_arrival arrival, Begin&& begin) {
  std::vector<uint64_t> sizes;
  for (uint64_t i = 0; i < message.body_count; ++i) sizes.push_back(message.bodies[i].size);
  std::vector<void*> to(sizes.size(), nullptr);
  arrival.struct_size = sizeof arrival;
  arrival.method = message.method;
  arrival.meta = message.meta;
  arrival.body_bytes = sizes.data();
  arrival.body_count = sizes.size();
  const int32_t code = begin(arrival, to.data());
  for (size_t i = 0; code == WEIR_OK && i < sizes.size(); ++i) {
    if (sizes[i] > 0) std::memcpy(to[i], message.bodies[i].data, sizes[i]);
  }
  return code;
}

}  // namespace toy

struct weir_listener {
  std::shared_ptr<toy::Server> server;
};
struct weir_channel {
  std::string address, peer;
  uint64_t incarnation;
};
struct weir_incoming {
  std::shared_ptr<toy::Passing> one;
};

namespace toy {
namespace {

int32_t Listen(const weir_transport_end* self, const weir_service* service, weir_str, int32_t, weir_listener** listener,
               weir_error*) noexcept {
  const std::string peer = "/job:" + std::string(ToView(self->job)) + "/task:" + std::to_string(self->task);
  const std::lock_guard<std::mutex> lock(mutex);
  const std::string address = "toy:" + std::to_string(next_port++);
  const auto made = std::make_shared<Server>(*service, address, peer, self->incarnation);
  servers.emplace(address, made);
  *listener = new weir_listener{made};
  return WEIR_OK;
}
weir_str Address(const weir_listener* listener) noexcept { return Str(listener->server->address); }
void Drain(weir_listener*) noexcept {}
void Close(weir_listener* listener) noexcept {
  const std::unique_ptr<weir_listener> owned(listener);
  std::vector<std::shared_ptr<Passing>> all;
  {
    const std::lock_guard<std::mutex> lock(mutex);
    servers.erase(listener->server->address);
    for (const auto& [number, one] : passing) {
      if (one->server == listener->server) all.push_back(one);
    }
  }
  for (const auto& one : all) {
    one->server->service.cancelled(one->call, WEIR_UNAVAILABLE, Str("closed"));
    End(one, WEIR_UNAVAILABLE, "the listener " + one->server->address + " has closed");
  }
}

int32_t Connect(const weir_transport_end* self, weir_str address, weir_str peer, weir_channel** channel,
                weir_error*) noexcept {
  *channel = new weir_channel{std::string(ToView(address)), std::string(ToView(peer)), self->incarnation};
  return WEIR_OK;
}
void Disconnect(weir_channel* channel) noexcept { delete channel; }

uint64_t Call(weir_channel* channel, const weir_message* request, uint32_t, uint64_t time_left_ms,
              const weir_receiver* receiver) noexcept {
  const auto one = std::make_shared<Passing>();
  one->receiver = *receiver;
  {
    const std::lock_guard<std::mutex> lock(mutex);
    one->number = next_number++;
    const auto found = servers.find(channel->address);
    if (found != servers.end()) one->server = found->second;
    if (one->server) passing.emplace(one->number, one);
  }
  if (!one->server) {
    const std::string nobody = "nobody listens at " + channel->address;
    receiver->done(receiver->ctx, WEIR_UNAVAILABLE, Str(nobody));
    return one->number;
  }
  char text[256];
  weir_error error{};
  error.struct_size = sizeof error;
  error.message = text;
  error.capacity = sizeof text;
  weir_arrival arrival{};
  arrival.time_left_ms = time_left_ms;
  arrival.peer = Str("this process");
  arrival.incarnation = channel->incarnation;
  auto incoming = std::make_unique<weir_incoming>(one);
  const weir_service& service = one->server->service;
  const int32_t code = Move(*request, arrival, [&](const weir_arrival& to_core, void** to) {
    return service.begin(service.ctx, incoming.get(), &to_core, to, &one->call, &error);
  });
  if (code != WEIR_OK) {
    End(one, code, std::string_view(text, error.length));
  } else {
    static_cast<void>(incoming.release());
    service.received(one->call);
  }
  return one->number;
}

void Cancel(weir_channel*, uint64_t call) noexcept {
  std::shared_ptr<Passing> one;
  {
    const std::lock_guard<std::mutex> lock(mutex);
    const auto found = passing.find(call);
    if (found == passing.end()) return;
    one = found->second;
  }
  one->server->service.cancelled(one->call, WEIR_CANCELLED, Str("cancelled"));
  End(one, WEIR_CANCELLED, "cancelled");
}

void Reply(weir_incoming* incoming, int32_t code, weir_str text, const weir_message* message) noexcept {
  const std::unique_ptr<weir_incoming> owned(incoming);
  const std::shared_ptr<Passing> one = incoming->one;
  bool told = false;
  {
    const std::lock_guard<std::mutex> lock(mutex);
    told = std::exchange(one->told, true);
    passing.erase(one->number);
  }
  if (!told && message != nullptr) {
    code = Move(*message, {}, [&](const weir_arrival& to_core, void** to) {
      return one->receiver.place(one->receiver.ctx, &to_core, to, nullptr);
    });
  }
  if (!told) one->receiver.done(one->receiver.ctx, code, text);
  one->server->service.ended(one->call);
}

constexpr weir_transport_api kTable = {sizeof(weir_transport_api),
                                       0,
                                       {"toy", 3},
                                       &Listen,
                                       &Address,
                                       &Drain,
                                       &Close,
                                       &Connect,
                                       &Disconnect,
                                       &Call,
                                       &Cancel,
                                       &Reply};

struct Toy {
  static constexpr uint32_t kKind = WEIR_KIND_TRANSPORT;
  static const void* Interface(std::string_view id, std::string_view) {
    return id == WEIR_TRANSPORT_INTERFACE ? &kTable : nullptr;
  }
};

}  // namespace
}  // namespace toy

WEIR_PLUGIN("toy_transport", "1.0.0", "weir", "", toy::Toy)
