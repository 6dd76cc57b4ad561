// Sums into dense tensors at the places of sparse ones: products, additions, and gradients of fills and slices.
#include <algorithm>
#include <string>
#include <vector>

#include "plugins/functors/sparse_checks.h"
#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/families.h"
#include "plugins/kernels_eigen/kernels/sparse_entries.h"
#include "plugins/kernels_eigen/row_fetch.h"
#include "plugins/kernels_eigen/wrap.h"
#include "sdk/cpp/elementwise.h"

namespace weir::kernels_eigen {
namespace {

using sdk::Context;
using sdk::Integers;
using sdk::View;

/// Sums in the compute type of T, which are converted at the end where it differs.
template <class T>
class Sums {
 public:
  using C = sdk::Compute<T>;
  explicit Sums(const View<T>& to) : to_(to), size_(to.size()) {
    if constexpr (!std::is_same_v<C, T>) wide_.resize(static_cast<size_t>(size_));
  }
  C* data() {
    if constexpr (std::is_same_v<C, T>) {
      return to_.data();
    } else {
      return wide_.data();
    }
  }
  void Clear() { std::fill_n(data(), size_, C()); }
  void Finish() {
    if constexpr (!std::is_same_v<C, T>) {
      for (int64_t i = 0; i < size_; ++i) to_[i] = static_cast<T>(wide_[static_cast<size_t>(i)]);
    }
  }

 private:
  View<T> to_;
  int64_t size_;
  std::vector<C> wide_;
};

/// The product of a sparse matrix and a dense one, either of them adjoint.
struct SparseTensorDenseMatMul {
  bool adjoint_a = false, adjoint_b = false;

  int32_t Prepare(const sdk::Node& node, const sdk::Error&) {
    adjoint_a = node.Bool("adjoint_a");
    adjoint_b = node.Bool("adjoint_b");
    return WEIR_OK;
  }

  template <class T>
  int32_t Compute(Context& ctx) {
    Integers indices;
    View<const T> values, b;
    View<const int64_t> shape;
    if (const int32_t code = ctx.Input(0, &indices); code != WEIR_OK) return code;
    if (const int32_t code = ctx.Input(1, &values); code != WEIR_OK) return code;
    if (const int32_t code = ctx.Input(2, &shape); code != WEIR_OK) return code;
    if (const int32_t code = ctx.Input(3, &b); code != WEIR_OK) return code;
    const int32_t code = functors::CheckSparseProduct(ctx.error(), indices.shape(), values.shape(), shape, b.shape(),
                                                      adjoint_a, adjoint_b);
    if (code != WEIR_OK) return code;
    const int64_t rows = shape[adjoint_a ? 1 : 0], inner = shape[adjoint_a ? 0 : 1];
    const int64_t columns = b.dim(adjoint_b ? 0 : 1), count = values.size();
    for (int64_t i = 0; i < count; ++i) {
      const int64_t m = indices[2 * i + (adjoint_a ? 1 : 0)], k = indices[2 * i + (adjoint_a ? 0 : 1)];
      if (k < 0 || k >= inner) {
        return ctx.error().InvalidArgument("k (", k, ") from index[", i, ",", adjoint_a ? 0 : 1,
                                           "] out of bounds (>=", inner, ")");
      }
      if (m < 0 || m >= rows) {
        return ctx.error().InvalidArgument("m (", m, ") from index[", i, ",", adjoint_a ? 1 : 0,
                                           "] out of bounds (>=", rows, ")");
      }
    }
    View<T> product;
    if (const int32_t code = ctx.Output(0, {rows, columns}, &product); code != WEIR_OK) return code;
    if (product.size() != 0) Multiply(indices, values, b, inner, product);
    return WEIR_OK;
  }

 private:
  template <class T>
  void Multiply(const Integers& indices, const View<const T>& values, const View<const T>& b, int64_t inner,
                const View<T>& product) const {
    using C = sdk::Compute<T>;
    Sums<T> sums(product);
    sums.Clear();
    const int64_t columns = product.dim(1), count = values.size();
    const RowFetch<RowUse::kRead> fetch(adjoint_b ? 0 : static_cast<size_t>(columns) * sizeof(T),
                                        static_cast<size_t>(b.size()) * sizeof(T));
    for (int64_t i = 0; i < count; ++i) {
      const int64_t m = indices[2 * i + (adjoint_a ? 1 : 0)], k = indices[2 * i + (adjoint_a ? 0 : 1)];
      const C a = adjoint_a ? Conjugated(static_cast<C>(values[i])) : static_cast<C>(values[i]);
      C* to = sums.data() + m * columns;
      if (adjoint_b) {
        const T* from = b.data() + k;
        for (int64_t j = 0; j < columns; ++j) {
          to[j] = Sum(to[j], Product(a, Conjugated(static_cast<C>(from[j * inner]))));
        }
        continue;
      }
      if (fetch && i + fetch.kAhead < count) {
        fetch(b.data() + indices[2 * (i + fetch.kAhead) + (adjoint_a ? 0 : 1)] * columns);
      }
      const T* from = b.data() + k * columns;
      WEIR_INDEPENDENT
      for (int64_t j = 0; j < columns; ++j) to[j] = Sum(to[j], Product(a, static_cast<C>(from[j])));
    }
    sums.Finish();
  }
};

/// A dense tensor with the entries added.
struct SparseTensorDenseAdd {
  template <class T>
  int32_t Compute(Context& ctx) {
    Integers indices, shape;
    View<const T> values, b;
    if (const int32_t code = ctx.Input(0, &indices); code != WEIR_OK) return code;
    if (const int32_t code = ctx.Input(1, &values); code != WEIR_OK) return code;
    if (const int32_t code = ctx.Input(2, &shape); code != WEIR_OK) return code;
    if (const int32_t code = ctx.Input(3, &b); code != WEIR_OK) return code;
    if (const int32_t code = Check(ctx.error(), indices, values.shape(), shape, b.shape()); code != WEIR_OK) {
      return code;
    }
    const int64_t rank = b.rank(), count = values.size();
    for (int64_t i = 0; i < count; ++i) {
      for (int64_t d = 0; d < rank; ++d) {
        const int64_t index = indices[i * rank + d];
        if (index >= 0 && index < b.dim(static_cast<uint32_t>(d))) continue;
        return WrongIndex(ctx.error(), i, d, index, b.dims());
      }
    }
    View<T> output;
    if (const int32_t code = ctx.Output(0, b.shape(), &output); code != WEIR_OK) return code;
    std::copy_n(b.data(), output.size(), output.data());
    using C = sdk::Compute<T>;
    const std::vector<int64_t> steps = StepsOf(DimsOf(b.shape()));
    for (int64_t i = 0; i < count; ++i) {
      int64_t at = 0;
      for (int64_t d = 0; d < rank; ++d) at += indices[i * rank + d] * steps[static_cast<size_t>(d)];
      output[at] = static_cast<T>(Sum(static_cast<C>(output[at]), static_cast<C>(values[i])));
    }
    return WEIR_OK;
  }

 private:
  static int32_t Check(const sdk::Error& error, const Integers& indices, const weir_shape& values,
                       const Integers& shape, const weir_shape& b) {
    if (indices.rank() != 2) {
      return error.InvalidArgument("Input a_indices should be a matrix but received shape: ", indices.shape());
    }
    if (values.rank != 1 || shape.rank() != 1) {
      return error.InvalidArgument("Inputs a_values and a_shape should be vectors but received shapes: ", values,
                                   " and ", shape.shape());
    }
    const auto same = [&](int64_t x, int64_t y) {
      return x == y ? WEIR_OK : error.InvalidArgument("Dimensions ", x, " and ", y, " are not compatible");
    };
    if (const int32_t code = same(indices.dim(0), values.dims[0]); code != WEIR_OK) return code;
    if (const int32_t code = same(indices.dim(1), shape.size()); code != WEIR_OK) return code;
    if (shape.size() != b.rank) {
      return error.InvalidArgument("Two operands have different ranks; received: ", shape.size(), " and ", b.rank);
    }
    for (uint32_t d = 0; d < b.rank; ++d) {
      if (shape[d] == b.dims[d]) continue;
      return error.InvalidArgument("Dimension ", d, " does not equal (no broadcasting is supported): sparse side ",
                                   shape[d], " vs dense side ", b.dims[d]);
    }
    return WEIR_OK;
  }

  static int32_t WrongIndex(const sdk::Error& error, int64_t i, int64_t d, int64_t index,
                            std::span<const int64_t> dims) {
    std::string shape;
    for (const int64_t dim : dims) {
      shape += ' ';
      shape += std::to_string(dim);
    }
    return error.InvalidArgument("Sparse tensor has an invalid index on dimension ", d, ": a_indices(", i, ",", d,
                                 ") = ", index, ", dense tensor shape:", shape);
  }
};

/// The values' gradients from their places in the filled tensor; all others are the default value's.
struct SparseFillEmptyRowsGrad {
  template <class T>
  int32_t Compute(Context& ctx) {
    View<const int64_t> places;
    View<const T> grad;
    if (const int32_t code = ctx.Input(0, &places); code != WEIR_OK) return code;
    if (const int32_t code = ctx.Input(1, &grad); code != WEIR_OK) return code;
    if (const int32_t code = functors::CheckFillEmptyRowsGrad(ctx.error(), places.shape(), grad.shape());
        code != WEIR_OK) {
      return code;
    }
    const int64_t n = places.size(), all = grad.size();
    std::vector<bool> visited(static_cast<size_t>(all));
    View<T> values, otherwise;
    if (const int32_t code = ctx.Output(0, {n}, &values); code != WEIR_OK) return code;
    if (const int32_t code = ctx.Output(1, weir_shape{}, &otherwise); code != WEIR_OK) return code;
    for (int64_t i = 0; i < n; ++i) {
      const int64_t at = places[i];
      if (const int32_t code = functors::CheckFilledPlace(ctx.error(), at, all); code != WEIR_OK) return code;
      values[i] = grad[at];
      visited[static_cast<size_t>(at)] = true;
    }
    using C = sdk::Compute<T>;
    C sum = C();
    for (int64_t i = 0; i < all; ++i) {
      if (!visited[static_cast<size_t>(i)]) sum = Sum(sum, static_cast<C>(grad[i]));
    }
    otherwise[0] = static_cast<T>(sum);
    return WEIR_OK;
  }
};

/// The gradient of each entry that the slice kept; zero of the others.
struct SparseSliceGrad {
  template <class T>
  int32_t Compute(Context& ctx) {
    View<const T> grad;
    Coordinates input, output;
    View<const int64_t> start;
    if (const int32_t code = ctx.Input(0, &grad); code != WEIR_OK) return code;
    if (const int32_t code = ctx.Input(1, &input); code != WEIR_OK) return code;
    if (const int32_t code = ctx.Input(2, &start); code != WEIR_OK) return code;
    if (const int32_t code = ctx.Input(3, &output); code != WEIR_OK) return code;
    if (const int32_t code = Check(ctx.error(), grad.shape(), input, start.shape(), output); code != WEIR_OK) {
      return code;
    }
    View<T> to;
    if (const int32_t code = ctx.Output(0, {input.dim(0)}, &to); code != WEIR_OK) return code;
    int64_t used = 0;
    const int64_t n = output.dim(0);
    for (int64_t i = 0; i < input.dim(0); ++i) {
      const std::span<const int64_t> entry = EntryAt(input, i);
      bool same = used < n;
      for (size_t d = 0; same && d < entry.size(); ++d) {
        int64_t relative = 0;
        same = !__builtin_sub_overflow(entry[d], start[static_cast<int64_t>(d)], &relative) &&
               relative == EntryAt(output, used)[d];
      }
      to[i] = same ? grad[used++] : T();
    }
    if (used == n) return WEIR_OK;
    return ctx.error().InvalidArgument("Elements of backprop_val_grad aren't all propagated. Num elements:", n,
                                       ", used: ", used);
  }

 private:
  static int32_t Check(const sdk::Error& error, const weir_shape& grad, const Coordinates& input,
                       const weir_shape& start, const Coordinates& output) {
    if (input.rank() != 2 || output.rank() != 2) {
      return error.InvalidArgument("Input and output indices should be matrices but received shapes: ", input.shape(),
                                   " and ", output.shape());
    }
    if (grad.rank != 1) {
      return error.InvalidArgument("Input backprop_val_grad should be a vector but received shape: ", grad);
    }
    if (start.rank != 1) {
      return error.InvalidArgument("Input the input_start should be a vector but received shape ", start);
    }
    if (output.dim(1) != input.dim(1)) {
      return error.InvalidArgument("The input and output should have the same ndims: got: ", input.dim(1), " and ",
                                   output.dim(1));
    }
    if (output.dim(0) != grad.dims[0]) {
      return error.InvalidArgument("# elements of backprop_val_grad and # rows of output_indices should match ",
                                   "(#nnz of sum): got ", grad.dims[0], " and ", output.dim(0));
    }
    if (start.dims[0] == input.dim(1)) return WEIR_OK;
    return error.InvalidArgument("Expected input_start to be a vector of length ", input.dim(1), " but got length ",
                                 start.dims[0]);
  }
};

}  // namespace

void AddSparseSums(sdk::KernelTable& k) {
  constexpr auto kProducts = kFloatingOrComplex + sdk::Types<int32_t>();
  k.Add<SparseTensorDenseMatMul>("SparseTensorDenseMatMul", kProducts).Class(WEIR_CLASS_GATHER, 2);
  k.Add<SparseTensorDenseAdd>("SparseTensorDenseAdd", kNumbers).Class(WEIR_CLASS_GATHER, 1);
  k.Add<SparseFillEmptyRowsGrad>("SparseFillEmptyRowsGrad", kNumbers).Class(WEIR_CLASS_GATHER, 1);
  k.Add<SparseSliceGrad>("SparseSliceGrad", kNumbers).Class(WEIR_CLASS_GATHER);
}

}  // namespace weir::kernels_eigen
