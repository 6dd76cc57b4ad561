// What a step has elsewhere: ops that complete later, values that other parts send, tasks on the blocking pool. Each
// comes back by mail, which a worker takes.
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "core/execute/dataflow_internal.h"
#include "core/execute/denormals.h"
#include "core/execute/tape_trace.h"
#include "core/runtime/blocking_pool.h"

namespace weir::execute {

uint32_t Dataflow::TakeMail(Worker& worker) {
  for (;;) {
    std::unique_ptr<Away> away;
    {
      const std::lock_guard lock(mutex_);
      if (mail_.empty()) return kNone;
      away = std::move(mail_.front());
      mail_.pop_front();
      mailed_.store(!mail_.empty(), std::memory_order_relaxed);
    }
    if (const uint32_t task = WithSent(Return(std::move(away), worker), worker); task != kNone) return task;
  }
}

void Dataflow::Start(uint32_t task, uint32_t at, Worker& worker) {
  const plan::Instruction& instruction = InstructionAt(task, at);
  Instance& instance = *parts_[PartOf(task)].instance;
  Seat& seat = worker.seats[PartOf(task)];
  auto* const away = new Away;  // its completion owns it
  away->flow = this;
  away->task = task;
  away->at = at;
  if (step_.check_numerics) away->inputs = instance.InputNumbers(instruction);
  if (seat.step.trace != nullptr) away->start = std::chrono::steady_clock::now();
  phase_[task].store(Phase::kPending, std::memory_order_relaxed);
  {
    const std::lock_guard lock(mutex_);
    ++elsewhere_;
  }
  if (instruction.opcode == plan::Opcode::kRecv) return StartReceive(*away, instruction, seat);
  away->later.done = runtime::Completion([away](Result<std::vector<Tensor>> result) {
    away->result = std::move(result);
    away->flow->Post(std::unique_ptr<Away>(away));
  });
  instance.StartCall(seat, instruction, away->later);
}

void Dataflow::StartReceive(Away& away, const plan::Instruction& instruction, Seat& seat) {
  /// What comes first, the message or the end of the step, is the answer.
  struct Arrival {
    std::mutex mutex;  // protects `done`
    runtime::Rendezvous::Received done;
    void Tell(Result<runtime::Message> result) {
      runtime::Rendezvous::Received first;
      {
        const std::lock_guard lock(mutex);
        first = std::move(done);
      }
      first(std::move(result));
    }
  };
  const auto arrival = std::make_shared<Arrival>();
  arrival->done = runtime::Rendezvous::Received([&away](Result<runtime::Message> result) {
    away.status = result.status();
    if (result.ok()) away.message = std::move(*result);
    away.flow->Post(std::unique_ptr<Away>(&away));
  });
  std::string key;
  const Instance& instance = *parts_[PartOf(away.task)].instance;
  const Result<runtime::Rendezvous*> rendezvous = instance.Meet(seat, instruction, 0, &key);
  if (!rendezvous.ok()) return arrival->Tell(rendezvous.status());
  away.key = key;
  {
    const std::lock_guard lock(mutex_);
    ++receives_;
  }
  // From here on the answer may come, and with it the end of `away`.
  const auto end = [arrival, key, step = &*end_] {
    arrival->Tell(step->status().Append("\nnot received: '" + key + "'"));
  };
  if (!away.cancelled.Register(*end_, end)) return end();
  (*rendezvous)->RecvAsync(key, runtime::Rendezvous::Received([arrival](Result<runtime::Message> came) {
                             arrival->Tell(std::move(came));
                           }));
}

uint32_t Dataflow::Return(std::unique_ptr<Away> away, Worker& worker) {
  if (end_->cancelled() && away->status.ok()) return kNone;
  const uint32_t task = away->task, at = away->at;
  const size_t part = PartOf(task);
  phase_[task].store(Phase::kRunning, std::memory_order_relaxed);
  Status status = std::move(away->status);
  if (!away->blocking) {
    Instance& instance = *parts_[part].instance;
    const Seat& seat = worker.seats[part];
    const plan::Instruction& instruction = InstructionAt(task, at);
    if (instruction.opcode == plan::Opcode::kCall) {
      const NodeCall& call = seat.program->calls[instruction.detail];
      status = instance.FinishCall(instruction, call.Finish(std::move(away->result), away->later));
    } else if (status.ok()) {
      status = instance.Receive(instruction, away->key, away->message);
    }
    status = instance.At(instruction, status);
    if (seat.step.trace != nullptr) seat.step.trace->Add(at, away->start);
    if (status.ok() && step_.check_numerics) status = instance.CheckNumbers(instruction, away->inputs);
  }
  if (!status.ok()) {
    Fail(status, part);
    return kNone;
  }
  if (away->blocking) return Ended(task, worker);
  away.reset();
  return Continue(task, at + 1, worker);
}

void Dataflow::Block(uint32_t task) {
  auto away = std::make_unique<Away>();
  away->flow = this;
  away->task = task;
  away->blocking = true;
  phase_[task].store(Phase::kRunning, std::memory_order_relaxed);
  {
    const std::lock_guard lock(mutex_);
    ++blocking_;
  }
  const auto run = [](void* arg) {
    std::unique_ptr<Away> own(static_cast<Away*>(arg));
    Dataflow& flow = *own->flow;
    const FlushDenormals flush;
    const size_t part = flow.PartOf(own->task);
    const Seat& caller = flow.workers_[0]->seats[part];
    Seat seat;
    seat.flow = &flow;
    seat.links = caller.links;
    seat.program = caller.program;
    seat.fetches = caller.fetches;
    seat.step = caller.step;
    const plan::Task& range = flow.tasks_[own->task];
    own->status = flow.parts_[part].instance->Tape(seat, range.begin, EndOf(range));
    flow.Post(std::move(own));
  };
  const Status given = runtime::RunBlocking(run, away.get());
  if (!given.ok()) {
    away->status = given;
    Post(std::move(away));
  }
  (void)away.release();
}

void Dataflow::Post(std::unique_ptr<Away> away) {
  {
    const std::lock_guard lock(mutex_);
    if (!abandoned_) {
      --(away->blocking ? blocking_ : elsewhere_);
      if (!away->key.empty()) --receives_;
      mail_.push_back(std::move(away));
      mailed_.store(true, std::memory_order_release);
      changed_.notify_one();
      if (!sleeping_.load(std::memory_order_relaxed) && !spinning_.load(std::memory_order_relaxed)) Hire();
      return;  // the flow may be gone once the lock is
    }
  }
  away.reset();  // before it is counted: its callback refers to end_
  std::unique_ptr<AbandonedRun> over;
  {
    const std::lock_guard lock(mutex_);
    if (--elsewhere_ == 0) over = std::move(kept_);
  }
  if (over) Delete(std::move(over));
}

}  // namespace weir::execute
