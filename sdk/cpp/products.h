// Shape checks and tiling of batched matrix products, for kernels of MatMul and BatchMatMul on every device.
#ifndef WEIR_SDK_CPP_PRODUCTS_H_
#define WEIR_SDK_CPP_PRODUCTS_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "sdk/cpp/broadcast.h"
#include "sdk/cpp/prepare.h"

namespace weir::sdk {

/// c = op(a) op(b), all dense and row-major: op(a) is [m, k], op(b) is [k, n]; a transposed operand is stored as its
/// transpose.
struct Product {
  int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
  bool conjugate_a = false, conjugate_b = false;  // complex types only

  /// Distance in elements between stored rows of an operand.
  int64_t lda() const { return transpose_a ? m : k; }
  int64_t ldb() const { return transpose_b ? k : n; }
  double Flops() const { return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k); }
};

/// c -= 0 op(a) op(b) for `rows` rows of c, which changes c only if an element of the product is infinite or NaN. For
/// libraries that skip products with a factor 0.
template <class T>
void SubtractNothing(const Product& p, int64_t rows, const T* a, const T* b, T* c) {
  const auto left = [&](int64_t i, int64_t q) { return a[p.transpose_a ? q * p.lda() + i : i * p.lda() + q]; };
  const auto right = [&](int64_t q, int64_t j) { return b[p.transpose_b ? j * p.ldb() + q : q * p.ldb() + j]; };
  double left_sum = 0, right_sum = 0;
  for (int64_t i = 0; i < rows * p.k; ++i) left_sum += std::abs(static_cast<double>(left(i / p.k, i % p.k)));
  for (int64_t i = 0; i < p.k * p.n; ++i) right_sum += std::abs(static_cast<double>(b[i]));
  if (left_sum * right_sum <= static_cast<double>(std::numeric_limits<T>::max())) return;  // bounds every element
  for (int64_t i = 0; i < rows * p.n; ++i) {
    T sum = 0;
    for (int64_t q = 0; q < p.k; ++q) sum += left(i / p.n, q) * right(q, i % p.n);
    c[i] -= T(0) * sum;
  }
}

/// Products over the last two dimensions of two operands; the other dimensions broadcast against each other.
class Products {
 public:
  /// Attributes transpose_a and transpose_b; both operands are matrices.
  int32_t PlanMatMul(const Prep& prep) {
    for (const uint32_t i : {0u, 1u}) {
      if (prep.shape(i).rank == 2) continue;
      return prep.error().InvalidArgument("In[", i, "] is not a matrix. Instead it has shape ", prep.shape(i));
    }
    return Plan(prep, prep.node().Bool("transpose_a"), prep.node().Bool("transpose_b"), false, false);
  }
  /// The same for a product that updates the variable in operand 0; its matrices are operands 2 and 3.
  int32_t PlanMatMulUpdate(const Prep& prep) {
    x_ = 2;
    y_ = 3;
    for (const uint32_t i : {x_, y_}) {
      if (prep.shape(i).rank == 2) continue;
      return prep.error().InvalidArgument("a and b must be matrices, operand ", i, " has shape ", prep.shape(i));
    }
    updates_ = true;
    return Plan(prep, prep.node().Bool("transpose_a"), prep.node().Bool("transpose_b"), false, false);
  }
  /// Attributes adj_x and adj_y.
  int32_t PlanBatchMatMul(const Prep& prep) {
    const bool x = prep.node().Bool("adj_x"), y = prep.node().Bool("adj_y");
    return Plan(prep, x, y, x, y);
  }

  /// One of the products, and their number. Several matrices with one `b` are merged into one taller matrix.
  const Product& one() const { return one_; }
  int64_t count() const { return batches_.runs * batches_.run; }
  /// Elements of one matrix.
  int64_t a_size() const { return one_.m * one_.k; }
  int64_t b_size() const { return one_.k * one_.n; }
  int64_t c_size() const { return one_.m * one_.n; }

  /// Splits the work into tiles of at least `flops`: whole products, or row blocks of c if there is a single product.
  /// The rows of a tile are a multiple of 64, so that results do not depend on the thread of a tile.
  void Tile(Prep& prep, double flops) {
    rows_ = one_.m;
    const auto wanted = static_cast<int64_t>(
        std::min(one_.Flops() * static_cast<double>(count()) / flops, static_cast<double>(prep.max_tiles())));
    if (wanted < 2) return;
    if (count() == 1) rows_ = std::min(one_.m, std::max<int64_t>(1, (one_.m / wanted + 63) / 64) * 64);
    prep.Tiles(static_cast<uint64_t>(std::min(wanted, Parts())));
  }
  /// Calls body(a, b, c, rows) for each part of this call's tiles: `rows` rows of c from the addresses given.
  template <class T, class Body>
  void ForTiles(const Env& env, const T* a, const T* b, T* c, Body&& body) const {
    const auto range = env.Range(Parts());
    const int64_t begin = range.first, end = range.second;  // clang 14 captures no structured bindings
    if (rows_ < one_.m) {
      for (int64_t row = begin * rows_; row < std::min(one_.m, end * rows_); row += rows_) {
        body(a + (one_.transpose_a ? row : row * one_.k), b, c + row * one_.n, std::min(rows_, one_.m - row));
      }
      return;
    }
    if (count() == 1) {
      if (begin < end) body(a, b, c, one_.m);
      return;
    }
    int64_t at_product = 0;
    batches_.ForRuns(0, batches_.runs, [&](const std::array<int64_t, 2>& at) {
      for (int64_t i = 0; i < batches_.run; ++i, ++at_product) {
        if (at_product < begin || at_product >= end) continue;
        body(a + (at[0] + (batches_.advances[0] ? i : 0)) * a_size(),
             b + (at[1] + (batches_.advances[1] ? i : 0)) * b_size(), c + at_product * c_size(), one_.m);
      }
      return at_product < end;
    });
  }

 private:
  int64_t Parts() const { return rows_ < one_.m ? (one_.m + rows_ - 1) / rows_ : count(); }

  int32_t Plan(const Prep& prep, bool transpose_a, bool transpose_b, bool conjugate_a, bool conjugate_b) {
    const weir_shape &x = prep.shape(x_), &y = prep.shape(y_), &out = updates_ ? prep.shape(0) : prep.output(0).shape;
    if (x.rank < 2) return prep.error().InvalidArgument("In[0] ndims must be >= 2: ", x.rank);
    if (y.rank < 2) return prep.error().InvalidArgument("In[1] ndims must be >= 2: ", y.rank);
    const int64_t* xd = x.dims + x.rank - 2;
    const int64_t* yd = y.dims + y.rank - 2;
    const uint32_t dtype = prep.input(0).dtype;
    const bool complex = dtype == WEIR_COMPLEX64 || dtype == WEIR_COMPLEX128;
    Product& p = one_;
    p = {xd[transpose_a ? 1 : 0], yd[transpose_b ? 0 : 1], xd[transpose_a ? 0 : 1], transpose_a, transpose_b,
         conjugate_a && complex,  conjugate_b && complex};
    if (yd[p.transpose_b ? 1 : 0] != p.k) {
      return prep.error().InvalidArgument("Matrix size-incompatible: In[0]: ", x, ", In[1]: ", y);
    }
    const weir_shape xb{x.rank - 2, 0, x.dims}, yb{y.rank - 2, 0, y.dims};
    if (out.rank < 2 || out.dims[out.rank - 2] != p.m || out.dims[out.rank - 1] != p.n ||
        !batches_.Plan({xb, yb}, {out.rank - 2, 0, out.dims})) {
      return prep.error().InvalidArgument("In[0] and In[1] must have compatible batch dimensions: ", x, " vs. ", y);
    }
    if (!p.transpose_a && SizeOf(yb) == 1) {
      p.m *= SizeOf(xb);
      (void)batches_.Plan({weir_shape{}, weir_shape{}}, weir_shape{});
    }
    rows_ = p.m;
    return WEIR_OK;
  }

  Product one_;
  uint32_t x_ = 0, y_ = 1;  // indices of the multiplied operands
  bool updates_ = false;    // updates operand 0 instead of writing an output
  Broadcast<2> batches_;
  int64_t rows_ = 0;  // of c in one part
};

/// Floating-point operations per ns for an element type, from the device's profile; without one, the figure of a modest
/// core.
inline double PeakFlops(const weir_profile* profile, uint32_t dtype) {
  const double peak = profile != nullptr && dtype < 32 ? profile->peak_flops_per_ns[dtype] : 0;
  return peak > 0 ? peak : 32;
}

/// The declared cost of a kernel that plans with `plan`: operations and bytes of all its products, and `ns(products)`
/// as the total time. Unknown if `plan` refuses the operands.
template <class Nanoseconds>
Cost EstimateProducts(int32_t (Products::*plan)(const Prep&), const Prep& prep, Nanoseconds&& ns) {
  Products products;
  Cost cost;
  if ((products.*plan)(prep) != WEIR_OK) return cost;
  const int64_t elements = products.count() * (products.a_size() + products.b_size() + products.c_size());
  cost.flops = static_cast<double>(products.count()) * products.one().Flops();
  cost.bytes = static_cast<double>(elements) * SizeOf(prep.input(0).dtype);
  cost.whole_ns = ns(products);
  return cost;
}

}  // namespace weir::sdk

#endif  // WEIR_SDK_CPP_PRODUCTS_H_
