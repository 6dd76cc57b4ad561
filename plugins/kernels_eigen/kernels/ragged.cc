// Ragged tensors, given by the splits of each axis and the values: ranges, rows by index, conversion to sparse ones.
#include <algorithm>
#include <cmath>
#include <limits>
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

/// Writes splits of type `dtype`, int32 or int64.
int32_t WriteSplits(const Context& ctx, uint32_t output, uint32_t dtype, const std::vector<int64_t>& splits) {
  if (dtype == WEIR_INT64) return WriteVector<int64_t>(ctx, output, splits);
  std::vector<int32_t> narrow;
  for (const int64_t split : splits) {
    if (split > std::numeric_limits<int32_t>::max()) {
      return ctx.error().InvalidArgument("int32 splits cannot count ", split, " values");
    }
    narrow.push_back(static_cast<int32_t>(split));
  }
  return WriteVector<int32_t>(ctx, output, narrow);
}

/// The numbers from start to limit by delta, of each row.
struct RaggedRange {
  uint32_t splits_type = WEIR_INT64;

  int32_t Prepare(const sdk::Node& node, const sdk::Error&) {
    splits_type = node.DType("Tsplits", WEIR_INT64);
    return WEIR_OK;
  }

  template <class T>
  int32_t Compute(Context& ctx) {
    constexpr const char* kNames[] = {"starts", "limits", "deltas"};
    View<const T> inputs[3];
    int64_t rows = 1;
    bool vectors = false;
    for (uint32_t i = 0; i < 3; ++i) {
      if (const int32_t code = ctx.Input(i, &inputs[i]); code != WEIR_OK) return code;
      if (inputs[i].rank() > 1) return ctx.error().InvalidArgument(kNames[i], " must be a scalar or vector");
      if (inputs[i].rank() == 0) continue;
      if (vectors && inputs[i].size() != rows) {
        return ctx.error().InvalidArgument("starts, limits, and deltas must have the same shape");
      }
      vectors = true;
      rows = inputs[i].size();
    }
    const auto at = [&](uint32_t i, int64_t row) { return inputs[i][inputs[i].rank() == 0 ? 0 : row]; };
    std::vector<int64_t> splits = {0};
    for (int64_t row = 0; row < rows; ++row) {
      int64_t size = 0, end = 0;
      if (at(2, row) == T(0)) return ctx.error().InvalidArgument("Requires delta != 0");
      if (!Count(at(0, row), at(1, row), at(2, row), &size) || size > Most() ||
          __builtin_add_overflow(splits.back(), size, &end) || end > Most()) {
        return ctx.error().InvalidArgument("Requires ((limit - start) / delta) <= ", Most());
      }
      splits.push_back(end);
    }
    View<T> values;
    if (const int32_t code = ctx.Output(1, {splits.back()}, &values); code != WEIR_OK) return code;
    for (int64_t row = 0; row < rows; ++row) {
      T value = at(0, row);
      const int64_t begin = splits[static_cast<size_t>(row)], end = splits[static_cast<size_t>(row) + 1];
      for (int64_t i = begin; i < end; ++i, value = Sum(value, at(2, row))) values[i] = value;
    }
    return WriteSplits(ctx, 0, splits_type, splits);
  }

 private:
  int64_t Most() const {
    return splits_type == WEIR_INT64 ? std::numeric_limits<int64_t>::max() : std::numeric_limits<int32_t>::max();
  }

  /// The numbers of one row; false if they are too many or undefined.
  template <class T>
  static bool Count(T start, T limit, T delta, int64_t* size) {
    *size = 0;
    if constexpr (std::is_integral_v<T>) {
      if ((delta > 0 && limit <= start) || (delta < 0 && limit >= start)) return true;
      const auto distance = delta > 0 ? static_cast<uint64_t>(limit) - static_cast<uint64_t>(start)
                                      : static_cast<uint64_t>(start) - static_cast<uint64_t>(limit);
      const uint64_t step = delta > 0 ? static_cast<uint64_t>(delta) : uint64_t{0} - static_cast<uint64_t>(delta);
      const uint64_t count = (distance - 1) / step + 1;
      if (count > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return false;
      *size = static_cast<int64_t>(count);
      return true;
    } else {
      const double count = std::ceil(static_cast<double>(T((limit - start) / delta)));
      if (!(count < 0x1p63)) return false;
      *size = count > 0 ? static_cast<int64_t>(count) : 0;
      return true;
    }
  }
};

/// The splits of a ragged tensor, outermost first.
struct Splits {
  std::vector<Integers> levels;

  /// Reads inputs [0, count).
  int32_t Read(const Context& ctx, uint32_t count) {
    levels.resize(count);
    for (uint32_t i = 0; i < count; ++i) {
      if (const int32_t code = ctx.Input(i, &levels[i]); code != WEIR_OK) return code;
    }
    return WEIR_OK;
  }
};

/// Rows of a ragged tensor by index.
struct RaggedGather {
  uint32_t rank = 1;  // ragged axes of params
  uint32_t splits_type = WEIR_INT64;

  int32_t Prepare(const sdk::Node& node, const sdk::Error& error) {
    const int64_t given = node.Int("PARAMS_RAGGED_RANK", 1);
    if (given < 1 || given > 254) return error.InvalidArgument("PARAMS_RAGGED_RANK = ", given);
    rank = static_cast<uint32_t>(given);
    splits_type = node.DType("Tsplits", WEIR_INT64);
    outer = node.Int("OUTPUT_RAGGED_RANK", 0);
    return WEIR_OK;
  }

  template <class T>
  int32_t Compute(Context& ctx) {
    Splits params;
    View<const T> values;
    Integers indices;
    if (const int32_t code = params.Read(ctx, rank); code != WEIR_OK) return code;
    if (const int32_t code = ctx.Input(rank, &values); code != WEIR_OK) return code;
    if (const int32_t code = ctx.Input(rank + 1, &indices); code != WEIR_OK) return code;
    if (const int32_t code = Check(ctx.error(), params, values.shape(), indices); code != WEIR_OK) return code;
    // Rows [begin, end) of the current level; each index starts with its own row.
    std::vector<std::pair<int64_t, int64_t>> ranges;
    for (int64_t i = 0; i < indices.size(); ++i) ranges.emplace_back(indices[i], indices[i] + 1);
    uint32_t output = 0;
    if (const int32_t code = WriteUniform(ctx, indices, &output); code != WEIR_OK) return code;
    for (uint32_t level = 0; level < rank; ++level) {
      const Integers& splits = params.levels[level];
      std::vector<int64_t> taken = {0};
      for (auto& [begin, end] : ranges) {
        for (int64_t row = begin; row < end; ++row) {
          int64_t next = 0;
          if (__builtin_add_overflow(taken.back(), splits[row + 1] - splits[row], &next)) {
            return ctx.error().InvalidArgument("the gathered rows are too many");
          }
          taken.push_back(next);
        }
        begin = splits[begin];
        end = splits[end];
      }
      if (level == 0 && indices.rank() == 0) continue;  // the row itself, without its axis
      if (const int32_t code = WriteSplits(ctx, output++, splits_type, taken); code != WEIR_OK) return code;
    }
    return Copy(ctx, output, values, ranges);
  }

 private:
  int64_t outer = 0;  // ragged axes of the output

  int32_t Check(const sdk::Error& error, const Splits& params, const weir_shape& values,
                const Integers& indices) const {
    if (values.rank == 0) return error.InvalidArgument("params.rank must be nonzero");
    if (outer != static_cast<int64_t>(rank) + indices.rank() - 1) {
      return error.InvalidArgument("OUTPUT_RAGGED_RANK = ", outer, ", but params have ", rank,
                                   " ragged axes and indices have rank ", indices.rank());
    }
    for (uint32_t level = 0; level < rank; ++level) {
      const Integers& splits = params.levels[level];
      if (splits.rank() == 0) return error.InvalidArgument("Split tensors must not be scalars");
      if (splits.size() == 0) return error.InvalidArgument("Split tensors must not be empty");
      const int64_t limit = level + 1 < rank ? params.levels[level + 1].size() - 1 : values.dims[0];
      for (int64_t i = 0; i < splits.size(); ++i) {
        if (splits[i] < 0) return error.InvalidArgument("Ragged splits must be non-negative");
        if (i > 0 && splits[i] < splits[i - 1]) return error.InvalidArgument("Ragged splits must be sorted");
      }
      if (splits[splits.size() - 1] > limit) {
        return error.InvalidArgument("Ragged splits must not point past values");
      }
    }
    const int64_t rows = params.levels[0].size() - 1;
    for (int64_t i = 0; i < indices.size(); ++i) {
      const int64_t index = indices[i];
      if (index >= 0 && index < rows) continue;
      return IndexOutOfRange(error, "indices", indices.shape(), i, index, " is not in ", rows);
    }
    return WEIR_OK;
  }

  /// The splits of the axes of `indices` after the first one, which are uniform.
  int32_t WriteUniform(const Context& ctx, const Integers& indices, uint32_t* output) const {
    int64_t rows = 1;
    for (uint32_t d = 0; d + 1 < indices.rank(); ++d) {
      rows *= indices.dim(d);
      std::vector<int64_t> splits;
      for (int64_t row = 0; row <= rows; ++row) splits.push_back(row * indices.dim(d + 1));
      if (const int32_t code = WriteSplits(ctx, (*output)++, splits_type, splits); code != WEIR_OK) return code;
    }
    return WEIR_OK;
  }

  template <class T>
  static int32_t Copy(const Context& ctx, uint32_t output, const View<const T>& values,
                      const std::vector<std::pair<int64_t, int64_t>>& ranges) {
    std::vector<int64_t> dims = DimsOf(values.shape());
    dims[0] = 0;
    for (const auto& [begin, end] : ranges) {
      if (__builtin_add_overflow(dims[0], end - begin, &dims[0])) {
        return ctx.error().InvalidArgument("the gathered rows are too many");
      }
    }
    View<T> to;
    if (const int32_t code = ctx.Output(output, ShapeOf(dims), &to); code != WEIR_OK) return code;
    if (to.size() == 0) return WEIR_OK;
    const int64_t row = SizeOf(values.shape(), 1, values.rank());
    T* next = to.data();
    for (const auto& [begin, end] : ranges) {
      next = std::copy(values.data() + begin * row, values.data() + end * row, next);
    }
    return WEIR_OK;
  }
};

/// The entries of a ragged tensor, with the bounding shape.
struct RaggedTensorToSparse {
  uint32_t rank = 1;

  int32_t Prepare(const sdk::Node& node, const sdk::Error& error) {
    const int64_t given = node.Int("RAGGED_RANK", 1);
    if (given < 1 || given > 254) return error.InvalidArgument("RAGGED_RANK = ", given);
    rank = static_cast<uint32_t>(given);
    return WEIR_OK;
  }

  template <class T>
  int32_t Compute(Context& ctx) {
    Splits ragged;
    View<const T> values;
    if (const int32_t code = ragged.Read(ctx, rank); code != WEIR_OK) return code;
    if (const int32_t code = ctx.Input(rank, &values); code != WEIR_OK) return code;
    if (const int32_t code = Check(ctx.error(), ragged, values.shape()); code != WEIR_OK) return code;
    std::vector<int64_t> dims = {ragged.levels[0].size() - 1};
    for (const Integers& splits : ragged.levels) {
      int64_t longest = 0;
      for (int64_t i = 0; i + 1 < splits.size(); ++i) longest = std::max(longest, splits[i + 1] - splits[i]);
      dims.push_back(longest);
    }
    dims.insert(dims.end(), values.shape().dims + 1, values.shape().dims + values.rank());
    const int64_t count = values.size(), axes = static_cast<int64_t>(dims.size());
    View<int64_t> indices;
    View<T> to;
    if (const int32_t code = ctx.Output(0, {count, axes}, &indices); code != WEIR_OK) return code;
    if (const int32_t code = ctx.Output(1, {count}, &to); code != WEIR_OK) return code;
    std::copy_n(values.data(), count, to.data());
    WriteCoordinates(ragged, values.shape(), count, dims, indices.data());
    return WriteVector<int64_t>(ctx, 2, dims);
  }

 private:
  int32_t Check(const sdk::Error& error, const Splits& ragged, const weir_shape& values) const {
    if (values.rank == 0) return error.InvalidArgument("the ragged values must not be a scalar");
    for (uint32_t level = 0; level < rank; ++level) {
      const Integers& splits = ragged.levels[level];
      if (splits.size() == 0) return error.InvalidArgument("ragged splits may not be empty.");
      if (splits.rank() != 1) return error.InvalidArgument("ragged splits must be a vector");
      if (splits[0] != 0) return error.InvalidArgument("First value of ragged splits must be 0.");
      for (int64_t i = 1; i < splits.size(); ++i) {
        if (splits[i] >= splits[i - 1]) continue;
        return error.InvalidArgument("Ragged splits should be non decreasing, but we got ", splits[i - 1],
                                     " followed by ", splits[i]);
      }
      const int64_t wanted = level + 1 < rank ? ragged.levels[level + 1].size() - 1 : values.dims[0];
      if (splits[splits.size() - 1] != wanted) {
        return error.InvalidArgument(
            "Final value of ragged splits must match the length the corresponding ragged values.");
      }
    }
    return WEIR_OK;
  }

  void WriteCoordinates(const Splits& ragged, const weir_shape& values, int64_t count, const std::vector<int64_t>& dims,
                        int64_t* to) const {
    if (count == 0) return;
    const int64_t row = SizeOf(values, 1, values.rank);
    std::vector<int64_t> at(rank);  // the row of each level that holds the value
    for (int64_t i = 0; i < count; ++i) {
      int64_t child = i / row;
      std::vector<int64_t> entry(dims.size());
      for (uint32_t level = rank; level-- > 0;) {
        while (ragged.levels[level][at[level] + 1] <= child) ++at[level];
        entry[level + 1] = child - ragged.levels[level][at[level]];
        child = at[level];
      }
      entry[0] = child;
      int64_t rest = i % row;
      for (size_t d = dims.size(); d-- > rank + 1;) {
        entry[d] = rest % dims[d];
        rest /= dims[d];
      }
      to = std::copy(entry.begin(), entry.end(), to);
    }
  }
};

}  // namespace

void AddRagged(sdk::KernelTable& k) {
  k.Add<RaggedRange>("RaggedRange", kFloat + kIndex).Class(WEIR_CLASS_GATHER);
  k.Add<RaggedGather>("RaggedGather", sdk::Attr("Tvalues", kAnyBits)).Class(WEIR_CLASS_GATHER);
  k.Add<RaggedTensorToSparse>("RaggedTensorToSparse", kAnyBits).Class(WEIR_CLASS_GATHER);
}

}  // namespace weir::kernels_eigen
