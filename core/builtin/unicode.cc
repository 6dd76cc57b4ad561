// Unicode text in several encodings.
#include <algorithm>

#include "core/builtin/families.h"
#include "core/builtin/texts.h"
#include "core/builtin/utf.h"
#include "core/tensor/number.h"

namespace weir::builtin {
namespace {

/// What becomes of text that cannot be read, and of control characters.
struct Repair {
  bool strict = false, ignore = false, controls = false;
  char32_t replacement = kReplacement;

  /// The code point to use; nothing if it is left out. InvalidArgument if it is malformed and errors are strict.
  Result<std::optional<char32_t>> operator()(const CodePoint& point) const {
    if (!point.valid && strict) return InvalidArgument("Invalid formatting on input string");
    const bool bad = !point.valid || (controls && point.value < 0x20);
    if (!bad) return std::optional<char32_t>(point.value);
    return ignore ? std::optional<char32_t>() : std::optional<char32_t>(replacement);
  }
};

Result<Repair> RepairOf(const kernel::BuiltinCall& call) {
  Repair repair;
  WEIR_ASSIGN(const std::string errors, call.attrs.String("errors"));
  WEIR_ASSIGN(const int64_t replacement, call.attrs.Int("replacement_char"));
  repair.strict = errors == "strict";
  repair.ignore = errors == "ignore";
  if (replacement < 0 || replacement > 0x10ffff) {
    return InvalidArgument("replacement_char out of unicode codepoint range");
  }
  repair.replacement = static_cast<char32_t>(replacement);
  if (call.attrs.Has("replace_control_characters")) {
    WEIR_ASSIGN(repair.controls, call.attrs.Bool("replace_control_characters"));
  }
  return repair;
}

Result<Encoding> InputEncoding(const kernel::BuiltinCall& call) {
  WEIR_ASSIGN(const std::string name, call.attrs.String("input_encoding"));
  const std::optional<Encoding> encoding = EncodingOf(name);
  if (!encoding) return InvalidArgument("Could not create converter for input encoding: {}", name);
  return *encoding;
}

Result<Encoding> OutputEncoding(const kernel::BuiltinCall& call) {
  WEIR_ASSIGN(const std::string name, call.attrs.String("output_encoding"));
  const std::optional<Encoding> encoding = EncodingOf(name);
  if (!encoding ||
      (*encoding != Encoding::kUtf8 && *encoding != Encoding::kUtf16Be && *encoding != Encoding::kUtf32Be)) {
    return InvalidArgument("output_encoding must be UTF-8, UTF-16-BE or UTF-32-BE, got {}", name);
  }
  return *encoding;
}

/// Adds a code point that may be a surrogate, which UTF-8 cannot hold.
void AppendAny(char32_t c, Encoding encoding, std::string* text) {
  Append(encoding == Encoding::kUtf8 && !IsScalarValue(c) ? kReplacement : c, encoding, text);
}

/// Adds a code point; two halves of a surrogate pair become one, since TensorFlow's texts are UTF-16.
void AddPoint(char32_t c, std::u32string* points) {
  if (c >= 0xdc00 && c < 0xe000 && !points->empty() && points->back() >= 0xd800 && points->back() < 0xdc00) {
    points->back() = 0x10000 + ((points->back() - 0xd800) << 10) + (c - 0xdc00);
  } else {
    points->push_back(c);
  }
}

Status UnicodeTranscode(kernel::BuiltinCall& call) {
  WEIR_ASSIGN(const Repair repair, RepairOf(call));
  WEIR_ASSIGN(const Encoding from, InputEncoding(call));
  WEIR_ASSIGN(const Encoding to, OutputEncoding(call));
  Status fault;
  WEIR_TRY(MapTexts<std::string>(call, [&](const std::string& text) {
    std::string out;
    CodePoints points(text, from);
    for (std::optional<CodePoint> point; (point = points.Next());) {
      if (repair.strict && repair.controls && point->value < 0x20) point->valid = false;  // not so in UnicodeDecode
      const Result<std::optional<char32_t>> kept = repair(*point);
      if (!kept.ok()) fault = kept.status();
      if (kept.ok() && *kept) AppendAny(**kept, to, &out);
    }
    return out;
  }));
  return fault;
}

/// `kept` integers as a vector of an index type.
Tensor SplitsOf(DType type, const std::vector<int64_t>& splits) {
  if (type == DType::kInt64) return Tensor::Vector<int64_t>(splits);
  return Tensor::Vector<int32_t>(std::vector<int32_t>(splits.begin(), splits.end()));
}

Status UnicodeDecode(kernel::BuiltinCall& call) {
  if (call.outputs.size() < 2) return InvalidArgument("UnicodeDecode wants 2 or 3 outputs");
  WEIR_TRY(CheckCounts(call, 1, call.outputs.size()));
  WEIR_ASSIGN(const std::span<const std::string> texts, Elements<std::string>(call, 0, "input"));
  WEIR_ASSIGN(const DType type, call.attrs.Type("Tsplits"));
  WEIR_ASSIGN(const Repair repair, RepairOf(call));
  WEIR_ASSIGN(const Encoding encoding, InputEncoding(call));
  std::vector<int64_t> splits = {0}, begins;
  std::vector<int32_t> values;
  for (const std::string& text : texts) {
    CodePoints points(text, encoding);
    bool first = true;
    for (std::optional<CodePoint> point; (point = points.Next()); first = false) {
      WEIR_ASSIGN(const std::optional<char32_t> kept, repair(*point));
      if (!kept) continue;
      values.push_back(static_cast<int32_t>(*kept));
      begins.push_back(first ? 0 : static_cast<int64_t>(point->begin));
    }
    splits.push_back(static_cast<int64_t>(values.size()));
  }
  if (type == DType::kInt32 && values.size() > INT32_MAX) {
    return InvalidArgument("{} code points are too many for splits of type int32", values.size());
  }
  call.outputs[0] = SplitsOf(type, splits);
  call.outputs[1] = Tensor::Vector<int32_t>(values);
  if (call.outputs.size() > 2) call.outputs[2] = Tensor::Vector<int64_t>(begins);
  return Status();
}

/// A scalar value other than those that Unicode reserves for internal use.
bool IsCharacter(int64_t c) {
  if (c < 0 || c > 0x10ffff || !IsScalarValue(static_cast<char32_t>(c))) return false;
  return (c & 0xfffe) != 0xfffe && !(c >= 0xfdd0 && c <= 0xfdef);
}

Status CheckSplits(const Tensor& splits, int64_t values) {
  const int64_t count = splits.elements();
  if (count == 0) {
    return InvalidArgument("Input_splits should contain elements, but given input_values has 0 elements");
  }
  if (ElementAsInt(splits, 0) != 0) return InvalidArgument("First value in input_splits must be zero.");
  if (ElementAsInt(splits, count - 1) != values) {
    return InvalidArgument("Last value in input_splits must be equal to length of input_tensor.");
  }
  for (int64_t i = 1; i < count; ++i) {
    if (ElementAsInt(splits, i) < ElementAsInt(splits, i - 1)) {
      return InvalidArgument("Values in input_splits must be equal or in ascending order.");
    }
  }
  return Status();
}

Status UnicodeEncode(kernel::BuiltinCall& call) {
  WEIR_TRY(CheckCounts(call, 2, 1));
  WEIR_ASSIGN(const std::span<const int32_t> values, Elements<int32_t>(call, 0, "input_values"));
  const Tensor& splits = call.inputs[1];
  if (call.inputs[0].shape().rank() != 1 || splits.shape().rank() != 1 || !IsInteger(splits.dtype())) {
    return InvalidArgument("input_values and input_splits must be vectors, got shapes {} and {}",
                           call.inputs[0].shape().ToString(), splits.shape().ToString());
  }
  WEIR_ASSIGN(const Repair repair, RepairOf(call));
  WEIR_ASSIGN(const Encoding encoding, OutputEncoding(call));
  WEIR_TRY(CheckSplits(splits, static_cast<int64_t>(values.size())));
  WEIR_ASSIGN(Tensor made, Tensor::Make(DType::kString, Shape{splits.elements() - 1}));
  const std::span<std::string> out = made.mutable_as<std::string>();
  for (size_t i = 0; i < out.size(); ++i) {
    const auto begin = static_cast<size_t>(ElementAsInt(splits, static_cast<int64_t>(i)));
    const auto end = static_cast<size_t>(ElementAsInt(splits, static_cast<int64_t>(i) + 1));
    std::u32string points;
    for (size_t k = begin; k < end; ++k) {
      const bool good = IsCharacter(values[k]);
      if (!good && repair.strict) {
        return InvalidArgument("Code point is out of range for Unicode, or a noncharacter.");
      }
      const bool in_range = values[k] >= 0 && values[k] <= 0x10ffff;
      if (!good && repair.ignore && !in_range) continue;
      AddPoint(good || repair.ignore ? static_cast<char32_t>(values[k]) : repair.replacement, &points);
    }
    for (const char32_t point : points) AppendAny(point, encoding, &out[i]);
  }
  call.outputs[0] = std::move(made);
  return Status();
}

}  // namespace

void AddUnicode(kernel::KernelRegistry& kernels) {
  kernels.AddHost("UnicodeTranscode", UnicodeTranscode);
  kernels.AddHost("UnicodeDecode", UnicodeDecode);
  kernels.AddHost("UnicodeDecodeWithOffsets", UnicodeDecode);
  kernels.AddHost("UnicodeEncode", UnicodeEncode);
}

}  // namespace weir::builtin
