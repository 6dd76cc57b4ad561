// The table of op cases (tools/weir/cases) for tests: all rows of tests/ops/cases.
#ifndef WEIR_TESTS_OPS_CASE_TABLE_H_
#define WEIR_TESTS_OPS_CASE_TABLE_H_

#include <vector>

#include "tools/weir/cases/case_table.h"

namespace weir::testing {

using namespace cases;  // NOLINT(google-build-using-namespace): tests name them with their own helpers

/// False if the build leaves out kernels of the case's types: those of short dtypes have no complex ones.
bool HasKernels(const OpCase& c);

/// All cases of all tables, in order; a line that cannot be read fails the running test.
const std::vector<OpCase>& OpCases();

/// Those with a gradient by some input.
std::vector<const OpCase*> GradientCases();

}  // namespace weir::testing

#endif  // WEIR_TESTS_OPS_CASE_TABLE_H_
