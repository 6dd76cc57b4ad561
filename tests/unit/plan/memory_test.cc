#include <gtest/gtest.h>

#include "core/plan/memory_internal.h"

namespace weir::plan {
namespace {

/// A plan whose storage number i has `bytes[i]` bytes in the arena, with one value each.
ExecutionPlan WithStorages(const std::vector<uint64_t>& bytes) {
  ExecutionPlan plan;
  for (size_t i = 0; i < bytes.size(); ++i) {
    Storage storage;
    storage.bytes = bytes[i];
    plan.storages.push_back(storage);
    Value value;
    value.storage = static_cast<int>(i);
    value.shape_known = true;
    plan.values.push_back(value);
  }
  return plan;
}

void AddInstruction(ExecutionPlan& plan, const std::vector<int>& inputs, const std::vector<int>& outputs) {
  Instruction instruction;
  instruction.first_slot = static_cast<uint32_t>(plan.slots.size());
  instruction.inputs = static_cast<uint16_t>(inputs.size());
  instruction.outputs = static_cast<uint16_t>(outputs.size());
  for (const int v : inputs) plan.slots.push_back({v});
  for (const int v : outputs) plan.slots.push_back({v});
  plan.instructions.push_back(instruction);
}

bool Overlap(const Storage& a, const Storage& b) {
  return a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
}

TEST(LayOutArena, ReusesWhatIsNoLongerUsed) {
  ExecutionPlan plan = WithStorages({1000, 1000, 1000, 1000});
  AddInstruction(plan, {}, {0});
  AddInstruction(plan, {0}, {1});
  AddInstruction(plan, {1}, {2});
  AddInstruction(plan, {2}, {3});
  LayOutArena({}, plan);
  EXPECT_FALSE(Overlap(plan.storages[0], plan.storages[1]));
  EXPECT_FALSE(Overlap(plan.storages[1], plan.storages[2]));
  EXPECT_EQ(plan.storages[0].offset, plan.storages[2].offset);
  EXPECT_EQ(plan.arena_bytes[0], 2048u);
}

TEST(LayOutArena, LiveStoragesNeverOverlap) {
  ExecutionPlan plan = WithStorages({64, 640, 128, 64, 256, 512});
  AddInstruction(plan, {}, {0});
  AddInstruction(plan, {0}, {1});
  AddInstruction(plan, {0}, {2});
  AddInstruction(plan, {1, 2}, {3});
  AddInstruction(plan, {3}, {4});
  AddInstruction(plan, {0, 4}, {5});
  LayOutArena({}, plan);
  const std::pair<int, int> live_together[] = {{0, 1}, {0, 2}, {1, 2}, {1, 3}, {2, 3},
                                               {0, 3}, {3, 4}, {0, 4}, {0, 5}, {4, 5}};
  for (const auto& [a, b] : live_together) {
    EXPECT_FALSE(Overlap(plan.storages[static_cast<size_t>(a)], plan.storages[static_cast<size_t>(b)]))
        << a << " and " << b;
  }
  for (const Storage& storage : plan.storages) EXPECT_EQ(storage.offset % kBufferAlignment, 0u);
}

TEST(LayOutArena, OutputTakesTheLastUseOfAnInput) {
  ExecutionPlan plan = WithStorages({256, 256, 256});
  AddInstruction(plan, {}, {0});
  AddInstruction(plan, {0}, {1});
  AddInstruction(plan, {0, 1}, {2});
  // Instruction 1 may not share (its input lives on), instruction 2 may.
  LayOutArena({{}, {}, {{1, 1, 2}, {2, 3, 5}}}, plan);
  EXPECT_FALSE(Overlap(plan.storages[0], plan.storages[1]));
  EXPECT_EQ(plan.storages[2].offset, plan.storages[0].offset);
  EXPECT_EQ(plan.arena_bytes[0], 512u);
}

TEST(LayOutArena, SecondViewOfAnInputForbidsSharing) {
  ExecutionPlan plan = WithStorages({256, 256});
  Value view = plan.values[0];
  plan.values.push_back(view);  // value 2: the same memory, seen in another shape
  AddInstruction(plan, {}, {0});
  AddInstruction(plan, {0, 2}, {1});
  LayOutArena({{}, {}, {{1, 1, 3}}}, plan);
  EXPECT_FALSE(Overlap(plan.storages[0], plan.storages[1]));
}

TEST(FinishTape, DropsOwnedTensorsAfterTheirLastUse) {
  ExecutionPlan plan = WithStorages({0, 0});
  plan.storages[0].home = Storage::Home::kOwned;
  AddInstruction(plan, {}, {0});
  AddInstruction(plan, {0}, {1});
  AddInstruction(plan, {1}, {});
  LayOutArena({}, plan);
  FinishTape({}, plan);
  ASSERT_EQ(plan.instructions.size(), 4u);
  EXPECT_EQ(plan.instructions[2].opcode, Opcode::kRelease);
  EXPECT_EQ(plan.instructions[2].detail, 0u);
}

}  // namespace
}  // namespace weir::plan
