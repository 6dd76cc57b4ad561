#include "core/builtin/numerals.h"

#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "core/builtin/families.h"
#include "core/builtin/texts.h"
#include "core/tensor/number.h"

namespace weir::builtin {
namespace {

constexpr std::string_view kSpaces = " \t\n\v\f\r";

std::string_view WithoutSpaces(std::string_view text) {
  const size_t begin = text.find_first_not_of(kSpaces);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpaces) + 1 - begin);
}

bool SameLetters(std::string_view text, std::string_view lower) {
  if (text.size() != lower.size()) return false;
  for (size_t i = 0; i < text.size(); ++i) {
    if ((text[i] | 0x20) != lower[i]) return false;
  }
  return true;
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

/// Digits with at most one point among or around them, then perhaps an exponent.
bool IsDecimal(std::string_view text) {
  size_t at = 0, digits = 0;
  const auto skip = [&] {
    const size_t begin = at;
    while (at < text.size() && IsDigit(text[at])) ++at;
    return at - begin;
  };
  digits = skip();
  if (at < text.size() && text[at] == '.') {
    ++at;
    digits += skip();
  }
  if (digits == 0) return false;
  if (at < text.size() && (text[at] | 0x20) == 'e') {
    ++at;
    if (at < text.size() && (text[at] == '+' || text[at] == '-')) ++at;
    if (skip() == 0) return false;
  }
  return at == text.size();
}

template <class T>
bool ReadFloating(std::string_view text, T* value) {
  if (text.empty()) return false;
  std::string_view digits = WithoutSpaces(text);
  *value = 0;
  if (digits.empty()) return true;  // blanks alone read as 0
  const bool negative = digits[0] == '-';
  if (negative || digits[0] == '+') digits.remove_prefix(1);
  if (SameLetters(digits, "inf")) {
    *value = std::numeric_limits<T>::infinity();
  } else if (SameLetters(digits, "nan")) {
    *value = std::numeric_limits<T>::quiet_NaN();
  } else if (digits.size() > 2 && digits[0] == '0' && (digits[1] | 0x20) == 'x') {
    for (const char c : digits.substr(2)) {
      const char lower = static_cast<char>(c | 0x20);
      if (!IsDigit(c) && !(lower >= 'a' && lower <= 'f')) return false;
      *value = *value * 16 + static_cast<T>(IsDigit(c) ? c - '0' : lower - 'a' + 10);
    }
  } else if (IsDecimal(digits)) {
    const std::string ended(digits);  // strtod wants a zero at the end
    *value = static_cast<T>(std::is_same_v<T, float> ? std::strtof(ended.c_str(), nullptr)
                                                     : std::strtod(ended.c_str(), nullptr));
  } else {
    return false;
  }
  if (negative) *value = -*value;
  return true;
}

template <class T>
bool ReadInteger(std::string_view text, T* value) {
  const std::string_view digits = WithoutSpaces(text);
  const auto [end, fault] = std::from_chars(digits.data(), digits.data() + digits.size(), *value);
  return !digits.empty() && fault == std::errc() && end == digits.data() + digits.size();
}

template <class T>
Status ReadAll(kernel::BuiltinCall& call) {
  WEIR_ASSIGN(const std::span<const std::string> texts, Elements<std::string>(call, 0, "string_tensor"));
  WEIR_ASSIGN(Tensor made, Tensor::Make(DTypeOf<T>::value, call.inputs[0].shape()));
  const std::span<T> out = made.mutable_as<T>();
  for (size_t i = 0; i < out.size(); ++i) {
    if (ReadNumber(texts[i], &out[i])) continue;
    return InvalidArgument("StringToNumberOp could not correctly convert string: {}", texts[i]);
  }
  call.outputs[0] = std::move(made);
  return Status();
}

Status StringToNumber(kernel::BuiltinCall& call) {
  WEIR_TRY(CheckCounts(call, 1, 1));
  WEIR_ASSIGN(const DType type, call.attrs.Type("out_type"));
  switch (type) {
    case DType::kFloat:
      return ReadAll<float>(call);
    case DType::kDouble:
      return ReadAll<double>(call);
    case DType::kInt32:
      return ReadAll<int32_t>(call);
    case DType::kInt64:
      return ReadAll<int64_t>(call);
    case DType::kUint32:
      return ReadAll<uint32_t>(call);
    case DType::kUint64:
      return ReadAll<uint64_t>(call);
    default:
      return InvalidArgument("out_type must be a type of numbers, got {}", Name(type));
  }
}

/// printf's conversion of one number.
struct Conversion {
  std::string flags;  // "%" with the fill, "%-5.2"
  char letter = 'f';

  template <class T>
  std::string Print(const char* size, T value) const {
    const std::string format = flags + size + letter;
    const int length = std::snprintf(nullptr, 0, format.c_str(), value);
    std::string text(length < 0 ? 0 : static_cast<size_t>(length), ' ');
    static_cast<void>(std::snprintf(text.data(), text.size() + 1, format.c_str(), value));
    return text;
  }
};

/// The conversion that the attributes describe, checked with TensorFlow's texts.
Result<Conversion> ConversionOf(const kernel::BuiltinCall& call, DType type) {
  constexpr int64_t kLongest = 65536;
  WEIR_ASSIGN(const int64_t precision, call.attrs.Int("precision"));
  WEIR_ASSIGN(const bool scientific, call.attrs.Bool("scientific"));
  WEIR_ASSIGN(const bool shortest, call.attrs.Bool("shortest"));
  WEIR_ASSIGN(const int64_t width, call.attrs.Int("width"));
  WEIR_ASSIGN(const std::string fill, call.attrs.String("fill"));
  const bool number = IsInteger(type) || type == DType::kBool;
  if (number && (scientific || shortest)) {
    return InvalidArgument("scientific and shortest format not supported for datatype {}", Name(type));
  }
  if (number && precision >= 0) return InvalidArgument("precision not supported for datatype {}", Name(type));
  if (scientific && shortest) return InvalidArgument("Cannot select both scientific and shortest notation");
  if (fill.size() > 1) return InvalidArgument("Fill string must be one or fewer characters");
  if (!fill.empty() && std::string_view(" +-0#").find(fill[0]) == std::string_view::npos) {
    return InvalidArgument("Fill argument not supported: \"{}\"", fill);
  }
  if (width > kLongest || precision > kLongest) {
    return InvalidArgument("width and precision must be at most {}, got {} and {}", kLongest, width, precision);
  }
  Conversion conversion{"%" + fill, scientific ? 'e' : shortest ? 'g' : 'f'};
  if (width >= 0) conversion.flags += std::to_string(width);
  if (precision >= 0 && (type != DType::kString || width >= 0)) conversion.flags += "." + std::to_string(precision);
  if (IsInteger(type)) {
    const bool is_unsigned =
        type == DType::kUint8 || type == DType::kUint16 || type == DType::kUint32 || type == DType::kUint64;
    conversion.letter = is_unsigned ? 'u' : 'd';
  }
  if (type == DType::kString) conversion.letter = 's';
  return conversion;
}

Status AsString(kernel::BuiltinCall& call) {
  WEIR_TRY(CheckCounts(call, 1, 1));
  const Tensor& input = call.inputs[0];
  const DType type = input.dtype();
  if (!IsFloating(type) && !IsInteger(type) && !IsComplex(type) && type != DType::kBool && type != DType::kString) {
    return Unimplemented("AsString of {}", Name(type));
  }
  WEIR_ASSIGN(const Conversion conversion, ConversionOf(call, type));
  WEIR_ASSIGN(Tensor made, Tensor::Make(DType::kString, input.shape()));
  const std::span<std::string> out = made.mutable_as<std::string>();
  for (size_t k = 0; k < out.size(); ++k) {
    const auto i = static_cast<int64_t>(k);
    if (type == DType::kBool) {
      out[k] = ElementAsInt(input, i) != 0 ? "true" : "false";
    } else if (type == DType::kString) {
      out[k] = conversion.Print("", input.as<std::string>()[k].c_str());
    } else if (IsInteger(type)) {
      out[k] = conversion.Print("ll", static_cast<long long>(ElementAsInt(input, i)));
    } else if (IsComplex(type)) {
      const std::complex<double> value = ElementAsComplex(input, i);
      out[k] = "(" + conversion.Print("", value.real()) + "," + conversion.Print("", value.imag()) + ")";
    } else {
      out[k] = conversion.Print("", ElementAsDouble(input, i));
    }
  }
  call.outputs[0] = std::move(made);
  return Status();
}

Status Timestamp(kernel::BuiltinCall& call) {
  WEIR_TRY(CheckCounts(call, 0, 1));
  using Microseconds = std::chrono::duration<double, std::micro>;
  const double now = Microseconds(std::chrono::system_clock::now().time_since_epoch()).count();
  call.outputs[0] = Tensor::Scalar<double>(std::floor(now) / 1e6);
  return Status();
}

}  // namespace

bool ReadNumber(std::string_view text, float* value) { return ReadFloating(text, value); }
bool ReadNumber(std::string_view text, double* value) { return ReadFloating(text, value); }
bool ReadNumber(std::string_view text, int32_t* value) { return ReadInteger(text, value); }
bool ReadNumber(std::string_view text, int64_t* value) { return ReadInteger(text, value); }
bool ReadNumber(std::string_view text, uint32_t* value) { return ReadInteger(text, value); }
bool ReadNumber(std::string_view text, uint64_t* value) { return ReadInteger(text, value); }

void AddNumerals(kernel::KernelRegistry& kernels) {
  kernels.AddHost("AsString", AsString);
  kernels.AddHost("StringToNumber", StringToNumber);
  kernels.AddHost("Timestamp", Timestamp);
}

}  // namespace weir::builtin
