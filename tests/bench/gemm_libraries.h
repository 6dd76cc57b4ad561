// Matrix products by calling each library itself.
#ifndef WEIR_TESTS_BENCH_GEMM_LIBRARIES_H_
#define WEIR_TESTS_BENCH_GEMM_LIBRARIES_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace weir::bench {

/// c = op(a) op(b) in float, row-major; `constant_b` allows a library to bring b into its own layout beforehand.
struct GemmShape {
  int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false, constant_b = false;
  std::string Name() const;
  double Flops() const;
};

struct DirectCall {
  std::string library;
  std::function<void()> call;
};

/// One way for each code path of each library that can do the product, on memory of its own.
std::vector<DirectCall> DirectCalls(const GemmShape& shape);

/// Time in ns that all threads of the process spent on a core: what neighbours on a busy machine do not add to.
double ProcessNs();

/// ns per call over enough calls for about `sample_ns`.
double CallNs(const std::function<void()>& call, double sample_ns);

}  // namespace weir::bench

#endif  // WEIR_TESTS_BENCH_GEMM_LIBRARIES_H_
