// Optimiser steps and variable updates, in the ref and the resource form; what the records declare.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/unit/sdk/plugin_harness.h"

namespace weir::sdk::test {
namespace {

const std::vector<double> kVar = {1, 2, 3, 4, 5}, kGrad = {0.5, -0.5, 1, 0, 2};
constexpr uint32_t kTypes[] = {WEIR_FLOAT32, WEIR_FLOAT64, WEIR_FLOAT16, WEIR_COMPLEX64};

double ToleranceOf(uint32_t dtype) { return dtype == WEIR_FLOAT16 ? 5e-3 : 1e-6; }

void ExpectClose(const Value& got, const std::vector<double>& wanted, const char* what) {
  const std::vector<double> numbers = Numbers(got);
  for (size_t i = 0; i < wanted.size(); ++i)
    EXPECT_NEAR(numbers[i], wanted[i], ToleranceOf(got.dtype)) << what << " [" << i << "]";
}

/// Calls the op in its form: a ref op has the variable as its output, too.
Outcome Apply(const std::string& op, bool resource, const Attributes& attributes, std::vector<Value> inputs) {
  const std::vector<Value> outputs =
      resource ? std::vector<Value>() : std::vector<Value>{Blank(inputs[0].dtype, inputs[0].dims)};
  const Outcome outcome = Kernels().Call(resource ? "Resource" + op : op, attributes, std::move(inputs), outputs);
  if (outcome.code == WEIR_OK && !resource) {
    EXPECT_EQ(Numbers(outcome.outputs[0]), Numbers(outcome.inputs[0])) << "the output is the variable";
  }
  return outcome;
}

bool Present(const std::string& op, uint32_t dtype) { return Kernels().Find(op, {{"T", Type(dtype)}}) != nullptr; }

TEST(Optimisers, GradientDescent) {
  for (const bool resource : {false, true}) {
    for (const uint32_t dtype : kTypes) {
      if (!Present("ApplyGradientDescent", dtype)) continue;
      const Outcome outcome = Apply("ApplyGradientDescent", resource, {},
                                    {AsType(kVar, {5}, dtype), AsType({0.1}, {}, dtype), AsType(kGrad, {5}, dtype)});
      ASSERT_EQ(outcome.code, WEIR_OK) << outcome.message;
      ExpectClose(outcome.inputs[0], {0.95, 2.05, 2.9, 4, 4.8}, "var");
    }
  }
}

TEST(Optimisers, Momentum) {
  for (const bool nesterov : {false, true}) {
    for (const uint32_t dtype : kTypes) {
      if (!Present("ApplyMomentum", dtype)) continue;
      const Outcome outcome = Apply("ApplyMomentum", nesterov, {{"use_nesterov", Flag(nesterov)}},
                                    {AsType(kVar, {5}, dtype), AsType({1, 1, 1, 1, 1}, {5}, dtype),
                                     AsType({0.1}, {}, dtype), AsType(kGrad, {5}, dtype), AsType({0.9}, {}, dtype)});
      ASSERT_EQ(outcome.code, WEIR_OK) << outcome.message;
      std::vector<double> var(5), accum(5);
      for (size_t i = 0; i < 5; ++i) {
        accum[i] = 0.9 + kGrad[i];
        var[i] = kVar[i] - (nesterov ? 0.1 * (kGrad[i] + 0.9 * accum[i]) : 0.1 * accum[i]);
      }
      ExpectClose(outcome.inputs[0], var, "var");
      ExpectClose(outcome.inputs[1], accum, "accum");
    }
  }
}

TEST(Optimisers, Adam) {
  for (const bool nesterov : {false, true}) {
    for (const uint32_t dtype : kTypes) {
      if (!Present("ApplyAdam", dtype)) continue;
      const auto scalar = [&](double x) { return AsType({x}, {}, dtype); };
      const std::vector<double> m0(5, 0.25), v0(5, 0.5);
      const Outcome outcome =
          Apply("ApplyAdam", nesterov, {{"use_nesterov", Flag(nesterov)}},
                {AsType(kVar, {5}, dtype), AsType(m0, {5}, dtype), AsType(v0, {5}, dtype), scalar(0.75), scalar(0.5),
                 scalar(0.125), scalar(0.875), scalar(0.75), scalar(0.0625), AsType(kGrad, {5}, dtype)});
      ASSERT_EQ(outcome.code, WEIR_OK) << outcome.message;
      const double rate = 0.125 * std::sqrt(1 - 0.5) / (1 - 0.75);
      std::vector<double> var(5), m(5), v(5);
      for (size_t i = 0; i < 5; ++i) {
        m[i] = 0.875 * m0[i] + 0.125 * kGrad[i];
        v[i] = 0.75 * v0[i] + 0.25 * kGrad[i] * kGrad[i];
        const double direction = nesterov ? 0.125 * kGrad[i] + 0.875 * m[i] : m[i];
        var[i] = kVar[i] - rate * direction / (std::sqrt(v[i]) + 0.0625);
      }
      ExpectClose(outcome.inputs[0], var, "var");
      ExpectClose(outcome.inputs[1], m, "m");
      ExpectClose(outcome.inputs[2], v, "v");
    }
  }
}

TEST(Optimisers, ShapesAreCheckedAtEveryStep) {
  const Value var = AsType(kVar, {5}, WEIR_FLOAT32), rate = AsType({0.1}, {}, WEIR_FLOAT32);
  const Outcome shape = Apply("ApplyGradientDescent", true, {}, {var, rate, AsType({1, 2}, {2}, WEIR_FLOAT32)});
  EXPECT_EQ(shape.code, WEIR_INVALID_ARGUMENT);
  EXPECT_EQ(shape.message, "var and delta do not have the same shape[5] [2]");
  const Outcome scalar = Apply("ApplyGradientDescent", true, {}, {var, var, var});
  EXPECT_EQ(scalar.message, "alpha is not a scalar: [5]");
  EXPECT_EQ(Numbers(scalar.inputs[0]), kVar);  // nothing was written
}

TEST(Variables, AddAndSubtractInPlace) {
  for (const uint32_t dtype : {WEIR_FLOAT32, WEIR_INT64, WEIR_BFLOAT16, WEIR_UINT8}) {
    if (!Present("AssignAdd", dtype)) continue;
    const Value var = AsType({1, 2, 3}, {3}, dtype), x = AsType({1, 1, 2}, {3}, dtype);
    EXPECT_EQ(Numbers(Apply("AssignAdd", false, {}, {var, x}).inputs[0]), (std::vector<double>{2, 3, 5}));
    EXPECT_EQ(Numbers(Apply("AssignSub", false, {}, {var, x}).inputs[0]), (std::vector<double>{0, 1, 1}));
    const Attributes typed = {{"dtype", Type(dtype)}};
    EXPECT_EQ(Numbers(Kernels().Call("AssignAddVariableOp", typed, {var, x}, {}).inputs[0]),
              (std::vector<double>{2, 3, 5}));
    EXPECT_EQ(Numbers(Kernels().Call("AssignSubVariableOp", typed, {var, x}, {}).inputs[0]),
              (std::vector<double>{0, 1, 1}));
  }
  const Outcome bad = Apply("AssignAdd", false, {}, {AsType({1, 2}, {2}, WEIR_FLOAT32), AsType({1}, {}, WEIR_FLOAT32)});
  EXPECT_EQ(bad.code, WEIR_INVALID_ARGUMENT);
}

TEST(Records, SayWhichInputsAreVariablesAndWhichLieOnTheHost) {
  const Attributes floats = {{"T", Type(WEIR_FLOAT32)}};
  EXPECT_EQ(Kernels().Find("ApplyAdam", floats)->variable_writes, 0b111u);
  EXPECT_EQ(Kernels().Find("ResourceApplyMomentum", floats)->variable_writes, 0b11u);
  EXPECT_EQ(Kernels().Find("AddV2", floats)->variable_writes, 0u);
  EXPECT_EQ(Kernels().Find("Sum", floats)->host_inputs, 0b10u);
  EXPECT_EQ(Kernels().Find("Sum", floats)->flags & WEIR_KERNEL_STATEFUL, 0u);
  const weir_kernel* kernel = Kernels().Find("MatMul", floats);
  EXPECT_EQ(std::string(kernel->platform.data, kernel->platform.size), "cpu");
}

TEST(Records, UnknownShapesAndBitsAreDeclined) {
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
