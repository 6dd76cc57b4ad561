#include "core/ops/grad_shapes.h"

namespace weir::ops {

using op::GradContext;
using op::Value;

namespace {

/// Converts an int32 scalar to a vector with one element.
Value AsVector(GradContext& g, Value scalar) {
  if (const Tensor* known = g.ConstantOf(scalar); known != nullptr && known->dtype() == DType::kInt32) {
    return g.ConstInts({*known->scalar<int32_t>()});
  }
  return g.Apply("ExpandDims", {scalar, g.ConstInt(0)});
}

}  // namespace

Value IndexScalar(GradContext& g, DType type, int64_t value) {
  if (type == DType::kInt64) return g.Const(Tensor::Scalar<int64_t>(value));
  return g.ConstInt(static_cast<int32_t>(value));
}

Value IndexVector(GradContext& g, DType type, const std::vector<int64_t>& values) {
  if (type == DType::kInt64) return g.Const(Tensor::Vector<int64_t>(values));
  return g.ConstInts(std::vector<int32_t>(values.begin(), values.end()));
}

Value ShapeAs(GradContext& g, Value v, DType type) { return g.Apply("Shape", {v}, {{"out_type", type}}); }

Value AsInt32(GradContext& g, Value v) {
  if (g.TypeOf(v) == DType::kInt32) return v;
  return g.Apply("Cast", {v}, {{"DstT", DType::kInt32}});
}

Value SizeVector(GradContext& g, Value v) { return AsVector(g, g.Apply("Size", {v})); }

Value Elements(GradContext& g, Value vector, Value begin, Value end) {
  return g.Apply("StridedSlice", {vector, AsVector(g, begin), AsVector(g, end), g.ConstInts({1})});
}

Value ElementsFrom(GradContext& g, Value vector, Value begin) {
  return g.Apply("StridedSlice", {vector, AsVector(g, begin), g.ConstInts({0}), g.ConstInts({1})},
                 {{"end_mask", int64_t{1}}});
}

Value JoinVectors(GradContext& g, const std::vector<Value>& vectors) {
  if (vectors.size() == 1) return vectors[0];
  std::vector<Value> operands = vectors;
  operands.push_back(g.ConstInt(0));
  return g.ApplyList("ConcatV2", operands, {{"N", static_cast<int64_t>(vectors.size())}});
}

Value ReshapedLike(GradContext& g, Value dy, Value x) { return g.Reshape(dy, g.ShapeOp(x)); }

}  // namespace weir::ops
