// Whole arrays: DeepCopy, Empty, ParallelConcat, and rows changed in a copy: InplaceUpdate, InplaceAdd, InplaceSub.
#include <cstring>

#include "plugins/kernels_eigen/array_families.h"
#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/operands.h"
#include "plugins/kernels_eigen/wrap.h"
#include "sdk/cpp/kernel.h"

namespace weir::kernels_eigen {
namespace {

using sdk::AnyInput;
using sdk::AnyOutput;
using sdk::Integers;
using sdk::Prep;
using sdk::View;

size_t BytesOf(const AnyOutput& v) {
  return HasNoElements(v.shape()) ? 0 : static_cast<size_t>(v.size()) * sdk::SizeOf(v.dtype());
}

struct DeepCopy {
  void Run(AnyInput x, AnyOutput y) const {
    if (const size_t bytes = BytesOf(y); bytes != 0) std::memcpy(y.data(), x.data(), bytes);
  }
};

struct Empty {
  int32_t Prepare(Prep& prep) {
    if (prep.shape(0).rank != 1) {
      return prep.error().InvalidArgument("shape must be a vector of int32, got shape ", prep.shape(0));
    }
    std::vector<int64_t> dims;
    if (const int32_t code = Steering(prep, 0, &dims); code != WEIR_OK) return code;
    for (const int64_t dim : dims) {
      if (dim < 0) return prep.error().InvalidArgument("Dimension ", dim, " must be >= 0");
    }
    return ExpectOutput(prep, 0, dims);
  }
  void Run(sdk::HostIntegers, AnyOutput output) const {
    if (const size_t bytes = BytesOf(output); bytes != 0) std::memset(output.data(), 0, bytes);
  }
};

struct ParallelConcat {
  int32_t Prepare(Prep& prep) {
    std::vector<int64_t> part = DimsOf(prep.output(0).shape);
    if (part.empty() || part[0] != prep.inputs()) {
      return prep.error().InvalidArgument("shape attr ", prep.output(0).shape, " must have ", prep.inputs(),
                                          " as its first dimension");
    }
    part[0] = 1;
    const weir_shape wanted{static_cast<uint32_t>(part.size()), 0, part.data()};
    for (uint32_t i = 0; i < prep.inputs(); ++i) {
      if (sdk::SameShape(prep.shape(i), wanted)) continue;
      return prep.error().InvalidArgument("value ", i, " has shape ", prep.shape(i), " instead of ", wanted);
    }
    return WEIR_OK;
  }
  void Run(sdk::AnyInputs values, AnyOutput output) const {
    const size_t bytes = BytesOf(output) / values.size();
    if (bytes == 0) return;
    auto* to = static_cast<char*>(output.data());
    for (uint32_t i = 0; i < values.size(); ++i, to += bytes) std::memcpy(to, values[i].data(), bytes);
  }
};

/// Rows of x and those of v that change them.
struct ChangedRows {
  int64_t rows = 0, row = 0;
  bool empty = false;

  int32_t Prepare(Prep& prep) {
    const weir_shape &x = prep.shape(0), &i = prep.shape(1), &v = prep.shape(2);
    if (i.rank != 1) return prep.error().InvalidArgument("i must be a vector. ", i);
    if (x.rank != v.rank) {
      return prep.error().InvalidArgument("x and v shape doesn't match (ranks differ): ", x, " vs. ", v);
    }
    if (x.rank < 1) return prep.error().InvalidArgument("x must be at least a vector, got shape ", x);
    for (uint32_t k = 1; k < x.rank; ++k) {
      if (x.dims[k] == v.dims[k]) continue;
      return prep.error().InvalidArgument("x and v shape doesn't match at index ", k, " : ", x, " vs. ", v);
    }
    if (i.dims[0] != v.dims[0]) {
      return prep.error().InvalidArgument("i and x shape doesn't match at index 0: ", i, " vs. ", v);
    }
    rows = x.dims[0];
    empty = HasNoElements(x);
    row = empty ? 0 : SizeOf(x, 1, x.rank);
    prep.MayAlias(0, 0);
    return WEIR_OK;
  }
  /// The row that an index names, modulo the number of rows.
  int64_t At(int64_t index) const { return (index % rows + rows) % rows; }
};

struct InplaceUpdate : ChangedRows {
  void Run(AnyInput x, Integers indices, AnyInput v, AnyOutput y) const {
    if (empty) return;
    const size_t bytes = static_cast<size_t>(row) * sdk::SizeOf(y.dtype());
    auto* const to = static_cast<char*>(y.data());
    if (to != x.data()) std::memcpy(to, x.data(), static_cast<size_t>(rows) * bytes);
    const auto* from = static_cast<const char*>(v.data());
    for (int64_t i = 0, n = indices.size(); i < n; ++i, from += bytes) {
      std::memcpy(to + static_cast<size_t>(At(indices[i])) * bytes, from, bytes);
    }
  }
};

template <bool kAdd>
struct InplaceChange : ChangedRows {
  template <class T>
  void Run(View<const T> x, Integers indices, View<const T> v, View<T> y) const {
    using C = sdk::Compute<T>;
    if (empty) return;
    if (y.data() != x.data()) std::copy_n(x.data(), rows * row, y.data());
    const T* from = v.data();
    for (int64_t i = 0, n = indices.size(); i < n; ++i, from += row) {
      T* const to = y.data() + At(indices[i]) * row;
      for (int64_t k = 0; k < row; ++k) {
        const C a = static_cast<C>(to[k]), b = static_cast<C>(from[k]);
        to[k] = static_cast<T>(kAdd ? Sum(a, b) : Difference(a, b));
      }
    }
  }
};

}  // namespace

void AddInplace(sdk::KernelTable& k) {
  constexpr uint64_t kCopied = kPlainSet | kQuantizedSet | kFloat8Set | kInt4Set;
  k.Add<DeepCopy>("DeepCopy").Restrict("T", kCopied).Class(WEIR_CLASS_GATHER);
  k.Add<Empty>("Empty").Restrict("dtype", kPlainSet).Class(WEIR_CLASS_GATHER);
  k.Add<ParallelConcat>("ParallelConcat").Restrict("T", kPlainSet).Class(WEIR_CLASS_GATHER);
  k.Add<InplaceUpdate>("InplaceUpdate").Restrict("T", kPlainSet).Class(WEIR_CLASS_GATHER);
  k.Add<InplaceChange<true>>("InplaceAdd", kNumbers).Class(WEIR_CLASS_GATHER);
  k.Add<InplaceChange<false>>("InplaceSub", kNumbers).Class(WEIR_CLASS_GATHER);
}

}  // namespace weir::kernels_eigen
