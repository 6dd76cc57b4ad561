// Exponentials of float in plain C++ that compilers turn into vector code.
#ifndef WEIR_PLUGINS_FUNCTORS_EXPONENTIAL_H_
#define WEIR_PLUGINS_FUNCTORS_EXPONENTIAL_H_

#include <bit>
#include <cstdint>

namespace weir::functors {

/// The logarithm of the least normal number, rounded up.
inline constexpr float kLeastExponent = -87.33654f;

/// e^x = scale * (1 + rest), with a power of two.
struct ExpParts {
  float scale, rest;
};

/// For kLeastExponent <= x <= 0; NaN for NaN. With n the whole number nearest to x / ln 2 and r = x - n ln 2, e^x =
/// 2^n (1 + r + r^2 q(r)); q is a minimax polynomial of degree 4 whose error is below 4e-9.
[[gnu::always_inline]] inline ExpParts SplitExp(float x) {
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: a sum with it has no fraction
  constexpr float kLn2 = 0.693147182464599609375f, kLn2Rest = -1.904654290582768e-9f;
  const float shifted = __builtin_fmaf(x, 1.44269504f, kRound);
  const float n = shifted - kRound;
  const float r = __builtin_fmaf(n, -kLn2Rest, __builtin_fmaf(n, -kLn2, x));
  float q = 0.0013813144504642412f;
  q = __builtin_fmaf(q, r, 0.00836941883554774f);
  q = __builtin_fmaf(q, r, 0.04166845678740364f);
  q = __builtin_fmaf(q, r, 0.16666514791398562f);
  q = __builtin_fmaf(q, r, 0.49999993050724617f);
  // The low bits of `shifted` are those of kRound plus n.
  const uint32_t exponent = std::bit_cast<uint32_t>(shifted) - std::bit_cast<uint32_t>(kRound) + 127u;
  return {std::bit_cast<float>(exponent << 23), __builtin_fmaf(q, r * r, r)};
}

/// e^x for x <= 0, within 1.01 ulp where the result is a normal number, else 0; NaN for NaN.
[[gnu::always_inline]] inline float ExpOfNegative(float x) {
  const ExpParts parts = SplitExp(x < kLeastExponent ? kLeastExponent : x);
  return x < kLeastExponent ? 0.0f : (1.0f + parts.rest) * parts.scale;
}

/// e^x - 1 for x <= 0, within 2 ulp; NaN for NaN.
[[gnu::always_inline]] inline float Expm1OfNegative(float x) {
  const ExpParts parts = SplitExp(x < kLeastExponent ? kLeastExponent : x);
  return __builtin_fmaf(parts.rest, parts.scale, parts.scale - 1.0f);
}

}  // namespace weir::functors

#endif  // WEIR_PLUGINS_FUNCTORS_EXPONENTIAL_H_
