#include "core/client/ops/linalg_ops.h"

#include "core/client/ops/build_op.h"

namespace weir {

Output MatrixInverse(const Operand& input, const MatrixInverseOptions& options, Where where) {
  return BuildOp("MatrixInverse", {input}, {{"adjoint", options.adjoint}}, options.name, where).output(0);
}

}  // namespace weir
