// Values in rows of op cases: written out, or made by a rule.
//
// Written out they are nested lists: 5, [1,2], [[1,2],[3,4]], [], nan, -inf, 0x1p-3, true, "text", (real,imaginary). In
// texts \x and two hexadecimal digits stand for a byte, as all signs do that have a meaning in rows.
// Rules have a shape and perhaps numbers, e.g. reals[2,3](0.5,2):
//   count        0, 1, 2 …
//   zeros, ones
//   ints(m)      1 … m repeated; m = 5, another order for each input
//   reals(a,b)   numbers between a and b, without ties, other ones for each input; a = -1.9, b = 2.1
//   strange(k)   [rows, columns] of small numbers with NaN and infinities of each kind in the rows, beginning with k
//   sparse       small numbers, every third a zero
#ifndef WEIR_TOOLS_WEIR_CASES_CASE_VALUES_H_
#define WEIR_TOOLS_WEIR_CASES_CASE_VALUES_H_

#include <complex>
#include <string>

#include "core/base/status.h"
#include "core/tensor/tensor.h"

namespace weir::cases {

/// The value as a tensor of `dtype`; `position` is that of the input among the op's. InvalidArgument quoting the text.
Result<Tensor> ParseCaseValue(const std::string& text, DType dtype, int position);

/// Writes element i of a host tensor of a number type, as C++ converts.
void SetNumber(Tensor& tensor, int64_t i, std::complex<double> value);

/// Ok when both have one type and shape, and the elements are equal: exactly those of whole types and strings, others
/// up to `tolerance` (0 = what the type can do; never more in types of 64-bit numbers), relative to numbers above one.
/// NaN is equal to NaN.
Status SameCaseValue(const Tensor& got, const Tensor& wanted, double tolerance);

}  // namespace weir::cases

#endif  // WEIR_TOOLS_WEIR_CASES_CASE_VALUES_H_
