#include "core/op/deduce.h"

#include <algorithm>
#include <utility>

namespace weir::op {
namespace {

const AttrValue* FindIn(const AttrList& attrs, const std::string& name) {
  const auto found = std::ranges::find(attrs, name, &AttrList::value_type::first);
  return found == attrs.end() ? nullptr : &found->second;
}

}  // namespace

void SetDefault(AttrList& attrs, const std::string& name, AttrValue value) {
  if (FindIn(attrs, name) == nullptr) attrs.emplace_back(name, std::move(value));
}

std::vector<size_t> InputCounts(const OpDef& def, size_t inputs, const AttrList& attrs) {
  std::vector<size_t> counts(def.inputs.size(), 1);
  size_t known = 0;
  size_t open = 0;
  for (size_t i = 0; i < def.inputs.size(); ++i) {
    const ArgDef& arg = def.inputs[i];
    const AttrValue* length = arg.number_attr.empty() ? nullptr : FindIn(attrs, arg.number_attr);
    const AttrValue* types = arg.type_list_attr.empty() ? nullptr : FindIn(attrs, arg.type_list_attr);
    if (arg.number_attr.empty() && arg.type_list_attr.empty()) {
      ++known;
    } else if (length != nullptr && length->get<int64_t>() != nullptr) {
      known += counts[i] = static_cast<size_t>(*length->get<int64_t>());
    } else if (types != nullptr && types->get<std::vector<DType>>() != nullptr) {
      known += counts[i] = types->get<std::vector<DType>>()->size();
    } else {
      counts[i] = 0;
      ++open;
    }
  }
  if (open == 0) return counts;
  if (inputs < known || (inputs - known) % open != 0) return {};
  for (size_t i = 0; i < counts.size(); ++i) {
    const ArgDef& arg = def.inputs[i];
    const bool listed = !arg.number_attr.empty() || !arg.type_list_attr.empty();
    if (listed && counts[i] == 0) counts[i] = (inputs - known) / open;
  }
  return counts;
}

AttrList Deduce(const OpDef& def, std::span<const DType> input_types, AttrList attrs) {
  const std::vector<size_t> counts = InputCounts(def, input_types.size(), attrs);
  size_t next = 0;
  for (size_t i = 0; i < counts.size() && next <= input_types.size(); ++i) {
    const ArgDef& arg = def.inputs[i];
    const size_t end = std::min(next + counts[i], input_types.size());
    if (!arg.number_attr.empty()) SetDefault(attrs, arg.number_attr, static_cast<int64_t>(counts[i]));
    if (!arg.type_attr.empty() && next < end) SetDefault(attrs, arg.type_attr, BaseType(input_types[next]));
    if (!arg.type_list_attr.empty()) {
      std::vector<DType> types;
      for (size_t j = next; j < end; ++j) types.push_back(BaseType(input_types[j]));
      SetDefault(attrs, arg.type_list_attr, std::move(types));
    }
    next = end;
  }
  return attrs;
}

}  // namespace weir::op
