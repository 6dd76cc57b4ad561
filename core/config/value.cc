#include "core/config/value.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace weir::config {
namespace {

std::string Quoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (code < 0x20 || code == 0x7f) {
      quoted += fmt::format("\\u{:04X}", code);
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

// The shortest text that parses to the same number and is a TOML float.
std::string FloatText(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

struct Toml {
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(int64_t value) const { return fmt::format("{}", value); }
  std::string operator()(double value) const { return FloatText(value); }
  std::string operator()(const std::string& value) const { return Quoted(value); }
  template <class T>
  std::string operator()(const std::vector<T>& values) const {
    std::string text = "[";
    for (const T& value : values) text += (text.size() == 1 ? "" : ", ") + (*this)(value);
    return text + "]";
  }
};

}  // namespace

std::string ToToml(const Value& value) { return std::visit(Toml(), value); }

std::string Describe(const Value& value) {
  constexpr const char* kKinds[] = {"the boolean ", "the integer ", "the float ",
                                    "the string ",  "the array ",   "the array "};
  return kKinds[value.index()] + ToToml(value);
}

std::string Origin::ToString() const {
  switch (source) {
    case Source::kDefault:
      return "default";
    case Source::kPlugin:
      return "plugin default";
    case Source::kEnvironment:
      return "environment " + name;
    case Source::kFile:
      return line == 0 ? name : fmt::format("{}:{}", name, line);
    case Source::kSet:
      return "--set";
    case Source::kCallSite:
      return "call site";
  }
  return "default";
}

std::string QuotedName(std::string_view name) {
  const bool bare = !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
  return bare ? std::string(name) : Quoted(name);
}

std::string ToString(const Path& path) {
  std::string text;
  for (const std::string& name : path) text += (text.empty() ? "" : ".") + QuotedName(name);
  return text;
}

}  // namespace weir::config
