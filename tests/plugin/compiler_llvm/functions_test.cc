// Results of single ops over ranges of numbers.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tests/plugin/compiler_llvm/regions.h"

namespace weir::test {
namespace {

struct Function {
  const char* op;
  long double (*exact)(long double);
  double low, high;  // range of most arguments
  double ulps;
  bool wide = true;  // also of double
};

long double SigmoidOf(long double x) { return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x)); }
long double SoftplusOf(long double x) { return std::max(x, 0.0L) + std::log1p(std::exp(-std::fabs(x))); }
long double EluOf(long double x) { return x < 0 ? std::expm1(x) : x; }

// The bounds are those of plugins/compiler_llvm/README.md.
const Function kFunctions[] = {
    {"Exp", [](long double x) { return std::exp(x); }, -104, 89, 2},
    {"Exp", [](long double x) { return std::exp(x); }, -1, 1, 2},
    {"Expm1", [](long double x) { return std::expm1(x); }, -20, 89, 3},
    {"Expm1", [](long double x) { return std::expm1(x); }, -0.5, 0.5, 3},
    {"Log", [](long double x) { return std::log(x); }, 0, 10, 2},
    {"Log", [](long double x) { return std::log(x); }, 0.9, 1.1, 2},
    {"Log1p", [](long double x) { return std::log1p(x); }, -1, 10, 3},
    {"Log1p", [](long double x) { return std::log1p(x); }, -1e-3, 1e-3, 3},
    {"Tanh", [](long double x) { return std::tanh(x); }, -10, 10, 4},
    {"Tanh", [](long double x) { return std::tanh(x); }, -0.1, 0.1, 4},
    {"Sigmoid", &SigmoidOf, -80, 40, 4},
    {"Sigmoid", &SigmoidOf, -4, 4, 4},
    {"Softplus", &SoftplusOf, -80, 40, 4},
    {"Elu", &EluOf, -20, 2, 3},
    {"Erf", [](long double x) { return std::erf(x); }, -4.5, 4.5, 4, false},
};

/// Numbers of the range, of all magnitudes below it, and the special ones.
Array ArgumentsOf(const Function& function, uint32_t dtype, int64_t n) {
  Array array = Array::Of(dtype, {n});
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> within(function.low, function.high);
  const double special[] = {0.0, -0.0, INFINITY, -INFINITY, std::nan(""), 1, -1, 1e-40, -1e-40, 1e-300, 1e38, -1e38};
  for (int64_t i = 0; i < n; ++i) {
    double x = within(random);
    if (i % 8 == 0) x = std::ldexp(x, -static_cast<int>(random() % 40));
    if (i < 12) x = special[i];
    array.Set(i, {x, 0});
  }
  return array;
}

void CheckFunction(const Function& function, uint32_t dtype, const char* isa) {
  SCOPED_TRACE(std::string(function.op) + " of type " + std::to_string(dtype) + " on " + isa);
  constexpr int64_t kCount = 20011;
  RegionSpec region;
  const uint32_t x = region.Input(dtype, {kCount});
  region.Output(region.Node(function.op, {x}, dtype, {kCount}));
  const Executable executable = CompileRegion(region, isa);
  ASSERT_TRUE(executable) << executable.error;
  std::vector<Array> inputs;
  inputs.push_back(ArgumentsOf(function, dtype, kCount));
  const std::vector<Array> results = RunExecutable(executable, region, inputs);
  const bool is_short = dtype == WEIR_FLOAT16 || dtype == WEIR_BFLOAT16;
  for (int64_t i = 0; i < kCount; ++i) {
    Array wanted = Array::Of(dtype, {});
    wanted.Set(0, {static_cast<double>(function.exact(static_cast<long double>(inputs[0].At(i).real))), 0});
    const double want = wanted.At(0).real, have = results[0].At(i).real;
    if (std::fabs(want) < 3e-38 && std::fabs(have) < 3e-38 && std::string_view(function.op) == "Sigmoid") continue;
    ASSERT_LE(UlpsBetween(dtype, want, have), is_short ? 1 : function.ulps)
        << "of " << inputs[0].At(i).real << ": wanted " << want << ", got " << have;
    if (want == 0) {
      ASSERT_EQ(std::signbit(want), std::signbit(have)) << "of " << inputs[0].At(i).real;
    }
  }
}

TEST(CompilerLlvmFunctions, F021_functions_are_within_their_bounds) {
  for (const char* isa : Levels()) {
    for (const Function& function : kFunctions) {
      CheckFunction(function, WEIR_FLOAT32, isa);
      if (function.wide) CheckFunction(function, WEIR_FLOAT64, isa);
    }
    CheckFunction(kFunctions[0], WEIR_FLOAT16, isa);
    CheckFunction(kFunctions[8], WEIR_BFLOAT16, isa);
  }
}

TEST(CompilerLlvmFunctions, HaveTheSameBitsOnEveryLevel) {
  if (Levels().size() < 2) GTEST_SKIP() << "the processor has one level only";
  for (const Function& function : kFunctions) {
    for (const uint32_t dtype : {WEIR_FLOAT32, WEIR_FLOAT16}) {
      RegionSpec region;
      const uint32_t x = region.Input(dtype, {1003});
      const uint32_t y = region.Node(function.op, {x}, dtype, {1003});
      region.Output(y);
      std::vector<Array> inputs;
      inputs.push_back(ArgumentsOf(function, dtype, 1003));
      const std::vector<Array> low = RunExecutable(CompileRegion(region, "x86-64-v3"), region, inputs);
      const std::vector<Array> high = RunExecutable(CompileRegion(region, "x86-64-v4"), region, inputs);
      for (int64_t i = 0; i < 1003; ++i) {
        const double a = low[0].At(i).real, b = high[0].At(i).real;
        ASSERT_TRUE((std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b)))
            << function.op << " of " << inputs[0].At(i).real << ": " << a << " and " << b;
      }
    }
  }
}

TEST(CompilerLlvmFunctions, CastsOfAllPairsOfTypes) {
  constexpr uint32_t kTypes[] = {WEIR_FLOAT32, WEIR_FLOAT64, WEIR_FLOAT16, WEIR_BFLOAT16, WEIR_INT8,
                                 WEIR_INT16,   WEIR_INT32,   WEIR_INT64,   WEIR_UINT8,    WEIR_UINT16,
                                 WEIR_UINT32,  WEIR_UINT64,  WEIR_BOOL};
  const double numbers[] = {0,           -0.0,        1,   -1,    0.5,    -0.5,   1.5,     -2.5,   126.9,
                            127.5,       -128.9,      255, 256,   32768,  65535,  65536,   1e5,    2147483647,
                            -2147483648, 4294967295., 4e9, 1e10,  -5e9,   9.2e18, -9.3e18, 1.8e19, 2e19,
                            INFINITY,    -INFINITY,   NAN, 1e-30, 100.25, -3.75};
  constexpr int64_t kCount = std::size(numbers);
  for (const char* isa : Levels()) {
    for (const uint32_t from : kTypes) {
      // All targets in one region.
      RegionSpec region;
      const uint32_t x = region.Input(from, {kCount});
      for (const uint32_t to : kTypes) region.Output(region.Node("Cast", {x}, to, {kCount}));
      std::vector<Array> inputs;
      inputs.push_back(Array::Of(from, {kCount}));
      for (int64_t i = 0; i < kCount; ++i) {
        const double n = numbers[i];
        const bool fits = std::isfinite(n) && std::fabs(n) < 9e18;
        const int64_t whole =
            fits ? static_cast<int64_t>(n) : static_cast<int64_t>(static_cast<uint64_t>(i) * 0x9e3779b97f4a7c15);
        inputs[0].Set(i, {n, from == WEIR_BOOL ? n != 0 : whole});
      }
      const Executable executable = CompileRegion(region, isa);
      ASSERT_TRUE(executable) << executable.error;
      const std::vector<Array> wanted = Reference(region, inputs);
      const std::vector<Array> have = RunExecutable(executable, region, inputs);
      for (size_t t = 0; t < std::size(kTypes); ++t) {
        for (int64_t i = 0; i < kCount; ++i) {
          const Array::Number a = wanted[t].At(i), b = have[t].At(i);
          ASSERT_TRUE(a.integer == b.integer && UlpsBetween(kTypes[t], a.real, b.real) == 0)
              << isa << ": type " << from << " to " << kTypes[t] << ", element " << i << ": wanted " << a.real
              << ", got " << b.real;
        }
      }
    }
  }
}

TEST(CompilerLlvmFunctions, IntegerDivisionsByKnownDivisors) {
  for (const char* op : {"Div", "TruncateDiv", "FloorDiv", "FloorMod", "TruncateMod"}) {
    for (const double divisor : {1.0, -1.0, 3.0, -7.0, 10.0, 64.0}) {
      for (const uint32_t dtype : {WEIR_INT32, WEIR_INT64}) {
        RegionSpec region;
        const uint32_t x = region.Input(dtype, {77}), by = region.Constant(dtype, divisor);
        region.Output(region.Node(op, {x, by}, dtype, {77}));
        std::vector<Array> inputs;
        inputs.push_back(Array::Of(dtype, {77}));
        inputs.push_back(region.input(1).constant);
        for (int64_t i = 0; i < 77; ++i) {
          inputs[0].Set(i, {0, i == 0 ? INT64_MIN : i == 1 ? INT32_MIN : (i - 38) * 11});
        }
        const Executable executable = CompileRegion(region, "x86-64-v3");
        ASSERT_TRUE(executable) << executable.error;
        const std::vector<Array> wanted = Reference(region, inputs), have = RunExecutable(executable, region, inputs);
        for (int64_t i = 0; i < 77; ++i) {
          ASSERT_EQ(wanted[0].At(i).integer, have[0].At(i).integer) << op << " by " << divisor << " of element " << i;
        }
      }
    }
  }
}

}  // namespace
}  // namespace weir::test
