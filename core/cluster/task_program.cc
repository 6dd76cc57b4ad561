#include "core/cluster/task_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <set>
#include <string_view>

#include "core/base/errors.h"
#include "core/cluster/step_link.h"
#include "core/runtime/cancellation.h"
#include "core/runtime/wait_help.h"

namespace weir::cluster {
namespace {

/// For the messages about one trace; a step does not fail with them.
constexpr std::chrono::seconds kTraceLimit{10};

/// The lines of a part's error that say what it waited for, in one line.
std::string WaitsIn(std::string_view text) {
  std::string waits;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    for (const std::string_view word : {"running: ", "ready: ", "waiting: ", "not received: ", "did not complete: "}) {
      if (line.starts_with(word)) (waits += waits.empty() ? "" : "; ") += line;
    }
  }
  return waits;
}

}  // namespace

/// One run. Kept by the parts under way.
class RegisteredProgram::Running : public std::enable_shared_from_this<Running> {
 public:
  Running(const RegisteredProgram& program, std::vector<Part> parts)
      : session_(program.numbers_->session),
        step_(RandomId() >> 6),
        parts_(std::move(parts)),
        replies_(parts_.size()),
        ends_(parts_.size()),
        left_(parts_.size()) {}

  uint64_t step() const { return step_; }

  StepDone DoneOf(size_t part) {
    return StepDone([self = shared_from_this(), part](Result<std::vector<Tensor>> reply) {
      self->End(part, std::move(reply));
    });
  }

  /// Ends the parts that are under way, once. The first cause counts.
  void Fail(const Status& why, bool cancelled) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      cancelled_ = cancelled_ || cancelled;
      if (!cause_.ok()) return;
      cause_ = why;
      changed_.notify_all();
    }
    for (const Part& part : parts_) {
      // A task that cannot be reached ends its part by itself.
      static_cast<void>(part.worker->CancelStep(session_, step_, cancelled ? why : Derived(why)));
    }
  }

  bool over() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return left_ == 0 || cancelled_;
  }

  /// Until all parts have ended, or `grace` after a cancellation.
  Status Wait(std::chrono::milliseconds grace) {
    if (const runtime::WaitHelp* const help = runtime::WaitHelp::Here()) {
      help->Receive([this] { return over(); });
    }
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return left_ == 0 || cancelled_; });
    if (left_ > 0) changed_.wait_for(lock, grace, [this] { return left_ == 0; });
    if (cancelled_ && cause_.code() == Code::kDeadlineExceeded) return cause_.Append(Waits());
    return !cause_.ok() && IsDerived(cause_) && !root_.ok() ? root_ : cause_;
  }

  std::vector<Tensor>& reply(size_t part) { return replies_[part]; }

 private:
  /// With the line of the model that made the node of an error.
  static Status WithLine(const Status& status, const Part& part) {
    const auto origin = part.origins.find(status.node());
    if (status.ok() || !status.where().empty() || origin == part.origins.end()) return status;
    return Status(status.code(), status.message()).WithNode(status.node(), origin->second);
  }

  /// "\nin /job:ps/replica:0/task:0: running: 'a' on CPU:0" for each task that did not end by itself.
  std::string Waits() const {
    std::string text;
    for (size_t p = 0; p < parts_.size(); ++p) {
      if (ended_.contains(p) && ends_[p].ok()) continue;
      const std::string waits = ended_.contains(p) ? WaitsIn(ends_[p].message()) : "no answer";
      if (!waits.empty()) text += fmt::format("\nin {}: {}", parts_[p].worker->task().ToString(), waits);
    }
    return text;
  }

  void End(size_t part, Result<std::vector<Tensor>> reply) {
    const Status status = FromTask(WithLine(reply.status(), parts_[part]), parts_[part].worker->task());
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      ends_[part] = reply.status();
      ended_.insert(part);
      if (reply.ok()) replies_[part] = *std::move(reply);
      if (!status.ok() && !IsDerived(status) && root_.ok()) root_ = status;
    }
    if (!status.ok()) Fail(status, false);
    const std::lock_guard<std::mutex> lock(mutex_);
    --left_;
    changed_.notify_all();
  }

  const uint64_t session_, step_;
  const std::vector<Part> parts_;
  std::mutex mutex_;  // protects all below
  std::condition_variable changed_;
  std::vector<std::vector<Tensor>> replies_;
  std::vector<Status> ends_;  // by part; of those that have ended
  std::set<size_t> ended_;
  size_t left_;
  bool cancelled_ = false;
  Status cause_;  // the first error
  Status root_;   // the first that no other task caused
};

RegisteredProgram::~RegisteredProgram() {
  for (const Part& part : parts_) {
    static_cast<void>(part.worker->DeregisterPart(numbers_->session, part.handle.id));  // a lost task has forgotten it
  }
}

Status RegisteredProgram::Run(std::span<const Tensor> feeds, std::vector<Tensor>* fetches,
                              runtime::Cancellation* cancellation, trace::StepTrace* trace) {
  Clock::time_point deadline = cancellation != nullptr ? cancellation->deadline() : Clock::time_point::max();
  std::vector<Result<int64_t>> ahead;
  if (trace != nullptr) ahead = AskClocks(deadline);
  const auto running = std::make_shared<Running>(*this, parts_);
  runtime::CancelCallback callback;
  if (cancellation != nullptr) {
    const auto end = [running, cancellation] { running->Fail(cancellation->status(), true); };
    if (!callback.Register(*cancellation, end)) return cancellation->status();
  }
  const bool alone = parts_.size() == 1 && trace == nullptr;
  const bool forget = !alone && trace == nullptr;
  std::vector<std::shared_ptr<std::atomic<bool>>> forgotten(parts_.size());
  const runtime::WaitHelpScope helped(Help());
  // Values cross between the own task and the others along their calls.
  const std::shared_ptr<Worker>& last = parts_.back().worker;
  const bool own = last->own_devices() != nullptr;
  std::vector<std::shared_ptr<const StepLink>> links;
  // The master ends the step at its deadline, and waits for the grace. Tasks have longer, so that they can say what
  // waits there, and one that does not answer is known by that.
  if (deadline != Clock::time_point::max()) deadline += 2 * grace_;
  for (size_t p = 0; p < parts_.size(); ++p) {
    const Part& part = parts_[p];
    StepRequest request;
    request.session = numbers_->session;
    request.part = part.handle.id;
    request.step = running->step();
    request.request = numbers_->last.fetch_add(1, std::memory_order_relaxed) + 1;
    request.deadline = deadline;
    request.alone = alone;
    request.trace = trace != nullptr;
    if (forget) request.forgotten = forgotten[p] = std::make_shared<std::atomic<bool>>(false);
    request.on_this_thread = p + 1 == parts_.size();
    for (const int feed : part.handle.feeds) request.feeds.push_back(feeds[static_cast<size_t>(feed)]);
    const bool far = part.worker != last && part.worker->pulls();
    const std::shared_ptr<StepLink> link = own && far ? LinkTo(*last, part, running->step()) : nullptr;
    request.link = link;
    if (part.worker == last) request.links = std::move(links);
    part.worker->RunStep(std::move(request), running->DoneOf(p));
    if (link != nullptr && link->send) links.push_back(link);
  }
  const Status status = running->Wait(grace_);
  callback.Deregister();
  if (trace != nullptr) *trace = TakeTraces(running->step(), ahead);
  for (size_t p = 0; p < parts_.size(); ++p) {
    const bool over = alone || (forget && forgotten[p]->load(std::memory_order_relaxed));
    if (!over || !status.ok()) {
      static_cast<void>(parts_[p].worker->CleanupStep(numbers_->session, running->step()));
    }
  }
  if (!status.ok()) return status;
  fetches->assign(fetches_, Tensor());
  for (size_t p = 0; p < parts_.size(); ++p) {
    std::vector<Tensor>& reply = running->reply(p);
    const std::vector<int>& positions = parts_[p].handle.fetches;
    if (reply.size() != positions.size()) {
      return Internal("{} sent {} values of a step, wanted {}", parts_[p].worker->task().ToString(), reply.size(),
                      positions.size());
    }
    for (size_t i = 0; i < positions.size(); ++i) (*fetches)[static_cast<size_t>(positions[i])] = std::move(reply[i]);
  }
  return Status();
}

std::shared_ptr<StepLink> RegisteredProgram::LinkTo(Worker& own, const Part& part, uint64_t step) const {
  auto link = std::make_shared<StepLink>();
  link->own = own.task();
  link->other = part.worker->task();
  link->taken = [worker = own.weak_from_this(), session = numbers_->session, step](std::string_view key,
                                                                                   runtime::Message message) {
    // A step that has ended wants no values.
    if (const auto to = worker.lock()) {
      static_cast<void>(to->TakeValue({session, step, std::string(key)}, std::move(message)));
    }
  };
  return link;
}

const runtime::WaitHelp* RegisteredProgram::Help() const {
  for (const Part& part : parts_) {
    if (const runtime::WaitHelp* const help = part.worker->help()) return help;
  }
  return nullptr;
}

std::vector<Result<int64_t>> RegisteredProgram::AskClocks(Clock::time_point deadline) const {
  deadline = std::min(deadline, Clock::now() + kTraceLimit);
  std::vector<Result<int64_t>> ahead;
  for (const Part& part : parts_) ahead.push_back(numbers_->clocks.Ahead(*part.worker, deadline));
  return ahead;
}

trace::StepTrace RegisteredProgram::TakeTraces(uint64_t step, const std::vector<Result<int64_t>>& ahead) const {
  const Clock::time_point deadline = Clock::now() + kTraceLimit;
  std::vector<TaskTrace> traces;
  for (size_t p = 0; p < parts_.size(); ++p) {
    Worker& worker = *parts_[p].worker;
    if (ahead[p].ok()) {
      traces.push_back({worker.task(), *ahead[p], worker.TakeTrace(numbers_->session, step, deadline)});
    } else {
      traces.push_back({worker.task(), 0, ahead[p].status()});
    }
  }
  return MergeTraces(std::move(traces), 0);
}

}  // namespace weir::cluster
