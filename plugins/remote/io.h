// The plugin's thread for sockets and timers, and sockets by address.
#ifndef WEIR_PLUGINS_REMOTE_IO_H_
#define WEIR_PLUGINS_REMOTE_IO_H_

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <array>
#include <atomic>
#include <chrono>
#include <concepts>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "plugins/remote/flow.h"
#include "plugins/remote/wire_error.h"

namespace weir_remote {

namespace asio = boost::asio;
using Clock = std::chrono::steady_clock;
using Socket = asio::generic::stream_protocol::socket;
using SocketAddress = asio::generic::stream_protocol::endpoint;

/// What may have messages: a connection.
class Source {
 public:
  virtual ~Source() = default;
  /// Takes what has come, without waiting. False if nothing has. Inside.
  virtual bool Look() = 0;
};

/// All objects of connections are used by one thread at a time, which is then inside: mostly by the one that receives,
/// and by a caller whose message can leave at once.
///
/// One thread at a time receives: it waits for sockets and timers and runs their handlers. Mostly that is a thread of
/// the plugin, which starts with the first object. A thread that waits for an answer may do it meanwhile (Receive), so
/// that none has to be woken for it. A thread of the plugin may have a job of the core (RunAfter); if that takes long,
/// a second one receives. Nobody receives for a millisecond at most.
class Io {
 public:
  static Io& Get();
  asio::io_context& context() { return context_; }

  /// A thread inside. What TryRun put off runs at the end.
  class Inside {
   public:
    explicit Inside(Io& io) : io_(io), lock_(io.mutex_) { io_.inside_ = std::this_thread::get_id(); }
    ~Inside() { io_.Leave(); }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;

   private:
    friend class Io;
    Inside(Io& io, std::unique_lock<std::mutex> lock) : io_(io), lock_(std::move(lock)) {
      io_.inside_ = std::this_thread::get_id();
    }
    Io& io_;
    const std::unique_lock<std::mutex> lock_;
  };
  /// How long a thread looks for messages at most before it sleeps, where they come that soon. 0: not at all.
  void PollFor(std::chrono::microseconds time) { poll_us_ = time.count(); }
  /// Bytes of a message have come from the source: looks ask it first. Inside.
  void Came(const std::shared_ptr<Source>& source);
  /// Runs what was put off now, before the end of a callback that has more to do. Inside.
  void RunPutOff();
  /// True on a thread that is inside, such as in a callback.
  bool IsInside() const { return inside_ == std::this_thread::get_id(); }

  /// `fn` as a handler of sockets and timers.
  template <class F>
  static auto Handler(F fn) {
    return [fn = std::move(fn)](auto&&... arguments) mutable
             requires std::invocable<const F&, decltype(arguments)...>
    {
      const Inside inside(Get());
      const F own = std::move(fn);  // what it holds ends inside
      own(std::forward<decltype(arguments)>(arguments)...);
    };
  }
  /// Runs `fn` on the thread, later.
  template <class F>
  void Post(F fn) {
    Start();
    asio::post(context_, Handler(std::move(fn)));
  }
  /// Runs `fn` now if `now()` is true and no other thread is inside, at the end of the callback that this is called
  /// from, or on the thread, later. Functions of one caller run in the order of the calls.
  template <class Now, class F>
  void RunSoon(const Now& now, F fn) {
    if (IsInside()) {
      put_off_.emplace_back(std::move(fn));
      return;
    }
    if (std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock); lock.owns_lock()) {
      const Inside inside(*this, std::move(lock));
      if (posted_ == 0 && now()) {
        const F own = std::move(fn);
        return own();
      }
    }
    ++posted_;
    Post([this, fn = std::move(fn)] {
      --posted_;
      fn();
    });
  }
  /// Runs `fn` on the thread and waits for it; from a callback runs it later and does not wait. Once the process exits,
  /// neither function runs anything.
  void RunAndWait(std::function<void()> fn);
  /// Receives on this thread until `over()`, which is asked before and after all that comes, or for `most`. If another
  /// thread receives, gets the turn from it when something has come. False at once where that cannot be, as while
  /// others wait for answers, and from a callback.
  bool Receive(const std::function<bool()>& over, std::chrono::microseconds most);
  /// If nobody receives, a thread of the plugin does at once.
  void HandOver();
  /// Runs `fn(arg)` on this thread when it has left the callback that this is called from; another thread receives if
  /// it takes long. False, and nothing runs, elsewhere than in a callback of what was received, and while there is such
  /// a job.
  bool RunAfter(void (*fn)(void*), void* arg);
  /// Calls whose answers are waited for, and listeners: while there are any, somebody receives all the time.
  void CountCalls(int change) { calls_ += change; }
  void CountListeners(int change) { listeners_ += change; }
  /// Ends the threads. Nothing runs afterwards, but a job goes on.
  void Stop();

 private:
  using WorkGuard = asio::executor_work_guard<asio::io_context::executor_type>;
  /// A job of the core.
  struct Job {
    void (*fn)(void*) = nullptr;
    void* arg = nullptr;
  };
  /// A thread that waits for an answer and waits for the turn.
  struct Heir {
    bool given = false;  // it has the turn
    bool asks = false;   // something has come, which may be its answer
  };
  /// The turn of a thread that receives, in its next step.
  enum class Turn : uint8_t { kKept, kLost, kOver };

  Io() : context_(1), guard_(context_.get_executor()) {}
  void Start();
  void StopForGood();
  void Leave();
  void Loop(uint64_t generation);
  void StartThread();
  bool AwaitTurn(uint64_t generation);
  Turn RunJob(const Job& job, uint64_t generation);
  Turn KeepTurn();
  void EndTurn();
  void GiveTurn();
  void TellHeir();
  bool Inherit(std::unique_lock<std::mutex>& lock, const std::function<bool()>& over, Clock::time_point end);
  /// The wait of a thread that has the turn.
  struct Wait {
    Patience patience;
    Clock::time_point since;  // the last message, or the beginning
  };
  void ReceiveSome(Wait& wait, Clock::time_point now, Clock::time_point end);
  bool Look();
  bool ends(uint64_t generation) const { return stops_ || generation != generation_; }

  asio::io_context context_;
  const WorkGuard guard_;
  std::mutex mutex_;  // held by the thread that is inside; protects put_off_
  std::atomic<std::thread::id> inside_{};
  std::atomic<int> posted_{0};  // functions of RunSoon that wait for the thread
  std::atomic<int64_t> poll_us_{0};
  std::deque<std::function<void()>> put_off_;
  std::array<std::weak_ptr<Source>, 4> latest_;  // those that had messages last, the last one first; inside
  std::atomic<uint64_t> came_{0};                // how often bytes have come

  Wait any_, answers_;  // for whatever comes, and for answers; of the thread that has the turn
  uint64_t looks_ = 0;  // likewise
  std::atomic<int> calls_{0}, listeners_{0};
  std::atomic<std::thread::id> takes_job_{};  // a thread of the plugin that receives
  Job job_;                                   // the next of that thread, which alone uses it
  std::mutex turns_mutex_;                    // protects all below
  std::condition_variable changed_, heir_changed_;
  std::atomic<Heir*> heir_{nullptr};  // written with the mutex held
  bool over_ = false;                 // the process exits: no thread starts again
  bool stops_ = false;
  uint64_t generation_ = 0;  // of the threads: changes with a restart
  int threads_ = 0;          // of the plugin, without one that has a job
  std::vector<std::thread> handles_;
  bool has_job_ = false;
  std::thread::id runs_job_;
  bool taken_ = false;    // a thread receives
  bool handed_ = false;   // a thread of the plugin should, at once
  bool watched_ = false;  // a thread of the plugin looks whether nobody does
  uint64_t turns_ = 0;    // changes with every turn
};

/// The addresses of "host:port" or "unix:/path". `numeric`: without asking a name service. WEIR_INVALID_ARGUMENT for a
/// text that is neither; WEIR_UNAVAILABLE if the name is unknown now.
WireError Resolve(std::string_view address, bool numeric, std::vector<SocketAddress>& to);
/// On another thread if names must be looked up; `then` runs on the I/O thread.
void ResolveLater(const std::string& address, std::function<void(WireError, std::vector<SocketAddress>)> then);
/// "10.0.0.7", "::1", or "this machine" for a Unix socket; the port if wanted.
std::string HostText(const SocketAddress& address);
uint16_t PortOf(const SocketAddress& address);
/// Loopback or a Unix socket.
bool IsLocal(const SocketAddress& address);

/// A listening descriptor. WEIR_FAILED_PRECONDITION if the address is taken or not of this machine.
WireError OpenListening(const SocketAddress& address, int& descriptor);
/// Options of a connected socket: no delay, keepalive, and an end of unacknowledged data after the timeout.
void SetUp(int descriptor, std::chrono::milliseconds peer_timeout);

/// Text of an errno value.
std::string ErrorText(int code);

}  // namespace weir_remote

#endif  // WEIR_PLUGINS_REMOTE_IO_H_
