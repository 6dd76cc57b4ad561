// Tasks and their edges, on tapes written by hand.
#include "core/plan/tasks_internal.h"

#include "tests/unit/plan/hand_tape.h"

namespace weir::plan {
namespace {

class CutTasksTest : public HandTape {};

TEST_F(CutTasksTest, AChainIsRunByOneThread) {
  ValueId x = Fed();
  for (int i = 0; i < 5; ++i) x = Kernel({x});
  EXPECT_EQ(Cut(), "T0") << "nothing could run beside it";
  EXPECT_TRUE(work_.settled);
  EXPECT_DOUBLE_EQ(plan_.serial_ns, 500e3);
  EXPECT_DOUBLE_EQ(plan_.critical_ns, 500e3);
}

TEST_F(CutTasksTest, IndependentChainsAreATaskEach) {
  const ValueId x = Fed();
  const ValueId a = Kernel({x});
  Kernel({a});
  const ValueId b = Kernel({x});
  Kernel({b});
  EXPECT_EQ(Cut(), "T2? 0[0,2) 1[2,4)");
  EXPECT_DOUBLE_EQ(plan_.critical_ns, 200e3);
}

TEST_F(CutTasksTest, WhatForksAndJoinsHasEdges) {
  const ValueId a = Kernel({Fed()});
  const ValueId b = Kernel({a}), c = Kernel({a});
  Kernel({b, c});
  Kernel({});
  EXPECT_EQ(Cut(), "T2? 0[0,1)>1,2 1[1,2)>3 2[2,3)>3 3[3,4) 4[4,5)");
  EXPECT_EQ(plan_.tasks[TaskId(3)].predecessors, 2);
  EXPECT_EQ(plan_.tasks[TaskId(0)].predecessors, 0);
}

TEST_F(CutTasksTest, AnotherReaderOfAChainThatWaitsForItsEndJoinsNothing) {
  const ValueId a = Kernel({Fed()});
  const ValueId b = Kernel({a});
  Kernel({a, b});
  Kernel({});
  EXPECT_EQ(Cut(), "T2? 0[0,3) 1[3,4)") << "whatever waits for the first waits for the second too";
}

TEST_F(CutTasksTest, TheDeclaredTimeDecides) {
  const auto two = [this](double us) {
    Kernel({}, us);
    Kernel({}, us);
  };
  two(20);
  EXPECT_EQ(Cut(), "T0") << "less than waking a thread takes";
  EXPECT_EQ(plan_.serial_ns, 40e3);
  two(20);
  EXPECT_EQ(Cut(), "T0? 0[0,1) 1[1,2) 2[2,3) 3[3,4)") << "runs decide";
  two(100);
  EXPECT_EQ(Cut(), "T2? 0[0,1) 1[1,2) 2[2,3) 3[3,4) 4[4,5) 5[5,6)");
}

TEST_F(CutTasksTest, OneThreadNeedsNoTasks) {
  Kernel({});
  Kernel({}, 400);
  EXPECT_EQ(Cut(1), "T0");
  EXPECT_TRUE(work_.settled);
}

TEST_F(CutTasksTest, ManyTinyTasksStaySerial) {
  for (int i = 0; i < 2000; ++i) Kernel({}, 0.15);
  EXPECT_EQ(Cut(), "T0") << "handing them over would take longer";
}

TEST_F(CutTasksTest, OpsThatBlockRunAsTasksInAnyCase) {
  const ValueId a = Kernel({}, 1);
  Emit(Opcode::kCall, {a}, {Owned()}, {.blocks = true});
  Kernel({}, 1);
  EXPECT_EQ(Cut(1), "T2 0[0,1)>1 1[1,2)b 2[2,3)");
  EXPECT_TRUE(work_.settled);
}

TEST_F(CutTasksTest, AnOpThatSuspendsMayLeadAChainButNotFollow) {
  const ValueId a = Kernel({}, 1), b = Owned();
  Emit(Opcode::kCall, {a}, {b}, {.blocks = true, .suspends = true});
  Kernel({b}, 1);
  EXPECT_EQ(Cut(), "T2 0[0,1)>1 1[1,3)s") << "its thread is given back until it completes";
}

TEST_F(CutTasksTest, AWriteFollowsTheReadersBefore) {
  const ValueId a = Kernel({}), b = New();
  KernelTo({a}, b);
  Kernel({a});
  KernelTo({}, a);  // another value in the same memory, as a loop variable has
  EXPECT_EQ(Cut(), "T2? 0[0,1)>1,2,3 1[1,2)>3 2[2,3)>3 3[3,4)");
}

TEST_F(CutTasksTest, GuardsOrderWhatRunsUnderThem) {
  const ValueId p = Kernel({});
  Guard(GuardId(1), p);
  tape_.SetGuard(GuardId(1));
  Kernel({Fed()});
  Kernel({Fed()});
  tape_.SetGuard(kAlways);
  Kernel({Fed()});
  EXPECT_EQ(Cut(), "T2? 0[0,2)>1,2 1[2,3) 2[3,4) 3[4,5)");
}

TEST_F(CutTasksTest, ExclusiveLocksOrderTasksAndSharedOnesDoNot) {
  const ValueId v = Variable(), w = Variable();
  const auto lock = [&](ValueId variable, bool exclusive) {
    Instruction& kernel = Emit(Opcode::kLockedKernel, {variable}, {New()}, {.ns = 100e3});
    tape_.SetLocks({{tape_.VariableOf(variable), exclusive}}, kernel);
  };
  lock(v, false);
  lock(v, false);
  lock(v, true);
  lock(w, true);
  lock(v, false);
  EXPECT_EQ(Cut(), "T2? 0[0,1)>2 1[1,2)>2 2[2,3)>4 3[3,4) 4[4,5)");
}

TEST_F(CutTasksTest, TwoUsesOfOneVariableCountAsOne) {
  VariableUse use;
  use.variable = std::make_shared<runtime::Variable>();
  Value value;
  value.dtype = DType::kFloat;
  const ValueId v = tape_.AddVariable(use, value, kHostSpace), again = tape_.AddVariable(use, value, kHostSpace);
  for (const ValueId variable : {v, again}) {
    Instruction& kernel = Emit(Opcode::kLockedKernel, {variable}, {New()}, {.ns = 100e3});
    tape_.SetLocks({{tape_.VariableOf(variable), true}}, kernel);
    Kernel({Fed()});
  }
  EXPECT_EQ(Cut(), "T2? 0[0,1)>2 1[1,2) 2[2,3) 3[3,4)");
}

TEST_F(CutTasksTest, StacksKeepTheirOrder) {
  plan_.stacks.resize(2);
  const auto push = [&](uint32_t stack) { Emit(Opcode::kPush, {Kernel({})}, {}).detail = stack; };
  push(0);
  push(1);
  Emit(Opcode::kPop, {}, {New()}).detail = 0;
  EXPECT_EQ(Cut(), "T2? 0[0,2)>2 1[2,4) 2[4,5)");
}

TEST_F(CutTasksTest, ControlEdgesGoThroughNodesWithoutInstructions) {
  Kernel({Fed()});
  const graph::NodeId between = Empty({LastNode()}), last = Empty({between});
  Kernel({Fed()});
  Kernel({Fed()});
  step_.nodes[static_cast<size_t>(LastNode())].control_inputs = {last};
  EXPECT_EQ(Cut(), "T2? 0[0,1)>2 1[1,2) 2[2,3)");
}

TEST_F(CutTasksTest, AStatefulNodeOnTheTapeTwiceKeepsItsOrder) {
  Kernel({Fed()});
  tape_.SetOrigin(*graph_->Find("draw"));
  Kernel({Fed()});
  tape_.SetOrigin(*graph_->Find("n"));
  Kernel({Fed()});
  tape_.SetOrigin(*graph_->Find("draw"));
  Kernel({Fed()});
  EXPECT_EQ(Cut(), "T2? 0[0,1) 1[1,2)>3 2[2,3) 3[3,4)") << "as the copies of an unrolled loop have it";
}

TEST_F(CutTasksTest, ACheapLoopIsOneTask) {
  const ValueId x = New();
  const uint32_t first = tape_.position();
  KernelTo({x}, x, 60);
  KernelTo({x}, New(), 60);
  Repeat(first);
  Kernel({Fed()}, 150);
  EXPECT_EQ(Cut(), "T2? 0[0,3) 1[3,4)");
  ASSERT_EQ(work_.loops.size(), 1u);
  EXPECT_FALSE(work_.loops[0].heavy);
}

TEST_F(CutTasksTest, AWideLoopSchedulesItsBodyAsTasks) {
  const ValueId x = Fed();
  const uint32_t first = tape_.position();
  const ValueId a = Kernel({x}, 150), b = Kernel({x}, 150);
  Kernel({a, b}, 10);
  Repeat(first);
  EXPECT_EQ(Cut(), "T2? 0[0,4)loop [0,3) 1[0,1)in 0>3 2[1,2)in 0>3 3[2,3)in 0");
  EXPECT_TRUE(work_.loops[0].heavy);
  EXPECT_FALSE(work_.loops[0].keeps_state);
}

TEST_F(CutTasksTest, ANarrowLoopStaysWhole) {
  ValueId x = Fed();
  const uint32_t first = tape_.position();
  for (int i = 0; i < 3; ++i) x = Kernel({x}, 150);
  Repeat(first);
  Kernel({Fed()}, 400);
  EXPECT_EQ(Cut(), "T2? 0[0,4) 1[4,5)") << "its critical path takes most of an iteration";
  EXPECT_TRUE(work_.loops[0].heavy);
}

TEST_F(CutTasksTest, ALoopWithAnOpThatWaitsIsCutForOneThread) {
  const uint32_t first = tape_.position();
  const ValueId a = Owned();
  Emit(Opcode::kCall, {}, {a}, {.blocks = true, .suspends = true});
  Kernel({a}, 1);
  Repeat(first);
  EXPECT_EQ(Cut(1), "T2 0[0,3)loop [0,2) 1[0,2)sin 0");
  EXPECT_TRUE(work_.loops[0].blocks);
}

TEST_F(CutTasksTest, ALoopBehindAChainIsTheTaskOfItsBody) {
  ValueId x = Fed();
  for (int i = 0; i < 2; ++i) x = Kernel({x});
  const uint32_t first = tape_.position();
  const ValueId a = Kernel({x}, 150), b = Kernel({x}, 150);
  Kernel({a, b}, 10);
  Repeat(first);
  EXPECT_EQ(Cut(), "T2? 0[0,2)>1 1[2,6)loop [2,5) 2[2,3)in 1>4 3[3,4)in 1>4 4[4,5)in 1")
      << "the chain is one task now, and the loop has another number";
  EXPECT_EQ(plan_.tasks[TaskId(1)].inner, 3u);
  EXPECT_DOUBLE_EQ(plan_.critical_ns, 360e3);
}

TEST_F(CutTasksTest, ALoopInsideALoopIsATaskOfItsBody) {
  const ValueId x = Fed();
  Kernel({x}, 150);
  for (int i = 0; i < 2; ++i) Kernel({x}, 150);
  Repeat(1);
  Repeat(0);
  EXPECT_EQ(Cut(), "T2? 0[0,5)loop [0,4) 1[0,1)in 0 2[1,4)loop [1,3)in 0 3[1,2)in 2 4[2,3)in 2");
  EXPECT_EQ(plan_.tasks[TaskId(0)].inner, 2u);
  EXPECT_EQ(plan_.tasks[TaskId(2)].inner, 2u);
  EXPECT_DOUBLE_EQ(plan_.critical_ns, 150e3) << "all that is in one iteration runs at once";
}

TEST_F(CutTasksTest, ALockOfACellIsOneOfEachOfItsChoices) {
  const std::vector<ValueId> variables = {Variable(), Variable(), Variable()};
  VariableUse cell;
  cell.choices = {tape_.VariableOf(variables[0]), tape_.VariableOf(variables[1])};
  const ValueId chosen = tape_.AddVariable(std::move(cell), tape_.ValueAt(variables[0]), kHostSpace);
  const auto writes = [this](ValueId variable) {
    Instruction& kernel = Emit(Opcode::kLockedKernel, {variable}, {New()}, {.ns = 100e3});
    tape_.SetLocks({{tape_.VariableOf(variable), true}}, kernel);
  };
  writes(chosen);
  for (const ValueId variable : variables) writes(variable);
  EXPECT_EQ(Cut(), "T2? 0[0,1)>1,2 1[1,2) 2[2,3) 3[3,4)") << "the third is no choice";
}

TEST_F(CutTasksTest, KernelsThatChangeTheirStateAreNoted) {
  const uint32_t first = tape_.position();
  Kernel({Fed()}, 150);
  plan_.instructions.back().serialized = true;
  Kernel({Fed()}, 150);
  Repeat(first);
  EXPECT_EQ(Cut().substr(0, 3), "T2?");
  EXPECT_TRUE(work_.loops[0].keeps_state);
}

}  // namespace
}  // namespace weir::plan
