// The discrete Fourier transform of real numbers, for lengths that are powers of two.
#ifndef WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_FOURIER_H_
#define WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_FOURIER_H_

#include <cmath>
#include <complex>
#include <cstdint>
#include <numbers>
#include <utility>
#include <vector>

namespace weir::kernels_eigen {

/// Transforms n = 2, 4, 8 … real numbers as n / 2 complex ones. Immutable; the caller brings the memory.
class RealFourier {
 public:
  using Complex = std::complex<double>;

  RealFourier() = default;
  explicit RealFourier(int64_t n) : half_(n / 2), roots_(static_cast<size_t>(n / 2)) {
    for (int64_t i = 0; i < half_; ++i) {
      const double angle = -2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(n);
      roots_[static_cast<size_t>(i)] = {std::cos(angle), std::sin(angle)};
    }
  }

  /// `z`: n / 2 pairs of consecutive numbers, which are overwritten; `out`: the n / 2 + 1 lower frequencies.
  void Run(Complex* z, Complex* out) const {
    Transform(z);
    for (int64_t i = 0; i <= half_; ++i) {
      const Complex a = z[i % half_], b = std::conj(z[(half_ - i) % half_]);
      const Complex even = 0.5 * (a + b), odd = Complex(0, -0.5) * (a - b);
      out[i] = even + (i == half_ ? Complex(-1) : Root(i)) * odd;
    }
  }

 private:
  Complex Root(int64_t i) const { return roots_[static_cast<size_t>(i)]; }

  /// In place: bit reversal, then butterflies.
  void Transform(Complex* z) const {
    for (int64_t i = 1, j = 0; i < half_; ++i) {
      int64_t bit = half_ / 2;
      for (; (j & bit) != 0; bit /= 2) j ^= bit;
      j ^= bit;
      if (i < j) std::swap(z[i], z[j]);
    }
    for (int64_t size = 2; size <= half_; size *= 2) {
      const int64_t step = 2 * half_ / size;
      for (int64_t begin = 0; begin < half_; begin += size) {
        for (int64_t i = 0; i < size / 2; ++i) {
          const Complex upper = z[begin + i], lower = z[begin + i + size / 2] * Root(i * step);
          z[begin + i] = upper + lower;
          z[begin + i + size / 2] = upper - lower;
        }
      }
    }
  }

  int64_t half_ = 1;
  std::vector<Complex> roots_;
};

}  // namespace weir::kernels_eigen

#endif  // WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_FOURIER_H_
