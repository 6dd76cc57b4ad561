// Ops that wait for a resource. Waiting ops hold no thread.
#ifndef WEIR_CORE_BUILTIN_WAITING_LIST_H_
#define WEIR_CORE_BUILTIN_WAITING_LIST_H_

#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "core/base/status.h"
#include "core/runtime/cancellation.h"
#include "core/runtime/completion.h"
#include "core/tensor/tensor.h"

namespace weir::builtin {

/// The ops that wait for a resource, which owns the list and keeps its state under the list's mutex. An op completes on
/// the thread of the op that lets it go on, or with the error of its cancelled step. Thread-safe.
class WaitingList {
 public:
  using Answer = Result<std::vector<Tensor>>;
  /// What an op does to the resource, under the mutex; nothing while it has to wait.
  using Attempt = std::function<std::optional<Answer>()>;
  /// kAny: an op goes on as soon as it can. kFirst: only the first of those that wait does.
  enum class Order : uint8_t { kAny, kFirst };

  explicit WaitingList(Order order) : order_(order) {}
  WaitingList(const WaitingList&) = delete;
  WaitingList& operator=(const WaitingList&) = delete;

  std::mutex& mutex() const { return mutex_; }
  /// Completes the op at once if it can go on, and others that can then; otherwise later. `owner` is the resource,
  /// whose state `attempt` may use as long as that exists. `cancellation` may be null; otherwise it must outlive the
  /// completion.
  void Run(std::shared_ptr<void> owner, Attempt attempt, runtime::Cancellation* cancellation, runtime::Completion done);
  /// Changes the state under the mutex and lets ops go on, unless that fails.
  Status Change(std::shared_ptr<void> owner, const std::function<Status()>& change);
  /// Completes all that wait and all that come with an error; `clear` changes the state under the mutex before.
  void EndAll(const Status& why, const std::function<void()>& clear);

 private:
  struct Waiter {
    Attempt attempt;
    runtime::Completion done;
    runtime::CancelCallback cancel;
  };
  using WaiterPtr = std::shared_ptr<Waiter>;
  struct Finished {
    WaiterPtr waiter;
    Answer answer;
  };

  void CancelWaiter(const Waiter* waiter, const runtime::Cancellation& cancellation);
  /// Under the mutex: attempts until no op goes on.
  void Serve(std::vector<Finished>* finished);
  /// Without the mutex.
  static void Complete(std::vector<Finished> finished);

  const Order order_;
  mutable std::mutex mutex_;  // protects the list and the state of the resource
  std::list<WaiterPtr> waiters_;
  Status ended_;  // not ok: why there is nothing to wait for
};

}  // namespace weir::builtin

#endif  // WEIR_CORE_BUILTIN_WAITING_LIST_H_
