// NaN is NaN and an infinity an infinity in every kernel set and at every batch, as IEEE arithmetic and TensorFlow 2.17
// have them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "core/session/session.h"
#include "tests/support/text_graph.h"

namespace weir::testing {
namespace {

using Numbers = std::vector<double>;
using Rows = std::function<Numbers(const Numbers&)>;  // of one row

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

/// The runtime with this kernel set alone; with kernels_eigen beside it where asked, for the ops that it lacks.
std::shared_ptr<session::Runtime> SetOf(const std::string& set, bool beside_eigen = false) {
  plugin::LoadOptions options;
  for (const char* other : {"kernels_eigen", "kernels_onednn", "kernels_openblas"}) {
    if (other != set && !(beside_eigen && std::string(other) == "kernels_eigen")) options.deny.push_back(other);
  }
  Result<std::shared_ptr<session::Runtime>> runtime = session::Runtime::Load(options);
  EXPECT_TRUE(runtime.ok()) << runtime.status().ToString();
  return runtime.ok() ? *runtime : nullptr;
}

/// Small numbers in [rows, columns], with NaN and infinities of each kind in the rows, counted from `kind`.
Numbers Strange(int64_t rows, int64_t columns, int kind) {
  Numbers x;
  for (int64_t r = 0; r < rows; ++r) {
    Numbers row;
    for (int64_t i = 0; i < columns; ++i) {
      row.push_back(static_cast<float>(std::sin(0.7 * static_cast<double>(r * columns + i) + kind)));
    }
    const auto middle = static_cast<size_t>(columns / 2);
    switch ((r + kind) % 8) {
      case 0:
        row.front() = kNan;
        break;
      case 1:
        row.back() = kInf;
        break;
      case 2:
        row[middle] = -kInf;
        break;
      case 3:
        std::fill(row.begin(), row.end(), -kInf);
        break;
      case 4:
        row[middle] = kInf;
        row.front() = -kInf;
        break;
      case 5:
        row.back() = kNan;
        row.front() = 0;
        break;
      case 6:
        std::fill(row.begin(), row.end(), kNan);
        break;
      default:
        row[middle] = 0;  // finite
    }
    x.insert(x.end(), row.begin(), row.end());
  }
  return x;
}

Tensor Floats(const Shape& shape, const Numbers& numbers) {
  Tensor tensor = *Tensor::Make(DType::kFloat, shape);
  for (size_t i = 0; i < numbers.size(); ++i) tensor.mutable_as<float>()[i] = static_cast<float>(numbers[i]);
  return tensor;
}

/// y of the op on these operands, all fed but for those after `fed`, which are constants.
Result<Tensor> Compute(const std::shared_ptr<session::Runtime>& runtime, const std::string& op,
                       const std::vector<Tensor>& operands, op::AttrList attrs, size_t fed = 9) {
  std::vector<NodeLine> nodes;
  std::vector<session::Feed> feeds;
  NodeLine y{"y", op, {}, std::move(attrs)};
  for (size_t i = 0; i < operands.size(); ++i) {
    const std::string name = "x" + std::to_string(i);
    y.inputs.push_back(name);
    if (i < fed && operands[i].dtype() == DType::kFloat) {
      nodes.push_back(Placeholder(name, PartialShape(operands[i].shape())));
      feeds.emplace_back(name, operands[i]);
    } else {
      nodes.push_back(Const(name, operands[i]));
    }
  }
  nodes.push_back(std::move(y));
  WEIR_ASSIGN(const graph::Graph graph, MakeGraph(nodes));
  WEIR_ASSIGN(const std::unique_ptr<session::Session> session, session::Session::Make(runtime, graph));
  const std::vector<std::string> fetches = {"y"};
  WEIR_ASSIGN(std::vector<Tensor> fetched, session->Run(feeds, fetches, {}));
  return fetched[0];
}

bool Same(double got, double wanted) {
  if (std::isnan(wanted)) return std::isnan(got);
  if (std::isinf(wanted)) return got == wanted;
  return std::abs(got - wanted) <= 2e-5 * (1 + std::abs(wanted));
}

void ExpectSame(const Result<Tensor>& got, const Numbers& wanted) {
  ASSERT_TRUE(got.ok()) << got.status().ToString();
  ASSERT_EQ(static_cast<size_t>(got->elements()), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) {
    const double value =
        got->dtype() == DType::kFloat ? got->as<float>()[i] : static_cast<double>(got->as<int64_t>()[i]);
    ASSERT_TRUE(Same(value, wanted[i])) << "element " << i << ": " << value << ", wanted " << wanted[i];
  }
}

bool Covers(const session::Runtime& runtime, const std::string& op) {
  const auto entries = runtime.plugins->kernels().ForOp(op);
  return !entries.empty();
}

Numbers Softmax(const Numbers& x) {
  double largest = -kInf, sum = 0;
  for (const double v : x) largest = v > largest || std::isnan(v) ? v : largest;
  Numbers y;
  for (const double v : x) sum += y.emplace_back(std::exp(v - largest));
  for (double& v : y) v /= sum;
  return y;
}
Numbers LogSoftmax(const Numbers& x) {
  double largest = -kInf, sum = 0;
  for (const double v : x) largest = v > largest || std::isnan(v) ? v : largest;
  for (const double v : x) sum += std::exp(v - largest);
  Numbers y;
  for (const double v : x) y.push_back((v - largest) - std::log(sum));
  return y;
}
/// Each element of the row by itself.
Rows Each(double (*f)(double)) {
  return [f](const Numbers& x) {
    Numbers y;
    for (const double v : x) y.push_back(f(v));
    return y;
  };
}
/// The row folded into one number.
Rows Fold(double first, double (*f)(double, double)) {
  return [first, f](const Numbers& x) {
    double total = first;
    for (const double v : x) total = f(total, v);
    return Numbers{total};
  };
}
double Least(double x, double y) { return std::isnan(x) || x < y ? x : y; }
double Most(double x, double y) { return std::isnan(x) || x > y ? x : y; }
/// First element that is better than all before it and than the worst finite number; NaN is never.
Rows First(double sign) {
  return [sign](const Numbers& x) {
    double best = -static_cast<double>(std::numeric_limits<float>::max()), at = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      if (!(sign * x[i] > best)) continue;
      best = sign * x[i];
      at = static_cast<double>(i);
    }
    return Numbers{at};
  };
}

struct RowOp {
  std::string op;
  Rows reference;
  bool axis = false;  // has the axis as second operand
};

std::vector<RowOp> RowOps() {
  return {{"Softmax", Softmax},
          {"LogSoftmax", LogSoftmax},
          {"Relu", Each([](double x) { return x < 0 ? 0 : x; })},
          {"Neg", Each([](double x) { return -x; })},
          {"Abs", Each([](double x) { return std::fabs(x); })},
          {"Sign", Each([](double x) { return x > 0   ? 1
                                              : x < 0 ? -1
                                                      : x; })},
          {"Square", Each([](double x) { return x * x; })},
          {"Reciprocal", Each([](double x) { return 1 / x; })},
          {"Sqrt", Each([](double x) { return std::sqrt(x); })},
          {"Rsqrt", Each([](double x) { return 1 / std::sqrt(x); })},
          {"Floor", Each([](double x) { return std::floor(x); })},
          {"Ceil", Each([](double x) { return std::ceil(x); })},
          {"Round", Each([](double x) { return std::nearbyint(x); })},
          {"Exp", Each([](double x) { return std::exp(x); })},
          {"Expm1", Each([](double x) { return std::expm1(x); })},
          {"Log", Each([](double x) { return std::log(x); })},
          {"Log1p", Each([](double x) { return std::log1p(x); })},
          {"Tanh", Each([](double x) { return std::tanh(x); })},
          {"Sigmoid", Each([](double x) { return 1 / (1 + std::exp(-x)); })},
          {"Sum", Fold(0, [](double x, double y) { return x + y; }), true},
          {"Prod", Fold(1, [](double x, double y) { return x * y; }), true},
          {"Max", Fold(-kInf, Most), true},
          {"Min", Fold(kInf, Least), true},
          {"ArgMax", First(1), true},
          {"ArgMin", First(-1), true}};
}

class NonFinite : public ::testing::TestWithParam<std::string> {};

TEST_P(NonFinite, GoesThroughEveryOpOfRows) {
  const std::shared_ptr<session::Runtime> runtime = SetOf(GetParam());
  ASSERT_NE(runtime, nullptr);
  for (const RowOp& row : RowOps()) {
    if (!Covers(*runtime, row.op)) continue;
    for (const int64_t batch : {1, 2, 9, 64}) {
      for (const int64_t columns : {1, 2, 10, 37, 300}) {
        if (row.op == "Prod" && columns > 37) continue;  // 0 in float, which no infinity survives
        for (int kind = 0; kind < (batch == 1 ? 8 : 1); ++kind) {
          SCOPED_TRACE(row.op + " [" + std::to_string(batch) + "," + std::to_string(columns) + "] kind " +
                       std::to_string(kind));
          const Numbers x = Strange(batch, columns, kind);
          Numbers wanted;
          for (auto from = x.begin(); from != x.end(); from += columns) {
            const Numbers y = row.reference(Numbers(from, from + columns));
            wanted.insert(wanted.end(), y.begin(), y.end());
          }
          std::vector<Tensor> operands = {Floats(Shape::Of({batch, columns}), x)};
          if (row.axis) operands.push_back(Tensor::Scalar<int32_t>(1));
          ExpectSame(Compute(runtime, row.op, operands, kFloat), wanted);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST_P(NonFinite, GoesThroughEveryOpOfPairs) {
  const std::shared_ptr<session::Runtime> runtime = SetOf(GetParam());
  ASSERT_NE(runtime, nullptr);
  const std::vector<std::pair<std::string, double (*)(double, double)>> ops = {
      {"AddV2", [](double x, double y) { return x + y; }},
      {"Sub", [](double x, double y) { return x - y; }},
      {"Mul", [](double x, double y) { return x * y; }},
      {"RealDiv", [](double x, double y) { return x / y; }},
      {"DivNoNan", [](double x, double y) { return y == 0 ? 0 : x / y; }},
      {"SquaredDifference", [](double x, double y) { return (x - y) * (x - y); }},
      {"Maximum", Most},
      {"Minimum", Least},
      {"ReluGrad", [](double dy, double x) { return dy * (x > 0 ? 1 : 0); }},
      {"TanhGrad", [](double y, double dy) { return dy * (1 - y * y); }},
      {"SigmoidGrad", [](double y, double dy) { return dy * y * (1 - y); }},
      {"SqrtGrad", [](double y, double dy) { return dy == 0 ? 0 : 0.5 * dy / y; }},
      {"RsqrtGrad", [](double y, double dy) { return dy == 0 ? 0 : -0.5 * (dy * y) * (y * y); }},
      {"ReciprocalGrad", [](double y, double dy) { return dy == 0 ? 0 : -dy * y * y; }},
  };
  for (const auto& [op, reference] : ops) {
    if (!Covers(*runtime, op)) continue;
    for (const int64_t columns : {1, 2, 10, 37, 300}) {
      for (int kind = 0; kind < 8; ++kind) {
        SCOPED_TRACE(op + " of " + std::to_string(columns) + " columns, kind " + std::to_string(kind));
        const Numbers x = Strange(9, columns, 0), y = Strange(9, columns, kind);
        Numbers wanted;
        for (size_t i = 0; i < x.size(); ++i) wanted.push_back(reference(x[i], y[i]));
        const Shape shape = Shape::Of({9, columns});
        ExpectSame(Compute(runtime, op, {Floats(shape, x), Floats(shape, y)}, kFloat), wanted);
        if (HasFatalFailure()) return;
      }
    }
  }
}

/// x y for x of [m, k] and y of [k, n], transposed as they are stored.
Numbers Product(const Numbers& x, const Numbers& y, int64_t m, int64_t k, int64_t n) {
  Numbers product;
  for (int64_t i = 0; i < m * n; ++i) {
    double sum = 0;
    for (int64_t p = 0; p < k; ++p)
      sum += x[static_cast<size_t>(i / n * k + p)] * y[static_cast<size_t>(p * n + i % n)];
    product.push_back(sum);
  }
  return product;
}
Numbers Transposed(const Numbers& x, int64_t rows, int64_t columns) {
  Numbers y;
  for (int64_t i = 0; i < rows * columns; ++i) y.push_back(x[static_cast<size_t>(i % rows * columns + i / rows)]);
  return y;
}

/// y with zeros in it, so that a product which skips them loses what they are multiplied with.
Numbers Sparse(int64_t rows, int64_t columns) {
  Numbers y;
  for (int64_t i = 0; i < rows * columns; ++i)
    y.push_back(i % 3 == 0 ? 0 : static_cast<float>(std::cos(0.3 * static_cast<double>(i))));
  return y;
}

TEST_P(NonFinite, GoesThroughProductsWithZeros) {
  const std::shared_ptr<session::Runtime> runtime = SetOf(GetParam());
  ASSERT_NE(runtime, nullptr);
  for (const auto& [m, k, n] : std::vector<std::array<int64_t, 3>>{
           {1, 1, 1}, {1, 40, 30}, {30, 40, 1}, {8, 3, 5}, {16, 33, 20}, {70, 65, 31}, {130, 64, 128}}) {
    for (const bool strange_left : {true, false}) {
      const Numbers x = strange_left ? Strange(m, k, 0) : Sparse(m, k),
                    y = strange_left ? Sparse(k, n) : Strange(k, n, 0);
      const Numbers wanted = Product(x, y, m, k, n);
      for (int way = 0; way < 8; ++way) {
        const bool a = (way & 1) != 0, b = (way & 2) != 0, constant = (way & 4) != 0;
        SCOPED_TRACE(fmt::format("[{},{}] x [{},{}] {} {} {} {}", m, k, k, n, a, b, constant, strange_left));
        const Tensor left = a ? Floats(Shape::Of({k, m}), Transposed(x, m, k)) : Floats(Shape::Of({m, k}), x);
        const Tensor right = b ? Floats(Shape::Of({n, k}), Transposed(y, k, n)) : Floats(Shape::Of({k, n}), y);
        const op::AttrList attrs = {{"T", DType::kFloat}, {"transpose_a", a}, {"transpose_b", b}};
        ExpectSame(Compute(runtime, "MatMul", {left, right}, attrs, constant ? 1 : 2), wanted);
        if (HasFatalFailure()) return;
      }
    }
  }
}

/// v - rate (x y), by the op that some sets have for both in one.
TEST_P(NonFinite, GoesThroughStepsByProducts) {
  const std::shared_ptr<session::Runtime> runtime = SetOf(GetParam(), true);
  ASSERT_NE(runtime, nullptr);
  const int64_t m = 16, k = 9, n = 20;
  for (const double rate : {0.0, 0.5}) {
    for (const int64_t rows : {int64_t{1}, m}) {
      const Numbers x = Strange(rows, k, rows == 1 ? 1 : 0), y = Sparse(k, n);
      Numbers wanted = Product(x, y, rows, k, n);
      for (double& v : wanted) v = 1 - rate * v;
      const Result<graph::Graph> graph =
          MakeGraph({{"v", "VariableV2", {}, {{"dtype", DType::kFloat}, {"shape", PartialShape(Shape::Of({rows, n}))}}},
                     Const("ones", Floats(Shape::Of({rows, n}), Numbers(wanted.size(), 1))),
                     Const("rate", Tensor::Scalar(static_cast<float>(rate))),
                     Placeholder("x", PartialShape(Shape::Of({rows, k}))),
                     Placeholder("y", PartialShape(Shape::Of({k, n}))),
                     {"init", "Assign", {"v", "ones"}, kFloat},
                     {"product", "MatMul", {"x", "y"}, kFloat},
                     {"step", "ApplyGradientDescent", {"v", "rate", "product"}, kFloat}});
      ASSERT_TRUE(graph.ok()) << graph.status().ToString();
      const auto session = session::Session::Make(runtime, *graph);
      ASSERT_TRUE(session.ok()) << session.status().ToString();
      const std::vector<std::string> init = {"init"}, step = {"step:0"};
      ASSERT_TRUE((*session)->Run({}, {}, init).ok());
      const std::vector<session::Feed> feeds = {{"x", Floats(Shape::Of({rows, k}), x)},
                                                {"y", Floats(Shape::Of({k, n}), y)}};
      const Result<std::vector<Tensor>> stepped = (*session)->Run(feeds, step, {});
      ASSERT_TRUE(stepped.ok()) << stepped.status().ToString();
      SCOPED_TRACE(fmt::format("rate {}, {} rows", rate, rows));
      ExpectSame((*stepped)[0], wanted);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, NonFinite, ::testing::Values("kernels_eigen", "kernels_onednn", "kernels_openblas"));

}  // namespace
}  // namespace weir::testing
