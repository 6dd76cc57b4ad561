// Distances: edits between sequences of sparse tensors, and the centers nearest to points.
#include <algorithm>
#include <complex>
#include <limits>
#include <map>
#include <numeric>
#include <string_view>
#include <vector>

#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/families.h"
#include "plugins/kernels_eigen/kernels/sparse_entries.h"

namespace weir::kernels_eigen {
namespace {

using sdk::Context;
using sdk::View;

/// How elements of sequences are compared: whole numbers by value, others as complex doubles, which hold all of them.
template <class T>
auto SequenceKey(const T& x) {
  using C = sdk::Compute<T>;
  if constexpr (std::is_same_v<T, sdk::boolean>) {
    return static_cast<uint64_t>(x ? 1 : 0);
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<uint64_t>(x);
  } else {
    return std::complex<double>(static_cast<C>(x));
  }
}

/// The least number of insertions, deletions and replacements that turn a into b.
template <class Key>
int64_t Edits(const std::vector<Key>& a, const std::vector<Key>& b) {
  std::vector<int64_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), int64_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    int64_t diagonal = row[0];
    row[0] = static_cast<int64_t>(i) + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const int64_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row[b.size()];
}

/// The distances of the sequences in the last axis; of the pairs of which either has elements.
struct EditDistance {
  bool normalize = true;

  int32_t Prepare(const sdk::Node& node, const sdk::Error&) {
    normalize = node.Bool("normalize", true);
    return WEIR_OK;
  }

  template <class T>
  int32_t Compute(Context& ctx) {
    SparseInput<T> hypothesis, truth;
    if (const int32_t code = hypothesis.Read(ctx, 0); code != WEIR_OK) return code;
    if (const int32_t code = truth.Read(ctx, 3); code != WEIR_OK) return code;
    if (const int32_t code = Check(ctx.error(), hypothesis, truth); code != WEIR_OK) return code;
    const auto outer = static_cast<size_t>(truth.shape.size()) - 1;
    std::vector<int64_t> dims;
    for (size_t d = 0; d < outer; ++d) {
      const auto axis = static_cast<int64_t>(d);
      dims.push_back(std::max(hypothesis.shape[axis], truth.shape[axis]));
      if (dims.back() < 0) {
        return ctx.error().InvalidArgument("Expected shape dimensions to be non-negative, got ", dims.back());
      }
    }
    if (std::find(dims.begin(), dims.end(), 0) != dims.end()) {
      return ctx.error().InvalidArgument("Got output shape ", ShapeOf(dims), " which has 0 elements");
    }
    View<float> output;
    if (const int32_t code = ctx.Output(0, ShapeOf(dims), &output); code != WEIR_OK) return code;
    std::fill_n(output.data(), output.size(), 0.0f);
    using Key = decltype(SequenceKey(T()));
    std::map<int64_t, Pair<Key>> pairs;
    if (const int32_t code = Collect(ctx.error(), hypothesis, dims, &Pair<Key>::hypothesis, &pairs); code != WEIR_OK) {
      return code;
    }
    if (const int32_t code = Collect(ctx.error(), truth, dims, &Pair<Key>::truth, &pairs); code != WEIR_OK) return code;
    for (const auto& [at, pair] : pairs) {
      auto distance = static_cast<float>(Edits(pair.hypothesis, pair.truth));
      if (normalize) {
        distance = pair.truth.empty() ? std::numeric_limits<float>::infinity()
                                      : distance / static_cast<float>(pair.truth.size());
      }
      output[at] = distance;
    }
    return WEIR_OK;
  }

 private:
  template <class Key>
  struct Pair {
    std::vector<Key> hypothesis, truth;
  };

  template <class T>
  static int32_t CheckSequences(const sdk::Error& error, std::string_view name, const SparseInput<T>& x) {
    if (x.indices.rank() != 2) {
      return error.InvalidArgument(name, "_indices should be a matrix, but got shape: ", x.indices.shape());
    }
    if (x.values.rank() != 1) {
      return error.InvalidArgument(name, "_values should be a vector, but got shape: ", x.values.shape());
    }
    if (x.shape.rank() != 1) {
      return error.InvalidArgument(name, "_shape should be a vector, but got shape: ", x.shape.shape());
    }
    if (x.values.size() == x.count()) return WEIR_OK;
    return error.InvalidArgument("Expected ", name, "_values.NumElements == #rows(", name,
                                 "_indices), their shapes are: ", x.values.shape(), " and ", x.indices.shape());
  }

  template <class T>
  static int32_t Check(const sdk::Error& error, const SparseInput<T>& hypothesis, const SparseInput<T>& truth) {
    if (const int32_t code = CheckSequences(error, "hypothesis", hypothesis); code != WEIR_OK) return code;
    if (const int32_t code = CheckSequences(error, "truth", truth); code != WEIR_OK) return code;
    if (truth.shape.size() < 2) {
      return error.InvalidArgument("Input SparseTensors must have rank at least 2, but truth_shape rank is: ",
                                   truth.shape.size());
    }
    if (truth.shape.size() != hypothesis.shape.size()) {
      return error.InvalidArgument("Expected truth and hypothesis to have matching ranks, but their shapes are: ",
                                   truth.shape.shape(), " and ", hypothesis.shape.shape());
    }
    if (const int32_t code = hypothesis.Check(error); code != WEIR_OK) return code;
    return truth.Check(error);
  }

  /// Adds the entries, in order, to the sequence of their place in the output.
  template <class T, class Key>
  static int32_t Collect(const sdk::Error& error, const SparseInput<T>& x, const std::vector<int64_t>& dims,
                         std::vector<Key> Pair<Key>::*sequence, std::map<int64_t, Pair<Key>>* pairs) {
    const std::vector<int64_t> steps = StepsOf(dims);
    for (int64_t i = 0; i < x.count(); ++i) {
      const std::span<const int64_t> entry = x.At(i).first(dims.size());
      uint64_t place = 0;  // wraps for entries out of bounds
      for (size_t d = 0; d < dims.size(); ++d) {
        place += static_cast<uint64_t>(entry[d]) * static_cast<uint64_t>(steps[d]);
      }
      if (!InBounds(entry, dims)) {
        return error.InvalidArgument("Got an inner product ", static_cast<int64_t>(place),
                                     " which would require writing to outside of the buffer for the output tensor ",
                                     "(max elements ", steps[0] * dims[0], ")");
      }
      ((*pairs)[static_cast<int64_t>(place)].*sequence).push_back(SequenceKey(x.values[i]));
    }
    return WEIR_OK;
  }
};

/// The k nearest centers of each point and their squared distances; of equally near ones the first.
struct NearestNeighbors {
  int32_t Compute(Context& ctx) {
    View<const float> points, centers;
    View<const int64_t> given;
    if (const int32_t code = ctx.Input(0, &points); code != WEIR_OK) return code;
    if (const int32_t code = ctx.Input(1, &centers); code != WEIR_OK) return code;
    if (const int32_t code = ctx.Input(2, &given); code != WEIR_OK) return code;
    const sdk::Error& error = ctx.error();
    if (points.rank() != 2) return error.InvalidArgument("Input points should be a matrix.");
    if (centers.rank() != 2) return error.InvalidArgument("Input centers should be a matrix.");
    if (given.rank() != 0) return error.InvalidArgument("Input k should be a scalar.");
    const int64_t n = points.dim(0), m = centers.dim(0), extent = points.dim(1);
    if (n == 0) return error.InvalidArgument("Expected points.rows() > 0.");
    if (extent != centers.dim(1)) {
      return error.InvalidArgument("Expected point_dimensions == center_dimensions: ", extent, " vs ", centers.dim(1),
                                   ".");
    }
    if (given[0] < 0) return error.InvalidArgument("Expected k >= 0, got ", given[0]);
    const int64_t k = std::min(given[0], m);
    View<int64_t> nearest;
    View<float> distances;
    if (const int32_t code = ctx.Output(0, {n, k}, &nearest); code != WEIR_OK) return code;
    if (const int32_t code = ctx.Output(1, {n, k}, &distances); code != WEIR_OK) return code;
    if (k == 0) return WEIR_OK;
    std::vector<std::pair<float, int64_t>> all(static_cast<size_t>(m));
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < m; ++j) {
        float sum = 0;
        for (int64_t d = 0; d < extent; ++d) {
          const float difference = points[i * extent + d] - centers[j * extent + d];
          sum += difference * difference;
        }
        // A distance that is not a number is the farthest, so that the order is total.
        all[static_cast<size_t>(j)] = {sum == sum ? sum : std::numeric_limits<float>::infinity(), j};
      }
      std::partial_sort(all.begin(), all.begin() + k, all.end());
      for (int64_t j = 0; j < k; ++j) {
        distances[i * k + j] = all[static_cast<size_t>(j)].first;
        nearest[i * k + j] = all[static_cast<size_t>(j)].second;
      }
    }
    return WEIR_OK;
  }
};

}  // namespace

void AddDistances(sdk::KernelTable& k) {
  k.Add<EditDistance>("EditDistance", kNumbers + kBool).Class(WEIR_CLASS_SORT);
  k.Add<NearestNeighbors>("NearestNeighbors").Class(WEIR_CLASS_SORT);
}

}  // namespace weir::kernels_eigen
