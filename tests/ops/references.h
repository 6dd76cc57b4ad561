// What ops give, by the plainest loops in double. Only ops whose results are too many to write out are here.
#ifndef WEIR_TESTS_OPS_REFERENCES_H_
#define WEIR_TESTS_OPS_REFERENCES_H_

#include "core/base/status.h"
#include "tests/ops/case_table.h"

namespace weir::testing {

/// The first output, of shape `shape`. NaN and infinities go as in TensorFlow 2.17 and IEEE arithmetic.
/// Unimplemented for an op that has no reference.
Result<Tensor> ReferenceOf(const OpCase& c, const Shape& shape);

}  // namespace weir::testing

#endif  // WEIR_TESTS_OPS_REFERENCES_H_
