#include <algorithm>
#include <map>
#include <utility>

#include "core/plan/lifetimes_internal.h"
#include "core/plan/tasks_internal.h"

namespace weir::plan {
namespace {

constexpr double kWorthThreads = 200e3;  // ns; about four times what waking a thread takes
constexpr double kWideEnough = 0.8;      // critical over serial time

/// Finds the tasks and the edges between them.
class Cutter {
 public:
  Cutter(const graph::StepGraph& step, const std::vector<Range>& instructions_of, const std::vector<TapeNote>& notes,
         const TapeShape& shape, ExecutionPlan& plan)
      : step_(step), instructions_of_(instructions_of), notes_(notes), shape_(shape), plan_(plan) {}

  void Run() {
    FindTasks();
    edges_.resize(plan_.tasks.size());
    writer_.assign(plan_.storages.size() + plan_.variables.size() + plan_.guard_count, -1);
    readers_.resize(writer_.size());
    for (size_t i = 0; i < plan_.instructions.size(); ++i) Visit(i);
    marks_.assign(step_.nodes.size(), 0);
    for (size_t n = 0; n < step_.nodes.size(); ++n) OrderByControl(n);
    Finish();
  }

 private:
  /// One task for every instruction, but for loops, which are one with what leads into them.
  void FindTasks() {
    std::vector<Loop> loops = shape_.loops;
    std::sort(loops.begin(), loops.end(), [](const Loop& a, const Loop& b) { return a.first < b.first; });
    task_of_.resize(plan_.instructions.size());
    size_t loop = 0;
    for (uint32_t i = 0; i < plan_.instructions.size();) {
      uint32_t end = i + 1;
      if (plan_.instructions[i].opcode == Opcode::kSkip) {  // over a loop, the only skips there are by now
        end = std::max(end, plan_.jumps[plan_.instructions[i].detail].target);
      }
      while (loop < loops.size() && loops[loop].first < end) end = std::max(end, loops[loop++].last + 1);
      Task task;
      task.begin = i;
      task.end = end;
      for (; i < end; ++i) {
        task.blocking = task.blocking || notes_[i].blocks;
        task_of_[i] = static_cast<int>(plan_.tasks.size());
      }
      plan_.tasks.push_back(task);
    }
  }

  void Edge(int from, int to) {
    if (from >= 0 && from != to) edges_[static_cast<size_t>(from)].push_back(static_cast<uint32_t>(to));
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

  void Visit(size_t i) {
    const Instruction& instruction = plan_.instructions[i];
    const int task = task_of_[i];
    for (uint32_t s = instruction.first_slot; s < instruction.first_slot + SlotCount(plan_, i); ++s) {
      const int storage = StorageOf(plan_, s);
      const Storage::Home home = plan_.storages[static_cast<size_t>(storage)].home;
      const bool fixed = home == Storage::Home::kConstant || home == Storage::Home::kFeed;
      if (fixed || home == Storage::Home::kVariable) continue;
      Touch(static_cast<size_t>(storage), task, s >= instruction.first_slot + instruction.inputs);
    }
    for (uint32_t l = instruction.locks_begin; l < instruction.locks_end; ++l) {
      Touch(VariableResource(plan_.locks[l].variable), task, plan_.locks[l].exclusive);
    }
    if (const int guard = i < shape_.guards.size() ? shape_.guards[i] : 0; guard != 0) Read(GuardResource(guard), task);
    VisitGuards(instruction, task);
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
    const int task = task_of_[instructions_of_[node].begin];
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
        if (task_of_[i] < task) Edge(task_of_[i], task);
      }
      if (range.begin != range.end) continue;
      const graph::StepNode& empty = step_.nodes[from];
      waiting.insert(waiting.end(), empty.control_inputs.begin(), empty.control_inputs.end());
      for (const graph::Endpoint& input : empty.inputs) waiting.push_back(input.node);
    }
  }

  void Finish() {
    std::vector<double> start(plan_.tasks.size(), 0);
    for (size_t t = 0; t < plan_.tasks.size(); ++t) {
      Task& task = plan_.tasks[t];
      double ns = 0;
      for (uint32_t i = task.begin; i < task.end; ++i) ns += notes_[i].ns;
      plan_.critical_ns = std::max(plan_.critical_ns, start[t] + ns);
      std::vector<uint32_t>& to = edges_[t];
      std::sort(to.begin(), to.end());
      to.erase(std::unique(to.begin(), to.end()), to.end());
      task.first_successor = static_cast<uint32_t>(plan_.successors.size());
      task.successor_count = static_cast<uint32_t>(to.size());
      for (const uint32_t successor : to) {
        ++plan_.tasks[successor].predecessors;
        start[successor] = std::max(start[successor], start[t] + ns);
        plan_.successors.push_back(successor);
      }
    }
  }

  const graph::StepGraph& step_;
  const std::vector<Range>& instructions_of_;
  const std::vector<TapeNote>& notes_;
  const TapeShape& shape_;
  ExecutionPlan& plan_;
  std::vector<int> task_of_;  // by instruction
  std::vector<std::vector<uint32_t>> edges_;
  // By resource: storages, variables, guards.
  std::vector<int> writer_;
  std::vector<std::vector<int>> readers_;
  std::map<const kernel::Variable*, int> first_use_;
  std::vector<int> marks_;  // by step node: for which node it was visited last
};

}  // namespace

void CutTasks(const graph::StepGraph& step, const std::vector<Range>& instructions_of,
              const std::vector<TapeNote>& notes, int parallelism, const TapeShape& shape, ExecutionPlan& plan) {
  bool blocks = false;
  for (const TapeNote& note : notes) {
    plan.serial_ns += note.ns;
    blocks = blocks || note.blocks;
  }
  if (!blocks && (parallelism < 2 || plan.serial_ns < kWorthThreads)) return;
  Cutter(step, instructions_of, notes, shape, plan).Run();
  if (!blocks && plan.critical_ns > kWideEnough * plan.serial_ns) {
    plan.tasks.clear();
    plan.successors.clear();
    return;
  }
  plan.tier = Tier::kT2;
}

}  // namespace weir::plan
