#include "plugins/remote/listener.h"

#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

struct weir_incoming {
  std::shared_ptr<weir_remote::Incoming> request;
};

namespace weir_remote {
namespace {

std::string PathOf(const SocketAddress& bound) {
  const auto* at = reinterpret_cast<const sockaddr_un*>(bound.data());
  return at->sun_family == AF_UNIX && bound.size() > sizeof(sa_family_t) ? std::string(at->sun_path) : std::string();
}

}  // namespace

Incoming::Incoming(std::shared_ptr<const Service> service, std::weak_ptr<Connection> connection, std::string peer,
                   uint64_t incarnation)
    : service_(std::move(service)),
      connection_(std::move(connection)),
      peer_(std::move(peer)),
      incarnation_(incarnation),
      handle_(std::make_unique<weir_incoming>()) {}

Incoming::~Incoming() {
  if (begun_) service_->api().ended(call_);
}

WireError Incoming::Begin(const MessageHead& head, void** to) {
  weir_arrival request = ArrivalOf(head);
  request.peer = {peer_.data(), peer_.size()};
  request.incarnation = incarnation_;
  const weir_service& api = service_->api();
  WireError error = AskCore(
      [&](weir_error* record) { return api.begin(api.ctx, handle_.get(), &request, to, &call_, record); });
  begun_ = error.ok();
  return error;
}

WireError Incoming::Told(const MessageHead& head, std::span<const std::byte> body) {
  const weir_service* const api = &service_->api();
  if (!WEIR_HAS(api, told)) return Malformed("this side takes no messages beside requests");
  if (ended_ || replied_) return {};
  weir_arrival message = ArrivalOf(head);
  message.peer = {peer_.data(), peer_.size()};
  message.incarnation = incarnation_;
  return AskCore([&](weir_error* record) { return api->told(call_, &message, body.data(), record); });
}

bool Incoming::Tell(const weir_incoming& handle, const weir_message& message) {
  std::optional<weir_remote::Told> told = weir_remote::Told::Of(message);
  if (!told) return false;
  const auto tell = [self = handle.request, sent = std::make_shared<weir_remote::Told>(*std::move(told))] {
    const std::shared_ptr<Connection> connection = self->ended_ ? nullptr : self->connection_.lock();
    if (connection) connection->Tell(self, std::move(*sent));
  };
  Io::Get().RunSoon([] { return true; }, tell);
  return true;
}

void Incoming::Complete() {
  if (ended_) return;
  handle_->request = shared_from_this();
  static_cast<void>(handle_.release());  // Reply deletes it
  service_->api().received(call_);
}

void Incoming::End(const WireError& why) {
  if (ended_ || replied_ || !begun_) return;
  ended_ = true;
  service_->api().cancelled(call_, why.code, {why.text.data(), why.text.size()});
}

void Incoming::Reply(weir_incoming* handle, int32_t code, weir_str text, const weir_message* message) {
  const std::unique_ptr<weir_incoming> owned(handle);
  std::shared_ptr<Incoming> self = std::move(owned->request);
  WireError error{code, text.size == 0 ? std::string() : std::string(text.data, text.size)};
  std::string meta;
  std::vector<weir_bytes> bodies;
  if (message != nullptr) {
    if (message->meta.size > 0) meta.assign(static_cast<const char*>(message->meta.data), message->meta.size);
    bodies.assign(message->bodies, message->bodies + message->body_count);
  }
  Io::Get().RunSoon(
      [] { return true; },
      [self = std::move(self), error = std::move(error), meta = std::move(meta), bodies = std::move(bodies)] {
        if (self->ended_) return;
        self->replied_ = true;
        const std::shared_ptr<Connection> connection = self->connection_.lock();
        if (!connection) return;
        if (!error.ok()) return connection->ReplyError(self, error);
        connection->Reply(self, meta, bodies);
      });
}

Listener::Listener(int descriptor, const SocketAddress& bound, std::string address,
                   std::shared_ptr<const Service> service, ConnectionOptions options)
    : address_(std::move(address)),
      path_(PathOf(bound)),
      service_(std::move(service)),
      options_(std::move(options)),
      acceptor_(Io::Get().context(), bound.protocol(), descriptor),
      timer_(Io::Get().context()) {}

Listener::~Listener() = default;

void Listener::Start() {
  if (closed_) return;
  Io::Get().CountListeners(1);
  counted_ = true;
  Accept();
}

void Listener::Accept() {
  if (closed_) return;
  acceptor_.async_accept(
      from_, Io::Handler([self = shared_from_this()](const boost::system::error_code& error, Socket socket) {
        if (self->closed_) return;
        if (!error) {
          self->Take(std::move(socket), self->from_);
          return self->Accept();
        }
        // Such as too many open files: the connection stays in the queue.
        self->timer_.expires_after(std::chrono::milliseconds(50));
        self->timer_.async_wait(Io::Handler([self](const boost::system::error_code& stopped) {
          if (!stopped) self->Accept();
        }));
      }));
}

void Listener::Take(Socket socket, const SocketAddress& from) {
  // Of connections that do not say who they are, the oldest makes room.
  std::shared_ptr<Connection> oldest;
  size_t strangers = 0;
  for (const std::shared_ptr<Connection>& known : connections_) {
    if (known->open()) continue;
    ++strangers;
    if (!oldest || known->since() < oldest->since()) oldest = known;
  }
  if (strangers >= kMostStrangers) {
    oldest->Fail({WEIR_RESOURCE_EXHAUSTED, "too many connections without a handshake"}, false);
  }
  const auto made = std::make_shared<Connection>(std::move(socket), HostText(from), true, options_, shared_from_this());
  connections_.insert(made);
  made->Start();
}

WireError Listener::Opened(Connection& connection) {
  const Identity peer = connection.peer()->identity;
  if (peer.job.empty()) return {};
  const Incarnations::Verdict verdict = incarnations_.Admit(peer.job, peer.task, peer.incarnation);
  if (!verdict.error.ok()) return verdict.error;
  if (verdict.fenced == 0) return {};
  const std::set<std::shared_ptr<Connection>> all = connections_;
  for (const std::shared_ptr<Connection>& other : all) {
    if (other.get() == &connection || !other->open()) continue;
    const Identity& old = other->peer()->identity;
    if (old.job != peer.job || old.task != peer.task || old.incarnation != verdict.fenced) continue;
    other->Fail({WEIR_ABORTED, "it was restarted: a newer incarnation has connected"}, true);
  }
  return {};
}

std::shared_ptr<Stream> Listener::Requested(Connection& connection) {
  const Identity& peer = connection.peer()->identity;
  std::string name = connection.where();
  if (!peer.job.empty()) name = "/job:" + peer.job + "/task:" + std::to_string(peer.task) + " at " + name;
  return std::make_shared<Incoming>(service_, connection.weak_from_this(), std::move(name), peer.incarnation);
}

void Listener::Closed(Connection& connection, const WireError&) { connections_.erase(connection.shared_from_this()); }

void Listener::Drain() {
  draining_ = true;
  for (const std::shared_ptr<Connection>& connection : connections_) connection->GoAway();
}

void Listener::Close() {
  if (closed_) return;
  closed_ = true;
  if (counted_) Io::Get().CountListeners(-1);
  timer_.cancel();
  boost::system::error_code ignored;
  acceptor_.close(ignored);
  if (!path_.empty()) ::unlink(path_.c_str());
  std::set<std::shared_ptr<Connection>> all;
  all.swap(connections_);
  for (const std::shared_ptr<Connection>& connection : all) {
    connection->Leave({WEIR_UNAVAILABLE, "this server has closed"});
  }
  service_.reset();
}

}  // namespace weir_remote
