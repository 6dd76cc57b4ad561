// Limits of one core: arithmetic in registers, and passes over memory. Each loop is compiled for every vector width and
// runs with the widest of the machine, so that no kernel exceeds the limit by using wider vectors.
#ifndef WEIR_TESTS_BENCH_LIMIT_LOOPS_H_
#define WEIR_TESTS_BENCH_LIMIT_LOOPS_H_

#include <cstddef>
#include <memory>
#include <string_view>

namespace weir::bench {

/// The vectors used by the loops: "baseline", "avx2" or "avx512". The widest by default.
std::string_view LimitIsa();
/// Selects these instructions; false if the name is unknown or the machine lacks them.
bool SetLimitIsa(std::string_view name);

/// Floats aligned to a page, followed by padding of one vector.
using Floats = std::unique_ptr<float, void (*)(void*)>;
Floats MakeFloats(size_t count, float value);

/// Executes `flops` multiplications and additions in registers.
void MultiplyAdds(double flops);
/// to = from * factor over arrays of MakeFloats, which may be the same; `count` is a multiple of 64.
void Scale(const float* from, float* to, size_t count, float factor);
/// The sum of an array of MakeFloats, in one pass; `count` is a multiple of 128.
float Sum(const float* from, size_t count);

}  // namespace weir::bench

#endif  // WEIR_TESTS_BENCH_LIMIT_LOOPS_H_
