// Functions of the bits of integers.
#include <algorithm>
#include <bit>
#include <limits>
#include <type_traits>

#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/families.h"
#include "plugins/kernels_eigen/wrap.h"
#include "sdk/cpp/elementwise.h"

namespace weir::kernels_eigen {
namespace {

/// A shift beyond the type's bits shifts by all but one; a negative one does not shift.
template <class T>
int Limited(T y) {
  constexpr int kMost = static_cast<int>(sizeof(T)) * 8 - 1;
  if constexpr (std::signed_integral<T>) {
    if (y < 0) return 0;
  }
  return y > T(kMost) ? kMost : static_cast<int>(y);
}

struct And {
  template <class T>
  T operator()(T x, T y) const {
    return static_cast<T>(x & y);
  }
};
struct Or {
  template <class T>
  T operator()(T x, T y) const {
    return static_cast<T>(x | y);
  }
};
struct Xor {
  template <class T>
  T operator()(T x, T y) const {
    return static_cast<T>(x ^ y);
  }
};
struct LeftShift {
  template <class T>
  T operator()(T x, T y) const {
    return static_cast<T>(static_cast<Unsigned<T>>(x) << Limited(y));
  }
};
struct RightShift {
  template <class T>
  T operator()(T x, T y) const {
    return static_cast<T>(x >> Limited(y));
  }
};
struct Invert {
  template <class T>
  T operator()(T x) const {
    return static_cast<T>(~x);
  }
};
struct PopulationCount {
  template <class T>
  uint8_t operator()(T x) const {
    return static_cast<uint8_t>(std::popcount(static_cast<std::make_unsigned_t<T>>(x)));
  }
};

}  // namespace

void AddBits(sdk::KernelTable& k) {
  k.Binary<And>("BitwiseAnd", kInts);
  k.Binary<Or>("BitwiseOr", kInts);
  k.Binary<Xor>("BitwiseXor", kInts);
  k.Binary<LeftShift>("LeftShift", kInts);
  k.Binary<RightShift>("RightShift", kInts);
  k.Unary<Invert>("Invert", kInts);
  k.Unary<PopulationCount>("PopulationCount", kInts);
}

}  // namespace weir::kernels_eigen
