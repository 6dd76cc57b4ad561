// Rows by index: Gather, GatherV2, GatherNd, ResourceGather, ResourceGatherNd, DynamicStitch, OneHot.
#include <algorithm>
#include <cstring>

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

/// out[b, o, m, :] = params[b, o, indices[b, m], :], with b over the batch dimensions, o over the dimensions between
/// batch and axis, and m over the indices.
struct Rows {
  int64_t batches = 1, outer = 1, limit = 0, picks = 1;
  size_t block = 0;  // bytes of one row

  int32_t Plan(Prep& prep, int64_t axis, int64_t batch_dims) {
    const weir_shape &params = prep.shape(0), &indices = prep.shape(1);
    const int64_t rank = params.rank, index_rank = indices.rank;
    if (axis < -rank || axis >= rank) {
      return prep.error().InvalidArgument("Expected axis in the range [", -rank, ", ", rank, "), but got ", axis);
    }
    if (batch_dims < -index_rank || batch_dims > index_rank) {
      return prep.error().InvalidArgument("Expected batch_dims in the range [", -index_rank, ", ", index_rank,
                                          "], but got ", batch_dims);
    }
    if (axis < 0) axis += rank;
    if (batch_dims < 0) batch_dims += index_rank;
    if (batch_dims > axis) {
      return prep.error().InvalidArgument("batch_dims (", batch_dims, ") must be less than or equal to axis (", axis,
                                          ").");
    }
    const auto batch = static_cast<uint32_t>(batch_dims), at = static_cast<uint32_t>(axis);
    for (uint32_t i = 0; i < batch; ++i) {
      if (params.dims[i] == indices.dims[i]) continue;
      return prep.error().InvalidArgument("params.shape[", i, "]: ", params.dims[i],
                                          " should be equal to indices.shape[", i, "]: ", indices.dims[i]);
    }
    std::vector<int64_t> wanted(params.dims, params.dims + at);
    wanted.insert(wanted.end(), indices.dims + batch, indices.dims + indices.rank);
    wanted.insert(wanted.end(), params.dims + at + 1, params.dims + params.rank);
    batches = SizeOf(params, 0, batch);
    outer = SizeOf(params, batch, at);
    limit = params.dims[at];
    picks = SizeOf(indices, batch, indices.rank);
    block = static_cast<size_t>(SizeOf(params, at + 1, params.rank)) * sdk::SizeOf(prep.input(0).dtype);
    if (prep.input(0).dtype != prep.output(0).dtype) {
      return prep.error().Fail(WEIR_INTERNAL, "params and output have different element types");
    }
    return ExpectOutput(prep, 0, wanted);
  }

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

/// Gathers slices at coordinates. Coordinates out of range are an error, or give zeros if the policy is "IGNORE".
struct GatherNd {
  Places places;
  int64_t whole = 0;  // elements of params
  bool zeros_outside = false;

  int32_t Prepare(Prep& prep) {
    const weir_shape &params = prep.shape(0), &indices = prep.shape(1);
    const std::string_view policy = prep.node().String("bad_indices_policy");
    zeros_outside = policy == "IGNORE";
    if (!zeros_outside && !policy.empty() && policy != "DEFAULT" && policy != "ERROR") {
      return prep.error().InvalidArgument("Unknown bad_indices_policy: ", policy);
    }
    if (params.rank < 1) return prep.error().InvalidArgument("params must be at least a vector");
    if (indices.rank < 1) return prep.error().InvalidArgument("indices must be at least a vector");
    const int64_t depth = indices.dims[indices.rank - 1];
    if (depth > params.rank) {
      return prep.error().InvalidArgument("index innermost dimension length must be <= params rank; saw: ", depth,
                                          " vs. ", params.rank);
    }
    places = Places::OfSlices(params, indices);
    whole = prep.size(0);
    if (places.count > 0 && whole == 0) {
      return prep.error().InvalidArgument("Requested more than 0 entries, but params is empty.  Params shape: ",
                                          params);
    }
    std::vector<int64_t> wanted(indices.dims, indices.dims + indices.rank - 1);
    wanted.insert(wanted.end(), params.dims + depth, params.dims + params.rank);
    return ExpectOutput(prep, 0, wanted);
  }

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

/// Row data[m][i] goes to row indices[m][i]; all other rows are zero.
struct DynamicStitch {
  uint32_t count = 0;
  int64_t limit = 0;
  size_t block = 0;

  int32_t Prepare(Prep& prep) {
    const weir_shape& out = prep.output(0).shape;
    count = prep.inputs() / 2;
    if (out.rank < 1) return prep.error().Fail(WEIR_INTERNAL, "output 0 has shape ", out);
    limit = out.dims[0];
    block = static_cast<size_t>(SizeOf(out, 1, out.rank)) * sdk::SizeOf(prep.output(0).dtype);
    for (uint32_t i = 0; i < count; ++i) {
      const weir_shape &indices = prep.shape(i), &data = prep.shape(count + i);
      bool fits = data.rank == indices.rank + out.rank - 1;
      for (uint32_t k = 0; fits && k < data.rank; ++k) {
        fits = data.dims[k] == (k < indices.rank ? indices.dims[k] : out.dims[k - indices.rank + 1]);
      }
      if (!fits) {
        return prep.error().InvalidArgument("data[", i, "].shape = ", data, " does not start with indices[", i,
                                            "].shape = ", indices, " and end like the output's shape ", out);
      }
    }
    return WEIR_OK;
  }

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

/// A row whose index is out of range has no on_value.
struct OneHot {
  int64_t depth = 0, inner = 1;

  int32_t Prepare(Prep& prep) {
    const weir_shape &indices = prep.shape(0), &out = prep.output(0).shape;
    if (const int32_t code = Steering(prep, 1, "depth", &depth); code != WEIR_OK) return code;
    const int64_t given = prep.node().Int("axis", -1), axis = given == -1 ? indices.rank : given;
    if (axis < 0 || axis > indices.rank) {
      return prep.error().InvalidArgument("Expected axis to be -1 or between [0, ", indices.rank + 1,
                                          ").  But received: ", given);
    }
    if (depth < 0) return prep.error().InvalidArgument("depth must be non-negative, got: ", depth);
    if (prep.size(2) != 1) return prep.error().InvalidArgument("on_value must be a scalar, but got: ", prep.shape(2));
    if (prep.size(3) != 1) return prep.error().InvalidArgument("off_value must be a scalar, but got: ", prep.shape(3));
    std::vector<int64_t> wanted = DimsOf(indices);
    wanted.insert(wanted.begin() + axis, depth);
    inner = SizeOf(out, static_cast<uint32_t>(axis) + 1, out.rank);
    return ExpectOutput(prep, 0, wanted);
  }

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
