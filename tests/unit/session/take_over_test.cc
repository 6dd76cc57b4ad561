// Variables that take over the memory of assigned values, and values that must be copied.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/session/memory_report.h"
#include "tests/support/text_graph.h"
#include "tests/unit/session/open.h"

namespace weir::session {
namespace {

using testing::Const;
using testing::kFloat;
using testing::MakeGraph;
using testing::NodeLine;
using testing::Placeholder;

constexpr int64_t kElements = 5 << 18;  // 5 MiB
constexpr uint64_t kBytes = kElements * sizeof(float);

Tensor Filled(float value, int64_t elements = kElements) {
  return Tensor::Vector<float>(std::vector<float>(static_cast<size_t>(elements), value));
}

NodeLine Variable(const std::string& name, const std::string& op = "VariableV2", int64_t elements = kElements) {
  return {name, op, {}, {{"dtype", DType::kFloat}, {"shape", PartialShape::Of({elements})}}};
}

/// A session whose CPU may use 8 MiB, over a feed `x` and `made` = 2x + 1, which works in place.
class TakeOver : public ::testing::Test {
 protected:
  void Open(std::vector<NodeLine> more, int parallelism = 1, int64_t elements = kElements, int limit_mb = 8) {
    std::vector<NodeLine> nodes = {Placeholder("x", PartialShape::Of({elements})),
                                   Const("one", Tensor::Scalar<float>(1)),
                                   {"twice", "AddV2", {"x", "x"}, kFloat},
                                   {"made", "AddV2", {"twice", "one"}, kFloat}};
    nodes.insert(nodes.end(), more.begin(), more.end());
    graph_ = std::make_unique<Result<graph::Definition>>(MakeGraph(nodes));
    ASSERT_TRUE(graph_->ok()) << graph_->status().ToString();
    config::Config config;
    config.device["CPU:0"].memory_limit_mb = limit_mb;
    config.inter_op_parallelism_threads = parallelism;
    config.graph_options.rewrite_options.remapping = "OFF";  // each op has memory of its own
    session_ = session::Open(**graph_, config);
    ASSERT_NE(session_, nullptr);
  }

  std::vector<Tensor> Run(float x, const std::vector<std::string>& fetches,
                          const std::vector<std::string>& targets = {}, int64_t elements = kElements) {
    const Tensor fed = Filled(x, elements);
    Result<std::vector<Tensor>> out =
        session_->Run(std::vector<Feed>{{"x:0", fed}}, fetches, targets, RunOptions(), nullptr);
    EXPECT_TRUE(out.ok()) << out.status().ToString();
    EXPECT_EQ(Only(fed), x) << "what is fed is never written";
    return out.ok() ? *out : std::vector<Tensor>(fetches.size());
  }

  /// The value of all elements; NaN if they differ.
  static float Only(const Tensor& tensor) {
    const auto values = tensor.as<float>();
    if (values.empty() || !std::all_of(values.begin(), values.end(), [&](float v) { return v == values[0]; })) {
      return std::numeric_limits<float>::quiet_NaN();
    }
    return values[0];
  }

  device::MemoryUse Cpu() const { return session_->ReportMemory().devices.at(0).all; }

  std::unique_ptr<Result<graph::Definition>> graph_;
  std::unique_ptr<Session> session_;
};

TEST_F(TakeOver, InitialValuesAreHeldOnce) {
  for (const int parallelism : {1, 4}) {
    for (const bool resource : {false, true}) {
      SCOPED_TRACE(std::to_string(parallelism) + (resource ? " resource" : " reference"));
      const std::string op = resource ? "AssignVariableOp" : "Assign";
      Open({Variable("v", resource ? "VarHandleOp" : "VariableV2"),
            {"set", op, {"v", "made"}, {{resource ? "dtype" : "T", DType::kFloat}}}},
           parallelism);
      const uint64_t before = Cpu().in_use;
      Run(3, {}, {"set"});
      EXPECT_EQ(Cpu().in_use - before, kBytes) << "and the plan keeps nothing";
      EXPECT_LT(Cpu().peak - before, kBytes + (64 << 10));
      EXPECT_EQ(session_->ReportMemory().devices.at(0).variables, kBytes);
      ASSERT_TRUE(session_->Close().ok());
      EXPECT_EQ(Cpu().in_use, before);
    }
  }
}

TEST_F(TakeOver, SeveralVariablesAndLaterValues) {
  constexpr int64_t kSmall = 1 << 18;
  Open({Variable("v", "VariableV2", kSmall),
        Variable("w", "VariableV2", kSmall),
        {"square", "Square", {"x"}, kFloat},
        {"set_v", "Assign", {"v", "made"}, kFloat},
        {"set_w", "Assign", {"w", "square"}, kFloat},
        {"more", "AssignAdd", {"v", "x"}, kFloat}},
       1, kSmall, 7);
  const uint64_t before = Cpu().in_use;
  Run(3, {}, {"set_v", "set_w"}, kSmall);
  EXPECT_LT(Cpu().peak - before, 2 * kSmall * sizeof(float) + (64 << 10));
  Run(1, {}, {"more"}, kSmall);
  const std::vector<Tensor> first = Run(0, {"v:0", "w:0"}, {}, kSmall);
  EXPECT_EQ(Only(first[0]), 8);
  EXPECT_EQ(Only(first[1]), 9);
  for (const float x : {4.0f, 5.0f}) {
    Run(x, {}, {"set_v", "set_w"}, kSmall);
    const std::vector<Tensor> again = Run(0, {"v:0", "w:0"}, {}, kSmall);
    EXPECT_EQ(Only(again[0]), 2 * x + 1);
    EXPECT_EQ(Only(again[1]), x * x);
  }
  EXPECT_EQ(Only(first[0]), 8) << "what was fetched stays";
  EXPECT_EQ(Cpu().in_use - before, 2 * kSmall * sizeof(float));
}

TEST_F(TakeOver, ValuesWithOtherReadersAreCopied) {
  Open({Variable("v"),
        Variable("w"),
        Const("c", Filled(6)),
        {"set_v", "Assign", {"v", "made"}, kFloat},
        {"set_w", "Assign", {"w", "made"}, kFloat},
        {"later", "Neg", {"made", "^set_v"}, kFloat},
        {"feed_v", "Assign", {"v", "x"}, kFloat},
        {"const_v", "Assign", {"v", "c"}, kFloat},
        {"more", "AssignAdd", {"v", "x"}, kFloat}},
       1, kElements, 64);
  std::vector<Tensor> out = Run(3, {"made:0"}, {"set_v"});
  Run(1, {}, {"more"});
  EXPECT_EQ(Only(out[0]), 7) << "what is fetched with it";
  Run(3, {}, {"set_v", "set_w"});
  Run(1, {}, {"more"});
  out = Run(0, {"v:0", "w:0"});
  EXPECT_EQ(Only(out[0]), 8);
  EXPECT_EQ(Only(out[1]), 7) << "two variables never share";
  EXPECT_EQ(Only(Run(3, {"later:0"})[0]), -7);
  EXPECT_EQ(Only(Run(0, {"v:0"})[0]), 7);
  Run(3, {}, {"feed_v"});
  Run(1, {}, {"more"});
  EXPECT_EQ(Only(Run(0, {"v:0"})[0]), 4);
  for (int i = 0; i < 2; ++i) {
    Run(0, {}, {"const_v"});
    Run(1, {}, {"more"});
    EXPECT_EQ(Only(Run(0, {"v:0"})[0]), 7) << "constants stay";
  }
}

TEST_F(TakeOver, OnABranchAndNotOnIt) {
  Open({Variable("v"),
        Placeholder("p", PartialShape::Of({}), DType::kBool),
        {"switch", "Switch", {"made", "p"}, kFloat},
        {"inside", "Neg", {"switch:1"}, kFloat},
        {"set", "Assign", {"v", "inside"}, kFloat},
        {"other", "Identity", {"switch:0"}, kFloat},
        {"merge", "Merge", {"other", "set"}, {{"T", DType::kFloat}, {"N", int64_t{2}}}}},
       1, kElements, 64);
  const auto run = [&](bool taken) {
    const std::vector<Feed> feeds = {{"x:0", Filled(3)}, {"p:0", Tensor::Scalar<bool>(taken)}};
    const auto out = session_->Run(feeds, std::vector<std::string>{"merge:0"}, {}, RunOptions(), nullptr);
    EXPECT_TRUE(out.ok()) << out.status().ToString();
    return out.ok() ? Only((*out)[0]) : 0;
  };
  const uint64_t before = Cpu().in_use;
  EXPECT_EQ(run(false), 7);
  EXPECT_EQ(run(true), -7);
  EXPECT_EQ(run(false), 7);
  EXPECT_EQ(Only(Run(0, {"v:0"})[0]), -7);
  EXPECT_GE(Cpu().in_use - before, kBytes);
}

TEST_F(TakeOver, ConcurrentRunsSeeCompleteValues) {
  constexpr int64_t kSmall = 1 << 16;
  Open({Variable("v", "VarHandleOp", kSmall),
        {"set", "AssignVariableOp", {"v", "made"}, {{"dtype", DType::kFloat}}},
        {"read", "ReadVariableOp", {"v"}, {{"dtype", DType::kFloat}}},
        {"y", "Neg", {"read"}, kFloat},
        {"more", "AssignAddVariableOp", {"v", "x"}, {{"dtype", DType::kFloat}}}},
       1, kSmall);
  Run(0, {}, {"set"}, kSmall);
  std::atomic<int> torn = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 100; ++i) {
        if (t < 2) Run(static_cast<float>(t * 100 + i), {}, {t == 0 ? "set" : "more"}, kSmall);
        if (t >= 2 && std::isnan(Only(Run(0, {"y:0"}, {}, kSmall)[0]))) ++torn;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(torn, 0);
}

TEST_F(TakeOver, LacksMemoryByName) {
  Open({Variable("v"), {"set", "Assign", {"v", "made"}, kFloat}}, 1, kElements, 4);
  const std::vector<Feed> feeds = {{"x:0", Filled(1)}};
  const Status full = session_->Run(feeds, std::vector<std::string>(), std::vector<std::string>{"set"}).status();
  EXPECT_EQ(full.code(), Code::kResourceExhausted);
  for (const char* part : {"OOM when allocating", "{{node twice}}", "The step held 0 bytes"}) {
    EXPECT_NE(full.message().find(part), std::string::npos) << part << "\n" << full.message();
  }
}

}  // namespace
}  // namespace weir::session
