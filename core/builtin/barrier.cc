#include "core/builtin/barrier.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/base/errors.h"
#include "core/builtin/pieces.h"

namespace weir::builtin {
namespace {

FifoQueue::Options QueueOf(const Barrier::Options& barrier) {
  FifoQueue::Options options;
  options.order = QueueOrder::kPriority;
  options.types = {DType::kInt64, DType::kString};
  options.shapes = {PartialShape(Shape()), PartialShape(Shape())};
  options.types.insert(options.types.end(), barrier.types.begin(), barrier.types.end());
  options.shapes.insert(options.shapes.end(), barrier.shapes.begin(), barrier.shapes.end());
  return options;
}

}  // namespace

Barrier::Barrier(std::string_view node, std::string_view shared_name, Options options)
    : options_(std::move(options)),
      name_(shared_name.empty() ? fmt::format("_{}_{}", id(), node) : std::string(shared_name)),
      queue_(std::make_shared<FifoQueue>(name_ + "_queue", QueueOf(options_), FifoQueue::NamedBy::kNameAlone)) {}

std::string Barrier::DebugString() const {
  return fmt::format("barrier '{}' with {} whole tuples and {} others", name_, ready_size(), incomplete_size());
}

uint64_t Barrier::MemoryBytes() const {
  uint64_t bytes = queue_->MemoryBytes();
  const std::lock_guard lock(mutex_);
  for (const auto& [key, entry] : incomplete_) {
    for (const Tensor& component : entry.components) bytes += component.valid() ? component.bytes() : 0;
  }
  return bytes;
}

int64_t Barrier::incomplete_size() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int64_t>(incomplete_.size());
}

Status Barrier::Insert(std::span<const std::string> keys, int64_t component, const Tensor& values) {
  if (!keys.empty() && values.elements() == 0) {
    return InvalidArgument("Tensors with no elements are not supported {}: received shape {}", name_,
                           values.shape().ToString());
  }
  const PartialShape &wanted = options_.shapes[static_cast<size_t>(component)], got = InnerShape(values.shape());
  if (!keys.empty() && !wanted.CompatibleWith(got)) {
    return InvalidArgument("Shape mismatch in tuple component {}. Expected {}, got {}", component + 2,
                           wanted.ToString(), got.ToString());
  }
  std::vector<FifoQueue::Tuple> ready;
  Status inserted;
  int64_t count = 0;
  {
    const std::lock_guard lock(mutex_);
    if (closed_ && (dropped_ || (!keys.empty() && incomplete_.empty()))) {
      return Cancelled(
          "Barrier {} is closed.  Pending enqueues cancelled: {:d}.  Number of new insertions: {}.  Number of "
          "incomplete keys: {}.",
          name_, dropped_, keys.size(), incomplete_.size());
    }
    bool new_key = false;
    for (size_t i = 0; i < keys.size() && inserted.ok(); ++i) {
      inserted = InsertOne(keys[i], i, component, values, &new_key, &ready);
    }
    if (new_key) ++next_index_;
    count = static_cast<int64_t>(ready.size());
    entering_ += count;
  }
  if (count == 0) return inserted;
  // The queue has room for any number and is not closed before they are in it.
  Status entered;
  queue_->Enqueue(std::move(ready), nullptr,
                  runtime::Completion([&](const Result<std::vector<Tensor>>& done) { entered = done.status(); }));
  bool over = false;
  {
    const std::lock_guard lock(mutex_);
    entering_ -= count;
    over = QueueIsOver();
  }
  if (over) CloseQueue();
  return inserted.ok() ? entered : inserted;
}

Status Barrier::InsertOne(const std::string& key, size_t row, int64_t component, const Tensor& values, bool* new_key,
                          std::vector<FifoQueue::Tuple>* ready) {
  auto found = incomplete_.find(key);
  if (found == incomplete_.end()) {
    if (closed_) {
      return Cancelled(
          "Barrier {} is closed, but attempted to insert a brand new key: {}.  Pending enqueues cancelled: {:d}.  "
          "Insertion index: {}.  Number of incomplete keys: {}.",
          name_, key, dropped_, row, incomplete_.size());
    }
    *new_key = true;
    found = incomplete_.emplace(key, Entry{next_index_, std::vector<Tensor>(options_.types.size())}).first;
  }
  std::vector<Tensor>& components = found->second.components;
  Tensor& own = components[static_cast<size_t>(component)];
  if (own.valid()) {
    return InvalidArgument("Key {} already has a value for component {} in barrier {}", key, component, name_);
  }
  WEIR_ASSIGN(own, Row(values, static_cast<int64_t>(row)));
  if (!std::ranges::all_of(components, [](const Tensor& one) { return one.valid(); })) return Status();
  FifoQueue::Tuple tuple = {Tensor::Scalar(found->second.index), Tensor::Scalar(key)};
  std::ranges::move(components, std::back_inserter(tuple));
  ready->push_back(std::move(tuple));
  incomplete_.erase(found);
  return Status();
}

void Barrier::Take(int64_t count, Batch batch, runtime::Cancellation* cancellation, runtime::Completion done) {
  const bool some = batch == Batch::kWhatThereIs;
  const auto check = [&]() -> Status {
    const std::lock_guard lock(mutex_);
    if (!closed_) return Status();
    int64_t available = queue_->size() + entering_;
    if (some) {
      count = std::min(count, available);
    } else {
      available += static_cast<int64_t>(incomplete_.size());
    }
    if (available >= std::max<int64_t>(count, 1)) return Status();
    return OutOfRange("Barrier '{}' is closed and has insufficient elements (requested {}, total size {})", name_,
                      count, available);
  };
  if (const Status possible = check(); !possible.ok()) return done(possible);
  queue_->Dequeue(count, true, some ? FifoQueue::Leftover::kTake : FifoQueue::Leftover::kError, cancellation,
                  std::move(done));
}

Status Barrier::Close(Pending pending) {
  bool over = false;
  {
    const std::lock_guard lock(mutex_);
    // A close that drops may follow one that does not.
    if (closed_ && (dropped_ || pending == Pending::kFinish)) {
      return Cancelled("Barrier '{}' is already closed.", name_);
    }
    closed_ = true;
    dropped_ = pending == Pending::kDrop;
    if (dropped_) incomplete_.clear();
    over = QueueIsOver();
  }
  if (over) CloseQueue();
  return Status();
}

bool Barrier::QueueIsOver() {
  if (!closed_ || queue_closed_ || entering_ > 0 || !incomplete_.empty()) return false;
  return queue_closed_ = true;
}

void Barrier::CloseQueue() {
  const auto closed = [](const Result<std::vector<Tensor>>&) {};  // nothing is pending
  queue_->Close(FifoQueue::Pending::kFinish, nullptr, runtime::Completion(closed));
}

void Barrier::Clear() {
  std::map<std::string, Entry> dropped;  // destroyed outside the lock
  {
    const std::lock_guard lock(mutex_);
    dropped.swap(incomplete_);
    closed_ = dropped_ = queue_closed_ = true;
  }
  queue_->Retire();
}

}  // namespace weir::builtin
