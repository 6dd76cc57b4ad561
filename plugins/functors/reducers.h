// The steps of reductions.
#ifndef WEIR_PLUGINS_FUNCTORS_REDUCERS_H_
#define WEIR_PLUGINS_FUNCTORS_REDUCERS_H_

#include <complex>
#include <concepts>
#include <limits>

#include "plugins/functors/arithmetic.h"

namespace weir::functors {

template <class T>
struct WideType {
  using Type = T;
};
template <>
struct WideType<float> {
  using Type = double;
};
template <>
struct WideType<sdk::complex64> {
  using Type = sdk::complex128;
};
template <>
struct WideType<Complex64> {
  using Type = Complex128;
};

// A reducer: Lane<T> is the type that combines elements of a block, Total<T> the type that combines blocks. Give
// converts a total of `n` elements to an output.
struct SumReducer {
  template <class T>
  using Lane = sdk::Compute<T>;
  template <class T>
  using Total = typename WideType<sdk::Compute<T>>::Type;
  template <class A>
  WEIR_HD static A Identity() {
    return A(0);
  }
  template <class A>
  WEIR_HD static A Combine(A a, A b) {
    return Sum(a, b);
  }
  template <class T, class A>
  WEIR_HD static T Give(A total, int64_t) {
    return static_cast<T>(static_cast<sdk::Compute<T>>(total));
  }
};

// sdk::Integers are summed in 64 bits and divided towards zero.
struct MeanReducer {
  template <class T>
  struct LaneType {
    using Type = sdk::Compute<T>;
  };
  template <std::signed_integral T>
  struct LaneType<T> {
    using Type = int64_t;
  };
  template <std::unsigned_integral T>
  struct LaneType<T> {
    using Type = uint64_t;
  };
  template <class T>
  using Lane = typename LaneType<T>::Type;
  template <class T>
  using Total = typename WideType<Lane<T>>::Type;
  template <class A>
  WEIR_HD static A Identity() {
    return A(0);
  }
  template <class A>
  WEIR_HD static A Combine(A a, A b) {
    return Sum(a, b);
  }
  template <class T, class A>
  WEIR_HD static T Give(A total, int64_t n) {
    if constexpr (std::integral<T>) {
      return n == 0 ? T(0) : static_cast<T>(total / static_cast<A>(n));
    } else {
      return static_cast<T>(static_cast<sdk::Compute<T>>(total / static_cast<A>(n)));
    }
  }
};

template <class Derived>
struct PlainReducer {
  template <class T>
  using Lane = sdk::Compute<T>;
  template <class T>
  using Total = sdk::Compute<T>;
  template <class T, class A>
  WEIR_HD static T Give(A total, int64_t) {
    return static_cast<T>(total);
  }
};
struct ProdReducer : PlainReducer<ProdReducer> {
  template <class A>
  WEIR_HD static A Identity() {
    return A(1);
  }
  template <class A>
  WEIR_HD static A Combine(A a, A b) {
    return Product(a, b);
  }
};
struct MaxReducer : PlainReducer<MaxReducer> {
  template <class A>
  WEIR_HD static A Identity() {
    return std::numeric_limits<A>::has_infinity ? -std::numeric_limits<A>::infinity()
                                                : std::numeric_limits<A>::lowest();
  }
  template <class A>
  WEIR_HD static A Combine(A a, A b) {
    return b > a || b != b ? b : a;
  }
  template <class V>
  WEIR_HD static void Take(V& a, const V& b) {
    a = (b > a) | (b != b) ? b : a;
  }  // for vectors
};
struct MinReducer : PlainReducer<MinReducer> {
  template <class A>
  WEIR_HD static A Identity() {
    return std::numeric_limits<A>::has_infinity ? std::numeric_limits<A>::infinity() : std::numeric_limits<A>::max();
  }
  template <class A>
  WEIR_HD static A Combine(A a, A b) {
    return b < a || b != b ? b : a;
  }
  template <class V>
  WEIR_HD static void Take(V& a, const V& b) {
    a = (b < a) | (b != b) ? b : a;
  }
};
struct AllReducer : PlainReducer<AllReducer> {
  template <class A>
  WEIR_HD static A Identity() {
    return true;
  }
  template <class A>
  WEIR_HD static A Combine(A a, A b) {
    return bool(a) & bool(b);
  }
};
struct AnyReducer : PlainReducer<AnyReducer> {
  template <class A>
  WEIR_HD static A Identity() {
    return false;
  }
  template <class A>
  WEIR_HD static A Combine(A a, A b) {
    return bool(a) | bool(b);
  }
};

}  // namespace weir::functors

#endif  // WEIR_PLUGINS_FUNCTORS_REDUCERS_H_
