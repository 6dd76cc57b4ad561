// GRUBlockCell and its gradient: products by tiles, and a thread for each cell of a row.
#include "plugins/functors/lstm_plan.h"
#include "plugins/functors/unary.h"
#include "plugins/gpu/kernels/families.h"
#include "plugins/gpu/kernels/recurrent.h"
#include "sdk/cpp/kernel.h"

namespace weir::gpu {
namespace {

using functors::FloatParts;
using functors::GruPlan;
using sdk::Env;
using sdk::Prep;
using sdk::View;

/// The gates r and u, and what the candidate sees of the state.
struct GruGatesWork {
  Ptr<const float> of_x, of_h, b, h_prev;  // of_x, of_h: [batch, 2 cells]
  Ptr<float> r, u, seen;
  int64_t cells;
  WEIR_GPU_FN void operator()(int64_t i) const {
    const functors::Sigmoid sigmoid{};
    const int64_t j = i % cells, k = i / cells * 2 * cells + j;
    const float reset = sigmoid(of_x[k] + (of_h[k] + b[j]));
    r[i] = reset;
    u[i] = sigmoid(of_x[k + cells] + (of_h[k + cells] + b[j + cells]));
    seen[i] = h_prev[i] * reset;
  }
};
struct GruStateWork {
  Ptr<const float> of_x, of_h, b, h_prev, u;
  Ptr<float> c, h;
  int64_t cells;
  WEIR_GPU_FN void operator()(int64_t i) const {
    const float candidate = functors::Tanh{}(of_x[i] + (of_h[i] + b[i % cells]));
    c[i] = candidate;
    h[i] = u[i] * (h_prev[i] - candidate) + candidate;
  }
};

/// Rows of a matrix of floats from element `first` on.
StepMatrix<Exact<float>> StepRows(const float* data, int64_t columns, int64_t first = 0) {
  return StoredMatrix(Ptr<const char>(reinterpret_cast<const char*>(data)), columns, Exact<float>(), first);
}
StepMatrix<Exact<float>, true> StepTurned(const float* data, int64_t columns, int64_t first = 0) {
  return TurnedMatrix(Ptr<const char>(reinterpret_cast<const char*>(data)), columns, Exact<float>(), first);
}

struct GruCell : GruPlan {
  int64_t at_x = 0, at_h = 0, at_seen = 0;

  int32_t Prepare(Prep& prep) {
    if (const int32_t code = Plan(prep); code != WEIR_OK || batch == 0 || cells == 0) return code;
    FloatParts parts;
    at_x = parts.Take(batch * 2 * cells);
    at_h = parts.Take(batch * 2 * cells);
    at_seen = parts.Take(batch * cells);
    prep.Scratch(parts.bytes());
    return WEIR_OK;
  }
  int32_t Run(Env& env, View<const float> x, View<const float> h_prev, View<const float> w_ru, View<const float> w_c,
              View<const float> b_ru, View<const float> b_c, View<float> r, View<float> u, View<float> c, View<float> h,
              sdk::Scratch<float> memory) const {
    if (batch == 0 || cells == 0) return WEIR_OK;
    float* const of_x = memory.data() + at_x;
    float* const of_h = memory.data() + at_h;
    float* const seen = memory.data() + at_seen;
    const auto inputs_x = StepRows(x.data(), inputs);
    int32_t code = MultiplyStep(env, batch, 2 * cells, inputs, inputs_x, StepRows(w_ru.data(), 2 * cells), of_x);
    if (code == WEIR_OK) {
      code = MultiplyStep(env, batch, 2 * cells, cells, StepRows(h_prev.data(), cells),
                          StepRows(w_ru.data(), 2 * cells, inputs * 2 * cells), of_h);
    }
    if (code == WEIR_OK) {
      code = Launch(env, batch * cells,
                    GruGatesWork{of_x, of_h, b_ru.data(), h_prev.data(), r.data(), u.data(), seen, cells});
    }
    if (code == WEIR_OK) code = MultiplyStep(env, batch, cells, inputs, inputs_x, StepRows(w_c.data(), cells), of_x);
    if (code == WEIR_OK) {
      code = MultiplyStep(env, batch, cells, cells, StepRows(seen, cells), StepRows(w_c.data(), cells, inputs * cells),
                          of_h);
    }
    if (code != WEIR_OK) return code;
    return Launch(env, batch * cells,
                  GruStateWork{of_x, of_h, b_c.data(), h_prev.data(), u.data(), c.data(), h.data(), cells});
  }
};

struct CandidateGradWork {
  Ptr<const float> dh, u, c;
  Ptr<float> dc;
  WEIR_GPU_FN void operator()(int64_t i) const { dc[i] = dh[i] * (1 - u[i]) * (1 - c[i] * c[i]); }
};
struct GateGradsWork {
  Ptr<const float> seen, h_prev, r, u, c, dh;
  Ptr<float> dru;
  int64_t cells;
  WEIR_GPU_FN void operator()(int64_t i) const {
    const int64_t k = i / cells * 2 * cells + i % cells;
    dru[k] = seen[i] * h_prev[i] * r[i] * (1 - r[i]);
    dru[k + cells] = dh[i] * (h_prev[i] - c[i]) * u[i] * (1 - u[i]);
  }
};
struct StateGradWork {
  Ptr<const float> seen, r, u, dh;
  Ptr<float> dh_prev;
  WEIR_GPU_FN void operator()(int64_t i) const { dh_prev[i] += seen[i] * r[i] + dh[i] * u[i]; }
};
struct AddFloatsWork {
  Ptr<const float> more;
  Ptr<float> to;
  WEIR_GPU_FN void operator()(int64_t i) const { to[i] += more[i]; }
};

struct GruCellGrad : GruPlan {
  int64_t at_x = 0, at_seen = 0;

  int32_t Prepare(Prep& prep) {
    if (const int32_t code = PlanGradient(prep); code != WEIR_OK) return code;
    FloatParts parts;
    at_x = parts.Take(batch, inputs);
    at_seen = parts.Take(batch, cells);
    if (parts.bytes() > 0) prep.Scratch(parts.bytes());
    return WEIR_OK;
  }
  int32_t Run(Env& env, View<const float>, View<const float> h_prev, View<const float> w_ru, View<const float> w_c,
              View<const float>, View<const float>, View<const float> r, View<const float> u, View<const float> c,
              View<const float> dh, View<float> dx, View<float> dh_prev, View<float> dc, View<float> dru,
              sdk::Scratch<float> memory) const {
    float* const more_x = memory.data() + at_x;
    float* const seen = memory.data() + at_seen;
    const int64_t n = batch == 0 || cells == 0 ? 0 : batch * cells;
    int32_t code = Launch(env, n, CandidateGradWork{dh.data(), u.data(), c.data(), dc.data()});
    if (code == WEIR_OK && n > 0) {
      code = MultiplyStep(env, batch, cells, cells, StepRows(dc.data(), cells),
                          StepTurned(w_c.data(), cells, inputs * cells), seen);
      if (code == WEIR_OK) {
        code = Launch(env, n,
                      GateGradsWork{seen, h_prev.data(), r.data(), u.data(), c.data(), dh.data(), dru.data(), cells});
      }
      if (code == WEIR_OK) {
        code = MultiplyStep(env, batch, cells, 2 * cells, StepRows(dru.data(), 2 * cells),
                            StepTurned(w_ru.data(), 2 * cells, inputs * 2 * cells), dh_prev.data());
      }
      if (code == WEIR_OK) code = Launch(env, n, StateGradWork{seen, r.data(), u.data(), dh.data(), dh_prev.data()});
    }
    if (code != WEIR_OK || batch == 0 || inputs == 0) return code;
    code = MultiplyStep(env, batch, inputs, cells, StepRows(dc.data(), cells), StepTurned(w_c.data(), cells), more_x);
    if (code == WEIR_OK) {
      code = MultiplyStep(env, batch, inputs, 2 * cells, StepRows(dru.data(), 2 * cells),
                          StepTurned(w_ru.data(), 2 * cells), dx.data());
    }
    return code != WEIR_OK ? code : Launch(env, batch * inputs, AddFloatsWork{more_x, dx.data()});
  }
};

}  // namespace

void AddGru(sdk::KernelTable& k) {
  k.Add<GruCell>("GRUBlockCell").Class(WEIR_CLASS_GEMM, 100);
  k.Add<GruCellGrad>("GRUBlockCellGrad").Class(WEIR_CLASS_GEMM, 100);
}

}  // namespace weir::gpu
