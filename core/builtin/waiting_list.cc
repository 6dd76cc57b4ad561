#include "core/builtin/waiting_list.h"

#include <algorithm>
#include <utility>

#include "core/base/errors.h"

namespace weir::builtin {

void WaitingList::Run(std::shared_ptr<void> owner, Attempt attempt, runtime::Cancellation* cancellation,
                      runtime::Completion done) {
  const auto waiter = std::make_shared<Waiter>();
  waiter->attempt = std::move(attempt);
  waiter->done = std::move(done);
  const Waiter* const self = waiter.get();
  if (cancellation != nullptr) {
    const auto cancelled = [this, alive = std::weak_ptr<void>(owner), self, cancellation] {
      if (const std::shared_ptr<void> there = alive.lock()) CancelWaiter(self, *cancellation);
    };
    if (!waiter->cancel.Register(*cancellation, cancelled)) return waiter->done(cancellation->status());
  }
  std::vector<Finished> finished;
  {
    const std::lock_guard lock(mutex_);
    if (ended_.ok()) {
      waiters_.push_back(waiter);
      Serve(&finished);
    } else {
      finished.push_back({waiter, ended_});
    }
  }
  // A callback that ran before the waiter was in the list did not find it.
  const bool late = cancellation != nullptr && cancellation->cancelled();
  Complete(std::move(finished));
  if (late) CancelWaiter(self, *cancellation);
}

Status WaitingList::Change(std::shared_ptr<void> owner, const std::function<Status()>& change) {
  std::vector<Finished> finished;
  {
    const std::lock_guard lock(mutex_);
    WEIR_TRY(change());
    Serve(&finished);
  }
  Complete(std::move(finished));
  owner.reset();  // a completion may have dropped the other owners
  return Status();
}

void WaitingList::EndAll(const Status& why, const std::function<void()>& clear) {
  std::vector<Finished> finished;
  {
    const std::lock_guard lock(mutex_);
    ended_ = why;
    clear();
    for (WaiterPtr& waiter : std::exchange(waiters_, {})) finished.push_back({std::move(waiter), why});
  }
  Complete(std::move(finished));
}

void WaitingList::CancelWaiter(const Waiter* waiter, const runtime::Cancellation& cancellation) {
  std::vector<Finished> finished;
  {
    const std::lock_guard lock(mutex_);
    const auto found = std::ranges::find_if(waiters_, [&](const WaiterPtr& one) { return one.get() == waiter; });
    if (found == waiters_.end()) return;
    finished.push_back({std::move(*found), cancellation.status()});
    waiters_.erase(found);
    Serve(&finished);  // those behind it
  }
  Complete(std::move(finished));
}

void WaitingList::Serve(std::vector<Finished>* finished) {
  for (bool moved = true; moved;) {
    moved = false;
    for (auto at = waiters_.begin(); at != waiters_.end();) {
      std::optional<Answer> answer = (*at)->attempt();
      if (!answer) {
        if (order_ == Order::kFirst) return;
        ++at;
        continue;
      }
      finished->push_back({std::move(*at), std::move(*answer)});
      at = waiters_.erase(at);
      moved = true;
    }
  }
}

void WaitingList::Complete(std::vector<Finished> finished) {
  for (Finished& one : finished) {
    one.waiter->cancel.Deregister();
    one.waiter->done(std::move(one.answer));
  }
}

}  // namespace weir::builtin
