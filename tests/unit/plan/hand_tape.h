// Tapes written by hand, with the step nodes, notes and shape that the passes after emission want.
#ifndef WEIR_TESTS_UNIT_PLAN_HAND_TAPE_H_
#define WEIR_TESTS_UNIT_PLAN_HAND_TAPE_H_

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/plan/memory_internal.h"
#include "core/plan/plan.h"
#include "core/plan/tape_builder_internal.h"
#include "core/plan/tasks_internal.h"
#include "tests/support/text_graph.h"

namespace weir::plan {

/// Every instruction belongs to a step node of its own, unless Node joins several.
class HandTape : public ::testing::Test {
 protected:
  void SetUp() override {
    Result<graph::Definition> graph =
        testing::MakeGraph({{"n", "NoOp", {}},
                            testing::Const("shape", Tensor::Vector<int32_t>({2})),
                            {"draw", "RandomUniform", {"shape"}, {{"T", DType::kInt32}, {"dtype", DType::kFloat}}}});
    ASSERT_TRUE(graph.ok()) << graph.status().ToString();
    graph_ = std::make_unique<graph::Definition>(std::move(*graph));
    tape_.SetOrigin(*graph_->Find("n"));
  }

  /// A value of 64 bytes in the arena of the host.
  ValueId New() { return tape_.NewValue(DType::kFloat, PartialShape::Of({16}), kHostSpace, Placing::kPlanned); }
  /// A tensor that an instruction makes.
  ValueId Owned() { return tape_.NewValue(DType::kFloat, PartialShape::Of({16}), kHostSpace, Placing::kAtRun); }
  ValueId Fed() {
    const ValueId value = New();
    tape_.StorageAt(value).home = Storage::Home::kFeed;
    return value;
  }
  ValueId Variable() {
    VariableUse use;
    use.variable = std::make_shared<runtime::Variable>();
    Value value;
    value.dtype = DType::kFloat;
    return tape_.AddVariable(std::move(use), std::move(value), kHostSpace);
  }

  Instruction& Emit(Opcode opcode, const std::vector<ValueId>& inputs, const std::vector<ValueId>& outputs,
                    const TapeNote& note = {}) {
    const uint32_t at = tape_.position();
    instructions_of_.push_back({at, at + 1});
    step_.nodes.emplace_back();
    return tape_.Emit(opcode, inputs, outputs, note);
  }
  /// A kernel that takes `us` microseconds; returns its output.
  ValueId Kernel(const std::vector<ValueId>& inputs, double us = 100) {
    const ValueId out = New();
    KernelTo(inputs, out, us);
    return out;
  }
  void KernelTo(const std::vector<ValueId>& inputs, ValueId out, double us = 100) {
    Emit(Opcode::kKernel, inputs, {out}, {.ns = us * 1e3}).fn = [](void*, const weir_reg*, const weir_env*) -> int32_t {
      return WEIR_OK;
    };
  }
  /// A step node without instructions, which passes on its control inputs.
  graph::NodeId Empty(std::vector<graph::NodeId> control_inputs) {
    instructions_of_.push_back({tape_.position(), tape_.position()});
    step_.nodes.emplace_back();
    step_.nodes.back().control_inputs = std::move(control_inputs);
    return static_cast<graph::NodeId>(step_.nodes.size() - 1);
  }
  graph::NodeId LastNode() const { return static_cast<graph::NodeId>(step_.nodes.size() - 1); }

  /// Sets guard `to` where the predicate holds.
  void Guard(GuardId to, ValueId predicate) {
    GuardStep step;
    step.kind = GuardStep::Kind::kPredicate;
    step.to = to;
    plan_.guard_steps.push_back(step);
    plan_.guard_count = std::max(plan_.guard_count, to.position() + 1);
    Emit(Opcode::kGuard, {predicate}, {}).detail = static_cast<uint32_t>(plan_.guard_steps.size() - 1);
  }
  /// Ends a loop that began at `first`; it repeats under guard 1.
  void Repeat(uint32_t first) {
    plan_.guard_count = std::max<size_t>(plan_.guard_count, 2);
    tape_.AddLoop(first, FrameId(tape_.shape().loops.size()));
    const uint32_t jump = tape_.AddJump(GuardId(1), first);
    Emit(Opcode::kRepeat, {}, {}).detail = jump;
    plan_.has_loops = true;
  }

  /// Cuts the tape: "T2" or "T0", "?" where runs decide, then the tasks as "0[0,2)>1,2": range and successors. "b":
  /// blocking, "s": suspends, "in 3": in the body of task 3, "loop [2,5)": it schedules these as tasks.
  std::string Cut(int parallelism = 2) {
    work_ = CutTasks(step_, instructions_of_, tape_.notes(), parallelism, tape_.shape(), plan_);
    std::string text = plan_.tier == Tier::kT2 ? "T2" : "T0";
    if (!work_.settled) text += "?";
    for (const TaskId t : plan_.tasks.indices()) {
      const Task& task = plan_.tasks[t];
      text += fmt::format(" {}[{},{})", t.number(), task.begin, task.end);
      if (task.blocking) text += "b";
      if (task.suspends) text += "s";
      if (task.inner > 0) text += fmt::format("loop [{},{})", task.body, task.repeat);
      if (task.loop.valid()) text += fmt::format("in {}", task.loop.number());
      for (uint32_t s = 0; s < task.successor_count; ++s) {
        text += fmt::format("{}{}", s == 0 ? ">" : ",", plan_.successors[task.first_successor + s].number());
      }
    }
    return text;
  }

  std::unique_ptr<graph::Definition> graph_;
  graph::StepGraph step_;
  ExecutionPlan plan_;
  TapeBuilder tape_{plan_};
  IndexedVector<graph::NodeId, Range> instructions_of_;
  TaskWork work_;
};

}  // namespace weir::plan

#endif  // WEIR_TESTS_UNIT_PLAN_HAND_TAPE_H_
