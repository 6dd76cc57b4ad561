// The way to one address: connects when it is called, and again after a failure.
#ifndef WEIR_PLUGINS_REMOTE_CHANNEL_H_
#define WEIR_PLUGINS_REMOTE_CHANNEL_H_

#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "plugins/remote/connection.h"

namespace weir_remote {

class Channel;

/// A call of this process. Its end is told to the core when the last reference is dropped.
class ClientCall final : public Stream {
 public:
  ClientCall(uint64_t number, const weir_message& request, uint32_t flags, uint64_t time_left_ms,
             const weir_receiver& receiver);
  ~ClientCall() override;

  WireError Begin(const MessageHead& head, void** to) override;
  void Complete() override { Finish({}); }
  void End(const WireError& why) override { Finish(why); }
  WireError Told(const MessageHead& head, std::span<const std::byte> body) override;

 private:
  friend class Channel;
  void Finish(WireError outcome);
  uint64_t TimeLeft() const;

  const uint64_t number_;
  const uint32_t method_, flags_;
  const std::string meta_;
  std::vector<weir_bytes> bodies_;
  std::vector<weir_remote::Told> told_;  // before the request is sent
  const Clock::time_point deadline_;
  const weir_receiver receiver_;
  std::unique_ptr<asio::steady_timer> timer_;
  std::shared_ptr<Channel> channel_;  // until it has finished
  bool finished_ = false;
  WireError outcome_{WEIR_INTERNAL, "the call was dropped"};
};

/// All but the constructor inside Io.
class Channel final : public ConnectionUser, public std::enable_shared_from_this<Channel> {
 public:
  /// `expected`: the only task that may answer; empty = any process.
  Channel(std::string address, std::string expected, ConnectionOptions options);

  void Begin(const std::shared_ptr<ClientCall>& call);
  bool open() const { return state_ == State::kOpen; }
  void Tell(uint64_t number, Told message);
  void Cancel(uint64_t number);
  void Close();

  WireError Opened(Connection& connection) override;
  std::shared_ptr<Stream> Requested(Connection&) override { return nullptr; }
  void Closed(Connection& connection, const WireError& why) override;

 private:
  friend class ClientCall;
  enum class State : uint8_t { kIdle, kConnecting, kOpen, kWaiting, kClosed };

  std::string Name() const;
  void Connect();
  void Dial(std::vector<SocketAddress> addresses, size_t at, std::string reason);
  void Fail(const WireError& why);
  void Send(const std::shared_ptr<ClientCall>& call);
  void Forget(const ClientCall& call);
  void EndCall(const std::shared_ptr<ClientCall>& call, const WireError& why);

  const std::string address_, expected_;
  const ConnectionOptions options_;
  State state_ = State::kIdle;
  uint64_t attempt_ = 0;
  Backoff backoff_;
  asio::steady_timer timer_;
  std::shared_ptr<Socket> dialled_;
  std::shared_ptr<Connection> connection_;
  std::deque<std::shared_ptr<ClientCall>> waiting_;  // not sent yet
  std::map<uint64_t, std::weak_ptr<ClientCall>> calls_;
  std::string last_reason_;
};

}  // namespace weir_remote

#endif  // WEIR_PLUGINS_REMOTE_CHANNEL_H_
