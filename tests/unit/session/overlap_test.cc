// Overlapping iterations of one loop.
#include <gtest/gtest.h>

#include <algorithm>

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/session/flow.h"

namespace weir::session {
namespace {

using testing::Const;
using testing::kFloat;
using testing::NodeLine;

void Allow(std::vector<NodeLine>& nodes, int64_t parallel_iterations) {
  for (NodeLine& node : nodes) {
    if (node.op == "Enter") node.attrs.emplace_back("parallel_iterations", parallel_iterations);
  }
}

/// A loop of n = 4 rounds whose body returns only the last value, of an op that waits for another call.
std::vector<NodeLine> MeetingRounds(int64_t parallel_iterations) {
  std::vector<NodeLine> nodes = Around({"a", "b"}, {"i"});
  nodes[1] = Const("n", Tensor::Scalar<int32_t>(4));
  Append(nodes, Loop("w", "n", "one", "i", {"a", "b"},
                     {{"p", "Square", {"a_b"}, kFloat},  // an even number of calls, which wait for each other in pairs
                      {"a_n", "Identity", {"a_b"}, kFloat},
                      {"b_n", "AddV2", {"p", "p"}, kFloat}}));
  for (NodeLine& node : nodes) {
    if (node.op == "Enter") node.attrs.emplace_back("parallel_iterations", parallel_iterations);
  }
  return nodes;
}

TEST(Overlap, F392_IterationsRunBesideEachOther) {
  Flow f(MeetingRounds(10));
  for (int run = 0; run < 10; ++run) {
    f.OpenForRun(run);
    const auto got = f.Run({"a_x:0", "b_x:0", "i_x:0"});
    ASSERT_TRUE(got.ok()) << got.status().ToString();
    EXPECT_TRUE((*got)[0].SameBits(Tensor::Vector<float>({1, 2})));
    EXPECT_TRUE((*got)[1].SameBits(Tensor::Vector<float>({2, 4})));
    EXPECT_TRUE((*got)[2].SameBits(Tensor::Scalar<int32_t>(4)));
  }
}

/// Bodies of random sums over three variables, the results of an inner loop, and one branch of a cond.
class RandomLoop {
 public:
  explicit RandomLoop(uint32_t seed) : random_(seed) {}

  std::vector<NodeLine> Make(int32_t rounds) {
    std::vector<NodeLine> nodes = Around({"a", "b", "c"}, {"i", "zero"});
    nodes[1] = Const("n", Tensor::Scalar<int32_t>(rounds));
    values_ = {"a_b", "b_b", "c_b"};
    std::vector<NodeLine> body = {{"x_in", "Enter", {"x"}, In("w", DType::kFloat, true)},
                                  {"zero_in", "Enter", {"zero_0"}, In("w", DType::kInt32, true)},
                                  {"fixed", "AddV2", {"x_in", "x_in", "^i_b"}, kFloat}};
    values_.emplace_back("fixed");
    Sums(body, "s", 3);
    if (random_() % 2 == 0) Cond(body);
    if (random_() % 2 == 0) Inner(body);
    Sums(body, "t", 2);
    for (const char* v : {"a", "b", "c"}) {
      const bool keeps = random_() % 3 == 0;
      const std::string from = keeps ? std::string(v) + "_b" : Any();
      body.push_back({std::string(v) + "_n", random_() % 4 == 0 ? "Abs" : "Identity", {from}, kFloat});
    }
    Append(nodes, Loop("w", "n", "one", "i", {"a", "b", "c"}, body));
    return nodes;
  }

 private:
  std::string Any() { return values_[random_() % values_.size()]; }
  void Sums(std::vector<NodeLine>& body, const std::string& prefix, int count) {
    for (int k = 0; k < count; ++k) {
      const std::string name = prefix + std::to_string(k);
      body.push_back({name, random_() % 5 == 0 ? "Sqrt" : "AddV2", {Any()}, kFloat});
      if (body.back().op == "AddV2") body.back().inputs.push_back(Any());
      values_.push_back(name);
    }
  }
  /// One more sum, in the first round only.
  void Cond(std::vector<NodeLine>& body) {
    body.push_back({"first", "Less", {"i_b", "w_one"}, {{"T", DType::kInt32}}});
    body.push_back({"sw", "Switch", {Any(), "first"}, kFloat});
    body.push_back({"more", "AddV2", {"sw:1", "sw:1"}, kFloat});
    body.push_back({"either", "Merge", {"sw", "more"}, {{"T", DType::kFloat}, {"N", int64_t{2}}}});
    values_.emplace_back("either");
  }
  void Inner(std::vector<NodeLine>& body) {
    body.push_back({"j_0", "Identity", {"zero_in"}, {{"T", DType::kInt32}}});
    body.push_back({"u_0", "Identity", {Any()}, kFloat});
    body.push_back({"v_0", "Identity", {Any()}, kFloat});
    const bool chained = random_() % 2 == 0;
    Append(body, Loop("inner", "w_n", "w_one", "j", {"u", "v"},
                      {{"u_n", "AddV2", {"u_b", chained ? "v_b" : "u_b"}, kFloat},
                       {"v_n", "Identity", {chained ? "u_b" : "v_b"}, kFloat}}));
    values_.emplace_back("u_x");
    values_.emplace_back("v_x");
  }

  std::mt19937 random_;
  std::vector<std::string> values_;
};

TEST(Overlap, F392_GivesTheBitsOfOneIterationAfterTheOther) {
  const std::vector<std::string> fetches = {"a_x:0", "b_x:0", "c_x:0", "i_x:0"};
  for (uint32_t seed = 1; seed <= (WEIR_SANITIZER_KIND == 0 ? 25 : 6); ++seed) {
    for (const int32_t rounds : {0, 1, 3, 6}) {
      std::vector<Tensor> wanted;
      for (const auto& [parallel, inter_op] : {std::pair(1, 1), std::pair(10, 4), std::pair(2, 4), std::pair(3, 2)}) {
        std::vector<NodeLine> nodes = RandomLoop(seed).Make(rounds);
        Allow(nodes, parallel);
        Flow f(nodes, {}, inter_op);
        const auto got = f.Run(fetches);
        ASSERT_TRUE(got.ok()) << seed << ": " << got.status().ToString();
        if (wanted.empty()) wanted = *got;
        for (size_t k = 0; k < fetches.size(); ++k) {
          EXPECT_TRUE((*got)[k].SameBits(wanted[k])) << fetches[k] << " of seed " << seed << ", " << rounds
                                                     << " rounds, " << parallel << " at once on " << inter_op;
        }
      }
    }
  }
}

}  // namespace
}  // namespace weir::session
