#include "core/graph/shape_values.h"

#include <limits>
#include <span>
#include <vector>

namespace weir::graph {
namespace {

constexpr int64_t kInt32Limit = std::numeric_limits<int32_t>::max();

Tensor Integers(DType dtype, const Shape& shape, std::span<const int64_t> values) {
  if (dtype == DType::kInt64) return Tensor::Of<int64_t>(shape, {values.begin(), values.end()});
  return Tensor::Of<int32_t>(shape, std::vector<int32_t>(values.begin(), values.end()));
}

}  // namespace

Result<Tensor> ShapeValue(std::string_view op, int index, const Shape& shape, DType dtype) {
  const bool narrow = dtype == DType::kInt32;
  if (op == "Rank") return Integers(dtype, Shape(), std::vector<int64_t>{shape.rank()});
  if (op == "Size") {
    if (narrow && shape.elements() >= kInt32Limit) {
      return InvalidArgument("Number of elements was larger than representable by 32-bit output type");
    }
    return Integers(dtype, Shape(), std::vector<int64_t>{shape.elements()});
  }
  for (int i = 0; narrow && i < shape.rank(); ++i) {
    if (shape.dim(i) < kInt32Limit) continue;
    if (op == "ShapeN") {
      return InvalidArgument("ShapeN output type is 32-bit but shape {} dim {} is {}", index, i, shape.dim(i));
    }
    return InvalidArgument("Shape output type is 32-bit  but dim {} is {}", i, shape.dim(i));
  }
  return Integers(dtype, Shape::Of({shape.rank()}), shape.dims());
}

}  // namespace weir::graph
