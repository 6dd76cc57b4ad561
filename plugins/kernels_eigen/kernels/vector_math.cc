#include "plugins/kernels_eigen/kernels/vector_math.h"

#include <Eigen/Core>

namespace weir::kernels_eigen {
namespace {

template <class T>
auto In(const T* x, int64_t n) {
  return Eigen::Map<const Eigen::Array<T, Eigen::Dynamic, 1>>(x, n);
}
template <class T>
auto Out(T* y, int64_t n) {
  return Eigen::Map<Eigen::Array<T, Eigen::Dynamic, 1>>(y, n);
}

}  // namespace

void ExpArray(const float* x, float* y, int64_t n) { Out(y, n) = In(x, n).exp(); }
void ExpArray(const double* x, double* y, int64_t n) { Out(y, n) = In(x, n).exp(); }
void Expm1Array(const float* x, float* y, int64_t n) { Out(y, n) = In(x, n).expm1(); }
void Expm1Array(const double* x, double* y, int64_t n) { Out(y, n) = In(x, n).expm1(); }
void LogArray(const float* x, float* y, int64_t n) { Out(y, n) = In(x, n).log(); }
void LogArray(const double* x, double* y, int64_t n) { Out(y, n) = In(x, n).log(); }
void Log1pArray(const float* x, float* y, int64_t n) { Out(y, n) = In(x, n).log1p(); }
void Log1pArray(const double* x, double* y, int64_t n) { Out(y, n) = In(x, n).log1p(); }
void TanhArray(const float* x, float* y, int64_t n) { Out(y, n) = In(x, n).tanh(); }
void TanhArray(const double* x, double* y, int64_t n) { Out(y, n) = In(x, n).tanh(); }
void SigmoidArray(const float* x, float* y, int64_t n) { Out(y, n) = In(x, n).logistic(); }
void SigmoidArray(const double* x, double* y, int64_t n) { Out(y, n) = In(x, n).logistic(); }

float ExpSumArray(const float* x, float shift, float* y, int64_t n) {
  Out(y, n) = (In(x, n) + shift).exp();
  return In(y, n).sum();
}
double ExpSumArray(const double* x, double shift, double* y, int64_t n) {
  Out(y, n) = (In(x, n) + shift).exp();
  return In(y, n).sum();
}
float MaxArray(const float* x, int64_t n) { return In(x, n).maxCoeff<Eigen::PropagateNaN>(); }
double MaxArray(const double* x, int64_t n) { return In(x, n).maxCoeff<Eigen::PropagateNaN>(); }

}  // namespace weir::kernels_eigen
