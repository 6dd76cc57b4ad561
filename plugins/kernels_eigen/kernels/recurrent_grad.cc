// Gradients of recurrent blocks: LSTMBlockCellGrad, BlockLSTMGrad, BlockLSTMGradV2, GRUBlockCellGrad.
#include <algorithm>

#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/kernels/recurrent_plan.h"
#include "plugins/kernels_eigen/sequence_families.h"

namespace weir::kernels_eigen {
namespace {

using sdk::Integers;
using sdk::Prep;
using sdk::Scratch;
using sdk::View;

/// Gates, cell and tanh of the cell of some rows, and the cell before.
template <class T>
struct LstmRows {
  const T *i, *cs, *f, *o, *ci, *co, *cs_prev;

  LstmRows At(int64_t n) const { return {i + n, cs + n, f + n, o + n, ci + n, co + n, cs_prev + n}; }
};

template <class T>
struct Peepholes {
  const T *ci, *cf, *co;
};

struct LstmBackward : LstmPlan {
  /// One row of the batch. `dcs` is the gradient by the cell and becomes that by the cell before; the gradients by the
  /// peepholes are added to.
  template <class T>
  void Row(const LstmRows<T>& v, const Peepholes<T>& w, const float* dh, float* dcs, float* gates,
           float* const (&dw)[3]) const {
    float *di = gates, *dci = gates + column_ci * cells, *df = gates + column_f * cells, *d_o = gates + 3 * cells;
    for (int64_t j = 0; j < cells; ++j) {
      const auto i = static_cast<float>(v.i[j]), f = static_cast<float>(v.f[j]), o = static_cast<float>(v.o[j]);
      const auto ci = static_cast<float>(v.ci[j]), co = static_cast<float>(v.co[j]);
      const auto cs_prev = static_cast<float>(v.cs_prev[j]);
      d_o[j] = o * (1 - o) * dh[j] * co;
      float cell = (1 - co * co) * dh[j] * o + dcs[j];
      if (peephole) cell += d_o[j] * static_cast<float>(w.co[j]);
      dci[j] = (1 - ci * ci) * cell * i;
      df[j] = f * (1 - f) * cell * cs_prev;
      di[j] = i * (1 - i) * cell * ci;
      dcs[j] = cell * f;
      if (!peephole) continue;
      dcs[j] += di[j] * static_cast<float>(w.ci[j]) + df[j] * static_cast<float>(w.cf[j]);
      dw[0][j] += di[j] * cs_prev;
      dw[1][j] += df[j] * cs_prev;
      dw[2][j] += d_o[j] * static_cast<float>(v.cs[j]);
    }
  }
};

template <class T>
void Store(const float* from, int64_t n, T* to) {
  for (int64_t i = 0; i < n; ++i) to[i] = T(from[i]);
}

struct LstmCellGrad : LstmBackward {
  int64_t at_cell = 0, at_h = 0, at_gates = 0, at_peepholes = 0;

  int32_t Prepare(Prep& prep) {
    if (const int32_t code = Plan(prep, 0, false); code != WEIR_OK) return code;
    OperandCheck check(prep);
    CheckValues(check, 8, false, {batch, cells});
    check.Output(0, {batch, cells});
    check.Output(1, {batch, gates()});
    for (uint32_t i = 2; i < 5; ++i) check.Output(i, {cells});
    FloatParts parts;
    at_peepholes = parts.Take(3 * cells);
    at_cell = parts.Take(batch == 0 ? 0 : cells);
    at_h = parts.Take(batch == 0 ? 0 : cells);
    at_gates = parts.Take(batch == 0 ? 0 : gates());
    prep.Scratch(parts.bytes());
    return check.code();
  }

  template <class T>
  void Run(View<const T>, View<const T> cs_prev, View<const T>, View<const T>, View<const T> wci, View<const T> wcf,
           View<const T> wco, View<const T>, View<const T> i, View<const T> cs, View<const T> f, View<const T> o,
           View<const T> ci, View<const T> co, View<const T> cs_grad, View<const T> h_grad, View<T> cs_prev_grad,
           View<T> gate_grads, View<T> wci_grad, View<T> wcf_grad, View<T> wco_grad, Scratch<float> memory) const {
    float* scratch = memory.data();
    float* dw = scratch + at_peepholes;
    std::fill_n(dw, 3 * cells, 0.0f);
    const LstmRows<T> values{i.data(), cs.data(), f.data(), o.data(), ci.data(), co.data(), cs_prev.data()};
    for (int64_t row = 0; row < batch && cells > 0; ++row) {
      for (int64_t j = 0; j < cells; ++j) {
        scratch[at_cell + j] = static_cast<float>(cs_grad[row * cells + j]);
        scratch[at_h + j] = static_cast<float>(h_grad[row * cells + j]);
      }
      Row(values.At(row * cells), Peepholes<T>{wci.data(), wcf.data(), wco.data()}, scratch + at_h, scratch + at_cell,
          scratch + at_gates, {dw, dw + cells, dw + 2 * cells});
      Store(scratch + at_cell, cells, cs_prev_grad.data() + row * cells);
      Store(scratch + at_gates, gates(), gate_grads.data() + row * gates());
    }
    Store(dw, cells, wci_grad.data());
    Store(dw + cells, cells, wcf_grad.data());
    Store(dw + 2 * cells, cells, wco_grad.data());
  }
};

/// Operands and outputs of BlockLSTMGrad.
template <class T>
struct LstmGradArgs {
  const T *x, *cs_prev, *h_prev, *w;
  Peepholes<T> peepholes;
  LstmRows<T> values;  // of the whole layer; cs_prev is not used
  const T *h, *cs_grad, *h_grad;
  T *x_grad, *cs_prev_grad, *h_prev_grad, *w_grad, *wci_grad, *wcf_grad, *wco_grad, *b_grad;
};

template <bool kSecond>
struct LstmGrad : LstmBackward {
  RecurrentProduct by_h, by_x, by_wx, by_wh;
  int64_t at_w = 0, at_x = 0, at_h = 0, at_gates = 0, at_dcs = 0, at_dh = 0, at_sums = 0, at_dx = 0, at_dw = 0;

  int32_t Prepare(Prep& prep) {
    if (prep.shape(0).rank != 0) {
      return prep.error().InvalidArgument("`seq_len_max_tensor` must be rank 0 but is rank ", prep.shape(0).rank);
    }
    if (kSecond) SwapGates();
    if (const int32_t code = Plan(prep, 1, true); code != WEIR_OK) return code;
    OperandCheck check(prep);
    CheckValues(check, 9, true, {time, batch, cells});
    const bool half = prep.input(1).dtype == WEIR_FLOAT16, none = empty() || time == 0;
    const int64_t steps = none ? 0 : time, rows = none ? 0 : time * batch;
    FloatParts parts;
    at_w = parts.Take(half && !none ? (inputs + cells) * gates() : 0);
    at_x = parts.Take(half ? rows * inputs : 0);
    at_h = parts.Take(rows * cells);
    at_gates = parts.Take(rows * gates());
    at_dcs = parts.Take(steps == 0 ? 0 : state());
    at_dh = parts.Take(steps == 0 ? 0 : state());
    at_sums = parts.Take(7 * cells);  // by the peepholes and biases
    at_dx = parts.Take(half ? rows * inputs : 0);
    at_dw = parts.Take(half && !none ? (inputs + cells) * gates() : 0);
    by_h.Plan(none ? 0 : batch, cells, gates(), false, true, parts);
    by_x.Plan(rows, inputs, gates(), false, true, parts);
    by_wx.Plan(none ? 0 : inputs, gates(), rows, true, false, parts);
    by_wh.Plan(none ? 0 : cells, gates(), rows, true, false, parts);
    prep.Scratch(parts.bytes());
    return check.code();
  }

  template <class T>
  int32_t Run(sdk::Env& env, Integers steps, View<const T> x, View<const T> cs_prev, View<const T> h_prev,
              View<const T> w, View<const T> wci, View<const T> wcf, View<const T> wco, View<const T>, View<const T> i,
              View<const T> cs, View<const T> f, View<const T> o, View<const T> ci, View<const T> co, View<const T> h,
              View<const T> cs_grad, View<const T> h_grad, View<T> x_grad, View<T> cs_prev_grad, View<T> h_prev_grad,
              View<T> w_grad, View<T> wci_grad, View<T> wcf_grad, View<T> wco_grad, View<T> b_grad,
              Scratch<float> memory) const {
    if (steps[0] < 0 || steps[0] > time) {
      return env.error().InvalidArgument("seq_len_max must be in [0, ", time, "], got ", steps[0]);
    }
    const LstmGradArgs<T> args{x.data(),
                               cs_prev.data(),
                               h_prev.data(),
                               w.data(),
                               {wci.data(), wcf.data(), wco.data()},
                               {i.data(), cs.data(), f.data(), o.data(), ci.data(), co.data(), nullptr},
                               h.data(),
                               cs_grad.data(),
                               h_grad.data(),
                               x_grad.data(),
                               cs_prev_grad.data(),
                               h_prev_grad.data(),
                               w_grad.data(),
                               wci_grad.data(),
                               wcf_grad.data(),
                               wco_grad.data(),
                               b_grad.data()};
    std::fill_n(memory.data() + at_sums, 7 * cells, 0.0f);
    if (empty() || time == 0) {
      std::fill_n(x_grad.data(), x_grad.size(), T(0.0f));
      std::fill_n(w_grad.data(), w_grad.size(), T(0.0f));
      std::fill_n(cs_prev_grad.data(), cs_prev_grad.size(), T(0.0f));
      std::fill_n(h_prev_grad.data(), h_prev_grad.size(), T(0.0f));
    } else {
      StepsBack(steps[0], args, memory.data());
      Weights(steps[0], args, memory.data());
    }
    const float* sums = memory.data() + at_sums;
    Store(sums, cells, args.wci_grad);
    Store(sums + cells, cells, args.wcf_grad);
    Store(sums + 2 * cells, cells, args.wco_grad);
    Store(sums + 3 * cells, gates(), args.b_grad);
    return WEIR_OK;
  }

 private:
  /// The gradients by the gates of every step, by the state before, and the sums.
  template <class T>
  void StepsBack(int64_t steps, const LstmGradArgs<T>& args, float* scratch) const {
    const float* weights = AsFloats(args.w, (inputs + cells) * gates(), scratch + at_w);
    float *dcs = scratch + at_dcs, *dh = scratch + at_dh, *sums = scratch + at_sums;
    const int64_t n = state();
    std::fill_n(dcs, n, 0.0f);
    std::fill_n(dh, n, 0.0f);
    for (int64_t t = steps - 1; t >= 0; --t) {
      for (int64_t j = 0; j < n; ++j) {
        dcs[j] += static_cast<float>(args.cs_grad[t * n + j]);
        dh[j] += static_cast<float>(args.h_grad[t * n + j]);
      }
      LstmRows<T> values = args.values.At(t * n);
      values.cs_prev = t == 0 ? args.cs_prev : args.values.cs + (t - 1) * n;
      float* step_gates = scratch + at_gates + t * batch * gates();
      for (int64_t row = 0; row < batch; ++row) {
        float* row_gates = step_gates + row * gates();
        Row(values.At(row * cells), args.peepholes, dh + row * cells, dcs + row * cells, row_gates,
            {sums, sums + cells, sums + 2 * cells});
        for (int64_t j = 0; j < gates(); ++j) sums[3 * cells + j] += row_gates[j];
      }
      by_h.Run(step_gates, weights + inputs * gates(), dh, scratch);
    }
    Store(dcs, n, args.cs_prev_grad);
    Store(dh, n, args.h_prev_grad);
  }

  /// The gradients by x and w.
  template <class T>
  void Weights(int64_t steps, const LstmGradArgs<T>& args, float* scratch) const {
    const int64_t rows = steps * batch, all = time * batch;
    const float* step_gates = scratch + at_gates;
    const float* weights = AsFloats(args.w, (inputs + cells) * gates(), scratch + at_w);
    float* x_grad = Floats(args.x_grad, scratch + at_dx);
    by_x.RunRows(rows, step_gates, weights, x_grad, scratch);
    std::fill_n(x_grad + rows * inputs, (all - rows) * inputs, 0.0f);
    float* w_grad = Floats(args.w_grad, scratch + at_dw);
    by_wx.RunDepth(rows, AsFloats(args.x, all * inputs, scratch + at_x), step_gates, w_grad, scratch);
    float* states = scratch + at_h;  // before each step
    for (int64_t j = 0; j < state(); ++j) states[j] = static_cast<float>(args.h_prev[j]);
    for (int64_t j = state(); j < rows * cells; ++j) states[j] = static_cast<float>(args.h[j - state()]);
    by_wh.RunDepth(rows, states, step_gates, w_grad + inputs * gates(), scratch);
    if constexpr (!std::is_same_v<T, float>) {
      Store(x_grad, all * inputs, args.x_grad);
      Store(w_grad, (inputs + cells) * gates(), args.w_grad);
    }
  }

  static float* Floats(float* out, float*) { return out; }
  template <class T>
  static float* Floats(T*, float* scratch) {
    return scratch;
  }
};

struct GruCellGrad : GruPlan {
  RecurrentProduct x_by_candidate, h_by_candidate, x_by_gates, h_by_gates;
  int64_t at_x = 0, at_h = 0;

  int32_t Prepare(Prep& prep) {
    if (const int32_t code = PlanGradient(prep); code != WEIR_OK) return code;
    FloatParts parts;
    at_x = parts.Take(batch, inputs);
    at_h = parts.Take(batch, cells);
    x_by_candidate.Plan(batch, inputs, cells, false, true, parts);
    h_by_candidate.Plan(batch, cells, cells, false, true, parts);
    x_by_gates.Plan(batch, inputs, 2 * cells, false, true, parts);
    h_by_gates.Plan(batch, cells, 2 * cells, false, true, parts);
    prep.Scratch(parts.bytes());
    return WEIR_OK;
  }

  void Run(View<const float>, View<const float> h_prev, View<const float> w_ru, View<const float> w_c,
           View<const float>, View<const float>, View<const float> r, View<const float> u, View<const float> c,
           View<const float> dh, View<float> dx, View<float> dh_prev, View<float> dc, View<float> dru,
           Scratch<float> memory) const {
    float *scratch = memory.data(), *reset = scratch + at_h, *more_x = scratch + at_x;
    const int64_t n = batch == 0 || cells == 0 ? 0 : batch * cells;
    for (int64_t j = 0; j < n; ++j) dc[j] = dh[j] * (1 - u[j]) * (1 - c[j] * c[j]);
    h_by_candidate.Run(dc.data(), w_c.data() + (n == 0 ? 0 : inputs * cells), reset, scratch);
    for (int64_t j = 0; j < n; ++j) {
      float* gates = dru.data() + j / cells * 2 * cells + j % cells;
      gates[0] = reset[j] * h_prev[j] * r[j] * (1 - r[j]);
      gates[cells] = dh[j] * (h_prev[j] - c[j]) * u[j] * (1 - u[j]);
    }
    h_by_gates.Run(dru.data(), w_ru.data() + (n == 0 ? 0 : inputs * 2 * cells), dh_prev.data(), scratch);
    for (int64_t j = 0; j < n; ++j) dh_prev[j] += reset[j] * r[j] + dh[j] * u[j];
    x_by_candidate.Run(dc.data(), w_c.data(), more_x, scratch);
    x_by_gates.Run(dru.data(), w_ru.data(), dx.data(), scratch);
    if (batch == 0 || inputs == 0) return;
    for (int64_t j = 0; j < batch * inputs; ++j) dx[j] += more_x[j];
  }
};

#if defined(WEIR_KERNEL_DTYPES_SHORT)
constexpr sdk::Types<float> kCellGradTypes;
#else
constexpr sdk::Types<sdk::half, float> kCellGradTypes;
#endif

}  // namespace

void AddRecurrentGrad(sdk::KernelTable& k) {
  k.Add<LstmCellGrad>("LSTMBlockCellGrad", kCellGradTypes).Class(WEIR_CLASS_ELEMENTWISE, 30);
  k.Add<LstmGrad<false>>("BlockLSTMGrad", kCellGradTypes).Class(WEIR_CLASS_GEMM, 200);
  k.Add<LstmGrad<true>>("BlockLSTMGradV2", kCellGradTypes).Class(WEIR_CLASS_GEMM, 200);
  k.Add<GruCellGrad>("GRUBlockCellGrad").Class(WEIR_CLASS_GEMM, 100);
}

}  // namespace weir::kernels_eigen
