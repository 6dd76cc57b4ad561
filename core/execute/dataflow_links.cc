// The tasks of several parts in one flow, and the messages between them.
#include <algorithm>
#include <functional>
#include <queue>
#include <string>
#include <thread>
#include <utility>

#include "core/execute/dataflow_internal.h"
#include "core/execute/tape_trace.h"

namespace weir::execute {

namespace {

/// By instruction: true if the tape may be cut behind it, that is, if no jump crosses that place.
std::vector<bool> PlacesToCut(const plan::ExecutionPlan& plan) {
  std::vector<int> open(plan.instructions.size() + 1, 0);  // where ranges that jumps cross begin, less where they end
  for (uint32_t i = 0; i < plan.instructions.size(); ++i) {
    const plan::Instruction& instruction = plan.instructions[i];
    if (instruction.opcode != plan::Opcode::kSkip && instruction.opcode != plan::Opcode::kRepeat) continue;
    const uint32_t target = plan.jumps[instruction.detail].target;
    ++open[std::min(i, target)];
    --open[std::max(i, target == 0 ? 0 : target - 1)];
  }
  std::vector<bool> places;
  int inside = 0;
  for (size_t i = 0; i < plan.instructions.size(); ++i) {
    inside += open[i];
    places.push_back(inside == 0);
  }
  return places;
}

/// The instruction of a task that is no loop from which on it does not suspend, nor jump back.
uint32_t StraightFrom(const plan::ExecutionPlan& plan, const plan::Task& task) {
  const auto leaves = [&plan](const plan::Instruction& instruction) {
    return instruction.opcode == plan::Opcode::kRecv || instruction.opcode == plan::Opcode::kRepeat ||
           (instruction.opcode == plan::Opcode::kCall && plan.calls[instruction.detail].suspends);
  };
  uint32_t at = task.end;
  while (at > task.begin && !leaves(plan.instructions[at - 1])) --at;
  return at;
}

}  // namespace

Dataflow::Dataflow(PlanRunner::Instance& instance)
    : parts_{{&instance, &instance.plan_}},
      tasks_(instance.plan_.tasks.elements()),
      successors_(instance.plan_.successors) {
  FindRoots();
}

Dataflow::Dataflow(const std::vector<PlanRunner::Instance*>& instances, const Links& links)
    : meetings_(std::make_unique<Meeting[]>(links.all().size())), links_(links.all().size()) {
  for (PlanRunner::Instance* const instance : instances) {
    const std::span<const uint32_t> own = links.Of(parts_.size());
    parts_.push_back({instance, &instance->plan_, static_cast<uint32_t>(joined_.size()), own.data()});
    Join(parts_.back());
    part_of_.resize(joined_.size(), static_cast<uint32_t>(parts_.size() - 1));
  }
  tasks_ = joined_;
  successors_ = joined_successors_;
  FindReceivers(links);
  resume_ = std::make_unique<std::atomic<uint32_t>[]>(tasks_.size());
  FindRoots();
}

Dataflow::~Dataflow() = default;

void Dataflow::Join(const Part& part) {
  if (part.plan->tier == plan::Tier::kT0) return JoinTape(part);
  const auto before = static_cast<uint32_t>(joined_successors_.size());
  const auto of_all = [&](plan::TaskId own) { return plan::TaskId(part.first_task + own.number()); };
  for (plan::Task task : part.plan->tasks) {
    if (task.loop.valid()) task.loop = of_all(task.loop);
    task.first_successor += before;
    joined_.push_back(task);
  }
  for (const plan::TaskId successor : part.plan->successors) joined_successors_.push_back(of_all(successor));
}

void Dataflow::JoinTape(const Part& part) {
  const std::vector<bool> places = PlacesToCut(*part.plan);
  const auto end = static_cast<uint32_t>(places.size());
  plan::Task task;
  for (uint32_t i = 0; i < end; ++i) {
    task.end = i + 1;
    const bool last = task.end == end;
    if (!last && (part.plan->instructions[i].opcode != plan::Opcode::kSend || !places[i])) continue;
    task.first_successor = static_cast<uint32_t>(joined_successors_.size());
    task.successor_count = last ? 0 : 1;
    joined_.push_back(task);
    if (!last) joined_successors_.emplace_back(joined_.size());
    task.begin = task.end;
    task.predecessors = 1;
  }
}

void Dataflow::FindReceivers(const Links& links) {
  received_ = std::make_unique<uint32_t[]>(joined_.size());
  std::fill_n(received_.get(), joined_.size(), Links::kNone);
  for (uint32_t t = 0; t < joined_.size(); ++t) {
    const Part& part = parts_[PartOf(t)];
    plan::Task& task = joined_[t];
    const plan::Instruction& first = part.plan->instructions[task.begin];
    if (task.loop.valid() || !task.suspends || first.opcode != plan::Opcode::kRecv) continue;
    const uint32_t link = part.links[first.detail];
    if (link == Links::kNone || !part.plan->transfers[first.detail].frames.empty()) continue;
    meetings_[link].receiver = t;
    meetings_[link].lends = links.all()[link].lends;
    ++task.predecessors;
    if (StraightFrom(*part.plan, task) != task.begin + 1) continue;
    received_[t] = link;
    task.suspends = false;
  }
}

void Dataflow::FindRoots() {
  const size_t tasks = tasks_.size();
  bodies_.resize(tasks);
  pending_ = std::make_unique<std::atomic<int32_t>[]>(tasks);
  inner_ = std::make_unique<std::atomic<uint32_t>[]>(tasks);
  phase_ = std::make_unique<std::atomic<Phase>[]>(tasks);
  for (uint32_t t = 0; t < tasks; ++t) {
    if (tasks_[t].loop.valid()) {
      bodies_[tasks_[t].loop.position()].push_back(t);
    } else {
      ++outer_;
      if (tasks_[t].predecessors == 0) roots_.push_back(t);
    }
  }
  FindStraights();
}

void Dataflow::FindStraights() {
  straight_ = std::make_unique<uint32_t[]>(tasks_.size());
  for (uint32_t t = 0; t < tasks_.size(); ++t) {
    if (tasks_[t].suspends) straight_[t] = StraightFrom(*parts_[PartOf(t)].plan, tasks_[t]);
  }
}

/// Always the first of the tasks that are ready.
void Dataflow::FindSerialOrder() {
  const auto waits = [](const plan::Task& task) {
    return task.suspends || task.blocking || task.loop.valid() || task.inner > 0;
  };
  if (std::ranges::any_of(tasks_, waits)) return;
  std::vector<int> pending;
  for (const plan::Task& task : tasks_) pending.push_back(task.predecessors);
  std::priority_queue<uint32_t, std::vector<uint32_t>, std::greater<>> ready(roots_.begin(), roots_.end());
  std::vector<uint32_t> order;
  const auto make_ready = [&](uint32_t task) {
    if (--pending[task] == 0) ready.push(task);
  };
  while (!ready.empty()) {
    const plan::Task& task = tasks_[ready.top()];
    const Part& part = parts_[PartOf(ready.top())];
    order.push_back(ready.top());
    ready.pop();
    for (const plan::TaskId successor : successors_.subspan(task.first_successor, task.successor_count)) {
      make_ready(successor.number());
    }
    for (uint32_t i = task.begin; i < task.end && part.links != nullptr; ++i) {
      const plan::Instruction& instruction = part.plan->instructions[i];
      const uint32_t link = instruction.opcode == plan::Opcode::kSend ? part.links[instruction.detail] : Links::kNone;
      if (link == Links::kNone) continue;
      if (meetings_[link].receiver == kNone) return;  // a message for each iteration of a loop
      make_ready(meetings_[link].receiver);
    }
  }
  if (order.size() == tasks_.size()) serial_order_ = std::move(order);
}

/// Of a meeting.
class Dataflow::MeetingLock {
 public:
  explicit MeetingLock(Meeting& meeting) : meeting_(meeting) {
    while (meeting_.busy.test_and_set(std::memory_order_acquire)) std::this_thread::yield();
  }
  ~MeetingLock() { meeting_.busy.clear(std::memory_order_release); }
  MeetingLock(const MeetingLock&) = delete;
  MeetingLock& operator=(const MeetingLock&) = delete;

 private:
  Meeting& meeting_;
};

void Dataflow::Sent(Instance::Worker& sender, uint32_t link) {
  if (serial_) return;
  const uint32_t task = meetings_[link].receiver;
  const bool last = tasks_[task].predecessors == 1 || pending_[task].fetch_sub(1, std::memory_order_acq_rel) == 1;
  if (last) Wake(task, static_cast<Seat&>(sender));
}

void Dataflow::Sent(Instance::Worker& sender, uint32_t link, const Occurrence& when, runtime::Message message) {
  Meeting& meeting = meetings_[link];
  uint32_t ready = kNone;
  {
    const MeetingLock lock(meeting);
    meeting.sent.emplace_back(when, std::move(message));
    if (meeting.suspended != kNone && meeting.awaited == when) ready = std::exchange(meeting.suspended, kNone);
  }
  if (ready != kNone) Wake(ready, static_cast<Seat&>(sender));
}

void Dataflow::Wake(uint32_t task, Seat& sender) {
  if (sender.owner == nullptr) {
    workers_[0]->ready.Push(task);
    Invite();
  } else {
    sender.owner->sent = MakeReady(task, sender.owner->sent, *sender.owner);
  }
}

uint32_t Dataflow::WithSent(uint32_t next, Worker& worker) {
  if (worker.sent == kNone) return next;
  return MakeReady(std::exchange(worker.sent, kNone), next, worker);
}

bool Dataflow::Receive(uint32_t task, uint32_t at, uint32_t link, Seat& seat) {
  Meeting& meeting = meetings_[link];
  const size_t number = PartOf(task);
  Instance& instance = *parts_[number].instance;
  const plan::Instruction& instruction = InstructionAt(task, at);
  TapeTrace::Clock::time_point start;
  if (seat.step.trace != nullptr) start = TapeTrace::Clock::now();
  if (meeting.receiver == kNone) {
    const Occurrence when = instance.When(instruction, 0);
    const MeetingLock lock(meeting);
    const auto came = std::ranges::find(meeting.sent, when, &std::pair<Occurrence, runtime::Message>::first);
    if (came == meeting.sent.end()) {
      phase_[task].store(Phase::kAwaiting, std::memory_order_relaxed);
      resume_[task].store(at, std::memory_order_relaxed);
      meeting.suspended = task;
      meeting.awaited = when;
      return false;
    }
    meeting.message = std::move(came->second);
    meeting.sent.erase(came);
  }
  Status status;
  if (const Loan* const loan = LoanOf(link)) {
    instance.Borrow(instruction, *loan);
  } else {
    const std::string& key = parts_[number].plan->transfers[instruction.detail].key;
    status = instance.At(instruction, instance.Receive(instruction, key, meeting.message));
  }
  if (seat.step.trace != nullptr) seat.step.trace->Add(at, start);
  if (status.ok() && step_.check_numerics) status = instance.CheckNumbers(instruction, std::string());
  if (status.ok()) return true;
  Fail(status, number);
  return false;
}

std::string Dataflow::NotReceived() const {
  constexpr size_t kShown = 10;
  std::string text;
  size_t shown = 0;
  for (uint32_t t = 0; t < tasks_.size() && shown < kShown && links_ != 0; ++t) {
    const Phase phase = phase_[t].load(std::memory_order_relaxed);
    uint32_t at = tasks_[t].begin;
    if (phase == Phase::kAwaiting) at = resume_[t].load(std::memory_order_relaxed);
    if ((phase != Phase::kAwaiting && phase != Phase::kWaiting) || at == kNone) continue;
    const Part& part = parts_[PartOf(t)];
    const plan::Instruction& receive = part.plan->instructions[at];
    if (receive.opcode != plan::Opcode::kRecv || part.links[receive.detail] == Links::kNone) continue;
    if (phase == Phase::kWaiting && meetings_[part.links[receive.detail]].receiver != t) continue;
    text += "\nnot received: '" + part.plan->transfers[receive.detail].key + "'";
    ++shown;
  }
  return text;
}

}  // namespace weir::execute
