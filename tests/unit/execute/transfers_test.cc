// Parts of a step that meet others in a rendezvous: keys, dead values, wrong values, iterations.
#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/base/errors.h"
#include "core/runtime/rendezvous.h"
#include "core/tensor/buffer.h"
#include "tests/unit/execute/compiled.h"

namespace weir::execute {
namespace {

using testing::Const;
using testing::kFloat;
using testing::MakeGraph;
using testing::NodeLine;
using testing::Placeholder;

constexpr char kHere[] = "/job:worker/task:0/device:CPU:0", kThere[] = "/job:worker/task:1/device:CPU:0";

NodeLine SendOf(const std::string& name, const std::string& value, DType type = DType::kFloat) {
  return {name,
          "_Send",
          {value},
          {{"T", type},
           {"tensor_name", name},
           {"send_device", kHere},
           {"send_device_incarnation", int64_t{5}},
           {"recv_device", kThere},
           {"client_terminated", false}}};
}
NodeLine RecvOf(const std::string& name, DType type = DType::kFloat, const std::vector<std::string>& after = {}) {
  return {name,
          "_Recv",
          after,
          {{"tensor_type", type},
           {"tensor_name", name},
           {"send_device", kThere},
           {"send_device_incarnation", int64_t{7}},
           {"recv_device", kHere},
           {"client_terminated", false}}};
}
std::string SentKey(const std::string& name) {
  return std::string(kHere) + ";0000000000000005;" + kThere + ";" + name + ";";
}
std::string WantedKey(const std::string& name) {
  return std::string(kThere) + ";0000000000000007;" + kHere + ";" + name + ";";
}

/// Takes what is sent, and gives what was put in for a key, at once.
class Recorded final : public runtime::Rendezvous {
 public:
  Status Send(std::string_view key, runtime::Message message) override {
    const std::lock_guard lock(mutex_);
    sent.emplace_back(key, std::move(message));
    return refusal;
  }
  void RecvAsync(std::string_view key, Received received) override {
    Result<runtime::Message> message = NotFound("nobody sends '{}'", key);
    {
      const std::lock_guard lock(mutex_);
      asked.emplace_back(key);
      for (auto& [name, value] : given) {
        if (key.starts_with(name)) message = value;
      }
    }
    received(std::move(message));
  }
  void Abort(const Status&) override {}

  std::map<std::string, runtime::Message> given;  // by the front of the key
  std::vector<std::pair<std::string, runtime::Message>> sent;
  std::vector<std::string> asked;
  Status refusal;  // of what is sent

 private:
  std::mutex mutex_;  // protects all above
};

/// A step that fetches `fetches` and runs "send" where the graph has it.
class PartTest : public ::testing::Test {
 protected:
  Status Run(const std::vector<NodeLine>& nodes, const std::vector<std::pair<std::string, Tensor>>& feeds,
             const std::vector<std::string>& fetches, bool meets = true) {
    std::vector<std::pair<std::string, Shape>> shapes;
    std::vector<Tensor> values;
    for (const auto& [name, value] : feeds) {
      shapes.emplace_back(name, value.shape());
      values.push_back(value);
    }
    Compiled step(MakeGraph(nodes), shapes, fetches);
    StepArgs args;
    args.rendezvous = meets ? &peers_ : nullptr;
    fetched_.clear();
    return step.runner().Run(values, &fetched_, args);
  }

  Recorded peers_;
  std::vector<Tensor> fetched_;
};

TEST_F(PartTest, AReceivedValueIsUsedLikeAnyOther) {
  peers_.given[WantedKey("r")] = {Tensor::Vector<float>({1, 2}), false};
  const Status ran = Run({RecvOf("r"), {"y", "Neg", {"r"}, kFloat}}, {}, {"y"});
  ASSERT_TRUE(ran.ok()) << ran.ToString();
  EXPECT_TRUE(fetched_[0].SameBits(Tensor::Vector<float>({-1, -2})));
  EXPECT_EQ(peers_.asked, std::vector<std::string>{WantedKey("r") + "0:0"});
}

TEST_F(PartTest, AValueOfAnotherTypeIsRefused) {
  peers_.given[WantedKey("r")] = {Tensor::Vector<int32_t>({1, 2}), false};
  const Status ran = Run({RecvOf("r"), {"y", "Neg", {"r"}, kFloat}}, {}, {"y"});
  EXPECT_EQ(ran.code(), Code::kInvalidArgument);
  EXPECT_NE(ran.message().find("brought a int32 of shape [2], wanted a float"), std::string::npos) << ran.ToString();
  EXPECT_EQ(ran.node(), "r");
}

TEST_F(PartTest, ADeadValueKillsItsReaders) {
  peers_.given[WantedKey("r")] = {Tensor(), true};
  const Status ran = Run({RecvOf("r"), {"y", "Neg", {"r"}, kFloat}}, {}, {"y"});
  EXPECT_EQ(ran.code(), Code::kInvalidArgument);
  EXPECT_NE(ran.message().find("branch that was not taken"), std::string::npos) << ran.ToString();
}

TEST_F(PartTest, AMisalignedValueIsCopied) {
  const Tensor whole = Tensor::Vector<float>({9, 1, 2});
  const Result<Tensor> odd =
      Tensor::Over(DType::kFloat, Shape::Of({2}), whole.buffer(), whole.offset() + sizeof(float));
  ASSERT_TRUE(odd.ok());
  peers_.given[WantedKey("r")] = {*odd, false};
  const Status ran = Run({RecvOf("r"), {"y", "Neg", {"r"}, kFloat}}, {}, {"y"});
  ASSERT_TRUE(ran.ok()) << ran.ToString();
  EXPECT_TRUE(fetched_[0].SameBits(Tensor::Vector<float>({-1, -2})));
  EXPECT_TRUE(whole.SameBits(Tensor::Vector<float>({9, 1, 2})));
}

TEST_F(PartTest, APeerThatFailsEndsTheStep) {
  const Status ran = Run({RecvOf("r"), {"y", "Neg", {"r"}, kFloat}}, {}, {"y"});
  EXPECT_EQ(ran.code(), Code::kNotFound);
  EXPECT_NE(ran.message().find("nobody sends"), std::string::npos) << ran.ToString();
  EXPECT_EQ(ran.node(), "r");
}

TEST_F(PartTest, APartRunAloneSaysWhatItMisses) {
  const Status ran = Run({RecvOf("r"), {"y", "Neg", {"r"}, kFloat}}, {}, {"y"}, false);
  EXPECT_EQ(ran.code(), Code::kFailedPrecondition);
  EXPECT_NE(ran.message().find("run alone"), std::string::npos) << ran.ToString();
  EXPECT_NE(ran.message().find(WantedKey("r")), std::string::npos) << ran.ToString();
}

/// A part that sends Exp(x), or a dead value, and fetches Neg(x) after it.
std::vector<NodeLine> Sending(bool in_branch) {
  std::vector<NodeLine> nodes = {Placeholder("x", PartialShape::Of({2}))};
  if (in_branch) {
    nodes.push_back({"p", "Placeholder", {}, {{"dtype", DType::kBool}, {"shape", PartialShape(Shape())}}});
    nodes.push_back({"s", "Switch", {"x", "p"}, kFloat});
  }
  nodes.push_back({"e", "Exp", {in_branch ? "s:1" : "x"}, kFloat});
  nodes.push_back(SendOf("send", "e"));
  nodes.push_back({"y", "Neg", {"x", "^send"}, kFloat});
  return nodes;
}

TEST_F(PartTest, AValueIsSentUnderItsKey) {
  const Status ran = Run(Sending(false), {{"x", Tensor::Vector<float>({0, 0})}}, {"y"});
  ASSERT_TRUE(ran.ok()) << ran.ToString();
  ASSERT_EQ(peers_.sent.size(), 1u);
  EXPECT_EQ(peers_.sent[0].first, SentKey("send") + "0:0");
  EXPECT_FALSE(peers_.sent[0].second.dead);
  EXPECT_TRUE(peers_.sent[0].second.value.SameBits(Tensor::Vector<float>({1, 1})));
}

TEST_F(PartTest, ADeadValueIsSentAsDead) {
  for (const bool taken : {false, true}) {
    peers_.sent.clear();
    Compiled step(MakeGraph(Sending(true)), {{"x", Shape::Of({2})}, {"p", Shape()}}, {"y"});
    StepArgs args;
    args.rendezvous = &peers_;
    const std::vector<Tensor> feeds = {Tensor::Vector<float>({0, 0}), Tensor::Scalar(taken)};
    (void)step.runner().Run(feeds, &fetched_, args);
    ASSERT_EQ(peers_.sent.size(), 1u) << taken;
    EXPECT_EQ(peers_.sent[0].second.dead, !taken);
    EXPECT_EQ(peers_.sent[0].second.value.valid(), taken);
  }
}

TEST_F(PartTest, APeerThatRefusesAValueEndsTheStep) {
  peers_.refusal = Unavailable("the worker is gone");
  const Status ran = Run(Sending(false), {{"x", Tensor::Vector<float>({0, 0})}}, {"y"});
  EXPECT_EQ(ran.code(), Code::kUnavailable);
  EXPECT_EQ(ran.node(), "send");
}

TEST_F(PartTest, WhatIsSentIsNotOverwrittenByLaterRuns) {
  Compiled step(MakeGraph(Sending(false)), {{"x", Shape::Of({2})}}, {"y"});
  StepArgs args;
  args.rendezvous = &peers_;
  for (const float x : {0.0f, 1.0f}) {
    const std::vector<Tensor> feeds = {Tensor::Vector<float>({x, x})};
    ASSERT_TRUE(step.runner().Run(feeds, &fetched_, args).ok());
  }
  ASSERT_EQ(peers_.sent.size(), 2u);
  EXPECT_TRUE(peers_.sent[0].second.value.SameBits(Tensor::Vector<float>({1, 1})));
  EXPECT_GT(peers_.sent[1].second.value.as<float>()[0], 2.7f);
}

/// A part that sets a variable to x, sends it under two names, subtracts one from it and fetches what is left.
std::vector<NodeLine> SendingAVariable() {
  const op::AttrList of_float = {{"dtype", DType::kFloat}};
  return {Placeholder("x", PartialShape::Of({2})),
          {"v", "VarHandleOp", {}, {{"dtype", DType::kFloat}, {"shape", PartialShape::Of({2})}, {"shared_name", "v"}}},
          {"set", "AssignVariableOp", {"v", "x"}, of_float},
          {"read", "ReadVariableOp", {"v", "^set"}, of_float},
          SendOf("send", "read"),
          SendOf("again", "read"),
          Const("one", Tensor::Vector<float>({1, 1})),
          {"sub", "AssignSubVariableOp", {"v", "one", "^send", "^again"}, of_float},
          {"y", "ReadVariableOp", {"v", "^sub"}, of_float}};
}

TEST_F(PartTest, F249_AVariableIsSentWithoutACopyAndStaysAsItWas) {
  Compiled step(MakeGraph(SendingAVariable()), {{"x", Shape::Of({2})}}, {"y"});
  StepArgs args;
  args.rendezvous = &peers_;
  for (const float x : {5.0f, 7.0f}) {
    const std::vector<Tensor> feeds = {Tensor::Vector<float>({x, x})};
    const Status ran = step.runner().Run(feeds, &fetched_, args);
    ASSERT_TRUE(ran.ok()) << ran.ToString();
    EXPECT_TRUE(fetched_[0].SameBits(Tensor::Vector<float>({x - 1, x - 1})));
  }
  ASSERT_EQ(peers_.sent.size(), 4u);
  for (size_t i = 0; i < 4; ++i) {  // also after the updates of both runs
    const float x = i < 2 ? 5.0f : 7.0f;
    EXPECT_TRUE(peers_.sent[i].second.value.SameBits(Tensor::Vector<float>({x, x}))) << i;
  }
  EXPECT_EQ(peers_.sent[0].second.value.raw(), peers_.sent[1].second.value.raw());
}

TEST_F(PartTest, F249_AVariableThatNobodyHoldsIsUpdatedInPlace) {
  class Dropping final : public runtime::Rendezvous {
   public:
    Status Send(std::string_view, runtime::Message message) override {
      memory.push_back(message.value.raw());
      return Status();
    }
    void RecvAsync(std::string_view, Received received) override { received(NotFound("none")); }
    void Abort(const Status&) override {}
    std::vector<const void*> memory;
  } peers;
  Compiled step(MakeGraph(SendingAVariable()), {{"x", Shape::Of({2})}}, {"y"});
  StepArgs args;
  args.rendezvous = &peers;
  for (int run = 0; run < 3; ++run) {
    fetched_.clear();
    ASSERT_TRUE(step.runner().Run(std::vector<Tensor>{Tensor::Vector<float>({5, 5})}, &fetched_, args).ok());
    EXPECT_TRUE(fetched_[0].SameBits(Tensor::Vector<float>({4, 4})));
  }
  ASSERT_EQ(peers.memory.size(), 6u);
  for (const void* const memory : peers.memory) EXPECT_EQ(memory, peers.memory[0]);
}

TEST_F(PartTest, IterationsOfALoopHaveKeysOfTheirOwn) {
  const op::AttrList in_loop = {{"T", DType::kFloat}, {"frame_name", "w"}, {"is_constant", false}};
  const std::vector<NodeLine> nodes = {
      Const("zero", Tensor::Scalar(0.0f)),
      Const("one", Tensor::Scalar(1.0f)),
      Const("three", Tensor::Scalar(3.0f)),
      {"e", "Enter", {"zero"}, in_loop},
      {"limit", "Enter", {"three"}, {{"T", DType::kFloat}, {"frame_name", "w"}, {"is_constant", true}}},
      {"step", "Enter", {"one"}, {{"T", DType::kFloat}, {"frame_name", "w"}, {"is_constant", true}}},
      {"m", "Merge", {"e", "e"}, {{"T", DType::kFloat}, {"N", 2}}},
      {"less", "Less", {"m", "limit"}, kFloat},
      {"go", "LoopCond", {"less"}},
      {"s", "Switch", {"m", "go"}, kFloat},
      {"x", "Exit", {"s"}, kFloat},
      {"i", "Identity", {"s:1"}, kFloat},
      SendOf("send", "i"),
      {"up", "AddV2", {"i", "step", "^send"}, kFloat},
      {"next", "NextIteration", {"up"}, kFloat}};
  Result<graph::Definition> graph = MakeGraph(nodes);
  ASSERT_TRUE(graph.ok()) << graph.status().ToString();
  const graph::Node* const merge = graph->Find("m");
  ASSERT_TRUE(graph->SetInput(merge->id(), 1, testing::At(*graph, "next")).ok());
  Compiled step(std::move(graph), {}, {"x"});
  StepArgs args;
  args.rendezvous = &peers_;
  const Status ran = step.runner().Run({}, &fetched_, args);
  ASSERT_TRUE(ran.ok()) << ran.ToString();
  ASSERT_EQ(peers_.sent.size(), 4u);
  EXPECT_TRUE(peers_.sent[3].second.dead) << "the loop ends there";
  for (size_t i = 0; i < 4; ++i) {
    if (i < 3) {
      EXPECT_EQ(peers_.sent[i].second.value.as<float>()[0], static_cast<float>(i));
    }
    for (size_t k = 0; k < i; ++k) EXPECT_NE(peers_.sent[i].first, peers_.sent[k].first);
  }
}

}  // namespace
}  // namespace weir::execute
