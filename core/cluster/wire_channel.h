// Calls over a plugin's channel.
#ifndef WEIR_CORE_CLUSTER_WIRE_CHANNEL_H_
#define WEIR_CORE_CLUSTER_WIRE_CHANNEL_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/cluster/transport.h"
#include "core/cluster/wire_tensors.h"
#include "core/cluster/worker_messages.h"
#include "core/kernel/transport_entry.h"
#include "core/runtime/wait_help.h"

namespace weir::cluster {

/// `self` as a transport's record, which refers to it.
weir_transport_end EndOf(const LocalEnd& self);

/// True if the transport has messages beside requests and replies.
bool Tells(const kernel::TransportEntry& transport);
/// Bytes that a message has as its bodies.
using Bodies = std::vector<std::span<const std::byte>>;
/// A message for a call, by `tell`, which gets the transport's record and gives 1 if it took it. False if it is too
/// large.
bool TellBy(Method method, const std::string& meta, const Bodies& bodies,
            const std::function<int32_t(const weir_message&)>& tell);

/// Milliseconds until a deadline, rounded up; UINT64_MAX for none.
uint64_t TimeLeft(Clock::time_point deadline);

/// A call under way. Place and Done come on a thread of the plugin.
class WireCall {
 public:
  virtual ~WireCall() = default;
  /// The reply begins. Sets `to` to memory for each of its bodies, which stays until Done.
  virtual Status Place(std::string_view meta, std::span<const uint64_t> sizes, void** to) = 0;
  /// A message before the reply; `body` has its bodies, one after the other, for this call. An error ends the call.
  virtual Status Told(uint32_t method, std::string_view meta, std::span<const uint64_t> sizes, const void* body);
  /// The last call: what Place prepared is filled, or there is no reply.
  virtual void Done(const Status& status) = 0;
};

/// Receiving by a transport while a thread waits.
class TransportHelp final : public runtime::WaitHelp {
 public:
  explicit TransportHelp(kernel::TransportEntry transport) : transport_(std::move(transport)) {}
  bool Receive(const std::function<bool()>& over) const override;

 private:
  const kernel::TransportEntry transport_;
};

/// A way to one address. Thread-safe.
class WireChannel {
 public:
  /// `task`: the only one that may answer; empty = any process.
  static Result<std::shared_ptr<WireChannel>> Make(const kernel::TransportEntry& transport, const TaskName& task,
                                                   const std::string& address, const LocalEnd& self);
  ~WireChannel();
  WireChannel(const WireChannel&) = delete;
  WireChannel& operator=(const WireChannel&) = delete;

  /// `flags`: WEIR_CALL_*. The bodies must stay until Done, for which `call` may hold them. The result is for Cancel.
  uint64_t Start(std::unique_ptr<WireCall> call, Method method, const std::string& meta, const Bodies& bodies,
                 uint32_t flags, Clock::time_point deadline);
  void Cancel(uint64_t number);
  /// True if messages can go along with calls.
  bool tells() const { return Tells(transport_); }
  /// A message for a call that has begun. False if it is too large.
  bool Tell(uint64_t number, Method method, const std::string& meta, const Bodies& bodies);
  const runtime::WaitHelp* help() const { return &help_; }

 private:
  WireChannel(kernel::TransportEntry transport, weir_channel* channel)
      : transport_(std::move(transport)), channel_(channel), help_(transport_) {}

  const kernel::TransportEntry transport_;
  weir_channel* const channel_;
  const TransportHelp help_;
};

}  // namespace weir::cluster

#endif  // WEIR_CORE_CLUSTER_WIRE_CHANNEL_H_
