// Accepts connections and serves their requests.
#ifndef WEIR_PLUGINS_REMOTE_LISTENER_H_
#define WEIR_PLUGINS_REMOTE_LISTENER_H_

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <set>
#include <string>

#include "plugins/remote/connection.h"

namespace weir_remote {

/// The core's service, released with the last reference.
class Service {
 public:
  explicit Service(const weir_service& service) : api_(service) {}
  ~Service() { api_.release(api_.ctx); }
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;
  const weir_service& api() const { return api_; }

 private:
  const weir_service api_;
};

/// A request of a peer. `ended` is told to the core when the last reference is dropped.
class Incoming final : public Stream, public std::enable_shared_from_this<Incoming> {
 public:
  Incoming(std::shared_ptr<const Service> service, std::weak_ptr<Connection> connection, std::string peer,
           uint64_t incarnation);
  ~Incoming() override;

  WireError Begin(const MessageHead& head, void** to) override;
  void Complete() override;
  void End(const WireError& why) override;
  WireError Told(const MessageHead& head, std::span<const std::byte> body) override;

  /// From any thread, before Reply. False for a message that is too large.
  static bool Tell(const weir_incoming& handle, const weir_message& message);
  /// From any thread. `message` is null after an error.
  static void Reply(weir_incoming* handle, int32_t code, weir_str text, const weir_message* message);

 private:
  const std::shared_ptr<const Service> service_;
  const std::weak_ptr<Connection> connection_;
  const std::string peer_;
  const uint64_t incarnation_;
  void* call_ = nullptr;
  std::unique_ptr<weir_incoming> handle_;  // until the core has it
  bool begun_ = false, ended_ = false, replied_ = false;
};

/// All but the constructor and the address inside Io.
class Listener final : public ConnectionUser, public std::enable_shared_from_this<Listener> {
 public:
  /// Owns the listening descriptor.
  Listener(int descriptor, const SocketAddress& bound, std::string address, std::shared_ptr<const Service> service,
           ConnectionOptions options);
  ~Listener() override;
  const std::string& address() const { return address_; }

  void Start();
  void Drain();
  void Close();

  WireError Opened(Connection& connection) override;
  std::shared_ptr<Stream> Requested(Connection& connection) override;
  void Closed(Connection& connection, const WireError& why) override;

 private:
  static constexpr size_t kMostStrangers = 64;  // connections before the end of their handshake

  void Accept();
  void Take(Socket socket, const SocketAddress& from);

  const std::string address_, path_;  // of a Unix socket
  std::shared_ptr<const Service> service_;
  const ConnectionOptions options_;
  asio::basic_socket_acceptor<asio::generic::stream_protocol> acceptor_;
  asio::steady_timer timer_;
  SocketAddress from_;
  std::set<std::shared_ptr<Connection>> connections_;
  Incarnations incarnations_;
  bool draining_ = false, closed_ = false, counted_ = false;
};

}  // namespace weir_remote

#endif  // WEIR_PLUGINS_REMOTE_LISTENER_H_
