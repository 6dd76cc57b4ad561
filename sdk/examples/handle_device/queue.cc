#include "queue.h"

#include <chrono>

namespace handle_device {
namespace {

using weir::sdk::Error;
using weir::sdk::Str;
using weir::sdk::ToView;

// Handles are no addresses: the low bits count, the high ones make a use as a pointer fault.
constexpr uint64_t kTag = uint64_t{0xB0B0} << 48;

int32_t Unrecorded(const Error& error) {
  return error.Fail(WEIR_FAILED_PRECONDITION, "the event was never recorded");
}

int32_t SubmitNative(void* queue, const weir_handle_work* work, weir_error* record) noexcept {
  const std::shared_ptr<void> arg(work->arg, work->drop);
  return weir::sdk::Guard(record, [&] {
    auto run = [arg, call = work->run](void* const* addresses, weir_error* error) {
      return call(arg.get(), addresses, error);
    };
    return static_cast<Queue*>(queue)->Submit(ToView(work->name), WEIR_ACTIVITY_KERNEL,
                                              {work->operands, work->operand_count}, std::move(run), Error(record));
  });
}

int32_t FinishNative(void* queue, weir_error* record) noexcept {
  return weir::sdk::Guard(record, [&] { return static_cast<Queue*>(queue)->Finish(Error(record)); });
}

}  // namespace

uint64_t Memory::Allocate(uint64_t bytes, const Error& error) {
  const std::lock_guard lock(mutex_);
  if (bytes > largest_) {
    (void)error.ResourceExhausted("a block of ", bytes, " bytes, the largest has ", largest_);
    return 0;
  }
  if (bytes > capacity_ - used_) {
    (void)error.ResourceExhausted("no memory left for ", bytes, " bytes");
    return 0;
  }
  auto block = std::make_shared<Block>(bytes);
  used_ += bytes;
  const uint64_t handle = kTag | next_++;
  blocks_.emplace(handle, std::move(block));
  return handle;
}

void Memory::Free(uint64_t handle) {
  const std::lock_guard lock(mutex_);
  const auto found = blocks_.find(handle);
  if (found == blocks_.end()) return;
  used_ -= found->second->bytes;
  blocks_.erase(found);
}

std::vector<Range> Memory::Find(std::span<const weir_handle_operand> operands) const {
  std::vector<Range> ranges(operands.size());
  const std::lock_guard lock(mutex_);
  for (size_t i = 0; i < operands.size(); ++i) {
    const auto found = operands[i].bytes == 0 ? blocks_.end() : blocks_.find(operands[i].handle);
    if (found != blocks_.end()) ranges[i] = {found->second, operands[i].offset};
  }
  return ranges;
}

uint64_t Memory::used() const {
  const std::lock_guard lock(mutex_);
  return used_;
}

void Timeline::Add(const weir_activity& activity) {
  const std::lock_guard lock(mutex_);
  if (activities_.size() < kRoom) {
    activities_.push_back(activity);
  } else {
    ++lost_;
  }
}

std::vector<weir_activity> Timeline::Take(uint64_t* lost) {
  const std::lock_guard lock(mutex_);
  *lost = std::exchange(lost_, 0);
  return std::exchange(activities_, {});
}

uint64_t Timeline::Now() {
  static const auto start = std::chrono::steady_clock::now() - std::chrono::seconds(1);
  return static_cast<uint64_t>(std::chrono::nanoseconds(std::chrono::steady_clock::now() - start).count());
}

void Point::Reach(const Failure& failure) {
  std::vector<Callback> callbacks;
  {
    const std::lock_guard lock(mutex_);
    reached_ = true;
    failure_ = failure;
    callbacks.swap(callbacks_);
    changed_.notify_all();
  }
  for (const auto& [fn, arg] : callbacks) fn(arg, failure.code);
}

int32_t Point::Query() {
  const std::lock_guard lock(mutex_);
  if (!reached_) return WEIR_EVENT_PENDING;
  return failure_.code == WEIR_OK ? WEIR_EVENT_DONE : WEIR_EVENT_FAILED;
}

Failure Point::Await() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return reached_; });
  return failure_;
}

void Point::Then(Callback callback) {
  int32_t code = WEIR_OK;
  {
    const std::lock_guard lock(mutex_);
    if (!reached_) {
      callbacks_.push_back(callback);
      return;
    }
    code = failure_.code;
  }
  callback.first(callback.second, code);
}

std::shared_ptr<Point> Event::latest() {
  const std::lock_guard lock(mutex_);
  return point_;
}

int32_t Event::Query() {
  const std::shared_ptr<Point> point = latest();
  return point == nullptr ? int32_t{WEIR_EVENT_FAILED} : point->Query();
}

int32_t Event::Sync(const Error& error) {
  const std::shared_ptr<Point> point = latest();
  return point == nullptr ? Unrecorded(error) : point->Await().Tell(error);
}

int32_t Event::OnComplete(void (*fn)(void*, int32_t), void* arg, const Error& error) {
  const std::shared_ptr<Point> point = latest();
  if (point == nullptr) return Unrecorded(error);
  point->Then({fn, arg});
  return WEIR_OK;
}

Queue::Queue(Memory& memory, Timeline& timeline)
    : memory_(memory),
      timeline_(timeline),
      native_{sizeof(weir_handle_queue), 0, this, &SubmitNative, &FinishNative},
      thread_([this] { Loop(); }) {}

Queue::~Queue() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

Failure Queue::failure() {
  const std::lock_guard lock(mutex_);
  return failure_;
}

void Queue::Fail(Failure failure) {
  const std::lock_guard lock(mutex_);
  if (failure_.code == WEIR_OK) failure_ = std::move(failure);  // the first wins
}

void Queue::Poison(int32_t code, std::string_view text) { Fail({code, std::string(text), 0}); }

uint64_t Queue::FailedMark() { return failure().mark; }

void Queue::Push(Work&& work) {
  const std::lock_guard lock(mutex_);
  work_.push_back(std::move(work));
  if (work_.size() == 1) changed_.notify_one();  // the thread waits only for the first piece
}

std::shared_ptr<Point> Queue::PushPoint() {
  Work work;
  work.reach = std::make_shared<Point>();
  std::shared_ptr<Point> point = work.reach;
  Push(std::move(work));
  return point;
}

int32_t Queue::Record(Event& event, const Error&) {
  std::shared_ptr<Point> point = PushPoint();
  const std::lock_guard lock(event.mutex_);
  event.point_ = std::move(point);
  return WEIR_OK;
}

int32_t Queue::Wait(Event& event, const Error& error) {
  Work work;
  work.wait = event.latest();
  if (work.wait == nullptr) return Unrecorded(error);
  Push(std::move(work));
  return WEIR_OK;
}

int32_t Queue::Submit(std::string_view name, uint32_t kind, std::span<const weir_handle_operand> operands,
                      std::function<int32_t(void* const*, weir_error*)> run, const Error& error) {
  if (const Failure earlier = failure(); earlier.code != WEIR_OK) return earlier.Tell(error);
  Work work;
  work.name = name;
  work.kind = kind;
  work.mark = mark_;
  work.run = std::move(run);
  work.operands = memory_.Find(operands);
  for (size_t i = 0; i < operands.size(); ++i) {
    const weir_handle_operand& operand = operands[i];
    const Block* const block = work.operands[i].block.get();
    if (operand.bytes == 0) continue;
    if (block == nullptr) return error.InvalidArgument(name, ": no block of this device has this handle");
    if (operand.offset > block->bytes || operand.bytes > block->bytes - operand.offset) {
      return error.InvalidArgument(name, ": ", operand.bytes, " bytes at ", operand.offset, " in a block of ",
                                   block->bytes);
    }
    if (kind == WEIR_ACTIVITY_KERNEL && operand.offset % memory_.alignment() != 0) {
      return error.InvalidArgument(name, ": offset ", operand.offset, " is no multiple of ", memory_.alignment());
    }
  }
  Push(std::move(work));
  return WEIR_OK;
}

int32_t Queue::Finish(const Error& error) { return PushPoint()->Await().Tell(error); }

void Queue::Loop() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return closing_ || !work_.empty(); });
    if (work_.empty()) return;
    Work work = std::move(work_.front());
    work_.pop_front();
    lock.unlock();
    Do(work);
    work = {};  // drops what it holds while the queue is not locked
    lock.lock();
  }
}

void Queue::Do(Work& work) {
  if (work.wait != nullptr) {
    if (Failure other = work.wait->Await(); other.code != WEIR_OK) Fail(std::move(other));
    return;
  }
  if (work.reach != nullptr) return work.reach->Reach(failure());
  if (failure().code != WEIR_OK) return;
  char text[512];
  weir_error record{};
  record.struct_size = sizeof record;
  record.message = text;
  record.capacity = sizeof text;
  const bool timed = timeline_.Wants(work.kind);
  const uint64_t begin = timed ? Timeline::Now() : 0;
  addresses_.clear();
  for (const Range& operand : work.operands) addresses_.push_back(operand.address());
  const int32_t code = weir::sdk::Guard(&record, [&] { return work.run(addresses_.data(), &record); });
  if (timed) {
    weir_activity activity{};
    activity.kind = work.kind;
    activity.stream = reinterpret_cast<weir_stream*>(this);
    activity.mark = work.mark;
    activity.begin_ns = begin;
    activity.end_ns = Timeline::Now();
    timeline_.Add(activity);
  }
  if (code != WEIR_OK) Fail({code, work.name + ": " + std::string(text, record.length), work.mark});
}

}  // namespace handle_device
