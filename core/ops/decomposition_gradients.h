// Gradients of matrix decompositions and solvers.
#ifndef WEIR_CORE_OPS_DECOMPOSITION_GRADIENTS_H_
#define WEIR_CORE_OPS_DECOMPOSITION_GRADIENTS_H_

#include <vector>

#include "core/op/grad_context.h"

namespace weir::ops {

Result<std::vector<op::Grad>> CholeskyGradient(op::GradContext& g);
Result<std::vector<op::Grad>> MatrixInverseGradient(op::GradContext& g);
Result<std::vector<op::Grad>> MatrixDeterminantGradient(op::GradContext& g);
Result<std::vector<op::Grad>> LogMatrixDeterminantGradient(op::GradContext& g);
Result<std::vector<op::Grad>> MatrixSolveGradient(op::GradContext& g);
/// Unimplemented unless the matrix's last two extents are known and the attribute `fast` is true.
Result<std::vector<op::Grad>> MatrixSolveLsGradient(op::GradContext& g);
Result<std::vector<op::Grad>> MatrixTriangularSolveGradient(op::GradContext& g);
Result<std::vector<op::Grad>> MatrixSquareRootGradient(op::GradContext& g);
Result<std::vector<op::Grad>> SelfAdjointEigGradient(op::GradContext& g);
Result<std::vector<op::Grad>> EigGradient(op::GradContext& g);
/// Unimplemented unless the last two extents are known, and for full q of matrices with more rows than columns.
Result<std::vector<op::Grad>> QrGradient(op::GradContext& g);
/// Unimplemented unless the last two extents are known, or if full matrices differ by more than 1 in size.
Result<std::vector<op::Grad>> SvdGradient(op::GradContext& g);

}  // namespace weir::ops

#endif  // WEIR_CORE_OPS_DECOMPOSITION_GRADIENTS_H_
