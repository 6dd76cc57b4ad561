// Optimiser steps as rules for one element, dense or of the rows that an operand names. One kernel serves the ref op
// and the resource op.
#include <array>
#include <cmath>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "plugins/functors/optimisers.h"
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

template <class T, size_t>
using Each = T;

/// The steps of which TensorFlow checks the values of rates and strengths.
template <class Rule, bool kSparse>
constexpr bool kChecksNumbers = std::is_same_v<Rule, functors::ProximalAdagrad> ||
                                (kSparse &&
                                 (std::is_same_v<Rule, functors::Ftrl> || std::is_same_v<Rule, functors::FtrlV2>));

/// InvalidArgument with TensorFlow's text for a number, named as in the rule, that is out of its range, or NaN.
template <class C>
int32_t CheckNumber(const sdk::Error& error, std::string_view name, C number, const functors::StepFlags& flags,
                    bool zero_rate) {
  if (name == "lr") {
    if (number > C(0) || (zero_rate && flags.multiply_linear && number == C(0))) return WEIR_OK;
    return error.InvalidArgument("lr is not a positive scalar",
                                 zero_rate ? " (or zero if multiply_linear_by_lr is set)" : "", ": []");
  }
  if (name == "lr_power") {
    return number <= C(0) ? WEIR_OK : error.InvalidArgument("lr_power is not a non-positive scalar: []");
  }
  if (number >= C(0)) return WEIR_OK;
  return error.InvalidArgument(name == "l2_shrinkage" ? "l2 shrinkage" : name,
                               " regularization strength is not a non-negative scalar: []");
}

/// The kernel of a rule: by slot (S), number before the gradient (B), operand of indices (I), number behind it (A) and
/// counter (G).
template <class Rule, class S, class B, class I, class A, class G>
struct StepKernel;
template <class Rule, size_t... S, size_t... B, size_t... I, size_t... A, size_t... G>
struct StepKernel<Rule, std::index_sequence<S...>, std::index_sequence<B...>, std::index_sequence<I...>,
                  std::index_sequence<A...>, std::index_sequence<G...>> {
  static constexpr uint32_t kGrad = 1 + sizeof...(S) + sizeof...(B);
  static constexpr bool kSparse = sizeof...(I) != 0;

  functors::StepFlags flags;
  Places places;

  int32_t Prepare(sdk::Prep& prep) { return functors::PrepareStep<Rule, kSparse>(prep, &flags, &places); }

  template <class T>
  int32_t Run(Env& env, Variable<T> var, Each<Variable<T>, S>... slots, Each<View<const T>, B>... before,
              View<const T> grad, Each<Integers, I>... indices, Each<View<const T>, A>... after,
              Each<Integers, G>... count) const {
    using C = sdk::Compute<T>;
    const std::array<T*, sizeof...(S)> held{slots.data()...};
    const std::array<C, sizeof...(B) + sizeof...(A) + sizeof...(G)> numbers{
        static_cast<C>(before[0])..., static_cast<C>(after[0])..., static_cast<C>(count[0])...};
    if constexpr (kChecksNumbers<Rule, kSparse>) {
      const auto check = [&](const auto& names, size_t first) {
        int32_t code = WEIR_OK;
        for (size_t i = 0; i < names.size() && code == WEIR_OK; ++i) {
          code = CheckNumber(env.error(), names[i], numbers[first + i], flags, sizeof...(A) != 0);
        }
        return code;
      };
      if (const int32_t code = check(Rule::kBefore, 0); code != WEIR_OK) return code;
      if (const int32_t code = check(Rule::kAfter, Rule::kBefore.size()); code != WEIR_OK) return code;
    }
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
using KernelOf =
    StepKernel<Rule, std::make_index_sequence<Rule::kSlots.size()>, std::make_index_sequence<Rule::kBefore.size()>,
               std::make_index_sequence<indices>, std::make_index_sequence<Rule::kAfter.size()>,
               std::make_index_sequence<functors::kCounted<Rule>>>;

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
  k.Add<KernelOf<functors::KerasMomentum, 0>>("ResourceApplyKerasMomentum", kFloating).Class(WEIR_CLASS_ELEMENTWISE, 4);
  k.Add<KernelOf<functors::KerasMomentum, 1>>("ResourceSparseApplyKerasMomentum", kFloating)
      .Class(WEIR_CLASS_GATHER, 4);
  AddBoth<functors::Adagrad>(k, "Adagrad", 10);
  AddBoth<functors::AdagradV2>(k, "AdagradV2", 11);
  AddBoth<functors::RmsProp>(k, "RMSProp", 15);
  AddBoth<functors::CenteredRmsProp>(k, "CenteredRMSProp", 20);
  AddBoth<functors::Adadelta>(k, "Adadelta", 25);
  AddDense<functors::AdaMax>(k, "AdaMax", 12);
  AddDense<functors::AddSign>(k, "AddSign", 10);
  AddDense<functors::PowerSign>(k, "PowerSign", 20);
  AddBoth<functors::ProximalDescent>(k, "ProximalGradientDescent", 8);
  AddBoth<functors::ProximalAdagrad>(k, "ProximalAdagrad", 15);
  AddBoth<functors::AdagradDa>(k, "AdagradDA", 15);
  AddBoth<functors::Ftrl>(k, "Ftrl", 25);
  AddBoth<functors::FtrlV2>(k, "FtrlV2", 27);
}

}  // namespace weir::kernels_eigen
