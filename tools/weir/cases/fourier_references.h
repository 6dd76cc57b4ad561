// References of the discrete Fourier transforms, for op cases.
#ifndef WEIR_TOOLS_WEIR_CASES_FOURIER_REFERENCES_H_
#define WEIR_TOOLS_WEIR_CASES_FOURIER_REFERENCES_H_

#include "core/tensor/tensor.h"
#include "tools/weir/cases/case_table.h"

namespace weir::cases {

/// Writes what the case wants to y, by sums that are split at each prime factor; false if its op is no transform.
bool FourierReference(const OpCase& c, Tensor& y);

}  // namespace weir::cases

#endif  // WEIR_TOOLS_WEIR_CASES_FOURIER_REFERENCES_H_
