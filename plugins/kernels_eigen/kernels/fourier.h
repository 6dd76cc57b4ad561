// Discrete Fourier transforms in double precision.
#ifndef WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_FOURIER_H_
#define WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_FOURIER_H_

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <numbers>
#include <utility>
#include <vector>

namespace weir::kernels_eigen {

/// Transforms n = 1, 2, 4, 8 … complex numbers in place. Immutable.
class BinaryFourier {
 public:
  using Complex = std::complex<double>;

  BinaryFourier() = default;
  explicit BinaryFourier(int64_t n) : n_(n), roots_(static_cast<size_t>(n / 2)) {
    for (int64_t i = 0; i < n / 2; ++i) {
      const double angle = -2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(n);
      roots_[static_cast<size_t>(i)] = {std::cos(angle), std::sin(angle)};
    }
  }

  /// Bit reversal, then butterflies.
  void Run(Complex* z) const {
    for (int64_t i = 1, j = 0; i < n_; ++i) {
      int64_t bit = n_ / 2;
      for (; (j & bit) != 0; bit /= 2) j ^= bit;
      j ^= bit;
      if (i < j) std::swap(z[i], z[j]);
    }
    for (int64_t size = 2; size <= n_; size *= 2) {
      const int64_t step = n_ / size;
      for (int64_t begin = 0; begin < n_; begin += size) {
        for (int64_t i = 0; i < size / 2; ++i) {
          const Complex root = roots_[static_cast<size_t>(i * step)], odd = z[begin + i + size / 2];
          // Written out: the product of std::complex looks for NaN.
          const Complex lower(odd.real() * root.real() - odd.imag() * root.imag(),
                              odd.real() * root.imag() + odd.imag() * root.real());
          const Complex upper = z[begin + i];
          z[begin + i] = upper + lower;
          z[begin + i + size / 2] = upper - lower;
        }
      }
    }
  }

 private:
  int64_t n_ = 1;
  std::vector<Complex> roots_;
};

/// Transforms n = 2, 4, 8 … real numbers as n / 2 complex ones. Immutable; the caller brings the memory.
class RealFourier {
 public:
  using Complex = std::complex<double>;

  RealFourier() = default;
  explicit RealFourier(int64_t n) : half_(n / 2), halves_(n / 2), roots_(static_cast<size_t>(n / 2)) {
    for (int64_t i = 0; i < half_; ++i) {
      const double angle = -2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(n);
      roots_[static_cast<size_t>(i)] = {std::cos(angle), std::sin(angle)};
    }
  }

  /// `z`: n / 2 pairs of consecutive numbers, which are overwritten; `out`: the n / 2 + 1 lower frequencies.
  void Run(Complex* z, Complex* out) const {
    halves_.Run(z);
    for (int64_t i = 0; i <= half_; ++i) {
      const Complex a = z[i % half_], b = std::conj(z[(half_ - i) % half_]);
      const Complex even = 0.5 * (a + b), odd = Complex(0, -0.5) * (a - b);
      out[i] = even + (i == half_ ? Complex(-1) : roots_[static_cast<size_t>(i)]) * odd;
    }
  }

 private:
  int64_t half_ = 1;
  BinaryFourier halves_;
  std::vector<Complex> roots_;
};

/// Transforms any number of complex numbers in place. A length that is no power of two becomes a convolution of twice
/// that length (Bluestein). Immutable; the caller brings the memory.
class AnyFourier {
 public:
  using Complex = std::complex<double>;

  AnyFourier() = default;
  explicit AnyFourier(int64_t n) : n_(n) {
    int64_t padded = 1;
    while (padded < n) padded *= 2;
    if (padded == n) {
      padded_ = BinaryFourier(n);
      return;
    }
    size_ = 2 * padded;
    padded_ = BinaryFourier(size_);
    chirp_.resize(static_cast<size_t>(n));
    kernel_.resize(static_cast<size_t>(size_));
    for (int64_t i = 0; i < n; ++i) {
      // i^2 modulo 2n keeps the angle small, and so exact.
      const double turns = static_cast<double>(static_cast<__int128>(i) * i % (2 * n)) / static_cast<double>(n);
      const Complex w(std::cos(std::numbers::pi * turns), -std::sin(std::numbers::pi * turns));
      chirp_[static_cast<size_t>(i)] = w;
      kernel_[static_cast<size_t>(i)] = kernel_[static_cast<size_t>((size_ - i) % size_)] = std::conj(w);
    }
    padded_.Run(kernel_.data());
  }

  /// Elements of work memory that a call needs.
  int64_t work() const { return size_; }

  /// z[k] = the sum of z[i] e^(-2 pi i k / n), without the minus if `inverse`, and then divided by n.
  void Run(Complex* z, bool inverse, Complex* work) const {
    if (inverse) Conjugate(z, n_);
    if (size_ == 0) {
      padded_.Run(z);
    } else {
      Convolve(z, work);
    }
    if (!inverse) return;
    Conjugate(z, n_);
    const double share = 1 / static_cast<double>(n_);
    for (int64_t i = 0; i < n_; ++i) z[i] *= share;
  }

 private:
  static void Conjugate(Complex* z, int64_t n) {
    for (int64_t i = 0; i < n; ++i) z[i] = std::conj(z[i]);
  }

  void Convolve(Complex* z, Complex* work) const {
    std::fill_n(work + n_, size_ - n_, Complex());
    for (int64_t i = 0; i < n_; ++i) work[i] = z[i] * chirp_[static_cast<size_t>(i)];
    padded_.Run(work);
    for (int64_t i = 0; i < size_; ++i) work[i] = std::conj(work[i] * kernel_[static_cast<size_t>(i)]);
    padded_.Run(work);
    const double share = 1 / static_cast<double>(size_);
    for (int64_t i = 0; i < n_; ++i) z[i] = std::conj(work[i]) * share * chirp_[static_cast<size_t>(i)];
  }

  int64_t n_ = 1, size_ = 0;
  BinaryFourier padded_;
  std::vector<Complex> chirp_, kernel_;
};

}  // namespace weir::kernels_eigen

#endif  // WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_FOURIER_H_
