// The sources of regions as texts, and whether NVRTC takes them.
#include "plugins/compiler_nvrtc/source.h"

#include <gtest/gtest.h>

#include "plugins/compiler_nvrtc/libraries.h"
#include "plugins/compiler_nvrtc/prelude.h"
#include "sdk/abi/types.h"
#include "tests/plugin/compiler_llvm/regions.h"

namespace weir::compiler_nvrtc {
namespace {

using test::RegionSpec;

std::string TextOf(RegionSpec& region) {
  std::string why;
  const std::optional<std::string> text = SourceOf(*region.Get(), "region", &why);
  return text ? *text : "no code: " + why;
}

TEST(NvrtcSource, ChainWithScalarAndRow) {
  RegionSpec region;
  const uint32_t x = region.Input(WEIR_FLOAT32, {3, 4});
  const uint32_t row = region.Input(WEIR_FLOAT32, {4});
  const uint32_t two = region.Constant(WEIR_FLOAT32, 2);
  const uint32_t sum = region.Node("AddV2", {x, row}, WEIR_FLOAT32, {3, 4});
  const uint32_t twice = region.Node("Mul", {sum, two}, WEIR_FLOAT32, {3, 4});
  region.Output(region.Node("Relu", {twice}, WEIR_FLOAT32, {3, 4}));
  EXPECT_EQ(TextOf(region), R"(extern "C" __global__ void __launch_bounds__(256)
region(const float* in0, const float* in1, const float* in2, float* out0) {
  const unsigned int step = (unsigned int)gridDim.x * blockDim.x;
  for (unsigned int i = (unsigned int)blockIdx.x * blockDim.x + threadIdx.x; i < 12u; i += step) {
    const float a0 = in0[i];
    const float a1 = in1[i % 4u];
    const float v3 = Add(a0, a1);
    const float v4 = Mul(v3, Real32(0x40000000u));
    const float v5 = Relu(v4);
    out0[i] = v5;
  }
}
)");
}

TEST(NvrtcSource, ShortFloatsAreRoundedAfterEachOp) {
  RegionSpec region;
  const uint32_t x = region.Input(WEIR_FLOAT16, {2, 3, 5});
  const uint32_t bias = region.Input(WEIR_FLOAT16, {3});
  const uint32_t rest = region.Input(WEIR_FLOAT16, {2, 1, 1});
  const uint32_t sum = region.Node("BiasAdd", {x, bias}, WEIR_FLOAT16, {2, 3, 5}, {}, {}, "NCHW");
  const uint32_t less = region.Node("Less", {sum, rest}, WEIR_BOOL, {2, 3, 5});
  const uint32_t leaky = region.Node("LeakyRelu", {sum}, WEIR_FLOAT16, {2, 3, 5}, {}, {{"alpha", 0.5}});
  region.Output(less);
  region.Output(region.Node("Cast", {leaky}, WEIR_BFLOAT16, {2, 3, 5}));
  EXPECT_EQ(TextOf(region), R"(extern "C" __global__ void __launch_bounds__(256)
region(const unsigned short* in0, const unsigned short* in1, const unsigned short* in2, unsigned char* out0, )"
                            R"(unsigned short* out1) {
  const unsigned int step = (unsigned int)gridDim.x * blockDim.x;
  for (unsigned int i = (unsigned int)blockIdx.x * blockDim.x + threadIdx.x; i < 30u; i += step) {
    const float a0 = HalfIn(in0[i]);
    const float a1 = HalfIn(in1[i / 5u % 3u]);
    const float a2 = HalfIn(in2[i / 15u]);
    const float v3 = HalfRound(Add(a0, a1));
    const bool v4 = Less(v3, a2);
    const float v5 = HalfRound(LeakyRelu(v3, Real32(0x3f000000u)));
    const float v6 = BrainRound(Cast<float>(v5));
    out0[i] = v4 ? 1 : 0;
    out1[i] = BrainOut(v6);
  }
}
)");
}

TEST(NvrtcSource, LargeResultsCountIn64Bits) {
  RegionSpec region;
  const uint32_t x = region.Input(WEIR_UINT8, {int64_t{1} << 31, 2});
  region.Output(region.Node("Invert", {x}, WEIR_UINT8, {int64_t{1} << 31, 2}));
  EXPECT_NE(TextOf(region).find("i < 4294967296ull; i += step"), std::string::npos);
}

TEST(NvrtcSource, WhatHasNoCodeIsRefused) {
  RegionSpec reduction;
  reduction.Output(reduction.Node("Sum", {reduction.Input(WEIR_FLOAT32, {4, 4})}, WEIR_FLOAT32, {4}, {1}));
  EXPECT_EQ(TextOf(reduction), "no code: Sum: no code for reductions");
  RegionSpec quotient;
  const uint32_t x = quotient.Input(WEIR_INT32, {4}), three = quotient.Constant(WEIR_INT32, 3);
  quotient.Output(quotient.Node("FloorDiv", {x, three}, WEIR_INT32, {4}));
  EXPECT_EQ(TextOf(quotient), "no code: FloorDiv: no code for quotients of integers");
  RegionSpec shapes;
  const uint32_t a = shapes.Input(WEIR_FLOAT32, {4}), b = shapes.Input(WEIR_FLOAT32, {2, 4});
  (void)shapes.Node("Neg", {a}, WEIR_FLOAT32, {4});
  shapes.Output(shapes.Node("AddV2", {2, b}, WEIR_FLOAT32, {2, 4}));
  EXPECT_EQ(TextOf(shapes), "no code: AddV2: a result of another shape");
}

TEST(NvrtcSource, ErrorsOfTheCompilerAreTold) {
  std::string ptx, why;
  EXPECT_FALSE(CompileToPtx("extern \"C\" __global__ void broken() { undeclared; }", &ptx, &why));
  const bool told = why.find("undeclared") != std::string::npos || why.find("not installed") != std::string::npos;
  EXPECT_TRUE(told) << why;
}

}  // namespace
}  // namespace weir::compiler_nvrtc
