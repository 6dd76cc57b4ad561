// Counts of the numbers in sparse and ragged tensors, and counts as sparse tensors.
#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/function_families.h"
#include "plugins/kernels_eigen/kernels/sparse_entries.h"
#include "plugins/kernels_eigen/wrap.h"

namespace weir::kernels_eigen {
namespace {

using sdk::Context;
using sdk::Error;
using sdk::Node;
using sdk::View;

constexpr const char* kNegativeValue = "Input arr must be non-negative!";

/// The scalar number of bins of input i.
int32_t ReadBinCount(Context& ctx, uint32_t i, int64_t* bins) {
  sdk::Integers size;
  if (const int32_t code = ctx.Input(i, &size); code != WEIR_OK) return code;
  if (size.rank() != 0) return ctx.error().InvalidArgument("Shape must be rank 0 but is rank ", size.rank());
  *bins = size[0];
  if (*bins < 0) return ctx.error().InvalidArgument("size (", *bins, ") must be non-negative");
  return WEIR_OK;
}

/// What one occurrence adds: its weight, or 1.
template <class W>
struct Weights {
  View<const W> given;
  bool binary = false, weighted = false;

  int32_t Read(Context& ctx, uint32_t i) {
    const int32_t code = ctx.Input(i, &given);
    weighted = code == WEIR_OK && given.size() != 0;
    return code;
  }
  int32_t Check(const Error& error, int64_t numbers) const {
    if (!weighted || binary || given.size() == numbers) return WEIR_OK;
    return error.InvalidArgument("Input indices and weights must have the same size.");
  }
  void Add(int64_t i, W* sum) const { *sum = binary ? W(1) : Sum(*sum, weighted ? given[i] : W(1)); }
};

/// The rows of a ragged tensor: row r has the values [splits[r], splits[r + 1]). As in TensorFlow, splits that decrease
/// are no error: a value belongs to the last row whose predecessors have all ended.
class RowsOfSplits {
 public:
  explicit RowsOfSplits(View<const int64_t> splits) : splits_(splits) {}
  int32_t Check(const Error& error, int64_t values) const {
    if (splits_[0] != 0) return error.InvalidArgument("Splits must start with 0, not with ", splits_[0]);
    const int64_t last = splits_[splits_.size() - 1];
    if (last == values) return WEIR_OK;
    return error.InvalidArgument("Splits must end with the number of values, got ", last, " instead of ", values);
  }
  /// Of value i, with i ascending from call to call.
  int64_t RowOf(int64_t i) {
    while (i >= splits_[next_]) ++next_;
    return next_ - 1;
  }

 private:
  View<const int64_t> splits_;
  int64_t next_ = 0;
};

/// Counts of each row of a matrix, whose columns beyond the first do not matter, or of a vector.
struct SparseBincount {
  bool binary = false;

  int32_t Prepare(const Node& node, const Error&) {
    binary = node.Bool("binary_output");
    return WEIR_OK;
  }

  template <class T, class I>
  int32_t Compute(Context& ctx) {
    SparseInput<I> x;
    Weights<T> weights;
    weights.binary = binary;
    int64_t bins = 0;
    if (const int32_t code = x.Read(ctx, 0); code != WEIR_OK) return code;
    if (const int32_t code = ReadBinCount(ctx, 3, &bins); code != WEIR_OK) return code;
    if (const int32_t code = weights.Read(ctx, 4); code != WEIR_OK) return code;
    if (const int32_t code = Check(ctx.error(), x); code != WEIR_OK) return code;
    if (const int32_t code = weights.Check(ctx.error(), x.values.size()); code != WEIR_OK) return code;
    const bool vector = x.shape.size() == 1;
    const std::vector<int64_t> dims = vector ? std::vector<int64_t>{bins} : std::vector<int64_t>{x.shape[0], bins};
    View<T> counts;
    if (const int32_t code = ctx.Output(0, ShapeOf(dims), &counts); code != WEIR_OK) return code;
    std::fill_n(counts.data(), counts.size(), T(0));
    for (int64_t i = 0; i < x.count(); ++i) {
      const int64_t bin = x.values[i];
      if (bin < 0) return ctx.error().InvalidArgument(kNegativeValue);
      if (bin < bins) weights.Add(i, &counts[(vector ? 0 : x.At(i)[0] * bins) + bin]);
    }
    return WEIR_OK;
  }

 private:
  template <class I>
  static int32_t Check(const Error& error, const SparseInput<I>& x) {
    if (const int32_t code = x.Check(error); code != WEIR_OK) return code;
    if (x.shape.size() == 0) return error.InvalidArgument("Sparse shape must have at least one dimension");
    const std::span<const int64_t> dims = Elements(x.shape);
    for (int64_t i = 0; i < x.count(); ++i) {
      if (InBounds(x.At(i), dims)) continue;
      std::string entry;
      for (const int64_t at : x.At(i)) entry.append(entry.empty() ? "" : ", ").append(std::to_string(at));
      return error.InvalidArgument("Sparse index tuple indices[", i, ", :] = [", entry, "] is out of bounds");
    }
    return WEIR_OK;
  }
};

struct RaggedBincount {
  bool binary = false;

  int32_t Prepare(const Node& node, const Error&) {
    binary = node.Bool("binary_output");
    return WEIR_OK;
  }

  template <class T, class I>
  int32_t Compute(Context& ctx) {
    View<const int64_t> splits;
    View<const I> values;
    Weights<T> weights;
    weights.binary = binary;
    int64_t bins = 0;
    if (const int32_t code = ctx.Input(0, &splits); code != WEIR_OK) return code;
    if (const int32_t code = ctx.Input(1, &values); code != WEIR_OK) return code;
    if (const int32_t code = ReadBinCount(ctx, 2, &bins); code != WEIR_OK) return code;
    if (const int32_t code = weights.Read(ctx, 3); code != WEIR_OK) return code;
    const int64_t n = values.size();
    if (splits.size() == 0) return ctx.error().InvalidArgument("Splits must be non-empty");
    RowsOfSplits rows(splits);
    if (const int32_t code = rows.Check(ctx.error(), n); code != WEIR_OK) return code;
    if (const int32_t code = weights.Check(ctx.error(), n); code != WEIR_OK) return code;
    View<T> counts;
    if (const int32_t code = ctx.Output(0, {splits.size() - 1, bins}, &counts); code != WEIR_OK) return code;
    std::fill_n(counts.data(), counts.size(), T(0));
    for (int64_t i = 0; i < n; ++i) {
      const int64_t bin = values[i], row = rows.RowOf(i);
      if (bin < 0) return ctx.error().InvalidArgument("Input must be non-negative");
      if (bin < bins) weights.Add(i, &counts[row * bins + bin]);
    }
    return WEIR_OK;
  }
};

/// Counts as a sparse tensor: of a vector [values], else [rows, values].
struct CountPlan {
  int64_t least = -1, most = -1;
  bool binary = false;

  int32_t Prepare(const Node& node, const Error&) {
    least = node.Int("minlength", -1);
    most = node.Int("maxlength", -1);
    binary = node.Bool("binary_output");
    return WEIR_OK;
  }

  template <class T, class W>
  static int32_t Check(const Error& error, View<const T> values, View<const W> weights, const char* name) {
    const T* const end = values.data() + values.size();
    if (std::any_of(values.data(), end, [](T value) { return value < 0; })) {
      return error.InvalidArgument("Input values must all be non-negative");
    }
    if (weights.size() == 0 || sdk::SameShape(weights.shape(), values.shape())) return WEIR_OK;
    return error.InvalidArgument("Weights and ", name, " must have the same shape. Weight shape: ", weights.shape(),
                                 "; ", name, " shape: ", values.shape());
  }

  /// `row_of` gives the row of value i and is called with i ascending; `rows` is -1 for a vector.
  template <class T, class W, class RowOf>
  int32_t Count(Context& ctx, View<const T> values, Weights<W> weights, int64_t rows, RowOf&& row_of) const {
    struct Occurrence {
      int64_t row, value, number;
    };
    weights.binary = binary;
    std::vector<Occurrence> all;
    int64_t largest = 0;
    for (int64_t i = 0, n = values.size(); i < n; ++i) {
      const int64_t value = values[i], row = row_of(i);
      if (most >= 0 && value >= most) continue;
      largest = std::max(largest, value);
      all.push_back({row, value, i});
    }
    std::sort(all.begin(), all.end(), [](const Occurrence& a, const Occurrence& b) {
      return std::tie(a.row, a.value, a.number) < std::tie(b.row, b.value, b.number);
    });
    std::vector<int64_t> entries;
    std::vector<W> counts;
    const Occurrence* last = nullptr;
    for (const Occurrence& one : all) {
      if (last == nullptr || last->row != one.row || last->value != one.value) {
        if (rows >= 0) entries.push_back(one.row);
        entries.push_back(one.value);
        counts.push_back(W(0));
      }
      weights.Add(one.number, &counts.back());
      last = &one;
    }
    const int64_t beyond = largest == INT64_MAX ? largest : largest + 1;
    std::vector<int64_t> dims = {most >= 0 ? most : std::max(beyond, least)};
    if (rows >= 0) dims.insert(dims.begin(), rows);
    const auto rank = static_cast<int64_t>(dims.size()), found = static_cast<int64_t>(counts.size());
    if (const int32_t code = WriteEntries(ctx, 0, entries, found, rank); code != WEIR_OK) return code;
    if (const int32_t code = WriteVector<W>(ctx, 1, counts); code != WEIR_OK) return code;
    return WriteVector<int64_t>(ctx, 2, dims);
  }
};

struct DenseCount : CountPlan {
  template <class T, class W>
  int32_t Compute(Context& ctx) {
    View<const T> values;
    Weights<W> weights;
    if (const int32_t code = ctx.Input(0, &values); code != WEIR_OK) return code;
    if (const int32_t code = weights.Read(ctx, 1); code != WEIR_OK) return code;
    if (values.rank() != 1 && values.rank() != 2) {
      return ctx.error().InvalidArgument("Input must be a 1 or 2-dimensional tensor. Got: ", values.shape());
    }
    if (const int32_t code = Check(ctx.error(), values, weights.given, "data"); code != WEIR_OK) return code;
    const bool vector = values.rank() == 1;
    if (!vector && values.dim(0) == 0) {
      return ctx.error().InvalidArgument("Invalid input: Shapes dimension cannot be 0.");
    }
    const int64_t row = vector ? values.size() : values.dim(1);
    return Count(ctx, values, weights, vector ? -1 : values.dim(0), [row](int64_t i) { return i / row; });
  }
};

struct SparseCount : CountPlan {
  template <class T, class W>
  int32_t Compute(Context& ctx) {
    SparseInput<T> x;
    Weights<W> weights;
    if (const int32_t code = x.Read(ctx, 0); code != WEIR_OK) return code;
    if (const int32_t code = weights.Read(ctx, 3); code != WEIR_OK) return code;
    if (const int32_t code = CheckShapes(ctx.error(), x); code != WEIR_OK) return code;
    if (const int32_t code = CheckEntries(ctx.error(), x); code != WEIR_OK) return code;
    if (const int32_t code = Check(ctx.error(), x.values, weights.given, "values"); code != WEIR_OK) return code;
    const bool vector = x.shape.size() == 1;
    const int64_t rows = vector ? -1 : x.shape[0];
    if (!vector && (rows <= 0 || rows >= INT32_MAX)) {
      return ctx.error().InvalidArgument("Cannot allocate ", rows, " batches, is the dense shape too wide?");
    }
    return Count(ctx, x.values, weights, rows, [&](int64_t i) { return vector ? 0 : x.At(i)[0]; });
  }

 private:
  template <class T>
  static int32_t CheckShapes(const Error& error, const SparseInput<T>& x) {
    const weir_shape &indices = x.indices.shape(), &values = x.values.shape(), &shape = x.shape.shape();
    if (indices.rank != 2) {
      return error.InvalidArgument("Input indices must be a 2-dimensional tensor. Got: ", indices);
    }
    if (values.rank != 1) return error.InvalidArgument("Input values must be a vector. Got: ", values);
    if (shape.rank != 1) return error.InvalidArgument("Input shape must be a vector. Got: ", shape);
    if (values.dims[0] != indices.dims[0]) {
      return error.InvalidArgument("Number of values must match first dimension of indices.", "Got ", values.dims[0],
                                   " values, indices shape: ", indices);
    }
    if (shape.dims[0] != indices.dims[1]) {
      return error.InvalidArgument("Number of dimensions must match second dimension of indices.", "Got ",
                                   shape.dims[0], " dimensions, indices shape: ", indices);
    }
    if (shape.dims[0] == 0) return error.InvalidArgument("The shape argument requires at least one element.");
    return WEIR_OK;
  }

  template <class T>
  static int32_t CheckEntries(const Error& error, const SparseInput<T>& x) {
    const std::span<const int64_t> dims = Elements(x.shape);
    for (int64_t i = 0; i < x.count(); ++i) {
      const std::span<const int64_t> entry = x.At(i);
      for (size_t d = 0; d < dims.size(); ++d) {
        if (entry[d] >= 0 && entry[d] < dims[d]) continue;
        std::string extents;
        for (size_t k = 0; k < dims.size() && k < 3; ++k) {
          extents.append(k == 0 ? "" : " ").append(std::to_string(dims[k]));
        }
        if (dims.size() > 3) extents += "...";
        return error.InvalidArgument(
            "Invalid index value at ", i, ": dimension ", d, " has value ", entry[d], " which is not in [0, ", dims[d],
            ") (as given by dense shape Tensor<type: int64 shape: [", dims.size(), "] values: ", extents, ">");
      }
    }
    return WEIR_OK;
  }
};

struct RaggedCount : CountPlan {
  template <class T, class W>
  int32_t Compute(Context& ctx) {
    View<const int64_t> splits;
    View<const T> values;
    Weights<W> weights;
    if (const int32_t code = ctx.Input(0, &splits); code != WEIR_OK) return code;
    if (const int32_t code = ctx.Input(1, &values); code != WEIR_OK) return code;
    if (const int32_t code = weights.Read(ctx, 2); code != WEIR_OK) return code;
    if (const int32_t code = Check(ctx.error(), values, weights.given, "values"); code != WEIR_OK) return code;
    if (splits.size() < 2) {
      return ctx.error().InvalidArgument("Must provide at least 2 elements for the splits argument");
    }
    RowsOfSplits rows(splits);
    if (const int32_t code = rows.Check(ctx.error(), values.size()); code != WEIR_OK) return code;
    return Count(ctx, values, weights, splits.size() - 1, [&rows](int64_t i) { return rows.RowOf(i); });
  }
};

}  // namespace

void AddSparseCounts(sdk::KernelTable& k) {
  constexpr auto kBinned = kFloat + kIndex;
  constexpr auto kValues = sdk::Attr("T", kIndex);
  constexpr auto kCounts = sdk::Attr("output_type", kFloat + kIndex);
  k.Add<SparseBincount>("SparseBincount", kBinned, sdk::Attr("Tidx", kIndex)).Class(WEIR_CLASS_GATHER);
  k.Add<RaggedBincount>("RaggedBincount", kBinned, sdk::Attr("Tidx", kIndex)).Class(WEIR_CLASS_GATHER);
  k.Add<DenseCount>("DenseCountSparseOutput", kValues, kCounts).Class(WEIR_CLASS_GATHER, 20);
  k.Add<SparseCount>("SparseCountSparseOutput", kValues, kCounts).Class(WEIR_CLASS_GATHER, 20);
  k.Add<RaggedCount>("RaggedCountSparseOutput", kValues, kCounts).Class(WEIR_CLASS_GATHER, 20);
}

}  // namespace weir::kernels_eigen
