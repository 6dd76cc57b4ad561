// Parser of argument and attribute signatures.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "core/op/registry.h"

namespace weir::op {
namespace {

constexpr DTypeSet kQuantizedTypes =
    Bit(DType::kQint8) | Bit(DType::kQuint8) | Bit(DType::kQint32) | Bit(DType::kQint16) | Bit(DType::kQuint16);
constexpr DTypeSet kRealNumberTypes = Bit(DType::kFloat) | Bit(DType::kDouble) | Bit(DType::kInt32) |
                                      Bit(DType::kUint8) | Bit(DType::kInt16) | Bit(DType::kInt8) | Bit(DType::kInt64) |
                                      Bit(DType::kBfloat16) | Bit(DType::kUint16) | Bit(DType::kHalf) |
                                      Bit(DType::kUint32) | Bit(DType::kUint64);
constexpr DTypeSet kNumberTypes = kRealNumberTypes | kQuantizedTypes | Bit(DType::kComplex64) | Bit(DType::kComplex128);

struct NamedSet {
  std::string_view name;
  DTypeSet types;
};
constexpr std::array<NamedSet, 6> kNamedSets = {{{"numbertype", kNumberTypes},
                                                 {"numtype", kNumberTypes},
                                                 {"realnumbertype", kRealNumberTypes},
                                                 {"realnum", kRealNumberTypes},
                                                 {"quantizedtype", kQuantizedTypes},
                                                 {"type", kAnyType}}};

struct ShortName {
  std::string_view name;
  DType type;
};
constexpr std::array<ShortName, 19> kShortNames = {{
    {"f32", DType::kFloat},     {"f64", DType::kDouble},      {"f16", DType::kHalf},     {"bf16", DType::kBfloat16},
    {"i8", DType::kInt8},       {"i16", DType::kInt16},       {"i32", DType::kInt32},    {"i64", DType::kInt64},
    {"u8", DType::kUint8},      {"u16", DType::kUint16},      {"u32", DType::kUint32},   {"u64", DType::kUint64},
    {"c64", DType::kComplex64}, {"c128", DType::kComplex128}, {"qi8", DType::kQint8},    {"qi16", DType::kQint16},
    {"qi32", DType::kQint32},   {"qu8", DType::kQuint8},      {"qu16", DType::kQuint16},
}};

std::optional<DType> TypeCalled(std::string_view name) {
  // Most words are attributes, "T"; types are lower-case or have the prefix.
  if (!name.empty() && name[0] >= 'A' && name[0] <= 'Z' && !name.starts_with("DT_")) return std::nullopt;
  for (const ShortName& known : kShortNames) {
    if (known.name == name) return known.type;
  }
  std::optional<DType> type = ParseDType(name);
  return type && !IsRef(*type) ? type : std::nullopt;
}

bool IsWordChar(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/// A read position in one signature. Skips spaces between tokens.
class Cursor {
 public:
  explicit Cursor(std::string_view text) : text_(text) {}

  bool AtEnd() {
    SkipSpace();
    return pos_ == text_.size();
  }
  bool Peek(std::string_view token) {
    SkipSpace();
    return text_.substr(pos_).starts_with(token);
  }
  bool Take(std::string_view token) {
    if (!Peek(token)) return false;
    pos_ += token.size();
    return true;
  }
  Status Expect(std::string_view token) { return Take(token) ? Status() : Fault(fmt::format("'{}'", token)); }
  Status ExpectEnd() { return AtEnd() ? Status() : Fault("the end"); }

  /// Letters, digits and underscores, starting with a letter.
  Result<std::string_view> Word(std::string_view what) {
    SkipSpace();
    size_t end = pos_;
    while (end < text_.size() && IsWordChar(text_[end])) ++end;
    if (end == pos_ || (text_[pos_] >= '0' && text_[pos_] <= '9')) return Fault(what);
    const std::string_view word = text_.substr(pos_, end - pos_);
    pos_ = end;
    return word;
  }

  template <class T>
  Result<T> Number(std::string_view what) {
    SkipSpace();
    T value{};
    const auto [end, error] = std::from_chars(text_.data() + pos_, text_.data() + text_.size(), value);
    if (error == std::errc::result_out_of_range) return Fault(fmt::format("{} within range", what));
    if (error != std::errc()) return Fault(what);
    pos_ = static_cast<size_t>(end - text_.data());
    return value;
  }

  /// Text in single or double quotes. A backslash escapes the next character; \n is a newline.
  Result<std::string> Quoted() {
    SkipSpace();
    if (pos_ == text_.size() || (text_[pos_] != '\'' && text_[pos_] != '"')) return Fault("a quoted string");
    const char quote = text_[pos_++];
    std::string out;
    while (pos_ < text_.size() && text_[pos_] != quote) {
      char c = text_[pos_++];
      if (c == '\\' && pos_ < text_.size()) c = text_[pos_++] == 'n' ? '\n' : text_[pos_ - 1];
      out += c;
    }
    if (pos_ == text_.size()) return Fault("a closing quote");
    ++pos_;
    return out;
  }

  Status Fault(std::string_view wanted) {
    SkipSpace();
    const std::string_view rest = text_.substr(pos_, 20);
    return InvalidArgument("\"{}\", column {}: wanted {}, found {}", text_, pos_ + 1, wanted,
                           rest.empty() ? std::string("the end") : fmt::format("'{}'", rest));
  }
  /// Moves back to `column` (counted from 0) so that a fault names the start of a token.
  void Rewind(size_t column) { pos_ = column; }
  size_t column() {
    SkipSpace();
    return pos_;
  }

 private:
  void SkipSpace() {
    while (pos_ < text_.size() && (text_[pos_] == ' ' || text_[pos_] == '\n' || text_[pos_] == '\t')) ++pos_;
  }

  std::string_view text_;
  size_t pos_ = 0;
};

Result<DType> TypeWord(Cursor& in) {
  const size_t start = in.column();
  WEIR_ASSIGN(const std::string_view word, in.Word("a type"));
  if (std::optional<DType> type = TypeCalled(word)) return *type;
  in.Rewind(start);
  return in.Fault("a type");
}

/// Parses "{float, int32}", "{numbertype, variant}", "{'SAME', 'VALID'}" or "{NHWC, NCHW}" after the brace.
Status ParseSet(Cursor& in, AttrDef& attr, std::string& element) {
  DTypeSet types = 0;
  do {
    const size_t start = in.column();
    if (in.Peek("'") || in.Peek("\"")) {
      WEIR_ASSIGN(attr.allowed_strings.emplace_back(), in.Quoted());
    } else {
      WEIR_ASSIGN(const std::string_view word, in.Word("a type or a string"));
      const auto* set = std::ranges::find(kNamedSets, word, &NamedSet::name);
      const std::optional<DType> type = TypeCalled(word);
      if (set != kNamedSets.end()) {
        types |= set->types;
      } else if (type) {
        types |= Bit(*type);
      } else if (std::ranges::none_of(word, [](char c) { return c >= 'a' && c <= 'z'; })) {
        attr.allowed_strings.emplace_back(word);
      } else {
        in.Rewind(start);
        return in.Fault("a type or a string");
      }
    }
    if (types != 0 && !attr.allowed_strings.empty()) {
      in.Rewind(start);
      return in.Fault("only types or only strings in one set");
    }
  } while (in.Take(","));
  element = types != 0 ? "type" : "string";
  if (types != 0) attr.allowed_types = types;
  return in.Expect("}");
}

/// Parses an element type or a set of allowed values; writes the type of the values to `element`.
Status ParseElement(Cursor& in, AttrDef& attr, std::string& element) {
  if (in.Take("{")) return ParseSet(in, attr, element);
  const size_t start = in.column();
  WEIR_ASSIGN(const std::string_view word, in.Word("a type of attribute"));
  static constexpr std::array<std::string_view, 7> kPlain = {"int",   "float",  "bool", "string",
                                                             "shape", "tensor", "func"};
  if (std::ranges::find(kPlain, word) != kPlain.end()) {
    element = word;
    return {};
  }
  const auto* set = std::ranges::find(kNamedSets, word, &NamedSet::name);
  if (set == kNamedSets.end()) {
    in.Rewind(start);
    return in.Fault("a type of attribute (int, float, bool, string, type, shape, tensor, func, list(…), a set)");
  }
  attr.allowed_types = set->types;
  element = "type";
  return {};
}

/// Parses "<unknown>", "{unknown_rank: true}", "{}" for a scalar, or "[2, ?, -1]".
Result<PartialShape> ParseShape(Cursor& in) {
  if (in.Take("<unknown>")) return PartialShape();
  if (in.Take("{")) {
    if (in.Take("}")) return PartialShape(Shape());
    WEIR_TRY(in.Expect("unknown_rank"));
    WEIR_TRY(in.Expect(":"));
    WEIR_TRY(in.Expect("true"));
    WEIR_TRY(in.Expect("}"));
    return PartialShape();
  }
  WEIR_TRY(in.Expect("["));
  std::vector<int64_t> dims;
  while (!in.Take("]")) {
    if (!dims.empty()) WEIR_TRY(in.Expect(","));
    if (in.Take("?")) {
      dims.push_back(-1);
    } else {
      WEIR_ASSIGN(dims.emplace_back(), in.Number<int64_t>("an extent"));
    }
  }
  return PartialShape::Make(dims);
}

Result<bool> ParseBool(Cursor& in) {
  if (in.Take("true")) return true;
  if (in.Take("false")) return false;
  return in.Fault("true or false");
}

/// Parses "[255, 0, 0, 255]", a vector of type uint8: the only tensors that are defaults.
Result<Tensor> ParseBytes(Cursor& in) {
  WEIR_TRY(in.Expect("["));
  std::vector<uint8_t> bytes;
  while (!in.Take("]")) {
    if (!bytes.empty()) WEIR_TRY(in.Expect(","));
    WEIR_ASSIGN(const int64_t byte, in.Number<int64_t>("a number"));
    if (byte < 0 || byte > 255) return in.Fault("a number from 0 to 255");
    bytes.push_back(static_cast<uint8_t>(byte));
  }
  return Tensor::Vector<uint8_t>(bytes);
}

Result<AttrValue> ParseValue(Cursor& in, std::string_view element) {
  if (element == "int") {
    WEIR_ASSIGN(const int64_t value, in.Number<int64_t>("an integer"));
    return AttrValue(value);
  }
  if (element == "float") {
    WEIR_ASSIGN(const float value, in.Number<float>("a number"));
    return AttrValue(value);
  }
  if (element == "bool") {
    WEIR_ASSIGN(const bool value, ParseBool(in));
    return AttrValue(value);
  }
  if (element == "string") {
    WEIR_ASSIGN(std::string value, in.Quoted());
    return AttrValue(std::move(value));
  }
  if (element == "type") {
    WEIR_ASSIGN(const DType value, TypeWord(in));
    return AttrValue(value);
  }
  if (element == "shape") {
    WEIR_ASSIGN(PartialShape value, ParseShape(in));
    return AttrValue(std::move(value));
  }
  if (element == "tensor") {
    WEIR_ASSIGN(Tensor value, ParseBytes(in));
    return AttrValue(std::move(value));
  }
  return in.Fault(fmt::format("no default: an attribute of type {} cannot have one", element));
}

template <class T>
Result<AttrValue> ParseList(Cursor& in, std::string_view element) {
  std::vector<T> list;
  while (!in.Take("]")) {
    if (!list.empty()) WEIR_TRY(in.Expect(","));
    WEIR_ASSIGN(const AttrValue value, ParseValue(in, element));
    list.push_back(*value.get<T>());
  }
  return AttrValue(std::move(list));
}

Result<AttrValue> ParseDefault(Cursor& in, const std::string& type, std::string_view element) {
  if (type == element) return ParseValue(in, element);
  WEIR_TRY(in.Expect("["));
  if (element == "int") return ParseList<int64_t>(in, element);
  if (element == "float") return ParseList<float>(in, element);
  if (element == "bool") return ParseList<bool>(in, element);
  if (element == "string") return ParseList<std::string>(in, element);
  if (element == "type") return ParseList<DType>(in, element);
  if (element == "shape") return ParseList<PartialShape>(in, element);
  WEIR_TRY(in.Expect("]"));
  return AttrValue(EmptyList());
}

/// Parses "T", "float", "N*T" or "[L]".
Status ParseArgType(Cursor& in, ArgDef& arg) {
  if (in.Take("[")) {
    WEIR_ASSIGN(arg.type_list_attr, in.Word("the name of a list(type) attribute"));
    return in.Expect("]");
  }
  WEIR_ASSIGN(std::string_view word, in.Word("a type or the name of an attribute"));
  if (in.Take("*")) {
    arg.number_attr = word;
    WEIR_ASSIGN(word, in.Word("a type or the name of an attribute"));
  }
  if (std::optional<DType> type = TypeCalled(word)) {
    arg.dtype = *type;
  } else {
    arg.type_attr = word;
  }
  return {};
}

}  // namespace

Result<ArgDef> ParseArg(std::string_view signature) {
  Cursor in(signature);
  ArgDef arg;
  WEIR_ASSIGN(arg.name, in.Word("the name of an argument"));
  WEIR_TRY(in.Expect(":"));
  arg.is_ref = in.Take("Ref(");
  WEIR_TRY(ParseArgType(in, arg));
  if (arg.is_ref) WEIR_TRY(in.Expect(")"));
  WEIR_TRY(in.ExpectEnd());
  return arg;
}

Result<AttrDef> ParseAttr(std::string_view signature) {
  Cursor in(signature);
  AttrDef attr;
  WEIR_ASSIGN(attr.name, in.Word("the name of an attribute"));
  WEIR_TRY(in.Expect(":"));
  std::string element;
  const bool is_list = in.Peek("list(") || in.Peek("list{");
  if (is_list) {
    WEIR_TRY(in.Expect("list"));
    const bool parenthesis = in.Take("(");
    WEIR_TRY(ParseElement(in, attr, element));
    if (parenthesis) WEIR_TRY(in.Expect(")"));
    attr.type = "list(" + element + ")";
  } else {
    WEIR_TRY(ParseElement(in, attr, element));
    attr.type = element;
  }
  if (in.Peek(">=") && !is_list && element != "int") return in.Fault("no minimum: only integers and lists have one");
  if (in.Take(">=")) {
    WEIR_ASSIGN(attr.minimum, in.Number<int64_t>("an integer"));
  }
  if (in.Take("=")) {
    const size_t start = in.column();
    WEIR_ASSIGN(attr.default_value, ParseDefault(in, attr.type, element));
    if (const Status allowed = CheckAllowed(attr, attr.default_value); !allowed.ok()) {
      in.Rewind(start);
      return in.Fault("an allowed default").Append(": " + allowed.message());
    }
  }
  WEIR_TRY(in.ExpectEnd());
  return attr;
}

}  // namespace weir::op
