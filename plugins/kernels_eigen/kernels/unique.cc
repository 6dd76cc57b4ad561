// UniqueV2, UniqueWithCounts and UniqueWithCountsV2: distinct slices along an axis.
#include "plugins/functors/unique_axis.h"

#include <algorithm>
#include <concepts>
#include <unordered_map>
#include <vector>

#include "plugins/kernels_eigen/array_families.h"
#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/operands.h"

namespace weir::kernels_eigen {
namespace {

using sdk::Context;
using sdk::View;

/// What is compared: -0 equals 0, and a NaN equals nothing, not even itself.
template <class T>
auto Comparable(const T& x) {
  if constexpr (std::floating_point<sdk::Compute<T>>) {
    return static_cast<double>(x) + 0.0;
  } else if constexpr (std::same_as<T, sdk::boolean>) {
    return static_cast<uint64_t>(x ? 1 : 0);
  } else {
    return static_cast<uint64_t>(x);
  }
}

/// The n slices of an array [outer, n, inner].
template <class T>
struct Slices {
  const T* data = nullptr;
  int64_t outer = 1, n = 0, inner = 1;

  template <class Body>
  bool All(int64_t slice, Body&& body) const {
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t i = 0; i < inner; ++i) {
        if (!body((o * n + slice) * inner + i)) return false;
      }
    }
    return true;
  }
  uint64_t Hash(int64_t slice) const {
    uint64_t hash = 0x9e3779b97f4a7c15u;
    All(slice, [&](int64_t at) {
      const auto key = Comparable(data[at]);
      hash = (hash ^ std::hash<std::remove_const_t<decltype(key)>>()(key)) * 0xbf58476d1ce4e5b9u;
      hash ^= hash >> 29;
      return true;
    });
    return hash;
  }
  bool Equal(int64_t a, int64_t b) const {
    const int64_t shift = (b - a) * inner;
    return All(a, [&](int64_t at) { return Comparable(data[at]) == Comparable(data[at + shift]); });
  }
};

template <bool kAxis, bool kCounts>
struct UniqueSlices {
  uint32_t index_type = WEIR_INT32;

  int32_t Prepare(const sdk::Node& node, const sdk::Error&) {
    index_type = node.DType("out_idx", WEIR_INT32);
    return WEIR_OK;
  }

  template <class T>
  int32_t Compute(Context& ctx) {
    View<const T> x;
    if (const int32_t code = ctx.Input(0, &x); code != WEIR_OK) return code;
    int64_t axis = 0;
    if (const int32_t code = functors::ReadUniqueAxis(ctx, kAxis, x.rank(), &axis); code != WEIR_OK) return code;
    const auto along = static_cast<uint32_t>(axis);
    Slices<T> slices;
    slices.data = x.data();
    slices.n = x.dim(along);
    if (index_type == WEIR_INT32 && slices.n > INT32_MAX) {
      return ctx.error().InvalidArgument("unique does not support input tensors larger than ", INT32_MAX, " elements");
    }
    if (HasNoElements(x.shape())) {
      slices.outer = slices.inner = 0;
    } else {
      slices.outer = SizeOf(x.shape(), 0, along);
      slices.inner = SizeOf(x.shape(), along + 1, x.rank());
    }
    return index_type == WEIR_INT64 ? Find<T, int64_t>(ctx, x, along, slices) : Find<T, int32_t>(ctx, x, along, slices);
  }

 private:
  template <class T, class I>
  static int32_t Find(Context& ctx, const View<const T>& x, uint32_t axis, const Slices<T>& slices) {
    View<I> positions;
    if (const int32_t code = ctx.Output(1, {slices.n}, &positions); code != WEIR_OK) return code;
    std::unordered_multimap<uint64_t, int64_t> known;  // by hash, the place among the distinct ones
    std::vector<int64_t> distinct;                     // the first slice of each
    std::vector<I> counts;
    for (int64_t slice = 0; slice < slices.n; ++slice) {
      const uint64_t hash = slices.Hash(slice);
      auto [at, end] = known.equal_range(hash);
      while (at != end && !slices.Equal(distinct[static_cast<size_t>(at->second)], slice)) ++at;
      if (at == end) {
        at = known.emplace(hash, static_cast<int64_t>(distinct.size()));
        distinct.push_back(slice);
        counts.push_back(0);
      }
      positions[slice] = static_cast<I>(at->second);
      ++counts[static_cast<size_t>(at->second)];
    }
    std::vector<int64_t> dims = DimsOf(x.shape());
    dims[axis] = static_cast<int64_t>(distinct.size());
    View<T> y;
    if (const int32_t code = ctx.Output(0, weir_shape{static_cast<uint32_t>(dims.size()), 0, dims.data()}, &y);
        code != WEIR_OK) {
      return code;
    }
    for (int64_t o = 0; o < slices.outer; ++o) {
      for (size_t k = 0; k < distinct.size(); ++k) {
        const T* const from = slices.data + (o * slices.n + distinct[k]) * slices.inner;
        std::copy_n(from, slices.inner, y.data() + (o * dims[axis] + static_cast<int64_t>(k)) * slices.inner);
      }
    }
    if constexpr (kCounts) {
      View<I> count;
      if (const int32_t code = ctx.Output(2, {dims[axis]}, &count); code != WEIR_OK) return code;
      std::copy(counts.begin(), counts.end(), count.data());
    }
    return WEIR_OK;
  }
};

}  // namespace

void AddUnique(sdk::KernelTable& k) {
  k.Add<UniqueSlices<true, false>>("UniqueV2", kReal + kBool).Class(WEIR_CLASS_SORT);
  k.Add<UniqueSlices<false, true>>("UniqueWithCounts", kReal + kBool).Class(WEIR_CLASS_SORT);
  k.Add<UniqueSlices<true, true>>("UniqueWithCountsV2", kReal + kBool).Class(WEIR_CLASS_SORT);
}

}  // namespace weir::kernels_eigen
