// Which transfers of plans that run together meet without keys.
#include "core/execute/links.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/plan/plan.h"

namespace weir::execute {
namespace {

plan::Instruction& AddInstruction(plan::ExecutionPlan& plan, plan::Opcode opcode, plan::ValueId operand) {
  plan::Instruction& instruction = plan.instructions.emplace_back();
  instruction.opcode = opcode;
  instruction.first_slot = static_cast<uint32_t>(plan.slots.size());
  if (opcode == plan::Opcode::kRecv) {
    instruction.outputs = 1;
  } else {
    instruction.inputs = 1;
  }
  plan.slots.push_back({operand});
  return instruction;
}

/// A transfer of a value of four floats, which has a storage of its own. Gives the value.
plan::ValueId AddTransfer(plan::ExecutionPlan& plan, plan::Opcode opcode, const std::string& key,
                          const std::vector<std::string>& frames = {}) {
  plan::Storage storage;
  storage.home = opcode == plan::Opcode::kSend ? plan::Storage::Home::kFresh : plan::Storage::Home::kOwned;
  plan::Value value;
  value.storage = plan.storages.Add(storage);
  value.dtype = DType::kFloat;
  value.shape_known = true;
  value.shape = Shape::Of({4});
  const plan::ValueId id = plan.values.Add(value);
  AddInstruction(plan, opcode, id).detail = static_cast<uint32_t>(plan.transfers.size());
  plan.transfers.push_back({key, frames, plan::kAlways});
  return id;
}

TEST(Links, JoinASendAndARecvOfOneKey) {
  plan::ExecutionPlan a, b;
  AddTransfer(a, plan::Opcode::kSend, "one");
  AddTransfer(a, plan::Opcode::kRecv, "two");
  AddTransfer(b, plan::Opcode::kSend, "two");
  AddTransfer(b, plan::Opcode::kRecv, "one");
  const std::vector<const plan::ExecutionPlan*> plans = {&a, &b};
  const Links links(plans);
  ASSERT_EQ(links.all().size(), 2u);
  EXPECT_EQ(links.Of(0)[0], links.Of(1)[1]);
  EXPECT_EQ(links.Of(0)[1], links.Of(1)[0]);
  EXPECT_NE(links.Of(0)[0], links.Of(0)[1]);
  const Links::Link& one = links.all()[links.Of(0)[0]];
  EXPECT_EQ(one.send_part, 0u);
  EXPECT_EQ(one.send_transfer, 0u);
  EXPECT_EQ(one.recv_part, 1u);
  EXPECT_EQ(one.recv_transfer, 1u);
}

TEST(Links, LendWhatTheRunKeepsAndOnlyKernelsRead) {
  const auto lends = [](auto change) {
    plan::ExecutionPlan from, to;
    const plan::ValueId sent = AddTransfer(from, plan::Opcode::kSend, "key");
    const plan::ValueId received = AddTransfer(to, plan::Opcode::kRecv, "key");
    AddInstruction(to, plan::Opcode::kKernel, received);
    change(from, sent, to, received);
    const std::vector<const plan::ExecutionPlan*> plans = {&from, &to};
    const Links links(plans);
    EXPECT_EQ(links.all().size(), 1u);
    return links.all()[0].lends;
  };
  using Plan = plan::ExecutionPlan;
  using Id = plan::ValueId;
  EXPECT_TRUE(lends([](Plan&, Id, Plan&, Id) {}));
  EXPECT_FALSE(lends([](Plan&, Id, Plan& to, Id received) { AddInstruction(to, plan::Opcode::kFetch, received); }));
  EXPECT_FALSE(lends([](Plan&, Id, Plan& to, Id received) { AddInstruction(to, plan::Opcode::kCall, received); }));
  EXPECT_FALSE(lends([](Plan&, Id, Plan& to, Id received) { AddInstruction(to, plan::Opcode::kMerge, received); }));
  EXPECT_FALSE(lends([](Plan&, Id, Plan& to, Id received) { to.values[received].shape = Shape::Of({2, 2}); }));
  EXPECT_FALSE(lends([](Plan&, Id, Plan& to, Id received) { to.values[received].dtype = DType::kInt32; }));
  EXPECT_FALSE(lends([](Plan& from, Id sent, Plan&, Id) {
    from.storages[from.values[sent].storage].home = plan::Storage::Home::kArena;
  })) << "the arena is used again in the same run";
  EXPECT_FALSE(lends([](Plan& from, Id, Plan& to, Id) { from.transfers[0].frames = to.transfers[0].frames = {"w"}; }));
}

TEST(Links, LeaveAnEndWhosePeerIsElsewhere) {
  plan::ExecutionPlan a, b;
  AddTransfer(a, plan::Opcode::kSend, "to another process");
  AddTransfer(b, plan::Opcode::kRecv, "from another process");
  const std::vector<const plan::ExecutionPlan*> plans = {&a, &b};
  const Links links(plans);
  EXPECT_TRUE(links.all().empty());
  EXPECT_EQ(links.Of(0)[0], Links::kNone);
  EXPECT_EQ(links.Of(1)[0], Links::kNone);
}

TEST(Links, LeaveAKeyThatSeveralSendOrThatCrossesLoops) {
  plan::ExecutionPlan a, b;
  AddTransfer(a, plan::Opcode::kSend, "twice");
  AddTransfer(a, plan::Opcode::kSend, "twice");
  AddTransfer(b, plan::Opcode::kRecv, "twice");
  AddTransfer(a, plan::Opcode::kSend, "out of a loop", {"w"});
  AddTransfer(b, plan::Opcode::kRecv, "out of a loop");
  const std::vector<const plan::ExecutionPlan*> plans = {&a, &b};
  EXPECT_TRUE(Links(plans).all().empty());
}

TEST(Links, OccurrencesDifferByEveryIteration) {
  const auto of = [](const std::vector<int64_t>& numbers) { return OccurrenceOf(numbers); };
  EXPECT_EQ(of({}), Occurrence());
  EXPECT_EQ(of({3}), (Occurrence{0, 3}));
  std::vector<Occurrence> all;
  for (int64_t i = 0; i < 20; ++i) {
    for (int64_t j = 0; j < 20; ++j) {
      for (int64_t k = 0; k < 3; ++k) all.push_back(of({i, j, k}));
    }
  }
  for (size_t a = 0; a < all.size(); ++a) {
    for (size_t b = 0; b < a; ++b) ASSERT_FALSE(all[a] == all[b]) << a << " " << b;
  }
  EXPECT_EQ(of({1, 2, 0}), of({1, 2, 0}));
}

}  // namespace
}  // namespace weir::execute
