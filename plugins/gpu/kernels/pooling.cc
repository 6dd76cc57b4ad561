// Maxima and means of windows, and their gradients: a thread for each element of the result.
#include <limits>

#include "plugins/functors/arithmetic.h"
#include "plugins/functors/pool_plans.h"
#include "plugins/gpu/kernels/broadcasting.h"
#include "plugins/gpu/kernels/changed_rows.h"
#include "plugins/gpu/kernels/families.h"
#include "plugins/gpu/kernels/storage.h"
#include "sdk/cpp/kernel.h"

namespace weir::gpu {
namespace {

using functors::PoolForm;
using functors::PoolPlan;
using functors::Steering;
using sdk::AnyInput;
using sdk::AnyOutput;
using sdk::Env;
using sdk::HostIntegers;
using sdk::Prep;

constexpr unsigned kPooled = kFloats | kIntegers | kUnsigned64;

/// Ranges of places along the three axes.
struct PoolBox {
  int64_t begin[3], end[3];
  WEIR_HD int64_t count() const {
    int64_t n = 1;
    for (int d = 0; d < 3; ++d) n *= end[d] > begin[d] ? end[d] - begin[d] : 0;
    return n;
  }
};

/// A PoolPlan on the device.
struct PoolShape {
  int64_t inner, depth_window, in_size, out_size;
  sdk::WindowAxis axes[3];
  Divider divider;

  explicit PoolShape(const PoolPlan& plan)
      : inner(plan.inner), depth_window(plan.depth_window), in_size(plan.in_size), out_size(plan.out_size) {
    for (int d = 0; d < 3; ++d) axes[d] = plan.axes[static_cast<size_t>(d)];
    divider = Divider::For(std::max(plan.outer * plan.in_size, plan.outer * plan.out_size));
  }

  struct Place {
    int64_t array, at[3], channel;
  };
  WEIR_HD Place OutPlace(int64_t i) const {
    Place p;
    p.channel = divider.Split(i, inner / depth_window);
    for (int d = 2; d >= 0; --d) p.at[d] = divider.Split(i, axes[d].output);
    p.array = i;
    return p;
  }
  WEIR_HD Place InPlace(int64_t i) const {
    Place p;
    p.channel = divider.Split(i, inner);
    for (int d = 2; d >= 0; --d) p.at[d] = divider.Split(i, axes[d].input);
    p.array = i;
    return p;
  }
  WEIR_HD int64_t In(int64_t array, int64_t z, int64_t y, int64_t x, int64_t channel) const {
    return array * in_size + ((z * axes[1].input + y) * axes[2].input + x) * inner + channel;
  }
  WEIR_HD int64_t Out(int64_t array, int64_t z, int64_t y, int64_t x, int64_t channel) const {
    return array * out_size + ((z * axes[1].output + y) * axes[2].output + x) * (inner / depth_window) + channel;
  }
  /// The places that a window reads.
  WEIR_HD PoolBox Reads(int64_t z, int64_t y, int64_t x) const {
    const int64_t at[3] = {z, y, x};
    PoolBox box;
    for (int d = 0; d < 3; ++d) {
      const int64_t start = at[d] * axes[d].stride - axes[d].before, end = start + axes[d].window;
      box.begin[d] = start > 0 ? start : 0;
      box.end[d] = end < axes[d].input ? end : axes[d].input;
    }
    return box;
  }
  /// The windows that read a place.
  WEIR_HD PoolBox ReadBy(const Place& p) const {
    PoolBox box;
    for (int d = 0; d < 3; ++d) {
      const int64_t last = p.at[d] + axes[d].before, first = last - axes[d].window + 1;
      box.begin[d] = first <= 0 ? 0 : (first - 1) / axes[d].stride + 1;
      const int64_t end = last / axes[d].stride + 1;
      box.end[d] = end < axes[d].output ? end : axes[d].output;
    }
    return box;
  }
  /// Calls body(z, y, x) in order, until it returns false.
  template <class Body>
  WEIR_HD static void For(const PoolBox& box, const Body& body) {
    for (int64_t z = box.begin[0]; z < box.end[0]; ++z) {
      for (int64_t y = box.begin[1]; y < box.end[1]; ++y) {
        for (int64_t x = box.begin[2]; x < box.end[2]; ++x) {
          if (!body(z, y, x)) return;
        }
      }
    }
  }
};

/// The largest element of each window; NaN is never.
template <class S>
struct MaxWork {
  using C = typename S::C;
  Ptr<const char> x;
  Ptr<char> y;
  PoolShape shape;
  C least;
  S storage;
  WEIR_GPU_FN void operator()(int64_t i) const {
    const PoolShape::Place p = shape.OutPlace(i);
    C best = least;
    for (int64_t c = 0; c < shape.depth_window; ++c) {
      PoolShape::For(shape.Reads(p.at[0], p.at[1], p.at[2]), [&](int64_t z, int64_t row, int64_t column) {
        const C value = storage.Load(x.get(), shape.In(p.array, z, row, column, p.channel * shape.depth_window + c));
        best = value > best ? value : best;
        return true;
      });
    }
    storage.Store(y.get(), i, best);
  }
};

template <class S>
struct MeanWork {
  Ptr<const char> x;
  Ptr<char> y;
  PoolShape shape;
  S storage;
  WEIR_GPU_FN void operator()(int64_t i) const {
    using C = typename S::C;
    const PoolShape::Place p = shape.OutPlace(i);
    const PoolBox box = shape.Reads(p.at[0], p.at[1], p.at[2]);
    C sum = C(0);
    PoolShape::For(box, [&](int64_t z, int64_t row, int64_t column) {
      sum += storage.Load(x.get(), shape.In(p.array, z, row, column, p.channel));
      return true;
    });
    storage.Store(y.get(), i, sum / static_cast<C>(box.count()));
  }
};

/// The lowest number of a compute type, which no element is below; of integers that of int64.
template <class C>
C Lowest() {
  return std::numeric_limits<C>::lowest();
}
/// What an empty window gives in the element type.
template <class S>
typename S::C LowestOf(uint32_t dtype) {
  using C = typename S::C;
  if constexpr (std::is_same_v<S, Integer>) {
    const uint32_t bits = 8 * sdk::SizeOf(dtype);
    return (kSignedBits & WEIR_DTYPE_BIT(dtype)) != 0
               ? static_cast<C>(-static_cast<int64_t>(uint64_t{1} << (bits - 2)) * 2)
               : 0;
  } else {
    return Lowest<C>();
  }
}

template <bool kMax>
struct PoolBase {
  PoolPlan plan;

  int32_t Plan(Prep& prep, const PoolForm& form) {
    if (prep.shape(0).rank != form.spatial + 2) {
      return prep.error().InvalidArgument("tensor_in must be ", form.spatial + 2, "-dimensional");
    }
    if (const int32_t code = plan.Make(prep, prep.shape(0), form); code != WEIR_OK) return code;
    return functors::ExpectOutput(prep, 0, plan.Output(form.spatial));
  }
  int32_t Fold(const Env& env, const AnyInput& x, const AnyOutput& y) const {
    if (plan.empty) return WEIR_OK;
    const PoolShape shape(plan);
    int32_t code = WEIR_OK;
    WithStorage<kMax ? kPooled : unsigned{kFloats}>(x.dtype(), [&](auto storage) {
      using S = decltype(storage);
      if constexpr (kMax) {
        code = Launch(env, y.size(), MaxWork<S>{From(x), To(y), shape, LowestOf<S>(x.dtype()), storage});
      } else {
        code = Launch(env, y.size(), MeanWork<S>{From(x), To(y), shape, storage});
      }
    });
    return code;
  }
};
template <bool kMax, uint32_t kSpatial, bool kDepth>
struct Pooling : PoolBase<kMax> {
  int32_t Prepare(Prep& prep) { return this->Plan(prep, {.spatial = kSpatial, .depth = kDepth}); }
  int32_t Run(Env& env, AnyInput x, AnyOutput y) const { return this->Fold(env, x, y); }
};
struct MaxPoolingV2 : PoolBase<true> {
  int32_t Prepare(Prep& prep) { return Plan(prep, {.depth = true, .steps_at = 1}); }
  int32_t Run(Env& env, AnyInput x, HostIntegers, HostIntegers, AnyOutput y) const { return Fold(env, x, y); }
};

template <class S>
struct MeanGradWork {
  Ptr<const char> dy;
  Ptr<char> dx;
  PoolShape shape;
  S storage;
  WEIR_GPU_FN void operator()(int64_t i) const {
    using C = typename S::C;
    const PoolShape::Place p = shape.InPlace(i);
    C sum = C(0);
    PoolShape::For(shape.ReadBy(p), [&](int64_t z, int64_t y, int64_t x) {
      const C share = C(1) / static_cast<C>(shape.Reads(z, y, x).count());
      sum += storage.Load(dy.get(), shape.Out(p.array, z, y, x, p.channel)) * share;
      return true;
    });
    storage.Store(dx.get(), i, sum);
  }
};
template <uint32_t kSpatial>
struct MeanPoolGrad : functors::MeanGradPlan<kSpatial> {
  int32_t Run(Env& env, HostIntegers, AnyInput dy, AnyOutput dx) const {
    if (this->none) return WEIR_OK;
    int32_t code = WEIR_OK;
    WithStorage<kFloats>(dx.dtype(), [&](auto storage) {
      code = Launch(env, dx.size(), MeanGradWork<decltype(storage)>{From(dy), To(dx), PoolShape(this->plan), storage});
    });
    return code;
  }
};

/// The place of a window's largest element, the first of equal ones; NaN only as the first element. -1 for none.
template <class S>
WEIR_HD int64_t WinnerOf(const S& storage, const char* x, const PoolShape& shape, const PoolBox& box, int64_t array,
                         int64_t channel) {
  using C = typename S::C;
  C best{};
  int64_t winner = -1;
  PoolShape::For(box, [&](int64_t z, int64_t row, int64_t column) {
    const int64_t at = shape.In(array, z, row, column, channel);
    const C value = storage.Load(x, at);
    if (winner < 0 || value > best) {
      best = value;
      winner = at;
    }
    return true;
  });
  return winner;
}

/// Of images, a window's gradient goes to its largest element; of volumes (kEqual), to those that equal its maximum.
/// The sum of the windows that read an element is made in the element type, as on the CPU. `y`: only of volumes.
template <class S, bool kEqual>
struct MaxGradWork {
  Ptr<const char> x, y, dy;
  Ptr<char> dx;
  PoolShape shape;
  S storage;
  WEIR_GPU_FN void operator()(int64_t i) const {
    using C = typename S::C;
    const PoolShape::Place p = shape.InPlace(i);
    storage.Store(dx.get(), i, C(0));
    PoolShape::For(shape.ReadBy(p), [&](int64_t z, int64_t row, int64_t column) {
      const int64_t at = shape.Out(p.array, z, row, column, p.channel);
      bool gets = false;
      if constexpr (kEqual) {
        gets = storage.Load(x.get(), i) == storage.Load(y.get(), at);
      } else {
        gets = WinnerOf(storage, x.get(), shape, shape.Reads(z, row, column), p.array, p.channel) == i;
      }
      if (gets) storage.Store(dx.get(), i, functors::Sum(storage.Load(dx.get(), i), storage.Load(dy.get(), at)));
      return true;
    });
  }
};
/// Per window, the gradient at the first element that equals the maximum.
template <class S>
struct GradGradWork {
  Ptr<const char> x, y, grad;
  Ptr<char> out;
  PoolShape shape;
  S storage;
  WEIR_GPU_FN void operator()(int64_t i) const {
    using C = typename S::C;
    const PoolShape::Place p = shape.OutPlace(i);
    const C largest = storage.Load(y.get(), i);
    C result = C(0);
    PoolShape::For(shape.Reads(p.at[0], p.at[1], p.at[2]), [&](int64_t z, int64_t row, int64_t column) {
      const int64_t at = shape.In(p.array, z, row, column, p.channel);
      if (!(storage.Load(x.get(), at) == largest)) return true;
      result = storage.Load(grad.get(), at);
      return false;
    });
    storage.Store(out.get(), i, result);
  }
};
template <class S>
struct ArgmaxWork {
  Ptr<const char> x;
  Ptr<char> y, argmax;
  PoolShape shape;
  bool with_batch;
  S storage;
  Integer indices;
  WEIR_GPU_FN void operator()(int64_t i) const {
    const PoolShape::Place p = shape.OutPlace(i);
    const int64_t at = WinnerOf(storage, x.get(), shape, shape.Reads(p.at[0], p.at[1], p.at[2]), p.array, p.channel);
    storage.Store(y.get(), i, at >= 0 ? storage.Load(x.get(), at) : typename S::C(0));
    indices.Store(argmax.get(), i, at < 0 ? at : with_batch ? at : at - p.array * shape.in_size);
  }
};

/// Steps from attributes, or from the last two inputs.
template <bool kInputSteps>
struct MaxPoolingGrad : functors::MaxGradientPlan {
  int32_t Prepare(Prep& prep) { return Plan(prep, functors::FormOf<2, kInputSteps>(true)); }
  int32_t Spread(const Env& env, const AnyInput& x, const AnyInput& dy, const AnyOutput& dx) const {
    if (functors::HasNoElements(dx.shape())) return WEIR_OK;
    int32_t code = WEIR_OK;
    WithStorage<kPooled>(dx.dtype(), [&](auto storage) {
      using Work = MaxGradWork<decltype(storage), false>;
      code = Launch(env, dx.size(), Work{From(x), nullptr, From(dy), To(dx), PoolShape(plan), storage});
    });
    return code;
  }
};
struct MaxGradByAttrs : MaxPoolingGrad<false> {
  int32_t Run(Env& env, AnyInput x, AnyInput, AnyInput dy, AnyOutput dx) const { return Spread(env, x, dy, dx); }
};
struct MaxGradByInputs : MaxPoolingGrad<true> {
  int32_t Run(Env& env, AnyInput x, AnyInput, AnyInput dy, HostIntegers, HostIntegers, AnyOutput dx) const {
    return Spread(env, x, dy, dx);
  }
};
struct MaxGradOfVolumes : functors::MaxGradientPlan {
  int32_t Prepare(Prep& prep) { return Plan(prep, functors::FormOf<3, false>(true)); }
  int32_t Run(Env& env, AnyInput x, AnyInput y, AnyInput dy, AnyOutput dx) const {
    if (functors::HasNoElements(dx.shape())) return WEIR_OK;
    int32_t code = WEIR_OK;
    WithStorage<kFloats>(dx.dtype(), [&](auto storage) {
      using Work = MaxGradWork<decltype(storage), true>;
      code = Launch(env, dx.size(), Work{From(x), From(y), From(dy), To(dx), PoolShape(plan), storage});
    });
    return code;
  }
};
template <uint32_t kSpatial, bool kInputSteps>
struct MaxGradGradBase : functors::MaxGradientPlan {
  int32_t Prepare(Prep& prep) { return Plan(prep, functors::FormOf<kSpatial, kInputSteps>(false)); }
  int32_t Pick(const Env& env, const AnyInput& x, const AnyInput& y, const AnyInput& grad, const AnyOutput& out) const {
    if (plan.empty) return WEIR_OK;
    int32_t code = WEIR_OK;
    WithStorage<kPooled>(out.dtype(), [&](auto storage) {
      code = Launch(env, out.size(),
                    GradGradWork<decltype(storage)>{From(x), From(y), From(grad), To(out), PoolShape(plan), storage});
    });
    return code;
  }
};
template <uint32_t kSpatial>
struct MaxGradGrad : MaxGradGradBase<kSpatial, false> {
  int32_t Run(Env& env, AnyInput x, AnyInput y, AnyInput grad, AnyOutput out) const {
    return this->Pick(env, x, y, grad, out);
  }
};
struct MaxGradGradByInputs : MaxGradGradBase<2, true> {
  int32_t Run(Env& env, AnyInput x, AnyInput y, AnyInput grad, HostIntegers, HostIntegers, AnyOutput out) const {
    return Pick(env, x, y, grad, out);
  }
};
struct MaxWithArgmax {
  PoolPlan plan;
  bool with_batch = false;

  int32_t Prepare(Prep& prep) {
    if (prep.shape(0).rank != 4) return prep.error().InvalidArgument("tensor_in must be 4-dimensional (2)");
    if (const int32_t code = plan.Make(prep, prep.shape(0), {}); code != WEIR_OK) return code;
    with_batch = prep.node().Bool("include_batch_in_index", false);
    const int32_t code = functors::ExpectOutput(prep, 0, plan.Output(2));
    return code != WEIR_OK ? code : functors::ExpectOutput(prep, 1, plan.Output(2));
  }
  int32_t Run(Env& env, AnyInput x, AnyOutput y, AnyOutput argmax) const {
    if (plan.empty) return WEIR_OK;
    int32_t code = WEIR_OK;
    WithStorage<kPooled>(x.dtype(), [&](auto storage) {
      code = Launch(env, y.size(),
                    ArgmaxWork<decltype(storage)>{
                        From(x), To(y), To(argmax), PoolShape(plan), with_batch, storage, {argmax.dtype()}});
    });
    return code;
  }
};

/// Where the gradient of a place of the result goes, by the positions that MaxPoolWithArgmax gives. As in TensorFlow's
/// kernels for GPUs, one outside the image is left out.
struct NamedPlaceKey {
  Ptr<const char> argmax;
  Integer indices;
  int64_t in_size, out_size;
  bool with_batch;
  WEIR_GPU_FN uint64_t operator()(int64_t i) const {
    const int64_t named = indices.Load(argmax.get(), i), first = i / out_size * in_size;
    const int64_t at = with_batch ? named : named < 0 ? -1 : first + named;
    return at >= first && at < first + in_size ? static_cast<uint64_t>(at) : kNowhere;
  }
};
struct MaxGradByPositions : functors::MaxGradientPlan {
  bool with_batch = false;

  int32_t Prepare(Prep& prep) {
    functors::GradForm form;
    form.grad = 1;
    if (const int32_t code = Plan(prep, form); code != WEIR_OK) return code;
    with_batch = prep.node().Bool("include_batch_in_index", false);
    const int32_t code = functors::ExpectPooled(prep, 2, "argmax", plan.Output(2));
    if (code == WEIR_OK && !plan.empty) prep.Scratch(SortBytes(prep.size(2)));
    return code;
  }
  int32_t Run(Env& env, AnyInput, AnyInput dy, AnyInput argmax, AnyOutput dx, sdk::Scratch<KeyedPlace> order) const {
    if (functors::HasNoElements(dx.shape())) return WEIR_OK;
    int32_t code = Fill(env, dx.data(), 0, static_cast<uint64_t>(dx.size()) * sdk::SizeOf(dx.dtype()));
    if (code != WEIR_OK || plan.empty) return code;
    const int64_t n = argmax.size();
    code =
        SortPlaces(StreamOf(env), n, order.data(),
                   NamedPlaceKey{From(argmax), {argmax.dtype()}, plan.in_size, plan.out_size, with_batch}, env.error());
    if (code != WEIR_OK) return code;
    WithStorage<kPooled>(dx.dtype(), [&](auto storage) {
      using Change = ElementChange<functors::Add, decltype(storage)>;
      code = Launch(env, n, ChangedRowsWork<Change>{order.data(), n, 1, Change{From(dy), To(dx), 1, storage}});
    });
    return code;
  }
};

}  // namespace

void AddPooling(sdk::KernelTable& k) {
  const auto add = [](sdk::Kernel& kernel, uint64_t dtypes, double flops) -> sdk::Kernel& {
    return kernel.Restrict("T", dtypes).Class(WEIR_CLASS_REDUCE, flops);
  };
  constexpr uint64_t kMaxBits = kFloatingBits | kSignedBits | DTypes({WEIR_UINT8, WEIR_UINT16});
  constexpr uint64_t kVolumes = k16BitBits | DTypes({WEIR_FLOAT32});
  add(k.Add<Pooling<true, 2, true>>("MaxPool"), kMaxBits, 9);
  add(k.Add<MaxPoolingV2>("MaxPoolV2"), kMaxBits, 9);
  add(k.Add<Pooling<true, 3, false>>("MaxPool3D"), kVolumes, 27);
  add(k.Add<Pooling<false, 2, false>>("AvgPool"), kFloatingBits, 9);
  add(k.Add<Pooling<false, 3, false>>("AvgPool3D"), kFloatingBits, 27);
  add(k.Add<MeanPoolGrad<2>>("AvgPoolGrad"), kFloatingBits, 9);
  add(k.Add<MeanPoolGrad<3>>("AvgPool3DGrad"), kFloatingBits, 27);
  add(k.Add<MaxGradByAttrs>("MaxPoolGrad"), kRealBits, 9);
  add(k.Add<MaxGradByInputs>("MaxPoolGradV2"), kRealBits, 9);
  for (const uint32_t type : {WEIR_FLOAT16, WEIR_BFLOAT16, WEIR_FLOAT32}) {  // of the volumes and of the gradient
    if ((kVolumes & WEIR_DTYPE_BIT(type)) == 0) continue;
    add(k.Add<MaxGradOfVolumes>("MaxPool3DGrad"), DTypes({type}), 27).Restrict("TInput", DTypes({type}));
  }
  add(k.Add<MaxGradGrad<2>>("MaxPoolGradGrad"), kRealBits, 9);
  add(k.Add<MaxGradGradByInputs>("MaxPoolGradGradV2"), kRealBits, 9);
  add(k.Add<MaxGradGrad<3>>("MaxPool3DGradGrad"), kRealBits, 27);
  add(k.Add<MaxWithArgmax>("MaxPoolWithArgmax"), kRealBits, 9).Restrict("Targmax", kIndexBits);
  add(k.Add<MaxGradByPositions>("MaxPoolGradWithArgmax"), kRealBits, 9).Restrict("Targmax", kIndexBits);
}

}  // namespace weir::gpu
