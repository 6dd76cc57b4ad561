// Entries of sparse tensors: their coordinates, order and checks.
#ifndef WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_SPARSE_ENTRIES_H_
#define WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_SPARSE_ENTRIES_H_

#include <algorithm>
#include <numeric>
#include <span>
#include <vector>

#include "plugins/functors/sparse_checks.h"
#include "plugins/kernels_eigen/operands.h"

namespace weir::kernels_eigen {

using functors::AsShape;
using functors::CheckParts;
using Coordinates = sdk::View<const int64_t>;  // [entries, rank]

/// Row i of a matrix of coordinates.
inline std::span<const int64_t> EntryAt(const Coordinates& indices, int64_t i) {
  const auto rank = static_cast<size_t>(indices.dim(1));
  return {indices.data() + static_cast<size_t>(i) * rank, rank};
}

/// Whether coordinates a come before b.
inline bool ComesBefore(std::span<const int64_t> a, std::span<const int64_t> b) {
  return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end());
}

/// The entries' numbers in the order of their coordinates; equal ones keep their order.
inline std::vector<int64_t> SortedEntries(const Coordinates& indices) {
  std::vector<int64_t> order(static_cast<size_t>(indices.dim(0)));
  std::iota(order.begin(), order.end(), int64_t{0});
  const auto before = [&](int64_t a, int64_t b) { return ComesBefore(EntryAt(indices, a), EntryAt(indices, b)); };
  if (!std::is_sorted(order.begin(), order.end(), before)) std::stable_sort(order.begin(), order.end(), before);
  return order;
}

inline bool InBounds(std::span<const int64_t> entry, std::span<const int64_t> dims) {
  for (size_t d = 0; d < entry.size(); ++d) {
    if (entry[d] < 0 || entry[d] >= dims[d]) return false;
  }
  return true;
}

/// InvalidArgument with TensorFlow's text unless the entries lie inside `dims` and increase. The coordinates have as
/// many columns as `dims`.
inline int32_t CheckIncreasing(const sdk::Error& error, const Coordinates& indices, std::span<const int64_t> dims) {
  for (int64_t i = 0; i < indices.dim(0); ++i) {
    const std::span<const int64_t> entry = EntryAt(indices, i);
    if (!InBounds(entry, dims)) {
      return error.InvalidArgument("indices[", i, "] = ", AsShape(entry), " is out of bounds: need 0 <= index < ",
                                   AsShape(dims));
    }
    if (i == 0) continue;
    const std::span<const int64_t> last = EntryAt(indices, i - 1);
    if (ComesBefore(entry, last)) {
      return error.InvalidArgument("indices[", i, "] = ", AsShape(entry),
                                   " is out of order. Many sparse ops require sorted indices.");
    }
    if (!ComesBefore(last, entry)) return error.InvalidArgument("indices[", i, "] = ", AsShape(entry), " is repeated");
  }
  return WEIR_OK;
}

/// A vector of integers as a span.
inline std::span<const int64_t> Elements(const sdk::View<const int64_t>& vector) {
  return {vector.data(), static_cast<size_t>(vector.size())};
}

/// The three parts of a sparse tensor, from inputs `first`, first + 1 and first + 2. Not checked.
template <class T>
struct SparseInput {
  Coordinates indices;
  sdk::View<const T> values;
  sdk::View<const int64_t> shape;

  int32_t Read(const sdk::Context& ctx, uint32_t first) {
    if (const int32_t code = ctx.Input(first, &indices); code != WEIR_OK) return code;
    if (const int32_t code = ctx.Input(first + 1, &values); code != WEIR_OK) return code;
    return ctx.Input(first + 2, &shape);
  }
  int32_t Check(const sdk::Error& error) const {
    return CheckParts(error, indices.shape(), values.shape(), shape.shape());
  }
  int64_t count() const { return indices.dim(0); }
  std::span<const int64_t> At(int64_t i) const { return EntryAt(indices, i); }
};

/// Writes a matrix of coordinates of `rank` columns.
inline int32_t WriteEntries(const sdk::Context& ctx, uint32_t output, const std::vector<int64_t>& entries,
                            int64_t count, int64_t rank) {
  sdk::View<int64_t> to;
  if (const int32_t code = ctx.Output(output, {count, rank}, &to); code != WEIR_OK) return code;
  std::copy(entries.begin(), entries.end(), to.data());
  return WEIR_OK;
}

/// Writes a vector.
template <class T>
int32_t WriteVector(const sdk::Context& ctx, uint32_t output, std::span<const T> elements) {
  sdk::View<T> to;
  if (const int32_t code = ctx.Output(output, {static_cast<int64_t>(elements.size())}, &to); code != WEIR_OK) {
    return code;
  }
  std::copy(elements.begin(), elements.end(), to.data());
  return WEIR_OK;
}

}  // namespace weir::kernels_eigen

#endif  // WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_SPARSE_ENTRIES_H_
