// Lengths, parts and cases of strings.
#include <algorithm>

#include "core/builtin/families.h"
#include "core/builtin/letters.h"
#include "core/builtin/texts.h"
#include "core/builtin/utf.h"
#include "core/tensor/number.h"

namespace weir::builtin {
namespace {

Result<bool> CountsCharacters(const kernel::BuiltinCall& call) {
  WEIR_ASSIGN(const std::string unit, call.attrs.String("unit"));
  return unit == "UTF8_CHAR";
}

Status StringLength(kernel::BuiltinCall& call) {
  WEIR_ASSIGN(const bool characters, CountsCharacters(call));
  return MapTexts<int32_t>(call, [characters](const std::string& text) {
    return static_cast<int32_t>(characters ? std::count_if(text.begin(), text.end(), BeginsCharacter)
                                           : static_cast<int64_t>(text.size()));
  });
}

/// First bytes of the characters, and the end of the text.
std::vector<size_t> CharactersOf(const std::string& text) {
  std::vector<size_t> begins;
  for (size_t i = 0; i < text.size(); ++i) {
    if (BeginsCharacter(text[i])) begins.push_back(i);
  }
  begins.push_back(text.size());
  return begins;
}

/// The part of `length` bytes from `pos` on; nothing if pos is beyond the text. A negative length means all.
std::optional<std::string> BytePart(const std::string& text, int64_t pos, int64_t length) {
  const auto size = static_cast<int64_t>(text.size());
  if (pos < -size || pos > size) return std::nullopt;
  const auto begin = static_cast<size_t>(pos < 0 ? pos + size : pos);
  return text.substr(begin, length < 0 ? std::string::npos : static_cast<size_t>(length));
}

/// The same in characters; a negative length means none.
std::optional<std::string> CharacterPart(const std::string& text, int64_t pos, int64_t length) {
  const std::vector<size_t> begins = CharactersOf(text);
  const auto count = static_cast<int64_t>(begins.size()) - 1;
  if (pos < -count || pos > count) return std::nullopt;
  const int64_t begin = pos < 0 ? pos + count : pos;
  const int64_t end = begin + std::clamp<int64_t>(length, 0, count - begin);
  const size_t first = begins[static_cast<size_t>(begin)];
  return text.substr(first, begins[static_cast<size_t>(end)] - first);
}

/// Steps of two operands along the axes of their common shape.
struct BroadcastPair {
  Shape shape;
  std::vector<int64_t> x_steps, y_steps;

  static Result<BroadcastPair> Make(const Shape& x, const Shape& y) {
    const int rank = std::max(x.rank(), y.rank());
    BroadcastPair pair;
    std::vector<int64_t> dims(static_cast<size_t>(rank));
    pair.x_steps.resize(dims.size());
    pair.y_steps.resize(dims.size());
    int64_t x_step = 1, y_step = 1;
    for (int i = rank - 1; i >= 0; --i) {
      const int xi = i - (rank - x.rank()), yi = i - (rank - y.rank());
      const int64_t a = xi < 0 ? 1 : x.dim(xi), b = yi < 0 ? 1 : y.dim(yi);
      if (a != b && a != 1 && b != 1) {
        return InvalidArgument("Incompatible shapes: {} vs. {}", x.ToString(), y.ToString());
      }
      const auto at = static_cast<size_t>(i);
      dims[at] = a == 1 ? b : a;
      pair.x_steps[at] = a == 1 ? 0 : x_step;
      pair.y_steps[at] = b == 1 ? 0 : y_step;
      if (x.elements() != 0 && y.elements() != 0) {
        x_step *= a;
        y_step *= b;
      }
    }
    WEIR_ASSIGN(pair.shape, Shape::Make(dims));
    return pair;
  }

  /// Places of element `i` in both operands.
  std::pair<size_t, size_t> At(int64_t i) const {
    int64_t x = 0, y = 0;
    for (int axis = shape.rank() - 1; axis >= 0; --axis) {
      const int64_t position = i % shape.dim(axis);
      i /= shape.dim(axis);
      x += position * x_steps[static_cast<size_t>(axis)];
      y += position * y_steps[static_cast<size_t>(axis)];
    }
    return {static_cast<size_t>(x), static_cast<size_t>(y)};
  }
};

Status Substr(kernel::BuiltinCall& call) {
  WEIR_TRY(CheckCounts(call, 3, 1));
  WEIR_ASSIGN(const std::span<const std::string> texts, Elements<std::string>(call, 0, "input"));
  WEIR_ASSIGN(const bool characters, CountsCharacters(call));
  const Tensor &pos = call.inputs[1], &length = call.inputs[2];
  if (!IsInteger(pos.dtype()) || pos.dtype() != length.dtype()) {
    return InvalidArgument("pos and len must be integers of one type, got {} and {}", Name(pos.dtype()),
                           Name(length.dtype()));
  }
  if (!(pos.shape() == length.shape())) {
    return InvalidArgument("pos and len should have the same shape, got: {} vs. {}", pos.shape().ToString(),
                           length.shape().ToString());
  }
  WEIR_ASSIGN(const BroadcastPair pair, BroadcastPair::Make(call.inputs[0].shape(), pos.shape()));
  WEIR_ASSIGN(Tensor made, Tensor::Make(DType::kString, pair.shape));
  const std::span<std::string> out = made.mutable_as<std::string>();
  for (size_t i = 0; i < out.size(); ++i) {
    const auto [x, y] = pair.At(static_cast<int64_t>(i));
    const int64_t begin = ElementAsInt(pos, static_cast<int64_t>(y));
    const int64_t count = ElementAsInt(length, static_cast<int64_t>(y));
    std::optional<std::string> part =
        characters ? CharacterPart(texts[x], begin, count) : BytePart(texts[x], begin, count);
    if (part) {
      out[i] = std::move(*part);
    } else if (characters) {
      return InvalidArgument("pos {} out of range for string at index {}", begin, i);
    } else {
      return InvalidArgument("pos {} out of range for string b'{}' at index {}", begin, texts[x], i);
    }
  }
  call.outputs[0] = std::move(made);
  return Status();
}

Status StringStrip(kernel::BuiltinCall& call) {
  return MapTexts<std::string>(call, [](const std::string& text) {
    constexpr std::string_view kBlanks = " \t\n\v\f\r";
    const size_t begin = text.find_first_not_of(kBlanks);
    if (begin == std::string::npos) return std::string();
    return text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin);
  });
}

template <Case kWanted>
Status ChangeCase(kernel::BuiltinCall& call) {
  WEIR_ASSIGN(const std::string encoding, call.attrs.String("encoding"));
  if (!encoding.empty() && encoding != "utf-8") {
    return InvalidArgument("only utf-8 or '' (no encoding) is supported, received {}", encoding);
  }
  return MapTexts<std::string>(call, [&encoding](const std::string& text) {
    return encoding.empty() ? OtherAsciiCase(text, kWanted) : OtherCase(text, kWanted);
  });
}

}  // namespace

void AddStringParts(kernel::KernelRegistry& kernels) {
  kernels.AddHost("StringLength", StringLength);
  kernels.AddHost("Substr", Substr);
  kernels.AddHost("StringStrip", StringStrip);
  kernels.AddHost("StringLower", ChangeCase<Case::kLower>);
  kernels.AddHost("StringUpper", ChangeCase<Case::kUpper>);
}

}  // namespace weir::builtin
