#include "plugins/gpu/platform/emulated_stream.h"

#include <algorithm>

namespace weir::gpu::emulated {

void Mark::Reach(int32_t code) {
  std::vector<Callback> callbacks;
  {
    const std::lock_guard lock(mutex_);
    reached_ = true;
    code_ = code;
    callbacks.swap(callbacks_);
    changed_.notify_all();
  }
  for (const Callback& callback : callbacks) callback.first(callback.second, Outcome(code));
}

int32_t Mark::Await() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return reached_; });
  return code_;
}

bool Mark::Reached(int32_t& code) {
  const std::lock_guard lock(mutex_);
  code = code_;
  return reached_;
}

void Mark::Then(Callback callback) {
  int32_t code = WEIR_EMULATED_OK;
  {
    const std::lock_guard lock(mutex_);
    if (!reached_) {
      callbacks_.push_back(callback);
      return;
    }
    code = code_;
  }
  callback.first(callback.second, Outcome(code));
}

Stream::Stream(Card& card)
    : queue_{sizeof(weir_emulated_queue), 0,
             [](weir_emulated_queue* queue, void (*run)(void*), void (*drop)(void*), void* arg) -> int32_t {
               Stream& stream = Of(queue);
               if (stream.card_.lost()) return WEIR_EMULATED_LOST;
               return stream.Enqueue(std::make_shared<const Work>(run, drop, arg));
             }},
      card_(card),
      thread_([this] { Loop(); }) {}

Stream::~Stream() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void Stream::Push(Operation operation) {
  const std::lock_guard lock(mutex_);
  operations_.push_back(std::move(operation));
  changed_.notify_all();
}

int32_t Stream::Enqueue(std::shared_ptr<const Work> work) {
  if (recording_ != nullptr) {
    recording_->work.push_back(std::move(work));
  } else {
    Push({std::move(work), nullptr, nullptr, false});
  }
  return WEIR_EMULATED_OK;
}

int32_t Stream::Record(driver::EventObject& event) {
  auto mark = std::make_shared<Mark>();
  {
    const std::lock_guard lock(event.mutex);
    event.mark = mark;
    event.recording = recording_;
  }
  if (recording_ == nullptr) Push({nullptr, nullptr, std::move(mark), false});
  return WEIR_EMULATED_OK;
}

int32_t Stream::Wait(driver::EventObject& event) {
  std::shared_ptr<Mark> mark;
  std::shared_ptr<Recording> recording;
  {
    const std::lock_guard lock(event.mutex);
    mark = event.mark;
    recording = event.recording;
  }
  if (mark == nullptr) return WEIR_EMULATED_INVALID;
  if (recording_ != nullptr || recording != nullptr) {
    // The host's order of enqueueing is kept in a recording, so a wait inside it only joins its stream.
    if (recording == nullptr || (recording_ != nullptr && recording_ != recording)) return WEIR_EMULATED_INVALID;
    if (recording_ == nullptr) {
      recording->streams.push_back(this);
      recording_ = std::move(recording);
    }
    return WEIR_EMULATED_OK;
  }
  Push({nullptr, nullptr, std::move(mark), true});
  return WEIR_EMULATED_OK;
}

int32_t Stream::BeginCapture() {
  if (recording_ != nullptr) return WEIR_EMULATED_INVALID;
  recording_ = std::make_shared<Recording>();
  recording_->streams.push_back(this);
  return WEIR_EMULATED_OK;
}

std::shared_ptr<Recording> Stream::EndCapture() {
  if (recording_ == nullptr || recording_->streams.front() != this) return nullptr;
  std::shared_ptr<Recording> done = recording_;
  for (Stream* const stream : done->streams) stream->recording_ = nullptr;
  return done;
}

int32_t Stream::Replay(std::shared_ptr<const Recording> recording) {
  if (recording_ != nullptr) return WEIR_EMULATED_INVALID;
  Push({nullptr, std::move(recording), nullptr, false});
  return WEIR_EMULATED_OK;
}

void Stream::Loop() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return closing_ || !operations_.empty(); });
    if (operations_.empty()) return;
    {
      const Operation operation = std::move(operations_.front());
      operations_.pop_front();
      lock.unlock();
      Do(operation);
    }  // releases the work while the stream is not locked
    lock.lock();
  }
}

void Stream::Do(const Operation& operation) {
  if (operation.mark != nullptr && !operation.waits) {
    if (failure_ == WEIR_EMULATED_OK && card_.lost()) failure_ = WEIR_EMULATED_LOST;
    return operation.mark->Reach(failure_);
  }
  if (operation.waits) {
    const int32_t code = operation.mark->Await();
    if (code != WEIR_EMULATED_OK && failure_ == WEIR_EMULATED_OK) {
      failure_ = card_.lost() ? WEIR_EMULATED_LOST : WEIR_EMULATED_ELSEWHERE;
    }
    return;
  }
  if (failure_ != WEIR_EMULATED_OK) return;
  if (operation.work != nullptr) {
    failure_ = card_.Begin();
    if (failure_ == WEIR_EMULATED_OK) operation.work->Run();
    return;
  }
  for (const std::shared_ptr<const Work>& work : operation.recording->work) {
    failure_ = card_.Begin();
    if (failure_ != WEIR_EMULATED_OK) return;
    work->Run();
  }
}

}  // namespace weir::gpu::emulated
