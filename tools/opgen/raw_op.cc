#include "tools/opgen/raw_op.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <type_traits>
#include <utility>

namespace weir::opgen {
namespace {

/// `name` as a parameter: no keyword, and different from those in `taken`, which it joins.
std::string Parameter(std::string name, std::set<std::string>& taken) {
  static const std::set<std::string> kKeywords = {
      "and",  "bool",   "case",     "class",    "const", "default", "delete", "do",     "double", "else",
      "enum", "export", "false",    "float",    "for",   "friend",  "if",     "int",    "long",   "new",
      "not",  "or",     "operator", "private",  "short", "signed",  "static", "struct", "switch", "template",
      "this", "true",   "try",      "typename", "union", "using",   "void",   "while",  "xor"};
  while (kKeywords.contains(name) || taken.contains(name)) name += '_';
  taken.insert(name);
  return name;
}

/// "DType::kFloat".
std::string TypeText(DType type) {
  const std::string name = Name(type);
  std::string text = "DType::k";
  bool upper = true;
  for (const char c : name) {
    if (c == '_') {
      upper = true;
      continue;
    }
    text += upper ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    upper = false;
  }
  return text;
}

std::string ElementType(std::string_view type) {
  if (type == "int") return "int64_t";
  if (type == "float") return "float";
  if (type == "bool") return "bool";
  if (type == "string") return "std::string";
  if (type == "type") return "DType";
  if (type == "shape") return "PartialShape";
  if (type == "tensor") return "Tensor";
  return "op::FuncRef";
}

constexpr std::string_view kList = "list(";

std::string TypeOf(const op::AttrDef& attr) {
  const std::string_view type = attr.type;
  if (!type.starts_with(kList)) return ElementType(type);
  return "std::vector<" + ElementType(type.substr(kList.size(), type.size() - kList.size() - 1)) + ">";
}

std::string Text(const std::string& value) { return Quoted(value); }
std::string Text(int64_t value) { return fmt::format("{}", value); }
std::string Text(bool value) { return value ? "true" : "false"; }
std::string Text(DType value) { return TypeText(value); }
std::string Text(float value) {
  if (std::isinf(value)) {
    return std::string(value < 0 ? "-" : "") + "std::numeric_limits<float>::infinity()";
  }
  if (std::isnan(value)) return "std::numeric_limits<float>::quiet_NaN()";
  const std::string text = fmt::format("{}", value);
  return text + (text.find_first_of(".e") == std::string::npos ? ".0f" : "f");
}
std::string Text(const PartialShape& value) {
  return value.has_rank() ? fmt::format("PartialShape::Of({{{}}})", fmt::join(value.dims(), ", ")) : "PartialShape()";
}

/// The C++ expression of a default, or nothing where it has none (tensors, functions).
std::string DefaultText(const op::AttrValue& value) {
  return std::visit(
      [](const auto& held) -> std::string {
        using T = std::decay_t<decltype(held)>;
        if constexpr (std::is_same_v<T, op::EmptyList>) {
          return "{}";
        } else if constexpr (requires { Text(held); }) {
          return Text(held);
        } else if constexpr (requires { Text(typename T::value_type(held[0])); }) {
          std::vector<std::string> texts;
          for (const auto& element : held) texts.push_back(Text(typename T::value_type(element)));
          return fmt::format("{{{}}}", fmt::join(texts, ", "));
        } else {
          return "";
        }
      },
      value.value());
}

/// Attributes that BuildOp deduces from the inputs.
std::set<std::string> Deduced(const op::OpDef& op) {
  std::set<std::string> names;
  for (const op::ArgDef& arg : op.inputs) {
    for (const std::string& name : {arg.type_attr, arg.number_attr, arg.type_list_attr}) names.insert(name);
  }
  names.erase("");
  return names;
}

/// How many values `arg`, a list, has: by an input list of that length, else by the attribute's parameter.
std::string CountOf(const op::ArgDef& arg, const RawOp& raw) {
  for (const RawArg& input : raw.inputs) {
    const bool same = !arg.number_attr.empty() ? input.def->number_attr == arg.number_attr
                                               : input.def->type_list_attr == arg.type_list_attr;
    if (input.is_list && same) return input.name + ".size()";
  }
  const std::string& attr = arg.number_attr.empty() ? arg.type_list_attr : arg.number_attr;
  const auto by_name = [&](const RawAttr& known) { return known.def->name == attr; };
  std::string value;
  if (const auto found = std::ranges::find_if(raw.required, by_name); found != raw.required.end()) {
    value = found->name;
  } else if (const auto member = std::ranges::find_if(raw.optional, by_name); member != raw.optional.end()) {
    value = "attrs." + member->name;
  }
  return arg.number_attr.empty() ? value + ".size()" : "static_cast<size_t>(" + value + ")";
}

}  // namespace

bool HasBuilder(const op::OpDef& op) { return !op.name.starts_with('_'); }

RawOp MakeRawOp(const op::OpDef& op) {
  RawOp raw;
  raw.def = &op;
  std::set<std::string> taken = {"attrs", "name", "where", "inputs", "operation"};
  for (const op::ArgDef& arg : op.inputs) {
    const bool list = !arg.number_attr.empty() || !arg.type_list_attr.empty();
    raw.inputs.push_back({&arg, Parameter(arg.name, taken), list, ""});
    if (!arg.number_attr.empty()) {
      const std::string length =
          fmt::format("{{\"{}\", static_cast<int64_t>({}.size())}}", arg.number_attr, raw.inputs.back().name);
      const auto same = [&](const std::string& known) { return known.starts_with("{\"" + arg.number_attr + "\""); };
      if (std::ranges::none_of(raw.lengths, same)) raw.lengths.push_back(length);
    }
  }
  const std::set<std::string> deduced = Deduced(op);
  std::set<std::string> members = {"operation"};
  for (const op::AttrDef& attr : op.attrs) {
    if (deduced.contains(attr.name)) continue;
    const std::string default_value = attr.default_value.set() ? DefaultText(attr.default_value) : "";
    if (default_value.empty()) {
      raw.required.push_back({&attr, Parameter(attr.name, taken), TypeOf(attr), ""});
    } else {
      raw.optional.push_back({&attr, Parameter(attr.name, members), TypeOf(attr), default_value});
    }
  }
  std::set<std::string> outputs = {"operation"};
  for (const op::ArgDef& arg : op.outputs) {
    const bool list = !arg.number_attr.empty() || !arg.type_list_attr.empty();
    raw.outputs.push_back({&arg, Parameter(arg.name, outputs), list, list ? CountOf(arg, raw) : ""});
  }
  return raw;
}

std::string Quoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (byte < 0x20 || byte >= 0x7f) {
      quoted += fmt::format("\\{:03o}", byte);
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

}  // namespace weir::opgen
