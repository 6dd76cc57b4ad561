// Rows by index: Gather, GatherV2, GatherNd, ResourceGather, ResourceGatherNd, DynamicStitch, OneHot.
#include <algorithm>
#include <cstring>

#include "plugins/functors/row_plans.h"
#include "plugins/functors/stitch_plan.h"
#include "plugins/kernels_eigen/families.h"
#include "plugins/kernels_eigen/operands.h"
#include "plugins/kernels_eigen/places.h"
#include "plugins/kernels_eigen/row_fetch.h"

namespace weir::kernels_eigen {
namespace {

using sdk::AnyInput;
using sdk::AnyOutput;
using sdk::Env;
using sdk::HostIntegers;
using sdk::Integers;
using sdk::Prep;

struct Rows : functors::GatherRows {
  int32_t Take(const Env& env, const void* params, const Integers& indices, const AnyOutput& out) const {
    if (out.size() == 0) return WEIR_OK;  // for any indices, as in TensorFlow
    const auto* from = static_cast<const char*>(params);
    auto* to = static_cast<char*>(out.data());
    const size_t stride = static_cast<size_t>(limit) * block;
    int64_t wrong = -1;
    ForBlock(block, [&](auto size) {
      for (int64_t b = 0; b < batches && wrong < 0; ++b) {
        for (int64_t o = 0; o < outer && wrong < 0; ++o, from += stride, to += static_cast<size_t>(picks) * block) {
          wrong = TakeRows(from, indices, b * picks, to, size);
        }
      }
    });
    if (wrong < 0) return WEIR_OK;
    return IndexOutOfRange(env.error(), "indices", indices.shape(), wrong, indices[wrong], " is not in ", limit);
  }

 private:
  /// Copies the rows at the `picks` indices from `first` on. Returns the first index out of range, or -1.
  template <class Size>
  int64_t TakeRows(const char* from, const Integers& indices, int64_t first, char* to, Size size) const {
    const RowFetch<RowUse::kRead> fetch(block, static_cast<size_t>(limit) * block);
    const int64_t fetched = fetch ? first + picks - fetch.kAhead : first;
    const auto valid = [&](int64_t index) { return static_cast<uint64_t>(index) < static_cast<uint64_t>(limit); };
    for (int64_t m = first; m < first + picks; ++m, to += block) {
      if (m < fetched) {
        const int64_t next = indices[m + fetch.kAhead];
        if (valid(next)) fetch(from + static_cast<size_t>(next) * block);
      }
      const int64_t index = indices[m];
      if (!valid(index)) return m;
      CopyRow(to, from + static_cast<size_t>(index) * block, size);
    }
    return -1;
  }
};

struct Gather {
  Rows rows;
  int32_t Prepare(Prep& prep) { return rows.Plan(prep, 0, 0); }
  int32_t Run(Env& env, AnyInput params, Integers indices, AnyOutput output) const {
    return rows.Take(env, params.data(), indices, output);
  }
};

struct GatherV2 {
  Rows rows;
  int32_t Prepare(Prep& prep) {
    int64_t axis = 0;
    if (const int32_t code = Steering(prep, 2, "axis", &axis); code != WEIR_OK) return code;
    return rows.Plan(prep, axis, prep.node().Int("batch_dims"));
  }
  int32_t Run(Env& env, AnyInput params, Integers indices, HostIntegers, AnyOutput output) const {
    return rows.Take(env, params.data(), indices, output);
  }
};

/// Gathers along axis batch_dims of the variable.
struct ResourceGather {
  Rows rows;
  int32_t Prepare(Prep& prep) {
    const int64_t batch_dims = prep.node().Int("batch_dims");
    if (batch_dims < 0) return prep.error().InvalidArgument("batch_dims is negative (", batch_dims, ")");
    return rows.Plan(prep, batch_dims, batch_dims);
  }
  int32_t Run(Env& env, sdk::AnyVariable params, Integers indices, AnyOutput output) const {
    return rows.Take(env, params.data(), indices, output);
  }
};

struct GatherNd : functors::GatherNdPlan {
  int32_t Run(Env& env, AnyInput params, Integers indices, AnyOutput output) const {
    return Take(env, params.data(), indices, output);
  }
  int32_t Take(const Env& env, const void* params, const Integers& indices, const AnyOutput& output) const {
    const size_t element = sdk::SizeOf(output.dtype()), block = static_cast<size_t>(places.row) * element;
    if (output.size() == 0 && places.row == 0) return WEIR_OK;
    const auto* from = static_cast<const char*>(params);
    auto* to = static_cast<char*>(output.data());
    const RowFetch<RowUse::kRead> fetch(block, static_cast<size_t>(whole) * element);
    return ForBlock(block, [&](auto size) -> int32_t {
      for (int64_t i = 0; i < places.count; ++i, to += block) {
        if (fetch && i + fetch.kAhead < places.count) {
          const int64_t next = places.At(indices, i + fetch.kAhead);
          if (next >= 0) fetch(from + static_cast<size_t>(next) * element);
        }
        const int64_t at = places.At(indices, i);
        if (at >= 0) {
          CopyRow(to, from + static_cast<size_t>(at) * element, size);
        } else if (zeros_outside) {
          std::memset(to, 0, size);
        } else {
          return places.Refuse(env.error(), indices, i, "param shape");
        }
      }
      return WEIR_OK;
    });
  }
};

/// The same of a variable's value.
struct ResourceGatherNd {
  GatherNd gather;
  int32_t Prepare(Prep& prep) { return gather.Prepare(prep); }
  int32_t Run(Env& env, sdk::AnyVariable params, Integers indices, AnyOutput output) const {
    return gather.Take(env, params.data(), indices, output);
  }
};

struct DynamicStitch : functors::StitchPlan {
  int32_t Run(Env& env, sdk::Views<const int32_t> indices, sdk::AnyInputs data, AnyOutput merged) const {
    auto* to = static_cast<char*>(merged.data());
    if (limit != 0 && block != 0) std::memset(to, 0, static_cast<size_t>(limit) * block);
    for (uint32_t i = 0; i < count; ++i) {
      const sdk::View<const int32_t> at = indices[i];
      const auto* from = static_cast<const char*>(data[i].data());
      const int64_t n = at.size();
      for (int64_t k = 0; k < n; ++k) {
        const int64_t index = at[k];
        if (index < 0 || index >= limit) return env.error().InvalidArgument("indices[", k, "] is out of range");
        const auto row = static_cast<size_t>(index), source = static_cast<size_t>(k);
        if (block != 0) std::memcpy(to + row * block, from + source * block, block);
      }
    }
    return WEIR_OK;
  }
};

struct OneHot : functors::OneHotPlan {
  void Run(Integers indices, HostIntegers, AnyInput on_value, AnyInput off_value, AnyOutput output) const {
    const int64_t n = indices.size();
    ForBytes(sdk::SizeOf(output.dtype()), [&](auto element) {
      using E = decltype(element);
      const E on = *static_cast<const E*>(on_value.data()), off = *static_cast<const E*>(off_value.data());
      E* to = static_cast<E*>(output.data());
      std::fill(to, to + n * depth, off);
      for (int64_t i = 0; i < n; ++i) {
        const int64_t index = indices[i];
        if (index >= 0 && index < depth) to[(i / inner * depth + index) * inner + i % inner] = on;
      }
    });
  }
};

}  // namespace

void AddGather(sdk::KernelTable& k) {
  constexpr uint64_t kGathered = kPlainSet | kQuantizedSet | kFloat8Set;
  k.Add<Gather>("Gather").Restrict("Tparams", kGathered).Class(WEIR_CLASS_GATHER);
  k.Add<GatherV2>("GatherV2").Restrict("Tparams", kGathered).Class(WEIR_CLASS_GATHER);
  k.Add<GatherNd>("GatherNd")
      .Restrict("Tparams", kPlainSet | kCommonQuantizedSet | kFloat8Set)
      .Class(WEIR_CLASS_GATHER);
  k.Add<ResourceGather>("ResourceGather").Restrict("dtype", kPlainSet | kCommonQuantizedSet).Class(WEIR_CLASS_GATHER);
  k.Add<ResourceGatherNd>("ResourceGatherNd").Restrict("dtype", kPlainSet).Class(WEIR_CLASS_GATHER);
  k.Add<DynamicStitch>("DynamicStitch").Restrict("T", kPlainSet | kCommonQuantizedSet).Class(WEIR_CLASS_GATHER);
  k.Add<DynamicStitch>("ParallelDynamicStitch").Restrict("T", kPlainSet | kCommonQuantizedSet).Class(WEIR_CLASS_GATHER);
  k.Add<OneHot>("OneHot").Restrict("T", kPlainSet).Class(WEIR_CLASS_GATHER);
}

}  // namespace weir::kernels_eigen
