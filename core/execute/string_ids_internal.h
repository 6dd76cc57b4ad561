// String tensors through kernels that only move elements: strings become numbers, the kernel moves the numbers.
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

/// True for ops whose results are elements of their inputs, empty strings where an op fills in zeros, or facts about
/// which elements are equal.
bool MovesElements(std::string_view op);

/// The attributes with int64 in place of string wherever a type is named.
op::AttrList WithoutStrings(const op::AttrList& attrs);

/// Numbers for strings, equal ones for equal strings; 0 is the empty string. For one call.
class StringIds {
 public:
  /// An int64 tensor of the same shape; a tensor of another type comes back as it is.
  Result<Tensor> Encode(const Tensor& tensor);
  /// The strings that an int64 tensor of known numbers stands for; Internal for a number never given out.
  Result<Tensor> Decode(const Tensor& ids) const;

 private:
  std::unordered_map<std::string_view, int64_t> known_ = {{"", 0}};
  std::vector<std::string_view> strings_ = {""};
  std::vector<Tensor> held_;  // keeps the bytes that the views point to
};

}  // namespace weir::execute

#endif  // WEIR_CORE_EXECUTE_STRING_IDS_INTERNAL_H_
