#include "core/builtin/reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "core/base/errors.h"
#include "core/io/reader_state.h"

namespace weir::builtin {

struct Reader::Request {
  int64_t most = 1;
  std::shared_ptr<FifoQueue> queue;
  runtime::Cancellation* cancellation = nullptr;
  std::vector<Record> records;
  Done done;
  runtime::CancelCallback cancel;  // while it waits for its turn
};

Reader::Reader(std::string name, Options options) : name_(std::move(name)), options_(std::move(options)) {}
Reader::~Reader() { Clear(); }

std::string Reader::DebugString() const { return fmt::format("{} '{}'", options_.kind, name_); }

void Reader::Read(int64_t most, std::shared_ptr<FifoQueue> queue, runtime::Cancellation* cancellation, Done done) {
  if (most <= 0) return done(std::vector<Record>());
  if (queue->options().types.size() != 1) return done(InvalidArgument("Expected single component queue"));
  if (queue->options().types[0] != DType::kString) {
    return done(InvalidArgument("Expected queue with single string component"));
  }
  auto request = std::make_shared<Request>();
  request->most = most;
  request->queue = std::move(queue);
  request->cancellation = cancellation;
  request->done = std::move(done);
  const Request* const self = request.get();
  if (cancellation != nullptr) {
    const auto cancelled = [reader = weak_from_this(), self, cancellation] {
      if (const std::shared_ptr<Reader> there = reader.lock()) there->Cancel(self, *cancellation);
    };
    if (!request->cancel.Register(*cancellation, cancelled)) return request->done(cancellation->status());
  }
  {
    const std::lock_guard lock(mutex_);
    if (serving_) {
      waiting_.push_back(std::move(request));
    } else {
      serving_ = true;
    }
  }
  if (request != nullptr) return Serve(std::move(request));
  // A callback that ran before the request was in the list did not find it.
  if (cancellation != nullptr && cancellation->cancelled()) Cancel(self, *cancellation);
}

void Reader::Cancel(const Request* request, const runtime::Cancellation& cancellation) {
  RequestPtr cancelled;
  {
    const std::lock_guard lock(mutex_);
    const auto found = std::ranges::find(waiting_, request, [](const RequestPtr& one) { return one.get(); });
    if (found == waiting_.end()) return;  // it is served: its queue ends it
    cancelled = std::move(*found);
    waiting_.erase(found);
  }
  cancelled->cancel.Deregister();
  cancelled->done(cancellation.status());
}

void Reader::Serve(RequestPtr request) {
  const std::shared_ptr<Reader> alive = shared_from_this();  // the completion may drop the last handle
  while (request != nullptr) {
    request->cancel.Deregister();
    std::optional<Status> ended = GoOn(request);
    if (!ended) return;
    request = End(request, *ended);
  }
}

std::optional<Status> Reader::GoOn(const RequestPtr& request) {
  // What the queue gives, which may come before Dequeue returns: then this loop goes on, not a call within the call.
  struct Arrival {
    std::atomic<bool> met{false};  // by the first of the two: the completion, or the end of Dequeue
    Result<std::vector<Tensor>> tuple = std::vector<Tensor>();
  };
  for (;;) {
    if (std::optional<Status> ended = ReadRecords(*request)) return ended;
    auto arrival = std::make_shared<Arrival>();
    const auto arrived = [reader = shared_from_this(), request, arrival](Result<std::vector<Tensor>> tuple) {
      arrival->tuple = std::move(tuple);
      if (!arrival->met.exchange(true)) return;
      const Status begun = reader->Begin(arrival->tuple);
      std::optional<Status> ended = begun.ok() ? reader->GoOn(request) : begun;
      if (ended) reader->Serve(reader->End(request, *ended));
    };
    request->queue->Dequeue(1, /*stack=*/false, FifoQueue::Leftover::kError, request->cancellation,
                            runtime::Completion(arrived));
    if (!arrival->met.exchange(true)) return std::nullopt;
    if (const Status begun = Begin(arrival->tuple); !begun.ok()) return begun;
  }
}

std::optional<Status> Reader::ReadRecords(Request& request) {
  const std::lock_guard reading(source_mutex_);
  while (source_ != nullptr) {
    Result<RecordSource::Step> step = source_->Next();
    if (!step.ok()) return step.status();
    {
      const std::lock_guard lock(mutex_);
      if (step->record) ++state_.produced;
      if (step->ended) state_.finished = state_.started;
    }
    if (step->record) request.records.push_back(std::move(*step->record));
    if (step->ended) source_.reset();
    if (static_cast<int64_t>(request.records.size()) >= request.most) return Status();
  }
  if (!request.records.empty()) return Status();
  return std::nullopt;
}

Status Reader::Begin(const Result<std::vector<Tensor>>& dequeued) {
  WEIR_TRY(dequeued.status());
  const Tensor& name = (*dequeued)[0];
  if (name.elements() != 1) return InvalidArgument("Expected to dequeue a one-element string tensor");
  const std::string& work = name.as<std::string>()[0];
  const std::lock_guard reading(source_mutex_);
  WEIR_ASSIGN(source_, options_.open(work));
  const std::lock_guard lock(mutex_);
  state_.work = work;
  ++state_.started;
  return Status();
}

Reader::RequestPtr Reader::End(const RequestPtr& request, const Status& status) {
  RequestPtr next;
  {
    const std::lock_guard lock(mutex_);
    serving_ = !waiting_.empty();
    if (serving_) {
      next = std::move(waiting_.front());
      waiting_.pop_front();
    }
  }
  request->done(status.ok() ? Result<std::vector<Record>>(std::move(request->records)) : status);
  return next;
}

int64_t Reader::records_produced() const {
  const std::lock_guard lock(mutex_);
  return state_.produced;
}

int64_t Reader::units_completed() const {
  const std::lock_guard lock(mutex_);
  return state_.finished;
}

void Reader::Reset() {
  const std::lock_guard reading(source_mutex_);
  source_.reset();
  const std::lock_guard lock(mutex_);
  state_ = {};
}

Result<std::string> Reader::SerializeState() const {
  if (!options_.saves_state) return Unimplemented("Reader SerializeState");
  const std::lock_guard lock(mutex_);
  return io::EncodeReaderState(state_);
}

Status Reader::RestoreState(std::string_view bytes) {
  Reset();
  if (!options_.saves_state) return Unimplemented("Reader RestoreState");
  WEIR_ASSIGN(io::ReaderState state, io::DecodeReaderState(bytes, DebugString()));
  const std::lock_guard lock(mutex_);
  state_ = std::move(state);
  return Status();
}

void Reader::Clear() {
  std::list<RequestPtr> waiting;
  {
    const std::lock_guard lock(mutex_);
    waiting.swap(waiting_);
  }
  for (const RequestPtr& request : waiting) {
    request->cancel.Deregister();
    request->done(Cancelled("{} was destroyed", DebugString()));
  }
}

}  // namespace weir::builtin
