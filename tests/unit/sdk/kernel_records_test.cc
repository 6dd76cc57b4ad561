// What kernels' records say, and what only a call through the ABI can show. Their values: tests/ops/cases.
#include <gtest/gtest.h>

#include "tests/unit/sdk/plugin_harness.h"

namespace weir::sdk::test {
namespace {

Outcome Cast(const Value& x, uint32_t to, Attributes attributes = {}) {
  attributes["SrcT"] = Type(x.dtype);
  attributes["DstT"] = Type(to);
  return Kernels().Call("Cast", attributes, {x}, {Blank(to, x.dims)});
}

TEST(Kernels, AnyNonZeroByteIsTrue) {
  Value x = Of<uint8_t>({4}, {0, 1, 2, 255}), y = Of<uint8_t>({4}, {1, 1, 0, 1});
  x.dtype = y.dtype = WEIR_BOOL;
  const auto at = [&](const char* op, std::vector<Value> inputs) {
    return Elements<uint8_t>(Kernels().Call(op, {}, std::move(inputs), {Blank(WEIR_BOOL, {4})}).outputs[0]);
  };
  EXPECT_EQ(at("LogicalAnd", {x, y}), (std::vector<uint8_t>{0, 1, 0, 1}));
  EXPECT_EQ(at("LogicalOr", {x, y}), (std::vector<uint8_t>{1, 1, 1, 1}));
  EXPECT_EQ(at("LogicalNot", {x}), (std::vector<uint8_t>{1, 0, 0, 0}));
}

TEST(Kernels, CastToNarrowTypesAndRefuseSome) {
  if (Kernels().Find("Cast", {{"SrcT", Type(WEIR_INT4)}}) == nullptr) GTEST_SKIP() << "short element type lists";
  const Outcome to_int4 = Cast(Of<int32_t>({3}, {7, -8, 9}), WEIR_INT4);
  ASSERT_EQ(to_int4.code, WEIR_OK);
  EXPECT_EQ(Elements<int32_t>(Cast(to_int4.outputs[0], WEIR_INT32).outputs[0]), (std::vector<int32_t>{7, -8, -7}));
  EXPECT_EQ(Cast(Of<float>({1}, {1}), WEIR_INT4).code, WEIR_UNIMPLEMENTED);
  EXPECT_EQ(Cast(Of<complex64>({1}, {complex64(1, 0)}), WEIR_FLOAT8_E5M2).code, WEIR_UNIMPLEMENTED);
  EXPECT_EQ(static_cast<float>(Cast(Of<float>({1}, {3.0f}), WEIR_FLOAT8_E5M2).outputs[0].data<float8_e5m2>()[0]), 3.0f);
}

TEST(Kernels, PiecesThatDoNotMakeUpTheWholeAreRefused) {
  Attributes attributes = {{"T", Type(WEIR_FLOAT32)}};
  const Outcome refused = Kernels().Call("Split", attributes, {Scalar<int32_t>(0), Of<float>({4}, {1, 2, 3, 4})},
                                         {Blank(WEIR_FLOAT32, {2}), Blank(WEIR_FLOAT32, {3})});
  EXPECT_EQ(refused.code, WEIR_INTERNAL);
  EXPECT_EQ(refused.message, "pieces of 20 bytes in a row do not make up 16 bytes of [4] along axis 0");
}

TEST(Kernels, UnknownSteeringOperandsAreNotGuessed) {
  const Outcome outcome = Kernels().Call("Transpose", {}, {Of<float>({2}, {1, 2}), Of<int32_t>({1}, {0})},
                                         {Blank(WEIR_FLOAT32, {2})}, {.constants = false});
  EXPECT_EQ(outcome.code, WEIR_UNIMPLEMENTED);
  EXPECT_EQ(outcome.message, "the value of input 1 must be known");
  for (const auto& [op, mask] : std::initializer_list<std::pair<const char*, uint64_t>>{{"Transpose", 2},
                                                                                        {"ReverseV2", 2},
                                                                                        {"ConcatV2", 2},
                                                                                        {"Concat", 1},
                                                                                        {"Split", 1},
                                                                                        {"SplitV", 6},
                                                                                        {"Slice", 6},
                                                                                        {"StridedSlice", 14},
                                                                                        {"StridedSliceGrad", 15},
                                                                                        {"Tile", 2},
                                                                                        {"BroadcastTo", 2},
                                                                                        {"Pad", 2},
                                                                                        {"Fill", 1},
                                                                                        {"GatherV2", 4},
                                                                                        {"OneHot", 2},
                                                                                        {"UnsortedSegmentSum", 4},
                                                                                        {"ConcatOffset", 3},
                                                                                        {"BroadcastArgs", 3},
                                                                                        {"BroadcastGradientArgs", 3},
                                                                                        {"Range", 7},
                                                                                        {"RandomUniform", 1},
                                                                                        {"Gather", 0},
                                                                                        {"DynamicStitch", 0}}) {
    const weir_kernel* kernel = Kernels().Find(op, {});
    ASSERT_NE(kernel, nullptr) << op;
    EXPECT_EQ(kernel->host_inputs, mask) << op;
  }
}

TEST(Kernels, ProductsDeclareTheirWork) {
  const Attributes attributes = {{"T", Type(WEIR_FLOAT32)}};
  const weir_kernel* kernel = Kernels().Find("MatMul", attributes);
  ASSERT_NE(kernel, nullptr);
  EXPECT_EQ(kernel->cost_class, uint32_t{WEIR_CLASS_GEMM});
  const auto time = [&](int64_t n) {
    return Kernels()
        .Estimate("MatMul", attributes, {Blank(WEIR_FLOAT32, {n, n}), Blank(WEIR_FLOAT32, {n, n})},
                  {Blank(WEIR_FLOAT32, {n, n})})
        .whole_ns;
  };
  EXPECT_GT(time(8), 0);
  EXPECT_GT(time(256), 6 * time(128)) << "eight times the work";
}

TEST(Kernels, SayWhichInputsAreVariablesAndWhichLieOnTheHost) {
  const Attributes floats = {{"T", Type(WEIR_FLOAT32)}};
  EXPECT_EQ(Kernels().Find("ApplyAdam", floats)->variable_writes, 0b111u);
  EXPECT_EQ(Kernels().Find("ResourceApplyMomentum", floats)->variable_writes, 0b11u);
  EXPECT_EQ(Kernels().Find("AddV2", floats)->variable_writes, 0u);
  EXPECT_EQ(Kernels().Find("Sum", floats)->host_inputs, 0b10u);
  EXPECT_EQ(Kernels().Find("Sum", floats)->flags & WEIR_KERNEL_STATEFUL, 0u);
  const weir_kernel* kernel = Kernels().Find("MatMul", floats);
  EXPECT_EQ(std::string(kernel->platform.data, kernel->platform.size), "cpu");
}

TEST(Kernels, UnknownShapesAndBitsAreDeclined) {
  const weir_kernel* kernel = Kernels().Find("AddV2", {{"T", Type(WEIR_FLOAT32)}});
  const int64_t unknown[] = {-1};
  const weir_operand operand = {sizeof(weir_operand), WEIR_FLOAT32, 0, 0, {1, 0, unknown}, 64, nullptr};
  const weir_operand* two[] = {&operand, &operand};
  weir_prep_args args{sizeof(weir_prep_args), 0, nullptr, nullptr, 2, 1, two, two, 1, 0, 0};
  weir_prepared prepared{};
  EXPECT_EQ(kernel->prepare(kernel->user, &args, &prepared, nullptr), WEIR_UNIMPLEMENTED);
  const int64_t known[] = {2};
  const weir_operand fixed = {sizeof(weir_operand), WEIR_FLOAT32, 0, 0, {1, 0, known}, 64, nullptr};
  const weir_operand* fixed_two[] = {&fixed, &fixed};
  args.inputs = args.outputs = fixed_two;
  args.must = 1;
  EXPECT_EQ(kernel->prepare(kernel->user, &args, &prepared, nullptr), WEIR_UNIMPLEMENTED);
}

}  // namespace
}  // namespace weir::sdk::test
