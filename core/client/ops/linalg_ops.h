// Builders on matrices beyond products.
#ifndef WEIR_CORE_CLIENT_OPS_LINALG_OPS_H_
#define WEIR_CORE_CLIENT_OPS_LINALG_OPS_H_

#include <string_view>

#include "core/client/ops/operand.h"

namespace weir {

struct MatrixInverseOptions {
  bool adjoint = false;  // of the adjoint of each matrix
  std::string_view name = "MatrixInverse";
};
/// The inverses of square matrices. input: [.., n, n] of a floating or complex type. A run with a singular matrix is
/// InvalidArgument "Input is not invertible.".
Output MatrixInverse(const Operand& input, const MatrixInverseOptions& options = {}, Where where = Where::current());

}  // namespace weir

#endif  // WEIR_CORE_CLIENT_OPS_LINALG_OPS_H_
