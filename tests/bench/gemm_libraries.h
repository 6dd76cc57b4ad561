// Matrix products by direct calls of each library.
#ifndef WEIR_TESTS_BENCH_GEMM_LIBRARIES_H_
#define WEIR_TESTS_BENCH_GEMM_LIBRARIES_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace weir::bench {

/// c = op(a) op(b) in float, row-major; `constant_b` allows a library to reorder b into its own layout beforehand.
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

/// One call for each implementation of each library that can compute the product, on separate memory.
std::vector<DirectCall> DirectCalls(const GemmShape& shape);

/// CPU time in ns of all threads of the process, which other processes on a busy machine do not affect.
double ProcessNs();

/// ns per call over enough calls for about `sample_ns`.
double CallNs(const std::function<void()>& call, double sample_ns);

}  // namespace weir::bench

#endif  // WEIR_TESTS_BENCH_GEMM_LIBRARIES_H_
