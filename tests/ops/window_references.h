// What convolutions and their gradients give, by the plainest loops in double.
#ifndef WEIR_TESTS_OPS_WINDOW_REFERENCES_H_
#define WEIR_TESTS_OPS_WINDOW_REFERENCES_H_

#include "tests/ops/case_table.h"

namespace weir::testing {

/// Fills in `y`, the only output. False if the op is no convolution or gradient of one.
bool ConvolutionReference(const OpCase& c, Tensor& y);

}  // namespace weir::testing

#endif  // WEIR_TESTS_OPS_WINDOW_REFERENCES_H_
