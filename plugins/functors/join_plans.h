// Arrays joined and split along an axis: checks and sizes. `Blocks` is a JoinPlan that also copies.
#ifndef WEIR_PLUGINS_FUNCTORS_JOIN_PLANS_H_
#define WEIR_PLUGINS_FUNCTORS_JOIN_PLANS_H_

#include <string_view>
#include <vector>

#include "plugins/functors/operands.h"

namespace weir::functors {

/// Position of `axis` (negative: from the end) among `rank`.
inline int32_t FindAxis(const sdk::Prep& prep, int64_t axis, int64_t rank, std::string_view what, uint32_t* at) {
  if (axis < -rank || axis >= rank) {
    return prep.error().InvalidArgument(what, " Expected concatenating dimensions in the range [", -rank, ", ", rank,
                                        "), but got ", axis);
  }
  *at = static_cast<uint32_t>(axis < 0 ? axis + rank : axis);
  return WEIR_OK;
}

/// The joined array as `rows` rows, each with one block per piece.
struct JoinPlan {
  int64_t rows = 1;
  size_t row_bytes = 0;
  std::vector<size_t> piece_bytes;

  /// `operand(i)`: piece i of `count`, with `rank` axes; a new axis (Pack) is beyond its rank. Internal if the outputs
  /// do not have the shapes that the op's shape function computes.
  template <class Operand>
  int32_t Plan(const sdk::Prep& prep, Operand&& operand, uint32_t count, uint32_t axis, const weir_operand& whole) {
    const size_t element = sdk::SizeOf(whole.dtype);
    const weir_shape& shape = whole.shape;
    rows = SizeOf(shape, 0, axis);
    row_bytes = static_cast<size_t>(SizeOf(shape, axis, shape.rank)) * element;
    size_t total = 0;
    for (uint32_t i = 0; i < count; ++i) {
      const weir_shape& piece = operand(i).shape;
      const size_t bytes = static_cast<size_t>(SizeOf(piece, axis, piece.rank)) * element;
      bool fits = operand(i).dtype == whole.dtype && piece.rank >= axis;
      for (uint32_t k = 0; fits && k < axis; ++k) fits = piece.dims[k] == shape.dims[k];
      if (!fits) {
        return prep.error().Fail(WEIR_INTERNAL, "piece ", i, " of shape ", piece, " does not fit ", shape,
                                 " along axis ", axis);
      }
      piece_bytes.push_back(bytes);
      total += bytes;
    }
    if (total == row_bytes) return WEIR_OK;
    return prep.error().Fail(WEIR_INTERNAL, "pieces of ", total, " bytes in a row do not make up ", row_bytes,
                             " bytes of ", shape, " along axis ", axis);
  }
};

/// ConcatV2, whose axis comes last, and Concat, whose axis comes first.
template <class Blocks>
struct ConcatPlan {
  Blocks blocks;

  int32_t PrepareWith(sdk::Prep& prep, uint32_t axis_input, uint32_t first) {
    int64_t given = 0;
    if (const int32_t code = Steering(prep, axis_input, "axis", &given); code != WEIR_OK) return code;
    const weir_shape& shape = prep.shape(first);
    const uint32_t count = prep.inputs() - 1;
    uint32_t axis = 0;
    if (const int32_t code = FindAxis(prep, given, shape.rank, "ConcatOp :", &axis); code != WEIR_OK) return code;
    for (uint32_t i = first; i < first + count; ++i) {
      const weir_shape& other = prep.shape(i);
      if (other.rank != shape.rank) {
        return prep.error().InvalidArgument("ConcatOp : Ranks of all input tensors should match: shape[0] = ", shape,
                                            " vs. shape[", i - first, "] = ", other);
      }
      for (uint32_t d = 0; d < shape.rank; ++d) {
        if (d == axis || other.dims[d] == shape.dims[d]) continue;
        return prep.error().InvalidArgument("ConcatOp : Dimension ", d,
                                            " in both shapes must be equal: shape[0] = ", shape, " vs. shape[",
                                            i - first, "] = ", other);
      }
    }
    return blocks.Plan(
        prep, [&](uint32_t i) -> const weir_operand& { return prep.input(first + i); }, count, axis, prep.output(0));
  }
};
template <class Blocks>
struct PackPlan {
  Blocks blocks;

  int32_t Prepare(sdk::Prep& prep) {
    const int64_t axis = prep.node().Int("axis"), rank = prep.shape(0).rank + 1;
    if (axis < -rank || axis >= rank) {
      return prep.error().InvalidArgument("axis = ", axis, " not in [", -rank, ", ", rank, ")");
    }
    for (uint32_t i = 1; i < prep.inputs(); ++i) {
      if (sdk::SameShape(prep.shape(i), prep.shape(0))) continue;
      return prep.error().InvalidArgument("Shapes of all inputs must match: values[0].shape = ", prep.shape(0),
                                          " != values[", i, "].shape = ", prep.shape(i));
    }
    return blocks.Plan(
        prep, [&](uint32_t i) -> const weir_operand& { return prep.input(i); }, prep.inputs(),
        static_cast<uint32_t>(axis < 0 ? axis + rank : axis), prep.output(0));
  }
};

template <class Blocks>
struct SplitPlan {
  Blocks blocks;

  int32_t PrepareWith(sdk::Prep& prep, uint32_t value, int64_t given) {
    const weir_shape& whole = prep.shape(value);
    const int64_t rank = whole.rank;
    if (given < -rank || given >= rank) {
      return prep.error().InvalidArgument("-input rank(-", rank, ") <= split_dim < input rank (", rank, "), but got ",
                                          given);
    }
    const auto axis = static_cast<uint32_t>(given < 0 ? given + rank : given);
    if (prep.outputs() == 0 && whole.dims[axis] != 0) {  // whose shapes nobody has compared
      return prep.error().InvalidArgument("Input shape axis ", axis, " must equal 0, got shape ", whole);
    }
    return blocks.Plan(
        prep, [&](uint32_t i) -> const weir_operand& { return prep.output(i); }, prep.outputs(), axis,
        prep.input(value));
  }
};

}  // namespace weir::functors

#endif  // WEIR_PLUGINS_FUNCTORS_JOIN_PLANS_H_
