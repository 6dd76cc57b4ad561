#include "core/plan/tape_builder_internal.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "tests/support/text_graph.h"

namespace weir::plan {
namespace {

class TapeBuilderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Result<graph::Definition> graph = testing::MakeGraph({{"a", "NoOp", {}}, {"b", "NoOp", {}}});
    ASSERT_TRUE(graph.ok()) << graph.status().ToString();
    graph_ = std::make_unique<graph::Definition>(std::move(*graph));
    tape_.SetOrigin(Node("a"));
  }
  const graph::Node& Node(const char* name) const { return *graph_->Find(name); }

  std::unique_ptr<graph::Definition> graph_;
  ExecutionPlan plan_;
  TapeBuilder tape_{plan_};
};

TEST_F(TapeBuilderTest, InstructionsHaveTheirOperandsGuardsAndOrigins) {
  const ValueId x = tape_.NewScalar(DType::kFloat, Placing::kPlanned);
  const ValueId y = tape_.NewScalar(DType::kFloat, Placing::kPlanned);
  tape_.Emit(Opcode::kMove, {x}, {y}, {.ns = 7});
  tape_.SetOrigin(Node("b"));
  tape_.SetGuard(GuardId(3));
  tape_.Emit(Opcode::kCopy, {y}, {x});
  tape_.Emit(Opcode::kCopy, {y}, {x});
  ASSERT_EQ(plan_.instructions.size(), 3u);
  EXPECT_EQ(tape_.position(), 3u);
  EXPECT_EQ(plan_.slots[plan_.instructions[1].first_slot].value, y);
  EXPECT_EQ(plan_.slots[plan_.instructions[1].first_slot + 1].value, x);
  EXPECT_EQ(tape_.shape().guards, (std::vector<GuardId>{kAlways, GuardId(3), GuardId(3)}));
  EXPECT_EQ(tape_.notes()[0].ns, 7);
  EXPECT_EQ(tape_.notes()[1].ns, 0);
  ASSERT_EQ(plan_.nodes.size(), 2u) << "neighbours of one node share its entry";
  EXPECT_EQ(plan_.nodes[static_cast<size_t>(plan_.instructions[2].node)]->name(), "b");
}

TEST_F(TapeBuilderTest, TheGuardOfASkippedLoopIsNotRepeatedInside) {
  const GuardId outer(1), inner(2);
  tape_.SetGuard(outer);
  tape_.OpenLoop(outer);
  tape_.Emit(Opcode::kCopy, {}, {});
  tape_.SetGuard(inner);
  tape_.Emit(Opcode::kCopy, {}, {});
  tape_.CloseLoop();
  tape_.SetGuard(outer);
  tape_.Emit(Opcode::kCopy, {}, {});
  EXPECT_EQ(tape_.shape().guards, (std::vector<GuardId>{kAlways, inner, outer}));
}

TEST_F(TapeBuilderTest, ValuesOfKnownShapesArePlanned) {
  const ValueId known = tape_.NewValue(DType::kFloat, PartialShape::Of({2, 3}), kHostSpace, Placing::kPlanned);
  EXPECT_EQ(tape_.StorageAt(known).home, Storage::Home::kArena);
  EXPECT_EQ(tape_.StorageAt(known).bytes, 24u);
  const ValueId unknown = tape_.NewValue(DType::kFloat, PartialShape::Of({-1, 3}), SpaceId(1), Placing::kPlanned);
  EXPECT_EQ(tape_.StorageAt(unknown).home, Storage::Home::kOwned);
  EXPECT_EQ(tape_.StorageAt(unknown).space, SpaceId(1));
  EXPECT_FALSE(tape_.ValueAt(unknown).shape_known);
  const ValueId text = tape_.NewScalar(DType::kString, Placing::kPlanned);
  EXPECT_EQ(tape_.StorageAt(text).home, Storage::Home::kOwned) << "strings have no fixed size";
  const ValueId later = tape_.NewScalar(DType::kFloat, Placing::kAtRun);
  EXPECT_EQ(tape_.StorageAt(later).home, Storage::Home::kOwned);
}

TEST_F(TapeBuilderTest, AViewSharesTheStorage) {
  const ValueId value = tape_.NewValue(DType::kFloat, PartialShape::Of({2, 3}), kHostSpace, Placing::kPlanned);
  const ValueId view = tape_.ViewOf(value, PartialShape::Of({6}));
  EXPECT_NE(view, value);
  EXPECT_EQ(tape_.StorageOf(view), tape_.StorageOf(value));
  EXPECT_EQ(tape_.ValueAt(view).shape, Shape::Of({6}));
}

TEST_F(TapeBuilderTest, OnlyArenaMemoryOfTheHostBecomesFresh) {
  const ValueId host = tape_.NewValue(DType::kFloat, PartialShape::Of({4}), kHostSpace, Placing::kPlanned);
  const ValueId away = tape_.NewValue(DType::kFloat, PartialShape::Of({4}), SpaceId(1), Placing::kPlanned);
  const ValueId constant = tape_.AddConstant(Tensor::Scalar<float>(1));
  for (const ValueId value : {host, away, constant}) tape_.MakeFresh(value);
  EXPECT_EQ(tape_.StorageAt(host).home, Storage::Home::kFresh);
  EXPECT_EQ(tape_.StorageAt(host).shape, Shape::Of({4}));
  EXPECT_EQ(tape_.StorageAt(away).home, Storage::Home::kArena);
  EXPECT_EQ(tape_.StorageAt(constant).home, Storage::Home::kConstant);
}

TEST_F(TapeBuilderTest, AChoiceHasAShapeIfAllInputsHaveThatShape) {
  const auto value = [&](std::initializer_list<int64_t> dims) {
    return tape_.NewValue(DType::kFloat, PartialShape::Of(dims), kHostSpace, Placing::kPlanned);
  };
  const std::vector<ValueId> alike = {value({2}), value({2})}, unlike = {value({2}), value({3})};
  EXPECT_TRUE(tape_.ValueAt(tape_.AddChoice(alike, kHostSpace)).shape_known);
  const ValueId choice = tape_.AddChoice(unlike, kHostSpace);
  EXPECT_FALSE(tape_.ValueAt(choice).shape_known);
  EXPECT_EQ(tape_.StorageAt(choice).home, Storage::Home::kBound);
  EXPECT_EQ(tape_.StorageAt(choice).sources,
            (std::vector<StorageId>{tape_.StorageOf(unlike[0]), tape_.StorageOf(unlike[1])}));
}

TEST_F(TapeBuilderTest, AVariableWithoutAResourceIsAReferenceCell) {
  VariableUse cell;
  cell.choices = {VariableId(0), VariableId(1)};
  const ValueId value = tape_.AddVariable(std::move(cell), Value(), kHostSpace);
  EXPECT_TRUE(tape_.IsVariable(value));
  EXPECT_TRUE(tape_.IsPlace(value));
  EXPECT_EQ(tape_.VariableOf(value), VariableId(0));
  EXPECT_FALSE(tape_.IsVariable(tape_.NewScalar(DType::kFloat, Placing::kPlanned)));
}

TEST_F(TapeBuilderTest, SharingRefersToSlotsOfTheLastInstruction) {
  const ValueId x = tape_.NewScalar(DType::kFloat, Placing::kPlanned);
  const ValueId y = tape_.NewScalar(DType::kFloat, Placing::kPlanned);
  tape_.Emit(Opcode::kMove, {x}, {y});
  tape_.Emit(Opcode::kKernel, {x, y}, {y});
  tape_.AllowSharing(1, 0);
  ASSERT_EQ(tape_.shape().shares.size(), 1u);
  EXPECT_EQ(tape_.shape().shares[0].instruction, 1u);
  EXPECT_EQ(tape_.shape().shares[0].input_slot, 3u);
  EXPECT_EQ(tape_.shape().shares[0].output_slot, 4u);
}

TEST_F(TapeBuilderTest, LocksOfOneVariableAreTakenOnceAndExclusivelyIfOneIs) {
  auto variable = std::make_shared<runtime::Variable>();
  VariableUse use;
  use.variable = variable;
  tape_.AddVariable(use, Value(), kHostSpace);
  tape_.AddVariable(use, Value(), kHostSpace);  // named twice
  Instruction& instruction = tape_.Emit(Opcode::kAssign, {}, {});
  tape_.SetLocks({{VariableId(0), false}, {VariableId(1), true}}, instruction);
  ASSERT_EQ(plan_.LocksOf(instruction).size(), 1u);
  EXPECT_TRUE(plan_.LocksOf(instruction)[0].exclusive);
}

TEST_F(TapeBuilderTest, LocksAreSortedByAddressAndThoseOfCellsComeFirst) {
  IndexedVector<VariableId, VariableUse> uses(3);
  uses[VariableId(0)].variable = std::make_shared<runtime::Variable>();
  uses[VariableId(2)].variable = std::make_shared<runtime::Variable>();
  std::vector<Lock> locks = {{VariableId(0), false}, {VariableId(2), true}, {VariableId(1), true}};
  SortLocks(uses, locks);
  ASSERT_EQ(locks.size(), 3u);
  EXPECT_EQ(locks[0].variable, VariableId(1)) << "a cell has no address yet";
  EXPECT_LT(uses[locks[1].variable].variable.get(), uses[locks[2].variable].variable.get())
      << "all steps take them in one order";
}

TEST_F(TapeBuilderTest, TwoCellsMayStandForOneVariableSoBothAreLocked) {
  IndexedVector<VariableId, VariableUse> uses(2);
  std::vector<Lock> locks = {{VariableId(0), false}, {VariableId(1), false}};
  SortLocks(uses, locks);
  EXPECT_EQ(locks.size(), 2u);
}

TEST_F(TapeBuilderTest, ScratchMemoryIsAPlannedValueOfBytes) {
  const ValueId scratch = tape_.NewScratch(100, 256, SpaceId(1));
  EXPECT_TRUE(tape_.ValueAt(scratch).scratch);
  EXPECT_EQ(tape_.ValueAt(scratch).dtype, DType::kUint8);
  EXPECT_EQ(tape_.ValueAt(scratch).shape, Shape::Of({100}));
  EXPECT_EQ(tape_.StorageAt(scratch).bytes, 100u);
  EXPECT_EQ(tape_.StorageAt(scratch).alignment, 256u);
  EXPECT_EQ(tape_.StorageAt(scratch).home, Storage::Home::kArena);
}

TEST_F(TapeBuilderTest, AValueInAnotherMemoryHasTheTypeAndShape) {
  const ValueId host = tape_.NewValue(DType::kInt64, PartialShape::Of({2, 3}), kHostSpace, Placing::kPlanned);
  const ValueId away = tape_.NewLike(host, SpaceId(2));
  EXPECT_EQ(tape_.ValueAt(away).dtype, DType::kInt64);
  EXPECT_EQ(tape_.ShapeOf(away), PartialShape::Of({2, 3}));
  EXPECT_EQ(tape_.StorageAt(away).space, SpaceId(2));
  EXPECT_NE(tape_.StorageOf(away), tape_.StorageOf(host));
  const ValueId unknown =
      tape_.NewLike(tape_.NewValue(DType::kFloat, PartialShape(), kHostSpace, Placing::kAtRun), SpaceId(2));
  EXPECT_FALSE(tape_.ShapeOf(unknown).has_rank());
}

TEST_F(TapeBuilderTest, AReferenceHasTheTypeOfItsVariable) {
  const ValueId value = tape_.NewValue(RefType(DType::kFloat), PartialShape::Of({2}), kHostSpace, Placing::kPlanned);
  EXPECT_EQ(tape_.ValueAt(value).dtype, DType::kFloat);
}

TEST_F(TapeBuilderTest, AValueThatNoMemoryHoldsIsMadeByTheRun) {
  const PartialShape huge = PartialShape::Of({int64_t{1} << 40, int64_t{1} << 40});
  const ValueId value = tape_.NewValue(DType::kFloat, huge, kHostSpace, Placing::kPlanned);
  EXPECT_EQ(tape_.StorageAt(value).home, Storage::Home::kOwned) << "the step fails there, if it gets there";
}

TEST_F(TapeBuilderTest, AnEmptyValueDoesNotBecomeFresh) {
  const ValueId empty = tape_.NewValue(DType::kFloat, PartialShape::Of({0, 3}), kHostSpace, Placing::kPlanned);
  tape_.MakeFresh(empty);
  EXPECT_EQ(tape_.StorageAt(empty).home, Storage::Home::kArena);
}

TEST_F(TapeBuilderTest, JumpsAndLoopsHavePositions) {
  tape_.Emit(Opcode::kMove, {}, {});
  const uint32_t skip = tape_.AddJump(GuardId(2));
  tape_.Emit(Opcode::kSkip, {}, {}).detail = skip;
  const uint32_t first = tape_.position();
  tape_.Emit(Opcode::kMove, {}, {});
  tape_.AddLoop(first, FrameId(3));
  tape_.Emit(Opcode::kRepeat, {}, {}).detail = tape_.AddJump(GuardId(1), first);
  tape_.SetTarget(skip, tape_.position());
  ASSERT_EQ(plan_.jumps.size(), 2u);
  EXPECT_EQ(plan_.jumps[0].target, 4u);
  EXPECT_EQ(plan_.jumps[0].guard, GuardId(2));
  EXPECT_EQ(plan_.jumps[1].target, 2u);
  ASSERT_EQ(tape_.shape().loops.size(), 1u);
  EXPECT_EQ(tape_.shape().loops[0].first, 2u);
  EXPECT_EQ(tape_.shape().loops[0].last, 3u) << "the position of its kRepeat";
  EXPECT_EQ(tape_.shape().loops[0].frame, FrameId(3));
}

}  // namespace
}  // namespace weir::plan
