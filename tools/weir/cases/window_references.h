// What convolutions and their gradients give, by the plainest loops in double.
#ifndef WEIR_TOOLS_WEIR_CASES_WINDOW_REFERENCES_H_
#define WEIR_TOOLS_WEIR_CASES_WINDOW_REFERENCES_H_

#include "tools/weir/cases/case_table.h"

namespace weir::cases {

/// Fills in `y`, the only output. False if the op is no convolution or gradient of one.
bool ConvolutionReference(const OpCase& c, Tensor& y);

}  // namespace weir::cases

#endif  // WEIR_TOOLS_WEIR_CASES_WINDOW_REFERENCES_H_
