#include "core/io/array_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

#include "core/tensor/number.h"

namespace weir::io {
namespace {

constexpr int kPrecision = 8;
constexpr size_t kLineWidth = 75;
constexpr int64_t kThreshold = 1000;
constexpr int64_t kEdgeItems = 3;

// The shortest decimal digits of a finite number: d.ddd * 10^exponent.
struct Decimal {
  bool negative = false;
  std::string digits = "0";
  int exponent = 0;
};

Decimal FromScientific(std::string_view text) {
  Decimal decimal;
  decimal.negative = text.front() == '-';
  if (decimal.negative) text.remove_prefix(1);
  const size_t e = text.find('e');
  decimal.exponent = std::atoi(std::string(text.substr(e + 1)).c_str());
  decimal.digits = text.substr(0, 1);
  if (e > 2) decimal.digits += text.substr(2, e - 2);
  decimal.digits.erase(std::max<size_t>(decimal.digits.find_last_not_of('0') + 1, 1));
  return decimal;
}

// The fewest digits that round-trip `value` in the precision of `dtype`.
Decimal ShortestDigits(DType dtype, double value) {
  char text[64];
  if (dtype == DType::kHalf || dtype == DType::kBfloat16) {
    const auto bits = [&](double x) {
      const auto f = static_cast<float>(x);
      return dtype == DType::kHalf ? FloatToHalf(f) : FloatToBfloat16(f);
    };
    for (int digits = 0; digits < 9; ++digits) {
      std::snprintf(text, sizeof(text), "%.*e", digits, value);
      if (bits(std::strtod(text, nullptr)) == bits(value)) break;
    }
    return FromScientific(text);
  }
  const bool is_double = dtype == DType::kDouble || dtype == DType::kComplex128;
  const auto result =
      is_double ? std::to_chars(text, text + sizeof(text), value, std::chars_format::scientific)
                : std::to_chars(text, text + sizeof(text), static_cast<float>(value), std::chars_format::scientific);
  return FromScientific(std::string_view(text, static_cast<size_t>(result.ptr - text)));
}

// Rounds to `count` digits, half away from zero; a carry may raise the exponent.
void RoundTo(Decimal& decimal, int count) {
  if (count < 0) {
    decimal = {decimal.negative, "0", 0};
    return;
  }
  if (static_cast<size_t>(count) >= decimal.digits.size()) return;
  const bool up = decimal.digits[static_cast<size_t>(count)] >= '5';
  decimal.digits.resize(static_cast<size_t>(count));
  if (up) {
    size_t i = decimal.digits.size();
    while (i > 0 && decimal.digits[i - 1] == '9') decimal.digits[--i] = '0';
    if (i > 0) {
      ++decimal.digits[i - 1];
    } else {
      decimal.digits.insert(0, "1");
      ++decimal.exponent;
    }
  }
  decimal.digits.erase(decimal.digits.find_last_not_of('0') + 1);
  if (decimal.digits.empty()) decimal = {decimal.negative, "0", 0};
}

// A number split at the decimal point, for column alignment.
struct Parts {
  std::string left;   // sign and digits before the point
  std::string right;  // digits after the point
  std::string exponent;
};

Parts Positional(Decimal decimal, int precision) {
  RoundTo(decimal, decimal.exponent + 1 + precision);
  std::string digits = decimal.digits;
  int point = decimal.exponent + 1;
  if (point <= 0) {
    digits.insert(0, static_cast<size_t>(1 - point), '0');
    point = 1;
  }
  if (digits.size() < static_cast<size_t>(point)) digits.resize(static_cast<size_t>(point), '0');
  Parts parts{(decimal.negative ? "-" : "") + digits.substr(0, static_cast<size_t>(point)),
              digits.substr(static_cast<size_t>(point)), ""};
  if (parts.right == "0") parts.right.clear();
  return parts;
}

Parts Scientific(Decimal decimal) {
  RoundTo(decimal, 1 + kPrecision);
  return {(decimal.negative ? "-" : "") + decimal.digits.substr(0, 1), decimal.digits.substr(1),
          fmt::format("e{}{:02d}", decimal.exponent < 0 ? '-' : '+', std::abs(decimal.exponent))};
}

// The common format of the floating-point numbers of an array, derived from the elements shown.
class FloatFormat {
 public:
  FloatFormat(DType dtype, const std::vector<double>& values, bool always_sign)
      : dtype_(dtype), always_sign_(always_sign) {
    double largest = 0, smallest = 0;
    for (const double value : values) {
      const double size = std::abs(value);
      if (!std::isfinite(value) || size == 0) continue;
      largest = std::max(largest, size);
      smallest = smallest == 0 ? size : std::min(smallest, size);
    }
    scientific_ = largest >= 1e8 || (smallest != 0 && (smallest < 1e-4 || largest / smallest > 1000));
    for (const double value : values) {
      if (!std::isfinite(value)) continue;
      const Parts parts = Split(value);
      left_ = std::max(left_, parts.left.size());
      right_ = std::max(right_, parts.right.size());
      exponent_ = std::max(exponent_, parts.exponent.size());
    }
    for (const double value : values) {
      if (std::isfinite(value)) continue;
      const size_t width = Special(value).size();
      const size_t behind = right_ + exponent_ + 1;
      if (width > behind) left_ = std::max(left_, width - behind);
    }
  }

  std::string Text(double value) const {
    if (!std::isfinite(value)) return fmt::format("{:>{}}", Special(value), left_ + 1 + right_ + exponent_);
    const Parts parts = Split(value);
    if (!scientific_) return fmt::format("{:>{}}.{:<{}}", parts.left, left_, parts.right, right_);
    return fmt::format("{:>{}}.{:0<{}}{}", parts.left, left_, parts.right, right_, parts.exponent);
  }

 private:
  std::string Special(double value) const {
    if (std::isnan(value)) return always_sign_ ? "+nan" : "nan";
    return value < 0 ? "-inf" : always_sign_ ? "+inf" : "inf";
  }
  Parts Split(double value) const {
    const Decimal decimal = ShortestDigits(dtype_, value);
    Parts parts = scientific_ ? Scientific(decimal) : Positional(decimal, kPrecision);
    if (always_sign_ && !decimal.negative) parts.left.insert(0, "+");
    return parts;
  }

  DType dtype_;
  bool always_sign_;
  bool scientific_ = false;
  size_t left_ = 1;
  size_t right_ = 0;
  size_t exponent_ = 0;
};

std::string BytesText(std::string_view text) {
  const char quote = text.find('\'') != std::string_view::npos && text.find('"') == std::string_view::npos ? '"' : '\'';
  std::string out = {'b', quote};
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == quote || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\t') {
      out += "\\t";
    } else {
      out += byte < 0x20 || byte >= 0x7f ? fmt::format("\\x{:02x}", byte) : std::string(1, c);
    }
  }
  return out + quote;
}

// A floating-point scalar as printed by Python.
std::string ScalarText(DType dtype, double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  const Decimal decimal = ShortestDigits(dtype, value);
  if (decimal.exponent < -4 || decimal.exponent >= 16) {
    const Parts parts = Scientific(decimal);
    return parts.left + (parts.right.empty() ? "" : "." + parts.right) + parts.exponent;
  }
  const Parts parts = Positional(decimal, 20);
  return parts.left + "." + (parts.right.empty() ? "0" : parts.right);
}

// Prints one tensor: collects the elements to show, derives their common format, then lays out the brackets.
class Printer {
 public:
  explicit Printer(const Tensor& tensor) : tensor_(tensor), summarize_(tensor.elements() > kThreshold) {}

  std::string Text() {
    if (tensor_.elements() == 0) return "[]";
    if (tensor_.raw() == nullptr) return "[?]";
    MakeFormat();
    return tensor_.shape().rank() == 0 ? Scalar() : Rows(0, 0, " ", kLineWidth);
  }

 private:
  // Calls f(i) for the shown indices of an axis, and f(-1) for the gap.
  template <class F>
  void ForShown(int axis, F f) const {
    const int64_t extent = tensor_.shape().dim(axis);
    const bool gap = summarize_ && extent > 2 * kEdgeItems;
    for (int64_t i = 0; i < extent; ++i) {
      if (gap && i == kEdgeItems) {
        f(-1);
        i = extent - kEdgeItems;
      }
      f(i);
    }
  }

  void Collect(int axis, int64_t index, std::vector<int64_t>& shown) const {
    if (axis == tensor_.shape().rank()) {
      shown.push_back(index);
      return;
    }
    ForShown(axis, [&](int64_t i) {
      if (i >= 0) Collect(axis + 1, index * tensor_.shape().dim(axis) + i, shown);
    });
  }

  void MakeFormat();

  std::string Scalar() const {
    if (IsFloating(tensor_.dtype())) return ScalarText(tensor_.dtype(), ElementAsDouble(tensor_, 0));
    const std::string text = element_(0);
    return text.substr(std::min(text.find_first_not_of(' '), text.size()));
  }

  std::string Rows(int axis, int64_t index, const std::string& indent, size_t width) const {
    if (axis == tensor_.shape().rank()) return element_(index);
    const bool innermost = axis + 1 == tensor_.shape().rank();
    std::string done;
    std::string line = indent;
    bool first = true;
    ForShown(axis, [&](int64_t i) {
      const std::string word =
          i < 0 ? "..." : Rows(axis + 1, index * tensor_.shape().dim(axis) + i, indent + " ", width - 1);
      if (!first && innermost) line += ' ';
      if (!first && !innermost) {
        done += line + std::string(static_cast<size_t>(tensor_.shape().rank() - axis - 1), '\n');
        line = indent;
      }
      if (innermost && line.size() + word.size() > width - 1 && line.size() > indent.size()) {
        done += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
        line = indent;
      }
      line += word;
      first = false;
    });
    done += line;
    return "[" + done.substr(indent.size()) + "]";
  }

  const Tensor& tensor_;
  const bool summarize_;
  std::function<std::string(int64_t)> element_;
};

void Printer::MakeFormat() {
  std::vector<int64_t> shown;
  Collect(0, 0, shown);
  const DType dtype = tensor_.dtype();
  if (IsFloating(dtype)) {
    std::vector<double> values;
    for (const int64_t i : shown) values.push_back(ElementAsDouble(tensor_, i));
    element_ = [this, format = FloatFormat(dtype, values, false)](int64_t i) {
      return format.Text(ElementAsDouble(tensor_, i));
    };
  } else if (IsComplex(dtype)) {
    std::vector<double> real, imaginary;
    for (const int64_t i : shown) {
      real.push_back(ElementAsComplex(tensor_, i).real());
      imaginary.push_back(ElementAsComplex(tensor_, i).imag());
    }
    element_ = [this, re = FloatFormat(dtype, real, false), im = FloatFormat(dtype, imaginary, true)](int64_t i) {
      const std::complex<double> z = ElementAsComplex(tensor_, i);
      std::string text = im.Text(z.imag());
      const size_t end = text.find_last_not_of(' ') + 1;
      return re.Text(z.real()) + text.insert(end, "j");
    };
  } else if (dtype == DType::kString) {
    element_ = [this](int64_t i) { return BytesText(tensor_.as<std::string>()[static_cast<size_t>(i)]); };
  } else if (dtype == DType::kBool) {
    element_ = [this](int64_t i) -> std::string { return ElementAsInt(tensor_, i) != 0 ? " True" : "False"; };
  } else {
    const auto text = [this](int64_t i) {
      const int64_t value = ElementAsInt(tensor_, i);
      return tensor_.dtype() == DType::kUint64 ? std::to_string(static_cast<uint64_t>(value)) : std::to_string(value);
    };
    size_t width = 0;
    for (const int64_t i : shown) width = std::max(width, text(i).size());
    element_ = [text, width](int64_t i) { return fmt::format("{:>{}}", text(i), width); };
  }
}

}  // namespace

std::string ArrayText(const Tensor& tensor) { return Printer(tensor).Text(); }

}  // namespace weir::io
