#include "core/client/training/coordinator.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "core/base/errors.h"

namespace weir {
namespace {

using Clock = std::chrono::steady_clock;

/// The time point so many seconds from now; limited to a century.
Clock::time_point After(double seconds) {
  const double limited = std::clamp(seconds, 0.0, 3e9);
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(limited));
}

Status Guarded(const std::function<Status()>& body) {
  try {
    return body ? body() : Status();
  } catch (const std::exception& thrown) {
    return Unknown("{}", thrown.what());
  }
}

}  // namespace

struct CoordinatedThread::State {
  std::string name;
  std::function<void()> body;
  std::mutex mutex;  // protects all below
  std::condition_variable ended;
  std::thread thread;
  bool started = false, done = false;
};

CoordinatedThread::CoordinatedThread(std::string name, std::function<void()> body) : state_(std::make_shared<State>()) {
  state_->name = std::move(name);
  state_->body = std::move(body);
}

CoordinatedThread::~CoordinatedThread() {
  std::thread thread;
  bool done;
  {
    const std::lock_guard lock(state_->mutex);
    thread = std::move(state_->thread);
    done = state_->done;
  }
  if (!thread.joinable()) return;
  if (done && thread.get_id() != std::this_thread::get_id()) {
    thread.join();
  } else {
    thread.detach();
  }
}

void CoordinatedThread::Start() {
  const std::lock_guard lock(state_->mutex);
  if (std::exchange(state_->started, true)) return;
  state_->thread = std::thread([state = state_] {
    if (const std::function<void()> body = std::exchange(state->body, {})) body();
    const std::lock_guard ending(state->mutex);
    state->done = true;
    state->ended.notify_all();
  });
}

const std::string& CoordinatedThread::name() const { return state_->name; }

bool CoordinatedThread::alive() const {
  const std::lock_guard lock(state_->mutex);
  return state_->started && !state_->done;
}

bool CoordinatedThread::Wait(double seconds) const {
  std::unique_lock lock(state_->mutex);
  return state_->ended.wait_until(lock, After(seconds), [&] { return !state_->started || state_->done; });
}

struct Coordinator::State {
  std::vector<Code> clean;
  mutable std::mutex mutex;  // protects all below
  std::condition_variable stopping;
  bool stopped = false, joined = false;
  Status error;
  std::vector<ThreadPtr> threads;
};

Coordinator::Coordinator(std::vector<Code> clean_stop_codes) : state_(std::make_shared<State>()) {
  state_->clean = std::move(clean_stop_codes);
}

void Coordinator::RequestStop(const Status& why) const {
  const std::lock_guard lock(state_->mutex);
  if (state_->stopped) return;
  const bool clean = std::ranges::find(state_->clean, why.code()) != state_->clean.end();
  if (!clean) state_->error = why;
  state_->stopped = true;
  state_->stopping.notify_all();
}

bool Coordinator::ShouldStop() const {
  const std::lock_guard lock(state_->mutex);
  return state_->stopped;
}

bool Coordinator::WaitForStop(std::optional<double> seconds) const {
  std::unique_lock lock(state_->mutex);
  const auto stopped = [&] { return state_->stopped; };
  if (seconds) return state_->stopping.wait_until(lock, After(*seconds), stopped);
  state_->stopping.wait(lock, stopped);
  return true;
}

void Coordinator::ClearStop() const {
  const std::lock_guard lock(state_->mutex);
  state_->stopped = state_->joined = false;
  state_->error = Status();
}

Status Coordinator::RequestedError() const {
  const std::lock_guard lock(state_->mutex);
  return state_->error;
}

Status Coordinator::StopOnError(const std::function<Status()>& body) const {
  Status status = Guarded(body);
  if (!status.ok()) RequestStop(status);
  return status;
}

void Coordinator::RegisterThread(const ThreadPtr& thread) const {
  const std::lock_guard lock(state_->mutex);
  state_->threads.push_back(thread);
}

Status Coordinator::Join(const JoinOptions& options) const {
  std::vector<ThreadPtr> threads;
  {
    const std::lock_guard lock(state_->mutex);
    threads = state_->threads;
  }
  for (const ThreadPtr& thread : options.threads) {
    if (std::ranges::find(threads, thread) == threads.end()) threads.push_back(thread);
  }
  const auto alive = [](const ThreadPtr& thread) { return thread->alive(); };
  while (std::ranges::any_of(threads, alive) && !WaitForStop(0.01)) {
  }
  const Clock::time_point end = After(options.stop_grace_period_secs);
  std::vector<std::string> stragglers;
  for (const ThreadPtr& thread : threads) {
    if (!thread->Wait(std::chrono::duration<double>(end - Clock::now()).count())) stragglers.push_back(thread->name());
  }
  const std::lock_guard lock(state_->mutex);
  state_->joined = true;
  state_->threads.clear();
  if (!state_->error.ok()) return state_->error;
  if (stragglers.empty() || options.ignore_live_threads) return Status();
  return FailedPrecondition("Coordinator stopped with threads still running: {}", fmt::join(stragglers, " "));
}

bool Coordinator::joined() const {
  const std::lock_guard lock(state_->mutex);
  return state_->joined;
}

namespace {

void RunLoop(const Coordinator& coordinator, double interval_secs, const LooperBody& body) {
  const auto loop = [&]() -> Status {
    WEIR_TRY(Guarded(body.start));
    Clock::time_point next = Clock::now();
    const auto remaining = [&] { return std::chrono::duration<double>(next - Clock::now()).count(); };
    while (!coordinator.WaitForStop(interval_secs > 0 ? remaining() : 0)) {
      WEIR_TRY(Guarded(body.run));
      next += After(interval_secs) - Clock::now();
    }
    return Guarded(body.stop);
  };
  (void)coordinator.StopOnError(loop);
}

}  // namespace

LooperThread::LooperThread(const Coordinator& coordinator, double interval_secs, LooperBody body,
                           const std::string& name)
    : CoordinatedThread(
          name, [coordinator, interval_secs, body = std::move(body)] { RunLoop(coordinator, interval_secs, body); }) {}

ThreadPtr LooperThread::Loop(const Coordinator& coordinator, double interval_secs, std::function<Status()> run) {
  LooperBody body;
  body.run = std::move(run);
  const auto thread = std::make_shared<LooperThread>(coordinator, interval_secs, std::move(body));
  coordinator.RegisterThread(thread);
  thread->Start();
  return thread;
}

}  // namespace weir
