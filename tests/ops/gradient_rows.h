// Rows of the gradient suite: one op, sample inputs, which of them to differentiate by.
#ifndef WEIR_TESTS_OPS_GRADIENT_ROWS_H_
#define WEIR_TESTS_OPS_GRADIENT_ROWS_H_

#include <string>
#include <vector>

#include "core/op/attr_value.h"
#include "core/tensor/tensor.h"

namespace weir::testing {

/// An input of a row: floating inputs (given as double) are differentiated by unless `fixed`.
struct GradientInput {
  Tensor value;
  bool fixed = false;
};

struct GradientRow {
  std::string op;
  std::vector<GradientInput> inputs;
  op::AttrList attrs = {};
  int output = 0;
};

const std::vector<GradientRow>& GradientRows();

}  // namespace weir::testing

#endif  // WEIR_TESTS_OPS_GRADIENT_ROWS_H_
