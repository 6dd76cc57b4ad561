#include "plugins/grpc/backend/acceptor.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace weir_grpc {
namespace {

constexpr int kBacklog = 512;

void CloseFd(int& fd) {
  if (fd >= 0) close(fd);
  fd = -1;
}

/// The address without its port.
std::string HostOf(const sockaddr_storage& address) {
  char text[INET6_ADDRSTRLEN] = {};
  if (address.ss_family == AF_INET) {
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in&>(address).sin_addr, text, sizeof text);
  } else if (address.ss_family == AF_INET6) {
    inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6&>(address).sin6_addr, text, sizeof text);
  }
  return text;
}

}  // namespace

std::string Acceptor::Listen(const std::string& host, const std::string& port, int inherited, bool* taken) {
  *taken = false;
  wake_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  polled_ = epoll_create1(EPOLL_CLOEXEC);
  ReplaceSpare();
  if (wake_ < 0 || polled_ < 0) return std::string("no descriptors are left: ") + std::strerror(errno);
  if (inherited >= 0) {
    listening_ = inherited;
    int listens = 0;
    socklen_t size = sizeof listens;
    if (getsockopt(inherited, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 || listens == 0) {
      return "the inherited descriptor is no listening socket";
    }
    fcntl(inherited, F_SETFL, fcntl(inherited, F_GETFL) | O_NONBLOCK);
    return "";
  }
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (const int code = getaddrinfo(host.empty() ? nullptr : host.c_str(), port.c_str(), &hints, &found); code != 0) {
    return host + ": " + gai_strerror(code);
  }
  std::string why = "it has no address";
  for (const addrinfo* each = found; each != nullptr && listening_ < 0; each = each->ai_next) {
    int fd = socket(each->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const int on = 1;
    if (fd >= 0) setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (fd >= 0 && bind(fd, each->ai_addr, each->ai_addrlen) == 0 && listen(fd, kBacklog) == 0) {
      listening_ = fd;
      break;
    }
    *taken = errno == EADDRINUSE;
    why = std::strerror(errno);
    CloseFd(fd);
  }
  freeaddrinfo(found);
  return listening_ >= 0 ? "" : host + ":" + port + ": " + why;
}

std::string Acceptor::Address() const {
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  if (getsockname(listening_, reinterpret_cast<sockaddr*>(&bound), &size) != 0) return "";
  const bool v6 = bound.ss_family == AF_INET6;
  const uint16_t port = ntohs(v6 ? reinterpret_cast<const sockaddr_in6&>(bound).sin6_port
                                 : reinterpret_cast<const sockaddr_in&>(bound).sin_port);
  return (v6 ? "[" + HostOf(bound) + "]" : HostOf(bound)) + ":" + std::to_string(port);
}

void Acceptor::Start(const AcceptLimits& limits, Take take) {
  limits_ = limits;
  take_ = std::move(take);
  for (const int fd : {wake_, listening_}) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = fd;
    epoll_ctl(polled_, EPOLL_CTL_ADD, fd, &event);
  }
  thread_ = std::thread([this] { Loop(); });
}

void Acceptor::Stop() {
  if (thread_.joinable()) {
    const uint64_t one = 1;
    static_cast<void>(!write(wake_, &one, sizeof one));
    thread_.join();
  }
  for (auto& [copy, watched] : watched_) close(copy);
  watched_.clear();
  for (int* const fd : {&listening_, &wake_, &polled_, &spare_}) CloseFd(*fd);
}

void Acceptor::Loop() {
  for (;;) {
    epoll_event events[64];
    const int count = epoll_wait(polled_, events, 64, -1);
    if (count < 0 && errno != EINTR) return;
    for (int i = 0; i < count; ++i) {
      const int fd = events[i].data.fd;
      if (fd == wake_) return;
      if (fd == listening_) AcceptOne();
      else Forget(fd);
    }
  }
}

void Acceptor::ReplaceSpare() { spare_ = open("/dev/null", O_RDONLY | O_CLOEXEC); }

void Acceptor::AcceptOne() {
  sockaddr_storage from{};
  socklen_t size = sizeof from;
  int fd = accept4(listening_, reinterpret_cast<sockaddr*>(&from), &size, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd < 0 && (errno == EMFILE || errno == ENFILE)) {
    // The connection is taken and closed: it would otherwise wake this thread for ever.
    CloseFd(spare_);
    fd = accept4(listening_, nullptr, nullptr, SOCK_CLOEXEC);
    CloseFd(fd);
    ReplaceSpare();
    return;
  }
  if (fd < 0) return;
  const std::string host = HostOf(from);
  if (watched_.size() >= limits_.connections || of_host_[host] >= limits_.connections_of_host) return CloseFd(fd);
  const int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
  epoll_event event{};
  event.events = EPOLLRDHUP | EPOLLET;  // and EPOLLHUP: the user shuts the connection down before it closes it
  event.data.fd = copy;
  if (copy < 0 || epoll_ctl(polled_, EPOLL_CTL_ADD, copy, &event) != 0) {
    if (copy >= 0) close(copy);
    return CloseFd(fd);
  }
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  watched_[copy] = {copy, host};
  ++of_host_[host];
  take_(fd);
}

void Acceptor::Forget(int copy) {
  const auto found = watched_.find(copy);
  if (found == watched_.end()) return;
  const auto host = of_host_.find(found->second.host);
  if (host != of_host_.end() && --host->second == 0) of_host_.erase(host);
  watched_.erase(found);
  epoll_ctl(polled_, EPOLL_CTL_DEL, copy, nullptr);  // the connection may have another descriptor yet
  close(copy);
}

}  // namespace weir_grpc
