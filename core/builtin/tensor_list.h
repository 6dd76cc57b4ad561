// Tensor lists: values of variant tensors.
#ifndef WEIR_CORE_BUILTIN_TENSOR_LIST_H_
#define WEIR_CORE_BUILTIN_TENSOR_LIST_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "core/base/status.h"
#include "core/tensor/tensor.h"
#include "core/tensor/variant.h"

namespace weir::builtin {

/// TensorFlow's TensorList: elements of one type, each set or unset. Immutable. Lists derived from each other share a
/// history of elements, so a change of the newest list costs no more than an in-place change; a change of an older one
/// copies references to the elements.
class TensorList final : public VariantValue {
 public:
  static constexpr std::string_view kTypeName = "tensorflow::TensorList";

  struct Kind {
    DType dtype = DType::kInvalid;
    PartialShape element_shape = {};
    int32_t max_elements = -1;  // negative: unlimited
  };
  /// An empty list.
  static std::shared_ptr<const TensorList> Make(Kind kind);

  std::string_view type_name() const override { return kTypeName; }
  std::string DebugString() const override;
  uint64_t MemoryBytes() const override;
  Result<Variant> ZerosLike() const override;
  Result<Variant> Add(const VariantValue& other) const override;

  const Kind& kind() const { return kind_; }
  int64_t length() const { return length_; }
  /// Element `i`; invalid if it is unset.
  Tensor At(int64_t i) const;
  /// Visits the set elements in unspecified order until a visit fails.
  Status EachSet(const std::function<Status(int64_t i, const Tensor& element)>& visit) const;
  /// The common shape of all elements, from the kind, `hint` and the set elements. InvalidArgument if they contradict
  /// each other. With `skip` 1 it omits the first extent.
  Result<PartialShape> CommonShape(const PartialShape& hint, int skip = 0) const;

  /// A list with element `i` replaced, or appended if `i` is the length.
  std::shared_ptr<const TensorList> With(int64_t i, Tensor element) const;
  /// A list without the last element.
  std::shared_ptr<const TensorList> WithoutLast() const;
  /// A list truncated, or extended by unset elements.
  std::shared_ptr<const TensorList> Resized(int64_t length) const;

 private:
  struct History;
  TensorList(Kind kind, std::shared_ptr<History> history, uint64_t version, int64_t length)
      : kind_(std::move(kind)), history_(std::move(history)), version_(version), length_(length) {}
  std::shared_ptr<const TensorList> New(std::shared_ptr<History> history, uint64_t version, int64_t length) const;
  /// A new history with this list's elements below `length`.
  std::shared_ptr<History> Copied(int64_t length) const;

  const Kind kind_;
  const std::shared_ptr<History> history_;
  const uint64_t version_;  // later entries of the history belong to other lists
  const int64_t length_;
};

/// The merged shape; InvalidArgument with TensorFlow's text if the two contradict each other.
Result<PartialShape> MergedShape(const PartialShape& a, const PartialShape& b);

}  // namespace weir::builtin

#endif  // WEIR_CORE_BUILTIN_TENSOR_LIST_H_
