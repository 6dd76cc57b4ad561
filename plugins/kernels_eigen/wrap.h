// Integer arithmetic that wraps around, as TensorFlow's does, where C++ leaves overflow undefined.
#ifndef WEIR_PLUGINS_KERNELS_EIGEN_WRAP_H_
#define WEIR_PLUGINS_KERNELS_EIGEN_WRAP_H_

#include <concepts>
#include <cstdint>
#include <type_traits>

namespace weir::kernels_eigen {

/// Unsigned and not promoted to a signed type.
template <std::integral T>
using Unsigned = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;

template <class T>
T Sum(T x, T y) {
  if constexpr (std::integral<T>) {
    return static_cast<T>(static_cast<Unsigned<T>>(x) + static_cast<Unsigned<T>>(y));
  } else {
    return x + y;
  }
}
template <class T>
T Difference(T x, T y) {
  if constexpr (std::integral<T>) {
    return static_cast<T>(static_cast<Unsigned<T>>(x) - static_cast<Unsigned<T>>(y));
  } else {
    return x - y;
  }
}
template <class T>
T Product(T x, T y) {
  if constexpr (std::integral<T>) {
    return static_cast<T>(static_cast<Unsigned<T>>(x) * static_cast<Unsigned<T>>(y));
  } else {
    return x * y;
  }
}
template <class T>
T Negative(T x) {
  if constexpr (std::integral<T>) {
    return static_cast<T>(Unsigned<T>{0} - static_cast<Unsigned<T>>(x));
  } else {
    return -x;
  }
}

}  // namespace weir::kernels_eigen

#endif  // WEIR_PLUGINS_KERNELS_EIGEN_WRAP_H_
