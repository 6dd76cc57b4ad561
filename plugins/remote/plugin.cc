// The plugin `remote`: messages between processes over TCP and Unix sockets.
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "plugins/remote/channel.h"
#include "plugins/remote/io.h"
#include "plugins/remote/listener.h"
#include "sdk/abi/transport.h"
#include "sdk/cpp/plugin.h"

struct weir_listener {
  std::shared_ptr<weir_remote::Listener> impl;
};
struct weir_channel {
  std::shared_ptr<weir_remote::Channel> impl;
};

namespace weir_remote {
namespace {

using weir::sdk::Error;
using weir::sdk::Guard;
using weir::sdk::Str;
using weir::sdk::ToView;

constexpr char kBuildText[] = "weir 1.0";

std::atomic<bool> body_crc{true}, share_memory{true};
std::atomic<uint64_t> next_call{1};

WireError ProtectionOf(const weir_transport_end* self, Protection& protection) {
  if (self == nullptr || self->struct_size < sizeof(weir_transport_end)) {
    return Malformed("the record of this process is too short");
  }
  if (self->incarnation == 0) return Malformed("the incarnation 0 means none");
  protection.token = ToView(self->token);
  const TlsFiles files{std::string(ToView(self->tls_certificate)), std::string(ToView(self->tls_key)),
                       std::string(ToView(self->tls_authorities))};
  return files.any() ? LoadTls(files, protection.tls) : WireError();
}

WireError OptionsOf(const weir_transport_end* self, ConnectionOptions& options) {
  Protection protection;
  if (WireError error = ProtectionOf(self, protection); !error.ok()) return error;
  options.keys = Keyring::Make(self->incarnation, std::move(protection));
  options.self.build = kBuildText;
  options.self.job = ToView(self->job);
  options.self.task = self->task;
  options.self.incarnation = self->incarnation;
  options.self.cluster = ToView(self->cluster);
  if (self->peer_timeout_ms > 0) options.peer_timeout = std::chrono::milliseconds(self->peer_timeout_ms);
  options.body_crc = body_crc;
  if (share_memory && (self->flags & WEIR_END_SOCKET_ONLY) == 0) {
    options.self.capabilities = kCanShareMemory;
    options.self.host = HostId();
  }
  return {};
}

/// The descriptor to listen with, and the address as peers may write it.
WireError Open(const weir_transport_end& self, std::string_view wanted, int inherited, int& descriptor,
               SocketAddress& bound, std::string& address) {
  std::vector<SocketAddress> found;
  if (inherited >= 0) {
    descriptor = inherited;
  } else {
    if (WireError error = Resolve(wanted, false, found); !error.ok()) return Malformed(error.text);
    const bool protected_by =
        self.token.size > 0 || self.tls_certificate.size > 0 || (self.flags & WEIR_END_INSECURE) != 0;
    for (const SocketAddress& one : found) {
      if (IsLocal(one) || protected_by) continue;
      return {WEIR_FAILED_PRECONDITION,
              std::string(wanted) +
                  " can be reached from other machines, and neither a token nor TLS protects it; set "
                  "one, listen on localhost, or allow it by insecure_listen"};
    }
    WireError error = Malformed("the name has no address");
    for (size_t i = 0; i < found.size() && !error.ok(); ++i) error = OpenListening(found[i], descriptor);
    if (!error.ok()) {
      return {error.code, "cannot listen on " + std::string(wanted) + ": " + error.text};
    }
  }
  socklen_t size = static_cast<socklen_t>(bound.capacity());
  if (::getsockname(descriptor, reinterpret_cast<sockaddr*>(bound.data()), &size) != 0) {
    ::close(descriptor);
    return Malformed("the inherited descriptor is no socket");
  }
  bound.resize(size);
  if (wanted.starts_with("unix:")) {
    address = wanted;
    return {};
  }
  const std::string host = inherited >= 0 ? HostText(bound) : std::string(wanted.substr(0, wanted.rfind(':')));
  const bool bare = host.find(':') != std::string::npos && host.front() != '[';
  address = (bare ? "[" + host + "]" : host) + ":" + std::to_string(PortOf(bound));
  return {};
}

/// A record of the core, which may be older and have fewer fields at its end: these are null.
template <class Record>
Record Known(const Record& given) {
  Record known{};
  std::memcpy(&known, &given, std::min<size_t>(given.struct_size, sizeof known));
  return known;
}

int32_t Listen(const weir_transport_end* self, const weir_service* service, weir_str address, int32_t inherited,
               weir_listener** listener, weir_error* error) noexcept {
  return Guard(error, [&]() -> int32_t {
    const auto shared = std::make_shared<const Service>(Known(*service));
    ConnectionOptions options;
    if (const WireError bad = OptionsOf(self, options); !bad.ok()) return Error(error).Fail(bad.code, bad.text);
    int descriptor = -1;
    SocketAddress bound;
    std::string text;
    const WireError failed = Open(*self, ToView(address), inherited, descriptor, bound, text);
    if (!failed.ok()) return Error(error).Fail(failed.code, failed.text);
    if (!IsLocal(bound) && (self->flags & WEIR_END_INSECURE) == 0) options.keys->Need();
    const auto made = std::make_shared<Listener>(descriptor, bound, std::move(text), shared, std::move(options));
    *listener = new weir_listener{made};
    Io::Get().Post([made] { made->Start(); });
    return WEIR_OK;
  });
}

weir_str Address(const weir_listener* listener) noexcept { return Str(listener->impl->address()); }

void Drain(weir_listener* listener) noexcept {
  static_cast<void>(Guard(nullptr, [&] {
    Io::Get().Post([impl = listener->impl] { impl->Drain(); });
    return WEIR_OK;
  }));
}

void CloseListener(weir_listener* listener) noexcept {
  static_cast<void>(Guard(nullptr, [&] {
    const std::unique_ptr<weir_listener> owned(listener);
    Io::Get().RunAndWait([impl = owned->impl] { impl->Close(); });
    return WEIR_OK;
  }));
}

int32_t Connect(const weir_transport_end* self, weir_str address, weir_str peer, weir_channel** channel,
                weir_error* error) noexcept {
  return Guard(error, [&]() -> int32_t {
    ConnectionOptions options;
    if (const WireError bad = OptionsOf(self, options); !bad.ok()) return Error(error).Fail(bad.code, bad.text);
    std::vector<SocketAddress> found;
    const WireError parsed = Resolve(ToView(address), true, found);
    if (parsed.code == WEIR_INVALID_ARGUMENT) return Error(error).Fail(parsed.code, parsed.text);
    *channel = new weir_channel{
        std::make_shared<Channel>(std::string(ToView(address)), std::string(ToView(peer)), std::move(options))};
    return WEIR_OK;
  });
}

void Disconnect(weir_channel* channel) noexcept {
  static_cast<void>(Guard(nullptr, [&] {
    const std::unique_ptr<weir_channel> owned(channel);
    Io::Get().Post([impl = std::move(owned->impl)] { impl->Close(); });
    return WEIR_OK;
  }));
}

uint64_t Call(weir_channel* channel, const weir_message* request, uint32_t flags, uint64_t time_left_ms,
              const weir_receiver* receiver) noexcept {
  const uint64_t number = next_call.fetch_add(1, std::memory_order_relaxed);
  bool made = false;
  const int32_t code = Guard(nullptr, [&] {
    auto call = std::make_shared<ClientCall>(number, *request, flags, time_left_ms, Known(*receiver));
    made = true;
    const auto now = [channel] { return channel->impl->open(); };
    Io::Get().RunSoon(now, [impl = channel->impl, call = std::move(call)] { impl->Begin(call); });
    return WEIR_OK;
  });
  constexpr std::string_view kNoMemory = "out of host memory";
  if (code != WEIR_OK && !made) receiver->done(receiver->ctx, WEIR_RESOURCE_EXHAUSTED, Str(kNoMemory));
  return number;
}

void Cancel(weir_channel* channel, uint64_t call) noexcept {
  static_cast<void>(Guard(nullptr, [&] {
    Io::Get().Post([impl = channel->impl, call] { impl->Cancel(call); });
    return WEIR_OK;
  }));
}

void ReplyTo(weir_incoming* incoming, int32_t code, weir_str text, const weir_message* message) noexcept {
  static_cast<void>(Guard(nullptr, [&] {
    Incoming::Reply(incoming, code, text, message);
    return WEIR_OK;
  }));
}

int32_t Renew(const weir_transport_end* self, weir_error* error) noexcept {
  return Guard(error, [&]() -> int32_t {
    Protection protection;
    if (const WireError bad = ProtectionOf(self, protection); !bad.ok()) return Error(error).Fail(bad.code, bad.text);
    const WireError failed = Keyring::Renew(self->incarnation, protection);
    return failed.ok() ? WEIR_OK : Error(error).Fail(failed.code, failed.text);
  });
}

int32_t Receive(int32_t (*over)(void* arg), void* arg, uint64_t most_us) noexcept {
  constexpr uint64_t kMostUs = 1000000;
  const auto most = std::chrono::microseconds(std::min(most_us, kMostUs));
  bool received = false;
  static_cast<void>(Guard(nullptr, [&] {
    if (most_us == 0) {
      Io::Get().HandOver();
      return WEIR_OK;
    }
    received = Io::Get().Receive([over, arg] { return over(arg) != 0; }, most);
    return WEIR_OK;
  }));
  return received ? 1 : 0;
}

int32_t RunAfter(void (*fn)(void* arg), void* arg) noexcept { return Io::Get().RunAfter(fn, arg) ? 1 : 0; }

int32_t Tell(weir_channel* channel, uint64_t call, const weir_message* message) noexcept {
  bool taken = false;
  static_cast<void>(Guard(nullptr, [&] {
    std::optional<Told> told = Told::Of(*message);
    if (!told) return WEIR_OK;
    const auto now = [channel] { return channel->impl->open(); };
    const auto sent = std::make_shared<Told>(*std::move(told));
    Io::Get().RunSoon(now, [impl = channel->impl, call, sent] { impl->Tell(call, std::move(*sent)); });
    taken = true;
    return WEIR_OK;
  }));
  return taken ? 1 : 0;
}

int32_t TellCaller(weir_incoming* incoming, const weir_message* message) noexcept {
  bool taken = false;
  static_cast<void>(Guard(nullptr, [&] {
    taken = Incoming::Tell(*incoming, *message);
    return WEIR_OK;
  }));
  return taken ? 1 : 0;
}

constexpr weir_transport_api kTable = {sizeof(weir_transport_api),
                                       0,
                                       {"weir", 4},
                                       &Listen,
                                       &Address,
                                       &Drain,
                                       &CloseListener,
                                       &Connect,
                                       &Disconnect,
                                       &Call,
                                       &Cancel,
                                       &ReplyTo,
                                       &Renew,
                                       &Receive,
                                       &RunAfter,
                                       &Tell,
                                       &TellCaller};

constexpr weir_option_spec kBodyCrc = {sizeof(weir_option_spec),
                                       WEIR_VALUE_BOOL,
                                       0,
                                       0,
                                       Str("body_crc"),
                                       Str("Checksums of tensors on the way."),
                                       {Str("body_crc"), WEIR_VALUE_BOOL, 0, {.i = 1}},
                                       0,
                                       0};
constexpr weir_option_spec kSharedMemory = {sizeof(weir_option_spec),
                                            WEIR_VALUE_BOOL,
                                            0,
                                            0,
                                            Str("shared_memory"),
                                            Str("Large tensors between processes of one host and user go through "
                                                "memory that both map."),
                                            {Str("shared_memory"), WEIR_VALUE_BOOL, 0, {.i = 1}},
                                            0,
                                            0};
constexpr int64_t kUsualPollUs = 200;
constexpr weir_option_spec kPoll = {sizeof(weir_option_spec),
                                    WEIR_VALUE_INT,
                                    0,
                                    1,
                                    Str("poll_us"),
                                    Str("Longest time in us that a thread looks for messages before it sleeps, where "
                                        "they have come that soon lately. 0: it sleeps at once."),
                                    {Str("poll_us"), WEIR_VALUE_INT, 0, {.i = kUsualPollUs}},
                                    0,
                                    100000};
constexpr const weir_option_spec* kOptions[] = {&kBodyCrc, &kSharedMemory, &kPoll};

struct Sockets {
  static constexpr uint32_t kKind = WEIR_KIND_TRANSPORT;
  static const void* Interface(std::string_view id, std::string_view) {
    return id == WEIR_TRANSPORT_INTERFACE ? &kTable : nullptr;
  }
  static std::span<const weir_option_spec* const> Options() { return kOptions; }
  static int32_t Start(const weir::sdk::Options& options, const Error&) {
    body_crc = options.Bool("body_crc", true);
    share_memory = options.Bool("shared_memory", true);
    // With one CPU, who looks for a message of this machine keeps it from being sent.
    const int64_t poll_us = std::thread::hardware_concurrency() == 1 ? 0 : options.Int("poll_us", kUsualPollUs);
    Io::Get().PollFor(std::chrono::microseconds(poll_us));
    return WEIR_OK;
  }
  static void Stop() { Io::Get().Stop(); }
};

}  // namespace
}  // namespace weir_remote

WEIR_PLUGIN("remote", "0.1.0", "weir", "", weir_remote::Sockets)
