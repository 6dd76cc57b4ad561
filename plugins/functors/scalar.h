// Scalars of functors that also run on devices: the marker of such functions, 16-bit floats as bits, complex numbers.
#ifndef WEIR_PLUGINS_FUNCTORS_SCALAR_H_
#define WEIR_PLUGINS_FUNCTORS_SCALAR_H_

#include <bit>
#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>

#include "sdk/cpp/types.h"

/// Marks a function that runs on the host and on a device. Such a function calls only others with the marker, constexpr
/// functions and those of <cmath>.
#if defined(__CUDACC__) || defined(__HIPCC__)
#define WEIR_HD __host__ __device__
#else
#define WEIR_HD
#endif

#if defined(__CUDACC__)
#include <cuda_fp16.h>
#elif defined(__HIPCC__)
#include <hip/hip_fp16.h>
#endif

namespace weir::functors {

/// IEEE half, by its bits.
WEIR_HD inline float FloatOfHalf(uint16_t bits) {
#if defined(__CUDA_ARCH__) || defined(__HIP_DEVICE_COMPILE__)
  return __half2float(__ushort_as_half(bits));
#else
  sdk::half x;
  x.bits = bits;
  return x;
#endif
}
/// Rounded to nearest, ties to even.
WEIR_HD inline uint16_t HalfOfFloat(float x) {
#if defined(__CUDA_ARCH__) || defined(__HIP_DEVICE_COMPILE__)
  return __half_as_ushort(__float2half_rn(x));
#else
  return sdk::half(x).bits;
#endif
}

/// bfloat16, by its bits: the upper half of a float.
WEIR_HD inline float FloatOfBrain(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
/// Rounded to nearest, ties to even.
WEIR_HD inline uint16_t BrainOfFloat(float value) {
  const uint32_t x = std::bit_cast<uint32_t>(value);
  if ((x & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((x >> 16) | 0x40u);
  return static_cast<uint16_t>((x + 0x7fffu + ((x >> 16) & 1u)) >> 16);
}

/// A complex number with the layout of std::complex, whose operators do not run on devices.
template <class R>
struct Complex {
  R re = 0, im = 0;

  Complex() = default;
  WEIR_HD explicit Complex(R real, R imag = 0) : re(real), im(imag) {}
  template <class Other>
  WEIR_HD explicit Complex(Complex<Other> x) : re(static_cast<R>(x.re)), im(static_cast<R>(x.im)) {}
  WEIR_HD friend Complex operator+(Complex a, Complex b) { return Complex(a.re + b.re, a.im + b.im); }
  WEIR_HD friend Complex operator-(Complex a, Complex b) { return Complex(a.re - b.re, a.im - b.im); }
  WEIR_HD friend Complex operator-(Complex a) { return Complex(-a.re, -a.im); }
  WEIR_HD friend Complex operator*(Complex a, Complex b) {
    return Complex(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re);
  }
  /// The divisor is scaled by its larger part, so that its square does not overflow.
  WEIR_HD friend Complex operator/(Complex a, Complex b) {
    if (b.re == 0 && b.im == 0) return Complex(a.re / b.re, a.im / b.re);
    const bool by_real = std::fabs(b.re) >= std::fabs(b.im);
    const R ratio = by_real ? b.im / b.re : b.re / b.im;
    const R divisor = by_real ? b.re + b.im * ratio : b.re * ratio + b.im;
    return by_real ? Complex((a.re + a.im * ratio) / divisor, (a.im - a.re * ratio) / divisor)
                   : Complex((a.re * ratio + a.im) / divisor, (a.im * ratio - a.re) / divisor);
  }
  WEIR_HD friend bool operator==(Complex a, Complex b) { return a.re == b.re && a.im == b.im; }
  WEIR_HD friend bool operator!=(Complex a, Complex b) { return !(a == b); }
};

using Complex64 = Complex<float>;
using Complex128 = Complex<double>;
static_assert(sizeof(Complex64) == sizeof(sdk::complex64) && sizeof(Complex128) == sizeof(sdk::complex128));

template <class T>
inline constexpr bool kIsDeviceComplex = false;
template <class R>
inline constexpr bool kIsDeviceComplex<Complex<R>> = true;

}  // namespace weir::functors

#endif  // WEIR_PLUGINS_FUNCTORS_SCALAR_H_
