#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>

#include "core/plan/draft_internal.h"
#include "core/plan/tape_builder_internal.h"
#include "tests/support/text_graph.h"

namespace weir::plan {
namespace {

/// x -> y under a guard that a predicate sets, as two tasks.
class VerifyTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Result<graph::Definition> graph = testing::MakeGraph({{"a", "NoOp", {}}});
    ASSERT_TRUE(graph.ok()) << graph.status().ToString();
    graph_ = std::make_unique<graph::Definition>(std::move(*graph));
    TapeBuilder tape(plan_);
    tape.SetOrigin(*graph_->Find("a"));
    const ValueId p = tape.NewScalar(DType::kBool, Placing::kPlanned);
    const ValueId x = tape.NewScalar(DType::kFloat, Placing::kPlanned);
    const ValueId y = tape.NewScalar(DType::kFloat, Placing::kPlanned);
    plan_.guard_count = 3;
    plan_.guard_steps.push_back({GuardStep::Kind::kPredicate, GuardId(1), GuardId(2), kAlways});
    tape.Emit(Opcode::kGuard, {p}, {});
    tape.SetGuard(GuardId(1));
    tape.Emit(Opcode::kMove, {x}, {y});
    plan_.jumps.push_back({GuardId(1), 2});
    plan_.tasks.resize(2);
    plan_.tasks[TaskId(0)].end = 1;
    plan_.tasks[TaskId(0)].successor_count = 1;
    plan_.tasks[TaskId(1)].begin = 1;
    plan_.tasks[TaskId(1)].end = 2;
    plan_.successors = {TaskId(1)};
  }

  /// The message for a plan with one change.
  std::string After(const std::function<void(ExecutionPlan&)>& change) const {
    ExecutionPlan plan = plan_;
    change(plan);
    return Verify(plan).message();
  }

  std::unique_ptr<graph::Definition> graph_;
  ExecutionPlan plan_;
};

TEST_F(VerifyTest, ASoundPlanPasses) { EXPECT_TRUE(Verify(plan_).ok()) << Verify(plan_).ToString(); }

TEST_F(VerifyTest, OperandsAreValuesWithStorages) {
  EXPECT_EQ(After([](ExecutionPlan& plan) { plan.slots[1].value = ValueId(9); }),
            "instruction 1: an operand is no value");
  EXPECT_EQ(After([](ExecutionPlan& plan) { plan.instructions[1].inputs = 7; }),
            "instruction 1: its operands are beyond the slots");
  EXPECT_EQ(After([](ExecutionPlan& plan) { plan.values[ValueId(1)].storage = StorageId(); }),
            "value %1 has no storage");
}

TEST_F(VerifyTest, StoragesReferToEntriesOfTheirTables) {
  const auto with_home = [&](Storage::Home home) {
    return After([&](ExecutionPlan& plan) { plan.storages[StorageId(1)].home = home; });
  };
  EXPECT_EQ(with_home(Storage::Home::kVariable), "storage 1 refers to no entry of its table");
  EXPECT_EQ(with_home(Storage::Home::kFeed), "storage 1 refers to no entry of its table");
  EXPECT_EQ(with_home(Storage::Home::kMade), "storage 1 refers to no entry of its table");
  EXPECT_EQ(After([](ExecutionPlan& plan) { plan.storages[StorageId(0)].space = SpaceId(4); }),
            "storage 0 refers to no entry of its table");
}

TEST_F(VerifyTest, DetailsAreInTheirTables) {
  for (const Opcode opcode :
       {Opcode::kKernel, Opcode::kCall, Opcode::kMake, Opcode::kFetch, Opcode::kMerge, Opcode::kSend, Opcode::kRecv}) {
    EXPECT_EQ(After([&](ExecutionPlan& plan) { plan.instructions[1].opcode = opcode; }),
              "instruction 1: its detail is beyond its table");
  }
  EXPECT_EQ(After([](ExecutionPlan& plan) { plan.instructions[0].detail = 1; }),
            "instruction 0: its detail is beyond its table");
}

TEST_F(VerifyTest, GuardsAreBytesOfTheRun) {
  EXPECT_EQ(After([](ExecutionPlan& plan) { plan.guard_steps[0].to = GuardId(3); }),
            "instruction 0: it has guard 3 of 3");
  EXPECT_EQ(After([](ExecutionPlan& plan) { plan.guard_steps[0].to = kAlways; }),
            "instruction 0: it sets the guard that is always set");
  EXPECT_EQ(After([](ExecutionPlan& plan) { plan.jumps[0].guard = GuardId(); }), "a jump has guard -1 of 3");
  EXPECT_EQ(After([](ExecutionPlan& plan) { plan.fetch_guards = {GuardId(5)}; }), "a fetch has guard 5 of 3");
}

TEST_F(VerifyTest, JumpsStayOnTheTape) {
  EXPECT_EQ(After([](ExecutionPlan& plan) { plan.jumps[0].target = 3; }), "a jump to 3 leaves the tape");
}

TEST_F(VerifyTest, LocksAreOfVariables) {
  EXPECT_EQ(After([](ExecutionPlan& plan) {
              plan.lock_lists = {{{VariableId(0), true}}};
              plan.instructions[1].locks = LockListId(0);
            }),
            "instruction 1: it locks no variable");
  EXPECT_EQ(After([](ExecutionPlan& plan) { plan.instructions[1].locks = LockListId(0); }),
            "instruction 1: its locks are beyond the table");
}

TEST_F(VerifyTest, DevicesMemoriesAndStreamsAreInTheirTables) {
  EXPECT_EQ(After([](ExecutionPlan& plan) { plan.instructions[1].device = DeviceId(0); }),
            "instruction 1: it runs on no device");
  EXPECT_EQ(After([](ExecutionPlan& plan) { plan.instructions[1].memory = SpaceId(1); }),
            "instruction 1: it works in no memory");
  EXPECT_EQ(After([](ExecutionPlan& plan) { plan.instructions[1].stream = StreamId(0); }),
            "instruction 1: its stream is beyond the table");
  EXPECT_EQ(After([](ExecutionPlan& plan) { plan.instructions[1].opcode = Opcode::kWait; }),
            "instruction 1: its detail is beyond its table")
      << "the plan has no events";
  EXPECT_EQ(After([](ExecutionPlan& plan) {
              plan.event_count = 1;
              plan.instructions[1].opcode = Opcode::kRecord;
              plan.streams.push_back({});
            }),
            "instruction 1: it is on no stream");
}

TEST_F(VerifyTest, TasksFollowEachOtherAlongTheTape) {
  EXPECT_EQ(After([](ExecutionPlan& plan) { plan.successors = {TaskId(0)}; }),
            "task 0: an edge does not lead along the tape");
  EXPECT_EQ(After([](ExecutionPlan& plan) { plan.tasks[TaskId(1)].loop = TaskId(0); }),
            "task 0: an edge leads to another body");
  EXPECT_EQ(After([](ExecutionPlan& plan) { plan.tasks[TaskId(1)].end = 3; }), "task 1: it has no instructions");
  EXPECT_EQ(After([](ExecutionPlan& plan) { plan.tasks[TaskId(0)].successor_count = 2; }),
            "task 0: its successors are beyond the table");
}

}  // namespace
}  // namespace weir::plan
