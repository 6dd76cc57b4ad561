// Ops whose output length depends on data: Where, Unique, ListDiff.
#include <algorithm>
#include <concepts>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/families.h"
#include "plugins/kernels_eigen/operands.h"

namespace weir::kernels_eigen {
namespace {

using sdk::Context;
using sdk::View;

/// Coordinates of the elements that are not zero.
struct Where {
  template <class T>
  int32_t Compute(Context& ctx) {
    View<const T> input;
    if (const int32_t code = ctx.Input(0, &input); code != WEIR_OK) return code;
    const auto set = [&](int64_t i) { return static_cast<sdk::Compute<T>>(input[i]) != sdk::Compute<T>(0); };
    const int64_t n = input.size(), rank = input.rank();
    if (rank == 0) return ctx.error().InvalidArgument("WhereOp : Unhandled input dimensions: 0");
    int64_t count = 0;
    for (int64_t i = 0; i < n; ++i) count += set(i) ? 1 : 0;
    View<int64_t> index;
    if (const int32_t code = ctx.Output(0, {count, rank}, &index); code != WEIR_OK) return code;
    std::vector<int64_t> position(static_cast<size_t>(rank), 0);
    int64_t* to = index.data();
    for (int64_t i = 0; i < n; ++i) {
      if (set(i)) to = std::copy(position.begin(), position.end(), to);
      for (int64_t axis = rank; axis-- > 0;) {
        if (++position[static_cast<size_t>(axis)] < input.dim(static_cast<uint32_t>(axis))) break;
        position[static_cast<size_t>(axis)] = 0;
      }
    }
    return WEIR_OK;
  }
};

/// The comparison of elements. As in TensorFlow, -0 equals 0, and a NaN equals nothing, not even itself.
template <class T>
auto KeyOf(const T& x) {
  if constexpr (std::floating_point<sdk::Compute<T>>) {
    return static_cast<double>(x);
  } else if constexpr (std::same_as<T, sdk::boolean>) {
    return static_cast<uint64_t>(x ? 1 : 0);
  } else {
    return static_cast<uint64_t>(x);
  }
}
template <class T>
using Key = decltype(KeyOf(T()));

/// Writes positions in the type given by the attribute out_idx.
int32_t WritePositions(Context& ctx, uint32_t output, uint32_t dtype, const std::vector<int64_t>& positions) {
  const int64_t n = static_cast<int64_t>(positions.size());
  const auto write = [&](auto type) -> int32_t {
    View<decltype(type)> to;
    if (const int32_t code = ctx.Output(output, {n}, &to); code != WEIR_OK) return code;
    for (int64_t i = 0; i < n; ++i) to[i] = static_cast<decltype(type)>(positions[static_cast<size_t>(i)]);
    return WEIR_OK;
  };
  if (dtype == WEIR_INT64) return write(int64_t());
  if (n <= INT32_MAX) return write(int32_t());
  return ctx.error().InvalidArgument("int32 positions cannot count ", n, " elements");
}

template <class T>
int32_t WriteElements(Context& ctx, uint32_t output, const std::vector<T>& elements) {
  View<T> to;
  if (const int32_t code = ctx.Output(output, {static_cast<int64_t>(elements.size())}, &to); code != WEIR_OK)
    return code;
  std::copy(elements.begin(), elements.end(), to.data());
  return WEIR_OK;
}

struct Unique {
  uint32_t index_type = WEIR_INT32;

  int32_t Prepare(const sdk::Node& node, const sdk::Error&) {
    index_type = node.DType("out_idx", WEIR_INT32);
    return WEIR_OK;
  }
  template <class T>
  int32_t Compute(Context& ctx) {
    View<const T> x;
    if (const int32_t code = ctx.Input(0, &x); code != WEIR_OK) return code;
    if (x.rank() != 1) return ctx.error().InvalidArgument("unique expects a 1D vector.");
    std::unordered_map<Key<T>, int64_t> known;
    std::vector<T> distinct;
    std::vector<int64_t> positions(static_cast<size_t>(x.size()));
    for (size_t i = 0; i < positions.size(); ++i) {
      const T& element = x[static_cast<int64_t>(i)];
      const Key<T> key = KeyOf(element);
      positions[i] = static_cast<int64_t>(distinct.size());
      if (key == key) {
        const auto [entry, fresh] = known.try_emplace(key, positions[i]);
        positions[i] = entry->second;
        if (!fresh) continue;
      }
      distinct.push_back(element);
    }
    if (const int32_t code = WriteElements(ctx, 0, distinct); code != WEIR_OK) return code;
    return WritePositions(ctx, 1, index_type, positions);
  }
};

struct ListDiff {
  uint32_t index_type = WEIR_INT32;

  int32_t Prepare(const sdk::Node& node, const sdk::Error&) {
    index_type = node.DType("out_idx", WEIR_INT32);
    return WEIR_OK;
  }
  template <class T>
  int32_t Compute(Context& ctx) {
    View<const T> x, y;
    if (const int32_t code = ctx.Input(0, &x); code != WEIR_OK) return code;
    if (const int32_t code = ctx.Input(1, &y); code != WEIR_OK) return code;
    if (x.rank() != 1) return ctx.error().InvalidArgument("x should be a 1D vector.");
    if (y.rank() != 1) return ctx.error().InvalidArgument("y should be a 1D vector.");
    std::unordered_set<Key<T>> without;
    for (int64_t i = 0, n = y.size(); i < n; ++i) {
      if (const Key<T> key = KeyOf(y[i]); key == key) without.insert(key);
    }
    std::vector<T> kept;
    std::vector<int64_t> positions;
    for (int64_t i = 0, n = x.size(); i < n; ++i) {
      if (without.contains(KeyOf(x[i]))) continue;
      kept.push_back(x[i]);
      positions.push_back(i);
    }
    if (const int32_t code = WriteElements(ctx, 0, kept); code != WEIR_OK) return code;
    return WritePositions(ctx, 1, index_type, positions);
  }
};

}  // namespace

void AddDistinct(sdk::KernelTable& k) {
  constexpr auto kWhere = kFloat + kInts + kComplex + kBool;
  k.Add<Where>("Where", kWhere).Class(WEIR_CLASS_SORT);
  k.Add<Unique>("Unique", kReal + kBool).Class(WEIR_CLASS_SORT);
  k.Add<ListDiff>("ListDiff", kReal).Class(WEIR_CLASS_SORT);
}

}  // namespace weir::kernels_eigen
