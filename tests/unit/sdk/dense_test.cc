// Matrix products, biases, softmax and cross entropy.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <limits>

#include "tests/unit/sdk/plugin_harness.h"

namespace weir::sdk::test {
namespace {

using Dims = std::vector<int64_t>;

std::vector<double> Pattern(int64_t n, int seed) {
  std::vector<double> x(static_cast<size_t>(n));
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<double>((static_cast<int>(i) * 7 + seed) % 5) - 2;
  return x;
}

/// Small whole numbers, so that every type is exact.
void CheckMatMul(int64_t m, int64_t n, int64_t k, bool ta, bool tb, uint32_t dtype) {
  const std::vector<double> a = Pattern(m * k, 1), b = Pattern(k * n, 3);
  std::vector<double> wanted(static_cast<size_t>(m * n), 0);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t p = 0; p < k; ++p)
        wanted[i * n + j] += a[ta ? p * m + i : i * k + p] * b[tb ? j * k + p : p * n + j];
    }
  }
  const Outcome outcome =
      Kernels().Call("MatMul", {{"transpose_a", Flag(ta)}, {"transpose_b", Flag(tb)}},
                     {AsType(a, ta ? Dims{k, m} : Dims{m, k}, dtype), AsType(b, tb ? Dims{n, k} : Dims{k, n}, dtype)},
                     {Blank(dtype, {m, n})});
  ASSERT_EQ(outcome.code, WEIR_OK) << outcome.message;
  ASSERT_EQ(Numbers(outcome.outputs[0]), wanted) << m << "x" << n << "x" << k << " " << ta << tb << " type " << dtype;
}

TEST(MatMul, SizesTranspositionsAndTypes) {
  const int64_t sizes[][3] = {{1, 1, 1}, {1, 9, 5},    {9, 1, 5},    {2, 3, 4},   {0, 3, 4},
                              {3, 4, 0}, {17, 19, 23}, {33, 70, 40}, {1, 70, 40}, {70, 1, 40}};
  for (const auto& [m, n, k] : sizes) {
    for (const int flags : {0, 1, 2, 3}) {
      for (const uint32_t dtype : {WEIR_FLOAT32, WEIR_FLOAT64, WEIR_INT32, WEIR_INT64, WEIR_FLOAT16, WEIR_COMPLEX64}) {
        if (Kernels().Find("MatMul", {{"T", Type(dtype)}}) == nullptr) continue;
        CheckMatMul(m, n, k, flags & 1, flags & 2, dtype);
      }
    }
  }
  for (const uint32_t dtype : {WEIR_BFLOAT16, WEIR_COMPLEX128}) {
    if (Kernels().Find("MatMul", {{"T", Type(dtype)}}) != nullptr) CheckMatMul(20, 30, 17, true, false, dtype);
  }
  CheckMatMul(130, 300, 520, false, true, WEIR_FLOAT32);  // several blocks in each direction
}

TEST(MatMul, ShapesThatDoNotFitAreNamed) {
  const Value a = AsType(Pattern(6, 0), {2, 3}, WEIR_FLOAT32), b = AsType(Pattern(8, 0), {2, 4}, WEIR_FLOAT32);
  const Outcome sizes = Kernels().Call("MatMul", {}, {a, b}, {Blank(WEIR_FLOAT32, {2, 4})});
  EXPECT_EQ(sizes.code, WEIR_INVALID_ARGUMENT);
  EXPECT_EQ(sizes.message, "Matrix size-incompatible: In[0]: [2,3], In[1]: [2,4]");
  const Outcome rank =
      Kernels().Call("MatMul", {}, {AsType(Pattern(6, 0), {6}, WEIR_FLOAT32), b}, {Blank(WEIR_FLOAT32, {2, 4})});
  EXPECT_EQ(rank.message, "In[0] is not a matrix. Instead it has shape [6]");
}

TEST(BatchMatMul, BroadcastsBatchesAndFoldsShared) {
  const auto batch = [](Dims xb, Dims yb, Dims ob, bool adj_x) {
    const int64_t m = 3, k = 4, n = 5;
    Dims xd = xb, yd = yb, od = ob;
    xd.insert(xd.end(), {adj_x ? k : m, adj_x ? m : k});
    yd.insert(yd.end(), {k, n});
    od.insert(od.end(), {m, n});
    Value x = Blank(WEIR_FLOAT32, xd), y = Blank(WEIR_FLOAT32, yd);
    const Value blank = Blank(WEIR_FLOAT32, od);
    const std::vector<double> a = Pattern(x.size(), 1), b = Pattern(y.size(), 2);
    std::vector<double> wanted(static_cast<size_t>(blank.size()), 0);
    const int64_t batches = blank.size() / (m * n);
    for (int64_t at = 0; at < batches; ++at) {
      const auto offset = [&](const Dims& dims, int64_t size) {
        int64_t rest = at, index = 0, step = 1;
        for (size_t i = ob.size(); i-- > 0;) {
          const int64_t here = rest % ob[i];
          rest /= ob[i];
          const size_t missing = ob.size() - dims.size();
          if (i < missing || dims[i - missing] == 1) continue;
          index += here * step;
          step *= dims[i - missing];
        }
        return index * size;
      };
      const int64_t ax = offset(xb, m * k), by = offset(yb, k * n);
      for (int64_t i = 0; i < m; ++i) {
        for (int64_t j = 0; j < n; ++j) {
          for (int64_t p = 0; p < k; ++p)
            wanted[(at * m + i) * n + j] += a[ax + (adj_x ? p * m + i : i * k + p)] * b[by + p * n + j];
        }
      }
    }
    const Outcome outcome = Kernels().Call("BatchMatMulV2", {{"adj_x", Flag(adj_x)}},
                                           {AsType(a, xd, WEIR_FLOAT32), AsType(b, yd, WEIR_FLOAT32)}, {blank});
    ASSERT_EQ(outcome.code, WEIR_OK) << outcome.message;
    EXPECT_EQ(Numbers(outcome.outputs[0]), wanted) << testing::PrintToString(xb) << testing::PrintToString(yb) << adj_x;
  };
  for (const bool adj_x : {false, true}) {
    batch({}, {}, {}, adj_x);
    batch({2}, {2}, {2}, adj_x);
    batch({6}, {1}, {6}, adj_x);
    batch({6}, {}, {6}, adj_x);
    batch({1}, {3}, {3}, adj_x);
    batch({2, 1}, {3}, {2, 3}, adj_x);
    batch({2, 3}, {2, 1}, {2, 3}, adj_x);
  }
}

TEST(BatchMatMul, AdjointConjugates) {
  if (Kernels().Find("BatchMatMul", {{"T", Type(WEIR_COMPLEX64)}}) == nullptr)
    GTEST_SKIP() << "short element type lists";
  const Value x = Of<complex64>({1, 1, 2}, {{1, 2}, {3, -1}}), y = Of<complex64>({1, 1, 1}, {{0, 1}});
  const Outcome outcome = Kernels().Call("BatchMatMul", {{"adj_x", Flag(true)}, {"adj_y", Flag(true)}}, {x, y},
                                         {Blank(WEIR_COMPLEX64, {1, 2, 1})});
  ASSERT_EQ(outcome.code, WEIR_OK) << outcome.message;
  EXPECT_EQ(Elements<complex64>(outcome.outputs[0]),
            (std::vector<complex64>{complex64(1, -2) * complex64(0, -1), complex64(3, 1) * complex64(0, -1)}));
}

TEST(MatMul, DeclaresItsWork) {
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

TEST(Bias, AddsAlongChannelsInBothFormats) {
  for (const uint32_t dtype : {WEIR_FLOAT32, WEIR_INT32, WEIR_BFLOAT16}) {
    if (Kernels().Find("BiasAdd", {{"T", Type(dtype)}}) == nullptr) continue;
    const Value x = AsType({1, 2, 3, 4, 5, 6, 7, 8}, {2, 2, 2}, dtype), b = AsType({10, 20}, {2}, dtype);
    for (const bool in_place : {false, true}) {
      const CallOptions options{.in_place = in_place};
      EXPECT_EQ(Numbers(Kernels().Call("BiasAdd", {}, {x, b}, {Blank(dtype, {2, 2, 2})}, options).outputs[0]),
                (std::vector<double>{11, 22, 13, 24, 15, 26, 17, 28}));
      EXPECT_EQ(
          Numbers(Kernels()
                      .Call("BiasAdd", {{"data_format", Text("NCHW")}}, {x, b}, {Blank(dtype, {2, 2, 2})}, options)
                      .outputs[0]),
          (std::vector<double>{11, 12, 23, 24, 15, 16, 27, 28}));
    }
    EXPECT_EQ(Numbers(Kernels().Call("BiasAddGrad", {}, {x}, {Blank(dtype, {2})}).outputs[0]),
              (std::vector<double>{16, 20}));
    EXPECT_EQ(
        Numbers(Kernels().Call("BiasAddGrad", {{"data_format", Text("NCHW")}}, {x}, {Blank(dtype, {2})}).outputs[0]),
        (std::vector<double>{14, 22}));
  }
  const Value x = AsType({1, 2}, {1, 2}, WEIR_FLOAT32);
  EXPECT_EQ(Kernels().Call("BiasAdd", {}, {x, AsType({1}, {1}, WEIR_FLOAT32)}, {Blank(WEIR_FLOAT32, {1, 2})}).code,
            WEIR_INVALID_ARGUMENT);
  EXPECT_EQ(Kernels().Call("BiasAdd", {}, {AsType({1}, {1}, WEIR_FLOAT32), x}, {Blank(WEIR_FLOAT32, {1})}).code,
            WEIR_INVALID_ARGUMENT);
}

std::vector<double> SoftmaxOf(const std::vector<double>& x, int64_t classes, bool log) {
  std::vector<double> y(x.size());
  for (size_t row = 0; row < x.size(); row += static_cast<size_t>(classes)) {
    double largest = -kInf, sum = 0;
    for (int64_t i = 0; i < classes; ++i) largest = std::max(largest, x[row + i]);
    for (int64_t i = 0; i < classes; ++i) sum += std::exp(x[row + i] - largest);
    for (int64_t i = 0; i < classes; ++i) {
      y[row + i] = log ? x[row + i] - largest - std::log(sum) : std::exp(x[row + i] - largest) / sum;
    }
  }
  return y;
}

TEST(Softmax, RowsOfAnyWidthInEveryType) {
  for (const int64_t classes : {1, 3, 10, 33}) {
    std::vector<double> x(static_cast<size_t>(4 * classes));
    for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<double>(i % 7) - 3;
    for (const char* op : {"Softmax", "LogSoftmax"}) {
      const std::vector<double> wanted = SoftmaxOf(x, classes, std::string(op) == "LogSoftmax");
      for (const uint32_t dtype : {WEIR_FLOAT32, WEIR_FLOAT64, WEIR_FLOAT16, WEIR_BFLOAT16}) {
        if (Kernels().Find(op, {{"T", Type(dtype)}}) == nullptr) continue;
        for (const bool in_place : {false, true}) {
          const Outcome outcome = Kernels().Call(op, {}, {AsType(x, {2, 2, classes}, dtype)},
                                                 {Blank(dtype, {2, 2, classes})}, {.in_place = in_place});
          ASSERT_EQ(outcome.code, WEIR_OK) << outcome.message;
          const std::vector<double> got = Numbers(outcome.outputs[0]);
          const double tolerance = dtype == WEIR_BFLOAT16 ? 2e-2 : dtype == WEIR_FLOAT16 ? 2e-3 : 1e-6;
          for (size_t i = 0; i < got.size(); ++i)
            ASSERT_NEAR(got[i], wanted[i], tolerance * std::max(1.0, std::fabs(wanted[i])))
                << op << " type " << dtype << " [" << i << "]";
        }
      }
    }
  }
}

TEST(Softmax, LargeLogitsAndEmptyRows) {
  const Outcome outcome = Kernels().Call("Softmax", {}, {AsType({1000, 1000, -1000, 0}, {2, 2}, WEIR_FLOAT32)},
                                         {Blank(WEIR_FLOAT32, {2, 2})});
  EXPECT_EQ(Elements<float>(outcome.outputs[0]), (std::vector<float>{0.5, 0.5, 0, 1}));
  EXPECT_EQ(Kernels().Call("Softmax", {}, {Blank(WEIR_FLOAT32, {3, 0})}, {Blank(WEIR_FLOAT32, {3, 0})}).code, WEIR_OK);
  EXPECT_EQ(Kernels().Call("Softmax", {}, {Blank(WEIR_FLOAT32, {})}, {Blank(WEIR_FLOAT32, {})}).code,
            WEIR_INVALID_ARGUMENT);
}

TEST(CrossEntropy, DenseLabelsWithBroadcasting) {
  const std::vector<double> logits = {1, 2, 3, 0, -1, 1}, labels = {0, 0, 1, 0.5, 0.25, 0.25};
  const std::vector<double> soft = SoftmaxOf(logits, 3, false), logs = SoftmaxOf(logits, 3, true);
  for (const uint32_t dtype : {WEIR_FLOAT32, WEIR_FLOAT64, WEIR_FLOAT16}) {
    if (Kernels().Find("SoftmaxCrossEntropyWithLogits", {{"T", Type(dtype)}}) == nullptr) continue;
    for (const bool in_place : {false, true}) {
      const Outcome outcome = Kernels().Call("SoftmaxCrossEntropyWithLogits", {},
                                             {AsType(logits, {2, 3}, dtype), AsType(labels, {2, 3}, dtype)},
                                             {Blank(dtype, {2}), Blank(dtype, {2, 3})}, {.in_place = in_place});
      ASSERT_EQ(outcome.code, WEIR_OK) << outcome.message;
      const std::vector<double> loss = Numbers(outcome.outputs[0]), gradient = Numbers(outcome.outputs[1]);
      for (size_t row = 0; row < 2; ++row) {
        double wanted = 0;
        for (size_t i = 0; i < 3; ++i) wanted -= labels[row * 3 + i] * logs[row * 3 + i];
        EXPECT_NEAR(loss[row], wanted, dtype == WEIR_FLOAT16 ? 2e-3 : 1e-6);
      }
      for (size_t i = 0; i < 6; ++i) EXPECT_NEAR(gradient[i], soft[i] - labels[i], dtype == WEIR_FLOAT16 ? 2e-3 : 1e-6);
    }
  }
  const Outcome shared = Kernels().Call("SoftmaxCrossEntropyWithLogits", {},
                                        {AsType({1, 2, 3}, {1, 3}, WEIR_FLOAT32), AsType(labels, {2, 3}, WEIR_FLOAT32)},
                                        {Blank(WEIR_FLOAT32, {2}), Blank(WEIR_FLOAT32, {2, 3})});
  ASSERT_EQ(shared.code, WEIR_OK) << shared.message;
  EXPECT_NEAR(shared.outputs[1].data<float>()[3], soft[0] - 0.5, 1e-6);
  EXPECT_EQ(Kernels()
                .Call("SoftmaxCrossEntropyWithLogits", {},
                      {AsType(logits, {2, 3}, WEIR_FLOAT32), AsType(labels, {3, 2}, WEIR_FLOAT32)},
                      {Blank(WEIR_FLOAT32, {2}), Blank(WEIR_FLOAT32, {2, 3})})
                .code,
            WEIR_INVALID_ARGUMENT);
}

TEST(CrossEntropy, SparseLabelsAreChecked) {
  const std::vector<double> logits = {1, 2, 3, 0, -1, 1};
  const std::vector<double> soft = SoftmaxOf(logits, 3, false), logs = SoftmaxOf(logits, 3, true);
  const auto call = [&](const Value& labels) {
    return Kernels().Call("SparseSoftmaxCrossEntropyWithLogits", {{"Tlabels", Type(labels.dtype)}},
                          {AsType(logits, {2, 3}, WEIR_FLOAT32), labels},
                          {Blank(WEIR_FLOAT32, {2}), Blank(WEIR_FLOAT32, {2, 3})});
  };
  for (const Value& labels : {Of<int32_t>({2}, {2, 0}), Of<int64_t>({2}, {2, 0})}) {
    const Outcome outcome = call(labels);
    ASSERT_EQ(outcome.code, WEIR_OK) << outcome.message;
    EXPECT_NEAR(outcome.outputs[0].data<float>()[0], -logs[2], 1e-6);
    EXPECT_NEAR(outcome.outputs[0].data<float>()[1], -logs[3], 1e-6);
    EXPECT_NEAR(outcome.outputs[1].data<float>()[2], soft[2] - 1, 1e-6);
    EXPECT_NEAR(outcome.outputs[1].data<float>()[4], soft[4], 1e-6);
  }
  const Outcome outside = call(Of<int64_t>({2}, {0, 3}));
  EXPECT_EQ(outside.code, WEIR_INVALID_ARGUMENT);
  EXPECT_EQ(outside.message, "Received a label value of 3 which is outside the valid range of [0, 3): label 1");
  EXPECT_EQ(call(Of<int64_t>({2}, {-1, 0})).code, WEIR_INVALID_ARGUMENT);
  EXPECT_EQ(call(Of<int64_t>({3}, {0, 0, 0})).code, WEIR_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace weir::sdk::test
