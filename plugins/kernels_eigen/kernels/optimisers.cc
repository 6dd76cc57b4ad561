// The optimiser steps of most models: in-place updates of variables and their slots. One kernel serves the ref op and
// the resource op. adaptive.cc has the others.
#include <cmath>
#include <complex>

#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/families.h"
#include "plugins/kernels_eigen/kernels/step_checks.h"
#include "sdk/cpp/elementwise.h"
#include "sdk/cpp/kernel.h"

namespace weir::kernels_eigen {
namespace {

using sdk::Env;
using sdk::Variable;
using sdk::View;

/// The first error of a list of checks.
template <class... Codes>
int32_t FirstOf(Codes... codes) {
  int32_t first = WEIR_OK;
  ((first = first != WEIR_OK ? first : codes), ...);
  return first;
}

/// var -= alpha * delta
struct GradientDescent {
  template <class T>
  int32_t Run(Env& env, Variable<T> var, View<const T> alpha, View<const T> delta) const {
    if (const int32_t code = CheckScalar(env.error(), alpha.shape(), "alpha"); code != WEIR_OK) return code;
    if (const int32_t code = CheckShape(env.error(), var.shape(), delta.shape(), "delta"); code != WEIR_OK) return code;
    using C = sdk::Compute<T>;
    const C rate = static_cast<C>(alpha[0]);
    T* to = var.data();
    const T* d = delta.data();
    const int64_t n = var.size();
    WEIR_INDEPENDENT
    for (int64_t i = 0; i < n; ++i) to[i] = static_cast<T>(static_cast<C>(to[i]) - rate * static_cast<C>(d[i]));
    return WEIR_OK;
  }
};

/// accum = accum * momentum + grad; var -= lr * accum, or with Nesterov momentum var -= lr * (grad + momentum * accum).
template <class T, class C>
void MomentumStep(T* to, T* a, const T* g, int64_t n, C rate, C keep, bool ahead) {
  WEIR_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) {
    const C gradient = static_cast<C>(g[i]), sum = static_cast<C>(a[i]) * keep + gradient;
    a[i] = static_cast<T>(sum);
    const C step = ahead ? gradient * rate + sum * keep * rate : sum * rate;
    to[i] = static_cast<T>(static_cast<C>(to[i]) - step);
  }
}

struct Momentum {
  bool nesterov = false;
  void Prepare(sdk::Prep& prep) { nesterov = prep.node().Bool("use_nesterov"); }

  template <class T>
  int32_t Run(Env& env, Variable<T> var, Variable<T> accum, View<const T> lr, View<const T> grad,
              View<const T> momentum) const {
    if (const int32_t code = CheckScalar(env.error(), lr.shape(), "lr"); code != WEIR_OK) return code;
    if (const int32_t code = CheckScalar(env.error(), momentum.shape(), "momentum"); code != WEIR_OK) return code;
    if (const int32_t code = CheckShape(env.error(), var.shape(), accum.shape(), "accum"); code != WEIR_OK) return code;
    if (const int32_t code = CheckShape(env.error(), var.shape(), grad.shape(), "grad"); code != WEIR_OK) return code;
    using C = sdk::Compute<T>;
    MomentumStep(var.data(), accum.data(), grad.data(), var.size(), static_cast<C>(lr[0]), static_cast<C>(momentum[0]),
                 nesterov);
    return WEIR_OK;
  }
};

/// The same for rows, in order. Nothing is changed if an index is out of range.
struct SparseMomentum {
  bool nesterov = false;
  Places places;

  int32_t Prepare(sdk::Prep& prep) {
    nesterov = prep.node().Bool("use_nesterov");
    const sdk::Error& error = prep.error();
    const int32_t code =
        FirstOf(CheckShape(error, prep.shape(0), prep.shape(1), "accum"), CheckScalar(error, prep.shape(2), "lr"),
                CheckScalar(error, prep.shape(5), "momentum"));
    return code != WEIR_OK ? code : FindRows(prep, 3, &places);
  }

  template <class T>
  int32_t Run(Env& env, Variable<T> var, Variable<T> accum, View<const T> lr, View<const T> grad, sdk::Integers indices,
              View<const T> momentum) const {
    if (const int32_t code = CheckRows(env.error(), places, indices); code != WEIR_OK) return code;
    using C = sdk::Compute<T>;
    const C rate = static_cast<C>(lr[0]), keep = static_cast<C>(momentum[0]);
    for (int64_t i = 0; i < places.count; ++i) {
      const int64_t at = places.At(indices, i);
      MomentumStep(var.data() + at, accum.data() + at, grad.data() + i * places.row, places.row, rate, keep, nesterov);
    }
    return WEIR_OK;
  }
};

/// Adam as in Kingma and Ba (2015), section 2, with the bias corrections folded into the rate.
struct Adam {
  bool nesterov = false;
  void Prepare(sdk::Prep& prep) { nesterov = prep.node().Bool("use_nesterov"); }

  template <class T>
  int32_t Run(Env& env, Variable<T> var, Variable<T> m, Variable<T> v, View<const T> beta1_power,
              View<const T> beta2_power, View<const T> lr, View<const T> beta1, View<const T> beta2,
              View<const T> epsilon, View<const T> grad) const {
    if (const int32_t code = Check(env, var.shape(), m.shape(), v.shape(), grad.shape()); code != WEIR_OK) return code;
    const int32_t scalars =
        FirstOf(CheckScalar(env.error(), beta1_power.shape(), "beta1_power"),
                CheckScalar(env.error(), beta2_power.shape(), "beta2_power"),
                CheckScalar(env.error(), lr.shape(), "lr"), CheckScalar(env.error(), beta1.shape(), "beta1"),
                CheckScalar(env.error(), beta2.shape(), "beta2"), CheckScalar(env.error(), epsilon.shape(), "epsilon"));
    if (scalars != WEIR_OK) return scalars;
    using C = sdk::Compute<T>;
    const C one(1), b1 = static_cast<C>(beta1[0]), b2 = static_cast<C>(beta2[0]), eps = static_cast<C>(epsilon[0]);
    const C rate = static_cast<C>(lr[0]) * std::sqrt(one - static_cast<C>(beta2_power[0])) /
                   (one - static_cast<C>(beta1_power[0]));
    Step(var.data(), m.data(), v.data(), grad.data(), var.size(), rate, b1, b2, eps);
    return WEIR_OK;
  }

  static int32_t Check(const Env& env, const weir_shape& var, const weir_shape& m, const weir_shape& v,
                       const weir_shape& grad) {
    return FirstOf(CheckShape(env.error(), var, m, "m"), CheckShape(env.error(), var, v, "v"),
                   CheckShape(env.error(), var, grad, "grad"));
  }

  template <class T, class C>
  void Step(T* to, T* m, T* v, const T* g, int64_t n, C rate, C b1, C b2, C eps) const {
    const bool ahead = nesterov;
    const C one(1);
    WEIR_INDEPENDENT
    for (int64_t i = 0; i < n; ++i) {
      const C gradient = static_cast<C>(g[i]), m0 = static_cast<C>(m[i]), v0 = static_cast<C>(v[i]);
      const C m1 = m0 + (gradient - m0) * (one - b1), v1 = v0 + (gradient * gradient - v0) * (one - b2);
      m[i] = static_cast<T>(m1);
      v[i] = static_cast<T>(v1);
      const C direction = ahead ? gradient * (one - b1) + b1 * m1 : m1;
      to[i] = static_cast<T>(static_cast<C>(to[i]) - direction * rate / (std::sqrt(v1) + eps));
    }
  }
};

}  // namespace

void AddOptimisers(sdk::KernelTable& k) {
  k.Add<GradientDescent>("ApplyGradientDescent", kFloatingOrComplex).Class(WEIR_CLASS_ELEMENTWISE, 2);
  k.Add<GradientDescent>("ResourceApplyGradientDescent", kFloatingOrComplex).Class(WEIR_CLASS_ELEMENTWISE, 2);
  k.Add<Momentum>("ApplyMomentum", kFloatingOrComplex).Class(WEIR_CLASS_ELEMENTWISE, 4);
  k.Add<Momentum>("ResourceApplyMomentum", kFloatingOrComplex).Class(WEIR_CLASS_ELEMENTWISE, 4);
  k.Add<SparseMomentum>("SparseApplyMomentum", kFloatingOrComplex).Class(WEIR_CLASS_GATHER, 4);
  k.Add<SparseMomentum>("ResourceSparseApplyMomentum", kFloatingOrComplex).Class(WEIR_CLASS_GATHER, 4);
  k.Add<Adam>("ApplyAdam", kFloatingOrComplex).Class(WEIR_CLASS_ELEMENTWISE, 14);
  k.Add<Adam>("ResourceApplyAdam", kFloatingOrComplex).Class(WEIR_CLASS_ELEMENTWISE, 14);
}

}  // namespace weir::kernels_eigen
