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
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>

namespace weir_remote {
namespace {

/// How often a thread of the plugin looks whether nobody receives.
constexpr std::chrono::microseconds kLook{500};

/// How long the end of the process waits for what is ready.
constexpr std::chrono::milliseconds kLast{100};

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

void Io::RunPutOff() {
  while (!put_off_.empty()) {
    const std::function<void()> next = std::move(put_off_.front());
    put_off_.pop_front();
    next();
  }
}

void Io::Leave() {
  RunPutOff();
  inside_ = std::thread::id();
}

void Io::Start() {
  // Exit handlers run in reverse order: this one before the statics that the threads use are destroyed.
  static const struct Ending {
    ~Ending() { Io::Get().StopForGood(); }
  } ending;
  const std::lock_guard<std::mutex> lock(turns_mutex_);
  if (over_) return;
  if (threads_ == 0) {
    stops_ = false;
    ++generation_;
    context_.restart();
    StartThread();
  } else if (taken_ || stops_) {
    return;
  }
  handed_ = true;
  changed_.notify_one();
}

/// With turns_mutex_ held.
void Io::StartThread() {
  handles_.emplace_back([this, generation = generation_] { Loop(generation); });
  ++threads_;
}

void Io::Stop() {
  std::unique_lock<std::mutex> lock(turns_mutex_);
  stops_ = true;
  context_.stop();
  changed_.notify_all();
  heir_changed_.notify_all();
  if (IsInside()) return;
  changed_.wait(lock, [this] { return threads_ == 0 && !taken_; });
  // Threads are joined, so that what libraries keep for each is gone. One that has a job does not hold up the end.
  std::vector<std::thread> ended;
  for (std::thread& each : std::exchange(handles_, {})) {
    const std::thread::id id = each.get_id();
    if (id == runs_job_ || id == std::this_thread::get_id()) {
      each.detach();
    } else {
      ended.push_back(std::move(each));
    }
  }
  lock.unlock();
  for (std::thread& each : ended) each.join();
}

void Io::StopForGood() {
  {
    const std::lock_guard<std::mutex> lock(turns_mutex_);
    over_ = true;
  }
  Stop();
  if (IsInside()) return;
  // What is ready runs, so that connections that were closed last end before the libraries that they use.
  context_.restart();
  const Clock::time_point end = Clock::now() + kLast;
  while (Clock::now() < end && context_.poll_one() > 0) {}
}

/// A thread of the plugin: receives whenever it has a turn, until Stop.
void Io::Loop(uint64_t generation) {
  while (AwaitTurn(generation)) {
    Turn turn = Turn::kKept;
    any_.since = Clock::now();
    while (turn == Turn::kKept) {
      takes_job_ = std::this_thread::get_id();
      ReceiveSome(any_, Clock::now(), Clock::time_point::max());
      takes_job_ = std::thread::id();
      turn = job_.fn == nullptr ? KeepTurn() : RunJob(std::exchange(job_, {}), generation);
    }
    if (turn == Turn::kOver) break;
  }
}

void Io::Came(const std::shared_ptr<Source>& source) {
  came_.fetch_add(1, std::memory_order_relaxed);
  size_t at = 0;
  while (at + 1 < latest_.size() && latest_[at].lock() != source) ++at;
  latest_[at] = source;
  std::rotate(latest_.begin(), latest_.begin() + at, latest_.begin() + at + 1);
}

/// Runs what is ready, without sleeping. False if there was nothing. Sources are asked past the system's list of ready
/// ones, which takes as long as a message.
bool Io::Look() {
  constexpr uint64_t kAllAt = 4;  // how many looks ask the sources alone
  if (++looks_ % kAllAt == 0 || posted_ > 0) return context_.poll_one() > 0;
  const Inside inside(*this);
  return std::any_of(latest_.begin(), latest_.end(), [](const std::weak_ptr<Source>& latest) {
    const std::shared_ptr<Source> source = latest.lock();
    return source && source->Look();
  });
}

/// Looks for something, or waits for it until `end` at the longest, and runs its handler.
void Io::ReceiveSome(Wait& wait, Clock::time_point now, Clock::time_point end) {
  const std::chrono::microseconds most(poll_us_.load(std::memory_order_relaxed));
  const uint64_t before = came_.load(std::memory_order_relaxed);
  if (wait.patience.looks() && now - wait.since < most) {
    if (!Look()) std::this_thread::yield();  // others may have no CPU but this one
  } else if (end == Clock::time_point::max()) {
    context_.run_one();
  } else {
    context_.run_one_until(end);
  }
  if (came_.load(std::memory_order_relaxed) == before) return;
  const Clock::time_point since = std::exchange(wait.since, Clock::now());
  if (most.count() > 0) wait.patience.Came(wait.since - since, most);
}

/// Waits until this thread shall receive: at once if the turn is handed over, else when nobody has had one between two
/// looks. False when the thread must end; it is then counted no more.
bool Io::AwaitTurn(uint64_t generation) {
  std::unique_lock<std::mutex> lock(turns_mutex_);
  bool watches = false;
  uint64_t seen = turns_;
  for (;;) {
    const bool free = !taken_ && (handed_ || (watches && seen == turns_));
    if (free || ends(generation)) break;
    const bool idle = taken_ && watches && seen == turns_;  // who has the turn keeps it
    seen = turns_;
    if (watches || !watched_) watched_ = watches = !idle;
    if (watches) {
      changed_.wait_for(lock, kLook);
    } else {
      changed_.wait(lock);
    }
  }
  if (watches) watched_ = false;
  if (ends(generation)) {
    if (--threads_ == 0) changed_.notify_all();
    return false;
  }
  handed_ = false;
  taken_ = true;
  ++turns_;
  return true;
}

/// With turns_mutex_ held. A thread that waits for the turn has it then.
void Io::EndTurn() {
  ++turns_;
  if (heir_ != nullptr) {
    GiveTurn();
    return;
  }
  taken_ = false;
  if (handed_ || !watched_) changed_.notify_one();
}

/// With turns_mutex_ held.
void Io::GiveTurn() {
  heir_.exchange(nullptr)->given = true;
  heir_changed_.notify_all();
}

/// Gives the turn to a thread that waits for an answer, unless others do.
Io::Turn Io::KeepTurn() {
  if (heir_.load(std::memory_order_relaxed) == nullptr && !context_.stopped()) return Turn::kKept;
  const std::lock_guard<std::mutex> lock(turns_mutex_);
  if (stops_) {
    EndTurn();
    return Turn::kLost;
  }
  if (heir_ == nullptr) return Turn::kKept;
  if (listeners_ == 0 && calls_ <= 1) {
    ++turns_;
    GiveTurn();
    return Turn::kLost;
  }
  TellHeir();
  return Turn::kKept;
}

Io::Turn Io::RunJob(const Job& job, uint64_t generation) {
  {
    const std::lock_guard<std::mutex> lock(turns_mutex_);
    --threads_;
    runs_job_ = std::this_thread::get_id();
    EndTurn();
  }
  job.fn(job.arg);
  const std::lock_guard<std::mutex> lock(turns_mutex_);
  has_job_ = false;
  runs_job_ = std::thread::id();
  if (ends(generation)) return Turn::kOver;
  ++threads_;
  if (taken_) return Turn::kLost;
  handed_ = false;
  taken_ = true;
  ++turns_;
  any_.since = Clock::now();
  return Turn::kKept;
}

bool Io::RunAfter(void (*fn)(void*), void* arg) {
  if (!IsInside() || takes_job_ != std::this_thread::get_id() || job_.fn != nullptr) return false;
  const std::lock_guard<std::mutex> lock(turns_mutex_);
  if (has_job_ || stops_) return false;
  if (threads_ < 2) {
    try {
      StartThread();
    } catch (const std::system_error&) {
      return false;
    }
  }
  has_job_ = true;
  job_ = {fn, arg};
  return true;
}

/// Waits for the turn of another thread to end. False if it has not, but `over()` is true or it is `end`. With
/// turns_mutex_ held, but not while it asks.
bool Io::Inherit(std::unique_lock<std::mutex>& lock, const std::function<bool()>& over, Clock::time_point end) {
  Heir own;
  heir_ = &own;
  for (bool waits = true; waits && !own.given;) {
    heir_changed_.wait_until(lock, end, [&] { return own.given || own.asks || stops_; });
    if (own.given) break;
    own.asks = false;
    lock.unlock();
    waits = !over() && Clock::now() < end && !context_.stopped();
    lock.lock();
  }
  if (heir_ == &own) heir_ = nullptr;
  return own.given;
}

/// Something has come, perhaps what a thread waits for that waits for the turn. With turns_mutex_ held.
void Io::TellHeir() {
  Heir* const heir = heir_;
  if (heir == nullptr) return;
  heir->asks = true;
  heir_changed_.notify_all();
}

void Io::HandOver() {
  const std::lock_guard<std::mutex> lock(turns_mutex_);
  if (taken_ || stops_ || generation_ == 0) return;
  handed_ = true;
  changed_.notify_one();
}

bool Io::Receive(const std::function<bool()>& over, std::chrono::microseconds most) {
  if (IsInside()) return false;
  Clock::time_point now = Clock::now();
  const Clock::time_point end = now + most;
  {
    std::unique_lock<std::mutex> lock(turns_mutex_);
    if (stops_ || generation_ == 0) return false;
    if (taken_) {
      if (heir_ != nullptr || listeners_ > 0 || calls_ > 1) return false;
      if (!Inherit(lock, over, end)) return true;
    } else {
      taken_ = true;
      ++turns_;
    }
  }
  answers_.since = now;
  while (!over() && now < end && !context_.stopped()) {
    ReceiveSome(answers_, now, end);
    if (heir_.load(std::memory_order_relaxed) != nullptr) {
      const std::lock_guard<std::mutex> lock(turns_mutex_);
      TellHeir();
    }
    now = Clock::now();
  }
  const std::lock_guard<std::mutex> lock(turns_mutex_);
  // Others wait for answers, or requests may come: a thread of the plugin receives at once, unless this is one.
  handed_ = handed_ || (runs_job_ != std::this_thread::get_id() && (listeners_ > 0 || calls_ > 0));
  EndTurn();
  return true;
}

void Io::RunAndWait(std::function<void()> fn) {
  if (IsInside()) return Post(std::move(fn));
  {
    const std::lock_guard<std::mutex> lock(turns_mutex_);
    if (over_) return;
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
