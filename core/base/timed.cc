#include "core/base/timed.h"

#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <system_error>
#include <thread>

namespace weir {

namespace {

/// glibc gives a thread's heap more memory page by page, with a call of the system for each. Blocks that are freed at
/// once make room for the many small ones of a plugin's tables; their pages stay untouched.
void MakeRoom() {
  void* volatile blocks[4];  // volatile: the compiler would drop them
  for (void* volatile& block : blocks) block = std::malloc(100 << 10);
  for (void* volatile& block : blocks) std::free(block);
}

}  // namespace

struct TimedCalls::Shared {
  std::mutex mutex;  // protects call, done and ended
  std::condition_variable changed;
  std::function<void()> call;  // to make, or null
  bool done = false;           // the last call has returned, and is destroyed
  bool ended = false;          // no call follows
  std::thread thread;          // used by the owner only

  void Serve() {
    MakeRoom();
    std::unique_lock lock(mutex);
    for (;;) {
      changed.wait(lock, [this] { return ended || call != nullptr; });
      if (call == nullptr) return;
      std::function<void()> now = std::exchange(call, nullptr);
      lock.unlock();
      now();
      now = nullptr;
      lock.lock();
      done = true;
      lock.unlock();  // the owner wakes to a free mutex
      changed.notify_all();
      lock.lock();
    }
  }
};

TimedCalls::TimedCalls() = default;

TimedCalls::~TimedCalls() {
  if (shared_ == nullptr) return;
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->ended = true;
    shared_->changed.notify_all();
  }
  shared_->thread.join();
}

bool TimedCalls::Do(std::chrono::milliseconds limit, std::function<void()> call) {
  if (shared_ == nullptr) {
    auto made = std::make_shared<Shared>();
    try {
      made->thread = std::thread([made] { made->Serve(); });
    } catch (const std::system_error&) {
      return false;
    }
    shared_ = std::move(made);
  }
  std::unique_lock lock(shared_->mutex);
  shared_->call = std::move(call);
  shared_->done = false;
  lock.unlock();
  shared_->changed.notify_all();
  lock.lock();
  if (shared_->changed.wait_for(lock, limit, [this] { return shared_->done; })) return true;
  shared_->ended = true;  // the thread ends when its call returns
  lock.unlock();
  shared_->thread.detach();
  shared_ = nullptr;
  return false;
}

}  // namespace weir
