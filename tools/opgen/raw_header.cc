#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "tools/opgen/generate.h"

namespace weir::opgen {
namespace {

constexpr size_t kColumns = 120;

/// `text` as a comment of lines that fit.
std::string Comment(const std::string& text, const std::string& indent) {
  const std::string begin = indent + "///";
  std::string out, line = begin, word;
  const auto flush = [&] {
    if (word.empty()) return;
    if (line.size() + 1 + word.size() > kColumns && line != begin) {
      out += line + "\n";
      line = begin;
    }
    line += " " + word;
    word.clear();
  };
  for (const char c : text) {
    if (c == ' ' || c == '\n') {
      flush();
    } else {
      word += c;
    }
  }
  flush();
  return line == begin ? out : out + line + "\n";
}

/// What an attribute may be: "Attribute padding: {'SAME', 'VALID'}."
std::string AttrComment(const RawAttr& attr) {
  std::vector<std::string> words;
  for (const std::string& word : attr.def->allowed_strings) words.push_back("'" + word + "'");
  if (!words.empty()) return fmt::format("one of {}", fmt::join(words, ", "));
  if (attr.def->minimum) return fmt::format("at least {}", *attr.def->minimum);
  return "";
}

std::string AttrsStruct(const RawOp& op) {
  if (op.optional.empty()) return "";
  std::string text = fmt::format("struct {}Attrs {{\n", op.def->name);
  for (const RawAttr& attr : op.optional) {
    const std::string comment = AttrComment(attr);
    if (!comment.empty()) text += Comment(comment, "  ");
    text += fmt::format("  {} {} = {};\n", attr.type, attr.name, attr.default_value);
  }
  return text + "};\n";
}

std::string TypeOf(const RawArg& output) { return output.is_list ? "List<Output>" : "Output"; }

std::string OutputsStruct(const RawOp& op) {
  if (op.outputs.size() < 2) return "";
  std::string text = fmt::format("struct {}Outputs {{\n", op.def->name);
  for (const RawArg& output : op.outputs) text += fmt::format("  {} {};\n", TypeOf(output), output.name);
  return text + "  Operation operation;\n};\n";
}

std::string ReturnType(const RawOp& op) {
  if (op.outputs.empty()) return "Operation";
  return op.outputs.size() == 1 ? TypeOf(op.outputs[0]) : op.def->name + "Outputs";
}

std::string Parameters(const RawOp& op) {
  std::vector<std::string> parameters;
  for (const RawArg& input : op.inputs) {
    const char* type = input.is_list ? "const std::vector<Operand>&" : input.def->is_ref ? "Output" : "const Operand&";
    parameters.push_back(fmt::format("{} {}", type, input.name));
  }
  for (const RawAttr& attr : op.required) parameters.push_back(fmt::format("const {}& {}", attr.type, attr.name));
  if (!op.optional.empty()) parameters.push_back(fmt::format("const {}Attrs& attrs = {{}}", op.def->name));
  parameters.emplace_back("std::string_view name = {}");
  parameters.emplace_back("std::source_location where = std::source_location::current()");
  std::string text, line;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const std::string part = parameters[i] + (i + 1 < parameters.size() ? "," : "");
    if (!line.empty() && line.size() + 1 + part.size() > kColumns - 8) {
      text += line + "\n    ";
      line.clear();
    }
    line += (line.empty() ? "" : " ") + part;
  }
  return text + line;
}

/// The inputs in one list.
std::string Inputs(const RawOp& op) {
  const bool lists = std::ranges::any_of(op.inputs, &RawArg::is_list);
  std::vector<std::string> names;
  for (const RawArg& input : op.inputs) names.push_back(input.name);
  if (!lists) return fmt::format("  const std::vector<Operand> inputs = {{{}}};\n", fmt::join(names, ", "));
  std::string text = "  std::vector<Operand> inputs;\n";
  for (const RawArg& input : op.inputs) {
    text += input.is_list ? fmt::format("  inputs.insert(inputs.end(), {0}.begin(), {0}.end());\n", input.name)
                          : fmt::format("  inputs.emplace_back({});\n", input.name);
  }
  return text;
}

std::string Body(const RawOp& op) {
  std::vector<std::string> attrs = op.lengths;
  for (const RawAttr& attr : op.required) attrs.push_back(fmt::format("{{\"{}\", {}}}", attr.def->name, attr.name));
  for (const RawAttr& attr : op.optional) {
    attrs.push_back(fmt::format("{{\"{}\", attrs.{}}}", attr.def->name, attr.name));
  }
  std::string text = Inputs(op);
  const std::string build =
      fmt::format("BuildOp(\"{}\", inputs, {{{}}}, name, where)", op.def->name, fmt::join(attrs, ", "));
  if (op.outputs.empty()) return text + fmt::format("  return {};\n", build);
  if (op.outputs.size() == 1 && !op.outputs[0].is_list) return text + fmt::format("  return {}.output(0);\n", build);
  text += fmt::format("  const Operation operation = {};\n  int next = 0;\n", build);
  std::vector<std::string> members;
  for (const RawArg& output : op.outputs) {
    text +=
        output.is_list
            ? fmt::format("  List<Output> {} = TakeOutputs(operation, next, {});\n", output.name + "_out", output.count)
            : fmt::format("  const Output {} = operation.output(next++, where);\n", output.name + "_out");
    members.push_back(output.name + "_out");
  }
  if (op.outputs.size() == 1) return text + fmt::format("  return {};\n", members[0]);
  return text + fmt::format("  return {{{}, operation}};\n", fmt::join(members, ", "));
}

constexpr char kHeaderHead[] =
    R"(// Generated by tools/opgen: a builder for each op of the catalogue, with its names of arguments and attributes.
//
// A builder takes the inputs, the attributes without a default, a struct of those with one, and the name of the node.
// Types and lengths that follow from the inputs are deduced. It adds one node, and a Const below the node's name for
// each literal. In a list of inputs, a literal has its natural type. Errors are those of Graph::Add.
#ifndef WEIR_RAW_OPS_H_
#define WEIR_RAW_OPS_H_

#include <cstdint>
#include <limits>
#include <source_location>
#include <string>
#include <string_view>
#include <vector>

#include "core/client/ops/build_op.h"
#include "core/client/ops/operand.h"

namespace weir::raw {

/// `count` outputs of the operation from `next` on, which moves behind them. After an error they do not exist.
inline List<Output> TakeOutputs(const Operation& operation, int& next, size_t count) {
  if (!operation.exists()) return OutputsOr(operation, static_cast<int64_t>(count));
  List<Output> taken;
  for (size_t i = 0; i < count; ++i) taken.push_back(operation.output(next++));
  return taken;
}

)";

}  // namespace

std::string RawHeader(const std::vector<RawOp>& ops) {
  std::string text = kHeaderHead;
  for (const RawOp& op : ops) {
    text += AttrsStruct(op) + OutputsStruct(op) + Comment(op.def->doc, "");
    text += fmt::format("inline {} {}(\n    {}) {{\n{}}}\n\n", ReturnType(op), op.def->name, Parameters(op), Body(op));
  }
  return text + "}  // namespace weir::raw\n\n#endif  // WEIR_RAW_OPS_H_\n";
}

}  // namespace weir::opgen
