// The structure of sparse tensors: conversion to dense ones, order, shape, concatenation, slices, splits, rows without
// entries.
#include <algorithm>
#include <vector>

#include "plugins/functors/sparse_checks.h"
#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/families.h"
#include "plugins/kernels_eigen/kernels/sparse_entries.h"

namespace weir::kernels_eigen {
namespace {

using sdk::Context;
using sdk::Integers;
using sdk::View;

/// A dense tensor with the entries' values, else the default.
struct SparseToDense {
  bool validate = true;

  int32_t Prepare(const sdk::Node& node, const sdk::Error&) {
    validate = node.Bool("validate_indices", true);
    return WEIR_OK;
  }

  template <class T>
  int32_t Compute(Context& ctx) {
    Integers indices, shape;
    View<const T> values, otherwise;
    if (const int32_t code = ctx.Input(0, &indices); code != WEIR_OK) return code;
    if (const int32_t code = ctx.Input(1, &shape); code != WEIR_OK) return code;
    if (const int32_t code = ctx.Input(2, &values); code != WEIR_OK) return code;
    if (const int32_t code = ctx.Input(3, &otherwise); code != WEIR_OK) return code;
    const int32_t code =
        functors::CheckSparseToDense(ctx.error(), indices.shape(), shape, values.shape(), otherwise.rank());
    if (code != WEIR_OK) return code;
    const int64_t count = indices.rank() > 0 ? indices.dim(0) : 1, rank = shape.size();
    std::vector<int64_t> dims, entries;
    for (int64_t d = 0; d < rank; ++d) dims.push_back(shape[d]);
    for (int64_t i = 0; i < indices.size(); ++i) entries.push_back(indices[i]);
    const int64_t matrix[] = {count, rank};
    const Coordinates places(entries.data(), {2, 0, matrix});
    if (validate) {
      if (const int32_t code = CheckIncreasing(ctx.error(), places, dims); code != WEIR_OK) return code;
    }
    for (int64_t i = 0; i < count; ++i) {
      if (InBounds(EntryAt(places, i), dims)) continue;
      return ctx.error().InvalidArgument("Indices are not valid (out of bounds).  Shape: ", ShapeOf(dims));
    }
    View<T> dense;
    if (const int32_t code = ctx.Output(0, ShapeOf(dims), &dense); code != WEIR_OK) return code;
    std::fill_n(dense.data(), dense.size(), otherwise[0]);
    const std::vector<int64_t> steps = StepsOf(dims);
    for (int64_t i = 0; i < count; ++i) {
      const std::span<const int64_t> entry = EntryAt(places, i);
      int64_t at = 0;
      for (size_t d = 0; d < dims.size(); ++d) at += entry[d] * steps[d];
      dense[at] = values[values.rank() == 0 ? 0 : i];
    }
    return WEIR_OK;
  }
};

struct SparseReorder {
  template <class T>
  int32_t Compute(Context& ctx) {
    SparseInput<T> x;
    if (const int32_t code = x.Read(ctx, 0); code != WEIR_OK) return code;
    if (const int32_t code = x.Check(ctx.error()); code != WEIR_OK) return code;
    View<int64_t> indices;
    View<T> values;
    if (const int32_t code = ctx.Output(0, x.indices.shape(), &indices); code != WEIR_OK) return code;
    if (const int32_t code = ctx.Output(1, x.values.shape(), &values); code != WEIR_OK) return code;
    int64_t* to = indices.data();
    T* value = values.data();
    for (const int64_t i : SortedEntries(x.indices)) {
      const std::span<const int64_t> entry = x.At(i);
      to = std::copy(entry.begin(), entry.end(), to);
      *value++ = x.values[i];
    }
    return WEIR_OK;
  }
};

/// The same entries in row-major order of another shape.
struct SparseReshape {
  int32_t Compute(Context& ctx) {
    Coordinates indices;
    View<const int64_t> shape, target;
    if (const int32_t code = ctx.Input(0, &indices); code != WEIR_OK) return code;
    if (const int32_t code = ctx.Input(1, &shape); code != WEIR_OK) return code;
    if (const int32_t code = ctx.Input(2, &target); code != WEIR_OK) return code;
    functors::SparseReshapePlan plan;
    if (const int32_t code = plan.Plan(ctx.error(), indices.shape(), shape, target); code != WEIR_OK) return code;
    const std::vector<int64_t>& dims = plan.dims;
    const int64_t count = indices.dim(0);
    View<int64_t> to;
    if (const int32_t code = ctx.Output(0, {count, static_cast<int64_t>(dims.size())}, &to); code != WEIR_OK) {
      return code;
    }
    int64_t* next = to.data();
    for (int64_t i = 0; i < count; ++i) {
      const std::span<const int64_t> entry = EntryAt(indices, i);
      uint64_t place = 0;  // wraps for entries out of bounds
      for (size_t d = 0; d < entry.size(); ++d) {
        place += static_cast<uint64_t>(entry[d]) * static_cast<uint64_t>(plan.steps[d]);
      }
      auto rest = static_cast<int64_t>(place);
      for (const int64_t step : plan.to_steps) {
        *next++ = rest / step;
        rest %= step;
      }
    }
    return WriteVector<int64_t>(ctx, 1, dims);
  }
};

/// The entries of several sparse tensors, in order, those along one axis behind each other.
struct SparseConcat {
  int64_t given_axis = 0;

  int32_t Prepare(const sdk::Node& node, const sdk::Error&) {
    given_axis = node.Int("concat_dim");
    return WEIR_OK;
  }

  template <class T>
  int32_t Compute(Context& ctx) {
    uint32_t first = 0, n = 0;
    if (const int32_t code = ctx.InputRange("indices", &first, &n); code != WEIR_OK) return code;
    std::vector<SparseInput<T>> parts(n);
    for (uint32_t i = 0; i < n; ++i) {
      SparseInput<T>& part = parts[i];
      if (const int32_t code = ctx.Input(i, &part.indices); code != WEIR_OK) return code;
      if (const int32_t code = ctx.Input(n + i, &part.values); code != WEIR_OK) return code;
      if (const int32_t code = ctx.Input(2 * n + i, &part.shape); code != WEIR_OK) return code;
      const int32_t code = functors::CheckConcatPart(ctx.error(), part.indices.shape(), part.values.shape(), part.shape,
                                                     parts[0].shape, i);
      if (code != WEIR_OK) return code;
    }
    int64_t axis = 0;
    if (const int32_t code = functors::SparseAxis(ctx.error(), given_axis, parts[0].shape.size(), &axis);
        code != WEIR_OK) {
      return code;
    }
    const int64_t rank = parts[0].shape.size();
    std::vector<int64_t> dims(parts[0].shape.data(), parts[0].shape.data() + rank), entries;
    std::vector<T> values;
    int64_t offset = 0;
    for (uint32_t i = 0; i < n; ++i) {
      const int32_t code = functors::CheckConcatExtents(ctx.error(), parts[i].shape, parts[0].shape, axis, i);
      if (code != WEIR_OK) return code;
      for (int64_t k = 0; k < parts[i].count(); ++k) {
        for (const int64_t coordinate : parts[i].At(k)) entries.push_back(coordinate);
        int64_t& moved = entries[entries.size() - static_cast<size_t>(rank - axis)];
        moved = static_cast<int64_t>(static_cast<uint64_t>(moved) + static_cast<uint64_t>(offset));
        values.push_back(parts[i].values[k]);
      }
      if (__builtin_add_overflow(offset, parts[i].shape[axis], &offset)) {
        return ctx.error().InvalidArgument("Encountered overflow from large input shape.");
      }
    }
    dims[static_cast<size_t>(axis)] = offset;
    return Write(ctx, entries, values, dims);
  }

 private:
  template <class T>
  static int32_t Write(Context& ctx, const std::vector<int64_t>& entries, const std::vector<T>& values,
                       const std::vector<int64_t>& dims) {
    const int64_t matrix[] = {static_cast<int64_t>(values.size()), static_cast<int64_t>(dims.size())};
    const Coordinates all(entries.data(), {2, 0, matrix});
    View<int64_t> indices;
    View<T> to;
    if (const int32_t code = ctx.Output(0, all.shape(), &indices); code != WEIR_OK) return code;
    if (const int32_t code = ctx.Output(1, {matrix[0]}, &to); code != WEIR_OK) return code;
    int64_t* next = indices.data();
    T* value = to.data();
    for (const int64_t i : SortedEntries(all)) {
      const std::span<const int64_t> entry = EntryAt(all, i);
      next = std::copy(entry.begin(), entry.end(), next);
      *value++ = values[static_cast<size_t>(i)];
    }
    return WriteVector<int64_t>(ctx, 2, dims);
  }
};

/// The entries inside [start, start + size), relative to start.
struct SparseSlice {
  template <class T>
  int32_t Compute(Context& ctx) {
    SparseInput<T> x;
    View<const int64_t> start, size;
    if (const int32_t code = x.Read(ctx, 0); code != WEIR_OK) return code;
    if (const int32_t code = ctx.Input(3, &start); code != WEIR_OK) return code;
    if (const int32_t code = ctx.Input(4, &size); code != WEIR_OK) return code;
    if (const int32_t code = x.Check(ctx.error()); code != WEIR_OK) return code;
    const int64_t rank = x.shape.size();
    std::vector<int64_t> dims, entries;
    if (const int32_t code = functors::SparseSliceDims(ctx.error(), x.shape, start, size, &dims); code != WEIR_OK) {
      return code;
    }
    std::vector<T> values;
    for (int64_t i = 0; i < x.count(); ++i) {
      const std::span<const int64_t> entry = x.At(i);
      bool inside = true;
      for (size_t d = 0; inside && d < entry.size(); ++d) {
        const int64_t from = start[static_cast<int64_t>(d)];
        int64_t relative = 0;
        inside = entry[d] >= from && !__builtin_sub_overflow(entry[d], from, &relative) &&
                 relative < size[static_cast<int64_t>(d)];
      }
      if (!inside) continue;
      for (size_t d = 0; d < entry.size(); ++d) entries.push_back(entry[d] - start[static_cast<int64_t>(d)]);
      values.push_back(x.values[i]);
    }
    if (const int32_t code = WriteEntries(ctx, 0, entries, static_cast<int64_t>(values.size()), rank);
        code != WEIR_OK) {
      return code;
    }
    if (const int32_t code = WriteVector<T>(ctx, 1, values); code != WEIR_OK) return code;
    return WriteVector<int64_t>(ctx, 2, dims);
  }
};

/// Cuts along one axis into num_split parts; the first ones are longer by one where the extent is no multiple.
struct SparseSplit {
  int64_t parts = 1;

  int32_t Prepare(const sdk::Node& node, const sdk::Error&) {
    parts = node.Int("num_split", 1);
    return WEIR_OK;
  }

  template <class T>
  int32_t Compute(Context& ctx) {
    View<const int64_t> split_axis;
    SparseInput<T> x;
    if (const int32_t code = ctx.Input(0, &split_axis); code != WEIR_OK) return code;
    if (const int32_t code = x.Read(ctx, 1); code != WEIR_OK) return code;
    int64_t axis = 0;
    const int32_t code =
        functors::CheckSparseSplit(ctx.error(), split_axis, x.indices.shape(), x.values.shape(), x.shape, parts, &axis);
    if (code != WEIR_OK) return code;
    return Cut(ctx, x, axis);
  }

 private:
  template <class T>
  int32_t Cut(Context& ctx, const SparseInput<T>& x, int64_t axis) const {
    const int64_t rank = x.shape.size(), extent = x.shape[axis], size = extent / parts, longer = extent % parts;
    std::vector<std::vector<int64_t>> entries(static_cast<size_t>(parts));
    std::vector<std::vector<T>> values(static_cast<size_t>(parts));
    for (int64_t i = 0; i < x.count(); ++i) {
      const std::span<const int64_t> entry = x.At(i);
      if (!InBounds(entry, Elements(x.shape))) return functors::EntryOutOfBounds(ctx.error(), i, entry);
      const int64_t at = entry[static_cast<size_t>(axis)], border = longer * (size + 1);
      const int64_t part = at < border ? at / (size + 1) : longer + (at - border) / size;
      std::vector<int64_t>& to = entries[static_cast<size_t>(part)];
      to.insert(to.end(), entry.begin(), entry.end());
      to[to.size() - static_cast<size_t>(rank - axis)] = at - Begin(part, size, longer);
      values[static_cast<size_t>(part)].push_back(x.values[i]);
    }
    std::vector<int64_t> dims(x.shape.data(), x.shape.data() + rank);
    for (int64_t p = 0; p < parts; ++p) {
      const auto part = static_cast<size_t>(p);
      const auto output = static_cast<uint32_t>(p), all = static_cast<uint32_t>(parts);
      if (const int32_t code =
              WriteEntries(ctx, output, entries[part], static_cast<int64_t>(values[part].size()), rank);
          code != WEIR_OK) {
        return code;
      }
      if (const int32_t code = WriteVector<T>(ctx, all + output, values[part]); code != WEIR_OK) return code;
      dims[static_cast<size_t>(axis)] = size + (p < longer ? 1 : 0);
      if (const int32_t code = WriteVector<int64_t>(ctx, 2 * all + output, dims); code != WEIR_OK) return code;
    }
    return WEIR_OK;
  }

  static int64_t Begin(int64_t part, int64_t size, int64_t longer) { return part * size + std::min(part, longer); }
};

/// Gives each row without entries one with the default value, in column 0.
struct SparseFillEmptyRows {
  template <class T>
  int32_t Compute(Context& ctx) {
    SparseInput<T> x;
    View<const T> otherwise;
    if (const int32_t code = x.Read(ctx, 0); code != WEIR_OK) return code;
    if (const int32_t code = ctx.Input(3, &otherwise); code != WEIR_OK) return code;
    int32_t code =
        functors::CheckFillEmptyRows(ctx.error(), x.indices.shape(), x.values.shape(), x.shape, otherwise.shape());
    for (int64_t i = 0; code == WEIR_OK && i < x.count(); ++i) {
      code = functors::CheckFilledRow(ctx.error(), i, x.At(i)[0], x.shape[0]);
    }
    if (code != WEIR_OK) return code;
    const int64_t rows = x.shape[0], rank = x.shape.size(), count = x.count();
    const int64_t filled = rows - DistinctRows(x.indices) + count;
    View<sdk::boolean> empty;
    View<int64_t> indices, places;
    View<T> values;
    if (code = ctx.Output(0, {filled, rank}, &indices); code != WEIR_OK) return code;
    if (code = ctx.Output(1, {filled}, &values); code != WEIR_OK) return code;
    if (code = ctx.Output(2, {rows}, &empty); code != WEIR_OK) return code;
    if (code = ctx.Output(3, {count}, &places); code != WEIR_OK) return code;
    // First the entries of each row, then where they start. The outputs, which are larger, have their memory by now.
    std::vector<int64_t> begin(static_cast<size_t>(rows));
    for (int64_t i = 0; i < count; ++i) ++begin[static_cast<size_t>(x.At(i)[0])];
    int64_t next = 0;
    for (int64_t row = 0; row < rows; ++row) {
      int64_t& start = begin[static_cast<size_t>(row)];
      const int64_t own = start;
      empty[row] = own == 0;
      start = next;
      next += std::max<int64_t>(own, 1);
    }
    for (int64_t row = 0; row < rows; ++row) {
      if (!empty[row]) continue;
      const int64_t at = begin[static_cast<size_t>(row)];
      std::fill_n(indices.data() + at * rank, rank, int64_t{0});
      indices[at * rank] = row;
      values[at] = otherwise[0];
    }
    for (int64_t i = 0; i < count; ++i) {
      const std::span<const int64_t> entry = x.At(i);
      const int64_t at = begin[static_cast<size_t>(entry[0])]++;
      std::copy(entry.begin(), entry.end(), indices.data() + at * rank);
      values[at] = x.values[i];
      places[i] = at;
    }
    return WEIR_OK;
  }

 private:
  static int64_t DistinctRows(const Coordinates& indices) {
    std::vector<int64_t> rows;
    for (int64_t i = 0; i < indices.dim(0); ++i) rows.push_back(EntryAt(indices, i)[0]);
    std::sort(rows.begin(), rows.end());
    return std::unique(rows.begin(), rows.end()) - rows.begin();
  }
};

}  // namespace

void AddSparseParts(sdk::KernelTable& k) {
  k.Add<SparseToDense>("SparseToDense", kAnyBits).Class(WEIR_CLASS_GATHER);
  k.Add<SparseReorder>("SparseReorder", kAnyBits).Class(WEIR_CLASS_SORT);
  k.Add<SparseReshape>("SparseReshape").Class(WEIR_CLASS_GATHER);
  k.Add<SparseConcat>("SparseConcat", kAnyBits).Class(WEIR_CLASS_SORT);
  k.Add<SparseSlice>("SparseSlice", kAnyBits).Class(WEIR_CLASS_GATHER);
  k.Add<SparseSplit>("SparseSplit", kAnyBits).Class(WEIR_CLASS_GATHER);
  k.Add<SparseFillEmptyRows>("SparseFillEmptyRows", kAnyBits).Class(WEIR_CLASS_GATHER);
}

}  // namespace weir::kernels_eigen
