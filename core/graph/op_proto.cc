#include "core/graph/op_proto.h"

#include "core/graph/attr_proto.h"
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

}  // namespace

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
