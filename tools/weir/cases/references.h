// What ops give, by the plainest loops in double. Only ops whose results are too many to write out are here.
#ifndef WEIR_TOOLS_WEIR_CASES_REFERENCES_H_
#define WEIR_TOOLS_WEIR_CASES_REFERENCES_H_

#include "core/base/status.h"
#include "tools/weir/cases/case_table.h"

namespace weir::cases {

/// The first output, of shape `shape`. NaN and infinities go as in TensorFlow 2.17 and IEEE arithmetic.
/// Unimplemented for an op that has no reference.
Result<Tensor> ReferenceOf(const OpCase& c, const Shape& shape);

}  // namespace weir::cases

#endif  // WEIR_TOOLS_WEIR_CASES_REFERENCES_H_
