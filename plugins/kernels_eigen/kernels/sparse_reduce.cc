// Reductions of sparse tensors over axes, and their softmax.
#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/families.h"
#include "plugins/kernels_eigen/kernels/sparse_entries.h"
#include "plugins/kernels_eigen/wrap.h"

namespace weir::kernels_eigen {
namespace {

using sdk::Context;
using sdk::Integers;
using sdk::View;

struct SparseTotal {
  template <class C>
  static C With(C all, C x) {
    return Sum(all, x);
  }
};
struct SparseMaximum {
  template <class C>
  static C With(C all, C x) {
    return all < x ? x : all;
  }
};

/// The axes that a reduction keeps.
struct KeptAxes {
  std::vector<size_t> axes;   // that stay
  std::vector<int64_t> dims;  // of the output

  int32_t Read(const Context& ctx, std::span<const int64_t> shape, bool keep_dims) {
    Integers given;
    if (const int32_t code = ctx.Input(3, &given); code != WEIR_OK) return code;
    if (given.rank() > 1) {
      return ctx.error().InvalidArgument("Expected reduction_axes to be a scalar or a vector; got shape: ",
                                         given.shape());
    }
    const auto rank = static_cast<int64_t>(shape.size());
    std::vector<bool> reduced(shape.size());
    for (int64_t i = 0; i < given.size(); ++i) {
      const int64_t axis = given[i];
      if (axis < -rank || axis >= rank) {
        return ctx.error().InvalidArgument("Invalid reduction dimension ", axis, ", for input with ", rank,
                                           " dimensions.");
      }
      reduced[static_cast<size_t>(axis < 0 ? axis + rank : axis)] = true;
    }
    for (size_t d = 0; d < shape.size(); ++d) {
      if (shape[d] < 0) {
        return ctx.error().InvalidArgument("Expected shape dimensions to be non-negative, got ", shape[d]);
      }
      if (!reduced[d]) axes.push_back(d);
      if (!reduced[d] || keep_dims) dims.push_back(reduced[d] ? 1 : shape[d]);
    }
    return WEIR_OK;
  }
};

int32_t CheckReduced(const sdk::Error& error, const weir_shape& indices, const weir_shape& values,
                     const weir_shape& shape) {
  if (shape.rank != 1) return error.InvalidArgument("Expected input_shape to be a vector; got shape: ", shape);
  if (indices.rank != 2) return error.InvalidArgument("indices must be a matrix, but got: ", indices);
  if (values.rank != 1) return error.InvalidArgument("vals must be a vec, but got: ", values);
  if (indices.dims[0] != values.dims[0]) {
    return error.InvalidArgument("indices and values rows (indexing dimension) must match. (indices = ",
                                 indices.dims[0], ", values = ", values.dims[0], ")");
  }
  return CheckParts(error, indices, values, shape);
}

/// Reduces to a dense tensor; places without entries are 0.
template <class Rule>
struct SparseReduce {
  bool keep_dims = false;

  int32_t Prepare(const sdk::Node& node, const sdk::Error&) {
    keep_dims = node.Bool("keep_dims");
    return WEIR_OK;
  }

  template <class T>
  int32_t Compute(Context& ctx) {
    SparseInput<T> x;
    KeptAxes kept;
    if (const int32_t code = x.Read(ctx, 0); code != WEIR_OK) return code;
    if (const int32_t code = CheckReduced(ctx.error(), x.indices.shape(), x.values.shape(), x.shape.shape());
        code != WEIR_OK) {
      return code;
    }
    if (const int32_t code = kept.Read(ctx, Elements(x.shape), keep_dims); code != WEIR_OK) return code;
    View<T> output;
    if (const int32_t code = ctx.Output(0, ShapeOf(kept.dims), &output); code != WEIR_OK) return code;
    const int64_t size = output.size(), count = x.count();
    using C = sdk::Compute<T>;
    std::vector<C> all(static_cast<size_t>(size));
    std::vector<bool> seen(static_cast<size_t>(size));
    for (int64_t i = 0; i < count; ++i) {
      const std::span<const int64_t> entry = x.At(i);
      int64_t at = 0;
      for (const size_t axis : kept.axes) {
        const int64_t index = entry[axis], extent = x.shape[static_cast<int64_t>(axis)];
        if (index < 0 || index >= extent) {
          return ctx.error().InvalidArgument("Obtained a write index of ", index, " which is outside of bounds of [0, ",
                                             extent, ")");
        }
        at = at * extent + index;
      }
      if (at >= size) continue;  // another extent is 0
      const auto place = static_cast<size_t>(at);
      const C value = static_cast<C>(x.values[i]);
      all[place] = seen[place] ? Rule::With(all[place], value) : value;
      seen[place] = true;
    }
    for (int64_t i = 0; i < size; ++i) output[i] = static_cast<T>(all[static_cast<size_t>(i)]);
    return WEIR_OK;
  }
};

/// Reduces to a sparse tensor with an entry for each place that has any.
template <class Rule>
struct SparseReduceSparse {
  bool keep_dims = false;

  int32_t Prepare(const sdk::Node& node, const sdk::Error&) {
    keep_dims = node.Bool("keep_dims");
    return WEIR_OK;
  }

  template <class T>
  int32_t Compute(Context& ctx) {
    using C = sdk::Compute<T>;
    SparseInput<T> x;
    KeptAxes kept;
    if (const int32_t code = x.Read(ctx, 0); code != WEIR_OK) return code;
    if (const int32_t code = CheckReduced(ctx.error(), x.indices.shape(), x.values.shape(), x.shape.shape());
        code != WEIR_OK) {
      return code;
    }
    if (const int32_t code = kept.Read(ctx, Elements(x.shape), keep_dims); code != WEIR_OK) return code;
    std::map<std::vector<int64_t>, C> groups;
    for (int64_t i = 0; i < x.count(); ++i) {
      std::vector<int64_t> place(keep_dims ? static_cast<size_t>(x.shape.size()) : 0);
      for (const size_t axis : kept.axes) {
        if (keep_dims) {
          place[axis] = x.At(i)[axis];
        } else {
          place.push_back(x.At(i)[axis]);
        }
      }
      const C value = static_cast<C>(x.values[i]);
      const auto [group, fresh] = groups.try_emplace(std::move(place), value);
      if (!fresh) group->second = Rule::With(group->second, value);
    }
    View<int64_t> indices;
    View<T> values;
    const auto count = static_cast<int64_t>(groups.size()), rank = static_cast<int64_t>(kept.dims.size());
    if (const int32_t code = ctx.Output(0, {count, rank}, &indices); code != WEIR_OK) return code;
    if (const int32_t code = ctx.Output(1, {count}, &values); code != WEIR_OK) return code;
    int64_t* to = indices.data();
    T* value = values.data();
    for (const auto& [place, all] : groups) {
      to = std::copy(place.begin(), place.end(), to);
      *value++ = static_cast<T>(all);
    }
    return WriteVector<int64_t>(ctx, 2, kept.dims);
  }
};

/// Softmax over the entries of each row of the last axis.
struct SparseSoftmax {
  template <class T>
  int32_t Compute(Context& ctx) {
    SparseInput<T> x;
    if (const int32_t code = x.Read(ctx, 0); code != WEIR_OK) return code;
    if (const int32_t code = Check(ctx.error(), x); code != WEIR_OK) return code;
    View<T> output;
    if (const int32_t code = ctx.Output(0, x.values.shape(), &output); code != WEIR_OK) return code;
    using C = sdk::Compute<T>;
    const std::vector<int64_t> order = SortedEntries(x.indices);
    const size_t n = order.size(), outer = static_cast<size_t>(x.shape.size()) - 1;
    for (size_t begin = 0, end = 0; begin < n; begin = end) {
      const auto row = x.At(order[begin]).first(outer);
      C top = static_cast<C>(x.values[order[begin]]), sum = C();
      for (end = begin; end < n && std::ranges::equal(row, x.At(order[end]).first(outer)); ++end) {
        top = std::max(top, static_cast<C>(x.values[order[end]]));
      }
      for (size_t i = begin; i < end; ++i) sum += std::exp(static_cast<C>(x.values[order[i]]) - top);
      for (size_t i = begin; i < end; ++i) {
        output[order[i]] = static_cast<T>(std::exp(static_cast<C>(x.values[order[i]]) - top) / sum);
      }
    }
    return WEIR_OK;
  }

 private:
  template <class T>
  static int32_t Check(const sdk::Error& error, const SparseInput<T>& x) {
    if (x.indices.rank() != 2) {
      return error.InvalidArgument("Input sp_indices should be a matrix but received shape: ", x.indices.shape());
    }
    if (x.values.rank() != 1 || x.shape.rank() != 1) {
      return error.InvalidArgument("Inputs sp_values and sp_shape should be vectors but received shapes: ",
                                   x.values.shape(), " and ", x.shape.shape());
    }
    if (x.shape.size() < 2) {
      return error.InvalidArgument("Input should have rank >= 2, but received shape: ", AsShape(Elements(x.shape)));
    }
    if (x.indices.dim(0) != x.values.dim(0)) {
      return error.InvalidArgument("indices and values rows (indexing dimension) must match. (indices = ",
                                   x.indices.dim(0), ", values = ", x.values.dim(0), ")");
    }
    return x.Check(error);
  }
};

}  // namespace

void AddSparseReduce(sdk::KernelTable& k) {
  k.Add<SparseReduce<SparseTotal>>("SparseReduceSum", kNumbers).Class(WEIR_CLASS_GATHER, 1);
  k.Add<SparseReduce<SparseMaximum>>("SparseReduceMax", kReal).Class(WEIR_CLASS_GATHER, 1);
  k.Add<SparseReduceSparse<SparseTotal>>("SparseReduceSumSparse", kNumbers).Class(WEIR_CLASS_GATHER, 1);
  k.Add<SparseReduceSparse<SparseMaximum>>("SparseReduceMaxSparse", kReal).Class(WEIR_CLASS_GATHER, 1);
  k.Add<SparseSoftmax>("SparseSoftmax", sdk::Types<sdk::half>() + kFloat).Class(WEIR_CLASS_GATHER, 4);
}

}  // namespace weir::kernels_eigen
