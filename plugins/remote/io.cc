#include "plugins/remote/io.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <algorithm>
#include <boost/asio/executor_work_guard.hpp>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>

namespace weir_remote {
namespace {

using WorkGuard = asio::executor_work_guard<asio::io_context::executor_type>;

std::mutex io_mutex;  // protects the three below
bool io_running = false;
bool io_over = false;  // the process exits: the thread does not start again
std::thread::id io_thread;

constexpr std::string_view kUnix = "unix:";

/// The parts of "host:port" and "[host]:port".
WireError Split(std::string_view address, std::string& host, std::string& port) {
  const size_t colon = address.rfind(':');
  if (colon == std::string_view::npos || colon == 0) {
    return Malformed("'" + std::string(address) + "' is no address; wanted host:port or unix:/path");
  }
  host = address.substr(0, colon);
  port = address.substr(colon + 1);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  const bool digits = !port.empty() && port.size() <= 5 &&
                      std::all_of(port.begin(), port.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (!digits || std::stoul(port) > 65535) {
    return Malformed("'" + std::string(address) + "' has no port of 0 to 65535");
  }
  return {};
}

WireError ResolveUnix(std::string_view path, std::vector<SocketAddress>& to) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(name.sun_path)) {
    return Malformed("the path of a Unix socket has " + std::to_string(path.size()) + " bytes, wanted 1 to " +
                     std::to_string(sizeof(name.sun_path) - 1));
  }
  std::memcpy(name.sun_path, path.data(), path.size());
  to.push_back(SocketAddress(&name, offsetof(sockaddr_un, sun_path) + path.size() + 1));
  return {};
}

}  // namespace

Io& Io::Get() {
  // Never destroyed: exit handlers and callbacks use it.
  static Io* const io = new Io;
  return *io;
}

void Io::Leave() {
  while (!put_off_.empty()) {
    const std::function<void()> next = std::move(put_off_.front());
    put_off_.pop_front();
    next();
  }
  inside_ = std::thread::id();
}

void Io::Start() {
  // Exit handlers run in reverse order: this one before the statics that the thread uses are destroyed.
  static const struct Ending {
    ~Ending() { Io::Get().StopForGood(); }
  } ending;
  const std::lock_guard<std::mutex> lock(io_mutex);
  if (io_running || io_over) return;
  if (thread_.joinable()) thread_.join();  // it has left the lock behind
  io_running = true;
  context_.restart();
  thread_ = std::thread([this] {
    const WorkGuard guard(context_.get_executor());
    Loop();
    const std::lock_guard<std::mutex> ended(io_mutex);
    io_running = false;
  });
  io_thread = thread_.get_id();
}

void Io::Stop() {
  std::thread thread;
  {
    const std::lock_guard<std::mutex> lock(io_mutex);
    context_.stop();
    if (io_running && io_thread == std::this_thread::get_id()) return;
    thread = std::move(thread_);
  }
  if (thread.joinable()) thread.join();
}

void Io::StopForGood() {
  {
    const std::lock_guard<std::mutex> lock(io_mutex);
    io_over = true;
  }
  Stop();
}

/// Runs handlers until Stop.
void Io::Loop() {
  while (context_.run_one() > 0) {
    Clock::time_point last = Clock::now();
    while (Clock::now() - last < std::chrono::microseconds(poll_us_.load(std::memory_order_relaxed))) {
      if (context_.poll() > 0) last = Clock::now();
    }
  }
}

void Io::RunAndWait(std::function<void()> fn) {
  if (IsInside()) return Post(std::move(fn));
  {
    const std::lock_guard<std::mutex> over(io_mutex);
    if (io_over) return;
  }
  struct Shared {
    std::mutex mutex;  // protects ended
    std::condition_variable changed;
    bool ended = false;
  };
  const auto shared = std::make_shared<Shared>();
  Post([shared, fn = std::move(fn)] {
    fn();
    const std::lock_guard<std::mutex> lock(shared->mutex);
    shared->ended = true;
    shared->changed.notify_all();
  });
  std::unique_lock<std::mutex> lock(shared->mutex);
  shared->changed.wait(lock, [&] { return shared->ended; });
}

std::string ErrorText(int code) { return std::generic_category().message(code); }

WireError Resolve(std::string_view address, bool numeric, std::vector<SocketAddress>& to) {
  to.clear();
  if (address.starts_with(kUnix)) return ResolveUnix(address.substr(kUnix.size()), to);
  std::string host, port;
  if (WireError error = Split(address, host, port); !error.ok()) return error;
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | (numeric ? AI_NUMERICHOST : 0);
  addrinfo* found = nullptr;
  const int code = getaddrinfo(host.c_str(), port.c_str(), &hints, &found);
  if (code != 0) {
    const std::string reason = code == EAI_SYSTEM ? ErrorText(errno) : gai_strerror(code);
    return {WEIR_UNAVAILABLE, "the host '" + host + "' cannot be resolved: " + reason};
  }
  for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
    to.push_back(SocketAddress(at->ai_addr, at->ai_addrlen));
  }
  freeaddrinfo(found);
  // Programs that listen on "localhost" usually mean IPv4.
  std::stable_partition(to.begin(), to.end(), [](const SocketAddress& a) { return a.protocol().family() == AF_INET; });
  return {};
}

void ResolveLater(const std::string& address, std::function<void(WireError, std::vector<SocketAddress>)> then) {
  std::vector<SocketAddress> found;
  const WireError numeric = Resolve(address, true, found);
  if (numeric.code != WEIR_UNAVAILABLE) {
    return Io::Get().Post([then = std::move(then), numeric, found] { then(numeric, found); });
  }
  try {
    std::thread([address, then] {
      std::vector<SocketAddress> named;
      const WireError error = Resolve(address, false, named);
      Io::Get().Post([then, error, named] { then(error, named); });
    }).detach();
  } catch (const std::system_error& error) {
    const WireError failed{WEIR_UNAVAILABLE, std::string("no thread can be started: ") + error.what()};
    Io::Get().Post([then = std::move(then), failed] { then(failed, {}); });
  }
}

std::string HostText(const SocketAddress& address) {
  char text[INET6_ADDRSTRLEN] = {};
  const auto* at = reinterpret_cast<const sockaddr*>(address.data());
  if (at->sa_family == AF_INET) {
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(at)->sin_addr, text, sizeof text);
  } else if (at->sa_family == AF_INET6) {
    inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6*>(at)->sin6_addr, text, sizeof text);
  } else {
    return "this machine";
  }
  return text;
}

uint16_t PortOf(const SocketAddress& address) {
  const auto* at = reinterpret_cast<const sockaddr*>(address.data());
  if (at->sa_family == AF_INET) return ntohs(reinterpret_cast<const sockaddr_in*>(at)->sin_port);
  if (at->sa_family == AF_INET6) return ntohs(reinterpret_cast<const sockaddr_in6*>(at)->sin6_port);
  return 0;
}

bool IsLocal(const SocketAddress& address) {
  const auto* at = reinterpret_cast<const sockaddr*>(address.data());
  if (at->sa_family == AF_INET) {
    return ntohl(reinterpret_cast<const sockaddr_in*>(at)->sin_addr.s_addr) >> 24 == 127;
  }
  if (at->sa_family == AF_INET6) return IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6*>(at)->sin6_addr);
  return at->sa_family == AF_UNIX;
}

WireError OpenListening(const SocketAddress& address, int& descriptor) {
  const auto* at = reinterpret_cast<const sockaddr*>(address.data());
  const int made = ::socket(at->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const auto failed = [&](const char* what) {
    const int code = errno;
    if (made >= 0) ::close(made);
    return WireError{WEIR_FAILED_PRECONDITION, std::string(what) + ErrorText(code)};
  };
  if (made < 0) return failed("no socket: ");
  const int on = 1;
  if (at->sa_family == AF_UNIX) {
    // A socket file without a listener is left from a process that has died.
    const auto* name = reinterpret_cast<const sockaddr_un*>(at);
    struct stat found {};
    if (::stat(name->sun_path, &found) == 0 && S_ISSOCK(found.st_mode)) {
      const int probe = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
      const bool dead =
          probe >= 0 && ::connect(probe, at, static_cast<socklen_t>(address.size())) != 0 && errno == ECONNREFUSED;
      if (probe >= 0) ::close(probe);
      if (dead) ::unlink(name->sun_path);
    }
  } else {
    ::setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (at->sa_family == AF_INET6) ::setsockopt(made, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
  }
  if (::bind(made, at, static_cast<socklen_t>(address.size())) != 0) return failed("");
  if (::listen(made, SOMAXCONN) != 0) return failed("");
  descriptor = made;
  return {};
}

void SetUp(int descriptor, std::chrono::milliseconds peer_timeout) {
  // Each fails for a Unix socket, which needs none of them.
  const auto set = [descriptor](int level, int name, int value) {
    static_cast<void>(::setsockopt(descriptor, level, name, &value, sizeof value));
  };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 5);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 2);
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, static_cast<int>(std::min<int64_t>(peer_timeout.count(), 1 << 30)));
}

}  // namespace weir_remote
