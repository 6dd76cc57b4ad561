#include "core/compile/region_view.h"

#include <string>
#include <string_view>

#include "core/kernel/host.h"

namespace weir::compile {
namespace {

weir_region_value RecordOf(const RegionValue& value) {
  weir_region_value record{};
  record.struct_size = sizeof record;
  record.dtype = static_cast<uint32_t>(value.dtype);
  record.shape = kernel::ViewOf(value.shape);
  record.constant = value.constant.valid() ? value.constant.raw() : nullptr;
  return record;
}

weir_opt OptionOf(const std::string& name, const op::AttrValue& value) {
  weir_opt option{};
  option.key = kernel::ViewOf(std::string_view(name));
  if (const auto* integer = value.get<int64_t>()) {
    option.type = WEIR_VALUE_INT;
    option.value.i = *integer;
  } else if (const auto* number = value.get<float>()) {
    option.type = WEIR_VALUE_FLOAT;
    option.value.f = static_cast<double>(*number);
  } else if (const auto* flag = value.get<bool>()) {
    option.type = WEIR_VALUE_BOOL;
    option.value.i = *flag ? 1 : 0;
  } else if (const auto* type = value.get<DType>()) {
    option.type = WEIR_VALUE_DTYPE;
    option.value.i = static_cast<int64_t>(*type);
  } else if (const auto* text = value.get<std::string>()) {
    option.type = WEIR_VALUE_STRING;
    option.value.s = kernel::ViewOf(std::string_view(*text));
  }
  return option;
}

}  // namespace

RegionView::RegionView(const Region& region) {
  inputs_.reserve(region.inputs.size());
  for (const RegionValue& input : region.inputs) inputs_.push_back(RecordOf(input));
  for (const weir_region_value& input : inputs_) input_pointers_.push_back(&input);
  nodes_.reserve(region.nodes.size());
  attrs_.reserve(region.nodes.size());
  for (const RegionOp& node : region.nodes) AddNode(node, nodes_.emplace_back());
  for (const weir_region_node& node : nodes_) node_pointers_.push_back(&node);
  region_.struct_size = sizeof region_;
  region_.flags = region.deterministic ? static_cast<uint32_t>(WEIR_REGION_DETERMINISTIC) : 0u;
  region_.input_count = static_cast<uint32_t>(region.inputs.size());
  region_.node_count = static_cast<uint32_t>(region.nodes.size());
  region_.output_count = static_cast<uint32_t>(region.outputs.size());
  region_.inputs = input_pointers_.data();
  region_.nodes = node_pointers_.data();
  region_.outputs = region.outputs.data();
  if (!region.loop) return;
  loop_.struct_size = sizeof loop_;
  loop_.variable_count = static_cast<uint32_t>(region.loop->next.size());
  loop_.next = region.loop->next.data();
  loop_.condition = region.loop->condition;
  loop_.most_iterations = region.loop->most_iterations;
  region_.loop = &loop_;
}

void RegionView::AddNode(const RegionOp& node, weir_region_node& record) {
  std::vector<weir_opt>& attrs = attrs_.emplace_back();
  for (const auto& [name, value] : node.attrs) attrs.push_back(OptionOf(name, value));
  record = {};
  record.struct_size = sizeof record;
  record.operand_count = static_cast<uint32_t>(node.operands.size());
  record.op = kernel::ViewOf(std::string_view(node.op));
  record.operands = node.operands.data();
  record.attrs = attrs.data();
  record.attr_count = attrs.size();
  record.axes = node.axes.empty() ? nullptr : node.axes.data();
  record.axis_count = node.axes.size();
  record.result = RecordOf(node.result);
  record.kernel_ns = node.kernel_ns;
}

}  // namespace weir::compile
