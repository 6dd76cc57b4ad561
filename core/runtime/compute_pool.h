// The process's compute threads: one pool for concurrent ops and for the parts of an op.
#ifndef WEIR_CORE_RUNTIME_COMPUTE_POOL_H_
#define WEIR_CORE_RUNTIME_COMPUTE_POOL_H_

#include <cstdint>

namespace weir::runtime {

/// Thread-safe. Threads start with the first work; idle threads spin briefly, then sleep. Work must not block (use
/// blocking_pool.h).
class ComputePool {
 public:
  /// The instance is never destroyed.
  static ComputePool& Get();

  /// CPUs that the process may use at once: its affinity, limited by the cgroup quota; at least 1. The pool has one
  /// thread less, since callers work too.
  int parallelism() const;
  /// Runs fn(arg) on a pool thread, in FIFO order. The pool has at least one thread, even if parallelism is 1. False,
  /// without effect, if the system cannot start any thread.
  [[nodiscard]] bool Submit(void (*fn)(void* arg), void* arg);
  /// As Submit, but only if a thread is free now; otherwise false, without effect.
  [[nodiscard]] bool TrySubmit(void (*fn)(void* arg), void* arg);
  /// Calls fn(arg, begin, end) on disjoint ranges that cover [0, n), each at least `grain` long except the last. Uses
  /// the calling thread and at most `threads` - 1 others; returns when all ranges are done. May be nested.
  void ParallelFor(uint64_t n, uint64_t grain, int threads, void (*fn)(void* arg, uint64_t begin, uint64_t end),
                   void* arg);

 private:
  ComputePool();
  struct State;
  State* state_;
};

}  // namespace weir::runtime

#endif  // WEIR_CORE_RUNTIME_COMPUTE_POOL_H_
