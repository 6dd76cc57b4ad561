#include "core/tensor/dtype.h"

#include <array>
#include <cctype>
#include <ostream>

#include "core/base/errors.h"

namespace weir {
namespace {

enum class Kind : uint8_t { kOther, kFloating, kComplex, kInteger, kQuantized };

struct Record {
  const char* name;
  uint8_t size;
  Kind kind;
};

// Indexed by TensorFlow's type number.
constexpr std::array<Record, 33> kRecords = {{
    {"INVALID", 0, Kind::kOther},
    {"float", 4, Kind::kFloating},
    {"double", 8, Kind::kFloating},
    {"int32", 4, Kind::kInteger},
    {"uint8", 1, Kind::kInteger},
    {"int16", 2, Kind::kInteger},
    {"int8", 1, Kind::kInteger},
    {"string", 0, Kind::kOther},
    {"complex64", 8, Kind::kComplex},
    {"int64", 8, Kind::kInteger},
    {"bool", 1, Kind::kOther},
    {"qint8", 1, Kind::kQuantized},
    {"quint8", 1, Kind::kQuantized},
    {"qint32", 4, Kind::kQuantized},
    {"bfloat16", 2, Kind::kFloating},
    {"qint16", 2, Kind::kQuantized},
    {"quint16", 2, Kind::kQuantized},
    {"uint16", 2, Kind::kInteger},
    {"complex128", 16, Kind::kComplex},
    {"half", 2, Kind::kFloating},
    {"resource", 0, Kind::kOther},
    {"variant", 0, Kind::kOther},
    {"uint32", 4, Kind::kInteger},
    {"uint64", 8, Kind::kInteger},
    {"float8_e5m2", 1, Kind::kFloating},
    {"float8_e4m3fn", 1, Kind::kFloating},
    {"float8_e4m3fnuz", 1, Kind::kFloating},
    {"float8_e4m3b11fnuz", 1, Kind::kFloating},
    {"float8_e5m2fnuz", 1, Kind::kFloating},
    {"int4", 1, Kind::kInteger},
    {"uint4", 1, Kind::kInteger},
    {"int2", 1, Kind::kInteger},
    {"uint2", 1, Kind::kInteger},
}};

const Record* Find(DType t) {
  const auto number = static_cast<uint32_t>(BaseType(t));
  return number < kRecords.size() && t != RefType(DType::kInvalid) ? &kRecords[number] : nullptr;
}

bool Is(DType t, Kind kind) {
  const Record* record = Find(t);
  return record != nullptr && record->kind == kind;
}

std::string Unknown(DType t) { return "DT_" + std::to_string(static_cast<uint32_t>(t)); }

std::string Upper(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

const char* NumpyBase(DType base) {
  switch (base) {
    case DType::kFloat:
      return "float32";
    case DType::kDouble:
      return "float64";
    case DType::kHalf:
      return "float16";
    default:
      return Find(base)->name;
  }
}

std::optional<DType> ParseBase(std::string_view text) {
  for (uint32_t i = 1; i < kRecords.size(); ++i) {
    const auto t = static_cast<DType>(i);
    if (text == kRecords[i].name || text == NumpyBase(t)) return t;
  }
  return std::nullopt;
}

}  // namespace

size_t SizeOf(DType t) {
  const Record* record = Find(t);
  return record == nullptr ? 0 : record->size;
}

bool IsKnown(DType t) { return BaseType(t) != DType::kInvalid && Find(t) != nullptr; }
bool IsFloating(DType t) { return Is(t, Kind::kFloating); }
bool IsComplex(DType t) { return Is(t, Kind::kComplex); }
bool IsInteger(DType t) { return Is(t, Kind::kInteger); }
bool IsQuantized(DType t) { return Is(t, Kind::kQuantized); }
bool IsTrainable(DType t) { return IsFloating(t) || IsComplex(t); }

std::string Name(DType t) {
  const Record* record = Find(t);
  if (record == nullptr) return Unknown(t);
  return IsRef(t) ? std::string(record->name) + "_ref" : record->name;
}

std::string NumpyName(DType t) {
  if (Find(t) == nullptr) return Unknown(t);
  return IsRef(t) ? std::string(NumpyBase(BaseType(t))) + "_ref" : NumpyBase(t);
}

std::ostream& operator<<(std::ostream& out, DType t) { return out << "<dtype: '" << NumpyName(t) << "'>"; }

std::string EnumName(DType t) { return Find(t) == nullptr ? Unknown(t) : "DT_" + Upper(Name(t)); }

std::optional<DType> ParseDType(std::string_view text) {
  std::string lower;
  if (text.starts_with("DT_")) {
    if (Upper(std::string(text)) != text) return std::nullopt;
    for (char c : text.substr(3)) lower += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    text = lower;
  }
  constexpr std::string_view kRefSuffix = "_ref";
  const bool ref = text.ends_with(kRefSuffix);
  if (ref) text.remove_suffix(kRefSuffix.size());
  std::optional<DType> t = ParseBase(text);
  if (t && ref) t = RefType(*t);
  return t;
}

}  // namespace weir
