// Loops: iterations, refusals, claims and bytes. What they compute is compared with the ops by the client's
// tests of compiled loops.
#include <gtest/gtest.h>

#include <functional>

#include "sdk/cpp/types.h"
#include "tests/plugin/compiler_llvm/regions.h"

namespace weir::test {
namespace {

constexpr uint32_t kInt = WEIR_INT32, kReal = WEIR_FLOAT32;

/// do { i = i + 1; x = x * 0.5 + y } while (i < limit)
RegionSpec Counting(uint64_t most) {
  RegionSpec region;
  const uint32_t i = region.Input(kInt, {}), x = region.Input(kReal, {1}), limit = region.Input(kInt, {});
  const uint32_t y = region.Input(kReal, {}), one = region.Constant(kInt, 1), half = region.Constant(kReal, 0.5);
  const uint32_t less = region.Node("Less", {i, limit}, WEIR_BOOL, {});
  const uint32_t next = region.Node("AddV2", {i, one}, kInt, {});
  const uint32_t halved = region.Node("Mul", {x, half}, kReal, {1});
  region.Loop({next, region.Node("AddV2", {halved, y}, kReal, {1})}, less, most);
  return region;
}

std::vector<Array> InputsOf(const RegionSpec& region, int64_t first, int64_t limit) {
  std::vector<Array> inputs;
  for (size_t i = 0; i < region.inputs(); ++i) {
    const RegionSpec::Value& input = region.input(i);
    inputs.push_back(input.constant.blocks.empty() ? Array::Of(input.dtype, input.dims) : input.constant);
  }
  inputs[0].Set(0, {0, first});
  inputs[1].Set(0, {3, 0});
  inputs[2].Set(0, {0, limit});
  inputs[3].Set(0, {1.25, 0});
  return inputs;
}

/// The variables after a call.
std::pair<int64_t, double> Called(const Executable& executable, const RegionSpec& region, int64_t first,
                                  int64_t limit) {
  std::vector<Array> inputs = InputsOf(region, first, limit);
  const std::vector<Array> outputs = RunExecutable(executable, region, inputs);
  return {outputs[0].At(0).integer, outputs[1].At(0).real};
}

double Halved(int times) {
  float x = 3;
  for (int i = 0; i < times; ++i) x = x * 0.5f + 1.25f;
  return static_cast<double>(x);
}

TEST(CompilerLlvmLoops, F021_a_call_ends_by_the_condition_or_by_number) {
  for (const char* level : Levels()) {
    RegionSpec region = Counting(10);
    const Executable executable = CompileRegion(region, level, 4);
    ASSERT_TRUE(executable) << executable.error;
    EXPECT_EQ(Called(executable, region, 0, 100), std::pair(int64_t{10}, Halved(10)));
    EXPECT_EQ(Called(executable, region, 93, 100), std::pair(int64_t{100}, Halved(7)));
    EXPECT_EQ(Called(executable, region, 0, 1), std::pair(int64_t{1}, Halved(1)));
    EXPECT_EQ(Called(executable, region, 0, 10), std::pair(int64_t{10}, Halved(10)));
    EXPECT_EQ(Called(executable, region, 5, 0), std::pair(int64_t{6}, Halved(1))) << "one at least";
    const Executable kept = DeserializeOf(SerializeOf(executable), level);
    ASSERT_TRUE(kept) << kept.error;
    EXPECT_EQ(Called(kept, region, 93, 100), std::pair(int64_t{100}, Halved(7)));
  }
}

TEST(CompilerLlvmLoops, F021_one_claim_has_all_nodes) {
  if (Levels().empty()) GTEST_SKIP() << "the processor is below x86-64-v3";
  RegionSpec region = Counting(1);
  std::vector<std::vector<uint32_t>> claimed;
  const auto emit = [](void* ctx, const weir_claim* claim) {
    EXPECT_GT(claim->predicted_ns, 0);
    static_cast<std::vector<std::vector<uint32_t>>*>(ctx)->emplace_back(claim->nodes, claim->nodes + claim->node_count);
  };
  const weir_compile_target target = TargetOf(Levels().back());
  ASSERT_EQ(Api().claim_loop(&target, region.Get(), emit, &claimed, nullptr), WEIR_OK);
  EXPECT_EQ(claimed, (std::vector<std::vector<uint32_t>>{{0, 1, 2, 3}}));
  claimed.clear();
  RegionSpec wide;
  const uint32_t x = wide.Input(kReal, {2}), limit = wide.Input(kReal, {});
  const uint32_t total = wide.Node("Sum", {x}, kReal, {}, {0});
  const uint32_t more = wide.Node("Less", {total, limit}, WEIR_BOOL, {});
  wide.Loop({wide.Node("Square", {x}, kReal, {2})}, more, 1);
  ASSERT_EQ(Api().claim_loop(&target, wide.Get(), emit, &claimed, nullptr), WEIR_OK);
  EXPECT_TRUE(claimed.empty()) << "it has no code for reductions in loops";
}

TEST(CompilerLlvmLoops, F021_loops_that_are_none_are_refused) {
  if (Levels().empty()) GTEST_SKIP() << "the processor is below x86-64-v3";
  const std::pair<const char*, std::function<void(RegionSpec&)>> faults[] = {
      {"an incomplete loop", [](RegionSpec& region) { region.loop().next = nullptr; }},
      {"an incomplete loop", [](RegionSpec& region) { region.loop().most_iterations = 0; }},
      {"whose variables are not its first inputs", [](RegionSpec& region) { region.loop().variable_count = 1; }},
      {"whose variables are not its first inputs", [](RegionSpec& region) { region.loop().variable_count = 99; }},
      {"whose condition is no bool", [](RegionSpec& region) { region.loop().condition = 0; }},
      {"whose condition is no bool", [](RegionSpec& region) { region.loop().condition = 99; }},
      {"has another type or shape",
       [](RegionSpec& region) {
         region.Loop({1, 1}, 6, 1);
       }},
      {"has another type or shape",
       [](RegionSpec& region) {
         region.Loop({0, 3}, 6, 1);
       }},
      {"has another type or shape",
       [](RegionSpec& region) {
         region.Loop({0, 99}, 6, 1);
       }},
      {"outputs are not its variables",
       [](RegionSpec& region) {
         region.Loop({0, 1}, 6, 1);
         region.SwapOutputs();
       }},
  };
  for (const auto& [text, spoil] : faults) {
    RegionSpec region = Counting(1);
    spoil(region);
    const Executable executable = CompileRegion(region, Levels()[0]);
    EXPECT_EQ(executable.code, WEIR_UNIMPLEMENTED);
    EXPECT_NE(executable.error.find(text), std::string::npos) << executable.error << ", wanted: " << text;
  }
  RegionSpec fixed;
  const uint32_t flag = fixed.Constant(WEIR_BOOL, 1);
  fixed.Loop({fixed.Node("LogicalNot", {flag}, WEIR_BOOL, {})}, flag, 1);
  const Executable executable = CompileRegion(fixed, Levels()[0]);
  EXPECT_NE(executable.error.find("a variable that is a constant"), std::string::npos) << executable.error;
}

}  // namespace
}  // namespace weir::test
