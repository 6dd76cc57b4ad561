// Batches of matrices in the last two axes: what linear algebra demands of them.
#ifndef WEIR_PLUGINS_FUNCTORS_MATRIX_BATCH_H_
#define WEIR_PLUGINS_FUNCTORS_MATRIX_BATCH_H_

#include <algorithm>

#include "plugins/functors/operands.h"

namespace weir::functors {

/// The matrices of an operand.
struct MatrixBatch {
  int64_t count = 0, rows = 0, columns = 0;

  int64_t size() const { return rows * columns; }
  int64_t inner() const { return std::min(rows, columns); }

  /// InvalidArgument with TensorFlow's text if the rank is below 2. `input` is the operand's number. `count` becomes 0
  /// if an extent of the batch is 0, or if not `any` element of the results is asked for.
  int32_t Read(const sdk::Error& error, uint32_t input, const weir_shape& shape, bool any) {
    if (shape.rank < 2) {
      return error.InvalidArgument("Input tensor ", input, " must have rank >= 2, got ", shape.rank);
    }
    rows = shape.dims[shape.rank - 2];
    columns = shape.dims[shape.rank - 1];
    const weir_shape batch{shape.rank - 2, 0, shape.dims};
    count = any && !HasNoElements(batch) ? sdk::SizeOf(batch) : 0;
    return WEIR_OK;
  }
  int32_t CheckSquare(const sdk::Error& error) const {
    return rows == columns ? WEIR_OK : error.InvalidArgument("Input matrix must be square.");
  }
  /// The same of an operand of a node; `count` is 0 if the outputs have no elements.
  int32_t Plan(const sdk::Prep& prep, uint32_t input = 0) {
    bool any = false;
    for (uint32_t i = 0; i < prep.outputs(); ++i) any = any || !HasNoElements(prep.output(i).shape);
    return Read(prep.error(), input, prep.shape(input), any);
  }
};

/// Operands 0 and 1 of MatrixSolve.
inline int32_t CheckSystem(const sdk::Error& error, const MatrixBatch& left, const weir_shape& a,
                           const MatrixBatch& right, const weir_shape& b) {
  if (!sdk::SameShape({a.rank - 2, 0, a.dims}, {b.rank - 2, 0, b.dims})) {
    return error.InvalidArgument("All input tensors must have the same outer dimensions.");
  }
  if (left.rows != left.columns) return error.InvalidArgument("First input (lhs) must be a square matrix.");
  if (left.rows != right.rows) return error.InvalidArgument("Input matrix and rhs are incompatible.");
  return WEIR_OK;
}

/// The operands of MatrixTriangularSolve.
struct TriangularPlan {
  int64_t n = 0, columns = 0;
  bool lower = true, adjoint = false, empty = false;

  int32_t Plan(const sdk::Prep& prep) {
    lower = prep.node().Bool("lower", true);
    adjoint = prep.node().Bool("adjoint");
    const weir_shape &a = prep.shape(0), &b = prep.shape(1);
    if (a.rank < 2) return prep.error().InvalidArgument("In[0] ndims must be >= 2: ", a.rank);
    if (b.rank < 2) return prep.error().InvalidArgument("In[1] ndims must be >= 2: ", b.rank);
    n = a.dims[a.rank - 2];
    columns = b.dims[b.rank - 1];
    if (n != a.dims[a.rank - 1]) {
      return prep.error().InvalidArgument("In[0] matrices in the last dimensions must be square (", a.dims[a.rank - 1],
                                          " =/= ", n, ")");
    }
    if (n != b.dims[b.rank - 2]) {
      return prep.error().InvalidArgument("In[0] mismatch In[1] shape: ", n, " vs. ", b.dims[b.rank - 2], ": ", a, " ",
                                          b, " ", lower ? 1 : 0, " ", adjoint ? 1 : 0);
    }
    empty = HasNoElements(prep.output(0).shape);
    return WEIR_OK;
  }
  /// Plans the batches, sdk::Broadcast<2> or a type with the same Plan, of operands that are not empty.
  template <class Batches>
  static int32_t PlanBatches(const sdk::Prep& prep, Batches* batches) {
    const weir_shape &a = prep.shape(0), &b = prep.shape(1), &out = prep.output(0).shape;
    const weir_shape a_batch{a.rank - 2, 0, a.dims}, b_batch{b.rank - 2, 0, b.dims};
    if (out.rank >= 2 && batches->Plan({a_batch, b_batch}, {out.rank - 2, 0, out.dims})) return WEIR_OK;
    return prep.error().InvalidArgument("In[0] and In[1] must have compatible batch dimensions: ", a, " vs. ", b);
  }
};

}  // namespace weir::functors

#endif  // WEIR_PLUGINS_FUNCTORS_MATRIX_BATCH_H_
