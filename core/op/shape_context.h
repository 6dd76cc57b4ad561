// The interface of shape functions: a node's inputs and its output shapes.
#ifndef WEIR_CORE_OP_SHAPE_CONTEXT_H_
#define WEIR_CORE_OP_SHAPE_CONTEXT_H_

#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/errors.h"
#include "core/op/attrs.h"
#include "core/tensor/shape.h"
#include "core/tensor/tensor.h"

namespace weir::op {

/// The value of a variable behind a handle, as declared by its VarHandleOp.
struct HeldValue {
  DType dtype = DType::kInvalid;  // kInvalid: unknown
  PartialShape shape;
};

/// One node during shape inference. Inputs are flattened. If all input shapes and all values read by the function are
/// known, every op whose shape does not depend on data returns fully defined shapes. Single-threaded.
class ShapeContext {
 public:
  /// The value of input i if it is known (a constant, or the tensor itself at run time), else null.
  using ValueFn = std::function<const Tensor*(int i)>;
  /// The known elements of a small integer vector input i as a shape (-1 unknown), for example from Shape, Pack,
  /// ConcatV2 and StridedSlice of shapes; unknown rank if nothing is known.
  using ShapeValueFn = std::function<PartialShape(int i)>;
  /// The declared value of the variable behind input i, a resource handle.
  using HandleFn = std::function<HeldValue(int i)>;

  ShapeContext(AttrView attrs, std::span<const DType> input_types, std::span<const PartialShape> inputs,
               int output_count, ValueFn value = {}, ShapeValueFn shape_value = {}, HandleFn handle = {});

  const AttrView& attrs() const { return attrs_; }
  int num_inputs() const { return static_cast<int>(inputs_.size()); }
  int num_outputs() const { return static_cast<int>(outputs_.size()); }
  const PartialShape& input(int i) const { return inputs_[i]; }
  DType input_type(int i) const { return input_types_[i]; }

  /// The value of input i if known, else null: a host tensor, borrowed for the call. Reading it marks the output shapes
  /// as depending on the input's value.
  const Tensor* value(int i) const;
  /// The value of an int32 or int64 input of any rank as int64 in row-major order, if known.
  std::optional<std::vector<int64_t>> ints(int i) const;
  /// The value of a scalar integer input, if known.
  std::optional<int64_t> scalar_int(int i) const;
  /// The shape described by input i, a vector of integers: its value if known, else its known elements; at least the
  /// rank if the vector's length is known, else unknown. InvalidArgument for extents below -1.
  Result<PartialShape> shape_from(int i) const;
  /// The declared shape of the variable behind input i, a resource handle; unknown rank if it is not known.
  /// InvalidArgument if the variable's type differs from the node's (CheckHeldType).
  Result<PartialShape> held_shape(int i) const;

  void set_output(int i, PartialShape shape) { outputs_[i] = std::move(shape); }
  const std::vector<PartialShape>& outputs() const { return outputs_; }
  /// Moves the outputs out, for the caller of the shape function.
  std::vector<PartialShape> TakeOutputs() { return std::move(outputs_); }

  /// Input i's shape refined to `rank`; InvalidArgument "Shape must be rank 2 but is rank 3" if it cannot have that
  /// rank.
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

/// Checks the type `held` of a variable against the type that a node with these attrs reads or writes through its
/// handle: its `dtype`, else its `T`. InvalidArgument "Trying to read variable with wrong dtype. Expected float got
/// string". Passes if the node has neither attribute, if it forwards handles, or if `held` is kInvalid.
Status CheckHeldType(const AttrView& attrs, DType held);

/// Merges two extents (-1 unknown); InvalidArgument "Dimensions must be equal, but are 2 and 3".
Result<int64_t> MergeDim(int64_t a, int64_t b);

/// NumPy broadcasting of partial shapes; InvalidArgument "Dimensions must be equal, but are 2 and 3".
Result<PartialShape> BroadcastShapes(const PartialShape& a, const PartialShape& b);

// Named shape functions.

ShapeFn Scalar();           // every output is a scalar
ShapeFn SameAs(int input);  // every output has the shape of that input
ShapeFn Broadcast(int a, int b);
ShapeFn Unknown();  // all outputs have unknown shapes
ShapeFn NoOutputs();

}  // namespace weir::op

#endif  // WEIR_CORE_OP_SHAPE_CONTEXT_H_
