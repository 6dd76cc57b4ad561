// What is claimed of candidates.
#include "plugins/compiler_nvrtc/claim.h"

#include <gtest/gtest.h>

#include "sdk/abi/types.h"
#include "tests/plugin/compiler_llvm/regions.h"

namespace weir::compiler_nvrtc {
namespace {

using test::RegionSpec;
using Nodes = std::vector<uint32_t>;

std::vector<Nodes> ClaimsOf(RegionSpec& region) {
  std::vector<Nodes> sets;
  for (const Claim& claim : ClaimNodes(*region.Get(), nullptr)) {
    EXPECT_GT(claim.predicted_ns, 0);
    sets.push_back(claim.nodes);
  }
  return sets;
}

TEST(NvrtcClaims, AChainIsOneSet) {
  RegionSpec region;
  uint32_t value = region.Input(WEIR_FLOAT32, {64});
  for (const char* op : {"Exp", "Neg", "Tanh"}) value = region.Node(op, {value}, WEIR_FLOAT32, {64});
  region.Output(value);
  EXPECT_EQ(ClaimsOf(region), (std::vector<Nodes>{{0, 1, 2}}));
}

TEST(NvrtcClaims, OneNodeIsNotWorthAKernelOfItsOwn) {
  RegionSpec region;
  region.Output(region.Node("Exp", {region.Input(WEIR_FLOAT32, {64})}, WEIR_FLOAT32, {64}));
  EXPECT_TRUE(ClaimsOf(region).empty());
}

TEST(NvrtcClaims, AReductionDividesAndSetsStayConvex) {
  RegionSpec region;
  const uint32_t x = region.Input(WEIR_FLOAT32, {8, 16});
  const uint32_t e = region.Node("Exp", {x}, WEIR_FLOAT32, {8, 16});          // 0
  const uint32_t n = region.Node("Neg", {e}, WEIR_FLOAT32, {8, 16});          // 1
  const uint32_t sum = region.Node("Sum", {n}, WEIR_FLOAT32, {8, 1}, {1});    // 2
  const uint32_t part = region.Node("Mul", {e, sum}, WEIR_FLOAT32, {8, 16});  // 3
  region.Output(region.Node("Tanh", {part}, WEIR_FLOAT32, {8, 16}));          // 4
  // Exp is needed by both sides of the sum: it cannot join the nodes behind it.
  EXPECT_EQ(ClaimsOf(region), (std::vector<Nodes>{{3, 4}, {0, 1}}));
}

TEST(NvrtcClaims, ShapesDivide) {
  RegionSpec region;
  const uint32_t row = region.Input(WEIR_FLOAT32, {16}), x = region.Input(WEIR_FLOAT32, {8, 16});
  const uint32_t a = region.Node("Exp", {row}, WEIR_FLOAT32, {16});
  const uint32_t b = region.Node("Neg", {a}, WEIR_FLOAT32, {16});
  const uint32_t c = region.Node("Mul", {x, b}, WEIR_FLOAT32, {8, 16});
  region.Output(region.Node("Tanh", {c}, WEIR_FLOAT32, {8, 16}));
  EXPECT_EQ(ClaimsOf(region), (std::vector<Nodes>{{2, 3}, {0, 1}}));
}

}  // namespace
}  // namespace weir::compiler_nvrtc
