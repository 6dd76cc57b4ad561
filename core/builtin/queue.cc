#include "core/builtin/queue.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "core/base/errors.h"
#include "core/builtin/padding.h"
#include "core/builtin/pieces.h"

namespace weir::builtin {

struct FifoQueue::Waiter {
  Kind kind = Kind::kEnqueue;
  std::deque<Tuple> tuples;  // to be enqueued, or dequeued so far
  int64_t wanted = 0;
  bool stack = false;
  Leftover leftover = Leftover::kError;
  runtime::Completion done;
  runtime::CancelCallback cancel;
};

std::string_view Name(QueueOrder order) {
  constexpr std::string_view kNames[] = {"FIFOQueue", "PaddingFIFOQueue", "RandomShuffleQueue", "PriorityQueue"};
  return kNames[static_cast<size_t>(order)];
}

FifoQueue::FifoQueue(std::string name, Options options, NamedBy named_by)
    : node_(std::move(name)),
      named_by_(named_by),
      options_(std::move(options)),
      draws_(options_.seed, options_.seed2) {}

FifoQueue::~FifoQueue() { Clear(); }

std::string FifoQueue::name() const {
  return named_by_ == NamedBy::kNameAlone ? node_ : fmt::format("_{}_{}", id(), node_);
}

std::string FifoQueue::DebugString() const {
  return fmt::format("{} '{}' with {} tuples", Name(options_.order), name(), size());
}

uint64_t FifoQueue::MemoryBytes() const {
  const std::lock_guard lock(mutex_);
  uint64_t bytes = 0;
  for (const Tuple& tuple : tuples_) {
    for (const Tensor& component : tuple) bytes += component.bytes();
  }
  return bytes;
}

int64_t FifoQueue::size() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int64_t>(tuples_.size());
}

bool FifoQueue::closed() const {
  const std::lock_guard lock(mutex_);
  return closed_;
}

Status FifoQueue::Closed() const {
  // TensorFlow's padding queue is a FIFOQueue with another way of taking several tuples.
  const QueueOrder order = options_.order == QueueOrder::kPadded ? QueueOrder::kFifo : options_.order;
  return Cancelled("{} '{}' is closed.", Name(order), name());
}

size_t FifoQueue::Available() const {
  const size_t kept = closed_ ? 0 : static_cast<size_t>(options_.min_after_dequeue);
  return tuples_.size() > kept ? tuples_.size() - kept : 0;
}

void FifoQueue::Push(Tuple tuple) {
  if (options_.order != QueueOrder::kPriority) {
    tuples_.push_back(std::move(tuple));
    return;
  }
  const int64_t priority = tuple[0].as<int64_t>()[0];
  const auto behind =
      std::ranges::upper_bound(tuples_, priority, {}, [](const Tuple& one) { return one[0].as<int64_t>()[0]; });
  tuples_.insert(behind, std::move(tuple));
}

FifoQueue::Tuple FifoQueue::Pop() {
  if (options_.order == QueueOrder::kShuffled) {
    std::swap(tuples_[draws_.Next() % tuples_.size()], tuples_.back());
    Tuple last = std::move(tuples_.back());
    tuples_.pop_back();
    return last;
  }
  Tuple first = std::move(tuples_.front());
  tuples_.pop_front();
  return first;
}

void FifoQueue::Enqueue(std::vector<Tuple> tuples, runtime::Cancellation* cancellation, runtime::Completion done) {
  auto waiter = std::make_shared<Waiter>();
  waiter->kind = Kind::kEnqueue;
  std::move(tuples.begin(), tuples.end(), std::back_inserter(waiter->tuples));
  waiter->done = std::move(done);
  Wait(waiter, cancellation);
}

void FifoQueue::Dequeue(int64_t count, bool stack, Leftover leftover, runtime::Cancellation* cancellation,
                        runtime::Completion done) {
  auto waiter = std::make_shared<Waiter>();
  waiter->kind = Kind::kDequeue;
  waiter->wanted = count;
  waiter->stack = stack;
  waiter->leftover = leftover;
  waiter->done = std::move(done);
  Wait(waiter, cancellation);
}

void FifoQueue::Close(Pending pending, runtime::Cancellation* cancellation, runtime::Completion done) {
  std::vector<Finished> ended;
  if (pending == Pending::kCancel) {
    const std::lock_guard lock(mutex_);
    for (WaiterPtr& writer : std::exchange(writers_, {})) {
      ended.push_back({std::move(writer), Cancelled("Enqueue operation was cancelled")});
    }
  }
  Complete(std::move(ended));
  auto waiter = std::make_shared<Waiter>();
  waiter->kind = Kind::kClose;
  waiter->done = std::move(done);
  Wait(waiter, cancellation);
}

void FifoQueue::Wait(const WaiterPtr& waiter, runtime::Cancellation* cancellation) {
  const Waiter* const self = waiter.get();
  if (cancellation != nullptr) {
    const auto cancelled = [queue = weak_from_this(), self, cancellation] {
      if (const std::shared_ptr<FifoQueue> there = queue.lock()) there->CancelWaiter(self, *cancellation);
    };
    if (!waiter->cancel.Register(*cancellation, cancelled)) {
      waiter->done(cancellation->status());
      return;
    }
  }
  const std::shared_ptr<FifoQueue> alive = shared_from_this();  // the completion may drop the last handle
  std::vector<Finished> finished;
  {
    const std::lock_guard lock(mutex_);
    (waiter->kind == Kind::kDequeue ? readers_ : writers_).push_back(waiter);
    Serve(&finished);
  }
  // A callback that ran before the waiter was in the list did not find it.
  const bool late = cancellation != nullptr && cancellation->cancelled();
  Complete(std::move(finished));
  if (late) CancelWaiter(self, *cancellation);
}

void FifoQueue::CancelWaiter(const Waiter* waiter, const runtime::Cancellation& cancellation) {
  std::vector<Finished> finished;
  {
    const std::lock_guard lock(mutex_);
    for (std::list<WaiterPtr>* list : {&readers_, &writers_}) {
      // A Cancellation calls the callback that was registered last first.
      const auto behind =
          std::find_if(list->rbegin(), list->rend(), [&](const auto& one) { return one.get() == waiter; });
      if (behind == list->rend()) continue;
      const auto found = std::prev(behind.base());
      if ((*found)->kind == Kind::kDequeue) PutBack(**found);
      finished.push_back({std::move(*found), cancellation.status()});
      list->erase(found);
      Serve(&finished);  // those queued behind it
      break;
    }
  }
  Complete(std::move(finished));
}

void FifoQueue::Complete(std::vector<Finished> finished) {
  for (Finished& one : finished) {
    one.waiter->cancel.Deregister();
    one.waiter->done(std::move(one.result));
  }
}

void FifoQueue::PutBack(Waiter& waiter) {
  tuples_.insert(tuples_.begin(), std::make_move_iterator(waiter.tuples.begin()),
                 std::make_move_iterator(waiter.tuples.end()));
  waiter.tuples.clear();
}

void FifoQueue::Serve(std::vector<Finished>* finished) {
  while (ServeWriter(finished) || ServeReader(finished)) {
  }
}

bool FifoQueue::ServeWriter(std::vector<Finished>* finished) {
  if (writers_.empty()) return false;
  Waiter& writer = *writers_.front();
  Result<std::vector<Tensor>> result = std::vector<Tensor>();
  bool moved = false;
  if (writer.kind == Kind::kClose) {
    if (closed_) result = Cancelled("Queue '{}' is already closed.", name());
    closed_ = true;
  } else if (closed_) {
    result = Closed();
  } else {
    for (; !writer.tuples.empty() && !Full(); moved = true) {
      Push(std::move(writer.tuples.front()));
      writer.tuples.pop_front();
    }
    if (!writer.tuples.empty()) return moved && ServeReader(finished);
  }
  finished->push_back({std::move(writers_.front()), std::move(result)});
  writers_.pop_front();
  return true;
}

bool FifoQueue::ServeReader(std::vector<Finished>* finished) {
  if (readers_.empty()) return false;
  Waiter& reader = *readers_.front();
  bool moved = false;
  const auto enough = [&] { return static_cast<int64_t>(reader.tuples.size()) >= reader.wanted; };
  for (; !enough() && Available() > 0; moved = true) reader.tuples.push_back(Pop());
  const bool over = closed_ && tuples_.empty();  // no more elements: a close follows all pending enqueues
  if (!enough() && !over) return moved;
  Result<std::vector<Tensor>> result = std::vector<Tensor>();
  const bool some = reader.leftover == Leftover::kTake && !reader.tuples.empty();
  if (enough() || some) {
    std::vector<Tuple> taken(std::make_move_iterator(reader.tuples.begin()),
                             std::make_move_iterator(reader.tuples.end()));
    result = reader.stack ? Stack(std::move(taken)) : Result<std::vector<Tensor>>(std::move(taken[0]));
  } else {
    const size_t left = reader.tuples.size();
    PutBack(reader);
    const bool one_padded = options_.order == QueueOrder::kPadded && !reader.stack;
    result = OutOfRange("{} '{}' is closed and has insufficient elements (requested {}, current size {})",
                        Name(one_padded ? QueueOrder::kFifo : options_.order), name(), reader.wanted, left);
  }
  finished->push_back({std::move(readers_.front()), std::move(result)});
  readers_.pop_front();
  return true;
}

Result<std::vector<Tensor>> FifoQueue::Stack(std::vector<Tuple> tuples) const {
  std::vector<Tensor> stacked;
  for (size_t c = 0; c < options_.types.size(); ++c) {
    std::vector<Tensor> rows;
    for (Tuple& tuple : tuples) rows.push_back(std::move(tuple[c]));
    if (options_.order == QueueOrder::kPadded) WEIR_TRY(PadToLargest(rows));
    Shape inner;
    if (rows.empty()) {
      // Extents that no element says are 0.
      std::vector<int64_t> dims(options_.shapes[c].dims().begin(), options_.shapes[c].dims().end());
      std::ranges::replace(dims, -1, 0);
      WEIR_ASSIGN(inner, Shape::Make(dims));
    } else {
      inner = rows[0].shape();
    }
    WEIR_ASSIGN(Tensor component, Stacked(options_.types[c], inner, rows));
    stacked.push_back(std::move(component));
  }
  return stacked;
}

void FifoQueue::Clear() {
  std::vector<Finished> finished;
  std::deque<Tuple> dropped;  // destroyed outside the lock
  {
    const std::lock_guard lock(mutex_);
    dropped.swap(tuples_);
    closed_ = true;
    for (std::list<WaiterPtr>* list : {&readers_, &writers_}) {
      for (WaiterPtr& waiter : std::exchange(*list, {})) {
        finished.push_back({std::move(waiter), Cancelled("{} '{}' was destroyed", Name(options_.order), name())});
      }
    }
  }
  Complete(std::move(finished));
}

}  // namespace weir::builtin
