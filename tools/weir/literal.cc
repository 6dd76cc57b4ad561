#include "tools/weir/literal.h"

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "core/base/errors.h"
#include "core/tensor/number.h"

namespace weir::cli {
namespace {

struct Leaf {
  enum class Kind { kNumber, kBool, kString };
  Kind kind = Kind::kNumber;
  std::string text;  // a number as written, or a decoded string
};

/// The values of a literal in row-major order.
struct Literal {
  std::vector<int64_t> dims;
  std::vector<Leaf> leaves;
};

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<Literal> Parse() {
    WEIR_TRY(Value(0));
    SkipBlanks();
    if (at_ != text_.size()) return Fault("text after the value");
    return std::move(literal_);
  }

 private:
  static constexpr int64_t kOpen = -1;  // extent of an array whose end has not been read

  Status Fault(std::string_view what) const { return InvalidArgument("{}: {} at column {}", text_, what, at_ + 1); }
  void SkipBlanks() { at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size()); }
  bool Take(char c) {
    SkipBlanks();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  Status Value(size_t depth) {
    SkipBlanks();
    if (at_ == text_.size()) return Fault("a value is missing");
    if (text_[at_] == '[') return Array(depth);
    if (literal_.dims.size() != depth) return Fault("a value where an array is wanted, like those before");
    seen_leaf_ = true;
    return text_[at_] == '"' ? Text() : Word();
  }

  Status Array(size_t depth) {
    if (depth == literal_.dims.size()) {
      if (seen_leaf_) return Fault("an array where a value is wanted, like those before");
      if (depth == static_cast<size_t>(kMaxRank)) return Fault(fmt::format("more than {} nested arrays", kMaxRank));
      literal_.dims.push_back(kOpen);
    }
    ++at_;
    int64_t count = 0;
    if (!Take(']')) {
      do {
        WEIR_TRY(Value(depth + 1));
        ++count;
      } while (Take(','));
      if (!Take(']')) return Fault("',' or ']' is missing");
    }
    int64_t& extent = literal_.dims[depth];
    if (extent != kOpen && extent != count) {
      return Fault(fmt::format("an array of {} where those before have {}, ending", count, extent));
    }
    extent = count;
    return Status();
  }

  Status Text() {
    const size_t begin = at_++;
    while (at_ < text_.size() && text_[at_] != '"') at_ += text_[at_] == '\\' ? 2 : 1;
    if (at_ >= text_.size()) {
      at_ = begin;
      return Fault("a text without its closing quote");
    }
    ++at_;
    const nlohmann::json json = nlohmann::json::parse(text_.substr(begin, at_ - begin), nullptr, false);
    if (!json.is_string()) {
      at_ = begin;
      return Fault("a text that is no JSON string");
    }
    literal_.leaves.push_back({Leaf::Kind::kString, json.get<std::string>()});
    return Status();
  }

  Status Word() {
    const size_t begin = at_;
    at_ = std::min(text_.find_first_of(",] \t\r\n", at_), text_.size());
    const std::string_view word = text_.substr(begin, at_ - begin);
    const std::string_view unsigned_word = word.substr(word.starts_with('-') ? 1 : 0);
    const bool number = !unsigned_word.empty() && (unsigned_word[0] >= '0' && unsigned_word[0] <= '9');
    const bool named =
        unsigned_word == "nan" || unsigned_word == "NaN" || unsigned_word == "inf" || unsigned_word == "Infinity";
    if (word == "true" || word == "false") {
      literal_.leaves.push_back({Leaf::Kind::kBool, std::string(word)});
    } else if (number || named) {
      literal_.leaves.push_back({Leaf::Kind::kNumber, std::string(word)});
    } else {
      at_ = begin;
      return Fault(fmt::format("'{}' is no number, true, false, nan, inf or \"text\",", word));
    }
    return Status();
  }

  std::string_view text_;
  size_t at_ = 0;
  bool seen_leaf_ = false;
  Literal literal_;
};

Status DoesNotFit(const Leaf& leaf, DType dtype) {
  return InvalidArgument("{} is no value of type {}", leaf.text, Name(dtype));
}

bool IsSignedType(DType dtype) {
  switch (dtype) {
    case DType::kUint8:
    case DType::kUint16:
    case DType::kUint32:
    case DType::kUint64:
    case DType::kUint4:
    case DType::kUint2:
    case DType::kQuint8:
    case DType::kQuint16:
      return false;
    default:
      return true;
  }
}

int BitsOf(DType dtype) {
  if (dtype == DType::kInt4 || dtype == DType::kUint4) return 4;
  if (dtype == DType::kInt2 || dtype == DType::kUint2) return 2;
  return static_cast<int>(SizeOf(dtype)) * 8;
}

template <class T>
bool ParseWhole(const std::string& text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end != text.data() + text.size()) return false;
  if constexpr (std::is_floating_point_v<T>) {
    if (error == std::errc::result_out_of_range) {  // too large is an error, too small is 0
      value = static_cast<T>(std::strtod(text.c_str(), nullptr));
      return std::isfinite(value);
    }
  }
  return error == std::errc();
}

Status FillInteger(const Leaf& leaf, DType dtype, std::byte* to) {
  const int bits = BitsOf(dtype);
  uint64_t value = 0;
  bool fits = leaf.kind == Leaf::Kind::kNumber;
  if (IsSignedType(dtype)) {
    int64_t number = 0;
    const int64_t limit = bits == 64 ? std::numeric_limits<int64_t>::max() : (int64_t{1} << (bits - 1)) - 1;
    fits = fits && ParseWhole(leaf.text, number) && number <= limit && number >= -limit - 1;
    value = static_cast<uint64_t>(number);
  } else {
    fits = fits && ParseWhole(leaf.text, value) && (bits == 64 || value >> bits == 0);
  }
  if (!fits) return DoesNotFit(leaf, dtype);
  std::memcpy(to, &value, SizeOf(dtype));  // little-endian
  return Status();
}

Status FillReal(const Leaf& leaf, DType dtype, std::byte* to) {
  const bool wide = dtype == DType::kDouble || dtype == DType::kComplex128;
  double real = 0;
  float narrow = 0;  // parsed as float, to avoid rounding twice
  const bool parsed =
      leaf.kind == Leaf::Kind::kNumber && (wide ? ParseWhole(leaf.text, real) : ParseWhole(leaf.text, narrow));
  if (!parsed) return DoesNotFit(leaf, dtype);
  if (dtype == DType::kHalf || dtype == DType::kBfloat16) {
    const uint16_t bits = dtype == DType::kHalf ? FloatToHalf(narrow) : FloatToBfloat16(narrow);
    if (std::isfinite(narrow) && !std::isfinite(dtype == DType::kHalf ? HalfToFloat(bits) : Bfloat16ToFloat(bits))) {
      return DoesNotFit(leaf, dtype);
    }
    std::memcpy(to, &bits, sizeof(bits));
  } else if (wide) {
    std::memcpy(to, &real, sizeof(real));
  } else {
    std::memcpy(to, &narrow, sizeof(narrow));
  }
  return Status();
}

Status FillFloat8(const Leaf& leaf, DType dtype, std::byte* to) {
  double value = 0;
  if (leaf.kind != Leaf::Kind::kNumber || !ParseWhole(leaf.text, value)) return DoesNotFit(leaf, dtype);
  WEIR_ASSIGN(const Tensor element, ScalarFrom(dtype, value));
  std::memcpy(to, element.raw(), SizeOf(dtype));
  return Status();
}

Status Fill(const Leaf& leaf, Tensor& tensor, size_t i) {
  const DType dtype = tensor.dtype();
  if (dtype == DType::kString) {
    if (leaf.kind != Leaf::Kind::kString) return DoesNotFit(leaf, dtype).Append("; texts are written in double quotes");
    tensor.mutable_as<std::string>()[i] = leaf.text;
    return Status();
  }
  std::byte* to = tensor.mutable_raw() + i * SizeOf(dtype);
  if (dtype == DType::kBool) {
    if (leaf.kind != Leaf::Kind::kBool) return DoesNotFit(leaf, dtype);
    *to = std::byte{leaf.text == "true"};
    return Status();
  }
  if (IsInteger(dtype) || IsQuantized(dtype)) return FillInteger(leaf, dtype, to);
  if (IsComplex(dtype)) {
    std::memset(to, 0, SizeOf(dtype));
    return FillReal(leaf, dtype, to);
  }
  const bool plain =
      dtype == DType::kFloat || dtype == DType::kDouble || dtype == DType::kHalf || dtype == DType::kBfloat16;
  return plain ? FillReal(leaf, dtype, to) : FillFloat8(leaf, dtype, to);
}

}  // namespace

std::string ShortName(DType dtype) {
  switch (dtype) {
    case DType::kFloat:
      return "f32";
    case DType::kDouble:
      return "f64";
    case DType::kHalf:
      return "f16";
    case DType::kBfloat16:
      return "bf16";
    case DType::kBool:
      return "i1";
    default:
      return !IsInteger(dtype) ? Name(dtype) : (IsSignedType(dtype) ? "i" : "u") + std::to_string(BitsOf(dtype));
  }
}

namespace {

/// "2x3xf32=0.5": the elements are all that value. Nothing if the text has another form.
Result<std::optional<Tensor>> ParseSplat(std::string_view text, DType dtype) {
  const size_t equals = text.find('=');
  const std::string_view head = text.substr(0, std::min(equals, text.size()));
  const auto is_part = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z'); };
  if (equals == std::string_view::npos || !std::ranges::all_of(head, is_part)) return std::optional<Tensor>();
  std::vector<int64_t> dims;
  std::string_view rest = head;
  for (size_t at = rest.find('x'); at != std::string_view::npos; at = rest.find('x')) {
    int64_t dim = 0;
    if (!ParseWhole(std::string(rest.substr(0, at)), dim)) break;
    dims.push_back(dim);
    rest.remove_prefix(at + 1);
  }
  if (rest != ShortName(dtype)) {
    return InvalidArgument("'{}' is of type '{}', wanted '{}', which is written {}", head, rest, Name(dtype),
                           ShortName(dtype));
  }
  WEIR_ASSIGN(Shape shape, Shape::Make(dims));
  const std::string value(text.substr(equals + 1));
  WEIR_ASSIGN(const Literal literal, Parser(value).Parse());
  if (!literal.dims.empty()) return InvalidArgument("wanted one value after '{}=', got '{}'", head, value);
  WEIR_ASSIGN(Tensor tensor, Tensor::Make(dtype, std::move(shape)));
  for (int64_t i = 0; i < tensor.elements(); ++i) WEIR_TRY(Fill(literal.leaves[0], tensor, static_cast<size_t>(i)));
  return std::optional<Tensor>(std::move(tensor));
}

}  // namespace

Result<Tensor> ParseLiteral(std::string_view text, DType dtype) {
  if (dtype != DType::kString && !HasFixedSize(dtype)) return Unimplemented("type {} has no literals", Name(dtype));
  WEIR_ASSIGN(std::optional<Tensor> splat, ParseSplat(text, dtype));
  if (splat) return std::move(*splat);
  WEIR_ASSIGN(const Literal literal, Parser(text).Parse());
  WEIR_ASSIGN(Shape shape, Shape::Make(literal.dims));
  WEIR_ASSIGN(Tensor tensor, Tensor::Make(dtype, std::move(shape)));
  for (size_t i = 0; i < literal.leaves.size(); ++i) WEIR_TRY(Fill(literal.leaves[i], tensor, i));
  return tensor;
}

}  // namespace weir::cli
