// Comparisons, tests of numbers, and logic.
#ifndef WEIR_PLUGINS_FUNCTORS_COMPARISON_H_
#define WEIR_PLUGINS_FUNCTORS_COMPARISON_H_

#include "plugins/functors/scalar.h"

namespace weir::functors {

struct Equal {
  static constexpr bool kOfDifferentShapes = false;
  template <class T>
  WEIR_HD bool operator()(T x, T y) const {
    return x == y;
  }
};
struct NotEqual {
  static constexpr bool kOfDifferentShapes = true;
  template <class T>
  WEIR_HD bool operator()(T x, T y) const {
    return x != y;
  }
};
struct Less {
  template <class T>
  WEIR_HD bool operator()(T x, T y) const {
    return x < y;
  }
};
struct LessEqual {
  template <class T>
  WEIR_HD bool operator()(T x, T y) const {
    return x <= y;
  }
};
struct Greater {
  template <class T>
  WEIR_HD bool operator()(T x, T y) const {
    return x > y;
  }
};
struct GreaterEqual {
  template <class T>
  WEIR_HD bool operator()(T x, T y) const {
    return x >= y;
  }
};
struct IsFinite {
  template <class T>
  WEIR_HD bool operator()(T x) const {
    return x - x == T(0);
  }
};
struct IsNan {
  template <class T>
  WEIR_HD bool operator()(T x) const {
    return x != x;
  }
};
struct IsInf {
  template <class T>
  WEIR_HD bool operator()(T x) const {
    return x == x && x - x != T(0);
  }
};
struct LogicalAnd {
  WEIR_HD bool operator()(bool x, bool y) const { return x & y; }
};
struct LogicalOr {
  WEIR_HD bool operator()(bool x, bool y) const { return x | y; }
};

}  // namespace weir::functors

#endif  // WEIR_PLUGINS_FUNCTORS_COMPARISON_H_
