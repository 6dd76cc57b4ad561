#include <algorithm>

#include "core/base/errors.h"
#include "core/execute/string_ids_internal.h"

namespace weir::execute {

op::AttrList WithoutStrings(const op::AttrList& attrs) {
  op::AttrList numbered = attrs;
  for (auto& [name, value] : numbered) {
    if (const DType* type = value.get<DType>(); type != nullptr && *type == DType::kString) value = DType::kInt64;
    if (const auto* types = value.get<std::vector<DType>>()) {
      std::vector<DType> changed = *types;
      std::replace(changed.begin(), changed.end(), DType::kString, DType::kInt64);
      value = std::move(changed);
    }
  }
  return numbered;
}

Result<Tensor> StringIds::Encode(const Tensor& tensor) {
  if (tensor.dtype() != DType::kString) return tensor;
  held_.push_back(tensor);
  WEIR_ASSIGN(Tensor ids, Tensor::Make(DType::kInt64, tensor.shape()));
  const auto to = ids.mutable_as<int64_t>();
  const auto from = tensor.as<std::string>();
  for (size_t i = 0; i < from.size(); ++i) {
    const auto [entry, fresh] = known_.emplace(from[i], static_cast<int64_t>(strings_.size()));
    if (fresh) strings_.push_back(from[i]);
    to[i] = entry->second;
  }
  return ids;
}

Result<Tensor> StringIds::Decode(const Tensor& ids) const {
  WEIR_ASSIGN(Tensor strings, Tensor::Make(DType::kString, ids.shape()));
  const auto to = strings.mutable_as<std::string>();
  const auto from = ids.as<int64_t>();
  for (size_t i = 0; i < from.size(); ++i) {
    if (from[i] < 0 || from[i] >= static_cast<int64_t>(strings_.size())) {
      return Internal("a kernel made up string number {} of {}", from[i], strings_.size());
    }
    to[i] = strings_[static_cast<size_t>(from[i])];
  }
  return strings;
}

}  // namespace weir::execute
