#include "core/runtime/blocking_pool.h"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>

#include "core/base/errors.h"

namespace weir::runtime {
namespace {

constexpr int kMaxThreads = 512;
constexpr auto kIdleTime = std::chrono::seconds(2);

struct Job {
  void (*fn)(void*);
  void* arg;
};

class BlockingPool {
 public:
  Status Add(Job job) {
    const std::lock_guard lock(mutex_);
    if (jobs_.size() >= static_cast<size_t>(idle_) && threads_ < kMaxThreads) {
      try {
        std::thread([this] { Work(); }).detach();
        ++threads_;
      } catch (const std::system_error& e) {
        if (threads_ == 0) return Unavailable("cannot start a thread for scheduled work: {}", e.what());
      }
    }
    jobs_.push_back(job);
    ready_.notify_one();
    return {};
  }

 private:
  // Exits after an idle period, so that an idle process keeps no threads.
  void Work() {
    std::unique_lock lock(mutex_);
    while (true) {
      ++idle_;
      const bool work = ready_.wait_for(lock, kIdleTime, [this] { return !jobs_.empty(); });
      --idle_;
      if (!work) {
        --threads_;
        return;
      }
      const Job job = jobs_.front();
      jobs_.pop_front();
      lock.unlock();
      try {
        job.fn(job.arg);
      } catch (...) {
        // An exception from plugin code ends its job, not the process.
      }
      lock.lock();
    }
  }

  std::mutex mutex_;  // protects all below
  std::condition_variable ready_;
  std::deque<Job> jobs_;
  int threads_ = 0;
  int idle_ = 0;
};

}  // namespace

Status RunBlocking(void (*fn)(void*), void* arg) {
  // Never destroyed: its detached threads may outlive main.
  static BlockingPool* const pool = new BlockingPool;
  return pool->Add({fn, arg});
}

}  // namespace weir::runtime
