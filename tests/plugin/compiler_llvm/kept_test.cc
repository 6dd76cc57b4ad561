// Executables as bytes, and what `claim` proposes.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <thread>

#include "tests/plugin/compiler_llvm/regions.h"

namespace weir::test {
namespace {

constexpr uint32_t kSingle = WEIR_FLOAT32;

RegionSpec Chain(int64_t n) {
  RegionSpec region;
  const uint32_t x = region.Input(kSingle, {n}), c = region.Constant(kSingle, 3);
  region.Output(region.Node("Sigmoid", {region.Node("Mul", {x, c}, kSingle, {n})}, kSingle, {n}));
  return region;
}

std::vector<Array> Numbers(int64_t n) {
  std::vector<Array> inputs;
  inputs.push_back(Array::Of(kSingle, {n}));
  for (int64_t i = 0; i < n; ++i) inputs[0].Set(i, {static_cast<double>(i % 37) - 18, 0});
  inputs.push_back(Array::Of(kSingle, {}));
  inputs[1].Set(0, {3, 0});
  return inputs;
}

TEST(CompilerLlvmKept, BytesGiveTheSameExecutable) {
  for (const char* isa : Levels()) {
    RegionSpec region = Chain(1003);
    const Executable made = CompileRegion(region, isa, 4);
    ASSERT_TRUE(made) << made.error;
    const std::vector<uint8_t> bytes = SerializeOf(made);
    const Executable read = DeserializeOf(bytes, isa);
    ASSERT_TRUE(read) << read.error;
    EXPECT_EQ(SerializeOf(read), bytes);
    std::vector<Array> inputs = Numbers(1003);
    const std::vector<Array> a = RunExecutable(made, region, inputs), b = RunExecutable(read, region, inputs);
    EXPECT_EQ(std::memcmp(a[0].data(), b[0].data(), 1003 * 4), 0);
    weir_executable_spec one{}, other{};
    one.struct_size = other.struct_size = sizeof one;
    Api().io_spec(made.handle, &one, nullptr);
    Api().io_spec(read.handle, &other, nullptr);
    EXPECT_EQ(one.tiles, other.tiles);
    EXPECT_EQ(one.scratch_bytes, other.scratch_bytes);
    EXPECT_EQ(one.alias_count, other.alias_count);
    EXPECT_EQ(other.inputs[0]->shape.dims[0], 1003);
  }
}

TEST(CompilerLlvmKept, BytesFitTheirLevelAndBuild) {
  RegionSpec region = Chain(100);
  const std::vector<uint8_t> bytes = SerializeOf(CompileRegion(region, "x86-64-v3"));
  const auto compat = [](const std::vector<uint8_t>& b, const char* isa) {
    const weir_compile_target target = TargetOf(isa);
    return Api().compat(&target, b.data(), b.size());
  };
  EXPECT_EQ(compat(bytes, "x86-64-v3"), WEIR_COMPAT_SAME);
  EXPECT_EQ(compat(bytes, "x86-64-v2"), WEIR_COMPAT_INCOMPATIBLE);
  EXPECT_EQ(compat({}, "x86-64-v3"), WEIR_COMPAT_INCOMPATIBLE);
  if (Levels().size() == 2) {
    EXPECT_EQ(compat(bytes, "x86-64-v4"), WEIR_COMPAT_RECOMPILE);
    const std::vector<uint8_t> wide = SerializeOf(CompileRegion(region, "x86-64-v4"));
    EXPECT_EQ(compat(wide, "x86-64-v3"), WEIR_COMPAT_RECOMPILE);
    EXPECT_EQ(DeserializeOf(wide, "x86-64-v3").error, "the compiled region needs another processor");
  }
}

TEST(CompilerLlvmKept, DamagedBytesAreRefused) {
  RegionSpec region = Chain(100);
  const std::vector<uint8_t> bytes = SerializeOf(CompileRegion(region, "x86-64-v3"));
  const weir_compile_target target = TargetOf("x86-64-v3");
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::vector<uint8_t> damaged = bytes;
    damaged[i] ^= static_cast<uint8_t>(1u << (i % 8));
    EXPECT_NE(Api().compat(&target, damaged.data(), damaged.size()), WEIR_COMPAT_SAME) << "byte " << i;
    EXPECT_EQ(DeserializeOf(damaged, "x86-64-v3").code, WEIR_DATA_LOSS) << "byte " << i;
    const std::vector<uint8_t> cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(i));
    EXPECT_EQ(DeserializeOf(cut, "x86-64-v3").code, WEIR_DATA_LOSS) << i << " bytes";
  }
  std::vector<uint8_t> longer = bytes;
  longer.push_back(0);
  EXPECT_EQ(DeserializeOf(longer, "x86-64-v3").code, WEIR_DATA_LOSS);
}

TEST(CompilerLlvmKept, LlvmIsLoadedByTheFirstCompilationOnly) {
  const auto maps = [] {
    std::ifstream file("/proc/self/maps");
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  // Each test is a process of its own under ctest; in one process others may have compiled before.
  if (maps().find("compiler_llvm/backend.so") == std::string::npos) {
    const weir_compile_target target = TargetOf("x86-64-v3");
    RegionSpec region = Chain(100);
    int claims = 0;
    const auto count = [](void* ctx, const weir_claim*) { ++*static_cast<int*>(ctx); };
    Api().claim(&target, region.Get(), count, &claims, nullptr);
    EXPECT_EQ(claims, 1);
    EXPECT_EQ(DeserializeOf({}, "x86-64-v3").code, WEIR_DATA_LOSS);
    EXPECT_EQ(maps().find("libLLVM"), std::string::npos);
  }
  RegionSpec region = Chain(100);
  EXPECT_TRUE(CompileRegion(region, "x86-64-v3"));
  EXPECT_NE(maps().find("libLLVM"), std::string::npos);
}

TEST(CompilerLlvmKept, ThreadsCompileAtOnce) {
  if (Levels().empty()) GTEST_SKIP() << "the processor is below x86-64-v3";
  std::vector<std::vector<uint8_t>> kept(8);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < kept.size(); ++t) {
    threads.emplace_back([&kept, t] {
      RegionSpec region = Chain(100 + static_cast<int64_t>(t % 2));
      kept[t] = SerializeOf(CompileRegion(region, Levels().back()));
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t t = 0; t < kept.size(); ++t) EXPECT_EQ(kept[t], kept[t % 2]) << "the same region has the same code";
  EXPECT_NE(kept[0], kept[1]);
}

struct Claims {
  std::vector<std::vector<uint32_t>> sets;
  double predicted = 0;
};

Claims ClaimsOf(RegionSpec& region) {
  Claims claims;
  const weir_compile_target target = TargetOf("x86-64-v3");
  const auto emit = [](void* ctx, const weir_claim* claim) {
    auto& all = *static_cast<Claims*>(ctx);
    all.sets.emplace_back(claim->nodes, claim->nodes + claim->node_count);
    all.predicted += claim->predicted_ns;
  };
  EXPECT_EQ(Api().claim(&target, region.Get(), emit, &claims, nullptr), WEIR_OK);
  return claims;
}

using Sets = std::vector<std::vector<uint32_t>>;

TEST(CompilerLlvmClaims, AChainIsOneSet) {
  RegionSpec region = Chain(1000);
  const Claims claims = ClaimsOf(region);
  EXPECT_EQ(claims.sets, (Sets{{0, 1}}));
  RegionSpec larger = Chain(1000000);
  EXPECT_GT(ClaimsOf(larger).predicted, 10 * claims.predicted);
}

TEST(CompilerLlvmClaims, SetsHaveLimits) {
  RegionSpec region;
  const Dims dims = {64};
  std::vector<uint32_t> inputs;
  for (int i = 0; i < 100; ++i) inputs.push_back(region.Input(kSingle, dims));
  uint32_t v = inputs[0];
  for (int i = 1; i < 100; ++i) v = region.Node("AddV2", {v, inputs[static_cast<size_t>(i)]}, kSingle, dims);
  for (int i = 0; i < 300; ++i) v = region.Node("Neg", {v}, kSingle, dims);
  region.Output(v);
  const Claims claims = ClaimsOf(region);
  ASSERT_EQ(claims.sets.size(), 4u);
  size_t nodes = 0;
  for (const std::vector<uint32_t>& set : claims.sets) {
    EXPECT_LE(set.size(), 128u);
    nodes += set.size();
  }
  EXPECT_EQ(nodes, 399u);
}

TEST(CompilerLlvmClaims, SetsRunInThePlaceOfTheirLastNode) {
  RegionSpec region;
  const Dims dims = {64};
  const uint32_t x = region.Input(kSingle, dims);
  const uint32_t a = region.Node("Exp", {x}, kSingle, dims);
  const uint32_t b = region.Node("Lgamma", {a}, kSingle, dims);  // stays a kernel
  const uint32_t c = region.Node("Neg", {a}, kSingle, dims);
  const uint32_t d = region.Node("Mul", {b, c}, kSingle, dims);
  region.Output(region.Node("Abs", {d}, kSingle, dims));
  EXPECT_EQ(ClaimsOf(region).sets, (Sets{{0}, {2, 3, 4}}));
}

TEST(CompilerLlvmClaims, ExpensiveValuesOfEveryRowAreComputedOnce) {
  RegionSpec region;
  const uint32_t x = region.Input(kSingle, {512, 64}), variance = region.Input(kSingle, {64}),
                 gamma = region.Input(kSingle, {64}), tiny = region.Constant(kSingle, 1e-3);
  const uint32_t sum = region.Node("AddV2", {variance, tiny}, kSingle, {64});
  const uint32_t root = region.Node("Rsqrt", {sum}, kSingle, {64});
  const uint32_t scale = region.Node("Mul", {root, gamma}, kSingle, {64});
  region.Output(region.Node("Relu", {region.Node("Mul", {x, scale}, kSingle, {512, 64})}, kSingle, {512, 64}));
  EXPECT_EQ(ClaimsOf(region).sets, (Sets{{0, 1}, {2, 3, 4}}));
}

TEST(CompilerLlvmClaims, AnOutputOfAnotherShapeSplitsTheSet) {
  RegionSpec region;
  const uint32_t x = region.Input(kSingle, {8, 16}), y = region.Input(kSingle, {16});
  const uint32_t a = region.Node("Neg", {region.Node("Square", {y}, kSingle, {16})}, kSingle, {16});
  region.Output(a);
  region.Output(region.Node("Abs", {region.Node("AddV2", {x, a}, kSingle, {8, 16})}, kSingle, {8, 16}));
  EXPECT_EQ(ClaimsOf(region).sets, (Sets{{0, 1}, {2, 3}}));
}

}  // namespace
}  // namespace weir::test
