// Optimiser steps as rules for one element, dense or of the rows that an operand names. One kernel serves the ref op
// and the resource op.
#include <array>
#include <cmath>
#include <string>
#include <utility>

#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/families.h"
#include "plugins/kernels_eigen/kernels/step_checks.h"
#include "sdk/cpp/elementwise.h"
#include "sdk/cpp/kernel.h"

namespace weir::kernels_eigen {
namespace {

using sdk::Env;
using sdk::Integers;
using sdk::Variable;
using sdk::View;

/// Attributes of any of the ops.
struct Flags {
  bool nesterov = false, update_slots = true, multiply_linear = false;
};

template <size_t n>
using Names = std::array<const char*, n>;

template <class C>
C SignOf(C x) {
  return C(x > C(0)) - C(x < C(0));
}

/// sign(x) * max(|x| - by, 0).
template <class C>
C Shrunk(C x, C by) {
  const C rest = std::fabs(x) - by;
  return rest > C(0) ? SignOf(x) * rest : C(0);
}

// A rule has the names of its slots and of the numbers before and behind the gradient. It updates one element `var` and
// its slots `s` by the gradient g and the numbers p, in the op's order.

struct KerasMomentum {
  static constexpr Names<1> kSlots = {"accum"}, kBefore = {"lr"}, kAfter = {"momentum"};
  template <class C>
  static void Update(C& var, std::array<C, 1>& s, C g, const std::array<C, 2>& p, Flags flags) {
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
  static void Update(C& var, std::array<C, 1>& s, C g, const std::array<C, n>& p, Flags flags) {
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
  static void Update(C& var, std::array<C, 2>& s, C g, const std::array<C, 4>& p, Flags) {
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
  static void Update(C& var, std::array<C, 3>& s, C g, const std::array<C, 4>& p, Flags) {
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
  static void Update(C& var, std::array<C, 2>& s, C g, const std::array<C, 3>& p, Flags) {
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
  static void Update(C& var, std::array<C, 2>& s, C g, const std::array<C, 5>& p, Flags) {
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
  static void Update(C& var, std::array<C, 1>& s, C g, const std::array<C, 4>& p, Flags) {
    s[0] = s[0] * p[3] + g * (C(1) - p[3]);
    var -= p[0] * (p[1] + p[2] * SignOf(g) * SignOf(s[0])) * g;
  }
};
struct PowerSign {
  static constexpr Names<1> kSlots = {"m"};
  static constexpr Names<4> kBefore = {"lr", "logbase", "sign_decay", "beta"};
  static constexpr Names<0> kAfter = {};
  template <class C>
  static void Update(C& var, std::array<C, 1>& s, C g, const std::array<C, 4>& p, Flags) {
    s[0] = s[0] * p[3] + g * (C(1) - p[3]);
    var -= p[0] * std::exp(p[1] * p[2] * SignOf(g) * SignOf(s[0])) * g;
  }
};

/// A step of size `rate` and the proximal operator of l1 |x| + l2 x^2 / 2.
template <class C>
C Proximal(C var, C g, C rate, C l1, C l2) {
  const C moved = var - rate * g;
  return (l1 > C(0) ? Shrunk(moved, rate * l1) : moved) / (C(1) + rate * l2);
}

struct ProximalDescent {
  static constexpr Names<0> kSlots = {};
  static constexpr Names<3> kBefore = {"alpha", "l1", "l2"};
  static constexpr Names<0> kAfter = {};
  static constexpr size_t kRate = 0;
  template <class C>
  static void Update(C& var, std::array<C, 0>&, C g, const std::array<C, 3>& p, Flags) {
    var = Proximal(var, g, p[0], p[1], p[2]);
  }
};

struct ProximalAdagrad {
  static constexpr Names<1> kSlots = {"accum"};
  static constexpr Names<3> kBefore = {"lr", "l1", "l2"};
  static constexpr Names<0> kAfter = {};
  template <class C>
  static void Update(C& var, std::array<C, 1>& s, C g, const std::array<C, 3>& p, Flags) {
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
  static void Update(C& var, std::array<C, 2>& s, C g, const std::array<C, 4>& p, Flags) {
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
  static void Update(C& var, std::array<C, 2>& s, C g, const std::array<C, n>& p, Flags flags) {
    const C lr = p[0], power = -p[n - 1], sum = s[0] + g * g;
    const C before = Power(s[0], power), behind = Power(sum, power);
    C gradient = g;
    if constexpr (kShrinkage) gradient += C(2) * p[3] * var;
    const C scale = flags.multiply_linear ? lr : C(1), over = flags.multiply_linear ? C(1) : lr;
    s[1] += gradient * scale - (behind - before) / over * var;
    const C l1 = p[1] * scale, quadratic = behind / over + C(2) * p[2] * scale;
    var = std::fabs(s[1]) > l1 ? (SignOf(s[1]) * l1 - s[1]) / quadratic : C(0);
    s[0] = sum;
  }
  template <class C>
  static C Power(C x, C power) {
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

template <class T, size_t>
using Each = T;

/// The kernel of a rule: by slot (S), number before the gradient (B), operand of indices (I), number behind it (A) and
/// counter (G).
template <class Rule, class S, class B, class I, class A, class G>
struct StepKernel;
template <class Rule, size_t... S, size_t... B, size_t... I, size_t... A, size_t... G>
struct StepKernel<Rule, std::index_sequence<S...>, std::index_sequence<B...>, std::index_sequence<I...>,
                  std::index_sequence<A...>, std::index_sequence<G...>> {
  static constexpr uint32_t kGrad = 1 + sizeof...(S) + sizeof...(B);
  static constexpr bool kSparse = sizeof...(I) != 0;

  Flags flags;
  Places places;

  int32_t Prepare(sdk::Prep& prep) {
    flags.nesterov = prep.node().Bool("use_nesterov");
    flags.update_slots = prep.node().Bool("update_slots", true);
    flags.multiply_linear = prep.node().Bool("multiply_linear_by_lr");
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
    if constexpr (sizeof...(G) != 0) {
      if ((code = CheckScalar(error, prep.shape(at), "global_step")) != WEIR_OK) return code;
    }
    if constexpr (kSparse) return FindRows(prep, kGrad, &places);
    constexpr bool kDelta = requires { Rule::kRate; };
    return CheckShape(error, prep.shape(0), prep.shape(kGrad), kDelta ? "delta" : "grad");
  }

  template <class T>
  int32_t Run(Env& env, Variable<T> var, Each<Variable<T>, S>... slots, Each<View<const T>, B>... before,
              View<const T> grad, Each<Integers, I>... indices, Each<View<const T>, A>... after,
              Each<Integers, G>... count) const {
    using C = sdk::Compute<T>;
    const std::array<T*, sizeof...(S)> held{slots.data()...};
    const std::array<C, sizeof...(B) + sizeof...(A) + sizeof...(G)> numbers{
        static_cast<C>(before[0])..., static_cast<C>(after[0])..., static_cast<C>(count[0])...};
    if constexpr (kSparse) {
      return Rows(env, var.data(), held, grad.data(), numbers, indices...);
    } else {
      Update(var.data(), held, grad.data(), var.size(), numbers);
      return WEIR_OK;
    }
  }

  template <class T, size_t slots, class C, size_t count>
  int32_t Rows(Env& env, T* var, const std::array<T*, slots>& held, const T* grad, const std::array<C, count>& numbers,
               const Integers& indices) const {
    if (const int32_t code = CheckRows(env.error(), places, indices); code != WEIR_OK) return code;
    for (int64_t i = 0; i < places.count; ++i) {
      const int64_t at = places.At(indices, i);
      std::array<T*, slots> row = held;
      for (T*& slot : row) slot += at;
      Update(var + at, row, grad + i * places.row, places.row, numbers);
    }
    return WEIR_OK;
  }

  template <class T, size_t slots, class C, size_t count>
  void Update(T* var, const std::array<T*, slots>& held, const T* grad, int64_t n,
              const std::array<C, count>& numbers) const {
    WEIR_INDEPENDENT
    for (int64_t i = 0; i < n; ++i) {
      C value = static_cast<C>(var[i]);
      std::array<C, slots> own;
      for (size_t s = 0; s < slots; ++s) own[s] = static_cast<C>(held[s][i]);
      Rule::Update(value, own, static_cast<C>(grad[i]), numbers, flags);
      var[i] = static_cast<T>(value);
      for (size_t s = 0; s < slots; ++s) held[s][i] = static_cast<T>(own[s]);
    }
  }
};

template <class Rule, size_t indices>
using KernelOf = StepKernel<Rule, std::make_index_sequence<Rule::kSlots.size()>,
                            std::make_index_sequence<Rule::kBefore.size()>, std::make_index_sequence<indices>,
                            std::make_index_sequence<Rule::kAfter.size()>, std::make_index_sequence<kCounted<Rule>>>;

template <class Rule>
void AddDense(sdk::KernelTable& k, const std::string& name, double flops) {
  for (const char* prefix : {"Apply", "ResourceApply"}) {
    k.Add<KernelOf<Rule, 0>>(prefix + name, kFloating).Class(WEIR_CLASS_ELEMENTWISE, flops);
  }
}
template <class Rule>
void AddSparse(sdk::KernelTable& k, const std::string& name, double flops) {
  for (const char* prefix : {"SparseApply", "ResourceSparseApply"}) {
    k.Add<KernelOf<Rule, 1>>(prefix + name, kFloating).Class(WEIR_CLASS_GATHER, flops);
  }
}
template <class Rule>
void AddBoth(sdk::KernelTable& k, const std::string& name, double flops) {
  AddDense<Rule>(k, name, flops);
  AddSparse<Rule>(k, name, flops);
}

}  // namespace

void AddAdaptive(sdk::KernelTable& k) {
  k.Add<KernelOf<KerasMomentum, 0>>("ResourceApplyKerasMomentum", kFloating).Class(WEIR_CLASS_ELEMENTWISE, 4);
  k.Add<KernelOf<KerasMomentum, 1>>("ResourceSparseApplyKerasMomentum", kFloating).Class(WEIR_CLASS_GATHER, 4);
  AddBoth<Adagrad>(k, "Adagrad", 10);
  AddBoth<AdagradV2>(k, "AdagradV2", 11);
  AddBoth<RmsProp>(k, "RMSProp", 15);
  AddBoth<CenteredRmsProp>(k, "CenteredRMSProp", 20);
  AddBoth<Adadelta>(k, "Adadelta", 25);
  AddDense<AdaMax>(k, "AdaMax", 12);
  AddDense<AddSign>(k, "AddSign", 10);
  AddDense<PowerSign>(k, "PowerSign", 20);
  AddBoth<ProximalDescent>(k, "ProximalGradientDescent", 8);
  AddBoth<ProximalAdagrad>(k, "ProximalAdagrad", 15);
  AddBoth<AdagradDa>(k, "AdagradDA", 15);
  AddBoth<Ftrl>(k, "Ftrl", 25);
  AddBoth<FtrlV2>(k, "FtrlV2", 27);
}

}  // namespace weir::kernels_eigen
