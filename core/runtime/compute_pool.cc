#include "core/runtime/compute_pool.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <fstream>
#include <memory>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>

namespace weir::runtime {
namespace {

/// Approximately the latency of waking a sleeping thread.
constexpr auto kSpinTime = std::chrono::microseconds(30);

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

/// The cgroup's CPU quota in whole CPUs, 0 for no limit. Source: the kernel's documentation of cgroup v2 (cpu.max) and
/// v1 (cpu.cfs_quota_us, cpu.cfs_period_us).
int CgroupQuota() {
  std::string quota;
  double period = 0;
  if (std::ifstream v2("/sys/fs/cgroup/cpu.max"); v2 >> quota >> period && quota != "max" && period > 0) {
    return std::max(1, static_cast<int>(std::strtod(quota.c_str(), nullptr) / period + 0.5));
  }
  double v1_quota = -1, v1_period = 0;
  std::ifstream("/sys/fs/cgroup/cpu/cpu.cfs_quota_us") >> v1_quota;
  std::ifstream("/sys/fs/cgroup/cpu/cpu.cfs_period_us") >> v1_period;
  return v1_quota > 0 && v1_period > 0 ? std::max(1, static_cast<int>(v1_quota / v1_period + 0.5)) : 0;
}

int CountCpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  int cpus = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 0;
  if (cpus <= 0) cpus = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  const int quota = CgroupQuota();
  return quota > 0 ? std::min(cpus, quota) : cpus;
}

}  // namespace

struct ComputePool::State {
  struct Job {
    void (*fn)(void*);
    void* arg;
  };
  const int parallelism = CountCpus();
  std::atomic<int64_t> waiting{0};  // jobs in the queue, polled by spinning threads without the lock
  std::mutex mutex;                 // protects all below
  std::condition_variable ready;
  std::deque<Job> jobs;
  int threads = 0;
  int sleeping = 0;
  int idle = 0;  // spinning or sleeping

  void Work() {
    std::unique_lock lock(mutex);
    for (;;) {
      if (jobs.empty()) {
        ++idle;
        lock.unlock();
        const auto until = std::chrono::steady_clock::now() + kSpinTime;
        while (waiting.load(std::memory_order_relaxed) == 0 && std::chrono::steady_clock::now() < until) Pause();
        lock.lock();
        if (jobs.empty()) {
          ++sleeping;
          ready.wait(lock, [this] { return !jobs.empty(); });
          --sleeping;
        }
        --idle;
      }
      const Job job = jobs.front();
      jobs.pop_front();
      waiting.fetch_sub(1, std::memory_order_relaxed);
      lock.unlock();
      try {
        job.fn(job.arg);
      } catch (...) {
        // An exception from plugin code ends its job, not the process.
      }
      lock.lock();
    }
  }

  bool StartThread() {
    try {
      std::thread([this] { Work(); }).detach();
      ++threads;
      return true;
    } catch (const std::system_error&) {
      return false;  // existing threads do the work; without any, callers do it
    }
  }

  /// False, with nothing queued, if no thread exists to take the job; with `now`, also if none is free.
  bool Queue(const Job& job, bool now) {
    const std::lock_guard lock(mutex);
    const int most = std::max(1, parallelism - 1);
    const bool free = jobs.size() < static_cast<size_t>(idle) || (threads < most && StartThread());
    if (!free && (now || threads == 0)) return false;
    jobs.push_back(job);
    waiting.fetch_add(1, std::memory_order_relaxed);
    if (sleeping > 0) ready.notify_one();
    return true;
  }
};

ComputePool::ComputePool() : state_(new State) {}

ComputePool& ComputePool::Get() {
  static ComputePool* const pool = new ComputePool;  // never destroyed: its detached threads may outlive main
  return *pool;
}

int ComputePool::parallelism() const { return state_->parallelism; }

bool ComputePool::Submit(void (*fn)(void*), void* arg) { return state_->Queue({fn, arg}, false); }

bool ComputePool::TrySubmit(void (*fn)(void*), void* arg) { return state_->Queue({fn, arg}, true); }

namespace {

/// The state of one ParallelFor; helpers that start late find no range left.
struct Split {
  uint64_t n, grain;
  void (*fn)(void*, uint64_t, uint64_t);
  void* arg;
  std::atomic<uint64_t> next{0};
  std::atomic<uint64_t> done{0};

  void Help() {
    for (;;) {
      const uint64_t begin = next.fetch_add(grain, std::memory_order_relaxed);
      if (begin >= n) return;
      const uint64_t end = std::min(n, begin + grain);
      fn(arg, begin, end);
      done.fetch_add(end - begin, std::memory_order_release);
    }
  }
};

}  // namespace

void ComputePool::ParallelFor(uint64_t n, uint64_t grain, int threads,
                              void (*fn)(void* arg, uint64_t begin, uint64_t end), void* arg) {
  if (n == 0) return;
  grain = std::max<uint64_t>(grain, 1);
  const uint64_t wanted = static_cast<uint64_t>(std::max(1, std::min(threads, parallelism())));
  if (wanted == 1 || n <= grain) return fn(arg, 0, n);
  // About four ranges per thread, so that a slow thread does not delay the loop.
  grain = std::max(grain, n / (wanted * 4) + (n % (wanted * 4) != 0 ? 1 : 0));
  const auto split = std::make_shared<Split>();
  split->n = n;
  split->grain = grain;
  split->fn = fn;
  split->arg = arg;
  const uint64_t ranges = (n + grain - 1) / grain;
  for (uint64_t helper = 1; helper < std::min(wanted, ranges); ++helper) {
    auto own = std::make_unique<std::shared_ptr<Split>>(split);
    const bool queued = Submit(
        [](void* shared) {
          const std::unique_ptr<std::shared_ptr<Split>> own(static_cast<std::shared_ptr<Split>*>(shared));
          (*own)->Help();
        },
        own.get());
    if (!queued) break;
    (void)own.release();
  }
  split->Help();
  // The remaining ranges are all being processed: none waits for a thread.
  while (split->done.load(std::memory_order_acquire) < n) {
    Pause();
    if (split->done.load(std::memory_order_acquire) < n) std::this_thread::yield();
  }
}

}  // namespace weir::runtime
