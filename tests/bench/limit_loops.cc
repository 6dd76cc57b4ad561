#include "tests/bench/limit_loops.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <new>

namespace weir::bench {
namespace {

using Vector16 = float __attribute__((vector_size(16)));
using Vector32 = float __attribute__((vector_size(32)));
using Vector64 = float __attribute__((vector_size(64)));

template <class V>
[[gnu::always_inline]] inline void ScaleLoop(const float* from, float* to, size_t count, float factor) {
  constexpr size_t kLanes = sizeof(V) / sizeof(float);
  const V by = V{} + factor;
  for (size_t i = 0; i < count; i += 4 * kLanes) {
    const V* const in = reinterpret_cast<const V*>(from + i);
    V* const out = reinterpret_cast<V*>(to + i);
    const V a = in[0] * by, b = in[1] * by, c = in[2] * by, d = in[3] * by;
    out[0] = a, out[1] = b, out[2] = c, out[3] = d;
  }
}

template <class V>
[[gnu::always_inline]] inline float SumLoop(const float* from, size_t count) {
  constexpr size_t kLanes = sizeof(V) / sizeof(float);
  V a{}, b{}, c{}, d{}, e{}, f{}, g{}, h{};  // eight sums hide the latency of an addition
  for (size_t i = 0; i < count; i += 8 * kLanes) {
    const V* const in = reinterpret_cast<const V*>(from + i);
    a += in[0], b += in[1], c += in[2], d += in[3], e += in[4], f += in[5], g += in[6], h += in[7];
  }
  const V all = a + b + c + d + e + f + g + h;
  float sum = 0;
  for (size_t lane = 0; lane < kLanes; ++lane) sum += all[lane];
  return sum;
}

// Twelve independent sums hide the latency of two units; each has a name so that none is spilled to memory.
#define WEIR_TWELVE(STEP) \
  STEP(r0) STEP(r1) STEP(r2) STEP(r3) STEP(r4) STEP(r5) STEP(r6) STEP(r7) STEP(r8) STEP(r9) STEP(r10) STEP(r11)

template <class V>
[[gnu::always_inline]] inline float MultiplyAddLoop(double flops) {
  constexpr double kPerRound = 12 * 2 * sizeof(V) / sizeof(float);
  const V x = V{} + 0.9999f, y = V{} + 0.1f;
  V r0 = y, r1 = r0 + y, r2 = r1 + y, r3 = r2 + y, r4 = r3 + y, r5 = r4 + y, r6 = r5 + y, r7 = r6 + y;
  V r8 = r7 + y, r9 = r8 + y, r10 = r9 + y, r11 = r10 + y;  // equal values would be computed once
  for (auto i = static_cast<int64_t>(flops / kPerRound) + 1; i > 0; --i) {
#define WEIR_STEP(r) r = r * x + y;
    WEIR_TWELVE(WEIR_STEP)
#undef WEIR_STEP
  }
  return (r0 + r1 + r2 + r3 + r4 + r5 + r6 + r7 + r8 + r9 + r10 + r11)[0];
}
#undef WEIR_TWELVE

struct Loops {
  const char* name;
  float (*multiply_adds)(double flops);
  void (*scale)(const float* from, float* to, size_t count, float factor);
  float (*sum)(const float* from, size_t count);
};

float MultiplyAddsBaseline(double flops) { return MultiplyAddLoop<Vector16>(flops); }
void ScaleBaseline(const float* from, float* to, size_t count, float factor) {
  ScaleLoop<Vector16>(from, to, count, factor);
}
float SumBaseline(const float* from, size_t count) { return SumLoop<Vector16>(from, count); }

#if defined(__x86_64__)
#define WEIR_AVX2 [[gnu::target("avx2,fma")]]
#define WEIR_AVX512 [[gnu::target("avx512f")]]

WEIR_AVX2 float MultiplyAddsAvx2(double flops) { return MultiplyAddLoop<Vector32>(flops); }
WEIR_AVX2 void ScaleAvx2(const float* from, float* to, size_t count, float factor) {
  ScaleLoop<Vector32>(from, to, count, factor);
}
WEIR_AVX2 float SumAvx2(const float* from, size_t count) { return SumLoop<Vector32>(from, count); }

WEIR_AVX512 float MultiplyAddsAvx512(double flops) { return MultiplyAddLoop<Vector64>(flops); }
WEIR_AVX512 void ScaleAvx512(const float* from, float* to, size_t count, float factor) {
  ScaleLoop<Vector64>(from, to, count, factor);
}
WEIR_AVX512 float SumAvx512(const float* from, size_t count) { return SumLoop<Vector64>(from, count); }
#endif

/// The loops that the machine can run, the widest last.
struct Choices {
  Loops all[3] = {{"baseline", MultiplyAddsBaseline, ScaleBaseline, SumBaseline}, {}, {}};
  size_t count = 1;
  const Loops* used = nullptr;

  Choices() {
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
      all[count++] = {"avx2", MultiplyAddsAvx2, ScaleAvx2, SumAvx2};
    }
    if (__builtin_cpu_supports("avx512f")) all[count++] = {"avx512", MultiplyAddsAvx512, ScaleAvx512, SumAvx512};
#endif
    used = &all[count - 1];
  }
};

Choices& Chosen() {
  static Choices choices;
  return choices;
}

volatile float sink = 0;

}  // namespace

std::string_view LimitIsa() { return Chosen().used->name; }

bool SetLimitIsa(std::string_view name) {
  Choices& choices = Chosen();
  for (size_t i = 0; i < choices.count; ++i) {
    if (name != choices.all[i].name) continue;
    choices.used = &choices.all[i];
    return true;
  }
  return false;
}

Floats MakeFloats(size_t count, float value) {
  constexpr size_t kPage = 4096;
  const size_t bytes = (count * sizeof(float) / kPage + 1) * kPage;
  auto* const floats = static_cast<float*>(std::aligned_alloc(kPage, bytes));
  if (floats == nullptr) throw std::bad_alloc();
  std::fill_n(floats, bytes / sizeof(float), value);
  return {floats, std::free};
}

void MultiplyAdds(double flops) { sink = Chosen().used->multiply_adds(flops); }

void Scale(const float* from, float* to, size_t count, float factor) { Chosen().used->scale(from, to, count, factor); }

float Sum(const float* from, size_t count) { return Chosen().used->sum(from, count); }

}  // namespace weir::bench
