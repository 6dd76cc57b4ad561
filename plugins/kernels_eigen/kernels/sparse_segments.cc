// Reductions of chosen rows: row indices[i] belongs to segment segment_ids[i]. Also their gradients, and the cut of
// rows into partitions.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "plugins/functors/segment_rules.h"
#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/families.h"
#include "plugins/kernels_eigen/operands.h"
#include "plugins/kernels_eigen/row_fetch.h"
#include "plugins/kernels_eigen/wrap.h"
#include "sdk/cpp/elementwise.h"

namespace weir::kernels_eigen {
namespace {

using sdk::Context;
using sdk::Integers;
using sdk::View;
using ChosenRows = functors::ChosenRows<Integers>;
using Norm = functors::SegmentNorm;

/// all += x.
template <class C, class T>
void AddRow(C* all, const T* x, int64_t n) {
  WEIR_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) all[i] = Sum(all[i], static_cast<C>(x[i]));
}

/// Row s is the sum, mean or sum over root of the count of the rows of segment s.
template <Norm kNorm, bool kNumSegments>
struct SparseSegments {
  template <class T>
  int32_t Compute(Context& ctx) {
    View<const T> data;
    ChosenRows rows;
    if (const int32_t code = ctx.Input(0, &data); code != WEIR_OK) return code;
    if (data.rank() < 1) return ctx.error().InvalidArgument("Shape must be at least rank 1");
    if (const int32_t code = rows.Read(ctx); code != WEIR_OK) return code;
    int64_t segments = 0;
    if (const int32_t code = CountSegments(ctx, rows, &segments); code != WEIR_OK) return code;
    if (const int32_t code = Check(ctx.error(), rows, segments, data.dim(0)); code != WEIR_OK) return code;
    std::vector<int64_t> dims = DimsOf(data.shape());
    dims[0] = segments;
    View<T> output;
    if (const int32_t code = ctx.Output(0, ShapeOf(dims), &output); code != WEIR_OK) return code;
    if (output.size() != 0) Reduce(data, rows, output.data(), segments);
    return WEIR_OK;
  }

 private:
  static int32_t CountSegments(Context& ctx, const ChosenRows& rows, int64_t* segments) {
    const int64_t last = rows.count == 0 ? -1 : rows.ids[rows.count - 1];
    if (last == std::numeric_limits<int64_t>::max()) return ctx.error().InvalidArgument("segment ids are too large");
    *segments = last + 1;
    if constexpr (kNumSegments) {
      Integers given;
      if (const int32_t code = ctx.Input(3, &given); code != WEIR_OK) return code;
      if (given.rank() != 0) {
        return ctx.error().InvalidArgument("num_segments should be a scalar, not shape ", given.shape());
      }
      *segments = given[0];
    }
    if (*segments < 0) return ctx.error().InvalidArgument("segment ids must be >= 0");
    if (last >= *segments) return ctx.error().InvalidArgument("segment ids must be < num_segments");
    return WEIR_OK;
  }

  static int32_t Check(const sdk::Error& error, const ChosenRows& rows, int64_t segments, int64_t limit) {
    for (int64_t i = 0; i < rows.count; ++i) {
      const int64_t id = rows.ids[i], index = rows.indices[i];
      if (i + 1 < rows.count && rows.ids[i + 1] < id) return error.InvalidArgument("segment ids are not increasing");
      if (id < 0 || id >= segments) {
        return error.InvalidArgument("Segment id ", id, " out of range [0, ", segments,
                                     "), possibly because 'segment_ids' input is not sorted.");
      }
      if (index < 0 || index >= limit) {
        return error.InvalidArgument("Bad: indices[", i, "] == ", index, " out of range [0, ", limit, ")");
      }
    }
    return WEIR_OK;
  }

  template <class T>
  static void Reduce(const View<const T>& data, const ChosenRows& rows, T* to, int64_t segments) {
    using C = sdk::Compute<T>;
    const int64_t row = SizeOf(data.shape(), 1, data.rank()), n = rows.count;
    const RowFetch<RowUse::kRead> fetch(static_cast<size_t>(row) * sizeof(T),
                                        static_cast<size_t>(data.size()) * sizeof(T));
    std::vector<C> all(static_cast<size_t>(row));
    int64_t next = 0;  // segment that was not written yet
    for (int64_t i = 0; i < n;) {
      const int64_t segment = rows.ids[i], begin = i;
      std::fill(to + next * row, to + segment * row, T());
      std::fill(all.begin(), all.end(), C());
      for (; i < n && rows.ids[i] == segment; ++i) {
        if (fetch && i + fetch.kAhead < n) fetch(data.data() + rows.indices[i + fetch.kAhead] * row);
        AddRow(all.data(), data.data() + rows.indices[i] * row, row);
      }
      const double count = static_cast<double>(i - begin);
      const double by = kNorm == Norm::kCount ? count : kNorm == Norm::kRoot ? std::sqrt(count) : 1;
      T* out = to + segment * row;
      for (int64_t k = 0; k < row; ++k) {
        C value = all[static_cast<size_t>(k)];
        if constexpr (kNorm != Norm::kNone) value /= static_cast<C>(by);
        out[k] = static_cast<T>(value);
      }
      next = segment + 1;
    }
    std::fill(to + next * row, to + segments * row, T());
  }
};

/// Row indices[i] of the output gets row segment_ids[i] of the gradient, divided as that segment was. kUnique: only
/// the rows that get something are output, with their sorted indices.
template <Norm kNorm, bool kUnique>
struct SparseSegmentsGrad {
  template <class T>
  int32_t Compute(Context& ctx) {
    View<const T> grad;
    ChosenRows rows;
    Integers extent;
    if (const int32_t code = ctx.Input(0, &grad); code != WEIR_OK) return code;
    if (const int32_t code = ctx.Input(3, &extent); code != WEIR_OK) return code;
    const sdk::Error& error = ctx.error();
    if (grad.rank() < 1) return error.InvalidArgument("Shape must be at least rank 1");
    if (const int32_t code = rows.Read(ctx); code != WEIR_OK) return code;
    if (extent.rank() != 0) return error.InvalidArgument("output_dim0 should be a scalar.");
    const int64_t limit = extent[0], segments = grad.dim(0);
    if (limit < 0) return error.InvalidArgument("Expected a non-negative size, got ", limit);
    std::vector<double> counts;
    const bool empty = grad.size() == 0;
    if (const int32_t code = Count(error, rows, segments, limit, empty, &counts); code != WEIR_OK) return code;
    std::vector<int64_t> places;  // sorted indices of the output's rows, if they are unique
    if constexpr (kUnique) {
      for (int64_t i = 0; i < rows.count; ++i) places.push_back(rows.indices[i]);
      std::sort(places.begin(), places.end());
      places.erase(std::unique(places.begin(), places.end()), places.end());
      if (const int32_t code = WriteIndices(ctx, rows.indices.dtype(), places); code != WEIR_OK) return code;
    }
    std::vector<int64_t> dims = DimsOf(grad.shape());
    dims[0] = kUnique ? static_cast<int64_t>(places.size()) : limit;
    View<T> output;
    if (const int32_t code = ctx.Output(0, ShapeOf(dims), &output); code != WEIR_OK) return code;
    if (output.size() != 0) Spread(grad, rows, counts, places, output);
    return WEIR_OK;
  }

 private:
  /// Checks the operands and counts the rows of each segment; without counts if no row has elements.
  static int32_t Count(const sdk::Error& error, const ChosenRows& rows, int64_t segments, int64_t limit,
                       bool empty, std::vector<double>* counts) {
    for (int64_t i = 0; i < rows.count; ++i) {
      const int64_t id = rows.ids[i], index = rows.indices[i];
      if (id < 0) return error.InvalidArgument("Segment id ", id, " out of range [0, ", segments, ").");
      if (id >= segments) return error.InvalidArgument("Invalid number of segments");
      if (index < 0 || index >= limit) {
        return error.InvalidArgument("Index ", index, " out of range [0, ", limit, ").");
      }
      if (empty) continue;
      if (counts->size() <= static_cast<size_t>(id)) counts->resize(static_cast<size_t>(id) + 1);
      (*counts)[static_cast<size_t>(id)] += 1;
    }
    return WEIR_OK;
  }

  static int32_t WriteIndices(Context& ctx, uint32_t dtype, const std::vector<int64_t>& places) {
    const auto write = [&](auto type) -> int32_t {
      View<decltype(type)> to;
      if (const int32_t code = ctx.Output(1, {static_cast<int64_t>(places.size())}, &to); code != WEIR_OK) return code;
      for (size_t i = 0; i < places.size(); ++i) to.data()[i] = static_cast<decltype(type)>(places[i]);
      return WEIR_OK;
    };
    return dtype == WEIR_INT64 ? write(int64_t()) : write(int32_t());
  }

  template <class T>
  static void Spread(const View<const T>& grad, const ChosenRows& rows, const std::vector<double>& counts,
                     const std::vector<int64_t>& places, const View<T>& output) {
    using C = sdk::Compute<T>;
    const int64_t row = SizeOf(grad.shape(), 1, grad.rank()), size = output.size();
    std::vector<C> wide;  // sums of types without arithmetic of their own
    C* to;
    if constexpr (std::is_same_v<C, T>) {
      to = output.data();
      std::fill_n(to, size, C());
    } else {
      wide.resize(static_cast<size_t>(size));
      to = wide.data();
    }
    const auto place = [&](int64_t i) -> C* {
      int64_t at = rows.indices[i];
      if constexpr (kUnique) at = std::lower_bound(places.begin(), places.end(), at) - places.begin();
      return to + at * row;
    };
    const RowFetch<RowUse::kWrite> fetch(kUnique ? 0 : static_cast<size_t>(row) * sizeof(C),
                                         static_cast<size_t>(size) * sizeof(C));
    for (int64_t i = 0; i < rows.count; ++i) {
      if (fetch && i + fetch.kAhead < rows.count) fetch(place(i + fetch.kAhead));
      const int64_t id = rows.ids[i];
      const double count = counts[static_cast<size_t>(id)];
      const C by = static_cast<C>(kNorm == Norm::kCount ? 1 / count : kNorm == Norm::kRoot ? 1 / std::sqrt(count) : 1);
      C* out = place(i);
      const T* from = grad.data() + id * row;
      WEIR_INDEPENDENT
      for (int64_t k = 0; k < row; ++k) out[k] += static_cast<C>(from[k]) * by;
    }
    if constexpr (!std::is_same_v<C, T>) {
      for (int64_t i = 0; i < size; ++i) output[i] = static_cast<T>(to[i]);
    }
  }
};

/// Row i of `data` goes to output partitions[i], behind the rows before it.
struct DynamicPartition {
  int64_t parts = 1;

  int32_t Prepare(const sdk::Node& node, const sdk::Error&) {
    parts = node.Int("num_partitions", 1);
    return WEIR_OK;
  }

  template <class T>
  int32_t Compute(Context& ctx) {
    View<const T> data;
    Integers partitions;
    if (const int32_t code = ctx.Input(0, &data); code != WEIR_OK) return code;
    if (const int32_t code = ctx.Input(1, &partitions); code != WEIR_OK) return code;
    const weir_shape &whole = data.shape(), &prefix = partitions.shape();
    bool fits = whole.rank >= prefix.rank;
    for (uint32_t i = 0; fits && i < prefix.rank; ++i) fits = whole.dims[i] == prefix.dims[i];
    if (!fits) {
      return ctx.error().InvalidArgument("data.shape must start with partitions.shape, got data.shape = ", whole,
                                         ", partitions.shape = ", prefix);
    }
    const int64_t n = partitions.size(), row = data.size() == 0 ? 0 : SizeOf(whole, prefix.rank, whole.rank);
    std::vector<int64_t> counts(static_cast<size_t>(parts));
    for (int64_t i = 0; i < n; ++i) {
      const int64_t part = partitions[i];
      if (part < 0 || part >= parts) {
        return IndexOutOfRange(ctx.error(), "partitions", prefix, i, part, " is not in ", parts);
      }
      ++counts[static_cast<size_t>(part)];
    }
    std::vector<T*> to;
    std::vector<int64_t> dims(whole.dims + prefix.rank, whole.dims + whole.rank);
    dims.insert(dims.begin(), 0);
    for (size_t p = 0; p < counts.size(); ++p) {
      dims[0] = counts[p];
      View<T> output;
      if (const int32_t code = ctx.Output(static_cast<uint32_t>(p), ShapeOf(dims), &output); code != WEIR_OK) {
        return code;
      }
      to.push_back(output.data());
    }
    if (row == 0) return WEIR_OK;
    const T* from = data.data();
    for (int64_t i = 0; i < n; ++i, from += row) {
      T*& next = to[static_cast<size_t>(partitions[i])];
      next = std::copy_n(from, row, next);
    }
    return WEIR_OK;
  }
};

/// Registers the sums, means and sums over roots that `list` gives, and their gradients.
template <Norm kNorm, class List>
void AddReductions(sdk::KernelTable& k, const std::string& name, List list) {
  const std::string op = "SparseSegment" + name;
  k.Add<SparseSegments<kNorm, false>>(op, list).Class(WEIR_CLASS_GATHER, 1);
  k.Add<SparseSegments<kNorm, true>>(op + "WithNumSegments", list).Class(WEIR_CLASS_GATHER, 1);
  k.Add<SparseSegmentsGrad<kNorm, false>>(op + "Grad", kFloating).Class(WEIR_CLASS_GATHER, 1);
  k.Add<SparseSegmentsGrad<kNorm, true>>(op + "GradV2", kFloating).Class(WEIR_CLASS_GATHER, 1);
}

}  // namespace

void AddSparseSegments(sdk::KernelTable& k) {
  AddReductions<Norm::kNone>(k, "Sum", kReal);
  AddReductions<Norm::kCount>(k, "Mean", kFloating);
  AddReductions<Norm::kRoot>(k, "SqrtN", kFloating);
  k.Add<DynamicPartition>("DynamicPartition", kAnyBits).Class(WEIR_CLASS_GATHER);
}

}  // namespace weir::kernels_eigen
