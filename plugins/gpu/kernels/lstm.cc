// LSTM blocks and their gradients: LSTMBlockCell, BlockLSTM, BlockLSTMV2. The products with x of all steps are one
// product; in each step a thread computes a cell of a row.
#include <cmath>

#include "plugins/functors/lstm_plan.h"
#include "plugins/functors/unary.h"
#include "plugins/gpu/kernels/families.h"
#include "plugins/gpu/kernels/recurrent.h"
#include "sdk/cpp/kernel.h"

namespace weir::gpu {
namespace {

using functors::FloatParts;
using functors::LstmPlan;
using functors::OperandCheck;
using sdk::AnyInput;
using sdk::AnyOutput;
using sdk::Env;
using sdk::HostIntegers;
using sdk::Prep;

/// Calls body(storage) for floats and halves.
template <class Body>
void WithHalfOrFloat(uint32_t dtype, const Body& body) {
  WithStorage<kFloats>(dtype, [&](auto storage) {
    if constexpr (!std::is_same_v<decltype(storage), Exact<double>>) body(storage);
  });
}

/// The gates' columns in a row of four times `cells` elements.
struct GateColumns {
  int64_t cells, ci, f;
  explicit GateColumns(const LstmPlan& plan) : cells(plan.cells), ci(plan.column_ci), f(plan.column_f) {}
};

template <class S>
struct LstmStepWork {
  Ptr<const float> gate_inputs, sums;  // [batch, 4 cells] of the step
  Ptr<const char> b, cs_prev, wci, wcf, wco;
  Ptr<char> i, cs, f, o, ci, co, h;
  int64_t before, at;  // first element of cs_prev, and of the step in the outputs
  GateColumns columns;
  float forget_bias, cell_clip;
  bool peephole;
  S storage;

  WEIR_GPU_FN float Gate(int64_t place, int64_t column) const {
    const int64_t in_row = column * columns.cells + place % columns.cells;
    const int64_t k = place / columns.cells * 4 * columns.cells + in_row;
    return gate_inputs[k] + sums[k] + storage.Load(b.get(), in_row);
  }
  WEIR_GPU_FN void operator()(int64_t place) const {
    const functors::Sigmoid sigmoid{};
    const functors::Tanh tanh{};
    const int64_t j = place % columns.cells, to = at + place;
    const float last = storage.Load(cs_prev.get(), before + place);
    float in = Gate(place, 0), forget = Gate(place, columns.f) + forget_bias, out = Gate(place, 3);
    if (peephole) {
      in += last * storage.Load(wci.get(), j);
      forget += last * storage.Load(wcf.get(), j);
    }
    in = sigmoid(in);
    forget = sigmoid(forget);
    const float candidate = tanh(Gate(place, columns.ci));
    float cell = candidate * in + forget * last;
    if (cell_clip > 0) cell = cell < -cell_clip ? -cell_clip : cell > cell_clip ? cell_clip : cell;
    if (peephole) out += cell * storage.Load(wco.get(), j);
    out = sigmoid(out);
    const float shown = tanh(cell);
    storage.Store(i.get(), to, in);
    storage.Store(cs.get(), to, cell);
    storage.Store(f.get(), to, forget);
    storage.Store(o.get(), to, out);
    storage.Store(ci.get(), to, candidate);
    storage.Store(co.get(), to, shown);
    storage.Store(h.get(), to, out * shown);
  }
};

/// Operands in TensorFlow's order, and the outputs.
struct LstmOperands {
  AnyInput x, cs_prev, h_prev, w, wci, wcf, wco, b;
  AnyOutput i, cs, f, o, ci, co, h;
};

struct LstmForward : LstmPlan {
  float forget_bias = 1, cell_clip = 0;
  int64_t at_gates = 0, at_sums = 0;

  int32_t PlanForward(Prep& prep, uint32_t x, bool layer) {
    if (const int32_t code = Plan(prep, x, layer); code != WEIR_OK) return code;
    cell_clip = static_cast<float>(prep.node().Float("cell_clip"));
    OperandCheck check(prep);
    for (uint32_t i = 0; i < 7; ++i) {
      layer ? check.Output(i, {time, batch, cells}) : check.Output(i, {batch, cells});
    }
    if (!check.ok() || empty() || time == 0) return check.code();
    FloatParts parts;
    at_gates = parts.Take(time * batch * gates());
    at_sums = parts.Take(batch * gates());
    prep.Scratch(parts.bytes());
    return WEIR_OK;
  }
  int32_t Steps(const Env& env, int64_t steps, const LstmOperands& v, float* scratch) const {
    if (empty() || time == 0) return WEIR_OK;
    int32_t code = WEIR_OK;
    WithHalfOrFloat(v.x.dtype(), [&](auto storage) { code = Steps(env, steps, v, scratch, storage); });
    const uint64_t bytes = sdk::SizeOf(v.x.dtype()), done = static_cast<uint64_t>(steps * state()) * bytes;
    const uint64_t rest = static_cast<uint64_t>((time - steps) * state()) * bytes;
    for (const AnyOutput* output : {&v.i, &v.cs, &v.f, &v.o, &v.ci, &v.co, &v.h}) {
      if (code == WEIR_OK && rest > 0) code = Fill(env, static_cast<char*>(output->data()) + done, 0, rest);
    }
    return code;
  }

 private:
  template <class S>
  int32_t Steps(const Env& env, int64_t steps, const LstmOperands& v, float* scratch, S storage) const {
    float* const gate_inputs = scratch + at_gates;
    float* const sums = scratch + at_sums;
    const auto of_x = StoredMatrix(From(v.w), gates(), storage);
    const auto of_h = StoredMatrix(From(v.w), gates(), storage, inputs * gates());
    int32_t code =
        MultiplyStep(env, steps * batch, gates(), inputs, StoredMatrix(From(v.x), inputs, storage), of_x, gate_inputs);
    for (int64_t t = 0; t < steps && code == WEIR_OK; ++t) {
      const int64_t before = t == 0 ? 0 : (t - 1) * state();
      const Ptr<const char> h_prev = t == 0 ? From(v.h_prev) : From(v.h),
                            cs_prev = t == 0 ? From(v.cs_prev) : From(v.cs);
      code = MultiplyStep(env, batch, gates(), cells, StoredMatrix(h_prev, cells, storage, before), of_h, sums);
      if (code != WEIR_OK) break;
      code = Launch(env, state(),
                    LstmStepWork<S>{gate_inputs + t * batch * gates(),
                                    sums,
                                    From(v.b),
                                    cs_prev,
                                    From(v.wci),
                                    From(v.wcf),
                                    From(v.wco),
                                    To(v.i),
                                    To(v.cs),
                                    To(v.f),
                                    To(v.o),
                                    To(v.ci),
                                    To(v.co),
                                    To(v.h),
                                    before,
                                    t * state(),
                                    GateColumns(*this),
                                    forget_bias,
                                    cell_clip,
                                    peephole,
                                    storage});
    }
    return code;
  }
};

struct LstmCell : LstmForward {
  int32_t Prepare(Prep& prep) {
    forget_bias = static_cast<float>(prep.node().Float("forget_bias", 1));
    return PlanForward(prep, 0, false);
  }
  int32_t Run(Env& env, AnyInput x, AnyInput cs_prev, AnyInput h_prev, AnyInput w, AnyInput wci, AnyInput wcf,
              AnyInput wco, AnyInput b, AnyOutput i, AnyOutput cs, AnyOutput f, AnyOutput o, AnyOutput ci, AnyOutput co,
              AnyOutput h, sdk::Scratch<float> scratch) const {
    return Steps(env, 1, {x, cs_prev, h_prev, w, wci, wcf, wco, b, i, cs, f, o, ci, co, h}, scratch.data());
  }
};

int32_t CheckSteps(const Env& env, int64_t steps, int64_t time) {
  if (steps >= 0 && steps <= time) return WEIR_OK;
  return env.error().InvalidArgument("seq_len_max must be in [0, ", time, "], got ", steps);
}
int32_t CheckLength(const Prep& prep) {
  if (prep.shape(0).rank == 0) return WEIR_OK;
  return prep.error().InvalidArgument("`seq_len_max_tensor` must be rank 0 but is rank ", prep.shape(0).rank);
}

template <bool kSecond>
struct Lstm : LstmForward {
  int32_t Prepare(Prep& prep) {
    if (const int32_t code = CheckLength(prep); code != WEIR_OK) return code;
    if (kSecond) SwapGates();
    forget_bias = kSecond ? 0 : static_cast<float>(prep.node().Float("forget_bias", 1));
    return PlanForward(prep, 1, true);
  }
  int32_t Run(Env& env, HostIntegers steps, AnyInput x, AnyInput cs_prev, AnyInput h_prev, AnyInput w, AnyInput wci,
              AnyInput wcf, AnyInput wco, AnyInput b, AnyOutput i, AnyOutput cs, AnyOutput f, AnyOutput o, AnyOutput ci,
              AnyOutput co, AnyOutput h, sdk::Scratch<float> scratch) const {
    if (const int32_t code = CheckSteps(env, steps[0], time); code != WEIR_OK) return code;
    return Steps(env, steps[0], {x, cs_prev, h_prev, w, wci, wcf, wco, b, i, cs, f, o, ci, co, h}, scratch.data());
  }
};

/// The values of a layer, [time, batch, cells], and the cell before its first step.
struct LstmValues {
  Ptr<const char> cs_prev, i, cs, f, o, ci, co;
};

/// The gradients of a step by its gates, and by the cell before.
template <class S>
struct LstmBackWork {
  LstmValues v;
  Ptr<const char> wci, wcf, wco, cs_grad, h_grad;
  Ptr<float> dh, dcs, gates;  // [batch, cells] twice, [batch, 4 cells] of the step
  int64_t at;                 // first element of the step
  int64_t state;              // elements of a step
  GateColumns columns;
  bool peephole;
  S storage;

  WEIR_GPU_FN float At(const Ptr<const char>& from, int64_t i) const { return storage.Load(from.get(), i); }
  WEIR_GPU_FN void operator()(int64_t place) const {
    const int64_t cells = columns.cells, j = place % cells, k = at + place;
    const float in = At(v.i, k), forget = At(v.f, k), out = At(v.o, k), candidate = At(v.ci, k), shown = At(v.co, k);
    const float last = at == 0 ? At(v.cs_prev, place) : At(v.cs, k - state);
    const float slope = dh[place] + At(h_grad, k);
    const float by_out = out * (1 - out) * slope * shown;
    float cell = (1 - shown * shown) * slope * out + (dcs[place] + At(cs_grad, k));
    if (peephole) cell += by_out * At(wco, j);
    const float by_candidate = (1 - candidate * candidate) * cell * in;
    const float by_forget = forget * (1 - forget) * cell * last;
    const float by_in = in * (1 - in) * cell * candidate;
    float before = cell * forget;
    if (peephole) before += by_in * At(wci, j) + by_forget * At(wcf, j);
    dcs[place] = before;
    const int64_t row = place / cells * 4 * cells + j;
    gates[row] = by_in;
    gates[row + columns.ci * cells] = by_candidate;
    gates[row + columns.f * cells] = by_forget;
    gates[row + 3 * cells] = by_out;
  }
};

/// The sums of the gates' gradients over all rows, from the last step to the first as on the CPU: for the first
/// `biases` elements by the biases, then by the three peepholes.
template <class S>
struct LstmSumsWork {
  LstmValues v;
  Ptr<const float> gates;  // [time, batch, 4 cells]
  Ptr<char> b, wci, wcf, wco;
  int64_t biases, steps, batch;
  GateColumns columns;
  bool peephole;
  S storage;

  WEIR_GPU_FN void operator()(int64_t i) const {
    const int64_t cells = columns.cells;
    const bool bias = i < biases;
    const int64_t j = bias ? i : (i - biases) % cells, which = bias ? 0 : (i - biases) / cells;
    const int64_t column = bias ? j : j + (which == 0 ? 0 : which == 1 ? columns.f : 3) * cells;
    float sum = 0;
    for (int64_t t = steps - 1; t >= 0; --t) {
      for (int64_t row = 0; row < batch; ++row) {
        const float slope = gates[(t * batch + row) * 4 * cells + column];
        if (bias) {
          sum += slope;
        } else if (peephole) {
          const int64_t k = (t * batch + row) * cells + j;
          const float cell = which == 2 ? storage.Load(v.cs.get(), k)
                             : t == 0   ? storage.Load(v.cs_prev.get(), row * cells + j)
                                        : storage.Load(v.cs.get(), k - batch * cells);
          sum += slope * cell;
        }
      }
    }
    char* const to = bias ? b.get() : which == 0 ? wci.get() : which == 1 ? wcf.get() : wco.get();
    storage.Store(to, j, sum);
  }
};

template <class S>
struct NarrowWork {
  Ptr<const float> from;
  Ptr<char> to;
  S storage;
  WEIR_GPU_FN void operator()(int64_t i) const { storage.Store(to.get(), i, from[i]); }
};

struct LstmGradOperands {
  AnyInput cs_prev, w, wci, wcf, wco, i, cs, f, o, ci, co, cs_grad, h_grad;
  AnyOutput cs_prev_grad, wci_grad, wcf_grad, wco_grad;
  LstmValues values() const { return {From(cs_prev), From(i), From(cs), From(f), From(o), From(ci), From(co)}; }
};

struct LstmBackward : LstmPlan {
  int64_t at_gates = 0, at_dcs = 0, at_dh = 0;

  void TakeParts(Prep& prep) {
    FloatParts parts;
    const int64_t steps = empty() ? 0 : time;
    at_gates = parts.Take(steps == 0 ? 0 : steps * batch * gates());
    at_dcs = parts.Take(steps == 0 ? 0 : state());
    at_dh = parts.Take(steps == 0 ? 0 : state());
    if (parts.bytes() > 0) prep.Scratch(parts.bytes());
  }

  /// The gradients of step t, at its place in the scratch memory.
  template <class S>
  int32_t StepBack(const Env& env, int64_t t, const LstmGradOperands& v, float* scratch, S storage) const {
    return Launch(env, state(),
                  LstmBackWork<S>{v.values(), From(v.wci), From(v.wcf), From(v.wco), From(v.cs_grad), From(v.h_grad),
                                  scratch + at_dh, scratch + at_dcs, scratch + at_gates + t * batch * gates(),
                                  t * state(), state(), GateColumns(*this), peephole, storage});
  }
  int32_t Clear(const Env& env, float* scratch) const {
    const uint64_t bytes = static_cast<uint64_t>(state()) * sizeof(float);
    const int32_t code = Fill(env, scratch + at_dcs, 0, bytes);
    return code != WEIR_OK ? code : Fill(env, scratch + at_dh, 0, bytes);
  }
  /// `b_grad`: null if there is no such output.
  template <class S>
  int32_t Sums(const Env& env, int64_t steps, const LstmGradOperands& v, void* b_grad, const float* scratch,
               S storage) const {
    const int64_t biases = b_grad == nullptr ? 0 : gates();
    return Launch(
        env, biases + 3 * cells,
        LstmSumsWork<S>{v.values(), scratch + at_gates, static_cast<char*>(b_grad), To(v.wci_grad), To(v.wcf_grad),
                        To(v.wco_grad), biases, empty() ? 0 : steps, batch, GateColumns(*this), peephole, storage});
  }
  template <class S>
  static int32_t Store(const Env& env, const float* from, int64_t n, const AnyOutput& to, S storage) {
    return Launch(env, n, NarrowWork<S>{from, To(to), storage});
  }
};

struct LstmCellGrad : LstmBackward {
  int32_t Prepare(Prep& prep) {
    if (const int32_t code = Plan(prep, 0, false); code != WEIR_OK) return code;
    OperandCheck check(prep);
    CheckValues(check, 8, false, {batch, cells});
    check.Output(0, {batch, cells});
    check.Output(1, {batch, gates()});
    for (uint32_t i = 2; i < 5; ++i) check.Output(i, {cells});
    TakeParts(prep);
    return check.code();
  }
  int32_t Run(Env& env, AnyInput, AnyInput cs_prev, AnyInput, AnyInput w, AnyInput wci, AnyInput wcf, AnyInput wco,
              AnyInput, AnyInput i, AnyInput cs, AnyInput f, AnyInput o, AnyInput ci, AnyInput co, AnyInput cs_grad,
              AnyInput h_grad, AnyOutput cs_prev_grad, AnyOutput gate_grads, AnyOutput wci_grad, AnyOutput wcf_grad,
              AnyOutput wco_grad, sdk::Scratch<float> memory) const {
    const LstmGradOperands v{cs_prev, w,  wci,     wcf,    wco,          i,        cs,       f,       o,
                             ci,      co, cs_grad, h_grad, cs_prev_grad, wci_grad, wcf_grad, wco_grad};
    float* const scratch = memory.data();
    int32_t code = WEIR_OK;
    WithHalfOrFloat(cs_prev.dtype(), [&](auto storage) {
      if (!empty()) {
        code = Clear(env, scratch);
        if (code == WEIR_OK) code = StepBack(env, 0, v, scratch, storage);
        if (code == WEIR_OK) code = Store(env, scratch + at_dcs, state(), cs_prev_grad, storage);
        if (code == WEIR_OK) code = Store(env, scratch + at_gates, batch * gates(), gate_grads, storage);
      }
      if (code == WEIR_OK) code = Sums(env, 1, v, nullptr, scratch, storage);
    });
    return code;
  }
};

/// The states before each step as the columns of a matrix [cells, steps * batch].
template <class S>
struct StatesBefore {
  static constexpr bool kRowsContiguous = true, kColumnsContiguous = false;
  Ptr<const char> h_prev, h;
  int64_t batch, cells;
  S storage;
  WEIR_GPU_FN float operator()(int64_t, int64_t i, int64_t q) const {
    return q < batch ? storage.Load(h_prev.get(), q * cells + i) : storage.Load(h.get(), (q - batch) * cells + i);
  }
};

template <bool kSecond>
struct LstmGrad : LstmBackward {
  int32_t Prepare(Prep& prep) {
    if (const int32_t code = CheckLength(prep); code != WEIR_OK) return code;
    if (kSecond) SwapGates();
    if (const int32_t code = Plan(prep, 1, true); code != WEIR_OK) return code;
    OperandCheck check(prep);
    CheckValues(check, 9, true, {time, batch, cells});
    TakeParts(prep);
    return check.code();
  }
  int32_t Run(Env& env, HostIntegers length, AnyInput x, AnyInput cs_prev, AnyInput h_prev, AnyInput w, AnyInput wci,
              AnyInput wcf, AnyInput wco, AnyInput, AnyInput i, AnyInput cs, AnyInput f, AnyInput o, AnyInput ci,
              AnyInput co, AnyInput h, AnyInput cs_grad, AnyInput h_grad, AnyOutput x_grad, AnyOutput cs_prev_grad,
              AnyOutput h_prev_grad, AnyOutput w_grad, AnyOutput wci_grad, AnyOutput wcf_grad, AnyOutput wco_grad,
              AnyOutput b_grad, sdk::Scratch<float> memory) const {
    const int64_t steps = length[0];
    if (const int32_t code = CheckSteps(env, steps, time); code != WEIR_OK) return code;
    const LstmGradOperands v{cs_prev, w,  wci,     wcf,    wco,          i,        cs,       f,       o,
                             ci,      co, cs_grad, h_grad, cs_prev_grad, wci_grad, wcf_grad, wco_grad};
    float* const scratch = memory.data();
    int32_t code = WEIR_OK;
    WithHalfOrFloat(x.dtype(), [&](auto storage) {
      if (empty() || time == 0) {
        for (const AnyOutput* output : {&x_grad, &w_grad, &cs_prev_grad, &h_prev_grad}) {
          const uint64_t bytes = static_cast<uint64_t>(output->size()) * sdk::SizeOf(output->dtype());
          if (code == WEIR_OK && bytes > 0) code = Fill(env, output->data(), 0, bytes);
        }
      } else {
        code = StepsBack(env, steps, v, scratch, storage);
        if (code == WEIR_OK) code = Store(env, scratch + at_dcs, state(), cs_prev_grad, storage);
        if (code == WEIR_OK) code = Store(env, scratch + at_dh, state(), h_prev_grad, storage);
        if (code == WEIR_OK) code = ByX(env, steps, w, x_grad, scratch, storage);
        const StatesBefore<decltype(storage)> states{From(h_prev), From(h), batch, cells, storage};
        if (code == WEIR_OK) code = ByWeights(env, steps, x, states, w_grad, scratch, storage);
      }
      if (code == WEIR_OK) code = Sums(env, time == 0 ? 0 : steps, v, b_grad.data(), scratch, storage);
    });
    return code;
  }

 private:
  template <class S>
  int32_t StepsBack(const Env& env, int64_t steps, const LstmGradOperands& v, float* scratch, S storage) const {
    int32_t code = Clear(env, scratch);
    const auto turned = TurnedMatrix(From(v.w), gates(), storage, inputs * gates());
    for (int64_t t = steps - 1; t >= 0 && code == WEIR_OK; --t) {
      code = StepBack(env, t, v, scratch, storage);
      const float* const step = scratch + at_gates + t * batch * gates();
      if (code == WEIR_OK) {
        code = MultiplyStep(env, batch, cells, gates(), FloatMatrix(step, gates()), turned, scratch + at_dh);
      }
    }
    return code;
  }
  template <class S>
  int32_t ByX(const Env& env, int64_t steps, const AnyInput& w, const AnyOutput& x_grad, const float* scratch,
              S storage) const {
    const int64_t rows = steps * batch;
    const int32_t code = MultiplyStep(env, rows, inputs, gates(), FloatMatrix(scratch + at_gates, gates()),
                                      TurnedMatrix(From(w), gates(), storage), To(x_grad), storage);
    const uint64_t bytes = sdk::SizeOf(x_grad.dtype());
    const uint64_t rest = static_cast<uint64_t>((time * batch - rows) * inputs) * bytes;
    if (code != WEIR_OK || rest == 0) return code;
    return Fill(env, static_cast<char*>(x_grad.data()) + static_cast<uint64_t>(rows * inputs) * bytes, 0, rest);
  }
  template <class S>
  int32_t ByWeights(const Env& env, int64_t steps, const AnyInput& x, const StatesBefore<S>& states,
                    const AnyOutput& w_grad, const float* scratch, S storage) const {
    const int64_t rows = steps * batch;
    const auto step_gates = FloatMatrix(scratch + at_gates, gates());
    const int32_t code = MultiplyStep(env, inputs, gates(), rows, TurnedMatrix(From(x), inputs, storage), step_gates,
                                      To(w_grad), storage);
    if (code != WEIR_OK) return code;
    return MultiplyStep(env, cells, gates(), rows, states, step_gates, To(w_grad), storage, inputs * gates());
  }
};

}  // namespace

void AddLstm(sdk::KernelTable& k) {
  constexpr uint64_t kTypes = (k16BitBits & ~DTypes({WEIR_BFLOAT16})) | DTypes({WEIR_FLOAT32});
  const auto add = [](sdk::Kernel& kernel, uint32_t kind, double flops) {
    kernel.Restrict("T", kTypes).Class(kind, flops);
  };
  add(k.Add<LstmCell>("LSTMBlockCell"), WEIR_CLASS_GEMM, 100);
  add(k.Add<Lstm<false>>("BlockLSTM"), WEIR_CLASS_GEMM, 100);
  add(k.Add<Lstm<true>>("BlockLSTMV2"), WEIR_CLASS_GEMM, 100);
  add(k.Add<LstmCellGrad>("LSTMBlockCellGrad"), WEIR_CLASS_ELEMENTWISE, 30);
  add(k.Add<LstmGrad<false>>("BlockLSTMGrad"), WEIR_CLASS_GEMM, 200);
  add(k.Add<LstmGrad<true>>("BlockLSTMGradV2"), WEIR_CLASS_GEMM, 200);
}

}  // namespace weir::gpu
