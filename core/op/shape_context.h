// What a shape function sees of a node and how it answers.
#ifndef WEIR_CORE_OP_SHAPE_CONTEXT_H_
#define WEIR_CORE_OP_SHAPE_CONTEXT_H_

#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "core/op/attrs.h"
#include "core/tensor/shape.h"
#include "core/tensor/tensor.h"

namespace weir::op {

/// What a variable behind a handle holds, as its VarHandleOp declares it.
struct HeldValue {
  DType dtype = DType::kInvalid;  // kInvalid: not known
  PartialShape shape;
};

/// One node during shape inference. Inputs are flattened. With all input shapes and the values that the function asks
/// for known, every op that does not depend on data answers fully defined shapes. Single-threaded.
class ShapeContext {
 public:
  /// Gives the value of input i when it is known (a constant, or the tensor itself at run time); else nothing.
  using ValueFn = std::function<const Tensor*(int i)>;
  /// Gives what is known of the elements of a small integer vector input i as a shape (-1 unknown), as from
  /// Shape, Pack, ConcatV2 and StridedSlice of shapes; unknown rank when nothing is.
  using ShapeValueFn = std::function<PartialShape(int i)>;
  /// Gives what is declared of the variable that input i, a resource handle, names.
  using HandleFn = std::function<HeldValue(int i)>;

  ShapeContext(AttrView attrs, std::span<const DType> input_types, std::span<const PartialShape> inputs,
               int output_count, ValueFn value = {}, ShapeValueFn shape_value = {}, HandleFn handle = {});

  const AttrView& attrs() const { return attrs_; }
  int num_inputs() const { return static_cast<int>(inputs_.size()); }
  int num_outputs() const { return static_cast<int>(outputs_.size()); }
  const PartialShape& input(int i) const { return inputs_[i]; }
  DType input_type(int i) const { return input_types_[i]; }

  /// Value of input i when known: a host tensor, borrowed for the call; else null. Asking also marks the input as one
  /// whose value the shapes depend on.
  const Tensor* value(int i) const;
  /// The value as int64 (from int32 or int64, any rank, row-major) when known.
  std::optional<std::vector<int64_t>> ints(int i) const;
  /// A scalar integer when known.
  std::optional<int64_t> scalar_int(int i) const;
  /// The shape that input i, a vector of integers, describes: from its value, else from partial knowledge, else of the
  /// vector's length with all extents unknown, else unknown. InvalidArgument for extents below -1.
  Result<PartialShape> shape_from(int i) const;
  /// The declared shape of the variable that input i, a resource handle, names; unknown rank when that is not known.
  /// InvalidArgument when the variable holds another type than the node says (CheckHeldType).
  Result<PartialShape> held_shape(int i) const;

  void set_output(int i, PartialShape shape) { outputs_[i] = std::move(shape); }
  const std::vector<PartialShape>& outputs() const { return outputs_; }
  /// The outputs, for the caller of the shape function when it is done.
  std::vector<PartialShape> TakeOutputs() { return std::move(outputs_); }

  /// InvalidArgument "Shape must be rank 2 but is rank 3" unless input i can have that rank; its shape refined to it.
  Result<PartialShape> WithRank(int i, int rank) const;
  Result<PartialShape> WithRankAtLeast(int i, int rank) const;

 private:
  AttrView attrs_;
  std::span<const DType> input_types_;
  std::span<const PartialShape> inputs_;
  std::vector<PartialShape> outputs_;
  ValueFn value_;
  ShapeValueFn shape_value_;
  HandleFn handle_;
};

/// InvalidArgument "Trying to read variable with wrong dtype. Expected float got string" when a variable of type `held`
/// is not of the type that a node with these attrs reads or writes behind a handle: its `dtype`, else its `T`. A node
/// with neither takes any variable; so does one that hands handles on, and every node when `held` is kInvalid.
Status CheckHeldType(const AttrView& attrs, DType held);

/// Merges two extents (-1 unknown); InvalidArgument "Dimensions must be equal, but are 2 and 3".
Result<int64_t> MergeDim(int64_t a, int64_t b);

/// NumPy broadcasting of partial shapes; InvalidArgument "Dimensions must be equal, but are 2 and 3".
Result<PartialShape> BroadcastShapes(const PartialShape& a, const PartialShape& b);

// Named shape functions.

ShapeFn Scalar();           // every output is a scalar
ShapeFn SameAs(int input);  // every output has the shape of that input
ShapeFn Broadcast(int a, int b);
ShapeFn Unknown();  // nothing is known of any output
ShapeFn NoOutputs();

}  // namespace weir::op

#endif  // WEIR_CORE_OP_SHAPE_CONTEXT_H_
