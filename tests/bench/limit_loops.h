// What one core can do at most: arithmetic in registers, and passes over memory. Each loop exists for every width of
// vector and runs for the widest that the machine has, so that no kernel is ahead of it for its instructions.
#ifndef WEIR_TESTS_BENCH_LIMIT_LOOPS_H_
#define WEIR_TESTS_BENCH_LIMIT_LOOPS_H_

#include <cstddef>
#include <memory>
#include <string_view>

namespace weir::bench {

/// "baseline", "avx2" or "avx512": what the loops use. The widest by default.
std::string_view LimitIsa();
/// Uses these instructions from now on; false when the name is none of them or the machine lacks them.
bool SetLimitIsa(std::string_view name);

/// Floats that begin on a page, followed by room for a whole vector.
using Floats = std::unique_ptr<float, void (*)(void*)>;
Floats MakeFloats(size_t count, float value);

/// Does `flops` multiplications and additions in registers.
void MultiplyAdds(double flops);
/// to = from * factor over arrays of MakeFloats, which may be one; `count` is a multiple of 64.
void Scale(const float* from, float* to, size_t count, float factor);
/// The sum of an array of MakeFloats, which reads it once; `count` is a multiple of 128.
float Sum(const float* from, size_t count);

}  // namespace weir::bench

#endif  // WEIR_TESTS_BENCH_LIMIT_LOOPS_H_
