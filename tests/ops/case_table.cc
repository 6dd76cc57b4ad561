#include "tests/ops/case_table.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/ops/declare_all.h"

namespace weir::testing {

bool HasKernels([[maybe_unused]] const OpCase& c) {
#ifdef WEIR_KERNEL_DTYPES_SHORT
  const auto complex = [](DType type) { return type == DType::kComplex64 || type == DType::kComplex128; };
  return std::ranges::none_of(c.signature.inputs, complex) && std::ranges::none_of(c.signature.outputs, complex);
#else
  return true;
#endif
}

const std::vector<OpCase>& OpCases() {
  static const std::vector<OpCase> read = [] {
    const Result<const op::OpRegistry*> ops = ops::Catalogue();
    EXPECT_TRUE(ops.ok()) << ops.status().ToString();
    std::vector<Status> faults;
    Result<std::vector<OpCase>> all = ReadCases(**ops, WEIR_OP_CASES, &faults);
    EXPECT_TRUE(all.ok()) << all.status().ToString();
    for (const Status& fault : faults) ADD_FAILURE() << fault.ToString();
    return all.ok() ? std::move(*all) : std::vector<OpCase>();
  }();
  return read;
}

std::vector<const OpCase*> GradientCases() {
  std::vector<const OpCase*> with;
  for (const OpCase& c : OpCases()) {
    if (c.differentiable()) with.push_back(&c);
  }
  return with;
}

}  // namespace weir::testing
