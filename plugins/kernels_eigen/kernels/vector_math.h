// Array functions implemented with vector packets. `y` may be `x`.
#ifndef WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_VECTOR_MATH_H_
#define WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_VECTOR_MATH_H_

#include <cstdint>

namespace weir::kernels_eigen {

void ExpArray(const float* x, float* y, int64_t n);
void ExpArray(const double* x, double* y, int64_t n);
void Expm1Array(const float* x, float* y, int64_t n);
void Expm1Array(const double* x, double* y, int64_t n);
void LogArray(const float* x, float* y, int64_t n);
void LogArray(const double* x, double* y, int64_t n);
void Log1pArray(const float* x, float* y, int64_t n);
void Log1pArray(const double* x, double* y, int64_t n);
void TanhArray(const float* x, float* y, int64_t n);
void TanhArray(const double* x, double* y, int64_t n);
void SigmoidArray(const float* x, float* y, int64_t n);
void SigmoidArray(const double* x, double* y, int64_t n);

/// y[i] = exp(x[i] + shift); returns the sum of y.
float ExpSumArray(const float* x, float shift, float* y, int64_t n);
double ExpSumArray(const double* x, double shift, double* y, int64_t n);
/// n > 0; NaN if an element is NaN.
float MaxArray(const float* x, int64_t n);
double MaxArray(const double* x, int64_t n);

}  // namespace weir::kernels_eigen

#endif  // WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_VECTOR_MATH_H_
