#include "tools/weir/cases/references.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <functional>
#include <limits>
#include <map>

#include "core/base/errors.h"
#include "core/tensor/number.h"
#include "tools/weir/cases/case_values.h"
#include "tools/weir/cases/fourier_references.h"
#include "tools/weir/cases/window_references.h"

namespace weir::cases {
namespace {

using Complex = std::complex<double>;
using Numbers = std::vector<double>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double Least(double x, double y) { return std::isnan(x) || x < y ? x : y; }
double Most(double x, double y) { return std::isnan(x) || x > y ? x : y; }

using Unary = double (*)(double);
const std::map<std::string, Unary>& UnaryOps() {
  static const std::map<std::string, Unary> ops = {{"Neg", [](double x) { return -x; }},
                                                   {"Abs", [](double x) { return std::fabs(x); }},
                                                   {"Sign", [](double x) { return x > 0   ? 1
                                                                                  : x < 0 ? -1
                                                                                          : x; }},
                                                   {"Square", [](double x) { return x * x; }},
                                                   {"Reciprocal", [](double x) { return 1 / x; }},
                                                   {"Inv", [](double x) { return 1 / x; }},
                                                   {"Sqrt", [](double x) { return std::sqrt(x); }},
                                                   {"Rsqrt", [](double x) { return 1 / std::sqrt(x); }},
                                                   {"Floor", [](double x) { return std::floor(x); }},
                                                   {"Ceil", [](double x) { return std::ceil(x); }},
                                                   {"Round", [](double x) { return std::nearbyint(x); }},
                                                   {"Exp", [](double x) { return std::exp(x); }},
                                                   {"Expm1", [](double x) { return std::expm1(x); }},
                                                   {"Log", [](double x) { return std::log(x); }},
                                                   {"Log1p", [](double x) { return std::log1p(x); }},
                                                   {"Tanh", [](double x) { return std::tanh(x); }},
                                                   {"Sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }},
                                                   {"Rint", [](double x) { return std::nearbyint(x); }},
                                                   {"Relu", [](double x) { return x < 0 ? 0 : x; }},
                                                   {"Relu6", [](double x) { return std::clamp(x, 0.0, 6.0); }},
                                                   {"LeakyRelu", [](double x) { return x < 0 ? 0.2 * x : x; }},
                                                   {"Elu", [](double x) { return x < 0 ? std::expm1(x) : x; }},
                                                   {"Softplus", [](double x) { return std::log1p(std::exp(x)); }}};
  return ops;
}

using ComplexUnary = Complex (*)(Complex);
const std::map<std::string, ComplexUnary>& ComplexUnaryOps() {
  static const std::map<std::string, ComplexUnary> ops = {
      {"Neg", [](Complex z) { return -z; }},
      {"Square", [](Complex z) { return z * z; }},
      {"Reciprocal", [](Complex z) { return 1.0 / z; }},
      {"Inv", [](Complex z) { return 1.0 / z; }},
      {"Sqrt", [](Complex z) { return std::sqrt(z); }},
      {"Rsqrt", [](Complex z) { return 1.0 / std::sqrt(z); }},
      {"Exp", [](Complex z) { return std::exp(z); }},
      {"Expm1", [](Complex z) { return std::exp(z) - 1.0; }},
      {"Log", [](Complex z) { return std::log(z); }},
      {"Log1p", [](Complex z) { return std::log(z + 1.0); }},
      {"Tanh", [](Complex z) { return std::tanh(z); }},
      {"Sigmoid", [](Complex z) { return 1.0 / (1.0 + std::exp(-z)); }},
      {"Sign", [](Complex z) { return z / std::abs(z); }},
      {"Conj", [](Complex z) { return std::conj(z); }}};
  return ops;
}

using Binary = Complex (*)(Complex, Complex);
const std::map<std::string, Binary>& BinaryOps() {
  static const std::map<std::string, Binary> ops = {
      {"Add", [](Complex x, Complex y) { return x + y; }},
      {"AddV2", [](Complex x, Complex y) { return x + y; }},
      {"Sub", [](Complex x, Complex y) { return x - y; }},
      {"Mul", [](Complex x, Complex y) { return x * y; }},
      {"RealDiv", [](Complex x, Complex y) { return x / y; }},
      {"Div", [](Complex x, Complex y) { return x / y; }},
      {"DivNoNan", [](Complex x, Complex y) { return y == 0.0 ? 0 : x / y; }},
      {"SquaredDifference", [](Complex x, Complex y) { return std::conj(x - y) * (x - y); }},
      {"TanhGrad", [](Complex y, Complex dy) { return dy * std::conj(1.0 - y * y); }},
      {"SigmoidGrad", [](Complex y, Complex dy) { return dy * std::conj(y * (1.0 - y)); }},
      {"ReciprocalGrad", [](Complex y, Complex dy) { return -dy * std::conj(y * y); }},
      {"SqrtGrad", [](Complex y, Complex dy) { return 0.5 * dy / std::conj(y); }},
      {"RsqrtGrad", [](Complex y, Complex dy) { return -0.5 * dy * std::conj(y * y * y); }}};
  return ops;
}

using RealBinary = double (*)(double, double);
/// Of real numbers; IEEE arithmetic of NaN and infinities is another than that of complex numbers.
const std::map<std::string, RealBinary>& RealBinaryOps() {
  static const std::map<std::string, RealBinary> ops = {
      {"Add", [](double x, double y) { return x + y; }},
      {"AddV2", [](double x, double y) { return x + y; }},
      {"Sub", [](double x, double y) { return x - y; }},
      {"Mul", [](double x, double y) { return x * y; }},
      {"RealDiv", [](double x, double y) { return x / y; }},
      {"Div", [](double x, double y) { return x / y; }},
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
      {"Equal", [](double x, double y) { return x == y ? 1.0 : 0.0; }},
      {"NotEqual", [](double x, double y) { return x != y ? 1.0 : 0.0; }},
      {"Less", [](double x, double y) { return x < y ? 1.0 : 0.0; }},
      {"LessEqual", [](double x, double y) { return x <= y ? 1.0 : 0.0; }},
      {"Greater", [](double x, double y) { return x > y ? 1.0 : 0.0; }},
      {"GreaterEqual", [](double x, double y) { return x >= y ? 1.0 : 0.0; }}};
  return ops;
}

struct Fold {
  double first;
  RealBinary f;
};
const std::map<std::string, Fold>& Folds() {
  static const std::map<std::string, Fold> ops = {{"Sum", {0, [](double x, double y) { return x + y; }}},
                                                  {"Mean", {0, [](double x, double y) { return x + y; }}},
                                                  {"Prod", {1, [](double x, double y) { return x * y; }}},
                                                  {"Max", {-kInfinity, Most}},
                                                  {"Min", {kInfinity, Least}}};
  return ops;
}

/// Where element `flat` of an array of shape `out` comes from in one of shape `in` that is broadcast to it.
int64_t Broadcast(const Shape& in, const Shape& out, int64_t flat) {
  int64_t at = 0, step = 1;
  for (int i = out.rank() - 1; i >= 0; --i) {
    const int64_t index = flat % out.dim(i);
    flat /= out.dim(i);
    const int own = i - (out.rank() - in.rank());
    if (own < 0) continue;
    at += in.dim(own) == 1 ? 0 : index * step;
    step *= in.dim(own);
  }
  return at;
}

/// The axes that the second input names.
std::vector<bool> Axes(const OpCase& c) {
  const int rank = c.inputs[0].shape().rank();
  std::vector<bool> reduced(static_cast<size_t>(rank));
  for (int64_t i = 0; i < c.inputs[1].elements(); ++i) {
    const int64_t axis = ElementAsInt(c.inputs[1], i);
    reduced[static_cast<size_t>(axis < 0 ? axis + rank : axis)] = true;
  }
  return reduced;
}

/// Calls visit(output, x) for every element x of the first input, in order, where `output` is the place among those
/// that stay apart.
void Walk(const Tensor& x, const std::vector<bool>& reduced, const std::function<void(int64_t, double)>& visit) {
  const Shape& shape = x.shape();
  for (int64_t flat = 0; flat < x.elements(); ++flat) {
    int64_t rest = flat, at = 0, step = 1;
    for (int i = shape.rank() - 1; i >= 0; --i) {
      const int64_t index = rest % shape.dim(i);
      rest /= shape.dim(i);
      if (reduced[static_cast<size_t>(i)]) continue;
      at += index * step;
      step *= shape.dim(i);
    }
    visit(at, ElementAsDouble(x, flat));
  }
}

void Reduce(const OpCase& c, const Fold& fold, Tensor& y) {
  Numbers totals(static_cast<size_t>(y.elements()), fold.first);
  Walk(c.inputs[0], Axes(c), [&](int64_t at, double x) {
    double& total = totals[static_cast<size_t>(at)];
    total = fold.f(total, x);
  });
  const double count =
      static_cast<double>(c.inputs[0].elements()) / static_cast<double>(std::max<int64_t>(y.elements(), 1));
  for (int64_t i = 0; i < y.elements(); ++i) {
    double total = totals[static_cast<size_t>(i)];
    if (c.def->name == "Mean") total /= count;
    SetNumber(y, i, IsFloating(y.dtype()) || IsComplex(y.dtype()) ? total : std::trunc(total));
  }
}

/// First element that is better than all before it and than the worst finite number; NaN is never.
void First(const OpCase& c, double sign, Tensor& y) {
  Numbers best(static_cast<size_t>(y.elements()), -static_cast<double>(std::numeric_limits<float>::max()));
  std::vector<int64_t> next(best.size()), found(best.size());
  Walk(c.inputs[0], Axes(c), [&](int64_t at, double x) {
    const auto i = static_cast<size_t>(at);
    if (sign * x > best[i]) {
      best[i] = sign * x;
      found[i] = next[i];
    }
    ++next[i];
  });
  for (int64_t i = 0; i < y.elements(); ++i) SetNumber(y, i, static_cast<double>(found[static_cast<size_t>(i)]));
}

void Softmax(const OpCase& c, bool log, Tensor& y) {
  const Tensor& x = c.inputs[0];
  const int64_t classes = x.shape().dim(x.shape().rank() - 1);
  for (int64_t row = 0; row < x.elements(); row += classes) {
    double largest = -kInfinity, sum = 0;
    for (int64_t i = row; i < row + classes; ++i) {
      const double v = ElementAsDouble(x, i);
      largest = v > largest || std::isnan(v) ? v : largest;
    }
    for (int64_t i = row; i < row + classes; ++i) sum += std::exp(ElementAsDouble(x, i) - largest);
    for (int64_t i = row; i < row + classes; ++i) {
      const double v = ElementAsDouble(x, i) - largest;
      SetNumber(y, i, log ? v - std::log(sum) : std::exp(v) / sum);
    }
  }
}

/// Products of matrices in the last two dimensions of two inputs, from `first` on; batches broadcast.
void Product(const OpCase& c, size_t first, Tensor& y) {
  const bool plain = c.view().Has("transpose_a");
  const Tensor &a = c.inputs[first], &b = c.inputs[first + 1];
  const bool ta = *c.view().Bool(plain ? "transpose_a" : "adj_x"), tb = *c.view().Bool(plain ? "transpose_b" : "adj_y");
  const int rank = y.shape().rank();
  const int64_t m = y.shape().dim(rank - 2), n = y.shape().dim(rank - 1);
  const int64_t k = a.shape().dim(a.shape().rank() - (ta ? 2 : 1));
  const auto batches = [](const Shape& shape) {
    std::vector<int64_t> dims(shape.dims().begin(), shape.dims().end() - 2);
    return *Shape::Make(dims);
  };
  const auto element = [&](const Tensor& t, int64_t i, bool transposed) {
    const Complex value = ElementAsComplex(t, i);
    return transposed && !plain ? std::conj(value) : value;
  };
  const Shape batch = batches(y.shape()), a_batch = batches(a.shape()), b_batch = batches(b.shape());
  const bool real = !IsComplex(y.dtype());
  for (int64_t at = 0; at < batch.elements(); ++at) {
    const int64_t a0 = Broadcast(a_batch, batch, at) * m * k, b0 = Broadcast(b_batch, batch, at) * k * n;
    for (int64_t i = 0; i < m * n; ++i) {
      Complex sum = 0;
      double real_sum = 0;
      for (int64_t p = 0; p < k; ++p) {
        const Complex left = element(a, a0 + (ta ? p * m + i / n : i / n * k + p), ta);
        const Complex right = element(b, b0 + (tb ? i % n * k + p : p * n + i % n), tb);
        if (real) {
          real_sum += left.real() * right.real();
        } else {
          sum += left * right;
        }
      }
      SetNumber(y, at * m * n + i, real ? real_sum : sum);
    }
  }
}

void Transpose(const OpCase& c, Tensor& y) {
  const Shape& from = c.inputs[0].shape();
  const int rank = from.rank();
  for (int64_t flat = 0; flat < y.elements(); ++flat) {
    std::vector<int64_t> index(static_cast<size_t>(rank));
    for (int64_t i = rank - 1, rest = flat; i >= 0; --i) {
      index[static_cast<size_t>(ElementAsInt(c.inputs[1], i))] = rest % y.shape().dim(static_cast<int>(i));
      rest /= y.shape().dim(static_cast<int>(i));
    }
    int64_t at = 0;
    for (int i = 0; i < rank; ++i) at = at * from.dim(i) + index[static_cast<size_t>(i)];
    SetNumber(y, flat, ElementAsComplex(c.inputs[0], at));
  }
}

void AddUp(const OpCase& c, Tensor& y) {
  for (int64_t i = 0; i < y.elements(); ++i) {
    Complex sum = 0;
    for (const Tensor& x : c.inputs) sum += ElementAsComplex(x, i);
    SetNumber(y, i, sum);
  }
}

/// var - alpha * a b
void ProductStep(const OpCase& c, Tensor& y) {
  Product(c, 2, y);
  const double alpha = ElementAsDouble(c.inputs[1], 0);
  for (int64_t i = 0; i < y.elements(); ++i) {
    SetNumber(y, i, ElementAsDouble(c.inputs[0], i) - alpha * ElementAsDouble(y, i));
  }
}

bool Elementwise(const OpCase& c, Tensor& y) {
  const std::string& op = c.def->name;
  const bool complex = IsComplex(c.inputs[0].dtype());
  const auto unary = UnaryOps().find(op);
  const auto complex_unary = ComplexUnaryOps().find(op);
  const auto binary = BinaryOps().find(op);
  const auto real_binary = RealBinaryOps().find(op);
  for (int64_t i = 0; i < y.elements(); ++i) {
    const auto x = [&](size_t input) {
      return ElementAsComplex(c.inputs[input], Broadcast(c.inputs[input].shape(), y.shape(), i));
    };
    if (complex && complex_unary != ComplexUnaryOps().end()) {
      SetNumber(y, i, complex_unary->second(x(0)));
    } else if (!complex && unary != UnaryOps().end()) {
      SetNumber(y, i, unary->second(x(0).real()));
    } else if (complex && binary != BinaryOps().end()) {
      SetNumber(y, i, binary->second(x(0), x(1)));
    } else if (!complex && real_binary != RealBinaryOps().end()) {
      SetNumber(y, i, real_binary->second(x(0).real(), x(1).real()));
    } else {
      return false;
    }
  }
  return complex ? complex_unary != ComplexUnaryOps().end() || binary != BinaryOps().end()
                 : unary != UnaryOps().end() || real_binary != RealBinaryOps().end();
}

}  // namespace

Result<Tensor> ReferenceOf(const OpCase& c, const Shape& shape) {
  WEIR_ASSIGN(Tensor y, Tensor::Make(BaseType(c.signature.outputs[0]), shape));
  const std::string& op = c.def->name;
  if (const auto fold = Folds().find(op); fold != Folds().end()) {
    Reduce(c, fold->second, y);
  } else if (op == "ArgMax" || op == "ArgMin") {
    First(c, op == "ArgMax" ? 1 : -1, y);
  } else if (op == "Softmax" || op == "LogSoftmax") {
    Softmax(c, op == "LogSoftmax", y);
  } else if (op == "MatMul" || op == "BatchMatMul" || op == "BatchMatMulV2" || op == "BatchMatMulV3") {
    Product(c, 0, y);
  } else if (op == "_ApplyGradientDescentMatMul") {
    ProductStep(c, y);
  } else if (op == "Transpose") {
    Transpose(c, y);
  } else if (op == "AddN") {
    AddUp(c, y);
  } else if (!ConvolutionReference(c, y) && !FourierReference(c, y) && !Elementwise(c, y)) {
    return Unimplemented("op {} has no reference", op);
  }
  return y;
}

}  // namespace weir::cases
