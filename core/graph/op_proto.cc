#include "core/graph/op_proto.h"

#include <set>
#include <utility>

#include "core/base/errors.h"
#include "core/graph/attr_proto.h"
#include "core/op/shape_context.h"
#include "weir/proto/op_def.pb.h"

namespace weir::graph {
namespace {

void WriteArg(const op::ArgDef& arg, tf::OpDef::ArgDef& def) {
  def.set_name(arg.name);
  if (arg.type_attr.empty() && arg.type_list_attr.empty()) def.set_type(static_cast<tf::DataType>(arg.dtype));
  def.set_type_attr(arg.type_attr);
  def.set_number_attr(arg.number_attr);
  def.set_type_list_attr(arg.type_list_attr);
  def.set_is_ref(arg.is_ref);
}

Status WriteAttr(const op::AttrDef& attr, tf::OpDef::AttrDef& def) {
  def.set_name(attr.name);
  def.set_type(attr.type);
  if (attr.default_value.set()) WEIR_TRY(AttrToProto(attr.default_value, *def.mutable_default_value()));
  if (attr.allowed_types != kAnyType) {
    for (uint32_t code = 1; code < 64; ++code) {
      const auto type = static_cast<DType>(code);
      if (!Contains(attr.allowed_types, type) || !IsKnown(type)) continue;
      def.mutable_allowed_values()->mutable_list()->add_type(static_cast<tf::DataType>(code));
    }
  }
  for (const std::string& text : attr.allowed_strings) def.mutable_allowed_values()->mutable_list()->add_s(text);
  def.set_has_minimum(attr.minimum.has_value());
  def.set_minimum(attr.minimum.value_or(0));
  return {};
}

Status CheckNames(const op::OpDef& op) {
  for (const auto* args : {&op.inputs, &op.outputs}) {
    std::set<std::string_view> names;
    for (const op::ArgDef& arg : *args) {
      if (arg.name.empty()) return InvalidArgument("an argument has no name");
      if (!names.insert(arg.name).second) return InvalidArgument("two arguments are named '{}'", arg.name);
      for (const std::string* attr : {&arg.type_attr, &arg.number_attr, &arg.type_list_attr}) {
        if (attr->empty() || op.FindAttr(*attr) != nullptr) continue;
        return InvalidArgument("argument '{}' refers to attr '{}', which is not declared", arg.name, *attr);
      }
    }
  }
  std::set<std::string_view> names;
  for (const op::AttrDef& attr : op.attrs) {
    if (!names.insert(attr.name).second) return InvalidArgument("two attributes are named '{}'", attr.name);
  }
  return {};
}

Result<op::ArgDef> ReadArg(const tf::OpDef::ArgDef& def) {
  op::ArgDef arg{.name = def.name(),
                 .dtype = static_cast<DType>(def.type()),
                 .type_attr = def.type_attr(),
                 .number_attr = def.number_attr(),
                 .type_list_attr = def.type_list_attr(),
                 .is_ref = def.is_ref()};
  const bool fixed = arg.dtype != DType::kInvalid;
  if (fixed && (!IsKnown(arg.dtype) || IsRef(arg.dtype))) {
    return InvalidArgument("argument '{}' has type {}, which no tensor has", arg.name, static_cast<int>(def.type()));
  }
  if (fixed + !arg.type_attr.empty() + !arg.type_list_attr.empty() != 1) {
    return InvalidArgument("argument '{}' must have one of type, type_attr and type_list_attr", arg.name);
  }
  return arg;
}

Result<op::AttrDef> ReadAttr(const tf::OpDef::AttrDef& def, ExpansionBudget& budget) {
  op::AttrDef attr;
  attr.name = def.name();
  attr.type = def.type();
  if (def.has_default_value()) {
    WEIR_ASSIGN(attr.default_value, AttrFromProto(def.default_value(), budget));
  }
  if (def.has_minimum()) attr.minimum = def.minimum();
  const tf::AttrValue::ListValue& allowed = def.allowed_values().list();
  if (allowed.type_size() > 0) attr.allowed_types = 0;
  for (const int type : allowed.type()) {
    if (type > 0 && type < 64) attr.allowed_types |= Bit(static_cast<DType>(type));
  }
  attr.allowed_strings.assign(allowed.s().begin(), allowed.s().end());
  return attr;
}

}  // namespace

Status OpDefFromProto(const tf::OpDef& def, op::OpDef& op) {
  constexpr uint64_t kDefaultBytes = uint64_t{64} << 20;  // limit on default values beyond the message size
  ExpansionBudget budget{kDefaultBytes};
  op.name = def.name();
  for (const tf::OpDef::ArgDef& arg : def.input_arg()) {
    WEIR_ASSIGN(op.inputs.emplace_back(), ReadArg(arg));
  }
  for (const tf::OpDef::ArgDef& arg : def.output_arg()) {
    WEIR_ASSIGN(op.outputs.emplace_back(), ReadArg(arg));
  }
  for (const tf::OpDef::AttrDef& attr : def.attr()) {
    WEIR_ASSIGN(op.attrs.emplace_back(), ReadAttr(attr, budget));
  }
  op.stateful = def.is_stateful();
  op.commutative = def.is_commutative();
  op.aggregate = def.is_aggregate();
  op.allows_uninitialized_input = def.allows_uninitialized_input();
  op.shape = op::Unknown();
  op.no_gradient = "it comes from a file";
  return CheckNames(op);
}

Status OpDefToProto(const op::OpDef& op, tf::OpDef& def) {
  def.set_name(op.name);
  for (const op::ArgDef& arg : op.inputs) WriteArg(arg, *def.add_input_arg());
  for (const op::ArgDef& arg : op.outputs) WriteArg(arg, *def.add_output_arg());
  for (const op::AttrDef& attr : op.attrs) WEIR_TRY(WriteAttr(attr, *def.add_attr()));
  def.set_is_stateful(op.stateful);
  def.set_is_commutative(op.commutative);
  def.set_is_aggregate(op.aggregate);
  def.set_allows_uninitialized_input(op.allows_uninitialized_input);
  return {};
}

}  // namespace weir::graph
