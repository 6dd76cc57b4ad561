#include "core/graph/signature_table.h"

#include <algorithm>
#include <utility>

namespace weir::graph {
namespace {

void AddOnce(const std::string& attr, std::vector<std::string_view>& attrs) {
  if (!attr.empty() && std::ranges::find(attrs, attr) == attrs.end()) attrs.emplace_back(attr);
}

/// Appends one attribute value. Each kind starts with its own number, so that keys of different values differ.
void AppendToKey(const op::AttrValue* value, std::vector<int64_t>& key) {
  if (value == nullptr) {
    key.push_back(0);
  } else if (const DType* type = value->get<DType>()) {
    key.insert(key.end(), {1, static_cast<int64_t>(*type)});
  } else if (const int64_t* number = value->get<int64_t>()) {
    key.insert(key.end(), {2, *number});
  } else if (const auto* types = value->get<std::vector<DType>>()) {
    key.insert(key.end(), {3, static_cast<int64_t>(types->size())});
    for (const DType t : *types) key.push_back(static_cast<int64_t>(t));
  } else if (value->get<op::EmptyList>() != nullptr) {
    key.insert(key.end(), {3, 0});
  } else {
    key.push_back(4);  // wrong kind of value: Expand rejects it, and errors are not cached
  }
}

}  // namespace

SignatureTable::OfOp& SignatureTable::Of(const op::OpDef& op) {
  std::unique_ptr<OfOp>& entry = ops_[&op];
  if (entry == nullptr) {
    entry = std::make_unique<OfOp>();
    for (const auto* args : {&op.inputs, &op.outputs}) {
      for (const op::ArgDef& arg : *args) {
        AddOnce(arg.type_attr, entry->attrs);
        AddOnce(arg.number_attr, entry->attrs);
        AddOnce(arg.type_list_attr, entry->attrs);
      }
    }
  }
  return *entry;
}

Result<const op::Signature*> SignatureTable::Get(const op::AttrView& attrs) {
  OfOp& of_op = Of(attrs.def());
  key_.clear();
  for (const std::string_view attr : of_op.attrs) AppendToKey(attrs.Find(attr), key_);
  if (const auto found = of_op.known.find(key_); found != of_op.known.end()) return found->second.get();
  WEIR_ASSIGN(op::Signature signature, op::Expand(attrs));
  auto& kept = of_op.known[key_];
  kept = std::make_unique<const op::Signature>(std::move(signature));
  return kept.get();
}

}  // namespace weir::graph
