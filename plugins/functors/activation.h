// What follows a product in a fused op: a bias for each column, and an activation.
#ifndef WEIR_PLUGINS_FUNCTORS_ACTIVATION_H_
#define WEIR_PLUGINS_FUNCTORS_ACTIVATION_H_

#include <cmath>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>

#include "plugins/functors/exponential.h"

namespace weir::functors {

enum class Activation : uint8_t { kNone, kRelu, kRelu6, kTanh, kSigmoid, kElu };

/// The value of the attribute `activation` of fused ops.
inline std::optional<Activation> ParseActivation(std::string_view name) {
  constexpr std::string_view kNames[] = {"None", "Relu", "Relu6", "Tanh", "Sigmoid", "Elu"};
  for (uint8_t i = 0; i < 6; ++i) {
    if (name == kNames[i]) return static_cast<Activation>(i);
  }
  return std::nullopt;
}

/// Within 4 ulp for float. NaN stays NaN.
template <Activation kActivation, class T>
[[gnu::always_inline]] inline T Activate(T x) {
  if constexpr (kActivation == Activation::kRelu) {
    return x < T(0) ? T(0) : x;
  } else if constexpr (kActivation == Activation::kRelu6) {
    return x < T(0) ? T(0) : x > T(6) ? T(6) : x;
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

template <Activation kActivation, class T>
[[gnu::always_inline]] inline void FinishRowsWith(T* c, const T* bias, int64_t rows, int64_t columns) {
  for (int64_t i = 0; i < rows; ++i, c += columns) {
    for (int64_t j = 0; j < columns; ++j) c[j] = Activate<kActivation>(c[j] + bias[j]);
  }
}

/// c [rows, columns] = activation(c + bias), where `bias` [columns] does not overlap c; in the instruction set of the
/// function that calls it.
template <class T>
[[gnu::always_inline]] inline void FinishRows(Activation activation, T* c, const T* __restrict bias, int64_t rows,
                                              int64_t columns) {
  switch (activation) {
    case Activation::kNone:
      return FinishRowsWith<Activation::kNone>(c, bias, rows, columns);
    case Activation::kRelu:
      return FinishRowsWith<Activation::kRelu>(c, bias, rows, columns);
    case Activation::kRelu6:
      return FinishRowsWith<Activation::kRelu6>(c, bias, rows, columns);
    case Activation::kTanh:
      return FinishRowsWith<Activation::kTanh>(c, bias, rows, columns);
    case Activation::kSigmoid:
      return FinishRowsWith<Activation::kSigmoid>(c, bias, rows, columns);
    case Activation::kElu:
      return FinishRowsWith<Activation::kElu>(c, bias, rows, columns);
  }
}

}  // namespace weir::functors

#endif  // WEIR_PLUGINS_FUNCTORS_ACTIVATION_H_
