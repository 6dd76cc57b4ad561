#include "core/base/errors.h"
#include "core/execute/dataflow_internal.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <iterator>
#include <set>
#include <thread>
#include <utility>

#include "core/execute/denormals.h"
#include "core/execute/tape_trace.h"
#include "core/runtime/blocking_pool.h"
#include "core/runtime/compute_pool.h"
#include "core/runtime/wait_help.h"

namespace weir::execute {

using Clock = std::chrono::steady_clock;

namespace {

constexpr auto kSpinTime = std::chrono::microseconds(20);
constexpr double kWorthHelpers = 200e3;  // ns; what makes a plan worth threads (core/plan)
constexpr auto kRelaxed = std::memory_order_relaxed;

}  // namespace

class ReadyQueue::Lock {
 public:
  explicit Lock(ReadyQueue& queue) : queue_(queue) {
    while (queue.busy_.test_and_set(std::memory_order_acquire)) std::this_thread::yield();
  }
  ~Lock() {
    queue_.first_.store(queue_.tasks_.empty() ? kNone : queue_.tasks_.front(), kRelaxed);
    queue_.busy_.clear(std::memory_order_release);
  }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  ReadyQueue& queue_;
};

void ReadyQueue::Reserve(size_t tasks) { tasks_.reserve(tasks); }

void ReadyQueue::Clear() {
  const Lock lock(*this);
  tasks_.clear();
}

void ReadyQueue::Push(uint32_t task) {
  const Lock lock(*this);
  tasks_.push_back(task);
  std::push_heap(tasks_.begin(), tasks_.end(), std::greater<>());
}

uint32_t ReadyQueue::PopFirst() {
  if (first() == kNone) return kNone;
  const Lock lock(*this);
  if (tasks_.empty()) return kNone;
  std::pop_heap(tasks_.begin(), tasks_.end(), std::greater<>());
  const uint32_t task = tasks_.back();
  tasks_.pop_back();
  return task;
}

uint32_t ReadyQueue::TakeLast() {
  const Lock lock(*this);
  if (tasks_.empty()) return kNone;
  const uint32_t task = tasks_.back();
  tasks_.pop_back();
  return task;
}

bool ReadyQueue::Empty() {
  const Lock lock(*this);
  return tasks_.empty();
}

/// A job on the compute pool. The step does not wait for a job that has not begun. The later of the two deletes it.
struct Dataflow::Job {
  enum class State { kOffered, kTaken, kWithdrawn };
  Dataflow* flow = nullptr;
  Worker* worker = nullptr;
  std::atomic<State> state{State::kOffered};
};

Status Dataflow::Run(std::span<const FlowArgs> args, const StepArgs& step) {
  Reset(args, step);
  const bool running = wake_.Register(*end_, [this] {
    const std::lock_guard lock(mutex_);
    changed_.notify_one();
  });
  if (!running) end_->Cancel(end_->status());  // its ancestors' end is its own from here on
  Worker& own = *workers_[0];
  if (serial_) {
    RunSerially(own);
    return End();
  }
  uint32_t first = kNone;
  for (auto root = roots_.rbegin(); root != roots_.rend() && !over(); ++root) first = MakeReady(*root, first, own);
  Follow(first, own);
  for (Work(own); !over(); Work(own)) {
    if (!Await()) Sleep();
  }
  return End();
}

int Dataflow::MostHelpers() const {
  const int threads = std::min(step_.inter_op, runtime::ComputePool::Get().parallelism());
  if (parts_.size() > 1) {
    // Parts that are short together are not worth a thread of their own; a wait for a stream may be long.
    double ns = 0;
    for (const Part& part : parts_) ns += part.instance->streams_.any() ? kWorthHelpers : part.plan->serial_ns;
    if (ns < kWorthHelpers) return 0;
  }
  return std::max(0, threads - 1);
}

void Dataflow::Reset(std::span<const FlowArgs> args, const StepArgs& step) {
  step_ = step;
  step_.cancellation = &end_.emplace(step.cancellation);
  plain_ = !step.check_numerics;
  most_.store(MostHelpers(), kRelaxed);
  const bool alone = most_.load(kRelaxed) == 0;
  if (alone && !std::exchange(serial_order_known_, true)) FindSerialOrder();
  serial_ = alone && !serial_order_.empty();
  while (workers_.size() <= static_cast<size_t>(most_.load(kRelaxed))) {
    workers_.push_back(std::make_unique<Worker>());
    workers_.back()->ready.Reserve(tasks_.size());
    workers_.back()->seats = std::make_unique<Seat[]>(parts_.size());
  }
  free_.clear();
  for (const std::unique_ptr<Worker>& worker : workers_) {
    worker->ready.Clear();
    worker->ended = 0;
    worker->sent = kNone;
    for (size_t p = 0; p < parts_.size(); ++p) {
      Seat& seat = worker->seats[p];
      seat.owner = worker.get();
      seat.flow = this;
      seat.links = parts_[p].links;
      seat.program = args[p].program;
      seat.fetches = args[p].fetches;
      seat.step = step_;
      seat.step.trace = args[p].trace;
      seat.step.resources = args[p].resources;
      seat.step.streams = parts_[p].instance->streams_.any() ? &parts_[p].instance->streams_ : nullptr;
      plain_ = plain_ && args[p].trace == nullptr;
    }
    if (worker != workers_[0]) free_.push_back(worker.get());
  }
  for (size_t t = 0; t < tasks_.size() && serial_; ++t) phase_[t].store(Phase::kWaiting, kRelaxed);
  for (size_t t = 0; t < tasks_.size() && !serial_; ++t) {
    pending_[t].store(tasks_[t].predecessors + (tasks_[t].loop.valid() ? 1 : 0), kRelaxed);
    phase_[t].store(Phase::kWaiting, kRelaxed);
    if (resume_) resume_[t].store(kNone, kRelaxed);
  }
  left_.store(outer_, kRelaxed);
  failed_.store(false, kRelaxed);
  mailed_.store(false, kRelaxed);
  error_ = Status();
  failed_part_ = 0;
}

Status Dataflow::End() {
  Status status = end_->status();
  const std::string waiting = status.code() == Code::kDeadlineExceeded ? Waiting() : std::string();
  if (!status.ok()) end_->Cancel(Cancelled("[_Derived_]Step was ended by the error of another op."));
  std::deque<std::unique_ptr<Away>> unread;
  {
    std::unique_lock lock(mutex_);
    AwaitAll(lock);
    abandoned_ = elsewhere_ != 0;
    unread.swap(mail_);
    // What an op says of the end that it was told of says more than the end itself.
    for (const std::unique_ptr<Away>& away : unread) {
      if (error_.ok() && away->status.code() == status.code() && !status.ok()) error_ = away->status.Append(waiting);
    }
    status = error_.ok() ? status.Append(waiting) : error_;
  }
  unread.clear();
  for (size_t link = 0; link < links_; ++link) {
    Meeting& meeting = meetings_[link];
    if (meeting.message.value.valid()) meeting.message.value = Tensor();
    meeting.sent.clear();
    meeting.suspended = kNone;
  }
  wake_.Deregister();
  if (!abandoned_) {
    end_.reset();
    return status;
  }
  end_->Leave();
  return status.Append(Abandon());
}

void Dataflow::AwaitAll(std::unique_lock<std::mutex>& lock) {
  most_.store(0, kRelaxed);
  std::vector<std::unique_ptr<Job>> taken;
  for (Job* const helper : std::exchange(hired_, {})) {
    if (helper->state.exchange(Job::State::kWithdrawn) == Job::State::kOffered) {
      helpers_.fetch_sub(1, kRelaxed);
    } else {
      taken.emplace_back(helper);
    }
  }
  const auto here = [this] { return helpers_.load(kRelaxed) == 0 && blocking_ == 0; };
  changed_.wait(lock, here);
  changed_.wait_for(lock, step_.grace, [this] { return elsewhere_ == 0; });
}

std::string Dataflow::Abandon() {
  const std::vector<uint32_t> pending = In(Phase::kPending);
  std::string text = List("did not complete", pending);
  text += fmt::format(" within {} ms after that", step_.grace.count());
  for (const uint32_t task : pending) {
    const plan::ExecutionPlan& plan = *parts_[PartOf(task)].plan;
    for (uint32_t i = tasks_[task].begin; i < EndOf(tasks_[task]); ++i) {
      const plan::Instruction& instruction = plan.instructions[i];
      if (instruction.opcode != plan::Opcode::kCall) continue;
      const plan::CallSpec& call = plan.calls[instruction.detail];
      // The host's own device goes on: it is the kernel that hangs.
      if (!call.suspends || call.builtin != nullptr || call.device->host_memory()) continue;
      (void)call.device->Judge(DeadlineExceeded("{} did not complete", call.node->name()), WEIR_ERROR_DEVICE_LOST);
    }
  }
  return text;
}

void Dataflow::Keep(Dataflow& flow, std::unique_ptr<AbandonedRun> run) {
  {
    const std::lock_guard lock(flow.mutex_);
    if (flow.elsewhere_ != 0) {
      flow.kept_ = std::move(run);
      return;
    }
  }
  Delete(std::move(run));
}

void Dataflow::Delete(std::unique_ptr<AbandonedRun> run) {
  // Not on this thread, which may be in a function of what is deleted.
  AbandonedRun* const dropped = run.release();  // kept for ever where there is no thread for it
  (void)runtime::RunBlocking([](void* arg) { delete static_cast<AbandonedRun*>(arg); }, dropped);
}

void Dataflow::RunSerially(Worker& worker) {
  for (const uint32_t task : serial_order_) {
    if (end_->cancelled_itself() || !RunWhole(task, worker)) return;
    phase_[task].store(Phase::kDone, kRelaxed);
  }
}

void Dataflow::Work(Worker& worker) {
  while (!end_->cancelled_itself()) {
    const uint32_t task = Take(worker);
    if (task == kNone) return;
    Follow(task, worker);
  }
}

void Dataflow::Follow(uint32_t task, Worker& worker) {
  while (task != kNone) {
    if (worker.ready.first() < task) {
      worker.ready.Push(task);
      task = worker.ready.PopFirst();
      if (task == kNone) return;
    }
    task = WithSent(RunTask(task, worker), worker);
  }
}

uint32_t Dataflow::Take(Worker& worker) {
  uint32_t task = worker.ready.PopFirst();
  if (task == kNone && mailed_.load(std::memory_order_acquire)) task = TakeMail(worker);
  if (task != kNone) return task;
  if (const size_t ended = std::exchange(worker.ended, 0); ended != 0) {
    if (left_.fetch_sub(ended, std::memory_order_acq_rel) == ended) {
      const std::lock_guard lock(mutex_);
      changed_.notify_one();
    }
  }
  return Steal(worker);
}

uint32_t Dataflow::Steal(const Worker& worker) {
  for (const std::unique_ptr<Worker>& other : workers_) {
    if (other.get() == &worker || other->ready.first() == kNone) continue;
    if (const uint32_t task = other->ready.TakeLast(); task != kNone) return task;
  }
  return kNone;
}

uint32_t Dataflow::RunTask(uint32_t task, Worker& worker) {
  const plan::Task& range = tasks_[task];
  if (!range.suspends) return RunWhole(task, worker) ? Ended(task, worker) : kNone;
  phase_[task].store(Phase::kRunning, kRelaxed);
  const uint32_t from = resume_ ? resume_[task].exchange(kNone, kRelaxed) : kNone;
  return Continue(task, from != kNone ? from : range.begin, worker);
}

bool Dataflow::RunWhole(uint32_t task, Worker& worker) {
  phase_[task].store(Phase::kRunning, kRelaxed);
  const plan::Task& range = tasks_[task];
  const size_t part = PartOf(task);
  Seat& seat = worker.seats[part];
  uint32_t begin = range.begin;
  if (received_ && received_[task] != Links::kNone && !Receive(task, begin++, received_[task], seat)) return false;
  const Status status = Execute(parts_[part], begin, EndOf(range), seat);
  // A kernel may have cut itself short, and counts as running then.
  if (status.ok()) return !end_->cancelled_itself();
  Fail(status, part);
  return false;
}

Status Dataflow::Execute(const Part& part, uint32_t begin, uint32_t end, Seat& seat) {
  constexpr uint32_t kShort = 64;  // instructions; a tape asks no more often whether the step goes on
  if (!plain_ || end - begin > kShort) return part.instance->Tape(seat, begin, end);
  const plan::Instruction* at = part.plan->instructions.data() + begin;
  const plan::Instruction* const stop = at + (end - begin);
  for (;;) {
    Status status = part.instance->Stretch(seat, &at, stop);
    if (at >= stop || !status.ok() || end_->cancelled_itself()) return status;
  }
}

uint32_t Dataflow::Continue(uint32_t task, uint32_t at, Worker& worker) {
  const uint32_t end = EndOf(tasks_[task]);
  const size_t number = PartOf(task);
  const Part& part = parts_[number];
  const plan::Instruction* const tape = part.plan->instructions.data();
  while (at < end) {
    if (end_->cancelled_itself()) return kNone;
    const plan::Instruction& instruction = tape[at];
    if (instruction.opcode == plan::Opcode::kRecv && part.links != nullptr &&
        part.links[instruction.detail] != Links::kNone) {
      if (!Receive(task, at, part.links[instruction.detail], worker.seats[number])) return kNone;
      ++at;
      continue;
    }
    const bool called = instruction.opcode == plan::Opcode::kCall && part.plan->calls[instruction.detail].suspends;
    if (called || instruction.opcode == plan::Opcode::kRecv) {
      Start(task, at, worker);
      return kNone;
    }
    Seat& seat = worker.seats[number];
    Status status;
    const plan::Instruction* position = tape + end;
    if (at >= straight_[task]) {
      status = Execute(part, at, end, seat);
    } else {
      position = tape + at;
      status = part.instance->Stretch(seat, &position, position + 1);
    }
    if (!status.ok()) {
      Fail(status, number);
      return kNone;
    }
    at = static_cast<uint32_t>(position - tape);
  }
  return end_->cancelled_itself() ? kNone : Ended(task, worker);
}

uint32_t Dataflow::Ended(uint32_t task, Worker& worker) {
  phase_[task].store(Phase::kDone, kRelaxed);
  const plan::Task& done = tasks_[task];
  // Where it is a loop that is cut, what leads into it is done.
  const bool enters = done.inner > 0 && !parts_[PartOf(task)].instance->Skipped(done);
  return enters ? BeginIteration(task, worker) : Complete(task, worker);
}

uint32_t Dataflow::Complete(uint32_t task, Worker& worker) {
  for (;;) {
    const plan::Task& done = tasks_[task];
    uint32_t next = kNone;
    for (uint32_t s = done.first_successor + done.successor_count; s-- > done.first_successor;) {
      const uint32_t successor = successors_[s].number();
      const bool ready =
          tasks_[successor].predecessors == 1 || pending_[successor].fetch_sub(1, std::memory_order_acq_rel) == 1;
      if (ready) next = MakeReady(successor, next, worker);
    }
    if (!done.loop.valid()) {
      ++worker.ended;
      return next;
    }
    task = done.loop.number();
    if (inner_[task].fetch_sub(1, std::memory_order_acq_rel) != 1) return next;
    // The last one of an iteration, which nothing waits for but the loop.
    if (parts_[PartOf(task)].instance->Repeats(tasks_[task])) return BeginIteration(task, worker);
  }
}

uint32_t Dataflow::BeginIteration(uint32_t loop, Worker& worker) {
  const std::vector<uint32_t>& body = bodies_[loop];
  inner_[loop].store(tasks_[loop].inner, kRelaxed);
  // All of them, before the first one begins and ends.
  for (const uint32_t task : body) {
    pending_[task].store(tasks_[task].predecessors, kRelaxed);
    phase_[task].store(Phase::kWaiting, kRelaxed);
  }
  uint32_t next = kNone;
  for (size_t i = body.size(); i-- > 0;) {
    if (tasks_[body[i]].predecessors == 0) next = MakeReady(body[i], next, worker);
  }
  return next;
}

uint32_t Dataflow::MakeReady(uint32_t task, uint32_t next, Worker& worker) {
  if (tasks_[task].blocking) {
    Block(task);
    return next;
  }
  if (next != kNone) {
    worker.ready.Push(next);
    Invite();
  }
  return task;
}

void Dataflow::Fail(const Status& status, size_t part) {
  const std::string waiting = status.code() == Code::kDeadlineExceeded ? Waiting() : std::string();
  {
    const std::lock_guard lock(mutex_);
    if (error_.ok()) {
      error_ = waiting.empty() ? status : status.Append(waiting);
      failed_part_ = part;
    }
    failed_.store(true, std::memory_order_release);
    changed_.notify_one();
  }
  end_->Cancel(Cancelled("[_Derived_]Step was ended by the error of another op."));
}

bool Dataflow::HasWork() {
  return mailed_.load(kRelaxed) || std::ranges::any_of(workers_, [](const std::unique_ptr<Worker>& worker) {
           return worker->ready.first() != kNone;
         });
}

bool Dataflow::AnyReady() {
  return std::ranges::any_of(workers_, [](const std::unique_ptr<Worker>& worker) { return !worker->ready.Empty(); });
}

bool Dataflow::AwaitsMessages() {
  const std::lock_guard lock(mutex_);
  return receives_ > 0 && receives_ == elsewhere_ && blocking_ == 0 && helpers_.load(kRelaxed) == 0;
}

bool Dataflow::Await() {
  if (const runtime::WaitHelp* const help = runtime::WaitHelp::Here(); help != nullptr && AwaitsMessages()) {
    spinning_.store(true, kRelaxed);
    const bool received = help->Receive([this] { return over() || HasWork(); });
    spinning_.store(false, kRelaxed);
    if (received) return over() || HasWork();
  }
  // Other parts of the step answer sooner than a sleeping thread wakes up, unless they need this CPU for that.
  const bool meets = step_.rendezvous != nullptr && runtime::ComputePool::Get().parallelism() > 1;
  if (helpers_.load(kRelaxed) == 0 && !meets) return false;
  spinning_.store(true, kRelaxed);
  const bool found = Spin();
  spinning_.store(false, kRelaxed);
  return found;
}

bool Dataflow::Spin() {
  const auto until = Clock::now() + kSpinTime;
  do {
    if (over() || HasWork()) return true;
  } while (Clock::now() < until);
  return false;
}

void Dataflow::Sleep() {
  if (const runtime::WaitHelp* const help = runtime::WaitHelp::Here()) help->Receive({});
  std::unique_lock lock(mutex_);
  sleeping_.store(true);
  changed_.wait(lock, [this] {
    // Who pushes after this looked at its queue sees that the caller sleeps.
    return over() || !mail_.empty() || AnyReady();
  });
  sleeping_.store(false);
}

void Dataflow::Invite() {
  if (sleeping_.load()) {
    const std::lock_guard lock(mutex_);
    changed_.notify_one();
  } else if (helpers_.load(kRelaxed) < most_.load(kRelaxed)) {
    const std::lock_guard lock(mutex_);
    Hire();
  }
}

void Dataflow::Hire() {
  if (helpers_.load(kRelaxed) >= most_.load(kRelaxed)) return;
  auto helper = std::make_unique<Job>();
  helper->flow = this;
  helper->worker = free_.back();
  const auto help = [](void* arg) {
    auto* const own = static_cast<Job*>(arg);
    if (own->state.exchange(Job::State::kTaken) == Job::State::kOffered) return own->flow->Help(*own->worker);
    delete own;
  };
  free_.pop_back();
  helpers_.fetch_add(1, kRelaxed);
  if (runtime::ComputePool::Get().Submit(help, helper.get())) {
    hired_.push_back(helper.release());
    return;
  }
  free_.push_back(helper->worker);
  helpers_.fetch_sub(1, kRelaxed);
  most_.store(0, kRelaxed);  // there are no threads: the caller's does it all
}

void Dataflow::Help(Worker& worker) {
  const FlushDenormals flush;
  for (;;) {
    do {
      Work(worker);
    } while (Spin() && !over());
    const std::lock_guard lock(mutex_);
    helpers_.fetch_sub(1, kRelaxed);
    // Who pushes after this looked at its queue sees that one helper is missing.
    if (over() || (!AnyReady() && mail_.empty())) {
      free_.push_back(&worker);
      changed_.notify_one();
      return;
    }
    helpers_.fetch_add(1, kRelaxed);
  }
}

std::vector<uint32_t> Dataflow::In(Phase phase) const {
  std::vector<uint32_t> tasks;
  for (uint32_t t = 0; t < tasks_.size(); ++t) {
    if (phase_[t].load(kRelaxed) == phase) tasks.push_back(t);
  }
  return tasks;
}

std::string WithDevice(const plan::ExecutionPlan& plan, std::string_view name) {
  const auto placed = std::ranges::find(plan.placed_nodes, name, &plan::PlacedNode::name);
  std::string_view device = placed == plan.placed_nodes.end() ? std::string_view() : placed->device;
  device.remove_prefix(std::min(device.rfind(':', device.rfind(':') - 1) + 1, device.size()));
  return fmt::format("'{}'{}{}", name, device.empty() ? "" : " on ", device);
}

std::string Dataflow::List(const char* what, const std::vector<uint32_t>& tasks) const {
  constexpr size_t kShown = 10;
  std::string text;
  std::set<std::string> names;
  for (const uint32_t task : tasks) {
    const plan::Instruction& first = InstructionAt(task, tasks_[task].begin);
    const plan::ExecutionPlan& plan = *parts_[PartOf(task)].plan;
    const std::string& name = plan.nodes[first.node]->name();
    if (!names.insert(name).second || names.size() > kShown) continue;
    text += (names.size() == 1 ? fmt::format("\n{}: ", what) : ", ") + WithDevice(plan, name);
  }
  return names.size() > kShown ? text + fmt::format(" and {} more", names.size() - kShown) : text;
}

std::string Dataflow::Waiting() const {
  std::vector<uint32_t> running = In(Phase::kRunning), ready, waiting;
  std::ranges::copy(In(Phase::kPending), std::back_inserter(running));
  for (const uint32_t task : In(Phase::kWaiting)) {
    (!serial_ && pending_[task].load(kRelaxed) == 0 ? ready : waiting).push_back(task);
  }
  std::ranges::copy(In(Phase::kAwaiting), std::back_inserter(waiting));
  return List("running", running) + List("ready", ready) + List("waiting", waiting) + NotReceived();
}

}  // namespace weir::execute
