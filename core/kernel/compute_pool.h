// The process's threads for computing: one pool for ops that run beside each other and for the parts of one op.
#ifndef WEIR_CORE_KERNEL_COMPUTE_POOL_H_
#define WEIR_CORE_KERNEL_COMPUTE_POOL_H_

#include <cstdint>

namespace weir::kernel {

/// Thread-safe. Threads start with the first work, spin for a short while when there is none, then sleep. Work must not
/// block (blocking_pool.h is for that).
class ComputePool {
 public:
  /// Never destroyed.
  static ComputePool& Get();

  /// CPUs that the process may use at once: its affinity, cut to the cgroup's quota; at least 1. The pool has one
  /// thread less, since callers work too.
  int parallelism() const;
  /// Runs fn(arg) on a thread of the pool, first come, first served. With a parallelism of 1 the pool has one thread
  /// all the same. False, and nothing happens, when the system lets it have no thread at all.
  [[nodiscard]] bool Submit(void (*fn)(void* arg), void* arg);
  /// The same when a thread is free for it right now; else false, and nothing happens.
  [[nodiscard]] bool TrySubmit(void (*fn)(void* arg), void* arg);
  /// Calls fn(arg, begin, end) on disjoint ranges that cover [0, n), each of at least `grain` but the last, on the
  /// caller's thread and at most `threads` - 1 others; returns when all have run. May be nested.
  void ParallelFor(uint64_t n, uint64_t grain, int threads, void (*fn)(void* arg, uint64_t begin, uint64_t end),
                   void* arg);

 private:
  ComputePool();
  struct State;
  State* state_;
};

}  // namespace weir::kernel

#endif  // WEIR_CORE_KERNEL_COMPUTE_POOL_H_
