// Regions computed node by node with the semantics of kernels_eigen, an element at a time.
#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <optional>

#include <gtest/gtest.h>

#include "sdk/cpp/types.h"
#include "tests/plugin/compiler_llvm/regions.h"

namespace weir::test {
namespace {

using Number = Array::Number;

bool IsReal(uint32_t dtype) {
  return dtype == WEIR_FLOAT32 || dtype == WEIR_FLOAT64 || dtype == WEIR_FLOAT16 || dtype == WEIR_BFLOAT16;
}
bool IsUnsignedInt(uint32_t dtype) {
  return dtype == WEIR_UINT8 || dtype == WEIR_UINT16 || dtype == WEIR_UINT32 || dtype == WEIR_UINT64;
}

/// Rounds to the type of arithmetic: float but for double. Sums, products, quotients and roots of floats computed in
/// double and then rounded are those of float arithmetic.
double Round(uint32_t dtype, double x) {
  return dtype == WEIR_FLOAT64 ? x : static_cast<double>(static_cast<float>(x));
}

using RealUnary = std::function<double(double)>;
const std::map<std::string, RealUnary>& InexactUnary() {
  static const std::map<std::string, RealUnary> functions = {
      {"Exp", [](double x) { return std::exp(x); }},
      {"Expm1", [](double x) { return std::expm1(x); }},
      {"Log", [](double x) { return std::log(x); }},
      {"Log1p", [](double x) { return std::log1p(x); }},
      {"Tanh", [](double x) { return std::tanh(x); }},
      {"Sigmoid", [](double x) { return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x)); }},
      {"Erf", [](double x) { return std::erf(x); }},
      {"Elu", [](double x) { return x < 0 ? std::expm1(x) : x; }},
      {"Selu", [](double x) { return x < 0 ? 1.7580993408473768599 * std::expm1(x) : 1.0507009873554804934 * x; }},
      {"Softplus", [](double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x))); }},
  };
  return functions;
}

struct Node {
  const RegionSpec::NodeSpec& spec;
  uint32_t from;  // element type of the last operand
};

double RealResult(const Node& node, const std::vector<Number>& o) {
  const std::string& op = node.spec.op;
  const uint32_t t = node.from;
  const auto r = [t](double v) { return Round(t, v); };
  const double x = o[0].real, y = o.size() > 1 ? o[1].real : 0;
  if (const auto found = InexactUnary().find(op); found != InexactUnary().end()) return found->second(x);
  if (op == "Neg") return -x;
  if (op == "Abs") return std::fabs(x);
  if (op == "Sign") return x > 0 ? 1 : x < 0 ? -1 : x;
  if (op == "Square") return r(x * x);
  if (op == "Reciprocal") return r(1 / x);
  if (op == "Sqrt") return r(std::sqrt(x));
  if (op == "Rsqrt") return r(1 / r(std::sqrt(x)));
  if (op == "Floor") return std::floor(x);
  if (op == "Ceil") return std::ceil(x);
  if (op == "Round" || op == "Rint") return std::nearbyint(x);
  if (op == "Relu") return x < 0 ? 0 : x;
  if (op == "Relu6") return x < 0 ? 0 : x > 6 ? 6 : x;
  if (op == "Softsign") return r(x / r(1 + std::fabs(x)));
  const double alpha = node.spec.attrs.empty() ? 0.2 : node.spec.attrs[0].real;
  if (op == "LeakyRelu") return x > 0 ? x : r(r(alpha) * x);
  if (op == "LeakyReluGrad") return y > 0 ? x : r(r(alpha) * x);
  if (op == "AddV2" || op == "BiasAdd") return r(x + y);
  if (op == "Sub") return r(x - y);
  if (op == "Mul") return r(x * y);
  if (op == "RealDiv") return r(x / y);
  if (op == "DivNoNan") return y == 0 ? 0 : r(x / y);
  if (op == "Xdivy") return x == 0 ? 0 : r(x / y);
  if (op == "FloorDiv") return std::floor(r(x / y));
  if (op == "TruncateDiv") return std::trunc(r(x / y));
  if (op == "SquaredDifference") return r(r(x - y) * r(x - y));
  if (op == "Maximum") return x > y || x != x ? x : y;
  if (op == "Minimum") return x < y || x != x ? x : y;
  if (op == "TanhGrad") return r(y * r(1 - r(x * x)));
  if (op == "SigmoidGrad") return r(r(y * x) * r(1 - x));
  if (op == "ReciprocalGrad") return y == 0 ? 0 : r(r(-y * x) * x);
  if (op == "SqrtGrad") return y == 0 ? 0 : r(r(0.5 * y) / x);
  if (op == "RsqrtGrad") return y == 0 ? 0 : r(r(-0.5 * r(y * x)) * r(x * x));
  if (op == "ReluGrad") return r(x * (y > 0 ? 1 : 0));
  if (op == "Relu6Grad") return r(x * (y > 0 && y < 6 ? 1 : 0));
  if (op == "EluGrad") return y < 0 ? r(r(y + 1) * x) : x;
  if (op == "SeluGrad") {
    return y < 0 ? r(r(y + r(1.7580993408473768599402175208123)) * x) : r(x * r(1.0507009873554804934193349852946));
  }
  if (op == "SoftsignGrad") return r(x / r(r(1 + std::fabs(y)) * r(1 + std::fabs(y))));
  if (op == "SoftplusGrad") return x / (std::exp(-y) + 1);
  if (op == "Xlogy") return x == 0 ? 0 : x * std::log(y);
  if (op == "Xlog1py") return x == 0 ? 0 : x * std::log1p(y);
  if (op == "ClipByValue") {
    const double below = x > o[2].real ? o[2].real : x;
    return below < y ? y : below;
  }
  if (op == "AddN") {
    double sum = x;
    for (size_t i = 1; i < o.size(); ++i) sum = r(sum + o[i].real);
    return sum;
  }
  ADD_FAILURE() << "the reference has no op " << op;
  return 0;
}

int64_t Wrapped(uint32_t dtype, uint64_t x) {
  const int unused = 64 - 8 * static_cast<int>(sdk::SizeOf(dtype));
  return IsUnsignedInt(dtype) ? static_cast<int64_t>(x << unused >> unused)
                              : static_cast<int64_t>(x << unused) >> unused;
}

bool LessThan(uint32_t dtype, int64_t x, int64_t y) {
  return IsUnsignedInt(dtype) ? static_cast<uint64_t>(x) < static_cast<uint64_t>(y) : x < y;
}

int64_t IntegerResult(const Node& node, const std::vector<Number>& o) {
  const std::string& op = node.spec.op;
  const uint32_t t = node.from;
  const int64_t x = o[0].integer, y = o.size() > 1 ? o[1].integer : 0;
  const auto ux = static_cast<uint64_t>(x), uy = static_cast<uint64_t>(y);
  const auto w = [t](uint64_t v) { return Wrapped(t, v); };
  const int bits = 8 * static_cast<int>(sdk::SizeOf(t));
  const int by = !IsUnsignedInt(t) && y < 0 ? 0 : LessThan(t, bits - 1, y) ? bits - 1 : static_cast<int>(y);
  if (op == "Neg") return w(0 - ux);
  if (op == "Abs") return x < 0 ? w(0 - ux) : x;
  if (op == "Sign") return (x > 0) - (x < 0);
  if (op == "Square") return w(ux * ux);
  if (op == "Round") return x;
  if (op == "Relu") return LessThan(t, x, 0) ? 0 : x;
  if (op == "Relu6") return LessThan(t, x, 0) ? 0 : LessThan(t, 6, x) ? 6 : x;
  if (op == "ReluGrad") return LessThan(t, 0, y) ? x : 0;
  if (op == "Relu6Grad") return LessThan(t, 0, y) && LessThan(t, y, 6) ? x : 0;
  if (op == "Invert") return w(~ux);
  if (op == "PopulationCount") {
    return std::popcount(ux << (64 - bits));
  }
  if (op == "AddV2" || op == "BiasAdd") return w(ux + uy);
  if (op == "Sub") return w(ux - uy);
  if (op == "Mul") return w(ux * uy);
  if (op == "SquaredDifference") return w((ux - uy) * (ux - uy));
  if (op == "Maximum") return LessThan(t, y, x) ? x : y;
  if (op == "Minimum") return LessThan(t, x, y) ? x : y;
  if (op == "BitwiseAnd") return x & y;
  if (op == "BitwiseOr") return x | y;
  if (op == "BitwiseXor") return w(ux ^ uy);
  if (op == "LeftShift") return w(ux << by);
  if (op == "RightShift") return IsUnsignedInt(t) ? w(ux >> by) : w(static_cast<uint64_t>(x >> by));
  if (op == "ClipByValue") {
    const int64_t high = o[2].integer, below = LessThan(t, high, x) ? high : x;
    return LessThan(t, below, y) ? y : below;
  }
  if (op == "AddN") {
    uint64_t sum = 0;
    for (const Number& n : o) sum += static_cast<uint64_t>(n.integer);
    return w(sum);
  }
  if (y != 0 && IsUnsignedInt(t)) {
    return op == "FloorMod" || op == "TruncateMod" ? w(ux % uy) : w(ux / uy);
  }
  if (y == -1) return op == "FloorMod" || op == "TruncateMod" ? 0 : w(0 - ux);
  if (y != 0) {
    const int64_t rest = x % y;
    const bool apart = rest != 0 && (rest < 0) != (y < 0);
    if (op == "TruncateMod") return rest;
    if (op == "FloorMod") return apart ? rest + y : rest;
    if (op == "FloorDiv") return apart ? x / y - 1 : x / y;
    if (op == "Div" || op == "TruncateDiv") return x / y;
  }
  ADD_FAILURE() << "the reference has no op " << op;
  return 0;
}

std::optional<bool> BoolResult(const Node& node, const std::vector<Number>& o) {
  const std::string& op = node.spec.op;
  const bool real = IsReal(node.from);
  const double x = o[0].real, y = o.size() > 1 ? o[1].real : 0;
  const int64_t i = o[0].integer, j = o.size() > 1 ? o[1].integer : 0;
  const bool less = real ? x < y : LessThan(node.from, i, j), more = real ? x > y : LessThan(node.from, j, i);
  const bool equal = real ? x == y : i == j;
  if (op == "Equal") return equal;
  if (op == "NotEqual") return !equal;
  if (op == "Less") return less;
  if (op == "LessEqual") return less || equal;
  if (op == "Greater") return more;
  if (op == "GreaterEqual") return more || equal;
  if (op == "IsNan") return std::isnan(x);
  if (op == "IsInf") return std::isinf(x);
  if (op == "IsFinite") return std::isfinite(x);
  if (op == "LogicalAnd") return i != 0 && j != 0;
  if (op == "LogicalOr") return i != 0 || j != 0;
  if (op == "LogicalNot") return i == 0;
  return std::nullopt;
}

/// Conversion of a real number to an integer type: TensorFlow's results on x86.
int64_t CutReal(uint32_t to, double x) {
  const auto in = [x](double low, double high) { return x >= low && x < high; };
  const double two31 = 2147483648.0, two63 = 9223372036854775808.0;
  if (to == WEIR_INT64) return in(-two63, two63) ? static_cast<int64_t>(x) : std::numeric_limits<int64_t>::min();
  if (to == WEIR_UINT32)
    return Wrapped(
        to, static_cast<uint64_t>(in(-two31, 2 * two31) ? static_cast<int64_t>(x) : static_cast<int64_t>(-two31)));
  if (to == WEIR_UINT64) {
    return in(two63, 2 * two63) ? static_cast<int64_t>(static_cast<uint64_t>(x)) : CutReal(WEIR_INT64, x);
  }
  const int64_t cut = in(-two31, two31) ? static_cast<int64_t>(x) : static_cast<int64_t>(-two31);
  if (to == WEIR_INT32) return cut;
  const int bits = 8 * static_cast<int>(sdk::SizeOf(to));
  const int64_t most = (int64_t{1} << (IsUnsignedInt(to) ? bits : bits - 1)) - 1;
  return std::clamp<int64_t>(cut, IsUnsignedInt(to) ? 0 : -most - 1, most);
}

Number CastNumber(uint32_t from, uint32_t to, Number x) {
  if (to == WEIR_BOOL) return {0, IsReal(from) ? x.real != 0 || std::isnan(x.real) : x.integer != 0};
  if (IsReal(from)) {
    return IsReal(to) ? Number{x.real, 0} : Number{0, CutReal(to, x.real)};
  }
  if (!IsReal(to)) return {0, Wrapped(to, static_cast<uint64_t>(x.integer))};
  const auto u = static_cast<uint64_t>(x.integer);
  if (to == WEIR_FLOAT64) return {from == WEIR_UINT64 ? static_cast<double>(u) : static_cast<double>(x.integer), 0};
  return {static_cast<double>(from == WEIR_UINT64 ? static_cast<float>(u) : static_cast<float>(x.integer)), 0};
}

Number Result(const Node& node, const std::vector<Number>& o) {
  const std::string& op = node.spec.op;
  if (op == "Identity") return o[0];
  if (op == "Cast") return CastNumber(node.from, node.spec.result.dtype, o[0]);
  if (op == "SelectV2" || op == "Select") return o[0].integer != 0 ? o[1] : o[2];
  if (const std::optional<bool> truth = BoolResult(node, o)) return {0, *truth};
  if (IsReal(node.from)) return {RealResult(node, o), 0};
  return {0, IntegerResult(node, o)};
}

/// Lanes, halves and totals as kernels_eigen/kernels/reduce.cc combines them. L: lane, T: total.
template <class L, class T, class Combine>
T Row(const std::function<L(int64_t)>& at, int64_t n, T total, Combine combine) {
  for (int64_t begin = 0; begin < n; begin += 256) {
    const int64_t count = std::min<int64_t>(256, n - begin), main = count / 16 * 16;
    if (main > 0) {
      L lanes[16];
      for (int64_t j = 0; j < 16; ++j) lanes[j] = at(begin + j);
      for (int64_t i = 16; i < main; ++i) lanes[i % 16] = combine(lanes[i % 16], at(begin + i));
      for (int width = 8; width > 0; width /= 2) {
        for (int j = 0; j < width; ++j) lanes[j] = combine(lanes[j], lanes[j + width]);
      }
      total = combine(total, static_cast<T>(lanes[0]));
    }
    for (int64_t j = main; j < count; ++j) total = combine(total, static_cast<T>(at(begin + j)));
  }
  return total;
}

template <class L, class T>
double RealReduction(const std::string& op, const std::function<double(int64_t)>& element, int64_t n) {
  const std::function<L(int64_t)> at = [&](int64_t i) { return static_cast<L>(element(i)); };
  if (op == "Sum") return static_cast<double>(Row<L, T>(at, n, T(0), [](auto a, auto b) { return a + b; }));
  if (op == "Mean") {
    return static_cast<double>(Row<L, T>(at, n, T(0), [](auto a, auto b) { return a + b; }) / static_cast<T>(n));
  }
  if (op == "Prod") return static_cast<double>(Row<L, L>(at, n, L(1), [](L a, L b) { return a * b; }));
  const L infinity = std::numeric_limits<L>::infinity();
  if (op == "Max") {
    return static_cast<double>(Row<L, L>(at, n, -infinity, [](L a, L b) { return b > a || b != b ? b : a; }));
  }
  return static_cast<double>(Row<L, L>(at, n, infinity, [](L a, L b) { return b < a || b != b ? b : a; }));
}

int64_t IntegerReduction(const std::string& op, uint32_t t, const std::function<int64_t(int64_t)>& at, int64_t n) {
  uint64_t sum = 0, product = 1;
  int64_t best = at(0);
  bool all = true, any = false;
  for (int64_t i = 0; i < n; ++i) {
    const int64_t x = at(i);
    sum += static_cast<uint64_t>(x);
    product *= static_cast<uint64_t>(x);
    if (op == "Max" ? LessThan(t, best, x) : LessThan(t, x, best)) best = x;
    all = all && x != 0;
    any = any || x != 0;
  }
  if (op == "Sum") return Wrapped(t, sum);
  if (op == "Prod") return Wrapped(t, product);
  if (op == "Mean") {
    const auto u = static_cast<uint64_t>(n);
    return IsUnsignedInt(t) ? static_cast<int64_t>(sum / u) : static_cast<int64_t>(sum) / n;
  }
  return op == "All" ? all : op == "Any" ? any : best;
}

void Reduce(const RegionSpec::NodeSpec& node, const Array& from, Array* to) {
  const int64_t n = from.size() / to->size();
  for (int64_t row = 0; row < to->size(); ++row) {
    if (n == 1) {
      to->Set(row, from.At(row));
      continue;
    }
    if (!IsReal(from.dtype)) {
      const std::function<int64_t(int64_t)> at = [&](int64_t i) { return from.At(row * n + i).integer; };
      to->Set(row, {0, IntegerReduction(node.op, from.dtype, at, n)});
      continue;
    }
    const std::function<double(int64_t)> at = [&](int64_t i) { return from.At(row * n + i).real; };
    to->Set(row, {from.dtype == WEIR_FLOAT64 ? RealReduction<double, double>(node.op, at, n)
                                             : RealReduction<float, double>(node.op, at, n),
                  0});
  }
}

/// Index of the element that meets `index` of `to`, broadcast from its last dimension on, or from `axis` on.
int64_t Meets(const Dims& from, const Dims& to, int64_t index, size_t behind) {
  int64_t offset = 0, step = 1, rest = index;
  for (size_t p = 0; p < to.size(); ++p) {
    const int64_t extent = to[to.size() - 1 - p], at = rest % extent;
    rest /= extent;
    if (p < behind || p - behind >= from.size()) continue;
    const int64_t own = from[from.size() - 1 - (p - behind)];
    if (own != 1) offset += at * step;
    step *= own;
  }
  return offset;
}

}  // namespace

bool IsInexact(const std::string& op) {
  return InexactUnary().count(op) > 0 || op == "SoftplusGrad" || op == "Xlogy" || op == "Xlog1py";
}

std::vector<Array> Reference(const RegionSpec& region, const std::vector<Array>& inputs) {
  std::vector<Array> values = inputs;
  for (const RegionSpec::NodeSpec& node : region.nodes()) {
    Array result = Array::Of(node.result.dtype, node.result.dims);
    if (!node.axes.empty()) {
      Reduce(node, values[node.operands[0]], &result);
      values.push_back(std::move(result));
      continue;
    }
    const Node known{node, values[node.operands.back()].dtype};
    std::vector<Number> operands(node.operands.size());
    for (int64_t i = 0; i < result.size(); ++i) {
      for (size_t k = 0; k < operands.size(); ++k) {
        const Array& operand = values[node.operands[k]];
        const size_t behind = k == 1 && node.data_format == "NCHW" ? result.dims.size() - 2 : 0;
        operands[k] = operand.At(Meets(operand.dims, result.dims, i, behind));
      }
      result.Set(i, Result(known, operands));
    }
    values.push_back(std::move(result));
  }
  std::vector<Array> outputs;
  for (const uint32_t output : region.outputs()) outputs.push_back(values[output]);
  return outputs;
}

}  // namespace weir::test
