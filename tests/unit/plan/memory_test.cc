#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>

#include "core/plan/lifetimes_internal.h"
#include "core/plan/memory_internal.h"
#include "core/tensor/buffer.h"

namespace weir::plan {
namespace {

/// A plan whose storage i has `bytes[i]` bytes in the arena and one value.
ExecutionPlan WithStorages(const std::vector<uint64_t>& bytes) {
  ExecutionPlan plan;
  for (size_t i = 0; i < bytes.size(); ++i) {
    Storage storage;
    storage.bytes = bytes[i];
    plan.storages.push_back(storage);
    Value value;
    value.storage = StorageId(i);
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
  for (const int v : inputs) plan.slots.push_back({ValueId(v)});
  for (const int v : outputs) plan.slots.push_back({ValueId(v)});
  plan.instructions.push_back(instruction);
}

bool Overlap(const Storage& a, const Storage& b) {
  return a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
}

TEST(LayOutArena, ReusesDeadMemory) {
  ExecutionPlan plan = WithStorages({1000, 1000, 1000, 1000});
  AddInstruction(plan, {}, {0});
  AddInstruction(plan, {0}, {1});
  AddInstruction(plan, {1}, {2});
  AddInstruction(plan, {2}, {3});
  ASSERT_TRUE(LayOutArena({}, plan).ok());
  EXPECT_FALSE(Overlap(plan.storages[StorageId(0)], plan.storages[StorageId(1)]));
  EXPECT_FALSE(Overlap(plan.storages[StorageId(1)], plan.storages[StorageId(2)]));
  EXPECT_EQ(plan.storages[StorageId(0)].offset, plan.storages[StorageId(2)].offset);
  EXPECT_EQ(plan.arena_bytes[kHostSpace], 2048u);
}

TEST(LayOutArena, EachMemoryHasAnArenaOfItsOwn) {
  ExecutionPlan plan = WithStorages({1000, 500, 1000, 500});
  plan.devices.resize(2);
  const SpaceId first = OwnSpace(DeviceId(0)), second = OwnSpace(DeviceId(1));
  plan.storages[StorageId(1)].space = plan.storages[StorageId(3)].space = second;
  AddInstruction(plan, {}, {0});
  AddInstruction(plan, {0}, {1});
  AddInstruction(plan, {1}, {2});
  AddInstruction(plan, {2}, {3});
  ASSERT_TRUE(LayOutArena({}, plan).ok());
  EXPECT_EQ(plan.storages[StorageId(0)].offset, plan.storages[StorageId(2)].offset);
  EXPECT_EQ(plan.storages[StorageId(1)].offset, plan.storages[StorageId(3)].offset);
  EXPECT_EQ(plan.arena_bytes[kHostSpace], 1024u);
  EXPECT_EQ(plan.arena_bytes[first], 0u);
  EXPECT_EQ(plan.arena_bytes[second], 512u);
}

TEST(LayOutArena, StoragesThatAreSetApartShareNothing) {
  ExecutionPlan plan = WithStorages({1024, 1024, 1024, 1024});
  plan.storages[StorageId(1)].apart = true;
  AddInstruction(plan, {}, {0});
  AddInstruction(plan, {0}, {2});
  AddInstruction(plan, {2}, {1});
  AddInstruction(plan, {1}, {3});
  ASSERT_TRUE(LayOutArena({}, plan).ok());
  for (const int other : {0, 2, 3}) {
    EXPECT_FALSE(Overlap(plan.storages[StorageId(1)], plan.storages[StorageId(other)])) << other;
  }
  EXPECT_EQ(plan.arena_bytes[kHostSpace], 3072u);
}

TEST(LayOutArena, RefusesMoreThanCanBeCounted) {
  ExecutionPlan plan;
  plan.storages.resize((uint64_t{1} << 60) / kMostBytes + 1);
  for (Storage& storage : plan.storages) storage.bytes = kMostBytes;
  EXPECT_EQ(LayOutArena({}, plan).code(), Code::kResourceExhausted);
}

TEST(LayOutArena, LiveStoragesNeverOverlap) {
  ExecutionPlan plan = WithStorages({64, 640, 128, 64, 256, 512});
  AddInstruction(plan, {}, {0});
  AddInstruction(plan, {0}, {1});
  AddInstruction(plan, {0}, {2});
  AddInstruction(plan, {1, 2}, {3});
  AddInstruction(plan, {3}, {4});
  AddInstruction(plan, {0, 4}, {5});
  ASSERT_TRUE(LayOutArena({}, plan).ok());
  const std::pair<int, int> live_together[] = {{0, 1}, {0, 2}, {1, 2}, {1, 3}, {2, 3},
                                               {0, 3}, {3, 4}, {0, 4}, {0, 5}, {4, 5}};
  for (const auto& [a, b] : live_together) {
    EXPECT_FALSE(Overlap(plan.storages[StorageId(a)], plan.storages[StorageId(b)])) << a << " and " << b;
  }
  for (const Storage& storage : plan.storages) EXPECT_EQ(storage.offset % kBufferAlignment, 0u);
}

TEST(LayOutArena, OutputTakesTheLastUseOfAnInput) {
  ExecutionPlan plan = WithStorages({256, 256, 256});
  AddInstruction(plan, {}, {0});
  AddInstruction(plan, {0}, {1});
  AddInstruction(plan, {0, 1}, {2});
  // Instruction 1 must not work in place (its input stays live), instruction 2 may.
  ASSERT_TRUE(LayOutArena({{}, {}, {{1, 1, 2}, {2, 3, 5}}}, plan).ok());
  EXPECT_FALSE(Overlap(plan.storages[StorageId(0)], plan.storages[StorageId(1)]));
  EXPECT_EQ(plan.storages[StorageId(2)].offset, plan.storages[StorageId(0)].offset);
  EXPECT_EQ(plan.arena_bytes[kHostSpace], 512u);
}

TEST(LayOutArena, SecondViewOfAnInputForbidsSharing) {
  ExecutionPlan plan = WithStorages({256, 256});
  Value view = plan.values[ValueId(0)];
  plan.values.push_back(view);  // value 2: the same memory with another shape
  AddInstruction(plan, {}, {0});
  AddInstruction(plan, {0, 2}, {1});
  ASSERT_TRUE(LayOutArena({{}, {}, {{1, 1, 3}}}, plan).ok());
  EXPECT_FALSE(Overlap(plan.storages[StorageId(0)], plan.storages[StorageId(1)]));
}

TEST(LayOutArena, LargestFirstWhereBestFitWastes) {
  // Along the tape the small value splits the hole left by the first one, and the third value does not fit.
  ExecutionPlan plan = WithStorages({1024, 1024, 64, 1024});
  AddInstruction(plan, {}, {0});
  AddInstruction(plan, {0}, {1});
  AddInstruction(plan, {1}, {2});
  AddInstruction(plan, {1, 2}, {3});
  AddInstruction(plan, {2, 3}, {});
  ASSERT_TRUE(LayOutArena({}, plan).ok());
  EXPECT_EQ(plan.live_bytes[kHostSpace], 2112u);
  EXPECT_EQ(plan.arena_bytes[kHostSpace], 2112u);
}

TEST(LayOutArena, ExchangedStoragesKeepTheirPlacesThroughTheLoop) {
  ExecutionPlan plan = WithStorages({1024, 1024, 1024});
  AddInstruction(plan, {}, {0});
  AddInstruction(plan, {0}, {2});  // the loop begins here
  AddInstruction(plan, {2}, {1});
  AddInstruction(plan, {}, {0, 1});
  plan.instructions.back().opcode = Opcode::kSwap;
  AddInstruction(plan, {}, {});
  ASSERT_TRUE(LayOutArena({{}, {{1, 4}}, {}}, plan).ok());
  EXPECT_FALSE(Overlap(plan.storages[StorageId(0)], plan.storages[StorageId(1)]));
  EXPECT_FALSE(Overlap(plan.storages[StorageId(0)], plan.storages[StorageId(2)]));
  EXPECT_FALSE(Overlap(plan.storages[StorageId(1)], plan.storages[StorageId(2)]))
      << "storage 1 has the other's content when 2 is written";
}

/// Makes every instruction a task, with these edges.
void MakeTasks(ExecutionPlan& plan, const std::set<std::pair<uint32_t, uint32_t>>& edges) {
  plan.tasks.clear();
  plan.successors.clear();
  for (uint32_t i = 0; i < plan.instructions.size(); ++i) {
    Task task;
    task.begin = i;
    task.end = i + 1;
    task.first_successor = static_cast<uint32_t>(plan.successors.size());
    for (auto edge = edges.lower_bound({i, 0}); edge != edges.end() && edge->first == i; ++edge) {
      plan.successors.emplace_back(edge->second);
      ++task.successor_count;
    }
    plan.tasks.push_back(task);
  }
}

TEST(LayOutArena, TasksReuseMemoryAfterAllItsUsers) {
  ExecutionPlan plan = WithStorages({1024, 1024, 1024, 1024});
  AddInstruction(plan, {}, {0});
  AddInstruction(plan, {0}, {1});
  AddInstruction(plan, {1}, {2});
  AddInstruction(plan, {}, {3});
  MakeTasks(plan, {{0, 1}, {1, 2}});
  ASSERT_TRUE(LayOutArena({}, plan).ok());
  EXPECT_EQ(plan.storages[StorageId(0)].offset, plan.storages[StorageId(2)].offset) << "0 is read before 2 is written";
  for (const int other : {0, 1, 2}) {
    EXPECT_FALSE(Overlap(plan.storages[StorageId(3)], plan.storages[StorageId(other)]))
        << "the last task may run beside all others";
  }
}

TEST(LayOutArena, ReaderThroughAMergeKeepsAnOutputOutOfItsPlace) {
  // Value 1 is a Merge's output that aliases value 0. Task 2 reads it, task 3 may write to the memory of 0; no edge
  // orders the two.
  ExecutionPlan plan = WithStorages({256, 0, 256, 256});
  plan.storages[StorageId(1)].home = Storage::Home::kBound;
  plan.storages[StorageId(1)].sources = {StorageId(0)};
  AddInstruction(plan, {}, {0});
  AddInstruction(plan, {0}, {1});
  AddInstruction(plan, {1}, {2});
  AddInstruction(plan, {0}, {3});
  const TapeShape shape = {{}, {}, {{3, 5, 6}}};
  MakeTasks(plan, {{0, 1}, {0, 3}, {1, 2}});
  ASSERT_TRUE(LayOutArena(shape, plan).ok());
  EXPECT_FALSE(Overlap(plan.storages[StorageId(0)], plan.storages[StorageId(3)]));
  MakeTasks(plan, {{0, 1}, {0, 3}, {1, 2}, {2, 3}});
  ASSERT_TRUE(LayOutArena(shape, plan).ok());
  EXPECT_EQ(plan.storages[StorageId(0)].offset, plan.storages[StorageId(3)].offset);
}

/// A plan of `count` tasks, each computes a value from up to three earlier ones, some of them through a Merge, and may
/// work in place. Its edges are those of the values and some random ones.
struct RandomTasks {
  explicit RandomTasks(uint32_t seed, size_t count) : random(seed) {
    std::set<std::pair<uint32_t, uint32_t>> edges;
    for (uint32_t i = 0; i < count; ++i) {
      std::vector<int> inputs;
      for (uint32_t n = Upto(3); n > 0 && i > 0; --n)
        inputs.push_back(static_cast<int>(i - 1 - Upto(std::min(i, 12u) - 1)));
      Storage storage;
      storage.bytes = 64 << Upto(5);
      if (Upto(9) == 0 && !inputs.empty()) {
        storage.home = Storage::Home::kBound;
        for (const int input : inputs) storage.sources.emplace_back(input);
      }
      Value value;
      value.storage = StorageId(i);
      value.shape_known = true;
      plan.storages.push_back(storage);
      plan.values.push_back(value);
      AddInstruction(plan, inputs, {static_cast<int>(i)});
      const uint32_t slot = plan.instructions.back().first_slot;
      for (uint32_t k = 0; k < inputs.size(); ++k) {
        edges.emplace(static_cast<uint32_t>(inputs[k]), i);
        if (Upto(1) == 0) shape.shares.push_back({i, slot + k, slot + static_cast<uint32_t>(inputs.size())});
      }
      if (i > 0 && Upto(3) == 0) edges.emplace(Upto(i - 1), i);
    }
    MakeTasks(plan, edges);
    before.assign(count, std::vector<bool>(count, false));
    for (const auto& [from, to] : edges) before[from][to] = true;
    for (size_t k = 0; k < count; ++k) {
      for (size_t a = 0; a < k; ++a) {
        for (size_t b = k + 1; before[a][k] && b < count; ++b) before[a][b] = before[a][b] || before[k][b];
      }
    }
    for (uint32_t i = 0; i < count; ++i) users.push_back({i});
    for (uint32_t i = static_cast<uint32_t>(count); i-- > 0;) {
      const Instruction& instruction = plan.instructions[i];
      for (uint32_t s = 0; s < instruction.inputs; ++s) {
        users[plan.slots[instruction.first_slot + s].value.position()].insert(i);
      }
    }
    for (size_t s = count; s-- > 0;) {
      for (const StorageId source : plan.storages[StorageId(s)].sources) {
        users[source.position()].insert(users[s].begin(), users[s].end());
      }
    }
  }
  uint32_t Upto(uint32_t most) { return std::uniform_int_distribution<uint32_t>(0, most)(random); }

  /// True if every user of `a` precedes every user of `b`; `in_place`: except for the task that computes b.
  bool Done(size_t a, size_t b, bool in_place) const {
    return std::all_of(users[a].begin(), users[a].end(), [&](uint32_t first) {
      return std::all_of(users[b].begin(), users[b].end(), [&](uint32_t second) {
        return before[first][second] || (in_place && first == second && second == b);
      });
    });
  }
  bool MayWorkInPlace(size_t a, size_t b) const {
    return std::any_of(shape.shares.begin(), shape.shares.end(), [&](const MayShare& share) {
      return plan.slots[share.input_slot].value == ValueId(a) && plan.slots[share.output_slot].value == ValueId(b);
    });
  }

  std::mt19937 random;
  ExecutionPlan plan;
  TapeShape shape;
  std::vector<std::vector<bool>> before;  // by task and task, transitively
  std::vector<std::set<uint32_t>> users;  // by storage
};

TEST(LayOutArena, ValuesLiveInParallelTasksNeverOverlap) {
  uint64_t arena = 0, sum = 0;
  for (uint32_t seed = 1; seed <= 60; ++seed) {
    RandomTasks tasks(seed, 20 + 4 * seed);
    ASSERT_TRUE(LayOutArena(tasks.shape, tasks.plan).ok());
    arena += tasks.plan.arena_bytes[kHostSpace];
    for (size_t b = 0; b < tasks.plan.storages.size(); ++b) {
      const Storage& second = tasks.plan.storages[StorageId(b)];
      if (second.home != Storage::Home::kArena) continue;
      sum += second.bytes;
      ASSERT_LE(second.offset + second.bytes, tasks.plan.arena_bytes[kHostSpace]);
      for (size_t a = 0; a < b; ++a) {
        const Storage& first = tasks.plan.storages[StorageId(a)];
        if (first.home != Storage::Home::kArena || !Overlap(first, second)) continue;
        ASSERT_TRUE(tasks.Done(a, b, tasks.MayWorkInPlace(a, b)))
            << "seed " << seed << ", values " << a << " and " << b;
      }
    }
  }
  EXPECT_LT(arena, sum * 3 / 4) << "memory is used again";
}

TEST(TaskOrder, IsExactWithRoomAndNeverWrongWithout) {
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    const RandomTasks tasks(seed, 150);
    const TaskOrder exact(tasks.plan), rough(tasks.plan, 150 * 4);
    size_t known = 0;
    for (uint32_t b = 0; b < 150; ++b) {
      for (uint32_t a = 0; a < b; ++a) {
        ASSERT_EQ(exact.Before(TaskId(a), TaskId(b)), tasks.before[a][b]) << a << " " << b;
        ASSERT_FALSE(rough.Before(TaskId(a), TaskId(b)) && !tasks.before[a][b]) << a << " " << b;
        known += rough.Before(TaskId(a), TaskId(b)) ? 1u : 0u;
      }
    }
    EXPECT_GT(known, 0u);
  }
}

TEST(FinishTape, DropsOwnedTensorsAfterTheirLastUse) {
  ExecutionPlan plan = WithStorages({0, 0});
  plan.storages[StorageId(0)].home = Storage::Home::kOwned;
  AddInstruction(plan, {}, {0});
  AddInstruction(plan, {0}, {1});
  AddInstruction(plan, {1}, {});
  ASSERT_TRUE(LayOutArena({}, plan).ok());
  FinishTape({}, plan);
  ASSERT_EQ(plan.instructions.size(), 4u);
  EXPECT_EQ(plan.instructions[2].opcode, Opcode::kRelease);
  EXPECT_EQ(plan.instructions[2].detail, 0u);
}

/// Storage 0, then 1 in place of it, which is assigned to variable 2; then `more` instructions and an end. All are 64
/// KiB.
ExecutionPlan Assigning(const std::vector<std::pair<int, int>>& more) {
  ExecutionPlan plan = WithStorages({64 << 10, 64 << 10, 0, 64 << 10});
  plan.storages[StorageId(2)].home = Storage::Home::kVariable;
  AddInstruction(plan, {}, {0});
  AddInstruction(plan, {0}, {1});
  AddInstruction(plan, {2, 1}, {});
  plan.instructions.back().opcode = Opcode::kAssign;
  for (const auto& [from, to] : more) AddInstruction(plan, {from}, {to});
  AddInstruction(plan, {}, {});
  for (Instruction& instruction : plan.instructions) {
    if (instruction.opcode == Opcode::kKernel) instruction.fn = [](auto...) { return 0; };
  }
  EXPECT_TRUE(LayOutArena({{}, {}, {{1, 1, 2}}}, plan).ok());
  return plan;
}

TEST(LayOutArena, DonatedValuesLieOutsideTheArena) {
  ExecutionPlan plan = Assigning({});
  EXPECT_TRUE(plan.instructions[2].takes);
  ASSERT_EQ(plan.made.size(), 1u);
  EXPECT_EQ(plan.made[MadeId(0)].bytes, 64u << 10);
  EXPECT_EQ(plan.made[MadeId(0)].storages, (std::vector{StorageId(0), StorageId(1)}));
  EXPECT_EQ(plan.arena_bytes[kHostSpace], 0u);
  FinishTape({}, plan);
  ASSERT_EQ(plan.instructions.size(), 5u);
  EXPECT_EQ(plan.instructions[0].opcode, Opcode::kMake);
  EXPECT_TRUE(Assigning({{0, 3}}).made.empty()) << "3 lies in the place of 1, so that apart they need more";
  EXPECT_TRUE(Assigning({{1, 3}}).made.empty()) << "1 is needed later";
}

/// Storages that the plan releases, in order, if its tasks have these edges in addition to 0 -> 1 -> 2 and 1 -> 3.
std::vector<uint32_t> Released(std::set<std::pair<uint32_t, uint32_t>> edges) {
  ExecutionPlan plan = WithStorages({0, 0, 64, 64});
  plan.storages[StorageId(0)].home = plan.storages[StorageId(1)].home = Storage::Home::kOwned;
  AddInstruction(plan, {}, {0});
  AddInstruction(plan, {0}, {1});
  AddInstruction(plan, {1}, {2});
  AddInstruction(plan, {1}, {3});
  AddInstruction(plan, {}, {});
  edges.insert({{0, 1}, {1, 2}, {1, 3}});
  MakeTasks(plan, edges);
  EXPECT_TRUE(LayOutArena({}, plan).ok());
  const std::vector<uint32_t> moved = FinishTape({}, plan);
  EXPECT_EQ(plan.instructions[2].opcode, Opcode::kRelease) << "in the task of the last use";
  EXPECT_EQ(moved[2], 3u);
  std::vector<uint32_t> released;
  for (const Instruction& instruction : plan.instructions) {
    if (instruction.opcode == Opcode::kRelease) released.push_back(instruction.detail);
  }
  return released;
}

TEST(FinishTape, TasksReleaseValuesAfterTheirLastUse) {
  EXPECT_EQ(Released({}), (std::vector<uint32_t>{0})) << "either reader of 1 may be the last";
  EXPECT_EQ(Released({{2, 3}}), (std::vector<uint32_t>{0, 1}));
}

}  // namespace
}  // namespace weir::plan
