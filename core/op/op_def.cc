#include "core/op/op_def.h"

#include <algorithm>

#include "core/base/errors.h"
#include "core/op/attr_kind.h"

namespace weir::op {
namespace {

std::string ArgsText(const std::vector<ArgDef>& args) {
  std::string out;
  for (const ArgDef& arg : args) {
    if (!out.empty()) out += ", ";
    out += arg.name + ":";
    if (arg.is_ref) out += "Ref(";
    if (!arg.number_attr.empty()) out += arg.number_attr + "*";
    out += !arg.type_attr.empty() ? arg.type_attr : !arg.type_list_attr.empty() ? arg.type_list_attr : Name(arg.dtype);
    if (arg.is_ref) out += ")";
  }
  return out;
}

std::vector<DType> TypesOf(DTypeSet set) {
  std::vector<DType> types;
  for (uint32_t i = 0; i < 64; ++i) {
    if (const auto t = static_cast<DType>(i); IsKnown(t) && Contains(set, t)) types.push_back(t);
  }
  return types;
}

Status CheckType(const AttrDef& attr, DType type) {
  if (IsRef(type)) return InvalidArgument("AttrValue must not have reference type value of {}", Name(type));
  // Unknown types are rejected even if any type is allowed.
  if (IsKnown(type) && (attr.allowed_types == kAnyType || Contains(attr.allowed_types, type))) return {};
  std::string allowed;
  for (DType t : TypesOf(attr.allowed_types)) allowed += (allowed.empty() ? "" : ", ") + Name(t);
  return InvalidArgument("Value for attr '{}' of {} is not in the list of allowed values: {}", attr.name, Name(type),
                         allowed);
}

Status CheckString(const AttrDef& attr, const std::string& value) {
  if (attr.allowed_strings.empty() || std::ranges::find(attr.allowed_strings, value) != attr.allowed_strings.end()) {
    return {};
  }
  std::string allowed;
  for (const std::string& s : attr.allowed_strings) allowed += (allowed.empty() ? "\"" : ", \"") + s + "\"";
  return InvalidArgument("Value for attr '{}' of \"{}\" is not in the list of allowed values: {}", attr.name, value,
                         allowed);
}

int64_t ListLength(const AttrValue& value) {
  return std::visit(
      [](const auto& v) -> int64_t {
        if constexpr (requires {
                        v.size();
                        v.empty();
                        v.begin();
                      }) {
          return static_cast<int64_t>(v.size());
        } else {
          return 0;
        }
      },
      value.value());
}

Status CheckMinimum(const AttrDef& attr, const AttrValue& value) {
  if (!attr.minimum) return {};
  if (const int64_t* number = value.get<int64_t>()) {
    if (*number >= *attr.minimum) return {};
    return InvalidArgument("Value for attr '{}' of {} must be at least minimum {}", attr.name, *number, *attr.minimum);
  }
  const int64_t length = ListLength(value);
  if (length >= *attr.minimum) return {};
  return InvalidArgument("Length for attr '{}' of {} must be at least minimum {}", attr.name, length, *attr.minimum);
}

}  // namespace

const AttrDef* OpDef::FindAttr(std::string_view attr) const {
  for (const AttrDef& def : attrs) {
    if (def.name == attr) return &def;
  }
  return nullptr;
}

bool OpDef::MakesState() const {
  if (!inputs.empty() || outputs.size() != 1) return false;
  const ArgDef& made = outputs[0];
  return (made.is_ref || made.dtype == DType::kResource) && made.number_attr.empty() && made.type_list_attr.empty();
}

std::string_view Name(Category category) {
  switch (category) {
    case Category::kMath:
      return "math";
    case Category::kArray:
      return "array";
    case Category::kState:
      return "state";
    case Category::kNeural:
      return "neural";
    case Category::kRandom:
      return "random";
    case Category::kControlFlow:
      return "control flow";
    case Category::kFiles:
      return "files";
    case Category::kSummary:
      return "summary";
    case Category::kTraining:
      return "training";
    case Category::kCheck:
      return "check";
    case Category::kNetwork:
      return "network";
  }
  return "unknown";
}

std::string_view Name(RunBy run_by) {
  switch (run_by) {
    case RunBy::kKernel:
      return "kernel";
    case RunBy::kExecutor:
      return "executor";
    case RunBy::kUniversal:
      return "universal";
  }
  return "unknown";
}

std::string_view Name(Universal universal) {
  switch (universal) {
    case Universal::kNone:
      return "none";
    case Universal::kConstant:
      return "constant";
    case Universal::kPlaceholder:
      return "placeholder";
    case Universal::kForward:
      return "forward";
    case Universal::kReshape:
      return "reshape";
    case Universal::kShapeQuery:
      return "shape query";
    case Universal::kVariable:
      return "variable";
    case Universal::kReadVariable:
      return "read variable";
    case Universal::kAssignVariable:
      return "assign variable";
    case Universal::kIsInitialized:
      return "is initialized";
    case Universal::kVariableShape:
      return "variable shape";
  }
  return "unknown";
}

std::string_view Name(Flow flow) {
  switch (flow) {
    case Flow::kPlain:
      return "plain";
    case Flow::kSwitch:
      return "switch";
    case Flow::kMerge:
      return "merge";
    case Flow::kSelect:
      return "select";
    case Flow::kEnter:
      return "enter";
    case Flow::kExit:
      return "exit";
    case Flow::kNextIteration:
      return "next iteration";
    case Flow::kLoopCond:
      return "loop cond";
    case Flow::kSend:
      return "send";
    case Flow::kRecv:
      return "recv";
    case Flow::kArgument:
      return "argument";
    case Flow::kResult:
      return "result";
    case Flow::kTrigger:
      return "trigger";
  }
  return "unknown";
}

std::string_view Name(StackRole role) {
  switch (role) {
    case StackRole::kNone:
      return "no stack";
    case StackRole::kMake:
      return "makes a stack";
    case StackRole::kPush:
      return "pushes";
    case StackRole::kPop:
      return "pops";
  }
  return "unknown";
}

std::string TraitsText(const OpDef& op) {
  const Traits& traits = op.traits;
  std::string text(Name(op.run_by));
  if (traits.universal != Universal::kNone) text += fmt::format(" {}", Name(traits.universal));
  if (traits.flow != Flow::kPlain) text += fmt::format(" {}", Name(traits.flow));
  const auto add = [&text](bool has, std::string_view trait) {
    if (has) text += fmt::format(", {}", trait);
  };
  add(op.stateful, "stateful");
  add(op.commutative, "commutative");
  add(op.aggregate, "aggregate");
  add(op.allows_uninitialized_input, "allows uninitialized input");
  add(op.MakesState(), "makes state");
  add(traits.passes_value, "passes value");
  add(traits.moves_elements, "moves elements");
  add(traits.checks_only, "checks only");
  add(traits.handles_from_anywhere, "handles from anywhere");
  add(traits.stack != StackRole::kNone, Name(traits.stack));
  if (traits.same_if_empty >= 0) add(true, fmt::format("same if input {} is empty", traits.same_if_empty));
  add(static_cast<bool>(traits.known_ints), "known ints");
  add(traits.refusal != nullptr, "refusal of its own");
  add(traits.elementwise, "elementwise");
  add(traits.region, "region");
  for (const FusedExpression& fused : op.computes) {
    std::string attrs;
    for (const auto& [name, value] : fused.attrs) attrs += fmt::format(" {}={}", name, value.ToString());
    add(true, fmt::format("computes {}{}", fused.text, attrs));
  }
  if (!op.fusion.consumer.empty()) {
    add(true, fmt::format("fuses {} with {} as input {}", op.fusion.consumer, op.fusion.producer, op.fusion.input));
  }
  if (!op.measured_as.op.empty()) {
    add(true, fmt::format("measured as {} of {} inputs", op.measured_as.op, op.measured_as.inputs));
  }
  return text;
}

std::string Summarize(const OpDef& op) {
  std::string out = fmt::format("Op<name={}; signature={} -> {}", op.name, ArgsText(op.inputs), ArgsText(op.outputs));
  for (const AttrDef& attr : op.attrs) {
    out += fmt::format("; attr={}:{}", attr.name, attr.type);
    if (attr.default_value.set()) out += ",default=" + attr.default_value.ToString();
    if (attr.minimum) out += fmt::format(",min={}", *attr.minimum);
    if (attr.allowed_types != kAnyType) out += ",allowed=" + AttrValue(TypesOf(attr.allowed_types)).ToString();
    if (!attr.allowed_strings.empty()) out += ",allowed=" + AttrValue(attr.allowed_strings).ToString();
  }
  if (op.commutative) out += "; is_commutative=true";
  if (op.aggregate) out += "; is_aggregate=true";
  if (op.stateful) out += "; is_stateful=true";
  if (op.allows_uninitialized_input) out += "; allows_uninitialized_input=true";
  return out + ">";
}

Status CheckAllowed(const AttrDef& attr, const AttrValue& value) {
  const std::string_view kind = KindOf(value);
  if (kind == "placeholder") return {};
  if (!value.set()) {
    return InvalidArgument("AttrValue missing value with expected type '{}'\n\t for attr '{}'", attr.type, attr.name);
  }
  if (kind != attr.type && !(kind == "list" && attr.type.starts_with("list("))) {
    return InvalidArgument("AttrValue had value with type '{}' when '{}' expected\n\t for attr '{}'", kind, attr.type,
                           attr.name);
  }
  if (const DType* type = value.get<DType>()) return CheckType(attr, *type);
  if (const auto* text = value.get<std::string>()) return CheckString(attr, *text);
  WEIR_TRY(CheckMinimum(attr, value));
  if (const auto* types = value.get<std::vector<DType>>()) {
    for (DType type : *types) WEIR_TRY(CheckType(attr, type));
  }
  if (const auto* texts = value.get<std::vector<std::string>>()) {
    for (const std::string& text : *texts) WEIR_TRY(CheckString(attr, text));
  }
  return {};
}

}  // namespace weir::op
