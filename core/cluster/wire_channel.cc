#include "core/cluster/wire_channel.h"

#include <algorithm>
#include <utility>

#include "core/base/errors.h"
#include "core/kernel/host.h"

namespace weir::cluster {
namespace {

/// A call and what keeps the plugin until it ends.
struct CallBox {
  std::unique_ptr<WireCall> call;
  std::shared_ptr<const void> keep;
};

Status StatusOf(int32_t code, weir_str text) {
  if (code == WEIR_OK) return Status();
  const bool known = code > 0 && code <= static_cast<int32_t>(Code::kUnauthenticated);
  return Status(known ? static_cast<Code>(code) : Code::kUnknown, std::string(kernel::Text(text)));
}

int32_t PlaceReply(void* ctx, const weir_arrival* reply, void** to, weir_error* error) {
  const std::string_view meta(static_cast<const char*>(reply->meta.data), reply->meta.size);
  const Status status = static_cast<CallBox*>(ctx)->call->Place(meta, {reply->body_bytes, reply->body_count}, to);
  return status.ok() ? WEIR_OK : device::Report(error, status);
}

int32_t TakeTold(void* ctx, const weir_arrival* message, const void* body, weir_error* error) {
  const std::string_view meta(static_cast<const char*>(message->meta.data), message->meta.size);
  const std::span<const uint64_t> sizes(message->body_bytes, message->body_count);
  const Status status = static_cast<CallBox*>(ctx)->call->Told(message->method, meta, sizes, body);
  return status.ok() ? WEIR_OK : device::Report(error, status);
}

void EndCall(void* ctx, int32_t code, weir_str text) {
  const std::unique_ptr<CallBox> box(static_cast<CallBox*>(ctx));
  box->call->Done(StatusOf(code, text));
}

/// The record of a message, which refers to the arguments.
weir_message MessageOf(Method method, const std::string& meta, const std::vector<weir_bytes>& bodies) {
  weir_message message{};
  message.struct_size = sizeof message;
  message.method = static_cast<uint32_t>(method);
  message.meta = {meta.data(), meta.size()};
  message.bodies = bodies.data();
  message.body_count = bodies.size();
  return message;
}

std::vector<weir_bytes> BytesOf(const Bodies& bodies) {
  std::vector<weir_bytes> bytes;
  for (const std::span<const std::byte> body : bodies) bytes.push_back({body.data(), body.size()});
  return bytes;
}

}  // namespace

weir_transport_end EndOf(const LocalEnd& self) {
  weir_transport_end end{};
  end.struct_size = sizeof end;
  end.flags = (self.security.insecure_listen ? uint32_t{WEIR_END_INSECURE} : 0) |
              (self.socket_only ? uint32_t{WEIR_END_SOCKET_ONLY} : 0);
  end.job = kernel::ViewOf(self.task.job);
  end.task = static_cast<uint32_t>(self.task.index);
  end.peer_timeout_ms = static_cast<uint32_t>(std::clamp<int64_t>(self.peer_timeout.count(), 1, INT32_MAX));
  end.incarnation = self.incarnation;
  end.cluster = kernel::ViewOf(self.cluster_id);
  end.token = kernel::ViewOf(self.security.token);
  end.tls_certificate = kernel::ViewOf(self.security.tls_certificate);
  end.tls_key = kernel::ViewOf(self.security.tls_key);
  end.tls_authorities = kernel::ViewOf(self.security.tls_authorities);
  return end;
}

Status WireCall::Told(uint32_t method, std::string_view, std::span<const uint64_t>, const void*) {
  return InvalidArgument("{} came before a reply", NameOf(static_cast<Method>(method)));
}

bool Tells(const kernel::TransportEntry& transport) {
  return WEIR_HAS(transport.api, tell) && WEIR_HAS(transport.api, tell_caller);
}

bool TellBy(Method method, const std::string& meta, const Bodies& bodies,
            const std::function<int32_t(const weir_message&)>& tell) {
  size_t total = 0;
  for (const std::span<const std::byte> body : bodies) total += body.size();
  if (total > WEIR_TRANSPORT_TOLD_BYTES || meta.size() > WEIR_TRANSPORT_META_BYTES) return false;
  const std::vector<weir_bytes> sent = BytesOf(bodies);
  return tell(MessageOf(method, meta, sent)) != 0;
}

uint64_t TimeLeft(Clock::time_point deadline) {
  if (deadline == Clock::time_point::max()) return UINT64_MAX;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return left > 0 ? static_cast<uint64_t>(left) : 0;
}

bool TransportHelp::Receive(const std::function<bool()>& over) const {
  // Nothing wakes the thread for a cancellation, and a longer wait gains nothing.
  constexpr uint64_t kMostUs = 2000;
  if (!WEIR_HAS(transport_.api, receive)) return false;
  if (!over) return transport_.api->receive(nullptr, nullptr, 0) != 0;
  const auto ask = [](void* arg) -> int32_t { return (*static_cast<const std::function<bool()>*>(arg))() ? 1 : 0; };
  const bool received = transport_.api->receive(ask, const_cast<std::function<bool()>*>(&over), kMostUs) != 0;
  if (received && !over()) transport_.api->receive(nullptr, nullptr, 0);  // the caller will sleep
  return received;
}

Result<std::shared_ptr<WireChannel>> WireChannel::Make(const kernel::TransportEntry& transport, const TaskName& task,
                                                       const std::string& address, const LocalEnd& self) {
  LocalEnd named = self;
  if (named.incarnation == 0) named.incarnation = RandomId();
  const weir_transport_end end = EndOf(named);
  const std::string peer = task.job.empty() ? "" : fmt::format("/job:{}/task:{}", task.job, task.index);
  weir_channel* made = nullptr;
  WEIR_TRY(kernel::CallPlugin("connect", [&](weir_error* error) {
    return transport.api->connect(&end, kernel::ViewOf(address), kernel::ViewOf(peer), &made, error);
  }));
  if (made == nullptr) return Internal("the transport '{}' made no channel", transport.plugin);
  return std::shared_ptr<WireChannel>(new WireChannel(transport, made));
}

WireChannel::~WireChannel() { transport_.api->disconnect(channel_); }

uint64_t WireChannel::Start(std::unique_ptr<WireCall> call, Method method, const std::string& meta,
                            const Bodies& bodies, uint32_t flags, Clock::time_point deadline) {
  const std::vector<weir_bytes> sent = BytesOf(bodies);
  const weir_message message = MessageOf(method, meta, sent);
  weir_receiver receiver{};
  receiver.struct_size = sizeof receiver;
  receiver.ctx = new CallBox{std::move(call), transport_.keep};
  receiver.place = &PlaceReply;
  receiver.done = &EndCall;
  receiver.told = &TakeTold;
  return transport_.api->call(channel_, &message, flags, TimeLeft(deadline), &receiver);
}

bool WireChannel::Tell(uint64_t number, Method method, const std::string& meta, const Bodies& bodies) {
  return TellBy(method, meta, bodies, [this, number](const weir_message& message) {
    return transport_.api->tell(channel_, number, &message);
  });
}

void WireChannel::Cancel(uint64_t number) { transport_.api->cancel(channel_, number); }

}  // namespace weir::cluster
