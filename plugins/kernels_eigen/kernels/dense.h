// Dense linear algebra on row-major arrays by plain loops over rows: triangular systems, Cholesky, LU and Householder
// QR. Eigen's forms of these take minutes to compile for all types. T: float, double or a complex type.
#ifndef WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_DENSE_H_
#define WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_DENSE_H_

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <utility>
#include <vector>

#include "plugins/kernels_eigen/wrap.h"

namespace weir::kernels_eigen {

/// A matrix that owns its elements.
template <class T>
struct Dense {
  int64_t rows = 0, columns = 0;
  std::vector<T> data;

  Dense(int64_t r, int64_t c) : rows(r), columns(c), data(static_cast<size_t>(r * c)) {}
  template <class S>
  Dense(int64_t r, int64_t c, const S* from) : Dense(r, c) {
    for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<T>(from[i]);
  }
  static Dense Identity(int64_t r, int64_t c) {
    Dense one(r, c);
    for (int64_t i = 0; i < std::min(r, c); ++i) one(i, i) = T(1);
    return one;
  }

  T* row(int64_t i) { return data.data() + i * columns; }
  const T* row(int64_t i) const { return data.data() + i * columns; }
  T& operator()(int64_t i, int64_t j) { return data[static_cast<size_t>(i * columns + j)]; }
  const T& operator()(int64_t i, int64_t j) const { return data[static_cast<size_t>(i * columns + j)]; }

  Dense Adjoint() const {
    Dense turned(columns, rows);
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) turned(j, i) = Conjugated((*this)(i, j));
    }
    return turned;
  }
  template <class S>
  void Store(S* to) const {
    for (size_t i = 0; i < data.size(); ++i) to[i] = static_cast<S>(data[i]);
  }
};

/// to[i] -= factor * from[i].
template <class T>
void SubtractRow(T factor, const T* from, int64_t n, T* to) {
  for (int64_t i = 0; i < n; ++i) to[i] -= factor * from[i];
}

template <class T>
Dense<T> operator*(const Dense<T>& a, const Dense<T>& b) {
  Dense<T> c(a.rows, b.columns);
  for (int64_t i = 0; i < a.rows; ++i) {
    for (int64_t k = 0; k < a.columns; ++k) SubtractRow(-a(i, k), b.row(k), b.columns, c.row(i));
  }
  return c;
}

/// x = t^-1 x by substitution, of the lower or the upper triangle of t. Zeros on the diagonal give infinities and NaN.
template <class T>
void SolveTriangle(const Dense<T>& t, bool lower, Dense<T>* x, bool unit = false) {
  const int64_t n = t.rows;
  for (int64_t step = 0; step < n; ++step) {
    const int64_t row = lower ? step : n - 1 - step;
    const int64_t begin = lower ? 0 : row + 1, end = lower ? row : n;
    for (int64_t k = begin; k < end; ++k) SubtractRow(t(row, k), x->row(k), x->columns, x->row(row));
    if (unit) continue;
    for (int64_t j = 0; j < x->columns; ++j) (*x)(row, j) /= t(row, row);
  }
}

/// The sum of a[i] conj(b[i]), in four partial sums so that additions overlap.
template <class T>
T Inner(const T* a, const T* b, int64_t n) {
  T sums[4] = {};
  int64_t i = 0;
  for (; i + 4 <= n; i += 4) {
    for (int64_t k = 0; k < 4; ++k) sums[k] += a[i + k] * Conjugated(b[i + k]);
  }
  for (; i < n; ++i) sums[0] += a[i] * Conjugated(b[i]);
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

/// Replaces a Hermitian matrix, given by its lower triangle, by its factor L, a = L L^H. False if the matrix is not
/// positive definite.
template <class T>
bool FactorCholesky(Dense<T>* a) {
  for (int64_t i = 0; i < a->rows; ++i) {
    T* const row = a->row(i);
    for (int64_t j = 0; j < i; ++j) row[j] = (row[j] - Inner(row, a->row(j), j)) / (*a)(j, j);
    const auto square = std::real(row[i] - Inner(row, row, i));
    if (square <= 0) return false;
    row[i] = T(std::sqrt(square));
    std::fill(row + i + 1, row + a->columns, T(0));
  }
  return true;
}

/// An LU decomposition with row pivots: L below the diagonal, with ones on its own, and U; row i is row order[i] of the
/// matrix.
template <class T>
struct LuFactors {
  Dense<T> lu;
  std::vector<int64_t> order;
  int sign = 1;  // of the permutation

  explicit LuFactors(Dense<T> matrix) : lu(std::move(matrix)), order(static_cast<size_t>(lu.rows)) {
    const int64_t n = lu.rows;
    for (int64_t i = 0; i < n; ++i) order[static_cast<size_t>(i)] = i;
    for (int64_t k = 0; k < n; ++k) {
      int64_t pivot = k;
      for (int64_t i = k + 1; i < n; ++i) {
        if (std::abs(lu(i, k)) > std::abs(lu(pivot, k))) pivot = i;
      }
      if (pivot != k) {
        std::swap_ranges(lu.row(k), lu.row(k) + n, lu.row(pivot));
        std::swap(order[static_cast<size_t>(k)], order[static_cast<size_t>(pivot)]);
        sign = -sign;
      }
      if (lu(k, k) == T(0)) continue;
      for (int64_t i = k + 1; i < n; ++i) {
        const T factor = lu(i, k) / lu(k, k);
        lu(i, k) = factor;
        SubtractRow(factor, lu.row(k) + k + 1, n - k - 1, lu.row(i) + k + 1);
      }
    }
  }
  /// True if all pivots are numbers other than 0.
  bool Invertible() const {
    for (int64_t i = 0; i < lu.rows; ++i) {
      if (!(std::abs(lu(i, i)) > 0)) return false;
    }
    return true;
  }
  /// The x with matrix x = right.
  Dense<T> Solve(const Dense<T>& right) const {
    Dense<T> x(right.rows, right.columns);
    for (int64_t i = 0; i < right.rows; ++i) {
      std::copy_n(right.row(order[static_cast<size_t>(i)]), right.columns, x.row(i));
    }
    SolveTriangle(lu, true, &x, true);
    SolveTriangle(lu, false, &x);
    return x;
  }
};

/// A decomposition by Householder reflections 1 - tau v v^H, in LAPACK's form: R on and above the diagonal, the v,
/// whose first element is 1, below.
template <class T>
struct QrFactors {
  Dense<T> qr;
  std::vector<T> taus;

  explicit QrFactors(Dense<T> matrix) : qr(std::move(matrix)) {
    for (int64_t k = 0; k < std::min(qr.rows, qr.columns); ++k) {
      decltype(std::abs(T())) tail = 0;
      for (int64_t i = k + 1; i < qr.rows; ++i) tail += std::norm(qr(i, k));
      const T first = qr(k, k);
      if (tail == 0 && std::imag(first) == 0) {
        taus.push_back(T(0));
        continue;
      }
      auto beta = std::sqrt(std::norm(first) + tail);
      if (std::real(first) >= 0) beta = -beta;
      for (int64_t i = k + 1; i < qr.rows; ++i) qr(i, k) /= first - beta;
      taus.push_back(Conjugated((T(beta) - first) / beta));
      qr(k, k) = T(beta);
      Reflect(k, taus.back(), k + 1, &qr);
    }
  }
  /// The first `columns` columns of Q.
  Dense<T> Q(int64_t columns) const {
    Dense<T> q = Dense<T>::Identity(qr.rows, columns);
    for (int64_t k = static_cast<int64_t>(taus.size()); k-- > 0;) {
      Reflect(k, Conjugated(taus[static_cast<size_t>(k)]), 0, &q);
    }
    return q;
  }
  /// The first `rows` rows of R.
  Dense<T> R(int64_t rows) const {
    Dense<T> r(rows, qr.columns);
    for (int64_t i = 0; i < std::min(rows, qr.columns); ++i) {
      std::copy(qr.row(i) + i, qr.row(i) + qr.columns, r.row(i) + i);
    }
    return r;
  }

 private:
  /// Applies reflection k, with that tau, to the columns of x from `begin` on.
  void Reflect(int64_t k, T tau, int64_t begin, Dense<T>* x) const {
    const int64_t n = x->columns - begin;
    if (n <= 0 || tau == T(0)) return;
    std::vector<T> sum(x->row(k) + begin, x->row(k) + x->columns);
    for (int64_t i = k + 1; i < qr.rows; ++i) SubtractRow(-Conjugated(qr(i, k)), x->row(i) + begin, n, sum.data());
    SubtractRow(tau, sum.data(), n, x->row(k) + begin);
    for (int64_t i = k + 1; i < qr.rows; ++i) SubtractRow(tau * qr(i, k), sum.data(), n, x->row(i) + begin);
  }
};

}  // namespace weir::kernels_eigen

#endif  // WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_DENSE_H_
