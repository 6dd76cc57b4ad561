#include "core/op/attr_value.h"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <string_view>

#include "core/op/attr_kind.h"

namespace weir::op {
namespace {

std::string Quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (byte < 0x20 || byte >= 0x7f) {
      out += fmt::format("\\{:03o}", byte);
    } else {
      out += c;
    }
  }
  return out + '"';
}

/// Prints one alternative of the variant; lists print their elements.
struct Printer {
  std::string operator()(std::monostate) const { return "<unset>"; }
  std::string operator()(const std::string& v) const { return Quoted(v); }
  std::string operator()(int64_t v) const { return std::to_string(v); }
  std::string operator()(float v) const { return fmt::format("{:g}", v); }
  std::string operator()(bool v) const { return v ? "true" : "false"; }
  std::string operator()(DType v) const { return EnumName(v); }
  std::string operator()(const PartialShape& v) const { return v.ToString(); }
  std::string operator()(const Tensor& v) const {
    const std::string values = v.SummarizeValues(10);
    return fmt::format("Tensor<type: {} shape: {} values: {}>", Name(v.dtype()), v.shape().ToString(),
                       std::string_view(values).substr(1, values.size() - 2));
  }
  std::string operator()(const FuncRef& v) const {
    std::string out = v.name + "[";
    if (v.attrs) {
      for (size_t i = 0; i < v.attrs->size(); ++i) {
        out += (i > 0 ? ", " : "") + (*v.attrs)[i].first + "=" + (*v.attrs)[i].second.ToString();
      }
    }
    return out + "]";
  }
  std::string operator()(const AttrPlaceholder& v) const { return "$" + v.name; }
  std::string operator()(EmptyList) const { return "[]"; }
  template <class T>
  std::string operator()(const std::vector<T>& list) const {
    std::string out = "[";
    for (size_t i = 0; i < list.size(); ++i) out += (i > 0 ? ", " : "") + (*this)(static_cast<const T&>(list[i]));
    return out + "]";
  }
};

template <class T>
bool Same(const T& a, const T& b) {
  return a == b;
}
bool Same(float a, float b) { return std::memcmp(&a, &b, sizeof(a)) == 0; }
bool Same(const Tensor& a, const Tensor& b) { return a.SameBits(b); }
bool Same(EmptyList, EmptyList) { return true; }
bool Same(const AttrPlaceholder& a, const AttrPlaceholder& b) { return a.name == b.name; }
bool Same(const FuncRef& a, const FuncRef& b) {
  static const AttrList kNone;
  return a.name == b.name && (a.attrs ? *a.attrs : kNone) == (b.attrs ? *b.attrs : kNone);
}
template <class T>
bool Same(const std::vector<T>& a, const std::vector<T>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!Same(static_cast<const T&>(a[i]), static_cast<const T&>(b[i]))) return false;
  }
  return true;
}

}  // namespace

std::string_view KindOf(const AttrValue& value) {
  // In the order of AttrValue::Value.
  static constexpr std::array<std::string_view, std::variant_size_v<AttrValue::Value>> kNames = {
      "",           "string",     "int",         "float",        "bool",         "type",      "shape",
      "tensor",     "func",       "placeholder", "list",         "list(string)", "list(int)", "list(float)",
      "list(bool)", "list(type)", "list(shape)", "list(tensor)", "list(func)"};
  return kNames[value.value().index()];
}

std::string AttrValue::TypeName() const { return std::string(KindOf(*this)); }

std::string AttrValue::ToString() const { return std::visit(Printer(), value_); }

bool AttrValue::operator==(const AttrValue& other) const {
  if (value_.index() != other.value_.index()) return false;
  return std::visit(
      [&](const auto& mine) {
        using T = std::decay_t<decltype(mine)>;
        return Same(mine, *std::get_if<T>(&other.value_));
      },
      value_);
}

}  // namespace weir::op
