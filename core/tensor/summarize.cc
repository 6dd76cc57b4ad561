// The text forms of TensorFlow's printing and asserting ops.
#include "core/tensor/summarize.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <ostream>

#include "core/tensor/number.h"
#include "core/tensor/resource.h"
#include "core/tensor/tensor.h"
#include "core/tensor/variant.h"

namespace weir {
namespace {

/// The shorter of TensorFlow's two precisions that round-trips.
std::string FloatText(float value) {
  if (std::isnan(value)) return "nan";
  char text[32];
  std::snprintf(text, sizeof(text), "%.6g", static_cast<double>(value));
  if (std::strtof(text, nullptr) != value) std::snprintf(text, sizeof(text), "%.9g", static_cast<double>(value));
  return text;
}

std::string DoubleText(double value) {
  if (std::isnan(value)) return "nan";
  char text[32];
  std::snprintf(text, sizeof(text), "%.15g", value);
  if (std::strtod(text, nullptr) != value) std::snprintf(text, sizeof(text), "%.17g", value);
  return text;
}

/// Applies C escapes to quotes, backslashes and control characters; keeps UTF-8.
std::string Escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      case '"':
      case '\'':
      case '\\':
        out += '\\';
        out += c;
        break;
      default:
        const auto byte = static_cast<unsigned char>(c);
        out += byte < 0x20 || byte == 0x7f ? fmt::format("\\{:03o}", byte) : std::string(1, c);
    }
  }
  return out;
}

std::string ElementText(const Tensor& tensor, int64_t i) {
  const DType dtype = tensor.dtype();
  switch (dtype) {
    case DType::kString:
      return Escaped(tensor.as<std::string>()[static_cast<size_t>(i)]);
    case DType::kResource: {
      const auto& handle = tensor.as<ResourceHandle>()[static_cast<size_t>(i)];
      return fmt::format("<ResourceHandle(name=\"{}\", device=\"{}\", container=\"{}\", type=\"{}\")>", handle.name,
                         handle.device, handle.container, handle.type_name);
    }
    case DType::kVariant: {
      const auto& variant = tensor.as<Variant>()[static_cast<size_t>(i)];
      return fmt::format("<{}>", variant.value ? variant.value->DebugString() : "no variant value");
    }
    case DType::kDouble:
      return DoubleText(ElementAsDouble(tensor, i));
    case DType::kComplex64: {
      const std::complex<double> z = ElementAsComplex(tensor, i);
      return fmt::format("({},{})", FloatText(static_cast<float>(z.real())), FloatText(static_cast<float>(z.imag())));
    }
    case DType::kComplex128: {
      const std::complex<double> z = ElementAsComplex(tensor, i);
      return fmt::format("({},{})", DoubleText(z.real()), DoubleText(z.imag()));
    }
    case DType::kUint64:
      return std::to_string(static_cast<uint64_t>(ElementAsInt(tensor, i)));
    default:
      if (IsFloating(dtype)) return FloatText(static_cast<float>(ElementAsDouble(tensor, i)));
      return std::to_string(ElementAsInt(tensor, i));
  }
}

class Summary {
 public:
  Summary(const Tensor& tensor, int64_t limit) : tensor_(tensor), limit_(limit) {}

  std::string Text() {
    text_ = "[";
    if (tensor_.shape().rank() == 0) {
      text_ += limit_ > 0 ? ElementText(tensor_, 0) : "";
    } else {
      Dimension(0);
    }
    return text_ + (tensor_.elements() > limit_ ? "...]" : "]");
  }

 private:
  // At the limit a truncated innermost row ends with "...", and later rows are omitted.
  void Dimension(int axis) {
    const bool last = axis + 1 == tensor_.shape().rank();
    for (int64_t i = 0; i < tensor_.shape().dim(axis); ++i) {
      if (next_ >= limit_) {
        if (last && axis > 0) text_ += "...";
        return;
      }
      if (last) {
        if (i > 0) text_ += ' ';
        text_ += ElementText(tensor_, next_++);
      } else {
        text_ += '[';
        Dimension(axis + 1);
        text_ += ']';
      }
    }
  }

  const Tensor& tensor_;
  const int64_t limit_;
  int64_t next_ = 0;
  std::string text_;
};

/// Prints the axes recursively from the outermost. Entries of an axis are separated by one line break per inner axis,
/// or by a space if it has none.
class Layout {
 public:
  Layout(const Tensor& tensor, int64_t ends)
      : tensor_(tensor), ends_(ends < 0 ? tensor.elements() : std::min(ends, tensor.elements())) {}

  std::string Text() {
    Axis(0);
    return std::move(text_);
  }

 private:
  void Axis(int axis) {
    if (axis == tensor_.shape().rank()) {
      const bool quoted = tensor_.dtype() == DType::kString;
      text_ += quoted ? "\"" : "";
      text_ += ElementText(tensor_, next_++);
      text_ += quoted ? "\"" : "";
      return;
    }
    int64_t inner = 1;
    for (int i = axis + 1; i < tensor_.shape().rank(); ++i) inner *= tensor_.shape().dim(i);
    const int64_t count = tensor_.shape().dim(axis), tail = std::max(ends_, count - ends_), first = next_;
    text_ += '[';
    for (int64_t i = 0; i < count; ++i) {
      const bool shown = i < ends_ || i >= tail;
      if (!shown && i > ends_) continue;
      if (i > 0 || !shown) Separate(axis);
      next_ = first + i * inner;
      if (shown) {
        Axis(axis + 1);
      } else {
        text_ += "...";
      }
    }
    text_ += ']';
  }

  void Separate(int axis) {
    const int inner = tensor_.shape().rank() - axis - 1;
    text_.append(static_cast<size_t>(inner), '\n');
    text_.append(static_cast<size_t>(inner > 0 ? axis + 1 : 1), ' ');
  }

  const Tensor& tensor_;
  const int64_t ends_;
  int64_t next_ = 0;
  std::string text_;
};

}  // namespace

std::string LaidOut(const Tensor& tensor, int64_t ends) { return Layout(tensor, ends).Text(); }

std::ostream& operator<<(std::ostream& out, const Tensor& tensor) {
  if (!tensor.valid()) return out << "None";
  if (tensor.on_host()) return out << LaidOut(tensor);
  return out << "<" << NumpyName(tensor.dtype()) << " " << tensor.shape().ToString() << " on another device>";
}

std::string Tensor::SummarizeValues(int64_t limit) const {
  if (elements() == 0) return "[]";
  if (raw() == nullptr) return "[?]";
  return Summary(*this, limit < 0 ? elements() : limit).Text();
}

}  // namespace weir
