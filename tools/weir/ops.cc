#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <nlohmann/json.hpp>

#include "core/op/same_bits.h"
#include "core/session/runtime.h"
#include "tools/weir/commands.h"

namespace weir::cli {
namespace {

std::string ArgText(const op::ArgDef& arg) {
  std::string type = !arg.type_list_attr.empty() ? arg.type_list_attr
                     : !arg.type_attr.empty()    ? arg.type_attr
                                                 : Name(arg.dtype);
  if (!arg.number_attr.empty()) type = arg.number_attr + "*" + type;
  return fmt::format("{}: {}", arg.name, arg.is_ref ? "Ref(" + type + ")" : type);
}

std::vector<std::string> ArgTexts(const std::vector<op::ArgDef>& args) {
  std::vector<std::string> texts;
  for (const op::ArgDef& arg : args) texts.push_back(ArgText(arg));
  return texts;
}

std::vector<std::string> TypeNames(DTypeSet types) {
  std::vector<std::string> names;
  for (uint32_t i = 1; i < 64; ++i) {
    const auto type = static_cast<DType>(i);
    if (IsKnown(type) && Contains(types, type)) names.push_back(Name(type));
  }
  return names;
}

std::string AttrText(const op::AttrDef& attr) {
  std::string text = fmt::format("{}: {}", attr.name, attr.type);
  if (attr.allowed_types != kAnyType) text += fmt::format(" in {{{}}}", fmt::join(TypeNames(attr.allowed_types), ", "));
  if (!attr.allowed_strings.empty()) text += fmt::format(" in {{{}}}", fmt::join(attr.allowed_strings, ", "));
  if (attr.minimum) text += fmt::format(" >= {}", *attr.minimum);
  if (attr.default_value.set()) text += " = " + attr.default_value.ToString();
  return text;
}

std::string_view View(weir_str text) { return {text.data, text.size}; }

// The types that one kernel supports of those that the op allows, by attribute.
std::map<std::string, DTypeSet> TypesOf(const op::OpDef& op, const weir_kernel& record) {
  std::map<std::string, DTypeSet> types;
  for (uint32_t i = 0; i < record.type_count; ++i) {
    const op::AttrDef* attr = op.FindAttr(View(record.types[i].attr));
    types[std::string(View(record.types[i].attr))] |=
        record.types[i].dtypes & (attr == nullptr ? kAnyType : attr->allowed_types);
  }
  return types;
}

Json KernelJson(const op::OpDef& op, const kernel::KernelEntry& entry) {
  Json types = Json::object();
  for (const auto& [attr, set] : TypesOf(op, *entry.record)) types[attr] = TypeNames(set);
  return {{"plugin", entry.plugin},
          {"platform", std::string(View(entry.record->platform))},
          {"file", entry.file},
          {"types", std::move(types)},
          {"priority", entry.record->priority},
          {"isa_level", entry.isa_level}};
}

Json OpJson(const op::OpDef& op, const kernel::KernelRegistry& kernels) {
  Json attrs = Json::array();
  for (const op::AttrDef& attr : op.attrs) {
    Json json = {{"name", attr.name}, {"type", attr.type}};
    if (attr.default_value.set()) json["default"] = attr.default_value.ToString();
    if (attr.allowed_types != kAnyType) json["allowed"] = TypeNames(attr.allowed_types);
    if (!attr.allowed_strings.empty()) json["allowed"] = attr.allowed_strings;
    if (attr.minimum) json["minimum"] = *attr.minimum;
    attrs.push_back(std::move(json));
  }
  Json list = Json::array();
  for (const kernel::KernelEntry* entry : kernels.ForOp(op.name)) list.push_back(KernelJson(op, *entry));
  return {{"name", op.name},
          {"inputs", ArgTexts(op.inputs)},
          {"outputs", ArgTexts(op.outputs)},
          {"attrs", std::move(attrs)},
          {"kernels", std::move(list)},
          {"run_by", Name(op.run_by)},
          {"category", Name(op.category)},
          {"stateful", op.stateful},
          {"same_bits", op::Name(op::SameBitsOf(op))},
          {"traits", TraitsText(op)},
          {"gradient", op.gradient ? Json(true) : Json(false)},
          {"no_gradient", op.no_gradient},
          {"doc", op.doc}};
}

// "kernels_eigen: half, float" for each plugin: the types of its kernels for the attribute that varies most.
std::string KernelsText(const op::OpDef& op, const kernel::KernelRegistry& kernels) {
  if (op.run_by != op::RunBy::kKernel) return std::string(Name(op.run_by));
  std::map<std::string, std::map<std::string, DTypeSet>> plugins;
  for (const kernel::KernelEntry* entry : kernels.ForOp(op.name)) {
    std::map<std::string, DTypeSet>& types = plugins[entry->plugin];
    for (const auto& [attr, set] : TypesOf(op, *entry->record)) types[attr] |= set;
  }
  std::vector<std::string> texts;
  for (const auto& [plugin, types] : plugins) {
    DTypeSet widest = 0;
    for (const auto& [attr, set] : types) {
      if (std::popcount(set) > std::popcount(widest)) widest = set;
    }
    texts.push_back(types.empty() ? plugin : fmt::format("{}: {}", plugin, fmt::join(TypeNames(widest), ", ")));
  }
  return texts.empty() ? "no kernel" : fmt::format("{}", fmt::join(texts, "; "));
}

std::string SignatureText(const op::OpDef& op) {
  return fmt::format("({}) -> ({})", fmt::join(ArgTexts(op.inputs), ", "), fmt::join(ArgTexts(op.outputs), ", "));
}

void PrintDetail(const op::OpDef& op, const kernel::KernelRegistry& kernels, const Console& console) {
  console.Print(op.name + SignatureText(op));
  if (!op.doc.empty()) console.Print("  " + op.doc);
  console.Print(fmt::format("  category: {}   run by: {}", Name(op.category), TraitsText(op)));
  console.Print(fmt::format("  same bits: {}", op::Name(op::SameBitsOf(op))));
  console.Print("  gradient: " + (op.gradient ? "yes" : "none, " + op.no_gradient));
  for (const op::AttrDef& attr : op.attrs) console.Print("  attr " + AttrText(attr));
  for (const kernel::KernelEntry* entry : kernels.ForOp(op.name)) {
    std::string text = fmt::format("  kernel {} ({}) on {}", entry->plugin, entry->file, View(entry->record->platform));
    for (const auto& [attr, set] : TypesOf(op, *entry->record))
      text += fmt::format(", {}: {}", attr, fmt::join(TypeNames(set), " "));
    console.Print(text);
  }
}

std::string MarkdownCell(std::string text) {
  for (size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2) text.insert(at, 1, '\\');
  return text;
}

void PrintMarkdown(const std::vector<const op::OpDef*>& ops, const kernel::KernelRegistry& kernels,
                   const Console& console) {
  console.Print(
      "| op | inputs | outputs | attributes | kernels | gradient | same bits |\n|---|---|---|---|---|---|---|");
  for (const op::OpDef* op : ops) {
    std::vector<std::string> attrs;
    for (const op::AttrDef& attr : op->attrs) attrs.push_back(MarkdownCell(AttrText(attr)));
    console.Print(fmt::format("| {} | {} | {} | {} | {} | {} | {} |", op->name, fmt::join(ArgTexts(op->inputs), ", "),
                              fmt::join(ArgTexts(op->outputs), ", "), fmt::join(attrs, "; "), KernelsText(*op, kernels),
                              op->gradient ? "yes" : "none", op::Name(op::SameBitsOf(*op))));
  }
}

}  // namespace

Status ShowOps(const OpsOptions& options, const Console& console, Json& report) {
  WEIR_ASSIGN(const std::shared_ptr<session::Runtime> runtime, session::Runtime::Default());
  const kernel::KernelRegistry& kernels = runtime->plugins->kernels();
  std::vector<const op::OpDef*> ops;
  if (options.name.empty()) {
    ops = runtime->ops->All();
  } else {
    WEIR_ASSIGN(const op::OpDef* op, runtime->ops->Get(options.name));
    ops.push_back(op);
  }
  report["ops"] = Json::array();
  if (console.json()) {
    for (const op::OpDef* op : ops) report["ops"].push_back(OpJson(*op, kernels));
    return Status();
  }
  if (options.markdown) {
    PrintMarkdown(ops, kernels, console);
  } else if (!options.name.empty()) {
    PrintDetail(*ops.front(), kernels, console);
  } else {
    Table table({"op", "category", "same bits", "kernels"});
    for (const op::OpDef* op : ops) {
      table.Add({op->name, std::string(Name(op->category)), std::string(op::Name(op::SameBitsOf(*op))),
                 KernelsText(*op, kernels)});
    }
    console.Print(table);
    console.Print(fmt::format("{} ops", ops.size()));
  }
  return Status();
}

}  // namespace weir::cli
