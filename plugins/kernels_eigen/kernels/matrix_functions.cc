// Functions of square matrices by their complex Schur form, in double precision: Eig, MatrixLogarithm,
// MatrixSquareRoot; and MatrixExponential.
#include <Eigen/Eigenvalues>
#include <Eigen/LU>
#include <limits>

#include "plugins/kernels_eigen/array_families.h"
#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/kernels/matrices.h"

namespace weir::kernels_eigen {
namespace {

using sdk::Env;
using sdk::View;

using Complex = std::complex<double>;
using Wide = Eigen::MatrixXcd;  // column-major, as Eigen's Schur form wants it

/// The matrix at `from` in double precision.
template <class T>
Wide Widened(const T* from, int64_t n) {
  Wide wide(n, n);
  for (int64_t i = 0; i < n * n; ++i) wide(i / n, i % n) = Complex(from[i]);
  return wide;
}

/// Stores complex numbers as T, whose real types drop imaginary parts.
template <class T>
void Narrowed(const Wide& value, T* to) {
  for (int64_t i = 0, n = value.rows(); i < n * n; ++i) {
    const Complex x = value(i / n, i % n);
    if constexpr (std::is_floating_point_v<T>) {
      to[i] = static_cast<T>(x.real());
    } else {
      to[i] = static_cast<T>(x);
    }
  }
}

Wide NoNumbers(int64_t n) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  return Wide::Constant(n, n, Complex(nan, nan));
}

/// The upper triangular square root of an upper triangular matrix.
Wide TriangularRoot(const Wide& t) {
  const int64_t n = t.rows();
  Wide root = Wide::Zero(n, n);
  for (int64_t j = 0; j < n; ++j) {
    root(j, j) = std::sqrt(t(j, j));
    for (int64_t i = j; i-- > 0;) {
      Complex rest = t(i, j);
      for (int64_t k = i + 1; k < j; ++k) rest -= root(i, k) * root(k, j);
      const Complex sum = root(i, i) + root(j, j);
      root(i, j) = rest == Complex() && sum == Complex() ? Complex() : rest / sum;
    }
  }
  return root;
}

/// The logarithm of an upper triangular matrix: roots until it is near the identity, then the integral of
/// (t - 1) (1 + s (t - 1))^-1 over s from 0 to 1 by Gauss's formula. NaN if it is singular or the roots do not
/// converge.
Wide TriangularLog(Wide t) {
  constexpr double kNodes[] = {0.0254460438286207, 0.1292344072003028, 0.2970774243113014, 0.5,
                               0.7029225756886986, 0.8707655927996972, 0.9745539561713793};
  constexpr double kWeights[] = {0.0647424830844348, 0.1398526957446383, 0.1909150252525595, 0.2089795918367347,
                                 0.1909150252525595, 0.1398526957446383, 0.0647424830844348};
  constexpr double kNear = 0.2;
  const int64_t n = t.rows();
  const Eigen::VectorXcd logs = t.diagonal().array().log();
  const Wide identity = Wide::Identity(n, n);
  double scale = 1;
  for (int roots = 0; !((t - identity).cwiseAbs().colwise().sum().maxCoeff() < kNear); ++roots) {
    if (roots == 100 || !t.allFinite()) return NoNumbers(n);
    t = TriangularRoot(t);
    scale *= 2;
  }
  const Wide step = t - identity;
  Wide sum = Wide::Zero(n, n);
  for (int k = 0; k < 7; ++k) {
    const Wide divisor = identity + kNodes[k] * step;
    sum += kWeights[k] * divisor.triangularView<Eigen::Upper>().solve(step);
  }
  sum *= scale;
  sum.diagonal() = logs;
  return sum;
}

/// f of an upper triangular matrix, for any square one.
template <class F>
Wide BySchur(const Wide& x, F f) {
  if (x.size() == 0) return x;
  if (!x.allFinite()) return NoNumbers(x.rows());
  const Eigen::ComplexSchur<Wide> schur(x);
  if (schur.info() != Eigen::Success) return NoNumbers(x.rows());
  const Wide t = schur.matrixT().triangularView<Eigen::Upper>();
  return schur.matrixU() * f(t) * schur.matrixU().adjoint();
}

struct MatrixLogarithm {
  Wide operator()(const Wide& x) const {
    return BySchur(x, [](const Wide& t) {
      return (t.diagonal().array() == Complex()).any() ? NoNumbers(t.rows()) : TriangularLog(t);
    });
  }
};

struct MatrixSquareRoot {
  Wide operator()(const Wide& x) const { return BySchur(x, TriangularRoot); }
};

/// By scaling, a Padé approximation of degree 13 and squaring.
struct MatrixExponential {
  Wide operator()(const Wide& x) const {
    constexpr double kFactors[] = {64764752532480000.,
                                   32382376266240000.,
                                   7771770303897600.,
                                   1187353796428800.,
                                   129060195264000.,
                                   10559470521600.,
                                   670442572800.,
                                   33522128640.,
                                   1323241920.,
                                   40840800.,
                                   960960.,
                                   16380.,
                                   182.,
                                   1.};
    constexpr double kNear = 5.4;
    const int64_t n = x.rows();
    if (n == 0) return x;
    const double norm = x.cwiseAbs().colwise().sum().maxCoeff();
    if (!x.allFinite() || !(norm < 1e300)) return NoNumbers(n);
    const int squarings = std::max(0, static_cast<int>(std::ceil(std::log2(norm / kNear))));
    const Wide a = x * std::ldexp(1.0, -squarings), a2 = a * a, a4 = a2 * a2, a6 = a4 * a2;
    const Wide identity = Wide::Identity(n, n);
    const double* const f = kFactors;
    const Wide odd =
        a * (a6 * (f[13] * a6 + f[11] * a4 + f[9] * a2) + f[7] * a6 + f[5] * a4 + f[3] * a2 + f[1] * identity);
    const Wide even = a6 * (f[12] * a6 + f[10] * a4 + f[8] * a2) + f[6] * a6 + f[4] * a4 + f[2] * a2 + f[0] * identity;
    Wide result = (even - odd).partialPivLu().solve(even + odd);
    for (int i = 0; i < squarings; ++i) result = result * result;
    return result;
  }
};

/// A function of each matrix of a batch.
template <class F>
struct MatrixFunction {
  MatrixBatch batch;

  int32_t Prepare(sdk::Prep& prep) { return batch.PlanSquare(prep); }
  template <class T>
  void Run(const Env& env, View<const T> input, View<T> output) const {
    const auto [begin, end] = env.Range(batch.count);
    for (int64_t i = begin; i < end; ++i) {
      Wide value = F()(Widened(input.data() + i * batch.size(), batch.rows));
      if constexpr (std::is_same_v<F, MatrixSquareRoot> && std::is_floating_point_v<T>) {
        // A real matrix without a real root has none.
        const double size = value.cwiseAbs().maxCoeff();
        if (value.imag().cwiseAbs().maxCoeff() > 1e-6 * size) value = NoNumbers(batch.rows);
      }
      Narrowed(value, output.data() + i * batch.size());
    }
  }
};

struct Eig {
  MatrixBatch batch;
  bool vectors = true;

  int32_t Prepare(sdk::Prep& prep) {
    vectors = prep.node().Bool("compute_v", true);
    const uint32_t in = prep.input(0).dtype, out = prep.output(0).dtype;
    const uint32_t wanted = in == WEIR_FLOAT32 || in == WEIR_COMPLEX64 ? WEIR_COMPLEX64 : WEIR_COMPLEX128;
    if (out != wanted) return prep.error().InvalidArgument("Invalid output dtype ", out, " vs ", wanted);
    return batch.PlanSquare(prep);
  }
  template <class T, class O>
  int32_t Run(const Env& env, View<const T> input, View<O> e, View<O> v) const {
    const auto [begin, end] = env.Range(batch.count);
    for (int64_t i = begin; i < end; ++i) {
      const Wide x = Widened(input.data() + i * batch.size(), batch.rows);
      Eigen::ComplexEigenSolver<Wide> solver;
      if (batch.rows == 1 || x.allFinite()) solver.compute(x, vectors);
      if ((batch.rows > 1 && !x.allFinite()) || solver.info() != Eigen::Success) {
        return env.error().InvalidArgument("Eigen decomposition was not successful. The input might not be valid.");
      }
      for (int64_t k = 0; k < batch.rows; ++k) e[i * batch.rows + k] = static_cast<O>(solver.eigenvalues()[k]);
      if (vectors) Narrowed<O>(solver.eigenvectors(), v.data() + i * batch.size());
    }
    return WEIR_OK;
  }
};

}  // namespace

void AddMatrixFunctions(sdk::KernelTable& k) {
  constexpr auto kTypes = kFloat + kComplex;
  k.Add<MatrixFunction<MatrixExponential>>("MatrixExponential", kTypes).Class(WEIR_CLASS_GEMM, 10);
  k.Add<MatrixFunction<MatrixSquareRoot>>("MatrixSquareRoot", kTypes).Class(WEIR_CLASS_GEMM, 10);
#if !defined(WEIR_KERNEL_DTYPES_SHORT)
  k.Add<MatrixFunction<MatrixLogarithm>>("MatrixLogarithm", kComplex).Class(WEIR_CLASS_GEMM, 10);
  k.Add<Eig>("Eig", kTypes, sdk::Attr("Tout", kComplex)).Class(WEIR_CLASS_GEMM, 10);
#endif
}

}  // namespace weir::kernels_eigen
