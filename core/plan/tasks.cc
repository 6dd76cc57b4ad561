#include <algorithm>
#include <map>
#include <utility>

#include "core/plan/lifetimes_internal.h"
#include "core/plan/streams_internal.h"
#include "core/plan/tasks_internal.h"

namespace weir::plan {
namespace {

constexpr double kWorthThreads = 200e3;      // ns; about four times what waking a thread takes
constexpr double kMayBeWorthThreads = 50e3;  // ns; runs decide: declared times may be too short
constexpr double kInstruction = 20;          // ns per instruction; cheaper tapes are never cut
constexpr double kTask = 200;                // ns per task, about the cost of a hand-over; cheaper tasks stay serial
constexpr double kWideEnough = 0.8;          // critical path over serial time

using LoopId = Id<struct LoopTag>;  // into TapeShape::loops

/// The end of the tape.
uint32_t EndOf(const ExecutionPlan& plan) { return static_cast<uint32_t>(plan.instructions.size()); }

bool UsesStreams(const ExecutionPlan& plan, size_t i) {
  const Instruction& instruction = plan.instructions[i];
  if (instruction.stream.valid()) return true;
  for (uint32_t s = instruction.first_slot; s < instruction.first_slot + SlotCount(plan, i); ++s) {
    if (HasStreams(plan, plan.storages[StorageOf(plan, s)].space)) return true;
  }
  return false;
}

/// The calling thread may wait for the instruction's work on a stream, or for an event.
bool WaitsForStreams(const ExecutionPlan& plan, size_t i) {
  const Instruction& instruction = plan.instructions[i];
  if (instruction.opcode == Opcode::kWait) return !instruction.stream.valid();
  if (!instruction.stream.valid()) return false;
  if (instruction.opcode == Opcode::kFetch || instruction.opcode == Opcode::kCall) return true;
  return instruction.opcode == Opcode::kCopy && IsStaged(plan, instruction);
}

/// The sum over instructions [begin, end).
TapeNote Sum(const std::vector<TapeNote>& notes, uint32_t begin, uint32_t end) {
  TapeNote sum;
  for (uint32_t i = begin; i < end; ++i) {
    sum.ns += notes[i].ns;
    sum.blocks = sum.blocks || notes[i].blocks;
    sum.suspends = sum.suspends || notes[i].suspends;
    sum.waits = sum.waits || notes[i].waits;
    sum.uses_streams = sum.uses_streams || notes[i].uses_streams;
  }
  return sum;
}

/// Finds the tasks and the edges between them.
class Cutter {
 public:
  /// `whole`: by loop, true if it stays one task.
  Cutter(const graph::StepGraph& step, const IndexedVector<graph::NodeId, Range>& instructions_of,
         const std::vector<TapeNote>& notes, const TapeShape& shape, const IndexedVector<LoopId, bool>& whole,
         ExecutionPlan& plan)
      : step_(step), instructions_of_(instructions_of), notes_(notes), shape_(shape), whole_(whole), plan_(plan) {}

  void Run() {
    plan_.tasks.clear();
    plan_.successors.clear();
    for (const LoopId loop : whole_.indices()) loops_.push_back(loop);
    std::sort(loops_.begin(), loops_.end(), [this](LoopId a, LoopId b) {  // outer ones before those inside
      return std::pair(At(a).first, At(b).last) < std::pair(At(b).first, At(a).last);
    });
    task_of_.resize(plan_.instructions.size());
    FindTasks(0, EndOf(plan_), TaskId());
    edges_.resize(plan_.tasks.size());
    NumberStates();
    writer_.assign(StackResource(plan_.stacks.size()) + state_of_.size(), TaskId());
    readers_.resize(writer_.size());
    for (size_t i = 0; i < plan_.instructions.size(); ++i) Visit(i);
    marks_.assign(step_.nodes.size(), -1);
    for (const graph::NodeId node : step_.nodes.indices()) OrderByControl(node);
    SortEdges();
    MergeChains();
    Finish();
  }

  /// Cut loops without gain: nothing in them waits, and the critical path takes most of an iteration.
  std::vector<LoopId> NarrowLoops() const {
    std::vector<LoopId> narrow;
    for (const auto& [task, loop] : loop_of_) {
      const TapeNote& whole = notes_of_[task];
      if (!whole.blocks && body_ns_[task] > kWideEnough * whole.ns) narrow.push_back(loop);
    }
    return narrow;
  }

 private:
  const Loop& At(LoopId loop) const { return shape_.loops[loop.position()]; }

  /// One task per instruction of a body. A loop and the instructions that enter it are one task.
  void FindTasks(uint32_t from, uint32_t to, TaskId loop) {
    for (uint32_t i = from; i < to;) {
      uint32_t end = i + 1;
      if (plan_.instructions[i].opcode == Opcode::kSkip) {  // over a loop, the only skips there are by now
        end = std::max(end, plan_.jumps[plan_.instructions[i].detail].target);
      }
      const size_t first = next_;
      while (next_ < loops_.size() && At(loops_[next_]).first < end) end = std::max(end, At(loops_[next_++]).last + 1);
      const TaskId id = plan_.tasks.end_index();
      std::fill(task_of_.begin() + i, task_of_.begin() + end, id);
      Task task;
      task.begin = i;
      task.end = end;
      task.loop = loop;
      if (loop.valid()) ++plan_.tasks[loop].inner;
      depth_.push_back(loop.valid() ? depth_[loop] + 1 : 0);
      notes_of_.push_back(Sum(notes_, i, end));
      task.suspends = notes_of_.back().suspends;
      task.blocking = !task.suspends && (notes_of_.back().blocks || notes_of_.back().waits);
      plan_.tasks.push_back(task);
      i = end;
      const bool cut = next_ > first && !whole_[loops_[first]] && At(loops_[first]).last + 1 == end &&
                       At(loops_[first]).first < At(loops_[first]).last;
      if (!cut) continue;
      const Loop& body = At(loops_[first]);
      loop_of_.emplace_back(id, loops_[first]);
      plan_.tasks[id].blocking = plan_.tasks[id].suspends = false;
      plan_.tasks[id].body = body.first;
      plan_.tasks[id].repeat = body.last;
      next_ = first + 1;
      FindTasks(body.first, body.last, id);
    }
  }

  /// Adds an edge between the tasks of the innermost common body that contain the two.
  void Edge(TaskId a, TaskId b) {
    if (!a.valid()) return;
    const auto up = [this](TaskId& task) { task = plan_.tasks[task].loop; };
    while (depth_[a] > depth_[b]) up(a);
    while (depth_[b] > depth_[a]) up(b);
    while (a != b && plan_.tasks[a].loop != plan_.tasks[b].loop) {
      up(a);
      up(b);
    }
    if (a != b) edges_[a].push_back(b);
  }
  void Read(size_t resource, TaskId task) {
    Edge(writer_[resource], task);
    if (readers_[resource].empty() || readers_[resource].back() != task) readers_[resource].push_back(task);
  }
  void Write(size_t resource, TaskId task) {
    Edge(writer_[resource], task);
    for (const TaskId reader : readers_[resource]) Edge(reader, task);
    readers_[resource].clear();
    writer_[resource] = task;
  }
  void Touch(size_t resource, TaskId task, bool writes) { writes ? Write(resource, task) : Read(resource, task); }
  size_t GuardResource(GuardId guard) const {
    return plan_.storages.size() + plan_.variables.size() + guard.position();
  }
  /// Work on streams keeps the order of the tape.
  size_t StreamsResource() const { return GuardResource(GuardId(plan_.guard_count)); }

  size_t StackResource(size_t stack) const { return StreamsResource() + 1 + stack; }

  /// Calls of a stateful node that is on the tape more than once, such as in an unrolled loop, keep their order.
  void NumberStates() {
    std::map<const graph::Node*, int> times;
    for (const Instruction& instruction : plan_.instructions) {
      if (RunsKernel(instruction) && NodeOf(instruction).op().stateful) ++times[&NodeOf(instruction)];
    }
    for (const auto& [node, count] : times) {
      if (count > 1) state_of_.emplace(node, StackResource(plan_.stacks.size()) + state_of_.size());
    }
  }
  const graph::Node& NodeOf(const Instruction& instruction) const { return *plan_.nodes[instruction.node]; }
  static bool RunsKernel(const Instruction& instruction) {
    return instruction.fn != nullptr || instruction.opcode == Opcode::kCall;
  }

  void Visit(size_t i) {
    const Instruction& instruction = plan_.instructions[i];
    const TaskId task = task_of_[i];
    if (notes_[i].uses_streams) Write(StreamsResource(), task);
    if (!state_of_.empty() && RunsKernel(instruction)) {
      const auto state = state_of_.find(&NodeOf(instruction));
      if (state != state_of_.end()) Write(state->second, task);
    }
    for (uint32_t s = instruction.first_slot; s < instruction.first_slot + SlotCount(plan_, i); ++s) {
      const StorageId storage = StorageOf(plan_, s);
      const Storage::Home home = plan_.storages[storage].home;
      const bool fixed = home == Storage::Home::kConstant || home == Storage::Home::kFeed;
      const bool variable = home == Storage::Home::kVariable;
      if (fixed || (variable && !IsPlace(storage))) continue;
      // A reference output is not a write: the op only forwards its input.
      const bool puts = !variable || instruction.opcode == Opcode::kMerge || instruction.opcode == Opcode::kSelect ||
                        instruction.opcode == Opcode::kMove || instruction.opcode == Opcode::kResolve ||
                        instruction.opcode == Opcode::kTemporary;
      const bool writes = puts && s >= instruction.first_slot + instruction.inputs;
      Touch(storage.position(), task, writes);
      if (!writes && home == Storage::Home::kBound) ReadSources(storage, task);
    }
    for (const Lock& lock : plan_.LocksOf(instruction)) {
      const std::vector<VariableId>& choices = plan_.variables[lock.variable].choices;
      if (choices.empty()) Touch(VariableResource(lock.variable), task, lock.exclusive);
      for (const VariableId choice : choices) Touch(VariableResource(choice), task, lock.exclusive);
    }
    if (i < shape_.guards.size() && shape_.guards[i] != kAlways) Read(GuardResource(shape_.guards[i]), task);
    VisitGuards(instruction, task);
  }

  /// A reader of a Merge's output reads one of its inputs, which a loop may overwrite.
  void ReadSources(StorageId storage, TaskId task) {
    for (const StorageId source : plan_.storages[storage].sources) {
      const Storage::Home home = plan_.storages[source].home;
      if (home == Storage::Home::kBound) ReadSources(source, task);
      if (home == Storage::Home::kArena || home == Storage::Home::kFresh) Read(source.position(), task);
    }
  }

  void VisitGuards(const Instruction& instruction, TaskId task) {
    const auto read = [&](GuardId guard) {
      if (guard != kAlways) Read(GuardResource(guard), task);
    };
    if (instruction.opcode == Opcode::kGuard) {
      const GuardStep& step = plan_.guard_steps[instruction.detail];
      read(step.a);
      read(step.b);
      if (step.to != kAlways) Write(GuardResource(step.to), task);
      if (step.otherwise != kAlways) Write(GuardResource(step.otherwise), task);
    } else if (instruction.opcode == Opcode::kMerge) {
      for (const GuardId guard : plan_.merges[instruction.detail]) read(guard);
    } else if (instruction.opcode == Opcode::kFetch) {
      read(plan_.fetch_guards[instruction.detail]);
    } else if (instruction.opcode == Opcode::kSkip || instruction.opcode == Opcode::kRepeat) {
      read(plan_.jumps[instruction.detail].guard);
    } else if (instruction.opcode == Opcode::kSend) {
      read(plan_.transfers[instruction.detail].guard);
    } else if (instruction.opcode == Opcode::kStack || instruction.opcode == Opcode::kPush ||
               instruction.opcode == Opcode::kPop) {
      Write(StackResource(instruction.detail), task);
    } else if (instruction.opcode == Opcode::kRecv) {
      Write(GuardResource(plan_.transfers[instruction.detail].guard), task);
    }
  }

  bool IsPlace(StorageId storage) const {
    return plan_.variables[plan_.storages[storage].variable].variable == nullptr;
  }

  /// Two uses of one variable share its resource.
  size_t VariableResource(VariableId variable) {
    const auto* const address = plan_.variables[variable].variable.get();
    return plan_.storages.size() + first_use_.try_emplace(address, variable).first->second.position();
  }

  bool HasInstructions(graph::NodeId node) const {
    const Range range = instructions_of_[node];
    return range.begin != range.end;
  }

  /// Control edges into a node. Nodes without instructions pass on their own inputs.
  void OrderByControl(graph::NodeId node) {
    if (!HasInstructions(node)) return;
    const uint32_t begin = instructions_of_[node].begin;
    std::vector<graph::NodeId> waiting(step_.node(node).control_inputs);
    const auto through = [&](const graph::StepNode& of) {
      for (const graph::Endpoint& input : of.inputs) {
        if (!HasInstructions(input.node)) waiting.push_back(input.node);
      }
    };
    through(step_.node(node));
    while (!waiting.empty()) {
      const graph::NodeId from = waiting.back();
      waiting.pop_back();
      if (std::exchange(marks_[from], node) == node) continue;
      const Range range = instructions_of_[from];
      for (uint32_t i = range.begin; i < range.end; ++i) {
        if (i < begin) Edge(task_of_[i], task_of_[begin]);
      }
      if (range.begin != range.end) continue;
      const graph::StepNode& empty = step_.node(from);
      waiting.insert(waiting.end(), empty.control_inputs.begin(), empty.control_inputs.end());
      for (const graph::Endpoint& input : empty.inputs) waiting.push_back(input.node);
    }
  }

  void SortEdges() {
    for (std::vector<TaskId>& to : edges_) {
      std::sort(to.begin(), to.end());
      to.erase(std::unique(to.begin(), to.end()), to.end());
    }
  }

  /// Joins a task with the next one on the tape if that waits for it alone, and whatever else waits for it waits for
  /// the next one too: nothing could run between them in parallel. The first task of such a chain may suspend.
  void MergeChains() {
    const size_t count = plan_.tasks.size();
    IndexedVector<TaskId, int> waits(count, 0);  // predecessors outside of the chain before the task
    for (const std::vector<TaskId>& to : edges_) {
      for (const TaskId successor : to) ++waits[successor];
    }
    IndexedVector<TaskId, TaskId> merged(count);  // what the task becomes
    IndexedVector<TaskId, Task> tasks;
    IndexedVector<TaskId, TapeNote> notes;
    const IndexedVector<TaskId, int> all_waits = waits;
    TaskId first{0};  // of the chain
    TaskId last;      // the task before `t`
    for (const TaskId t : merged.indices()) {
      const Task& task = plan_.tasks[t];
      const bool chained = last.valid() && waits[t] == 0 && all_waits[t] > 0 && IsPlain(task) &&
                           MayLead(plan_.tasks[last]) && plan_.tasks[last].end == task.begin &&
                           Follows(edges_[last], t);
      last = t;
      if (!chained) {
        for (; first < t; ++first) {
          for (const TaskId successor : edges_[first]) ++waits[successor];
        }
      }
      for (const TaskId successor : edges_[t]) --waits[successor];
      if (chained) {
        tasks.back().end = task.end;
        notes.back() = Sum({notes.back(), notes_of_[t]}, 0, 2);
      } else {
        tasks.push_back(task);
        notes.push_back(notes_of_[t]);
        tasks.back().inner = 0;
        if (task.loop.valid()) {
          tasks.back().loop = merged[task.loop];
          ++tasks[merged[task.loop]].inner;
        }
      }
      merged[t] = TaskId(tasks.size() - 1);
    }
    if (tasks.size() == count) return;
    IndexedVector<TaskId, std::vector<TaskId>> edges(tasks.size());
    for (const TaskId t : merged.indices()) {
      for (const TaskId successor : edges_[t]) {
        if (merged[successor] != merged[t]) edges[merged[t]].push_back(merged[successor]);
      }
    }
    for (auto& [task, loop] : loop_of_) task = merged[task];
    plan_.tasks = std::move(tasks);
    notes_of_ = std::move(notes);
    edges_ = std::move(edges);
    SortEdges();
  }
  /// Nothing in the task waits, and it is not a cut loop.
  static bool IsPlain(const Task& task) { return MayLead(task) && !task.suspends; }
  /// Others may follow in the same task.
  static bool MayLead(const Task& task) { return !task.blocking && task.inner == 0; }
  /// The successors of the task before are `task`, and others that wait for it.
  bool Follows(const std::vector<TaskId>& successors, TaskId task) const {
    return std::ranges::all_of(
        successors, [&](TaskId other) { return other == task || std::ranges::binary_search(edges_[task], other); });
  }

  void Finish() {
    for (const TaskId t : plan_.tasks.indices()) {
      Task& task = plan_.tasks[t];
      const std::vector<TaskId>& to = edges_[t];
      task.first_successor = static_cast<uint32_t>(plan_.successors.size());
      task.successor_count = static_cast<uint32_t>(to.size());
      for (const TaskId successor : to) {
        ++plan_.tasks[successor].predecessors;
        plan_.successors.push_back(successor);
      }
    }
    body_ns_.assign(plan_.tasks.size(), 0);
    for (const TaskId t : plan_.tasks.indices().backwards()) {  // loops inside before those around them
      const Task& task = plan_.tasks[t];
      if (task.inner > 0) body_ns_[t] = LongestChain(t, task.end);
    }
    plan_.critical_ns = LongestChain(TaskId(), EndOf(plan_));
  }

  /// Declared time of the critical path of a body: its tasks follow `loop` and start before instruction `end`.
  double LongestChain(TaskId loop, uint32_t end) {
    double longest = 0;
    start_.resize(plan_.tasks.size(), 0);
    for (TaskId t(loop.number() + 1); plan_.tasks.Has(t) && plan_.tasks[t].begin < end; ++t) {
      const Task& task = plan_.tasks[t];
      if (task.loop != loop) continue;
      const double ns = start_[t] + (task.inner > 0 ? body_ns_[t] : notes_of_[t].ns);
      longest = std::max(longest, ns);
      for (uint32_t s = task.first_successor; s < task.first_successor + task.successor_count; ++s) {
        double& start = start_[plan_.successors[s]];
        start = std::max(start, ns);
      }
    }
    return longest;
  }

  const graph::StepGraph& step_;
  const IndexedVector<graph::NodeId, Range>& instructions_of_;
  const std::vector<TapeNote>& notes_;
  const TapeShape& shape_;
  const IndexedVector<LoopId, bool>& whole_;
  ExecutionPlan& plan_;
  std::vector<LoopId> loops_;    // by where they begin
  size_t next_ = 0;              // of them
  std::vector<TaskId> task_of_;  // by instruction: the innermost
  IndexedVector<TaskId, int> depth_;
  IndexedVector<TaskId, TapeNote> notes_of_;
  IndexedVector<TaskId, double> body_ns_;  // of a loop that is cut: the longest chain of an iteration
  IndexedVector<TaskId, double> start_;
  IndexedVector<TaskId, std::vector<TaskId>> edges_;
  std::vector<std::pair<TaskId, LoopId>> loop_of_;  // tasks that are cut loops, and which loop
  // By resource: storages, variables, guards, streams, stacks, states.
  std::vector<TaskId> writer_;
  std::vector<std::vector<TaskId>> readers_;
  std::map<const runtime::Variable*, VariableId> first_use_;
  std::map<const graph::Node*, size_t> state_of_;      // of stateful nodes: their resource
  IndexedVector<graph::NodeId, graph::NodeId> marks_;  // for which node it was visited last
};

}  // namespace

TaskWork CutTasks(const graph::StepGraph& step, const IndexedVector<graph::NodeId, Range>& instructions_of,
                  std::vector<TapeNote> notes, int parallelism, const TapeShape& shape, ExecutionPlan& plan) {
  for (size_t i = 0; i < notes.size(); ++i) {
    notes[i].waits = WaitsForStreams(plan, i);
    if (!UsesStreams(plan, i)) continue;
    notes[i].ns = 0;  // the device works beside the host
    notes[i].uses_streams = true;
  }
  TaskWork work;
  work.loops.resize(shape.loops.size());
  const TapeNote all = Sum(notes, 0, EndOf(plan));
  plan.serial_ns = all.ns;
  const double least = std::max(kMayBeWorthThreads, kInstruction * static_cast<double>(notes.size()));
  if (!all.blocks && (parallelism < 2 || plan.serial_ns < least)) return work;
  IndexedVector<LoopId, bool> whole(shape.loops.size(), false);
  for (const LoopId loop : whole.indices()) {
    const auto [first, last, frame] = shape.loops[loop.position()];
    LoopWork& of_loop = work.loops[loop.position()];
    const TapeNote body = Sum(notes, first, last);
    whole[loop] = !body.blocks && (parallelism < 2 || body.ns < kWorthThreads);
    of_loop.heavy = !whole[loop] && !body.uses_streams;
    of_loop.blocks = body.blocks;
    of_loop.keeps_state = std::any_of(plan.instructions.begin() + first, plan.instructions.begin() + last,
                                      [](const Instruction& instruction) { return instruction.serialized; });
  }
  for (bool again = true; again;) {
    Cutter cutter(step, instructions_of, notes, shape, whole, plan);
    cutter.Run();
    const std::vector<LoopId> narrow = cutter.NarrowLoops();
    for (const LoopId loop : narrow) whole[loop] = true;
    again = !narrow.empty();
  }
  const bool narrow = plan.critical_ns > kWideEnough * plan.serial_ns ||
                      plan.serial_ns < kTask * static_cast<double>(plan.tasks.size());
  if (!all.blocks && narrow) {
    plan.tasks.clear();
    plan.successors.clear();
    return work;
  }
  work.settled = all.blocks;
  plan.tier = all.blocks || plan.serial_ns >= kWorthThreads ? Tier::kT2 : Tier::kT0;
  return work;
}

}  // namespace weir::plan
