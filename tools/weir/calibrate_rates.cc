// Rates of a core, measured in loops of our own.
#include <time.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include "tools/weir/calibrate.h"

namespace weir::cli {
namespace {

constexpr int kTries = 5;
constexpr int64_t kRounds = 400000;

using Lanes16 = float __attribute__((vector_size(16)));
using Lanes32 = float __attribute__((vector_size(32)));
using Lanes64 = float __attribute__((vector_size(64)));

/// Twelve independent sums hide the latency of two units. Returns something that depends on all.
template <class V>
[[gnu::always_inline]] inline float MultiplyAdds(int64_t rounds) {
  const V x = V{} + 0.9999f, y = V{} + 0.1f;
  V r0 = y, r1 = r0 + y, r2 = r1 + y, r3 = r2 + y, r4 = r3 + y, r5 = r4 + y;
  V r6 = r5 + y, r7 = r6 + y, r8 = r7 + y, r9 = r8 + y, r10 = r9 + y, r11 = r10 + y;
  for (int64_t i = 0; i < rounds; ++i) {
    r0 = r0 * x + y, r1 = r1 * x + y, r2 = r2 * x + y, r3 = r3 * x + y, r4 = r4 * x + y, r5 = r5 * x + y;
    r6 = r6 * x + y, r7 = r7 * x + y, r8 = r8 * x + y, r9 = r9 * x + y, r10 = r10 * x + y, r11 = r11 * x + y;
  }
  return (r0 + r1 + r2 + r3 + r4 + r5 + r6 + r7 + r8 + r9 + r10 + r11)[0];
}

struct Loop {
  float (*run)(int64_t rounds);
  double flops_per_round;
};

float RunBaseline(int64_t rounds) { return MultiplyAdds<Lanes16>(rounds); }
#if defined(__x86_64__)
[[gnu::target("avx2,fma")]] float RunAvx2(int64_t rounds) { return MultiplyAdds<Lanes32>(rounds); }
[[gnu::target("avx512f")]] float RunAvx512(int64_t rounds) { return MultiplyAdds<Lanes64>(rounds); }
#endif

Loop LoopOf(int level) {
#if defined(__x86_64__)
  if (level >= 4 && __builtin_cpu_supports("avx512f") != 0) return {RunAvx512, 12 * 2 * 16};
  if (level >= 3 && __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0) {
    return {RunAvx2, 12 * 2 * 8};
  }
#endif
  return {RunBaseline, 12 * 2 * 4};
}

/// ns of the fastest of several calls.
template <class Body>
double Fastest(Body&& body) {
  double least = std::numeric_limits<double>::infinity();
  for (int i = 0; i < kTries; ++i) {
    const double begin = ThreadNs();
    body();
    least = std::min(least, ThreadNs() - begin);
  }
  return least;
}

/// Bytes read and written per ns by copies of `bytes`, `times` in a row.
double CopyRate(size_t bytes, int times) {
  std::vector<char> from(bytes, 1), to(bytes, 2);
  const double ns = Fastest([&] {
    for (int i = 0; i < times; ++i) {
      std::memcpy(to.data(), from.data(), bytes);
      asm volatile("" : : "r"(to.data()) : "memory");
    }
  });
  return 2.0 * static_cast<double>(bytes) * times / ns;
}

}  // namespace

double ThreadNs() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

CoreRates MeasureRates(int level) {
  CoreRates rates;
  const Loop loop = LoopOf(level);
  volatile float sink = 0;
  const double ns = Fastest([&] { sink = loop.run(kRounds); });
  rates.flops_per_ns = loop.flops_per_round * static_cast<double>(kRounds) / ns;
  rates.memory_bytes_per_ns = CopyRate(size_t{64} << 20, 1);
  rates.cache_bytes_per_ns = CopyRate(size_t{96} << 10, 200);
  return rates;
}

}  // namespace weir::cli
