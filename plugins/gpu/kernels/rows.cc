// Rows by index: gathers, scatters, segments, OneHot. As in TensorFlow's kernels for GPUs, a gather of a row that does
// not exist gives zeros, and an update of one does nothing.
#include "plugins/functors/row_plans.h"

#include <limits>

#include "plugins/functors/arithmetic.h"
#include "plugins/functors/segment_rules.h"
#include "plugins/gpu/kernels/changed_rows.h"
#include "plugins/gpu/kernels/families.h"
#include "plugins/gpu/kernels/moves.h"
#include "sdk/cpp/kernel.h"

namespace weir::gpu {
namespace {

using functors::Steering;
using sdk::AnyInput;
using sdk::AnyOutput;
using sdk::AnyVariable;
using sdk::Env;
using sdk::HostIntegers;
using sdk::Prep;

template <class E>
struct GatherWork {
  Ptr<const E> from;
  Ptr<E> to;
  Indices indices;
  int64_t outer, limit, picks, row;  // elements of a row
  Divider divider;
  WEIR_GPU_FN void operator()(int64_t i) const {
    int64_t rest = i;
    const int64_t column = divider.Split(rest, row), pick = divider.Split(rest, picks);
    int64_t batch = rest;
    divider.Split(batch, outer);
    const int64_t index = indices[batch * picks + pick];
    const bool inside = index >= 0 && index < limit;
    E none{};
    to[i] = inside ? from[(rest * limit + index) * row + column] : none;
  }
};

struct GatherBase : functors::GatherRows {
  int32_t Take(const Env& env, const void* params, const AnyInput& indices, const AnyOutput& out) const {
    const int64_t n = out.size();
    if (n == 0) return WEIR_OK;
    const uint32_t bytes = sdk::SizeOf(out.dtype());
    return functors::ForBytes(bytes, [&](auto element) {
      using E = decltype(element);
      return Launch(env, n,
                    GatherWork<E>{static_cast<const E*>(params), static_cast<E*>(out.data()), Indices(indices), outer,
                                  limit, picks, static_cast<int64_t>(block / bytes), Divider::For(n)});
    });
  }
};
struct Gather : GatherBase {
  int32_t Prepare(Prep& prep) { return Plan(prep, 0, 0); }
  int32_t Run(Env& env, AnyInput params, AnyInput indices, AnyOutput out) const {
    return Take(env, params.data(), indices, out);
  }
};
struct GatherV2 : GatherBase {
  int32_t Prepare(Prep& prep) {
    int64_t axis = 0;
    if (const int32_t code = Steering(prep, 2, "axis", &axis); code != WEIR_OK) return code;
    return Plan(prep, axis, prep.node().Int("batch_dims"));
  }
  int32_t Run(Env& env, AnyInput params, AnyInput indices, HostIntegers, AnyOutput out) const {
    return Take(env, params.data(), indices, out);
  }
};
struct ResourceGather : GatherBase {
  int32_t Prepare(Prep& prep) {
    const int64_t batch_dims = prep.node().Int("batch_dims");
    if (batch_dims < 0) return prep.error().InvalidArgument("batch_dims is negative (", batch_dims, ")");
    return Plan(prep, batch_dims, batch_dims);
  }
  int32_t Run(Env& env, AnyVariable params, AnyInput indices, AnyOutput out) const {
    return Take(env, params.data(), indices, out);
  }
};

template <class E>
struct GatherNdWork {
  Ptr<const E> from;
  Ptr<E> to;
  DevicePlaces places;
  WEIR_GPU_FN void operator()(int64_t i) const {
    const int64_t at = places.At(i / places.row);
    E none{};
    to[i] = at >= 0 ? from[at + i % places.row] : none;
  }
};
struct GatherNdBase : functors::GatherNdPlan {
  int32_t Prepare(Prep& prep) {
    const int32_t code = GatherNdPlan::Prepare(prep);
    return code != WEIR_OK ? code : DevicePlaces::Check(prep, places);
  }
  int32_t Take(const Env& env, const void* params, const AnyInput& indices, const AnyOutput& out) const {
    const int64_t n = out.size();
    if (n == 0) return WEIR_OK;
    return functors::ForBytes(sdk::SizeOf(out.dtype()), [&](auto element) {
      using E = decltype(element);
      return Launch(
          env, n,
          GatherNdWork<E>{static_cast<const E*>(params), static_cast<E*>(out.data()), DevicePlaces(places, indices)});
    });
  }
};
struct GatherNd : GatherNdBase {
  int32_t Run(Env& env, AnyInput params, AnyInput indices, AnyOutput out) const {
    return Take(env, params.data(), indices, out);
  }
};
struct ResourceGatherNd : GatherNdBase {
  int32_t Run(Env& env, AnyVariable params, AnyInput indices, AnyOutput out) const {
    return Take(env, params.data(), indices, out);
  }
};

template <class E>
struct OneHotWork {
  Ptr<const E> on, off;
  Ptr<E> to;
  Indices indices;
  int64_t depth, inner;
  WEIR_GPU_FN void operator()(int64_t i) const {
    const int64_t column = i % inner, rest = i / inner, place = rest % depth, row = rest / depth;
    to[i] = indices[row * inner + column] == place ? on[0] : off[0];
  }
};
struct OneHot : functors::OneHotPlan {
  int32_t Run(Env& env, AnyInput indices, HostIntegers, AnyInput on, AnyInput off, AnyOutput out) const {
    const int64_t n = out.size();
    if (n == 0) return WEIR_OK;
    return functors::ForBytes(sdk::SizeOf(out.dtype()), [&](auto element) {
      using E = decltype(element);
      return Launch(env, n,
                    OneHotWork<E>{static_cast<const E*>(on.data()), static_cast<const E*>(off.data()),
                                  static_cast<E*>(out.data()), Indices(indices), depth, inner});
    });
  }
};

// How an element of an update changes one of the target.
struct Replace {
  template <class C>
  WEIR_HD C operator()(C, C x) const {
    return x;
  }
};
struct Raise {
  template <class C>
  WEIR_HD C operator()(C a, C x) const {
    return functors::Larger(a, x);
  }
};
struct Lower {
  template <class C>
  WEIR_HD C operator()(C a, C x) const {
    return functors::Smaller(a, x);
  }
};
struct Divide {
  template <class C>
  WEIR_HD C operator()(C a, C x) const {
    return functors::Quotient(a, x);
  }
};
template <class Change, unsigned kKinds>
int32_t ChangeRows(const Env& env, const functors::Places& places, const AnyInput& indices, uint32_t dtype,
                   const void* updates, bool one_update, void* target, const sdk::Scratch<char>& scratch) {
  int32_t code = WEIR_OK;
  WithStorage<kKinds>(dtype, [&](auto storage) {
    using S = decltype(storage);
    const ElementChange<Change, S> change{Ptr<const char>(static_cast<const char*>(updates)),
                                          Ptr<char>(static_cast<char*>(target)), one_update ? 0 : 1, storage};
    code = LaunchChangedRows(env, DevicePlaces(places, indices), change, scratch.data());
  });
  return code;
}

/// Scatter…, ResourceScatter… and their Nd forms: Plan checks the operands.
template <class Plan, class Change, unsigned kKinds>
struct ScatterVariable : Plan {
  bool one_update = false;

  int32_t Prepare(Prep& prep) {
    if (const int32_t code = Plan::Prepare(prep); code != WEIR_OK) return code;
    one_update = prep.shape(2).rank == 0;
    PrepareChangedRows(prep, this->places);
    return DevicePlaces::Check(prep, this->places);
  }
  template <class T>
  int32_t Run(Env& env, sdk::Variable<T> params, AnyInput indices, AnyInput updates,
              sdk::Scratch<char> scratch) const {
    return ChangeRows<Change, kKinds>(env, this->places, indices, updates.dtype(), updates.data(), one_update,
                                      params.data(), scratch);
  }
};

template <class Change, unsigned kKinds>
struct ScatterNd : functors::ScatterNdPlan {
  int32_t Prepare(Prep& prep) {
    const int32_t code = ScatterNdPlan::Prepare(prep);
    PrepareChangedRows(prep, places);
    return code != WEIR_OK ? code : DevicePlaces::Check(prep, places);
  }
  int32_t Run(Env& env, AnyInput indices, AnyInput updates, HostIntegers, AnyOutput out,
              sdk::Scratch<char> scratch) const {
    const int32_t code = Fill(env, out.data(), 0, static_cast<uint64_t>(out.size()) * sdk::SizeOf(out.dtype()));
    if (code != WEIR_OK) return code;
    return ChangeRows<Change, kKinds>(env, places, indices, out.dtype(), updates.data(), false, out.data(), scratch);
  }
};

template <class Change, unsigned kKinds>
struct TensorScatter : functors::TensorScatterPlan {
  int32_t Prepare(Prep& prep) {
    const int32_t code = TensorScatterPlan::Prepare(prep);
    PrepareChangedRows(prep, places);
    return code != WEIR_OK ? code : DevicePlaces::Check(prep, places);
  }
  int32_t Run(Env& env, AnyInput tensor, AnyInput indices, AnyInput updates, AnyOutput out,
              sdk::Scratch<char> scratch) const {
    const uint64_t bytes = static_cast<uint64_t>(out.size()) * sdk::SizeOf(out.dtype());
    if (bytes == 0) return WEIR_OK;
    if (tensor.data() != out.data()) {
      if (const int32_t code = Copy(env, out.data(), tensor.data(), bytes); code != WEIR_OK) return code;
    }
    return ChangeRows<Change, kKinds>(env, places, indices, out.dtype(), updates.data(), false, out.data(), scratch);
  }
};

template <class S>
struct FillNumberWork {
  Ptr<char> y;
  typename S::C value;
  S storage;
  WEIR_GPU_FN void operator()(int64_t i) const { storage.Store(y.get(), i, value); }
};

/// What an empty segment gives: 0, 1, or the least or largest finite number.
enum class Start { kZero, kOne, kLeast, kMost };

template <class C>
C FiniteLimit(uint32_t dtype, bool least) {
  if constexpr (std::is_same_v<C, int64_t>) {
    const uint32_t bits = 8 * sdk::SizeOf(dtype);
    const bool is_signed = (kSignedBits & WEIR_DTYPE_BIT(dtype)) != 0;
    if (!is_signed) return least ? 0 : static_cast<int64_t>(~uint64_t{0} >> (64 - bits));
    const auto most = static_cast<int64_t>(~uint64_t{0} >> (65 - bits));
    return least ? -most - 1 : most;
  } else if constexpr (std::is_integral_v<C>) {
    return least ? std::numeric_limits<C>::lowest() : std::numeric_limits<C>::max();
  } else {
    const C most = dtype == WEIR_FLOAT16    ? C(65504)
                   : dtype == WEIR_BFLOAT16 ? C(0x1.fep127)
                                            : std::numeric_limits<C>::max();
    return least ? -most : most;
  }
}

template <class Rule, Start kStart, unsigned kKinds>
struct UnsortedSegments : functors::UnsortedSegmentsPlan {
  functors::Places places;

  int32_t Prepare(Prep& prep) {
    if (const int32_t code = UnsortedSegmentsPlan::Prepare(prep); code != WEIR_OK) return code;
    places.count = prep.size(1);
    places.row = row;
    places.limits = {segments};
    places.steps = {row};
    if (prep.size(0) != 0) PrepareChangedRows(prep, places);
    return WEIR_OK;
  }
  int32_t Run(Env& env, AnyInput data, AnyInput ids, HostIntegers, AnyOutput out, sdk::Scratch<char> scratch) const {
    int32_t code = WEIR_OK;
    WithStorage<kKinds>(out.dtype(), [&](auto storage) {
      using C = typename decltype(storage)::C;
      C first{};
      if constexpr (kStart == Start::kOne) first = C(1);
      if constexpr (kStart == Start::kLeast || kStart == Start::kMost) {
        first = FiniteLimit<C>(out.dtype(), kStart == Start::kLeast);
      }
      code = Launch(env, out.size(), FillNumberWork<decltype(storage)>{To(out), first, storage});
    });
    if (code != WEIR_OK || data.size() == 0) return code;
    return ChangeRows<Rule, kKinds>(env, places, ids, out.dtype(), data.data(), false, out.data(), scratch);
  }
};

constexpr unsigned kRowNumbers = kFloats | kIntegers | kComplexes, kRowReals = kFloats | kIntegers | kUnsigned64;

sdk::Kernel& Gathers(sdk::Kernel& kernel) { return kernel.Class(WEIR_CLASS_GATHER, 1); }

template <class Plan, class Change, unsigned kKinds>
void AddScatter(sdk::KernelTable& k, const std::string& op, const char* attr, uint64_t dtypes) {
  Gathers(AddForVariables<ScatterVariable<Plan, Change, kKinds>>(k, op, attr, dtypes));
}
template <class Change, unsigned kKinds>
void AddScatters(sdk::KernelTable& k, const std::string& name, uint64_t dtypes, uint64_t of_handles) {
  AddScatter<functors::ScatterRowsPlan, Change, kKinds>(k, "Scatter" + name, "T", dtypes);
  AddScatter<functors::ScatterRowsPlan, Change, kKinds>(k, "ResourceScatter" + name, "dtype", of_handles);
}
template <class Change, unsigned kKinds>
void AddSlices(sdk::KernelTable& k, const std::string& name, uint64_t dtypes) {
  AddScatter<functors::ScatterSlicesPlan, Change, kKinds>(k, "ScatterNd" + name, "T", dtypes);
  AddScatter<functors::ScatterSlicesPlan, Change, kKinds>(k, "ResourceScatterNd" + name, "T", dtypes);
}

}  // namespace

void AddRows(sdk::KernelTable& k) {
  namespace f = functors;
  constexpr uint64_t kMoved = f::kPlainSet;
  Gathers(k.Add<Gather>("Gather")).Restrict("Tparams", kMoved);
  Gathers(k.Add<GatherV2>("GatherV2")).Restrict("Tparams", kMoved);
  Gathers(k.Add<GatherNd>("GatherNd")).Restrict("Tparams", kMoved);
  Gathers(k.Add<ResourceGather>("ResourceGather")).Restrict("dtype", kMoved);
  Gathers(k.Add<ResourceGatherNd>("ResourceGatherNd")).Restrict("dtype", kMoved);
  Gathers(k.Add<OneHot>("OneHot")).Restrict("T", kMoved);
  constexpr uint64_t kOrdered = kFloatingBits | kIndexBits;
  constexpr unsigned kReplaced = kRowNumbers | kBools;
  AddScatters<Replace, kReplaced>(k, "Update", kNumberBits | kBoolBits, kNumberBits | kBoolBits);
  AddScatters<f::Add, kRowNumbers>(k, "Add", kNumberBits, kNumberBits);
  AddScatters<f::Sub, kRowNumbers>(k, "Sub", kNumberBits, kNumberBits);
  AddScatters<f::Mul, kRowNumbers>(k, "Mul", kNumberBits, kNumberBits);
  AddScatters<Divide, kRowNumbers | kUnsigned64>(k, "Div", kNumberBits, kNumberBits);
  AddScatters<Lower, kRowReals>(k, "Min", kOrdered, kRealBits);
  AddScatters<Raise, kRowReals>(k, "Max", kOrdered, kRealBits);
  AddSlices<Replace, kReplaced>(k, "Update", kNumberBits | kBoolBits);
  AddSlices<f::Add, kRowNumbers>(k, "Add", kNumberBits);
  AddSlices<f::Sub, kRowNumbers>(k, "Sub", kNumberBits);
  AddSlices<Lower, kRowReals>(k, "Min", kRealBits);
  AddSlices<Raise, kRowReals>(k, "Max", kRealBits);
  Gathers(k.Add<ScatterNd<f::Add, kRowNumbers>>("ScatterNd")).Restrict("T", kNumberBits);
  Gathers(k.Add<TensorScatter<Replace, kReplaced>>("TensorScatterUpdate"))
      .Restrict("T", kNumberBits | kBoolBits);
  Gathers(k.Add<TensorScatter<f::Add, kRowNumbers>>("TensorScatterAdd")).Restrict("T", kNumberBits);
  Gathers(k.Add<TensorScatter<f::Sub, kRowNumbers>>("TensorScatterSub")).Restrict("T", kNumberBits);
  Gathers(k.Add<TensorScatter<Lower, kRowReals>>("TensorScatterMin")).Restrict("T", kRealBits);
  Gathers(k.Add<TensorScatter<Raise, kRowReals>>("TensorScatterMax")).Restrict("T", kRealBits);
  Gathers(k.Add<TensorScatter<f::Add, kRowNumbers>>("ScatterNdNonAliasingAdd")).Restrict("T", kNumberBits);
  Gathers(k.Add<UnsortedSegments<f::Add, Start::kZero, kRowNumbers>>("UnsortedSegmentSum")).Restrict("T", kNumberBits);
  Gathers(k.Add<UnsortedSegments<f::Mul, Start::kOne, kRowNumbers>>("UnsortedSegmentProd")).Restrict("T", kNumberBits);
  Gathers(k.Add<UnsortedSegments<f::SegmentLargest, Start::kLeast, kRowReals>>("UnsortedSegmentMax"))
      .Restrict("T", kRealBits);
  Gathers(k.Add<UnsortedSegments<f::SegmentSmallest, Start::kMost, kRowReals>>("UnsortedSegmentMin"))
      .Restrict("T", kRealBits);
}

}  // namespace weir::gpu
