// The steps of scans: how a running total begins, and how it takes the next element.
#ifndef WEIR_PLUGINS_FUNCTORS_RUNNING_H_
#define WEIR_PLUGINS_FUNCTORS_RUNNING_H_

#include <cmath>
#include <limits>

#include "plugins/functors/arithmetic.h"

namespace weir::functors {

struct RunningSum {
  template <class C>
  WEIR_HD static C None() {
    return C(0);
  }
  template <class C>
  WEIR_HD static C Join(C total, C x) {
    return Sum(total, x);
  }
};
struct RunningProduct {
  template <class C>
  WEIR_HD static C None() {
    return C(1);
  }
  template <class C>
  WEIR_HD static C Join(C total, C x) {
    return Product(total, x);
  }
};
/// log(e^total + e^x).
struct RunningLogarithm {
  template <class C>
  WEIR_HD static C None() {
    return -std::numeric_limits<C>::infinity();
  }
  template <class C>
  WEIR_HD static C Join(C total, C x) {
    // As std::max and std::min: NaN in x gives NaN by the difference.
    const C most = total < x ? x : total, least = x < total ? x : total;
    return least == most ? most + C(0.69314718055994530942) : most + std::log1p(std::exp(least - most));
  }
};

}  // namespace weir::functors

#endif  // WEIR_PLUGINS_FUNCTORS_RUNNING_H_
