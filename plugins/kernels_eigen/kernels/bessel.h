// Bessel functions of orders 0 and 1, and functions that are integrals, of double numbers.
#ifndef WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_BESSEL_H_
#define WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_BESSEL_H_

namespace weir::kernels_eigen {

/// Order 0 or 1. `scaled`: times e^-|x| (I) or e^x (K). K and Y are infinite for x <= 0; I, J and Y are NaN at
/// infinity, as in TensorFlow.
double BesselI(int order, double x, bool scaled);
double BesselK(int order, double x, bool scaled);
double BesselJ(int order, double x);
double BesselY(int order, double x);

/// e^-(x^2) times the integral of e^(t^2) from 0 to x.
double Dawson(double x);
/// The integral of e^t / t from -infinity to x; NaN below 0.
double ExponentialIntegral(double x);
/// The integrals of cos(pi / 2 t^2) and sin(pi / 2 t^2) from 0 to x.
struct FresnelPair {
  double cosine, sine;
};
FresnelPair Fresnel(double x);
/// The integral of log(t) / (1 - t) from 1 to x; NaN below 0.
double Dilogarithm(double x);

}  // namespace weir::kernels_eigen

#endif  // WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_BESSEL_H_
