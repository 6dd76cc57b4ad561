// What Shape, ShapeN, Size and Rank answer once the shape of their input is known.
#ifndef WEIR_CORE_GRAPH_SHAPE_VALUES_H_
#define WEIR_CORE_GRAPH_SHAPE_VALUES_H_

#include <string_view>

#include "core/base/status.h"
#include "core/tensor/tensor.h"

namespace weir::graph {

inline bool AsksForShape(std::string_view op) {
  return op == "Shape" || op == "ShapeN" || op == "Size" || op == "Rank";
}

/// Output `index` of an op for which AsksForShape, whose input `index` has `shape`. InvalidArgument with TensorFlow's
/// texts where `dtype` is int32 and an extent or the count of elements reaches 2^31 - 1, which TensorFlow refuses too.
Result<Tensor> ShapeValue(std::string_view op, int index, const Shape& shape, DType dtype);

}  // namespace weir::graph

#endif  // WEIR_CORE_GRAPH_SHAPE_VALUES_H_
