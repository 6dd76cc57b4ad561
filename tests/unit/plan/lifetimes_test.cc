// Lifetimes of storages and the order of tasks, on tapes written by hand.
#include "core/plan/lifetimes_internal.h"

#include <algorithm>

#include "tests/unit/plan/hand_tape.h"

namespace weir::plan {
namespace {

class LifetimesTest : public HandTape {
 protected:
  /// "first-last" of a value's storage; with tasks also ">" and its last users, "?" if its first user does not precede
  /// all others, "endless".
  std::string LifeOf(ValueId value) {
    const IndexedVector<StorageId, Lifetime> lives = FindLifetimes(tape_.shape().loops, plan_, TaskOrder(plan_));
    const Lifetime& life = lives[tape_.StorageOf(value)];
    std::string text = life.first < 0 ? "none" : fmt::format("{}-{}", life.first, life.last);
    if (!life.ordered) text += "?";
    if (life.endless) text += " endless";
    if (plan_.tasks.empty()) return text;
    text += ">";
    for (const TaskId end : life.ends) text += fmt::format("{}{}", text.back() == '>' ? "" : ",", end.number());
    return text;
  }
};

TEST_F(LifetimesTest, AValueLivesFromItsWriterToItsLastReader) {
  const ValueId x = Fed(), a = Kernel({x}), b = Kernel({a}), unread = Kernel({}), unused = New();
  Kernel({b, a});
  EXPECT_EQ(LifeOf(x), "0-0");
  EXPECT_EQ(LifeOf(a), "0-3");
  EXPECT_EQ(LifeOf(b), "1-3");
  EXPECT_EQ(LifeOf(unread), "2-2");
  EXPECT_EQ(LifeOf(unused), "none");
}

TEST_F(LifetimesTest, AViewIsAUseOfItsStorage) {
  const ValueId a = Kernel({}), view = tape_.ViewOf(a, PartialShape::Of({4, 4}));
  Kernel({});
  Kernel({view});
  EXPECT_EQ(LifeOf(a), "0-2");
}

TEST_F(LifetimesTest, InputsOfAMergeLiveAsLongAsItsOutput) {
  const ValueId a = Kernel({}), b = Kernel({});
  const std::vector<ValueId> inputs = {a, b};
  const ValueId inner = tape_.AddChoice(inputs, kHostSpace);
  Emit(Opcode::kMerge, inputs, {inner});
  const std::vector<ValueId> again = {inner, a};
  const ValueId outer = tape_.AddChoice(again, kHostSpace);
  Emit(Opcode::kMerge, again, {outer});
  Kernel({});
  Kernel({outer});
  EXPECT_EQ(LifeOf(a), "0-5");
  EXPECT_EQ(LifeOf(b), "1-5") << "through the Merge in between";
  EXPECT_EQ(LifeOf(inner), "2-5");
}

TEST_F(LifetimesTest, WhatALoopReadsFromOutsideLivesUntilItsEnd) {
  const ValueId outside = Kernel({}), before = Kernel({});
  Kernel({before});
  const uint32_t first = tape_.position();
  const ValueId inside = Kernel({outside});
  Kernel({inside});
  Kernel({});
  Repeat(first);
  Kernel({});
  EXPECT_EQ(LifeOf(outside), "0-6") << "the next iteration reads it again";
  EXPECT_EQ(LifeOf(inside), "3-4");
  EXPECT_EQ(LifeOf(before), "1-2");
}

TEST_F(LifetimesTest, OfNestedLoopsTheOutermostCounts) {
  const ValueId outside = Kernel({});
  const uint32_t outer = tape_.position();
  const ValueId between = Kernel({});
  const uint32_t inner = tape_.position();
  Kernel({outside, between});
  Repeat(inner);
  Kernel({});
  Repeat(outer);
  EXPECT_EQ(LifeOf(outside), "0-5");
  EXPECT_EQ(LifeOf(between), "1-3") << "it begins in the outer loop, so that of the inner one counts";
}

TEST_F(LifetimesTest, ALoopVariableOfTheIterationBeforeLivesThroughTheLoop) {
  const ValueId v = Kernel({});
  const uint32_t first = tape_.position();
  const ValueId next = Kernel({v});
  Emit(Opcode::kMove, {next}, {v});
  Repeat(first);
  Kernel({v});
  EXPECT_EQ(LifeOf(v), "0-4");
  EXPECT_EQ(LifeOf(next), "1-2");
}

TEST_F(LifetimesTest, ExchangedStoragesHaveOneLifetime) {
  const ValueId v = Kernel({});
  const uint32_t first = tape_.position();
  const ValueId next = Kernel({v});
  Emit(Opcode::kSwap, {}, {v, next});
  Repeat(first);
  Kernel({v});
  EXPECT_EQ(LifeOf(v), LifeOf(next));
  EXPECT_EQ(LifeOf(v), "0-4");
}

TEST_F(LifetimesTest, AmongTasksTheLastUsersAreThoseThatPrecedeNoOther) {
  const ValueId a = Kernel({});
  const ValueId b = Kernel({a}), c = Kernel({a});
  Kernel({b, c});
  Kernel({});
  ASSERT_EQ(Cut(), "T2? 0[0,1)>1,2 1[1,2)>3 2[2,3)>3 3[3,4) 4[4,5)");
  EXPECT_EQ(LifeOf(a), "0-2>1,2");
  EXPECT_EQ(LifeOf(b), "1-3>3");
}

TEST_F(LifetimesTest, AValueWhoseWriterPrecedesNotAllUsersIsUnordered) {
  const ValueId shared = New();
  KernelTo({}, shared);
  Kernel({}, 200);
  KernelTo({}, shared);
  ASSERT_EQ(Cut(), "T2? 0[0,1)>2 1[1,2) 2[2,3)");
  EXPECT_EQ(LifeOf(shared), "0-2>2");
  plan_.tasks[TaskId(0)].successor_count = 0;  // as if nothing ordered the two writers
  EXPECT_EQ(LifeOf(shared), "0-2?>0,2");
}

TEST_F(LifetimesTest, ValuesOfALoopOfTasksLiveAsLongAsTheLoop) {
  const ValueId x = Fed();
  Kernel({}, 10);
  const uint32_t first = tape_.position();
  const ValueId a = Kernel({x}, 150), b = Kernel({x}, 150);
  Kernel({a, b}, 10);
  Repeat(first);
  ASSERT_EQ(Cut(), "T2? 0[0,1) 1[1,5)loop [1,4) 2[1,2)in 1>4 3[2,3)in 1>4 4[3,4)in 1");
  EXPECT_EQ(LifeOf(a), "1-4>1");
  EXPECT_EQ(LifeOf(b), "1-4>1");
}

TEST_F(LifetimesTest, TooManyLastUsersAreEndless) {
  const ValueId a = Kernel({});
  for (int i = 0; i < 70; ++i) Kernel({a});
  ASSERT_EQ(Cut().substr(0, 3), "T2?");
  EXPECT_EQ(LifeOf(a), "0-70 endless>");
}

TEST_F(LifetimesTest, OneEndsBeforeAnotherBeginsIfAllItsUsersDo) {
  const ValueId a = Kernel({});
  const ValueId b = Kernel({a});
  const ValueId c = Kernel({b});
  const ValueId apart = Kernel({c});
  Kernel({apart});
  const auto ended = [&](ValueId one, ValueId other) {
    const TaskOrder order(plan_);
    const IndexedVector<StorageId, Lifetime> lives = FindLifetimes(tape_.shape().loops, plan_, order);
    return Ended(lives[tape_.StorageOf(one)], lives[tape_.StorageOf(other)], order);
  };
  EXPECT_TRUE(ended(a, c));
  EXPECT_FALSE(ended(a, b)) << "read by the instruction that makes the other";
  EXPECT_FALSE(ended(c, a));
  EXPECT_TRUE(ended(a, apart));
  tape_.StorageAt(apart).apart = true;
  EXPECT_FALSE(ended(a, apart));
}

std::vector<TaskId> Ids(std::initializer_list<int> numbers) { return {numbers.begin(), numbers.end()}; }

class TaskOrderTest : public HandTape {
 protected:
  /// The pairs of tasks of which one precedes the other: "0<1 0<2".
  std::string Pairs(size_t entries = TaskOrder::kEntries) {
    const TaskOrder order(plan_, entries);
    std::string text;
    for (uint32_t a = 0; a < plan_.tasks.size(); ++a) {
      for (uint32_t b = 0; b < plan_.tasks.size(); ++b) {
        if (a != b && order.Before(TaskId(a), TaskId(b))) text += fmt::format("{}{}<{}", text.empty() ? "" : " ", a, b);
      }
    }
    return text;
  }
};

TEST_F(TaskOrderTest, FollowsEdgesThroughOtherTasks) {
  const ValueId a = Kernel({});
  const ValueId b = Kernel({a}), c = Kernel({a});
  const ValueId d = Kernel({b});
  Kernel({c, d});
  Kernel({});
  ASSERT_EQ(Cut(), "T2? 0[0,1)>1,2 1[1,2)>3 2[2,3)>4 3[3,4)>4 4[4,5) 5[5,6)");
  EXPECT_EQ(Pairs(), "0<1 0<2 0<3 0<4 1<3 1<4 2<4 3<4");
  EXPECT_EQ(Pairs(6), "0<1 0<2 0<3 0<4 1<3 1<4 3<4") << "with room for one chain the others precede nothing";
}

TEST_F(TaskOrderTest, TheLatestPrecedeNoneOfTheOthers) {
  const ValueId a = Kernel({});
  const ValueId b = Kernel({a}), c = Kernel({a});
  Kernel({b, c});
  Kernel({});
  ASSERT_EQ(plan_.tasks.size(), 0u);
  ASSERT_EQ(Cut(), "T2? 0[0,1)>1,2 1[1,2)>3 2[2,3)>3 3[3,4) 4[4,5)");
  const TaskOrder order(plan_);
  EXPECT_EQ(order.Latest(Ids({0, 1, 2})), Ids({1, 2}));
  EXPECT_EQ(order.Latest(Ids({0, 3, 4})), Ids({3, 4}));
  EXPECT_EQ(order.Latest({}), Ids({}));
  EXPECT_TRUE(order.AllBefore(Ids({0, 1, 2}), TaskId(3)));
  EXPECT_FALSE(order.AllBefore(Ids({0, 4}), TaskId(3)));
  EXPECT_TRUE(order.AllBefore({}, TaskId(0)));
  EXPECT_TRUE(order.Before(TaskId(4), TaskId(4))) << "itself";
  EXPECT_EQ(order.TaskOf(2), TaskId(2));
}

TEST_F(TaskOrderTest, APlanWithoutTasksIsOne) {
  Kernel({});
  Kernel({});
  const TaskOrder order(plan_);
  EXPECT_EQ(order.TaskOf(0), TaskId(0));
  EXPECT_EQ(order.TaskOf(1), TaskId(0));
  EXPECT_TRUE(order.Before(TaskId(0), TaskId(0)));
}

}  // namespace
}  // namespace weir::plan
