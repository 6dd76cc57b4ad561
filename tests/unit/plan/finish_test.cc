// What completes a tape: jumps over dead instructions, releases, moves of bytes, the slots of storages.
#include <algorithm>

#include "core/plan/memory_internal.h"
#include "tests/unit/plan/hand_tape.h"

namespace weir::plan {
namespace {

class FinishTest : public HandTape {
 protected:
  /// Finishes the tape: "k" for kernels and calls, "release(S)", "skip(G to N)", "repeat(G to N)", "make(M)", "guard".
  std::string Finished() {
    moved_ = FinishTape(tape_.shape(), plan_);
    std::string text;
    for (const Instruction& instruction : plan_.instructions) {
      text += text.empty() ? "" : " ";
      switch (instruction.opcode) {
        case Opcode::kRelease:
          text += fmt::format("release({})", instruction.detail);
          break;
        case Opcode::kMake:
          text += fmt::format("make({})", instruction.detail);
          break;
        case Opcode::kGuard:
          text += "guard";
          break;
        case Opcode::kSkip:
        case Opcode::kRepeat: {
          const Jump& jump = plan_.jumps[instruction.detail];
          text += fmt::format("{}({} to {})", instruction.opcode == Opcode::kSkip ? "skip" : "repeat",
                              jump.guard.number(), jump.target);
          break;
        }
        default:
          text += "k";
      }
    }
    return text;
  }
  int NumberOf(ValueId value) const { return tape_.StorageOf(value).number(); }

  std::vector<uint32_t> moved_;
};

TEST_F(FinishTest, ATapeWithNothingToAddStays) {
  Kernel({Kernel({})});
  EXPECT_EQ(Finished(), "k k");
  EXPECT_EQ(moved_, (std::vector<uint32_t>{0, 1, 2}));
}

TEST_F(FinishTest, OneJumpSkipsAStretchUnderOneGuard) {
  const ValueId p = Kernel({});
  Guard(GuardId(1), p);
  tape_.SetGuard(GuardId(1));
  Kernel({});
  Kernel({});
  tape_.SetGuard(GuardId(2));
  Kernel({});
  tape_.SetGuard(kAlways);
  Kernel({});
  EXPECT_EQ(Finished(), "k guard skip(1 to 5) k k skip(2 to 7) k k");
  EXPECT_EQ(moved_, (std::vector<uint32_t>{0, 1, 2, 4, 5, 7, 8})) << "a jump to the first of a stretch meets its skip";
}

TEST_F(FinishTest, AStretchAtTheEndJumpsBehindTheTape) {
  tape_.SetGuard(GuardId(1));
  Kernel({});
  EXPECT_EQ(Finished(), "skip(1 to 2) k");
}

TEST_F(FinishTest, TargetsOfJumpsEndAStretch) {
  tape_.SetGuard(GuardId(1));
  Kernel({});
  const uint32_t first = tape_.position();
  Kernel({});
  Repeat(first);
  EXPECT_EQ(Finished(), "skip(1 to 2) k skip(1 to 5) k repeat(1 to 2)")
      << "the next iteration asks for the guard again";
}

TEST_F(FinishTest, AnOwnedTensorIsReleasedBehindItsLastUse) {
  const ValueId a = Owned(), b = Owned();
  Emit(Opcode::kCall, {}, {a});
  Emit(Opcode::kCall, {a}, {b});
  Kernel({b});
  Kernel({});
  EXPECT_EQ(Finished(), fmt::format("k k release({}) k release({}) k", NumberOf(a), NumberOf(b)));
}

TEST_F(FinishTest, AReleaseIsUnderTheGuardOfItsUse) {
  const ValueId a = Owned();
  Emit(Opcode::kCall, {}, {a});
  tape_.SetGuard(GuardId(1));
  Kernel({a});
  tape_.SetGuard(kAlways);
  Kernel({});
  EXPECT_EQ(Finished(), fmt::format("k skip(1 to 4) k release({}) k", NumberOf(a)))
      << "a dead use releases at the end of the run";
}

TEST_F(FinishTest, WhatALoopReadsIsReleasedBehindIt) {
  const ValueId a = Owned();
  Emit(Opcode::kCall, {}, {a});
  const uint32_t first = tape_.position();
  Kernel({a});
  Repeat(first);
  Kernel({});
  EXPECT_EQ(Finished(), fmt::format("k k repeat(1 to 1) release({}) k", NumberOf(a)));
}

TEST_F(FinishTest, WhatTheLastInstructionUsesEndsWithTheRun) {
  const ValueId a = Owned();
  Emit(Opcode::kCall, {}, {a});
  Kernel({a});
  EXPECT_EQ(Finished(), "k k");
}

TEST_F(FinishTest, DonatedMemoryIsMadeBeforeItsFirstUse) {
  const ValueId a = New();
  plan_.made.push_back({kHostSpace, 64, {tape_.StorageOf(a)}});
  tape_.StorageAt(a).home = Storage::Home::kMade;
  tape_.StorageAt(a).made = MadeId(0);
  Kernel({});
  tape_.SetGuard(GuardId(1));
  KernelTo({}, a);
  Kernel({a});
  EXPECT_EQ(Finished(), "k skip(1 to 5) make(0) k k") << "once, under the guard of that use";
}

TEST_F(FinishTest, ConcurrentLastUsesReleaseNothing) {
  const ValueId a = Owned(), b = Owned();
  Emit(Opcode::kCall, {}, {a}, {.ns = 100e3});
  Kernel({a});
  Kernel({a});
  Emit(Opcode::kCall, {}, {b}, {.ns = 100e3});
  Kernel({b});
  Kernel({});
  ASSERT_EQ(Cut(), "T2? 0[0,1)>1,2 1[1,2) 2[2,3) 3[3,5) 4[5,6)");
  EXPECT_EQ(Finished(), fmt::format("k k k k k release({}) k", NumberOf(b)));
}

TEST_F(FinishTest, MovesOfKnownMemoryBecomeCopiesOfBytes) {
  const ValueId from = Kernel({}), to = New(), owned = Owned(), v = Variable();
  const auto move = [&](ValueId source, ValueId target) {
    Emit(Opcode::kMove, {source}, {target});
    return plan_.instructions.size() - 1;
  };
  const size_t plain = move(from, to), reshaped = move(tape_.ViewOf(from, PartialShape::Of({4, 4})), to);
  const size_t to_owned = move(from, owned), of_variable = move(v, to);
  FindMoves(plan_);
  EXPECT_EQ(plan_.instructions[plain].opcode, Opcode::kMoveBytes);
  EXPECT_EQ(plan_.instructions[plain].detail, 64u);
  EXPECT_EQ(plan_.instructions[reshaped].opcode, Opcode::kMove);
  EXPECT_EQ(plan_.instructions[to_owned].opcode, Opcode::kMove) << "its memory is made during the run";
  EXPECT_EQ(plan_.instructions[of_variable].opcode, Opcode::kMove) << "it may be written by another step";
}

TEST_F(FinishTest, SlotsAreListedByStorage) {
  const ValueId a = Kernel({}), view = tape_.ViewOf(a, PartialShape::Of({4, 4}));
  const ValueId b = Kernel({a, view}),
                unknown = tape_.NewValue(DType::kFloat, PartialShape(), kHostSpace, Placing::kAtRun);
  Emit(Opcode::kCall, {b}, {unknown});
  tape_.MakeFresh(b);
  ListSlots(plan_);
  const auto of_a = plan_.storage_slots.Of(tape_.StorageOf(a)), of_b = plan_.storage_slots.Of(tape_.StorageOf(b));
  EXPECT_EQ(std::vector<uint32_t>(of_a.begin(), of_a.end()), (std::vector<uint32_t>{0, 1, 2}));
  EXPECT_EQ(std::vector<uint32_t>(of_b.begin(), of_b.end()), (std::vector<uint32_t>{3, 4}));
  ASSERT_EQ(plan_.slot_shapes.size(), 6u);
  EXPECT_EQ(plan_.slot_shapes[2].rank, 2u) << "a view has its own shape";
  EXPECT_EQ(plan_.slot_shapes[1].rank, 1u);
  EXPECT_EQ(plan_.slot_shapes[5].rank, WEIR_UNKNOWN_RANK);
  EXPECT_EQ(plan_.fresh_storages, std::vector<StorageId>{tape_.StorageOf(b)});
}

}  // namespace
}  // namespace weir::plan
