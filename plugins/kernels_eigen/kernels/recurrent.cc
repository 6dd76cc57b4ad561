// Forward steps of recurrent blocks: LSTMBlockCell, BlockLSTM, BlockLSTMV2, GRUBlockCell. The products with x of all
// steps are one product; each step adds that of the state before.
#include <algorithm>
#include <tuple>

#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/kernels/recurrent_plan.h"
#include "plugins/kernels_eigen/kernels/vector_math.h"
#include "plugins/kernels_eigen/sequence_families.h"

namespace weir::kernels_eigen {
namespace {

using sdk::Integers;
using sdk::Prep;
using sdk::Scratch;
using sdk::View;

/// Outputs of an LSTM, each [time, batch, cells].
template <class T>
struct LstmOutputs {
  T *i, *cs, *f, *o, *ci, *co, *h;

  void Advance(int64_t n) {
    for (T** output : {&i, &cs, &f, &o, &ci, &co, &h}) *output += n;
  }
  void Clear(int64_t n) const {
    for (T* output : {i, cs, f, o, ci, co, h}) std::fill_n(output, n, T(0.0f));
  }
};

struct LstmForward : LstmPlan {
  float forget_bias = 1, cell_clip = 0;
  RecurrentProduct of_x, of_h;
  int64_t at_w = 0, at_x = 0, at_h = 0, at_gates = 0, at_sums = 0, at_row = 0;

  int32_t PlanForward(Prep& prep, uint32_t x, bool layer, bool half) {
    if (const int32_t code = Plan(prep, x, layer); code != WEIR_OK) return code;
    cell_clip = static_cast<float>(prep.node().Float("cell_clip"));
    OperandCheck check(prep);
    for (uint32_t i = 0; i < 7; ++i) {
      layer ? check.Output(i, {time, batch, cells}) : check.Output(i, {batch, cells});
    }
    if (!check.ok() || empty() || time == 0) return check.code();
    FloatParts parts;
    at_w = parts.Take(half ? (inputs + cells) * gates() : 0);
    at_x = parts.Take(half ? time * batch * inputs : 0);
    at_h = parts.Take(half ? state() : 0);
    at_gates = parts.Take(time * batch * gates());
    at_sums = parts.Take(batch * gates());
    at_row = parts.Take(gates() + cells);
    of_x.Plan(time * batch, gates(), inputs, false, false, parts);
    of_h.Plan(batch, gates(), cells, false, false, parts);
    prep.Scratch(parts.bytes());
    return WEIR_OK;
  }

  /// `steps` of at most `time` steps.
  template <class T>
  void Steps(int64_t steps, const T* x, const T* cs_prev, const T* h_prev, const T* w, const T* const (&peepholes)[3],
             const T* b, LstmOutputs<T> out, float* scratch) const {
    if (empty() || time == 0) return;
    const float* weights = AsFloats(w, (inputs + cells) * gates(), scratch + at_w);
    float* gate_inputs = scratch + at_gates;
    of_x.Run(AsFloats(x, time * batch * inputs, scratch + at_x), weights, gate_inputs, scratch);
    for (int64_t t = 0; t < steps; ++t) {
      float* sums = scratch + at_sums;
      of_h.Run(AsFloats(h_prev, state(), scratch + at_h), weights + inputs * gates(), sums, scratch);
      for (int64_t row = 0; row < batch; ++row) {
        Row(gate_inputs + row * gates(), sums + row * gates(), b, cs_prev + row * cells, peepholes, out, row * cells,
            scratch + at_row);
      }
      gate_inputs += batch * gates();
      cs_prev = out.cs;
      h_prev = out.h;
      out.Advance(state());
    }
    out.Clear((time - steps) * state());
  }

 private:
  /// One row of the batch; `row` holds the four gates and tanh of the cell.
  template <class T>
  void Row(const float* gate_inputs, const float* sums, const T* b, const T* cs_prev, const T* const (&peepholes)[3],
           const LstmOutputs<T>& out, int64_t at, float* row) const {
    const auto [wci, wcf, wco] = std::tie(peepholes[0], peepholes[1], peepholes[2]);
    float *i = row, *ci = row + column_ci * cells, *f = row + column_f * cells, *o = row + 3 * cells;
    float* co = row + 4 * cells;
    for (int64_t j = 0; j < gates(); ++j) row[j] = gate_inputs[j] + sums[j] + static_cast<float>(b[j]);
    for (int64_t j = 0; j < cells; ++j) f[j] += forget_bias;
    for (int64_t j = 0; peephole && j < cells; ++j) {
      i[j] += static_cast<float>(cs_prev[j]) * static_cast<float>(wci[j]);
      f[j] += static_cast<float>(cs_prev[j]) * static_cast<float>(wcf[j]);
    }
    SigmoidArray(i, i, cells);
    SigmoidArray(f, f, cells);
    TanhArray(ci, ci, cells);
    for (int64_t j = 0; j < cells; ++j) {
      float cs = ci[j] * i[j] + f[j] * static_cast<float>(cs_prev[j]);
      if (cell_clip > 0) cs = std::min(std::max(cs, -cell_clip), cell_clip);
      co[j] = cs;
      out.cs[at + j] = T(cs);
      if (peephole) o[j] += cs * static_cast<float>(wco[j]);
    }
    SigmoidArray(o, o, cells);
    TanhArray(co, co, cells);
    for (int64_t j = 0; j < cells; ++j) {
      out.i[at + j] = T(i[j]);
      out.ci[at + j] = T(ci[j]);
      out.f[at + j] = T(f[j]);
      out.o[at + j] = T(o[j]);
      out.co[at + j] = T(co[j]);
      out.h[at + j] = T(o[j] * co[j]);
    }
  }
};

struct LstmCell : LstmForward {
  int32_t Prepare(Prep& prep) {
    forget_bias = static_cast<float>(prep.node().Float("forget_bias", 1));
    return PlanForward(prep, 0, false, prep.input(0).dtype == WEIR_FLOAT16);
  }
  template <class T>
  void Run(View<const T> x, View<const T> cs_prev, View<const T> h_prev, View<const T> w, View<const T> wci,
           View<const T> wcf, View<const T> wco, View<const T> b, View<T> i, View<T> cs, View<T> f, View<T> o,
           View<T> ci, View<T> co, View<T> h, Scratch<float> scratch) const {
    Steps<T>(1, x.data(), cs_prev.data(), h_prev.data(), w.data(), {wci.data(), wcf.data(), wco.data()}, b.data(),
             {i.data(), cs.data(), f.data(), o.data(), ci.data(), co.data(), h.data()}, scratch.data());
  }
};

template <bool kSecond>
struct Lstm : LstmForward {
  int32_t Prepare(Prep& prep) {
    if (prep.shape(0).rank != 0) {
      return prep.error().InvalidArgument("`seq_len_max_tensor` must be rank 0 but is rank ", prep.shape(0).rank);
    }
    if (kSecond) SwapGates();
    forget_bias = kSecond ? 0 : static_cast<float>(prep.node().Float("forget_bias", 1));
    return PlanForward(prep, 1, true, prep.input(1).dtype == WEIR_FLOAT16);
  }
  template <class T>
  int32_t Run(sdk::Env& env, Integers steps, View<const T> x, View<const T> cs_prev, View<const T> h_prev,
              View<const T> w, View<const T> wci, View<const T> wcf, View<const T> wco, View<const T> b, View<T> i,
              View<T> cs, View<T> f, View<T> o, View<T> ci, View<T> co, View<T> h, Scratch<float> scratch) const {
    if (steps[0] < 0 || steps[0] > time) {
      return env.error().InvalidArgument("seq_len_max must be in [0, ", time, "], got ", steps[0]);
    }
    Steps<T>(steps[0], x.data(), cs_prev.data(), h_prev.data(), w.data(), {wci.data(), wcf.data(), wco.data()},
             b.data(), {i.data(), cs.data(), f.data(), o.data(), ci.data(), co.data(), h.data()}, scratch.data());
    return WEIR_OK;
  }
};

struct GruCell : GruPlan {
  RecurrentProduct gates_of_x, gates_of_h, candidate_of_x, candidate_of_h;
  int64_t at_gates = 0, at_sums = 0, at_reset = 0, at_candidate = 0;

  int32_t Prepare(Prep& prep) {
    if (const int32_t code = Plan(prep); code != WEIR_OK || batch == 0 || cells == 0) return code;
    FloatParts parts;
    at_gates = parts.Take(batch * 2 * cells);
    at_sums = parts.Take(batch * 2 * cells);
    at_reset = parts.Take(batch * cells);
    at_candidate = parts.Take(batch * cells);
    gates_of_x.Plan(batch, 2 * cells, inputs, false, false, parts);
    gates_of_h.Plan(batch, 2 * cells, cells, false, false, parts);
    candidate_of_x.Plan(batch, cells, inputs, false, false, parts);
    candidate_of_h.Plan(batch, cells, cells, false, false, parts);
    prep.Scratch(parts.bytes());
    return WEIR_OK;
  }

  void Run(View<const float> x, View<const float> h_prev, View<const float> w_ru, View<const float> w_c,
           View<const float> b_ru, View<const float> b_c, View<float> r, View<float> u, View<float> c, View<float> h,
           Scratch<float> memory) const {
    if (batch == 0 || cells == 0) return;
    float* scratch = memory.data();
    float *gates = scratch + at_gates, *sums = scratch + at_sums, *reset = scratch + at_reset;
    gates_of_x.Run(x.data(), w_ru.data(), gates, scratch);
    gates_of_h.Run(h_prev.data(), w_ru.data() + inputs * 2 * cells, sums, scratch);
    for (int64_t row = 0; row < batch; ++row) {
      float* g = gates + row * 2 * cells;
      for (int64_t j = 0; j < 2 * cells; ++j) g[j] += sums[row * 2 * cells + j] + b_ru[j];
      SigmoidArray(g, r.data() + row * cells, cells);
      SigmoidArray(g + cells, u.data() + row * cells, cells);
    }
    const int64_t n = batch * cells;
    for (int64_t j = 0; j < n; ++j) reset[j] = h_prev[j] * r[j];
    float* candidate = scratch + at_candidate;
    candidate_of_x.Run(x.data(), w_c.data(), candidate, scratch);
    candidate_of_h.Run(reset, w_c.data() + inputs * cells, sums, scratch);
    for (int64_t j = 0; j < n; ++j) candidate[j] += sums[j] + b_c[j % cells];
    TanhArray(candidate, c.data(), n);
    for (int64_t j = 0; j < n; ++j) h[j] = u[j] * (h_prev[j] - c[j]) + c[j];
  }
};

#if defined(WEIR_KERNEL_DTYPES_SHORT)
constexpr sdk::Types<float> kCellTypes;
#else
constexpr sdk::Types<sdk::half, float> kCellTypes;
#endif

}  // namespace

void AddRecurrent(sdk::KernelTable& k) {
  k.Add<LstmCell>("LSTMBlockCell", kCellTypes).Class(WEIR_CLASS_GEMM, 100);
  k.Add<Lstm<false>>("BlockLSTM", kCellTypes).Class(WEIR_CLASS_GEMM, 100);
  k.Add<Lstm<true>>("BlockLSTMV2", kCellTypes).Class(WEIR_CLASS_GEMM, 100);
  k.Add<GruCell>("GRUBlockCell").Class(WEIR_CLASS_GEMM, 100);
}

}  // namespace weir::kernels_eigen
