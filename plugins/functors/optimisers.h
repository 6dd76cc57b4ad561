// Optimiser steps as rules for one element, and the checks of their operands.
#ifndef WEIR_PLUGINS_FUNCTORS_OPTIMISERS_H_
#define WEIR_PLUGINS_FUNCTORS_OPTIMISERS_H_

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "plugins/functors/complex_functions.h"
#include "plugins/functors/scalar.h"
#include "plugins/functors/step_checks.h"

namespace weir::functors {

/// Attributes of any of the ops.
struct StepFlags {
  bool nesterov = false, update_slots = true, multiply_linear = false;
  bool rows = false;  // the gradient is one of rows of the variable
};

template <size_t n>
using Names = std::array<const char*, n>;

template <class C>
WEIR_HD C RootOf(C x) {
  if constexpr (kIsDeviceComplex<C>) {
    return ComplexSqrt()(x);
  } else {
    return std::sqrt(x);
  }
}

template <class C>
WEIR_HD C SignOf(C x) {
  return C(x > C(0)) - C(x < C(0));
}

/// sign(x) * max(|x| - by, 0).
template <class C>
WEIR_HD C Shrunk(C x, C by) {
  const C rest = std::fabs(x) - by;
  return rest > C(0) ? SignOf(x) * rest : C(0);
}

// A rule has the names of its slots and of the numbers before and behind the gradient. It updates one element `var` and
// its slots `s` by the gradient g and the numbers p, in the op's order.

/// var -= alpha * delta
struct GradientDescent {
  static constexpr Names<0> kSlots = {};
  static constexpr Names<1> kBefore = {"alpha"};
  static constexpr Names<0> kAfter = {};
  static constexpr size_t kRate = 0;
  template <class C>
  WEIR_HD static void Update(C& var, std::array<C, 0>&, C g, const std::array<C, 1>& p, StepFlags) {
    var = var - p[0] * g;
  }
};

/// accum = accum * momentum + grad; var -= lr * accum, or with Nesterov momentum var -= lr * (grad + momentum * accum).
struct Momentum {
  static constexpr Names<1> kSlots = {"accum"}, kBefore = {"lr"}, kAfter = {"momentum"};
  template <class C>
  WEIR_HD static void Update(C& var, std::array<C, 1>& s, C g, const std::array<C, 2>& p, StepFlags flags) {
    s[0] = s[0] * p[1] + g;
    var = var - (flags.nesterov ? g * p[0] + s[0] * p[1] * p[0] : s[0] * p[0]);
  }
};

/// Kingma and Ba, 2015, section 2, with the bias corrections folded into the rate.
struct Adam {
  static constexpr Names<2> kSlots = {"m", "v"};
  static constexpr Names<6> kBefore = {"beta1_power", "beta2_power", "lr", "beta1", "beta2", "epsilon"};
  static constexpr Names<0> kAfter = {};
  template <class C>
  WEIR_HD static void Update(C& var, std::array<C, 2>& s, C g, const std::array<C, 6>& p, StepFlags flags) {
    const C rate = p[2] * RootOf(C(1) - p[1]) / (C(1) - p[0]);
    s[0] = s[0] + (g - s[0]) * (C(1) - p[3]);
    s[1] = s[1] + (g * g - s[1]) * (C(1) - p[4]);
    const C direction = flags.nesterov ? g * (C(1) - p[3]) + p[3] * s[0] : s[0];
    var = var - direction * rate / (RootOf(s[1]) + p[5]);
  }
};

struct KerasMomentum {
  static constexpr Names<1> kSlots = {"accum"}, kBefore = {"lr"}, kAfter = {"momentum"};
  template <class C>
  WEIR_HD static void Update(C& var, std::array<C, 1>& s, C g, const std::array<C, 2>& p, StepFlags flags) {
    s[0] = s[0] * p[1] - g * p[0];
    var += flags.nesterov ? s[0] * p[1] - g * p[0] : s[0];
  }
};

/// Duchi and others, 2011.
template <bool kEpsilon>
struct AdagradRule {
  static constexpr Names<1> kSlots = {"accum"};
  static constexpr auto kBefore = [] {
    if constexpr (kEpsilon) {
      return Names<2>{"lr", "epsilon"};
    } else {
      return Names<1>{"lr"};
    }
  }();
  static constexpr Names<0> kAfter = {};
  template <class C, size_t n>
  WEIR_HD static void Update(C& var, std::array<C, 1>& s, C g, const std::array<C, n>& p, StepFlags flags) {
    if (flags.update_slots) s[0] += g * g;
    C divisor = std::sqrt(s[0]);
    if constexpr (kEpsilon) divisor += p[1];
    var -= g * p[0] / divisor;
  }
};
using Adagrad = AdagradRule<false>;
using AdagradV2 = AdagradRule<true>;

struct RmsProp {
  static constexpr Names<2> kSlots = {"ms", "mom"};
  static constexpr Names<4> kBefore = {"lr", "rho", "momentum", "epsilon"};
  static constexpr Names<0> kAfter = {};
  template <class C>
  WEIR_HD static void Update(C& var, std::array<C, 2>& s, C g, const std::array<C, 4>& p, StepFlags) {
    s[0] += (g * g - s[0]) * (C(1) - p[1]);
    s[1] = s[1] * p[2] + g * p[0] / std::sqrt(s[0] + p[3]);
    var -= s[1];
  }
};

struct CenteredRmsProp {
  static constexpr Names<3> kSlots = {"mg", "ms", "mom"};
  static constexpr Names<4> kBefore = RmsProp::kBefore;
  static constexpr Names<0> kAfter = {};
  template <class C>
  WEIR_HD static void Update(C& var, std::array<C, 3>& s, C g, const std::array<C, 4>& p, StepFlags) {
    s[1] += (g * g - s[1]) * (C(1) - p[1]);
    s[0] += (g - s[0]) * (C(1) - p[1]);
    s[2] = s[2] * p[2] + g * p[0] / std::sqrt(s[1] - s[0] * s[0] + p[3]);
    var -= s[2];
  }
};

/// Zeiler, 2012.
struct Adadelta {
  static constexpr Names<2> kSlots = {"accum", "accum_update"};
  static constexpr Names<3> kBefore = {"lr", "rho", "epsilon"};
  static constexpr Names<0> kAfter = {};
  template <class C>
  WEIR_HD static void Update(C& var, std::array<C, 2>& s, C g, const std::array<C, 3>& p, StepFlags) {
    s[0] = s[0] * p[1] + g * g * (C(1) - p[1]);
    const C update = std::sqrt(s[1] + p[2]) / std::sqrt(s[0] + p[2]) * g;
    var -= update * p[0];
    s[1] = s[1] * p[1] + update * update * (C(1) - p[1]);
  }
};

/// Kingma and Ba, 2015, section 7.1.
struct AdaMax {
  static constexpr Names<2> kSlots = {"m", "v"};
  static constexpr Names<5> kBefore = {"beta1_power", "lr", "beta1", "beta2", "epsilon"};
  static constexpr Names<0> kAfter = {};
  template <class C>
  WEIR_HD static void Update(C& var, std::array<C, 2>& s, C g, const std::array<C, 5>& p, StepFlags) {
    s[0] += (g - s[0]) * (C(1) - p[2]);
    const C kept = p[3] * s[1], size = std::fabs(g);
    s[1] = kept > size ? kept : size;
    var -= p[1] / (C(1) - p[0]) * (s[0] / (s[1] + p[4]));
  }
};

// Bello and others, 2017.
struct AddSign {
  static constexpr Names<1> kSlots = {"m"};
  static constexpr Names<4> kBefore = {"lr", "alpha", "sign_decay", "beta"};
  static constexpr Names<0> kAfter = {};
  template <class C>
  WEIR_HD static void Update(C& var, std::array<C, 1>& s, C g, const std::array<C, 4>& p, StepFlags) {
    s[0] = s[0] * p[3] + g * (C(1) - p[3]);
    var -= p[0] * (p[1] + p[2] * SignOf(g) * SignOf(s[0])) * g;
  }
};
struct PowerSign {
  static constexpr Names<1> kSlots = {"m"};
  static constexpr Names<4> kBefore = {"lr", "logbase", "sign_decay", "beta"};
  static constexpr Names<0> kAfter = {};
  template <class C>
  WEIR_HD static void Update(C& var, std::array<C, 1>& s, C g, const std::array<C, 4>& p, StepFlags) {
    s[0] = s[0] * p[3] + g * (C(1) - p[3]);
    var -= p[0] * std::exp(p[1] * p[2] * SignOf(g) * SignOf(s[0])) * g;
  }
};

/// A step of size `rate` and the proximal operator of l1 |x| + l2 x^2 / 2.
template <class C>
WEIR_HD C Proximal(C var, C g, C rate, C l1, C l2) {
  const C moved = var - rate * g;
  return (l1 > C(0) ? Shrunk(moved, rate * l1) : moved) / (C(1) + rate * l2);
}

struct ProximalDescent {
  static constexpr Names<0> kSlots = {};
  static constexpr Names<3> kBefore = {"alpha", "l1", "l2"};
  static constexpr Names<0> kAfter = {};
  static constexpr size_t kRate = 0;
  template <class C>
  WEIR_HD static void Update(C& var, std::array<C, 0>&, C g, const std::array<C, 3>& p, StepFlags) {
    var = Proximal(var, g, p[0], p[1], p[2]);
  }
};

struct ProximalAdagrad {
  static constexpr Names<1> kSlots = {"accum"};
  static constexpr Names<3> kBefore = {"lr", "l1", "l2"};
  static constexpr Names<0> kAfter = {};
  template <class C>
  WEIR_HD static void Update(C& var, std::array<C, 1>& s, C g, const std::array<C, 3>& p, StepFlags) {
    s[0] += g * g;
    var = Proximal(var, g, p[0] / std::sqrt(s[0]), p[1], p[2]);
  }
};

struct AdagradDa {
  static constexpr Names<2> kSlots = {"gradient_accumulator", "gradient_squared_accumulator"};
  static constexpr Names<0> kBefore = {};
  static constexpr Names<3> kAfter = {"lr", "l1", "l2"};
  static constexpr bool kCounts = true;  // a last number, global_step
  template <class C>
  WEIR_HD static void Update(C& var, std::array<C, 2>& s, C g, const std::array<C, 4>& p, StepFlags) {
    s[0] += g;
    s[1] += g * g;
    const C sum = p[1] > C(0) ? Shrunk(s[0], p[1] * p[3]) : s[0];
    var = -p[0] * sum / (p[2] * p[3] * p[0] + std::sqrt(s[1]));
  }
};

/// McMahan and others, 2013, algorithm 1.
template <bool kShrinkage>
struct FtrlRule {
  static constexpr Names<2> kSlots = {"accum", "linear"};
  static constexpr Names<0> kBefore = {};
  static constexpr auto kAfter = [] {
    if constexpr (kShrinkage) {
      return Names<5>{"lr", "l1", "l2", "l2_shrinkage", "lr_power"};
    } else {
      return Names<4>{"lr", "l1", "l2", "lr_power"};
    }
  }();
  template <class C, size_t n>
  WEIR_HD static void Update(C& var, std::array<C, 2>& s, C g, const std::array<C, n>& p, StepFlags flags) {
    const C lr = p[0], power = -p[n - 1], sum = s[0] + g * g;
    const C before = Power(s[0], power), behind = Power(sum, power);
    C gradient = g;
    if constexpr (kShrinkage) gradient += C(2) * p[3] * var;
    const C scale = flags.multiply_linear ? lr : C(1), over = flags.multiply_linear ? C(1) : lr;
    s[1] += gradient * scale - (behind - before) / over * var;
    const C l1 = p[1] * scale, quadratic = behind / over + C(2) * p[2] * scale;
    // As in TensorFlow, a NaN stays one in rows and becomes 0 in whole variables.
    const C inside = flags.rows ? s[1] - s[1] : C(0);
    var = std::fabs(s[1]) > l1 ? (SignOf(s[1]) * l1 - s[1]) / quadratic : inside;
    s[0] = sum;
  }
  template <class C>
  WEIR_HD static C Power(C x, C power) {
    return power == C(0.5) ? std::sqrt(x) : std::pow(x, power);
  }
};
using Ftrl = FtrlRule<false>;
using FtrlV2 = FtrlRule<true>;

template <class Rule>
constexpr size_t kCounted = requires {
  Rule::kCounts;
}
? 1 : 0;

/// Reads the attributes and checks the operands of a step: dense, or of the rows that the operand behind the gradient
/// names.
template <class Rule, bool kSparse>
int32_t PrepareStep(const sdk::Prep& prep, StepFlags* flags, Places* places) {
  constexpr uint32_t kGrad = 1 + Rule::kSlots.size() + Rule::kBefore.size();
  flags->nesterov = prep.node().Bool("use_nesterov");
  flags->update_slots = prep.node().Bool("update_slots", true);
  flags->multiply_linear = prep.node().Bool("multiply_linear_by_lr");
  flags->rows = kSparse;
  const sdk::Error& error = prep.error();
  uint32_t at = 1;
  int32_t code = WEIR_OK;
  for (const char* slot : Rule::kSlots) {
    if ((code = CheckShape(error, prep.shape(0), prep.shape(at++), slot)) != WEIR_OK) return code;
  }
  for (const char* number : Rule::kBefore) {
    if ((code = CheckScalar(error, prep.shape(at++), number)) != WEIR_OK) return code;
  }
  at = kGrad + 1 + (kSparse ? 1 : 0);
  for (const char* number : Rule::kAfter) {
    if ((code = CheckScalar(error, prep.shape(at++), number)) != WEIR_OK) return code;
  }
  if constexpr (kCounted<Rule> != 0) {
    if ((code = CheckScalar(error, prep.shape(at), "global_step")) != WEIR_OK) return code;
  }
  if constexpr (kSparse) return FindRows(prep, kGrad, places);
  constexpr bool kDelta = requires { Rule::kRate; };
  return CheckShape(error, prep.shape(0), prep.shape(kGrad), kDelta ? "delta" : "grad");
}

}  // namespace weir::functors

#endif  // WEIR_PLUGINS_FUNCTORS_OPTIMISERS_H_
