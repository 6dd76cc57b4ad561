// Runs kernels of ops that only move elements (op::Traits) on string tensors: strings are replaced by numeric ids.
#ifndef WEIR_CORE_EXECUTE_STRING_IDS_INTERNAL_H_
#define WEIR_CORE_EXECUTE_STRING_IDS_INTERNAL_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/base/status.h"
#include "core/op/attr_value.h"
#include "core/tensor/tensor.h"

namespace weir::execute {

/// The attributes with int64 in place of string in all types.
op::AttrList WithoutStrings(const op::AttrList& attrs);

/// Ids of strings: equal strings have equal ids; 0 is the empty string. For one call.
class StringIds {
 public:
  /// Returns an int64 tensor of the same shape; other types are returned unchanged.
  Result<Tensor> Encode(const Tensor& tensor);
  /// The strings for an int64 tensor of ids; Internal for an unknown id.
  Result<Tensor> Decode(const Tensor& ids) const;

 private:
  std::unordered_map<std::string_view, int64_t> known_ = {{"", 0}};
  std::vector<std::string_view> strings_ = {""};
  std::vector<Tensor> held_;  // keeps the bytes that the views point to
};

}  // namespace weir::execute

#endif  // WEIR_CORE_EXECUTE_STRING_IDS_INTERNAL_H_
