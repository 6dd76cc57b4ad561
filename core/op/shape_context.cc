#include "core/op/shape_context.h"

#include <algorithm>
#include <utility>

#include "core/base/errors.h"
#include "core/tensor/number.h"

namespace weir::op {
namespace {

Status RankMismatch(std::string_view wanted, const PartialShape& shape) {
  return InvalidArgument("Shape must be {} but is rank {}", wanted, shape.rank());
}

Status NoSuchInput(int i, int inputs) {
  return Internal("the shape function reads input {} of a node with {} inputs", i, inputs);
}

}  // namespace

ShapeContext::ShapeContext(AttrView attrs, std::span<const DType> input_types, std::span<const PartialShape> inputs,
                           int output_count, ValueFn value, ShapeValueFn shape_value, HandleFn handle)
    : attrs_(attrs),
      input_types_(input_types),
      inputs_(inputs),
      outputs_(static_cast<size_t>(output_count)),
      value_(std::move(value)),
      shape_value_(std::move(shape_value)),
      handle_(std::move(handle)) {}

const Tensor* ShapeContext::value(int i) const { return value_ && i >= 0 && i < num_inputs() ? value_(i) : nullptr; }

std::optional<std::vector<int64_t>> ShapeContext::ints(int i) const {
  const Tensor* tensor = value(i);
  if (tensor == nullptr || !IsInteger(tensor->dtype())) return std::nullopt;
  std::vector<int64_t> numbers(static_cast<size_t>(tensor->elements()));
  for (size_t k = 0; k < numbers.size(); ++k) numbers[k] = ElementAsInt(*tensor, static_cast<int64_t>(k));
  return numbers;
}

std::optional<int64_t> ShapeContext::scalar_int(int i) const {
  const Tensor* tensor = value(i);
  if (tensor == nullptr || !IsInteger(tensor->dtype()) || tensor->elements() != 1) return std::nullopt;
  return ElementAsInt(*tensor, 0);
}

Result<PartialShape> ShapeContext::shape_from(int i) const {
  if (i < 0 || i >= num_inputs()) return NoSuchInput(i, num_inputs());
  if (const std::optional<std::vector<int64_t>> dims = ints(i)) {
    const Tensor* tensor = value(i);
    // TensorFlow accepts the scalar -1 as "any shape".
    if (tensor->shape().rank() == 0 && (*dims)[0] == -1) return PartialShape();
    if (tensor->shape().rank() != 1) return RankMismatch("rank 1", tensor->shape());
    return PartialShape::Make(*dims);
  }
  WEIR_ASSIGN(const PartialShape vector, WithRank(i, 1));
  const int64_t length = vector.has_rank() ? vector.dim(0) : -1;
  if (length > kMaxRank) return InvalidArgument("A shape of {} dimensions is beyond the limit of {}", length, kMaxRank);
  const PartialShape by_length = length < 0 ? PartialShape() : PartialShape::OfRank(static_cast<int>(length));
  return shape_value_ ? shape_value_(i).Merge(by_length) : by_length;
}

Result<PartialShape> ShapeContext::held_shape(int i) const {
  if (!handle_) return PartialShape();
  HeldValue held = handle_(i);
  WEIR_TRY(CheckHeldType(attrs_, held.dtype));
  return std::move(held.shape);
}

Status CheckHeldType(const AttrView& attrs, DType held) {
  const bool reads = attrs.Has("dtype");
  if (held == DType::kInvalid || (!reads && !attrs.Has("T"))) return {};
  WEIR_ASSIGN(const DType wanted, attrs.Type(reads ? "dtype" : "T"));
  const bool hands_on = !reads && wanted == DType::kResource;
  if (hands_on || BaseType(wanted) == BaseType(held)) return {};
  return InvalidArgument("Trying to read variable with wrong dtype. Expected {} got {}", Name(held), Name(wanted));
}

Result<PartialShape> ShapeContext::WithRank(int i, int rank) const {
  if (i < 0 || i >= num_inputs()) return NoSuchInput(i, num_inputs());
  const PartialShape& shape = input(i);
  if (!shape.has_rank()) return PartialShape::OfRank(rank);
  if (shape.rank() != rank) return RankMismatch(fmt::format("rank {}", rank), shape);
  return shape;
}

Result<PartialShape> ShapeContext::WithRankAtLeast(int i, int rank) const {
  if (i < 0 || i >= num_inputs()) return NoSuchInput(i, num_inputs());
  const PartialShape& shape = input(i);
  if (shape.has_rank() && shape.rank() < rank) return RankMismatch(fmt::format("at least rank {}", rank), shape);
  return shape;
}

Result<int64_t> MergeDim(int64_t a, int64_t b) {
  if (a >= 0 && b >= 0 && a != b) return InvalidArgument("Dimensions must be equal, but are {} and {}", a, b);
  return a >= 0 ? a : b;
}

Result<PartialShape> BroadcastShapes(const PartialShape& a, const PartialShape& b) {
  if (!a.has_rank() || !b.has_rank()) return PartialShape();
  const PartialShape& longer = a.rank() >= b.rank() ? a : b;
  const PartialShape& shorter = a.rank() >= b.rank() ? b : a;
  PartialShape out = longer;
  const int offset = longer.rank() - shorter.rank();
  for (int i = offset; i < longer.rank(); ++i) {
    const int64_t l = longer.dim(i);
    const int64_t s = shorter.dim(i - offset);
    if (l == s || s == 1) continue;
    if (l == 1) {
      out.set_dim(i, s);
    } else if (l >= 0 && s >= 0) {
      return MergeDim(a.dim(a.rank() - longer.rank() + i), b.dim(b.rank() - longer.rank() + i)).status();
    } else {
      out.set_dim(i, std::max(l, s));  // one is unknown, the known one is not 1
    }
  }
  // The product of the extents may overflow even if those of the operands do not.
  return PartialShape::Make(out.dims());
}

ShapeFn Scalar() {
  return [](ShapeContext& c) -> Status {
    for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, Shape());
    return {};
  };
}

ShapeFn SameAs(int input) {
  return [input](ShapeContext& c) -> Status {
    if (input >= c.num_inputs()) return NoSuchInput(input, c.num_inputs());
    for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, c.input(input));
    return {};
  };
}

ShapeFn Broadcast(int a, int b) {
  return [a, b](ShapeContext& c) -> Status {
    if (std::max(a, b) >= c.num_inputs()) return NoSuchInput(std::max(a, b), c.num_inputs());
    WEIR_ASSIGN(const PartialShape shape, BroadcastShapes(c.input(a), c.input(b)));
    for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, shape);
    return {};
  };
}

ShapeFn Unknown() {
  return [](ShapeContext&) { return Status(); };
}

ShapeFn NoOutputs() {
  return [](ShapeContext& c) -> Status {
    if (c.num_outputs() != 0) return Internal("a node of an op without outputs has {}", c.num_outputs());
    return {};
  };
}

}  // namespace weir::op
