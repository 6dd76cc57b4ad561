#include <algorithm>
#include <map>
#include <utility>

#include "core/plan/lifetimes_internal.h"
#include "core/plan/tasks_internal.h"

namespace weir::plan {
namespace {

constexpr double kWorthThreads = 200e3;  // ns; about four times what waking a thread takes
constexpr double kWideEnough = 0.8;      // critical over serial time

bool HasStreams(const ExecutionPlan& plan, int space) {
  return space != kHostSpace && plan.devices[static_cast<size_t>(space)]->has_streams();
}

bool UsesStreams(const ExecutionPlan& plan, size_t i) {
  const Instruction& instruction = plan.instructions[i];
  if (HasStreams(plan, instruction.space)) return true;
  if (instruction.opcode == Opcode::kCall) {
    const device::Device* const device = plan.calls[instruction.detail].device;
    if (device != nullptr && device->has_streams()) return true;
  }
  for (uint32_t s = instruction.first_slot; s < instruction.first_slot + SlotCount(plan, i); ++s) {
    if (HasStreams(plan, plan.storages[static_cast<size_t>(StorageOf(plan, s))].space)) return true;
  }
  return false;
}

/// Of an instruction that uses streams.
bool WaitsForStreams(const ExecutionPlan& plan, size_t i) {
  const Instruction& instruction = plan.instructions[i];
  if (instruction.opcode == Opcode::kFetch || instruction.opcode == Opcode::kCall) return true;
  const uint32_t to = instruction.first_slot + 1;
  return instruction.opcode == Opcode::kCopy &&
         !HasStreams(plan, plan.storages[static_cast<size_t>(StorageOf(plan, to))].space);
}

/// Of instructions [begin, end) together.
TapeNote Sum(const std::vector<TapeNote>& notes, uint32_t begin, uint32_t end) {
  TapeNote sum;
  for (uint32_t i = begin; i < end; ++i) {
    sum.ns += notes[i].ns;
    sum.blocks = sum.blocks || notes[i].blocks;
    sum.waits = sum.waits || notes[i].waits;
    sum.uses_streams = sum.uses_streams || notes[i].uses_streams;
  }
  return sum;
}

/// Finds the tasks and the edges between them.
class Cutter {
 public:
  /// `whole`: by loop, those that stay one task.
  Cutter(const graph::StepGraph& step, const std::vector<Range>& instructions_of, const std::vector<TapeNote>& notes,
         const TapeShape& shape, const std::vector<bool>& whole, ExecutionPlan& plan)
      : step_(step), instructions_of_(instructions_of), notes_(notes), shape_(shape), whole_(whole), plan_(plan) {}

  void Run() {
    plan_.tasks.clear();
    plan_.successors.clear();
    for (size_t l = 0; l < shape_.loops.size(); ++l) loops_.push_back(l);
    std::sort(loops_.begin(), loops_.end(), [this](size_t a, size_t b) {  // outer ones before those inside
      return std::pair(At(a).first, At(b).last) < std::pair(At(b).first, At(a).last);
    });
    task_of_.resize(plan_.instructions.size());
    FindTasks(0, static_cast<uint32_t>(plan_.instructions.size()), -1);
    edges_.resize(plan_.tasks.size());
    NumberStates();
    writer_.assign(StreamsResource() + 1 + state_of_.size(), -1);
    readers_.resize(writer_.size());
    for (size_t i = 0; i < plan_.instructions.size(); ++i) Visit(i);
    marks_.assign(step_.nodes.size(), 0);
    for (size_t n = 0; n < step_.nodes.size(); ++n) OrderByControl(n);
    Finish();
  }

  /// Loops of little use to cut: nothing in them waits, and one chain of ops takes most of an iteration.
  std::vector<size_t> NarrowLoops() const {
    std::vector<size_t> narrow;
    for (const auto& [task, loop] : loop_of_) {
      const TapeNote& whole = notes_of_[task];
      if (!whole.blocks && body_ns_[task] > kWideEnough * whole.ns) narrow.push_back(loop);
    }
    return narrow;
  }

  /// LoopWork::chain of the loops that are cut.
  void TellChains(std::vector<LoopWork>& works) const {
    for (const auto& [task, loop] : loop_of_) {
      if (notes_of_[task].ns > 0) works[loop].chain = body_ns_[task] / notes_of_[task].ns;
    }
  }

 private:
  const Loop& At(size_t loop) const { return shape_.loops[loop]; }

  /// One task for every instruction of a body, but for loops, which are one with what leads into them.
  void FindTasks(uint32_t from, uint32_t to, int loop) {
    for (uint32_t i = from; i < to;) {
      uint32_t end = i + 1;
      if (plan_.instructions[i].opcode == Opcode::kSkip) {  // over a loop, the only skips there are by now
        end = std::max(end, plan_.jumps[plan_.instructions[i].detail].target);
      }
      const size_t first = next_;
      while (next_ < loops_.size() && At(loops_[next_]).first < end) end = std::max(end, At(loops_[next_++]).last + 1);
      const auto index = static_cast<uint32_t>(plan_.tasks.size());
      std::fill(task_of_.begin() + i, task_of_.begin() + end, static_cast<int>(index));
      Task task;
      task.begin = i;
      task.end = end;
      task.loop = loop;
      if (loop >= 0) ++plan_.tasks[static_cast<size_t>(loop)].inner;
      depth_.push_back(loop < 0 ? 0 : depth_[static_cast<size_t>(loop)] + 1);
      notes_of_.push_back(Sum(notes_, i, end));
      task.blocking = notes_of_.back().blocks || notes_of_.back().waits;
      plan_.tasks.push_back(task);
      i = end;
      const bool cut = next_ > first && !whole_[loops_[first]] && At(loops_[first]).last + 1 == end &&
                       At(loops_[first]).first < At(loops_[first]).last;
      if (!cut) continue;
      const Loop& body = At(loops_[first]);
      loop_of_.emplace_back(index, loops_[first]);
      plan_.tasks[index].blocking = false;
      plan_.tasks[index].body = body.first;
      plan_.tasks[index].repeat = body.last;
      next_ = first + 1;
      FindTasks(body.first, body.last, static_cast<int>(index));
    }
  }

  /// Between the two tasks of one body that the two are or belong to.
  void Edge(int from, int to) {
    if (from < 0) return;
    auto a = static_cast<size_t>(from), b = static_cast<size_t>(to);
    const auto up = [this](size_t& task) { task = static_cast<size_t>(plan_.tasks[task].loop); };
    while (depth_[a] > depth_[b]) up(a);
    while (depth_[b] > depth_[a]) up(b);
    while (a != b && plan_.tasks[a].loop != plan_.tasks[b].loop) {
      up(a);
      up(b);
    }
    if (a != b) edges_[a].push_back(static_cast<uint32_t>(b));
  }
  void Read(size_t resource, int task) {
    Edge(writer_[resource], task);
    if (readers_[resource].empty() || readers_[resource].back() != task) readers_[resource].push_back(task);
  }
  void Write(size_t resource, int task) {
    Edge(writer_[resource], task);
    for (const int reader : readers_[resource]) Edge(reader, task);
    readers_[resource].clear();
    writer_[resource] = task;
  }
  void Touch(size_t resource, int task, bool writes) { writes ? Write(resource, task) : Read(resource, task); }
  size_t GuardResource(int guard) const {
    return plan_.storages.size() + plan_.variables.size() + static_cast<size_t>(guard);
  }
  /// On streams the order of the tape is the order on the device.
  size_t StreamsResource() const { return GuardResource(static_cast<int>(plan_.guard_count)); }

  /// Stateful nodes that stand on the tape more than once, as those of a loop that is unrolled: their calls keep their
  /// order. Ops on variables, whose locks say more, count as well where a kernel runs them.
  void NumberStates() {
    std::map<const graph::Node*, int> times;
    for (const Instruction& instruction : plan_.instructions) {
      if (RunsKernel(instruction) && NodeOf(instruction).op().stateful) ++times[&NodeOf(instruction)];
    }
    for (const auto& [node, count] : times) {
      if (count > 1) state_of_.emplace(node, StreamsResource() + 1 + state_of_.size());
    }
  }
  const graph::Node& NodeOf(const Instruction& instruction) const {
    return *plan_.nodes[static_cast<size_t>(instruction.node)];
  }
  static bool RunsKernel(const Instruction& instruction) {
    return instruction.fn != nullptr || instruction.opcode == Opcode::kCall;
  }

  void Visit(size_t i) {
    const Instruction& instruction = plan_.instructions[i];
    const int task = task_of_[i];
    if (notes_[i].uses_streams) Write(StreamsResource(), task);
    if (!state_of_.empty() && RunsKernel(instruction)) {
      const auto state = state_of_.find(&NodeOf(instruction));
      if (state != state_of_.end()) Write(state->second, task);
    }
    for (uint32_t s = instruction.first_slot; s < instruction.first_slot + SlotCount(plan_, i); ++s) {
      const int storage = StorageOf(plan_, s);
      const Storage::Home home = plan_.storages[static_cast<size_t>(storage)].home;
      const bool fixed = home == Storage::Home::kConstant || home == Storage::Home::kFeed;
      const bool variable = home == Storage::Home::kVariable;
      if (fixed || (variable && !IsPlace(storage))) continue;
      // What ops give back as a reference they have not put there.
      const bool puts = !variable || instruction.opcode == Opcode::kMerge || instruction.opcode == Opcode::kSelect ||
                        instruction.opcode == Opcode::kMove;
      const bool writes = puts && s >= instruction.first_slot + instruction.inputs;
      Touch(static_cast<size_t>(storage), task, writes);
      if (!writes && home == Storage::Home::kBound) ReadSources(storage, task);
    }
    for (uint32_t l = instruction.locks_begin; l < instruction.locks_end; ++l) {
      const Lock& lock = plan_.locks[l];
      const std::vector<int>& choices = plan_.variables[static_cast<size_t>(lock.variable)].choices;
      if (choices.empty()) Touch(VariableResource(lock.variable), task, lock.exclusive);
      for (const int choice : choices) Touch(VariableResource(choice), task, lock.exclusive);
    }
    if (const int guard = i < shape_.guards.size() ? shape_.guards[i] : 0; guard != 0) Read(GuardResource(guard), task);
    VisitGuards(instruction, task);
  }

  /// Whoever reads what a Merge chose reads one of its inputs, which a loop may overwrite.
  void ReadSources(int storage, int task) {
    for (const int source : plan_.storages[static_cast<size_t>(storage)].sources) {
      const Storage::Home home = plan_.storages[static_cast<size_t>(source)].home;
      if (home == Storage::Home::kBound) ReadSources(source, task);
      if (home == Storage::Home::kArena || home == Storage::Home::kFresh) Read(static_cast<size_t>(source), task);
    }
  }

  void VisitGuards(const Instruction& instruction, int task) {
    const auto read = [&](int guard) {
      if (guard != 0) Read(GuardResource(guard), task);
    };
    if (instruction.opcode == Opcode::kGuard) {
      const GuardStep& step = plan_.guard_steps[instruction.detail];
      read(step.a);
      read(step.b);
      if (step.to != 0) Write(GuardResource(step.to), task);
      if (step.otherwise != 0) Write(GuardResource(step.otherwise), task);
    } else if (instruction.opcode == Opcode::kMerge) {
      for (const int guard : plan_.merges[instruction.detail]) read(guard);
    } else if (instruction.opcode == Opcode::kFetch) {
      read(plan_.fetch_guards[instruction.detail]);
    } else if (instruction.opcode == Opcode::kSkip || instruction.opcode == Opcode::kRepeat) {
      read(plan_.jumps[instruction.detail].guard);
    }
  }

  bool IsPlace(int storage) const {
    const int variable = plan_.storages[static_cast<size_t>(storage)].variable;
    return plan_.variables[static_cast<size_t>(variable)].variable == nullptr;
  }

  /// Ops that name one variable twice share its resource.
  size_t VariableResource(int variable) {
    const auto* const address = plan_.variables[static_cast<size_t>(variable)].variable.get();
    return plan_.storages.size() + static_cast<size_t>(first_use_.try_emplace(address, variable).first->second);
  }

  bool HasInstructions(graph::NodeId node) const {
    const Range range = instructions_of_[static_cast<size_t>(node)];
    return range.begin != range.end;
  }

  /// Control edges into a node; nodes without instructions hand on what they wait for.
  void OrderByControl(size_t node) {
    if (!HasInstructions(static_cast<graph::NodeId>(node))) return;
    const uint32_t begin = instructions_of_[node].begin;
    const int mark = static_cast<int>(node) + 1;
    std::vector<graph::NodeId> waiting(step_.nodes[node].control_inputs);
    const auto through = [&](const graph::StepNode& of) {
      for (const graph::Endpoint& input : of.inputs) {
        if (!HasInstructions(input.node)) waiting.push_back(input.node);
      }
    };
    through(step_.nodes[node]);
    while (!waiting.empty()) {
      const auto from = static_cast<size_t>(waiting.back());
      waiting.pop_back();
      if (std::exchange(marks_[from], mark) == mark) continue;
      const Range range = instructions_of_[from];
      for (uint32_t i = range.begin; i < range.end; ++i) {
        if (i < begin) Edge(task_of_[i], task_of_[begin]);
      }
      if (range.begin != range.end) continue;
      const graph::StepNode& empty = step_.nodes[from];
      waiting.insert(waiting.end(), empty.control_inputs.begin(), empty.control_inputs.end());
      for (const graph::Endpoint& input : empty.inputs) waiting.push_back(input.node);
    }
  }

  void Finish() {
    for (size_t t = 0; t < plan_.tasks.size(); ++t) {
      Task& task = plan_.tasks[t];
      std::vector<uint32_t>& to = edges_[t];
      std::sort(to.begin(), to.end());
      to.erase(std::unique(to.begin(), to.end()), to.end());
      task.first_successor = static_cast<uint32_t>(plan_.successors.size());
      task.successor_count = static_cast<uint32_t>(to.size());
      for (const uint32_t successor : to) {
        ++plan_.tasks[successor].predecessors;
        plan_.successors.push_back(successor);
      }
    }
    body_ns_.assign(plan_.tasks.size(), 0);
    for (size_t t = plan_.tasks.size(); t-- > 0;) {  // loops inside before those around them
      const Task& task = plan_.tasks[t];
      if (task.inner > 0) body_ns_[t] = LongestChain(static_cast<int>(t), t + 1, task.end);
    }
    plan_.critical_ns = LongestChain(-1, 0, UINT32_MAX);
  }

  /// Declared time of the longest chain of tasks of a body, which begin at task `first` and before instruction `end`.
  double LongestChain(int loop, size_t first, uint32_t end) {
    double longest = 0;
    start_.resize(plan_.tasks.size(), 0);
    for (size_t t = first; t < plan_.tasks.size() && plan_.tasks[t].begin < end; ++t) {
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
  const std::vector<Range>& instructions_of_;
  const std::vector<TapeNote>& notes_;
  const TapeShape& shape_;
  const std::vector<bool>& whole_;
  ExecutionPlan& plan_;
  std::vector<size_t> loops_;  // by where they begin
  size_t next_ = 0;            // of them
  std::vector<int> task_of_;   // by instruction: the innermost
  // By task.
  std::vector<int> depth_;
  std::vector<TapeNote> notes_of_;
  std::vector<double> body_ns_;  // of a loop that is cut: the longest chain of an iteration
  std::vector<double> start_;
  std::vector<std::vector<uint32_t>> edges_;
  std::vector<std::pair<uint32_t, size_t>> loop_of_;  // tasks that are cut loops, and which loop
  // By resource: storages, variables, guards, streams, states.
  std::vector<int> writer_;
  std::vector<std::vector<int>> readers_;
  std::map<const kernel::Variable*, int> first_use_;
  std::map<const graph::Node*, size_t> state_of_;  // of stateful nodes: their resource
  std::vector<int> marks_;                         // by step node: for which node it was visited last
};

}  // namespace

std::vector<LoopWork> CutTasks(const graph::StepGraph& step, const std::vector<Range>& instructions_of,
                               std::vector<TapeNote> notes, int parallelism, const TapeShape& shape,
                               ExecutionPlan& plan) {
  for (size_t i = 0; i < notes.size(); ++i) {
    if (!UsesStreams(plan, i)) continue;
    notes[i] = {0, notes[i].blocks, true, WaitsForStreams(plan, i)};  // the device works beside the host
  }
  std::vector<LoopWork> works(shape.loops.size());
  const TapeNote all = Sum(notes, 0, static_cast<uint32_t>(notes.size()));
  const bool blocks = all.blocks;
  plan.serial_ns = all.ns;
  if (!blocks && (parallelism < 2 || plan.serial_ns < kWorthThreads)) return works;
  std::vector<bool> whole(shape.loops.size(), false);
  for (size_t l = 0; l < whole.size(); ++l) {
    const auto [first, last, frame] = shape.loops[l];
    const TapeNote body = Sum(notes, first, last);
    whole[l] = !body.blocks && (parallelism < 2 || body.ns < kWorthThreads);
    works[l].heavy = !whole[l] && !body.uses_streams;
    works[l].blocks = body.blocks;
    works[l].keeps_state = std::any_of(plan.instructions.begin() + first, plan.instructions.begin() + last,
                                       [](const Instruction& instruction) { return instruction.serialized; });
  }
  for (bool first = true, again = true; again; first = false) {
    Cutter cutter(step, instructions_of, notes, shape, whole, plan);
    cutter.Run();
    if (first) cutter.TellChains(works);
    const std::vector<size_t> narrow = cutter.NarrowLoops();
    for (const size_t loop : narrow) whole[loop] = true;
    again = !narrow.empty();
  }
  if (!blocks && plan.critical_ns > kWideEnough * plan.serial_ns) {
    plan.tasks.clear();
    plan.successors.clear();
    return works;
  }
  plan.tier = Tier::kT2;
  return works;
}

}  // namespace weir::plan
