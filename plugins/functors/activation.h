// What follows a product or a convolution in a fused op: a bias for each column, another array, and an activation.
#ifndef WEIR_PLUGINS_FUNCTORS_ACTIVATION_H_
#define WEIR_PLUGINS_FUNCTORS_ACTIVATION_H_

#include <cmath>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>

#include "plugins/functors/exponential.h"

namespace weir::functors {

enum class Activation : uint8_t { kNone, kRelu, kRelu6, kTanh, kSigmoid, kElu, kLeakyRelu };

/// The value of the attribute `activation` of fused ops.
inline std::optional<Activation> ParseActivation(std::string_view name) {
  constexpr std::string_view kNames[] = {"None", "Relu", "Relu6", "Tanh", "Sigmoid", "Elu", "LeakyRelu"};
  for (uint8_t i = 0; i < 7; ++i) {
    if (name == kNames[i]) return static_cast<Activation>(i);
  }
  return std::nullopt;
}

/// The end of a fused op.
struct Finish {
  Activation activation = Activation::kNone;
  float alpha = 0;  // the slope of LeakyRelu below 0
};

/// Within 4 ulp for float. NaN stays NaN.
template <Activation kActivation, class T>
[[gnu::always_inline]] inline T Activate(T x, [[maybe_unused]] T alpha) {
  if constexpr (kActivation == Activation::kRelu) {
    return x < T(0) ? T(0) : x;
  } else if constexpr (kActivation == Activation::kRelu6) {
    return x < T(0) ? T(0) : x > T(6) ? T(6) : x;
  } else if constexpr (kActivation == Activation::kLeakyRelu) {
    return x > T(0) ? x : x * alpha;
  } else if constexpr (kActivation == Activation::kElu) {
    if constexpr (std::is_same_v<T, float>) {
      const float below = Expm1OfNegative(x < 0.0f ? x : 0.0f);
      return x < 0.0f ? below : x;
    } else {
      return x < T(0) ? std::expm1(x) : x;
    }
  } else if constexpr (kActivation == Activation::kTanh) {
    if constexpr (std::is_same_v<T, float>) {
      const float size = std::fabs(x), t = Expm1OfNegative(-2.0f * size);
      return std::copysign(-t / (2.0f + t), x);
    } else {
      return std::tanh(x);
    }
  } else if constexpr (kActivation == Activation::kSigmoid) {
    if constexpr (std::is_same_v<T, float>) {
      const float e = ExpOfNegative(-std::fabs(x));
      return (x < 0.0f ? e : 1.0f) / (1.0f + e);
    } else {
      return x < T(0) ? std::exp(x) / (T(1) + std::exp(x)) : T(1) / (T(1) + std::exp(-x));
    }
  } else {
    return x;
  }
}

template <Activation kActivation, bool kBias, bool kAddend, class T>
[[gnu::always_inline]] inline void FinishRowsWith(float alpha, T* __restrict c, const T* __restrict bias,
                                                  const T* __restrict addend, int64_t rows, int64_t columns) {
  for (int64_t i = 0; i < rows; ++i, c += columns) {
    for (int64_t j = 0; j < columns; ++j) {
      T x = c[j];
      if constexpr (kBias) x += bias[j];
      if constexpr (kAddend) x += addend[j];
      c[j] = Activate<kActivation>(x, static_cast<T>(alpha));
    }
    if constexpr (kAddend) addend += columns;
  }
}

template <bool kBias, bool kAddend, class T>
[[gnu::always_inline]] inline void FinishRowsOf(const Finish& finish, T* c, const T* bias, const T* addend,
                                                int64_t rows, int64_t columns) {
  switch (finish.activation) {
    case Activation::kNone:
      return FinishRowsWith<Activation::kNone, kBias, kAddend>(finish.alpha, c, bias, addend, rows, columns);
    case Activation::kRelu:
      return FinishRowsWith<Activation::kRelu, kBias, kAddend>(finish.alpha, c, bias, addend, rows, columns);
    case Activation::kRelu6:
      return FinishRowsWith<Activation::kRelu6, kBias, kAddend>(finish.alpha, c, bias, addend, rows, columns);
    case Activation::kTanh:
      return FinishRowsWith<Activation::kTanh, kBias, kAddend>(finish.alpha, c, bias, addend, rows, columns);
    case Activation::kSigmoid:
      return FinishRowsWith<Activation::kSigmoid, kBias, kAddend>(finish.alpha, c, bias, addend, rows, columns);
    case Activation::kElu:
      return FinishRowsWith<Activation::kElu, kBias, kAddend>(finish.alpha, c, bias, addend, rows, columns);
    case Activation::kLeakyRelu:
      return FinishRowsWith<Activation::kLeakyRelu, kBias, kAddend>(finish.alpha, c, bias, addend, rows, columns);
  }
}

/// Columns of rows that are finished several at once, since they fill no vector.
inline constexpr int64_t kNarrowRow = 16;

/// c [rows, columns] = activation(c + bias + addend), where `bias` [columns] and `addend` [rows, columns] may be null
/// and do not overlap c; in the instruction set of the function that calls it.
template <class T>
[[gnu::always_inline]] inline void FinishRows(const Finish& finish, T* c, const std::type_identity_t<T>* bias,
                                              const std::type_identity_t<T>* addend, int64_t rows, int64_t columns) {
  if (bias == nullptr) {
    if (addend != nullptr) return FinishRowsOf<false, true>(finish, c, bias, addend, 1, rows * columns);
    if (finish.activation != Activation::kNone) {
      FinishRowsOf<false, false>(finish, c, bias, addend, 1, rows * columns);
    }
    return;
  }
  T repeated[4 * kNarrowRow];
  int64_t together = 1;  // rows that are taken as one
  if (columns > 0 && columns < kNarrowRow) {
    together = 4 * kNarrowRow / columns;
    for (int64_t i = 0; i < together * columns; ++i) repeated[i] = bias[i % columns];
  }
  for (int64_t left = rows; left > 0;) {
    const int64_t count = left / together, wide = together * columns;
    const T* const biases = together > 1 ? repeated : bias;
    if (addend != nullptr) {
      FinishRowsOf<true, true>(finish, c, biases, addend, count, wide);
      addend += count * wide;
    } else {
      FinishRowsOf<true, false>(finish, c, biases, addend, count, wide);
    }
    c += count * wide;
    left -= count * together;
    together = 1;
  }
}

}  // namespace weir::functors

#endif  // WEIR_PLUGINS_FUNCTORS_ACTIVATION_H_
