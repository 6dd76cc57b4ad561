// Runs of small graphs with and without fusion.
#ifndef WEIR_TESTS_UNIT_FUSE_FUSION_RUNS_H_
#define WEIR_TESTS_UNIT_FUSE_FUSION_RUNS_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/session/runtime.h"
#include "core/session/session.h"
#include "tests/support/text_graph.h"

namespace weir::fuse {

using Names = std::vector<std::string>;
using Feeds = std::vector<session::Feed>;

inline Tensor Random(const Shape& shape, uint32_t seed, float low = -2, float high = 2) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> number(low, high);
  std::vector<float> values(static_cast<size_t>(shape.elements()));
  for (float& value : values) value = number(generator);
  return Tensor::Of<float>(shape, values);
}

inline testing::NodeLine Op(const char* name, const char* op, Names inputs) {
  return {name, op, std::move(inputs), testing::kFloat};
}

struct Ran {
  std::vector<float> values;
  std::string ops;  // of the step after fusion, behind each other
};

/// The value of "y" and the ops that the step has, with or without fusion; without constant folding unless `folding`.
inline Ran RunOf(const std::vector<testing::NodeLine>& nodes, const Feeds& feeds, bool fusion, bool folding = false) {
  const Result<graph::Definition> graph = testing::MakeGraph(nodes);
  EXPECT_TRUE(graph.ok()) << graph.status().ToString();
  session::SessionOptions options;
  options.fusion = fusion;
  options.constant_folding = folding;
  const auto session = session::Session::Make(*session::Runtime::Default(), *graph, options);
  EXPECT_TRUE(session.ok()) << session.status().ToString();
  const auto ran = (*session)->Run(feeds, Names{"y:0"}, {});
  EXPECT_TRUE(ran.ok()) << ran.status().ToString();
  if (!ran.ok()) return {};
  const auto numbers = ran->front().as<float>();
  const auto text = (*session)->ExplainStage(session::Stage::kGraph, feeds, Names{"y:0"}, {});
  EXPECT_TRUE(text.ok()) << text.status().ToString();
  return {{numbers.begin(), numbers.end()}, text.ok() ? *text : std::string()};
}

inline void ExpectNear(const std::vector<float>& a, const std::vector<float>& b, float tolerance) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    ASSERT_NEAR(a[i], b[i], tolerance * std::max(1.0f, std::fabs(b[i]))) << "element " << i;
  }
}

inline bool Has(const Ran& ran, const std::string& op) { return ran.ops.find(" = " + op + "(") != std::string::npos; }

}  // namespace weir::fuse

#endif  // WEIR_TESTS_UNIT_FUSE_FUSION_RUNS_H_
