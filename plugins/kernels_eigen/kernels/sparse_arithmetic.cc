// Element by element arithmetic of sparse tensors with each other and with dense ones.
#include <algorithm>
#include <cmath>
#include <complex>
#include <string>
#include <vector>

#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/families.h"
#include "plugins/kernels_eigen/kernels/sparse_entries.h"
#include "plugins/kernels_eigen/wrap.h"

namespace weir::kernels_eigen {
namespace {

using sdk::Context;
using sdk::View;

/// Calls both(i, j), first(i) or second(j) for the entries of a and b in the order of their coordinates.
template <class First, class Second, class Both>
void MergeEntries(const Coordinates& a, const Coordinates& b, First&& first, Second&& second, Both&& both) {
  const int64_t n = a.dim(0), m = b.dim(0);
  for (int64_t i = 0, j = 0; i < n || j < m;) {
    const bool has_a = i < n, has_b = j < m;
    if (has_a && (!has_b || ComesBefore(EntryAt(a, i), EntryAt(b, j)))) {
      first(i++);
    } else if (has_b && (!has_a || ComesBefore(EntryAt(b, j), EntryAt(a, i)))) {
      second(j++);
    } else {
      both(i++, j++);
    }
  }
}

/// A scalar input of any real type.
int32_t ReadReal(const Context& ctx, uint32_t i, uint32_t dtype, double* value) {
  const auto read = [&](auto type) -> int32_t {
    View<const decltype(type)> scalar;
    if (const int32_t code = ctx.Input(i, &scalar); code != WEIR_OK) return code;
    if (scalar.rank() != 0) {
      return ctx.error().InvalidArgument("The magnitude threshold must be a scalar: got shape ", scalar.shape());
    }
    *value = static_cast<double>(scalar[0]);
    return WEIR_OK;
  };
  switch (dtype) {
    case WEIR_FLOAT64:
      return read(double());
    case WEIR_FLOAT16:
      return read(sdk::half());
    case WEIR_BFLOAT16:
      return read(sdk::bfloat16());
    case WEIR_INT8:
      return read(int8_t());
    case WEIR_INT16:
      return read(int16_t());
    case WEIR_INT32:
      return read(int32_t());
    case WEIR_INT64:
      return read(int64_t());
    case WEIR_UINT8:
      return read(uint8_t());
    case WEIR_UINT16:
      return read(uint16_t());
    case WEIR_UINT32:
      return read(uint32_t());
    case WEIR_UINT64:
      return read(uint64_t());
    default:
      return read(float());
  }
}

/// The magnitude of a number.
template <class C>
double Magnitude(C x) {
  if constexpr (std::is_unsigned_v<C>) {
    return static_cast<double>(x);
  } else if constexpr (std::is_integral_v<C>) {
    return std::fabs(static_cast<double>(x));
  } else {
    return static_cast<double>(std::abs(x));
  }
}

/// The sum of two sparse tensors, without sums of two entries below a threshold. Entries of one of them alone stay.
struct SparseAdd {
  uint32_t real = WEIR_FLOAT32;

  int32_t Prepare(const sdk::Node& node, const sdk::Error&) {
    real = node.DType("Treal", WEIR_FLOAT32);
    return WEIR_OK;
  }

  template <class T>
  int32_t Compute(Context& ctx) {
    SparseInput<T> a, b;
    if (const int32_t code = a.Read(ctx, 0); code != WEIR_OK) return code;
    if (const int32_t code = b.Read(ctx, 3); code != WEIR_OK) return code;
    if (const int32_t code = Check(ctx.error(), a, b); code != WEIR_OK) return code;
    double least = 0;
    if (const int32_t code = ReadReal(ctx, 6, real, &least); code != WEIR_OK) return code;
    std::vector<int64_t> entries;
    std::vector<T> values;
    const auto keep = [&](std::span<const int64_t> entry, const T& value) {
      entries.insert(entries.end(), entry.begin(), entry.end());
      values.push_back(value);
    };
    MergeEntries(
        a.indices, b.indices, [&](int64_t i) { keep(a.At(i), a.values[i]); },
        [&](int64_t j) { keep(b.At(j), b.values[j]); },
        [&](int64_t i, int64_t j) {
          const T sum = static_cast<T>(Sum(a.values[i], b.values[j]));
          if (Magnitude(static_cast<sdk::Compute<T>>(sum)) >= least) keep(a.At(i), sum);
        });
    if (const int32_t code = WriteEntries(ctx, 0, entries, static_cast<int64_t>(values.size()), a.shape.size());
        code != WEIR_OK) {
      return code;
    }
    if (const int32_t code = WriteVector<T>(ctx, 1, values); code != WEIR_OK) return code;
    return WriteVector<int64_t>(ctx, 2, Elements(a.shape));
  }

 private:
  template <class T>
  static int32_t Check(const sdk::Error& error, const SparseInput<T>& a, const SparseInput<T>& b) {
    const auto both = [&](std::string_view text, const weir_shape& x, const weir_shape& y) {
      return error.InvalidArgument(text, x, " and ", y);
    };
    if (a.indices.rank() != 2 || b.indices.rank() != 2) {
      return both("Input indices should be matrices but received shapes: ", a.indices.shape(), b.indices.shape());
    }
    if (a.values.rank() != 1 || b.values.rank() != 1) {
      return both("Input values should be vectors but received shapes: ", a.values.shape(), b.values.shape());
    }
    if (a.count() != a.values.size() || b.count() != b.values.size()) {
      return error.InvalidArgument("Expected ", a.count(), " and ", b.count(), " non-empty input values, got ",
                                   a.values.size(), " and ", b.values.size());
    }
    if (a.shape.rank() != 1 || b.shape.rank() != 1) {
      return both("Input shapes should be a vector but received shapes ", a.shape.shape(), b.shape.shape());
    }
    if (a.indices.dim(1) != b.indices.dim(1)) {
      return error.InvalidArgument("Input indices must have the same dimension, got ", a.indices.dim(1), " and ",
                                   b.indices.dim(1));
    }
    for (const SparseInput<T>* part : {&a, &b}) {
      if (const int32_t code = part->Check(error); code != WEIR_OK) return code;
    }
    for (int64_t d = 0; d < a.shape.size(); ++d) {
      if (a.shape[d] == b.shape[d]) continue;
      return error.InvalidArgument("Operands' shapes do not match: got ", a.shape[d], " and ", b.shape[d],
                                   " for dimension ", d);
    }
    return WEIR_OK;
  }
};

/// An entry's gradient is that of its place in the sum; 0 where the sum has none.
struct SparseAddGrad {
  template <class T>
  int32_t Compute(Context& ctx) {
    View<const T> grad;
    Coordinates a, b, sum;
    if (const int32_t code = ctx.Input(0, &grad); code != WEIR_OK) return code;
    if (const int32_t code = ctx.Input(1, &a); code != WEIR_OK) return code;
    if (const int32_t code = ctx.Input(2, &b); code != WEIR_OK) return code;
    if (const int32_t code = ctx.Input(3, &sum); code != WEIR_OK) return code;
    const sdk::Error& error = ctx.error();
    if (a.rank() != 2 || b.rank() != 2 || sum.rank() != 2) {
      return error.InvalidArgument("Input indices should be matrices but received shapes: ", a.shape(), " and ",
                                   b.shape(), " and ", sum.shape());
    }
    if (grad.rank() != 1) {
      return error.InvalidArgument("Input backprop_val_grad should be a vector but received shape: ", grad.shape());
    }
    if (a.dim(1) != b.dim(1) || b.dim(1) != sum.dim(1)) {
      return error.InvalidArgument("The densified operands should have the same ndims; for A, B, sum got: ", a.dim(1),
                                   b.dim(1), sum.dim(1));
    }
    if (grad.size() != sum.dim(0)) {
      return error.InvalidArgument("# elements of backprop_val_grad and # rows of sum_indices should match ",
                                   "(#nnz of sum): got ", grad.size(), " and ", sum.dim(0));
    }
    if (const int32_t code = Pass(ctx, 0, a, sum, grad); code != WEIR_OK) return code;
    return Pass(ctx, 1, b, sum, grad);
  }

 private:
  template <class T>
  static int32_t Pass(Context& ctx, uint32_t output, const Coordinates& of, const Coordinates& sum,
                      const View<const T>& grad) {
    View<T> to;
    if (const int32_t code = ctx.Output(output, {of.dim(0)}, &to); code != WEIR_OK) return code;
    std::fill_n(to.data(), of.dim(0), T());
    MergeEntries(
        of, sum, [](int64_t) {}, [](int64_t) {}, [&](int64_t i, int64_t j) { to[i] = grad[j]; });
    return WEIR_OK;
  }
};

struct SparseLarger {
  template <class C>
  C operator()(C x, C y) const {
    return x < y ? y : x;
  }
};
struct SparseSmaller {
  template <class C>
  C operator()(C x, C y) const {
    return y < x ? y : x;
  }
};

/// Combines two sparse tensors where either has an entry; the other counts as 0 there.
template <class Choice>
struct SparseExtreme {
  template <class T>
  int32_t Compute(Context& ctx) {
    SparseInput<T> a, b;
    if (const int32_t code = a.Read(ctx, 0); code != WEIR_OK) return code;
    if (const int32_t code = b.Read(ctx, 3); code != WEIR_OK) return code;
    for (const SparseInput<T>* part : {&a, &b}) {
      if (const int32_t code = part->Check(ctx.error()); code != WEIR_OK) return code;
    }
    if (a.shape.size() != b.shape.size()) {
      return ctx.error().InvalidArgument("Operands do not have the same ranks; got shapes: ", Spaced(a.shape), " and ",
                                         Spaced(b.shape));
    }
    for (int64_t d = 0; d < a.shape.size(); ++d) {
      if (a.shape[d] == b.shape[d]) continue;
      return ctx.error().InvalidArgument("Operands' shapes do not match: got ", a.shape[d], " and ", b.shape[d],
                                         " for dimension ", d);
    }
    for (const SparseInput<T>* part : {&a, &b}) {
      if (const int32_t code = CheckBounds(ctx.error(), *part); code != WEIR_OK) return code;
    }
    using C = sdk::Compute<T>;
    std::vector<int64_t> entries;
    std::vector<T> values;
    const auto add = [&](std::span<const int64_t> entry, C x, C y) {
      entries.insert(entries.end(), entry.begin(), entry.end());
      values.push_back(static_cast<T>(Choice()(x, y)));
    };
    MergeEntries(
        a.indices, b.indices, [&](int64_t i) { add(a.At(i), static_cast<C>(a.values[i]), C()); },
        [&](int64_t j) { add(b.At(j), C(), static_cast<C>(b.values[j])); },
        [&](int64_t i, int64_t j) { add(a.At(i), static_cast<C>(a.values[i]), static_cast<C>(b.values[j])); });
    if (const int32_t code = WriteEntries(ctx, 0, entries, static_cast<int64_t>(values.size()), a.shape.size());
        code != WEIR_OK) {
      return code;
    }
    return WriteVector<T>(ctx, 1, values);
  }

 private:
  template <class T>
  static int32_t CheckBounds(const sdk::Error& error, const SparseInput<T>& part) {
    for (int64_t i = 0; i < part.indices.dim(0); ++i) {
      const std::span<const int64_t> entry = part.At(i);
      for (size_t d = 0; d < entry.size(); ++d) {
        const bool inside = entry[d] >= 0 && entry[d] < part.shape[static_cast<int64_t>(d)];
        if (!inside) return functors::EntryOutOfBounds(error, i, entry);
      }
    }
    return WEIR_OK;
  }
  static std::string Spaced(const View<const int64_t>& numbers) {
    std::string text;
    for (const int64_t number : Elements(numbers)) {
      if (!text.empty()) text += ' ';
      text += std::to_string(number);
    }
    return text;
  }
};

struct SparsePlus {
  static constexpr bool kDivides = false;
  template <class C>
  C operator()(C x, C y) const {
    return Sum(x, y);
  }
};
struct SparseTimes {
  static constexpr bool kDivides = false;
  template <class C>
  C operator()(C x, C y) const {
    return Product(x, y);
  }
};
struct SparseOver {
  static constexpr bool kDivides = true;
  template <class C>
  C operator()(C x, C y) const {
    return Quotient(x, y);
  }
};

/// Combines each entry with the dense element at its place; the dense operand is broadcast to the sparse one.
template <class Operation>
struct SparseDense {
  template <class T>
  int32_t Compute(Context& ctx) {
    SparseInput<T> x;
    View<const T> dense;
    if (const int32_t code = x.Read(ctx, 0); code != WEIR_OK) return code;
    if (const int32_t code = ctx.Input(3, &dense); code != WEIR_OK) return code;
    if (const int32_t code = Check(ctx.error(), x, dense.shape()); code != WEIR_OK) return code;
    View<T> output;
    if (const int32_t code = ctx.Output(0, x.values.shape(), &output); code != WEIR_OK) return code;
    using C = sdk::Compute<T>;
    const size_t rank = static_cast<size_t>(x.shape.size()), shift = rank - dense.rank();
    const std::vector<int64_t> dims = DimsOf(dense.shape()), steps = StepsOf(dims);
    for (int64_t i = 0; i < x.count(); ++i) {
      const std::span<const int64_t> entry = x.At(i);
      if (!InBounds(entry, Elements(x.shape))) {
        return ctx.error().InvalidArgument(
            "Provided indices are out-of-bounds w.r.t. dense side with broadcasted shape");
      }
      int64_t at = 0;
      for (size_t d = 0; d < dims.size(); ++d) at += dims[d] == 1 ? 0 : entry[shift + d] * steps[d];
      if constexpr (std::is_integral_v<T>) {
        if (Operation::kDivides && dense[at] == T(0)) {
          return ctx.error().InvalidArgument("SparseDenseCwiseDiv cannot divide by zero,",
                                             "but input dense tensor contains zero");
        }
      }
      output[i] = static_cast<T>(Operation()(static_cast<C>(x.values[i]), static_cast<C>(dense[at])));
    }
    return WEIR_OK;
  }

 private:
  template <class T>
  static int32_t Check(const sdk::Error& error, const SparseInput<T>& x, const weir_shape& dense) {
    if (x.indices.rank() != 2) {
      return error.InvalidArgument("Input sp_indices should be a matrix but received shape: ", x.indices.shape());
    }
    if (x.values.rank() != 1 || x.shape.rank() != 1) {
      return error.InvalidArgument("Inputs sp_values and sp_shape should be vectors but received shapes: ",
                                   x.values.shape(), " and ", x.shape.shape());
    }
    if (x.shape.size() == 0) return error.InvalidArgument("The shape argument requires at least one element.");
    if (x.values.size() != x.count()) {
      return error.InvalidArgument("The first dimension of values and indices should match. (", x.values.size(),
                                   " vs. ", x.count(), ")");
    }
    if (x.indices.dim(1) != x.shape.size()) {
      return error.InvalidArgument("Number of dimensions must match second dimension of indices. Got ", x.shape.size(),
                                   " dimensions, indices shape: ", x.indices.shape());
    }
    const int64_t shift = x.shape.size() - dense.rank;
    bool fits = shift >= 0;
    for (uint32_t d = 0; fits && d < dense.rank; ++d) {
      fits = dense.dims[d] == 1 || dense.dims[d] == x.shape[shift + d];
    }
    if (fits) return WEIR_OK;
    return error.InvalidArgument("SparseDenseBinaryOpShared broadcasts dense to sparse only; got incompatible shapes: ",
                                 AsShape(Elements(x.shape)), " vs. ", dense);
  }
};

}  // namespace

void AddSparseArithmetic(sdk::KernelTable& k) {
  constexpr auto kSums = kFloat + kSigned + kComplex;
  k.Add<SparseAdd>("SparseAdd", kSums).Class(WEIR_CLASS_GATHER, 1);
  k.Add<SparseAddGrad>("SparseAddGrad", kSums).Class(WEIR_CLASS_GATHER);
  k.Add<SparseExtreme<SparseLarger>>("SparseSparseMaximum", kReal).Class(WEIR_CLASS_GATHER, 1);
  k.Add<SparseExtreme<SparseSmaller>>("SparseSparseMinimum", kReal).Class(WEIR_CLASS_GATHER, 1);
  k.Add<SparseDense<SparsePlus>>("SparseDenseCwiseAdd", kReal).Class(WEIR_CLASS_GATHER, 1);
  k.Add<SparseDense<SparseTimes>>("SparseDenseCwiseMul", kReal).Class(WEIR_CLASS_GATHER, 1);
  k.Add<SparseDense<SparseOver>>("SparseDenseCwiseDiv", kReal).Class(WEIR_CLASS_GATHER, 1);
}

}  // namespace weir::kernels_eigen
