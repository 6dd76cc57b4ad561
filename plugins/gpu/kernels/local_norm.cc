// Local response normalisation: a thread for each element, after the norms of all.
#include "plugins/functors/lrn_plans.h"
#include "plugins/gpu/kernels/families.h"
#include "plugins/gpu/kernels/storage.h"
#include "sdk/cpp/kernel.h"

namespace weir::gpu {
namespace {

using sdk::AnyInput;
using sdk::AnyOutput;
using sdk::Env;
using sdk::Prep;

/// The channels around a channel of a row.
struct Neighbourhood {
  int64_t depth, radius;
  WEIR_GPU_FN int64_t Begin(int64_t c) const { return c > radius ? c - radius : 0; }
  WEIR_GPU_FN int64_t End(int64_t c) const { return c + radius + 1 < depth ? c + radius + 1 : depth; }
};

/// norms[c] = bias + alpha * the sum of squares around c.
template <class S>
struct LrnNormWork {
  Ptr<const char> x;
  Ptr<float> norms;
  functors::LrnPlan plan;
  S storage;
  WEIR_GPU_FN void operator()(int64_t i) const {
    const Neighbourhood around{plan.depth, plan.radius};
    const int64_t c = i % plan.depth, row = i - c;
    float sum = 0;
    for (int64_t k = around.Begin(c); k < around.End(c); ++k) {
      const auto value = static_cast<float>(storage.Load(x.get(), row + k));
      sum += value * value;
    }
    norms[i] = plan.bias + plan.alpha * sum;
  }
};
template <class S>
struct LrnWork {
  Ptr<const char> x;
  Ptr<const float> norms;
  Ptr<char> y;
  functors::LrnPlan plan;
  S storage;
  WEIR_GPU_FN void operator()(int64_t i) const {
    storage.Store(y.get(), i, static_cast<float>(storage.Load(x.get(), i)) * plan.Power(norms[i]));
  }
};
template <class S>
struct LrnGradWork {
  Ptr<const char> dy, x, y;
  Ptr<const float> norms;
  Ptr<char> dx;
  functors::LrnPlan plan;
  S storage;
  WEIR_GPU_FN void operator()(int64_t i) const {
    const Neighbourhood around{plan.depth, plan.radius};
    const int64_t c = i % plan.depth, row = i - c;
    const auto value = static_cast<float>(storage.Load(x.get(), i));
    float sum = 0;
    for (int64_t k = around.Begin(c); k < around.End(c); ++k) {
      const float norm = norms[row + k];
      const auto slope = static_cast<float>(storage.Load(dy.get(), row + k));
      const auto result = static_cast<float>(storage.Load(y.get(), row + k));
      sum += -2 * plan.alpha * plan.beta * result / norm * slope * value;
      if (k == c) sum += plan.Power(norm) * slope;
    }
    storage.Store(dx.get(), i, sum);
  }
};

template <class Plan>
struct Lrn : Plan {
  int32_t Prepare(Prep& prep) {
    const int32_t code = Plan::Prepare(prep);
    if (code == WEIR_OK && this->rows > 0) prep.Scratch(static_cast<uint64_t>(prep.size(0)) * sizeof(float));
    return code;
  }
  template <class S>
  int32_t Norms(const Env& env, const AnyInput& x, float* norms, S storage) const {
    return Launch(env, this->rows * this->depth, LrnNormWork<S>{From(x), norms, *this, storage});
  }
};
struct LrnForward : Lrn<functors::LrnForwardPlan> {
  int32_t Run(Env& env, AnyInput x, AnyOutput y, sdk::Scratch<float> norms) const {
    int32_t code = WEIR_OK;
    WithStorage<kFloats>(x.dtype(), [&](auto storage) {
      code = Norms(env, x, norms.data(), storage);
      if (code != WEIR_OK) return;
      code = Launch(env, rows * depth, LrnWork<decltype(storage)>{From(x), norms.data(), To(y), *this, storage});
    });
    return code;
  }
};
struct LrnGrad : Lrn<functors::LrnGradPlan> {
  int32_t Run(Env& env, AnyInput dy, AnyInput x, AnyInput y, AnyOutput dx, sdk::Scratch<float> norms) const {
    int32_t code = WEIR_OK;
    WithStorage<kFloats>(x.dtype(), [&](auto storage) {
      code = Norms(env, x, norms.data(), storage);
      if (code != WEIR_OK) return;
      code = Launch(env, rows * depth,
                    LrnGradWork<decltype(storage)>{From(dy), From(x), From(y), norms.data(), To(dx), *this, storage});
    });
    return code;
  }
};

}  // namespace

void AddLocalNorm(sdk::KernelTable& k) {
  const uint64_t kTypes = kFloatingBits & ~WEIR_DTYPE_BIT(WEIR_FLOAT64);
  k.Add<LrnForward>("LRN").Restrict("T", kTypes).Class(WEIR_CLASS_REDUCE, 30);
  k.Add<LrnGrad>("LRNGrad").Restrict("T", kTypes).Class(WEIR_CLASS_REDUCE, 60);
}

}  // namespace weir::gpu
