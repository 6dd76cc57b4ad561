#include "tools/weir/cases/case_values.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/errors.h"
#include "core/tensor/number.h"

namespace weir::cases {
namespace {

using Complex = std::complex<double>;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

/// "a", "b" of "a,b"; commas inside of brackets and quotes do not part.
std::vector<std::string> Parts(const std::string& text) {
  std::vector<std::string> parts;
  int depth = 0;
  bool quoted = false;
  std::string part;
  for (const char c : text) {
    if (c == '"') quoted = !quoted;
    if (!quoted) depth += (c == '[' || c == '(') - (c == ']' || c == ')');
    if (c == ',' && depth == 0 && !quoted) {
      parts.push_back(part);
      part.clear();
    } else if (quoted || c != ' ') {
      part += c;
    }
  }
  if (!part.empty() || !parts.empty()) parts.push_back(part);
  return parts;
}

/// The shape of a nested list, and its elements in order.
Status Flatten(const std::string& text, size_t depth, std::vector<int64_t>& dims, std::vector<std::string>& elements) {
  if (!text.starts_with('[')) {
    if (depth != dims.size()) return InvalidArgument("'{}' lies less deep than others", text);
    elements.push_back(text);
    return {};
  }
  if (!text.ends_with(']')) return InvalidArgument("'{}' lacks its end", text);
  const std::vector<std::string> parts = Parts(text.substr(1, text.size() - 2));
  const auto count = static_cast<int64_t>(parts.size());
  if (dims.size() == depth && elements.empty()) dims.push_back(count);
  if (dims.size() <= depth || dims[depth] != count) return InvalidArgument("'{}' has {} elements", text, count);
  for (const std::string& part : parts) WEIR_TRY(Flatten(part, depth + 1, dims, elements));
  return {};
}

Status Bad(const std::string& text) { return InvalidArgument("'{}' is no value", text); }

Result<double> Number(const std::string& text) {
  if (text == "true" || text == "false") return text == "true" ? 1.0 : 0.0;
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  return text.empty() || *end != 0 ? Result<double>(Bad(text)) : Result<double>(value);
}

/// Replaces "\\x" and two hexadecimal digits by the byte.
std::string WithBytes(const std::string& text) {
  std::string bytes;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool escaped = text.compare(i, 2, "\\x") == 0 && i + 3 < text.size();
    bytes += escaped ? static_cast<char>(std::stoi(text.substr(i + 2, 2), nullptr, 16)) : text[i];
    if (escaped) i += 3;
  }
  return bytes;
}

Status SetElement(Tensor& tensor, int64_t i, const std::string& text) {
  const auto at = static_cast<size_t>(i);
  if (tensor.dtype() == DType::kString) {
    if (text.size() < 2 || text.front() != '"') return Bad(text);
    tensor.mutable_as<std::string>()[at] = WithBytes(text.substr(1, text.size() - 2));
    return {};
  }
  if (tensor.dtype() == DType::kInt64 || tensor.dtype() == DType::kUint64) {  // beyond what a double holds
    char* end = nullptr;
    const bool wide = tensor.dtype() == DType::kUint64;
    const uint64_t bits =
        wide ? std::strtoull(text.c_str(), &end, 0) : static_cast<uint64_t>(std::strtoll(text.c_str(), &end, 0));
    std::memcpy(tensor.mutable_raw() + at * sizeof bits, &bits, sizeof bits);
    return text.empty() || *end != 0 ? Bad(text) : Status();
  }
  if (text.starts_with('(')) {
    const std::vector<std::string> parts = Parts(text.substr(1, text.size() - 2));
    if (parts.size() != 2) return Bad(text);
    WEIR_ASSIGN(const double real, Number(parts[0]));
    WEIR_ASSIGN(const double imaginary, Number(parts[1]));
    SetNumber(tensor, i, {real, imaginary});
    return {};
  }
  WEIR_ASSIGN(const double value, Number(text));
  SetNumber(tensor, i, value);
  return {};
}

/// Numbers without ties, zeros or symmetry, inside (low, high).
double Real(int64_t i, double low, double high, double phase) {
  return low + (high - low) * std::fmod(0.618033988749895 * static_cast<double>(i + 1) + phase, 1.0);
}

/// Element i of [rows, columns] of `strange`.
double Strange(int64_t i, int64_t columns, int kind) {
  const int64_t row = i / columns, column = i % columns;
  const double plain = static_cast<float>(std::sin(0.7 * static_cast<double>(i) + kind));
  const bool first = column == 0, last = column == columns - 1, middle = column == columns / 2;
  switch ((row + kind) % 8) {
    case 0:
      return first ? kNan : plain;
    case 1:
      return last ? kInf : plain;
    case 2:
      return middle ? -kInf : plain;
    case 3:
      return -kInf;
    case 4:
      return first ? -kInf : middle ? kInf : plain;
    case 5:
      return first ? 0 : last ? kNan : plain;
    case 6:
      return kNan;
    default:
      return middle ? 0 : plain;  // finite
  }
}

enum class RuleKind : uint8_t { kCount, kZeros, kOnes, kInts, kReals, kSparse, kStrange };

std::optional<RuleKind> RuleNamed(std::string_view name) {
  static constexpr std::pair<std::string_view, RuleKind> kRules[] = {
      {"count", RuleKind::kCount}, {"zeros", RuleKind::kZeros},   {"ones", RuleKind::kOnes},
      {"ints", RuleKind::kInts},   {"reals", RuleKind::kReals},   {"sparse", RuleKind::kSparse},
      {"strange", RuleKind::kStrange}};
  for (const auto& [known, kind] : kRules) {
    if (known == name) return kind;
  }
  return std::nullopt;
}

struct Rule {
  RuleKind kind;
  Shape shape;
  std::vector<double> numbers;
  int position;

  double Argument(size_t i, double otherwise) const { return i < numbers.size() ? numbers[i] : otherwise; }
  Complex At(int64_t i, bool complex) const {
    const double x = static_cast<double>(i);
    switch (kind) {
      case RuleKind::kCount:
        return x;
      case RuleKind::kZeros:
        return 0;
      case RuleKind::kOnes:
        return 1;
      case RuleKind::kInts: {
        const auto modulus = static_cast<int64_t>(Argument(0, 5));
        return static_cast<double>((i * (position == 0 ? 1 : 7) + position) % modulus + 1);
      }
      case RuleKind::kReals: {
        const double low = Argument(0, -1.9), high = Argument(1, 2.1), phase = 0.3 + 0.41 * position;
        return Complex(Real(i, low, high, phase), complex ? Real(i, low, high, phase + 0.23) : 0);
      }
      case RuleKind::kSparse:
        return i % 3 == 0 ? 0 : static_cast<float>(std::cos(0.3 * x));
      case RuleKind::kStrange:
        return Strange(i, shape.dim(1), static_cast<int>(Argument(0, 0)));
    }
    return 0;
  }
};

Result<Tensor> ByRule(const std::string& text, DType dtype, int position) {
  const size_t open = text.find('['), close = text.find(']');
  if (close == std::string::npos) return Bad(text);
  std::vector<int64_t> dims;
  for (const std::string& part : Parts(text.substr(open + 1, close - open - 1)))
    dims.push_back(std::atoll(part.c_str()));
  WEIR_ASSIGN(Shape shape, Shape::Make(dims));
  const std::optional<RuleKind> kind = RuleNamed(std::string_view(text).substr(0, open));
  if (!kind || (*kind == RuleKind::kStrange && shape.rank() != 2)) return Bad(text);
  Rule rule{*kind, shape, {}, position};
  if (close + 1 < text.size()) {
    for (const std::string& part : Parts(text.substr(close + 2, text.size() - close - 3))) {
      WEIR_ASSIGN(const double number, Number(part));
      rule.numbers.push_back(number);
    }
  }
  WEIR_ASSIGN(Tensor tensor, Tensor::Make(dtype, std::move(shape)));
  const size_t size = SizeOf(dtype);
  const bool complex = IsComplex(dtype);
  const int64_t elements = tensor.elements();
  std::byte* element = tensor.mutable_raw();
  for (int64_t i = 0; i < elements; ++i, element += size) WEIR_TRY(StoreNumber(dtype, rule.At(i, complex), element));
  return tensor;
}

/// Relative error that one operation in this type may have.
double ToleranceOf(DType dtype) {
  switch (dtype) {
    case DType::kDouble:
    case DType::kComplex128:
      return 1e-13;
    case DType::kHalf:
      return 2e-3;
    case DType::kBfloat16:
      return 1.6e-2;
    default:
      return 2e-6;
  }
}

bool Near(double got, double wanted, double tolerance) {
  if (std::isnan(wanted) || std::isinf(wanted)) return std::isnan(wanted) ? std::isnan(got) : got == wanted;
  return std::abs(got - wanted) <= tolerance * std::max(1.0, std::abs(wanted));
}

bool IsWhole(DType dtype) { return !IsComplex(dtype) && !IsFloating(dtype); }

}  // namespace

void SetNumber(Tensor& tensor, int64_t i, Complex value) {
  const size_t size = SizeOf(tensor.dtype());
  // The parser of rows has refused types without numbers.
  (void)StoreNumber(tensor.dtype(), value, tensor.mutable_raw() + static_cast<size_t>(i) * size);
}

Result<Tensor> ParseCaseValue(const std::string& text, DType dtype, int position) {
  const size_t open = text.find('[');
  if (open != std::string::npos && open > 0 && std::isalpha(static_cast<unsigned char>(text[0])) != 0) {
    return ByRule(text, dtype, position);
  }
  std::vector<int64_t> dims;
  std::vector<std::string> elements;
  WEIR_TRY(Flatten(text, 0, dims, elements));
  WEIR_ASSIGN(Shape shape, Shape::Make(dims));
  WEIR_ASSIGN(Tensor tensor, Tensor::Make(dtype, std::move(shape)));
  for (size_t i = 0; i < elements.size(); ++i) WEIR_TRY(SetElement(tensor, static_cast<int64_t>(i), elements[i]));
  return tensor;
}

Status SameCaseValue(const Tensor& got, const Tensor& wanted, double tolerance) {
  if (got.dtype() != wanted.dtype() || !(got.shape() == wanted.shape())) {
    return Internal("{} {}, wanted {} {}", Name(got.dtype()), got.shape().ToString(), Name(wanted.dtype()),
                    wanted.shape().ToString());
  }
  const bool wide = got.dtype() == DType::kDouble || got.dtype() == DType::kComplex128;
  if (tolerance == 0 || (wide && tolerance > ToleranceOf(got.dtype()))) tolerance = ToleranceOf(got.dtype());
  for (int64_t i = 0; i < got.elements(); ++i) {
    const auto at = static_cast<size_t>(i);
    bool same = false;
    if (got.dtype() == DType::kString) {
      same = got.as<std::string>()[at] == wanted.as<std::string>()[at];
    } else if (IsWhole(got.dtype())) {
      same = ElementAsInt(got, i) == ElementAsInt(wanted, i);
    } else {
      const Complex x = ElementAsComplex(got, i), y = ElementAsComplex(wanted, i);
      same = Near(x.real(), y.real(), tolerance) && Near(x.imag(), y.imag(), tolerance);
    }
    if (!same) {
      return Internal("element {}: {}, wanted {}", i, got.SummarizeValues(16), wanted.SummarizeValues(16));
    }
  }
  return {};
}

}  // namespace weir::cases
