// Reductions, arg reductions and scans against walks over indices.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "tests/unit/sdk/plugin_harness.h"

namespace weir::sdk::test {
namespace {

using Dims = std::vector<int64_t>;

Outcome Reduce(const char* op, const Value& x, const std::vector<int32_t>& axes, Dims out,
               const CallOptions& options = {}) {
  return Kernels().Call(op, {}, {x, Of<int32_t>({static_cast<int64_t>(axes.size())}, axes)},
                        {Blank(x.dtype, std::move(out))}, options);
}

struct Reducer {
  const char* op;
  double start;
  std::function<double(double, double)> combine;
};
const Reducer kReducers[] = {{"Sum", 0, std::plus<double>()},
                             {"Mean", 0, std::plus<double>()},
                             {"Prod", 1, std::multiplies<double>()},
                             {"Max", -kInf, [](double a, double b) { return std::max(a, b); }},
                             {"Min", kInf, [](double a, double b) { return std::min(a, b); }}};

/// Every op over one shape and set of axes.
void Check(const Dims& dims, const std::vector<int32_t>& axes, uint32_t dtype) {
  std::vector<bool> reduced(dims.size());
  for (const int32_t axis : axes)
    reduced[static_cast<size_t>(axis < 0 ? axis + static_cast<int32_t>(dims.size()) : axis)] = true;
  Dims out;
  int64_t count = 1;
  for (size_t i = 0; i < dims.size(); ++i) reduced[i] ? void(count *= dims[i]) : out.push_back(dims[i]);
  Value x = Blank(dtype, dims);
  std::vector<double> numbers(static_cast<size_t>(x.size()));
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = i % 97 == 0 ? 2 : 1;
  x = AsType(numbers, dims, dtype);
  for (const Reducer& reducer : kReducers) {
    if (Kernels().Find(reducer.op, {{"T", Type(dtype)}}) == nullptr) continue;
    const Value blank = Blank(dtype, out);
    std::vector<double> wanted(static_cast<size_t>(blank.size()), reducer.start);
    for (size_t flat = 0; flat < numbers.size(); ++flat) {
      int64_t rest = static_cast<int64_t>(flat), at = 0, step = 1;
      for (size_t i = dims.size(); i-- > 0;) {
        const int64_t index = rest % dims[i];
        rest /= dims[i];
        if (reduced[i]) continue;
        at += index * step;
        step *= dims[i];
      }
      wanted[at] = reducer.combine(wanted[at], numbers[flat]);
    }
    if (std::string(reducer.op) == "Mean") {
      const bool whole = dtype == WEIR_INT32 || dtype == WEIR_INT64;
      for (double& v : wanted) v = whole ? std::trunc(v / static_cast<double>(count)) : v / static_cast<double>(count);
    }
    for (const CallOptions& options : {CallOptions{}, CallOptions{.constants = false}, CallOptions{.tiles = 3}}) {
      const Outcome outcome = Reduce(reducer.op, x, axes, out, options);
      ASSERT_EQ(outcome.code, WEIR_OK) << reducer.op << ": " << outcome.message;
      const std::vector<double> got = Numbers(outcome.outputs[0]);
      for (size_t i = 0; i < wanted.size(); ++i) {
        const double tolerance = dtype == WEIR_FLOAT16 ? 1e-3 : 1e-6;
        ASSERT_NEAR(got[i], wanted[i], tolerance * std::fabs(wanted[i]))
            << reducer.op << testing::PrintToString(dims) << testing::PrintToString(axes) << " type " << dtype;
      }
    }
  }
}

TEST(Reduce, ShapesAxesAndTypes) {
  const std::pair<Dims, std::vector<int32_t>> rows[] = {{{}, {}},
                                                        {{7}, {0}},
                                                        {{7}, {}},
                                                        {{1000}, {0}},
                                                        {{3, 5}, {0}},
                                                        {{3, 5}, {1}},
                                                        {{3, 5}, {-1}},
                                                        {{3, 5}, {1, 0}},
                                                        {{3, 5}, {}},
                                                        {{2, 3, 4}, {1}},
                                                        {{2, 3, 4}, {0, 2}},
                                                        {{2, 3, 4}, {0}},
                                                        {{2, 3, 4}, {-2, -1}},
                                                        {{2, 1, 4}, {1}},
                                                        {{5, 2, 3, 4, 2}, {1, 3}},
                                                        {{5, 2, 3, 4, 2}, {0, 2, 4}},
                                                        {{40, 600}, {0}},
                                                        {{600, 40}, {1}},
                                                        {{3, 50, 700}, {1}},
                                                        {{300, 300}, {0}},
                                                        {{300, 300}, {1}}};
  for (const auto& [dims, axes] : rows) {
    for (const uint32_t dtype : {WEIR_FLOAT32, WEIR_FLOAT64, WEIR_INT32, WEIR_INT64, WEIR_FLOAT16, WEIR_COMPLEX64}) {
      Check(dims, axes, dtype);
    }
  }
}

TEST(Reduce, OverNothing) {
  const Value x = Blank(WEIR_FLOAT32, {0, 2});
  const auto at = [&](const char* op) { return Numbers(Reduce(op, x, {0}, {2}).outputs[0]); };
  EXPECT_EQ(at("Sum"), (std::vector<double>{0, 0}));
  EXPECT_EQ(at("Prod"), (std::vector<double>{1, 1}));
  EXPECT_EQ(at("Max"), (std::vector<double>{-kInf, -kInf}));
  EXPECT_EQ(at("Min"), (std::vector<double>{kInf, kInf}));
  EXPECT_TRUE(std::isnan(at("Mean")[0]));
  EXPECT_EQ(Numbers(Reduce("Mean", Blank(WEIR_INT32, {0, 2}), {0}, {2}).outputs[0]), (std::vector<double>{0, 0}));
  EXPECT_EQ(Elements<int32_t>(Reduce("Max", Blank(WEIR_INT32, {0}), {0}, {}).outputs[0])[0],
            std::numeric_limits<int32_t>::min());
  EXPECT_EQ(Reduce("Sum", x, {1}, {0}).code, WEIR_OK);
}

TEST(Reduce, BadAxesAreNamed) {
  const Value x = AsType({1, 2}, {1, 2}, WEIR_FLOAT32);
  for (const bool constants : {true, false}) {
    const Outcome outside = Reduce("Sum", x, {2}, {1}, {.constants = constants});
    EXPECT_EQ(outside.code, WEIR_INVALID_ARGUMENT);
    EXPECT_EQ(outside.message, "Invalid reduction dimension (2 for input with 2 dimension(s)");
    EXPECT_EQ(Reduce("Sum", x, {-3}, {1}, {.constants = constants}).code, WEIR_INVALID_ARGUMENT);
    const Outcome twice = Reduce("Sum", x, {0, -2}, {2}, {.constants = constants});
    EXPECT_EQ(twice.message, "Invalid reduction arguments: Axes contains duplicate dimension: 0");
  }
  EXPECT_EQ(Reduce("Sum", x, {0}, {1}).code, WEIR_INVALID_ARGUMENT);  // an output of the wrong size is never written
}

TEST(Reduce, LongSumsStayAccurate) {
  const int64_t n = 1 << 20;
  std::vector<double> numbers(static_cast<size_t>(n), 0.1);
  const double wanted = static_cast<double>(0.1f) * static_cast<double>(n);
  EXPECT_NEAR(Numbers(Reduce("Sum", AsType(numbers, {n}, WEIR_FLOAT32), {0}, {}).outputs[0])[0], wanted, wanted * 3e-7);
  EXPECT_NEAR(Numbers(Reduce("Sum", AsType(numbers, {n / 4, 4}, WEIR_FLOAT32), {0}, {4}).outputs[0])[2], wanted / 4,
              wanted / 4 * 3e-7);
}

TEST(Reduce, NaNAndIntegersThatOverflow) {
  EXPECT_TRUE(std::isnan(Numbers(Reduce("Max", AsType({1, kNaN, 2}, {3}, WEIR_FLOAT32), {0}, {}).outputs[0])[0]));
  EXPECT_TRUE(std::isnan(Numbers(Reduce("Min", AsType({1, kNaN, 2}, {3, 1}, WEIR_FLOAT32), {0}, {1}).outputs[0])[0]));
  const int32_t most = std::numeric_limits<int32_t>::max();
  EXPECT_EQ(Elements<int32_t>(Reduce("Sum", Of<int32_t>({2}, {most, 1}), {0}, {}).outputs[0])[0],
            std::numeric_limits<int32_t>::min());
  EXPECT_EQ(Elements<int32_t>(Reduce("Mean", Of<int32_t>({2}, {most, most}), {0}, {}).outputs[0])[0], most);
  EXPECT_EQ(Elements<int32_t>(Reduce("Mean", Of<int32_t>({2}, {-3, -4}), {0}, {}).outputs[0])[0], -3);  // towards zero
}

TEST(Reduce, AllAndAny) {
  const Value x = Of<boolean>({2, 3}, {1, 1, 1, 0, 1, 0});
  EXPECT_EQ(Elements<bool>(Reduce("All", x, {1}, {2}).outputs[0]), (std::vector<bool>{true, false}));
  EXPECT_EQ(Elements<bool>(Reduce("Any", x, {0}, {3}).outputs[0]), (std::vector<bool>{true, true, true}));
  EXPECT_EQ(Elements<bool>(Reduce("All", Of<boolean>({0}, {}), {0}, {}).outputs[0]), std::vector<bool>{true});
  EXPECT_EQ(Elements<bool>(Reduce("Any", Of<boolean>({0}, {}), {0}, {}).outputs[0]), std::vector<bool>{false});
}

Outcome Arg(const char* op, const Value& x, int32_t axis, Dims out, uint32_t type = WEIR_INT64) {
  return Kernels().Call(op, {{"output_type", Type(type)}}, {x, Scalar<int32_t>(axis)}, {Blank(type, std::move(out))});
}

TEST(ArgReduce, FirstExtremeAlongEitherAxis) {
  const Value x = AsType({1, 5, 5, 7, 0, 7}, {2, 3}, WEIR_FLOAT32);
  EXPECT_EQ(Elements<int64_t>(Arg("ArgMax", x, 1, {2}).outputs[0]), (std::vector<int64_t>{1, 0}));
  EXPECT_EQ(Elements<int32_t>(Arg("ArgMax", x, 0, {3}, WEIR_INT32).outputs[0]), (std::vector<int32_t>{1, 0, 1}));
  EXPECT_EQ(Elements<int64_t>(Arg("ArgMin", x, -1, {2}).outputs[0]), (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(Elements<int64_t>(Arg("ArgMax", Of<int64_t>({3}, {-5, -2, -2}), 0, {}).outputs[0])[0], 1);
  EXPECT_EQ(Elements<int64_t>(Arg("ArgMax", AsType({kNaN, 1, kNaN}, {3}, WEIR_FLOAT32), 0, {}).outputs[0])[0], 1);
  EXPECT_EQ(Arg("ArgMax", x, 2, {2}).code, WEIR_INVALID_ARGUMENT);
  EXPECT_NE(Arg("ArgMax", Blank(WEIR_FLOAT32, {2, 0}), 1, {2}).message.find("is empty in shape [2,0]"),
            std::string::npos);
}

Outcome Scan(const char* op, const Value& x, int32_t axis, bool exclusive, bool reverse, bool in_place = false) {
  return Kernels().Call(op, {{"exclusive", Flag(exclusive)}, {"reverse", Flag(reverse)}}, {x, Scalar<int32_t>(axis)},
                        {Blank(x.dtype, x.dims)}, {.in_place = in_place});
}

TEST(Scan, DirectionsAxesAndTypes) {
  for (const uint32_t dtype : {WEIR_FLOAT32, WEIR_INT32, WEIR_FLOAT16}) {
    if (Kernels().Find("Cumsum", {{"T", Type(dtype)}}) == nullptr) continue;
    const Value x = AsType({1, 2, 3, 4, 5, 6}, {2, 3}, dtype);
    for (const bool in_place : {false, true}) {
      EXPECT_EQ(Numbers(Scan("Cumsum", x, 1, false, false, in_place).outputs[0]),
                (std::vector<double>{1, 3, 6, 4, 9, 15}));
      EXPECT_EQ(Numbers(Scan("Cumsum", x, 0, false, false, in_place).outputs[0]),
                (std::vector<double>{1, 2, 3, 5, 7, 9}));
      EXPECT_EQ(Numbers(Scan("Cumsum", x, -1, true, false, in_place).outputs[0]),
                (std::vector<double>{0, 1, 3, 0, 4, 9}));
      EXPECT_EQ(Numbers(Scan("Cumsum", x, 1, false, true, in_place).outputs[0]),
                (std::vector<double>{6, 5, 3, 15, 11, 6}));
      EXPECT_EQ(Numbers(Scan("Cumprod", x, 1, true, true, in_place).outputs[0]),
                (std::vector<double>{6, 3, 1, 30, 6, 1}));
    }
  }
  EXPECT_EQ(Scan("Cumsum", AsType({1}, {1}, WEIR_FLOAT32), 1, false, false).message,
            "ScanOp: Expected scan axis in the range [-1, 1), but got 1");
}

}  // namespace
}  // namespace weir::sdk::test
