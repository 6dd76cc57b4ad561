// Elementwise kernels: numbers, broadcasting, aliasing, errors, element types.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <functional>
#include <limits>

#include "tests/unit/sdk/plugin_harness.h"

namespace weir::sdk::test {
namespace {

/// Relative tolerance of an element type.
double Tolerance(uint32_t dtype) {
  return dtype == WEIR_FLOAT64 || dtype == WEIR_COMPLEX128 ? 1e-13
         : dtype == WEIR_FLOAT16                           ? 1e-3
         : dtype == WEIR_BFLOAT16                          ? 8e-3
                                                           : 5e-7;
}

void ExpectNear(const Value& got, const std::vector<double>& wanted, double tolerance, const std::string& what) {
  const std::vector<double> numbers = Numbers(got);
  ASSERT_EQ(numbers.size(), wanted.size()) << what;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (std::isnan(wanted[i]) || std::isinf(wanted[i])) {
      EXPECT_TRUE(std::isnan(wanted[i]) ? std::isnan(numbers[i]) : numbers[i] == wanted[i])
          << what << " [" << i << "]: " << numbers[i] << ", wanted " << wanted[i];
    } else {
      EXPECT_NEAR(numbers[i], wanted[i], tolerance * std::max(1.0, std::fabs(wanted[i]))) << what << " [" << i << "]";
    }
  }
}

std::vector<uint32_t> Present(const std::string& op, std::vector<uint32_t> dtypes) {
  std::erase_if(dtypes, [&](uint32_t dtype) { return Kernels().Find(op, {{"T", Type(dtype)}}) == nullptr; });
  return dtypes;
}
const std::vector<uint32_t> kFloats = {WEIR_FLOAT32, WEIR_FLOAT64, WEIR_FLOAT16, WEIR_BFLOAT16};
const std::vector<uint32_t> kAll = {WEIR_FLOAT32,    WEIR_FLOAT64, WEIR_FLOAT16, WEIR_BFLOAT16, WEIR_COMPLEX64,
                                    WEIR_COMPLEX128, WEIR_INT8,    WEIR_INT16,   WEIR_INT32,    WEIR_INT64,
                                    WEIR_UINT8,      WEIR_UINT16,  WEIR_UINT32,  WEIR_UINT64};

struct UnaryRow {
  const char* op;
  std::function<double(double)> reference;
  double low, high;
};

const UnaryRow kUnary[] = {
    {"Neg", [](double x) { return -x; }, -9, 9},
    {"Abs", [](double x) { return std::fabs(x); }, -9, 9},
    {"Sign", [](double x) { return x > 0   ? 1.0
                                   : x < 0 ? -1.0
                                           : 0.0; }, -2, 2},
    {"Square", [](double x) { return x * x; }, -5, 5},
    {"Reciprocal", [](double x) { return 1 / x; }, 0.5, 9},
    {"Inv", [](double x) { return 1 / x; }, -9, -0.5},
    {"Sqrt", [](double x) { return std::sqrt(x); }, 0, 9},
    {"Rsqrt", [](double x) { return 1 / std::sqrt(x); }, 0.5, 9},
    {"Floor", [](double x) { return std::floor(x); }, -4, 4},
    {"Ceil", [](double x) { return std::ceil(x); }, -4, 4},
    {"Round", [](double x) { return std::nearbyint(x); }, -4, 4},
    {"Exp", [](double x) { return std::exp(x); }, -5, 5},
    {"Expm1", [](double x) { return std::expm1(x); }, -5, 5},
    {"Log", [](double x) { return std::log(x); }, 0.25, 9},
    {"Log1p", [](double x) { return std::log1p(x); }, -0.5, 9},
    {"Tanh", [](double x) { return std::tanh(x); }, -5, 5},
    {"Sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }, -9, 9},
    {"Relu", [](double x) { return std::max(x, 0.0); }, -3, 3},
};

TEST(Unary, ValuesInEveryElementType) {
  for (const UnaryRow& row : kUnary) {
    const std::vector<uint32_t> dtypes = Present(row.op, kAll);
    ASSERT_GE(dtypes.size(), 2u) << row.op;
    for (const uint32_t dtype : dtypes) {
      for (const size_t n : {1u, 7u, 37u}) {  // one element, an odd tail, several vectors
        std::vector<double> x(n);
        const bool whole = !(dtype == WEIR_FLOAT32 || dtype == WEIR_FLOAT64 || dtype == WEIR_FLOAT16 ||
                             dtype == WEIR_BFLOAT16 || dtype == WEIR_COMPLEX64 || dtype == WEIR_COMPLEX128);
        for (size_t i = 0; i < n; ++i)
          x[i] = row.low + (row.high - row.low) * (static_cast<double>(i) + 0.5) / static_cast<double>(n);
        if (whole) {
          for (double& v : x) v = std::floor(std::fabs(v));
        }
        const Value input = AsType(x, {static_cast<int64_t>(n)}, dtype);
        std::vector<double> wanted = Numbers(input);  // what the type keeps
        for (double& v : wanted) v = row.reference(v);
        if (std::string(row.op) == "Neg" && whole) continue;  // wraps; has its own test
        for (const bool in_place : {false, true}) {
          const Outcome outcome =
              Kernels().Call(row.op, {}, {input}, {Blank(dtype, input.dims)}, {.in_place = in_place});
          ASSERT_EQ(outcome.code, WEIR_OK) << row.op << " type " << dtype << ": " << outcome.message;
          ExpectNear(outcome.outputs[0], wanted, Tolerance(dtype),
                     std::string(row.op) + " type " + std::to_string(dtype));
        }
      }
    }
  }
}

TEST(Unary, SpecialFloats) {
  const std::vector<double> x = {kNaN, kInf, -kInf, 0.0, -0.0, 1e-30, 200, -200};
  const auto at = [&](const char* op) {
    const Outcome outcome = Kernels().Call(op, {}, {AsType(x, {8}, WEIR_FLOAT32)}, {Blank(WEIR_FLOAT32, {8})});
    EXPECT_EQ(outcome.code, WEIR_OK) << outcome.message;
    return outcome.outputs[0];
  };
  ExpectNear(at("Exp"), {kNaN, kInf, 0, 1, 1, 1, kInf, 0}, 1e-6, "Exp");
  ExpectNear(at("Log"), {kNaN, kInf, kNaN, -kInf, -kInf, std::log(1e-30), std::log(200), kNaN}, 1e-6, "Log");
  ExpectNear(at("Tanh"), {kNaN, 1, -1, 0, 0, 0, 1, -1}, 1e-6, "Tanh");
  ExpectNear(at("Sigmoid"), {kNaN, 1, 0, 0.5, 0.5, 0.5, 1, 0}, 1e-6, "Sigmoid");
  ExpectNear(at("Relu"), {kNaN, kInf, 0, 0, 0, 1e-30, 200, 0}, 1e-6, "Relu");
  ExpectNear(at("Reciprocal"), {kNaN, 0, 0, kInf, -kInf, 1e30, 1 / 200.0, -1 / 200.0}, 1e-6, "Reciprocal");
  ExpectNear(at("Sqrt"), {kNaN, kInf, kNaN, 0, 0, 1e-15, std::sqrt(200), kNaN}, 1e-6, "Sqrt");
}

TEST(Unary, RoundTakesHalvesToEven) {
  const Outcome outcome = Kernels().Call("Round", {}, {AsType({0.5, 1.5, 2.5, -0.5, -1.5, -2.5}, {6}, WEIR_FLOAT32)},
                                         {Blank(WEIR_FLOAT32, {6})});
  EXPECT_EQ(Elements<float>(outcome.outputs[0]), (std::vector<float>{0, 2, 2, 0, -2, -2}));
}

TEST(Unary, ComplexFunctionsMatchTheLibrary) {
  if (Kernels().Find("Exp", {{"T", Type(WEIR_COMPLEX128)}}) == nullptr) GTEST_SKIP() << "short element type lists";
  using C = std::complex<double>;
  const std::vector<C> x = {{0.5, 1.5}, {-2, 0.25}, {1e-9, -1e-9}};
  const std::pair<const char*, std::function<C(C)>> rows[] = {
      {"Exp", [](C z) { return std::exp(z); }},      {"Log", [](C z) { return std::log(z); }},
      {"Sqrt", [](C z) { return std::sqrt(z); }},    {"Tanh", [](C z) { return std::tanh(z); }},
      {"Square", [](C z) { return z * z; }},         {"Reciprocal", [](C z) { return 1.0 / z; }},
      {"Sign", [](C z) { return z / std::abs(z); }}, {"Conj", [](C z) { return std::conj(z); }}};
  for (const auto& [op, reference] : rows) {
    const Outcome outcome = Kernels().Call(op, {}, {Of<C>({3}, x)}, {Blank(WEIR_COMPLEX128, {3})});
    ASSERT_EQ(outcome.code, WEIR_OK) << op;
    for (size_t i = 0; i < x.size(); ++i) {
      const C wanted = reference(x[i]);
      EXPECT_LT(std::abs(outcome.outputs[0].data<C>()[i] - wanted), 1e-12 * (1 + std::abs(wanted))) << op << i;
    }
  }
  // Near zero the difference to the plain formula is the point.
  const Outcome expm1 = Kernels().Call("Expm1", {}, {Of<C>({1}, {{1e-9, 1e-9}})}, {Blank(WEIR_COMPLEX128, {1})});
  EXPECT_NEAR(expm1.outputs[0].data<C>()[0].real(), 1e-9, 1e-24);
}

struct BinaryRow {
  const char* op;
  std::function<double(double, double)> reference;
};
const BinaryRow kBinary[] = {
    {"Add", std::plus<double>()},
    {"AddV2", std::plus<double>()},
    {"Sub", std::minus<double>()},
    {"Mul", std::multiplies<double>()},
    {"RealDiv", std::divides<double>()},
    {"DivNoNan", [](double x, double y) { return y == 0 ? 0 : x / y; }},
    {"SquaredDifference", [](double x, double y) { return (x - y) * (x - y); }},
    {"Maximum", [](double x, double y) { return std::max(x, y); }},
    {"Minimum", [](double x, double y) { return std::min(x, y); }},
    {"TanhGrad", [](double y, double dy) { return dy * (1 - y * y); }},
    {"SigmoidGrad", [](double y, double dy) { return dy * y * (1 - y); }},
    {"ReluGrad", [](double dy, double x) { return x > 0 ? dy : 0; }},
    {"ReciprocalGrad", [](double y, double dy) { return -dy * y * y; }},
    {"SqrtGrad", [](double y, double dy) { return 0.5 * dy / y; }},
    {"RsqrtGrad", [](double y, double dy) { return -0.5 * dy * y * y * y; }},
};

/// Numbers 1, 2, 3 … over a modulus, so that every type holds them.
std::vector<double> Counting(int64_t n, int modulus) {
  std::vector<double> x(static_cast<size_t>(n));
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<double>(i % static_cast<size_t>(modulus) + 1);
  return x;
}

TEST(Binary, ValuesInEveryElementType) {
  for (const BinaryRow& row : kBinary) {
    const std::vector<uint32_t> dtypes = Present(row.op, kAll);
    ASSERT_GE(dtypes.size(), 2u) << row.op;
    for (const uint32_t dtype : dtypes) {
      const bool is_unsigned =
          dtype == WEIR_UINT8 || dtype == WEIR_UINT16 || dtype == WEIR_UINT32 || dtype == WEIR_UINT64;
      const int64_t n = 41;
      std::vector<double> x = Counting(n, 5), y = Counting(n, is_unsigned ? 1 : 3), wanted(n);
      for (int64_t i = 0; i < n; ++i) wanted[i] = row.reference(x[i], y[i]);
      const Outcome outcome =
          Kernels().Call(row.op, {}, {AsType(x, {n}, dtype), AsType(y, {n}, dtype)}, {Blank(dtype, {n})});
      ASSERT_EQ(outcome.code, WEIR_OK) << row.op << " type " << dtype << ": " << outcome.message;
      ExpectNear(outcome.outputs[0], wanted, Tolerance(dtype), std::string(row.op) + " type " + std::to_string(dtype));
    }
  }
}

using Dims = std::vector<int64_t>;

/// Sub over any pair of shapes against an index-by-index walk.
void CheckBroadcast(const Dims& a, const Dims& b, uint32_t dtype) {
  Dims out(std::max(a.size(), b.size()), 1);
  const auto extent = [](const Dims& d, size_t from_end) {
    return from_end < d.size() ? d[d.size() - 1 - from_end] : 1;
  };
  for (size_t i = 0; i < out.size(); ++i) {
    const int64_t x = extent(a, i), y = extent(b, i);
    out[out.size() - 1 - i] = x == 1 ? y : x;
  }
  Value left = Blank(dtype, a), right = Blank(dtype, b);
  left = AsType(Counting(left.size(), 7), a, dtype);
  right = AsType(Counting(right.size(), 5), b, dtype);
  const std::vector<double> x = Numbers(left), y = Numbers(right);
  const Value blank = Blank(dtype, out);
  std::vector<double> wanted(static_cast<size_t>(blank.size()));
  for (int64_t flat = 0; flat < blank.size(); ++flat) {
    int64_t rest = flat, at_x = 0, at_y = 0, step_x = 1, step_y = 1;
    for (size_t i = 0; i < out.size(); ++i) {
      const int64_t n = out[out.size() - 1 - i], index = rest % n;
      rest /= n;
      at_x += extent(a, i) == 1 ? 0 : index * step_x;
      at_y += extent(b, i) == 1 ? 0 : index * step_y;
      step_x *= extent(a, i);
      step_y *= extent(b, i);
    }
    wanted[flat] = x[at_x] - y[at_y];
  }
  for (const CallOptions& options : {CallOptions{}, CallOptions{.in_place = true}, CallOptions{.tiles = 4}}) {
    const Outcome outcome = Kernels().Call("Sub", {}, {left, right}, {blank}, options);
    ASSERT_EQ(outcome.code, WEIR_OK) << outcome.message;
    ASSERT_EQ(Numbers(outcome.outputs[0]), wanted) << testing::PrintToString(a) << " - " << testing::PrintToString(b);
  }
}

TEST(Binary, BroadcastsEveryPattern) {
  const std::pair<Dims, Dims> pairs[] = {{{}, {}},
                                         {{5}, {}},
                                         {{}, {5}},
                                         {{5}, {1}},
                                         {{3, 4}, {4}},
                                         {{4}, {3, 4}},
                                         {{3, 4}, {3, 1}},
                                         {{3, 1}, {1, 4}},
                                         {{2, 3, 4}, {3, 1}},
                                         {{2, 1, 4, 1}, {1, 3, 1, 5}},
                                         {{1, 1}, {1, 1, 1}},
                                         {{0}, {1}},
                                         {{2, 0, 3}, {1, 1, 3}},
                                         {{2, 1, 3, 1, 2, 1}, {1, 2, 1, 3, 1, 2}},
                                         {{300, 257}, {257}},
                                         {{300, 257}, {300, 1}},
                                         {{70000}, {1}},
                                         {{70000}, {70000}}};
  for (const auto& [a, b] : pairs) {
    for (const uint32_t dtype : Present("Sub", {WEIR_FLOAT32, WEIR_INT32, WEIR_FLOAT16})) CheckBroadcast(a, b, dtype);
  }
}

TEST(Binary, ShapesThatDoNotFitAreNamed) {
  const Outcome outcome =
      Kernels().Call("AddV2", {}, {Of<float>({2}, {1, 2}), Of<float>({3}, {1, 2, 3})}, {Blank(WEIR_FLOAT32, {3})});
  EXPECT_EQ(outcome.code, WEIR_INVALID_ARGUMENT);
  EXPECT_EQ(outcome.message, "Incompatible shapes: [2] vs. [3]");
}

template <class T>
Outcome Ints(const char* op, std::vector<T> x, std::vector<T> y) {
  const auto n = static_cast<int64_t>(x.size());
  return Kernels().Call(op, {}, {Of<T>({n}, x), Of<T>({n}, y)}, {Blank(kDType<T>, {n})});
}

TEST(IntegerDivision, SignsFollowTheOp) {
  const std::vector<int32_t> x = {7, -7, 7, -7, 6, -6}, y = {2, 2, -2, -2, -3, 3};
  EXPECT_EQ(Elements<int32_t>(Ints<int32_t>("Div", x, y).outputs[0]), (std::vector<int32_t>{3, -3, -3, 3, -2, -2}));
  EXPECT_EQ(Elements<int32_t>(Ints<int32_t>("FloorDiv", x, y).outputs[0]),
            (std::vector<int32_t>{3, -4, -4, 3, -2, -2}));
  EXPECT_EQ(Elements<int32_t>(Ints<int32_t>("FloorMod", x, y).outputs[0]), (std::vector<int32_t>{1, 1, -1, -1, 0, 0}));
}

TEST(IntegerDivision, ByZeroIsAnError) {
  for (const char* op : {"Div", "FloorDiv", "FloorMod"}) {
    for (const size_t n : {1u, 40u}) {
      std::vector<int32_t> x(n, 5), y(n, 1);
      y[n - 1] = 0;
      const Outcome outcome = Ints<int32_t>(op, x, y);
      EXPECT_EQ(outcome.code, WEIR_INVALID_ARGUMENT) << op;
      EXPECT_EQ(outcome.message, "Integer division by zero");
      EXPECT_EQ(Ints<int64_t>(op, std::vector<int64_t>(n, 5), std::vector<int64_t>(n, 0)).code, WEIR_INVALID_ARGUMENT);
    }
  }
}

TEST(IntegerDivision, LeastNumberByMinusOneWraps) {
  const int32_t least = std::numeric_limits<int32_t>::min();
  EXPECT_EQ(Elements<int32_t>(Ints<int32_t>("Div", {least}, {-1}).outputs[0])[0], least);
  EXPECT_EQ(Elements<int32_t>(Ints<int32_t>("FloorDiv", {least}, {-1}).outputs[0])[0], least);
  EXPECT_EQ(Elements<int32_t>(Ints<int32_t>("FloorMod", {least}, {-1}).outputs[0])[0], 0);
}

TEST(Integers, ArithmeticWrapsAround) {
  const int64_t most = std::numeric_limits<int64_t>::max(), least = std::numeric_limits<int64_t>::min();
  EXPECT_EQ(Elements<int64_t>(Ints<int64_t>("AddV2", {most}, {1}).outputs[0])[0], least);
  EXPECT_EQ(Elements<int64_t>(Ints<int64_t>("Sub", {least}, {1}).outputs[0])[0], most);
  EXPECT_EQ(Elements<int64_t>(Ints<int64_t>("Mul", {least}, {-1}).outputs[0])[0], least);
  const Outcome neg = Kernels().Call("Neg", {}, {Of<int64_t>({2}, {least, 3})}, {Blank(WEIR_INT64, {2})});
  EXPECT_EQ(Elements<int64_t>(neg.outputs[0]), (std::vector<int64_t>{least, -3}));
}

TEST(Pow, IntegersAndTheirNegativeExponents) {
  EXPECT_EQ(Elements<int32_t>(Ints<int32_t>("Pow", {2, -3, 0, 5, 1}, {10, 3, 0, 0, 1000}).outputs[0]),
            (std::vector<int32_t>{1024, -27, 1, 1, 1}));
  const Outcome outcome = Ints<int32_t>("Pow", {2}, {-1});
  EXPECT_EQ(outcome.code, WEIR_INVALID_ARGUMENT);
  EXPECT_EQ(outcome.message, "Integers to negative integer powers are not allowed");
}

TEST(FloatRemainders, FollowTheDivisorsSign) {
  for (const uint32_t dtype : Present("FloorMod", kFloats)) {
    const Value x = AsType({5.5, -5.5, 5.5, -5.5, 4}, {5}, dtype), y = AsType({2, 2, -2, -2, 2}, {5}, dtype);
    ExpectNear(Kernels().Call("FloorMod", {}, {x, y}, {Blank(dtype, {5})}).outputs[0], {1.5, 0.5, -0.5, -1.5, 0}, 0,
               "FloorMod");
    ExpectNear(Kernels().Call("FloorDiv", {}, {x, y}, {Blank(dtype, {5})}).outputs[0], {2, -3, -3, 2, 2}, 0,
               "FloorDiv");
  }
}

TEST(Extremes, NaNWins) {
  const Value x = AsType({kNaN, 1, kNaN}, {3}, WEIR_FLOAT32), y = AsType({1, kNaN, kNaN}, {3}, WEIR_FLOAT32);
  for (const char* op : {"Maximum", "Minimum"}) {
    ExpectNear(Kernels().Call(op, {}, {x, y}, {Blank(WEIR_FLOAT32, {3})}).outputs[0], {kNaN, kNaN, kNaN}, 0, op);
  }
}

TEST(Gradients, TakePairsOfElementsOnly) {
  const Value six = AsType({1, 2, 3, 4, 5, 6}, {2, 3}, WEIR_FLOAT32),
              flat = AsType({1, 1, 1, 1, 1, 1}, {6}, WEIR_FLOAT32);
  for (const char* op : {"TanhGrad", "SigmoidGrad", "SqrtGrad", "RsqrtGrad", "ReciprocalGrad"}) {
    const Outcome good = Kernels().Call(op, {}, {six, flat}, {Blank(WEIR_FLOAT32, {2, 3})});
    EXPECT_EQ(good.code, WEIR_OK) << op << ": " << good.message;
    const Outcome bad = Kernels().Call(op, {}, {six, AsType({1}, {1}, WEIR_FLOAT32)}, {Blank(WEIR_FLOAT32, {2, 3})});
    EXPECT_EQ(bad.code, WEIR_INVALID_ARGUMENT) << op;
    EXPECT_EQ(bad.message, "The two arguments to a cwise op must have same number of elements, got 6 and 1");
  }
  const Outcome relu = Kernels().Call("ReluGrad", {}, {six, flat}, {Blank(WEIR_FLOAT32, {2, 3})});
  EXPECT_EQ(relu.code, WEIR_INVALID_ARGUMENT);
  EXPECT_NE(relu.message.find("must have the same size and shape.  Input 0: [2,3] != input 1: [6]"), std::string::npos)
      << relu.message;
}

TEST(Gradients, NoneComingInIsNoneGoingOut) {
  for (const char* op : {"SqrtGrad", "RsqrtGrad", "ReciprocalGrad"}) {
    const Outcome outcome = Kernels().Call(
        op, {}, {AsType({0, kInf}, {2}, WEIR_FLOAT32), AsType({0, 0}, {2}, WEIR_FLOAT32)}, {Blank(WEIR_FLOAT32, {2})});
    EXPECT_EQ(Elements<float>(outcome.outputs[0]), (std::vector<float>{0, 0})) << op;
  }
}

TEST(Comparison, EveryOpInEveryType) {
  const std::pair<const char*, std::vector<bool>> rows[] = {
      {"Equal", {false, true, false}},    {"NotEqual", {true, false, true}}, {"Less", {true, false, false}},
      {"LessEqual", {true, true, false}}, {"Greater", {false, false, true}}, {"GreaterEqual", {false, true, true}}};
  for (const auto& [op, wanted] : rows) {
    for (const uint32_t dtype : Present(op, kAll)) {
      const Outcome outcome =
          Kernels().Call(op, {}, {AsType({1, 2, 3}, {3}, dtype), AsType({2}, {1}, dtype)}, {Blank(WEIR_BOOL, {3})});
      ASSERT_EQ(outcome.code, WEIR_OK) << op << outcome.message;
      EXPECT_EQ(Elements<bool>(outcome.outputs[0]), wanted) << op << " type " << dtype;
    }
  }
}

TEST(Comparison, IncompatibleShapesCanMeanUnequal) {
  const std::vector<Value> inputs = {Of<float>({2}, {1, 2}), Of<float>({3}, {1, 2, 3})};
  EXPECT_EQ(Kernels().Call("Equal", {}, inputs, {Blank(WEIR_BOOL, {})}).code, WEIR_INVALID_ARGUMENT);
  const Attributes lenient = {{"incompatible_shape_error", Flag(false)}};
  EXPECT_EQ(Elements<bool>(Kernels().Call("Equal", lenient, inputs, {Blank(WEIR_BOOL, {})}).outputs[0]),
            std::vector<bool>{false});
  EXPECT_EQ(Elements<bool>(Kernels().Call("NotEqual", lenient, inputs, {Blank(WEIR_BOOL, {})}).outputs[0]),
            std::vector<bool>{true});
}

TEST(Logic, AnyNonZeroByteIsTrue) {
  Value x = Of<uint8_t>({4}, {0, 1, 2, 255}), y = Of<uint8_t>({4}, {1, 1, 0, 1});
  x.dtype = y.dtype = WEIR_BOOL;
  const auto at = [&](const char* op, std::vector<Value> inputs) {
    return Elements<uint8_t>(Kernels().Call(op, {}, std::move(inputs), {Blank(WEIR_BOOL, {4})}).outputs[0]);
  };
  EXPECT_EQ(at("LogicalAnd", {x, y}), (std::vector<uint8_t>{0, 1, 0, 1}));
  EXPECT_EQ(at("LogicalOr", {x, y}), (std::vector<uint8_t>{1, 1, 1, 1}));
  EXPECT_EQ(at("LogicalNot", {x}), (std::vector<uint8_t>{1, 0, 0, 0}));
}

TEST(Strings, AddCompareAndSelect) {
  const Value x = Strings({2}, {"a", "b"}), y = Strings({}, {"b"});
  const Attributes to_bool = {{"T", Type(WEIR_STRING)}, {"out", Type(WEIR_BOOL)}};
  const Attributes to_text = {{"T", Type(WEIR_STRING)}, {"out", Type(WEIR_STRING)}};
  EXPECT_EQ(Elements<bool>(Kernels().CallDynamic("Equal", to_bool, {x, y}).outputs[0]),
            (std::vector<bool>{false, true}));
  EXPECT_EQ(Elements<bool>(Kernels().CallDynamic("NotEqual", to_bool, {x, y}).outputs[0]),
            (std::vector<bool>{true, false}));
  EXPECT_EQ(Kernels().CallDynamic("Add", to_text, {x, y}).outputs[0].texts, (std::vector<std::string>{"ab", "bb"}));
  Value condition = Of<boolean>({2}, {true, false});
  EXPECT_EQ(Kernels().CallDynamic("SelectV2", to_text, {condition, x, y}).outputs[0].texts,
            (std::vector<std::string>{"a", "b"}));
  const Value rows = Strings({2, 2}, {"a", "b", "c", "d"}), others = Strings({2, 2}, {"e", "f", "g", "h"});
  EXPECT_EQ(Kernels().CallDynamic("Select", to_text, {condition, rows, others}).outputs[0].texts,
            (std::vector<std::string>{"a", "b", "g", "h"}));
  const Outcome bad = Kernels().CallDynamic("Equal", to_bool, {x, Strings({3}, {"a", "b", "c"})});
  EXPECT_EQ(bad.message, "Incompatible shapes: [2] vs. [3]");
}

}  // namespace
}  // namespace weir::sdk::test
