// Svd: a block of threads for each matrix, in double precision as on the CPU. A matrix that is not square is first
// reduced by a QR decomposition with column pivots; then rotations from both sides make one pair of rows and columns
// after the other diagonal (Kogbetliantz), in the order and with the signs of the CPU's kernel.
#include <algorithm>
#include <cmath>
#include <limits>

#include "plugins/functors/matrix_batch.h"
#include "plugins/gpu/kernels/dense.h"
#include "plugins/gpu/kernels/families.h"
#include "plugins/gpu/kernels/storage.h"
#include "sdk/cpp/kernel.h"

namespace weir::gpu {
namespace {

using sdk::AnyInput;
using sdk::AnyOutput;
using sdk::Env;
using sdk::Prep;

template <class C>
using SvdNumber = std::conditional_t<functors::kIsDeviceComplex<C>, functors::Complex128, double>;

constexpr int kMostSweeps = 100;
constexpr double kLeastDouble = std::numeric_limits<double>::min();

/// A 2 x 2 matrix.
template <class W>
struct Small {
  W at[2][2];
  WEIR_GPU_FN static Small Identity() { return {{{W(1), W(0)}, {W(0), W(1)}}}; }
  WEIR_GPU_FN friend Small operator*(const Small& a, const Small& b) {
    Small c;
    for (int i = 0; i < 2; ++i) {
      for (int j = 0; j < 2; ++j) c.at[i][j] = a.at[i][0] * b.at[0][j] + a.at[i][1] * b.at[1][j];
    }
    return c;
  }
};

/// What makes a 2 x 2 block diagonal: left block right is that.
template <class W>
struct PairRotation {
  Small<W> left, right;

  /// Rotations of a block of real numbers.
  WEIR_GPU_FN static PairRotation Real(const Small<W>& block) {
    const double a = RealPart(block.at[0][0]), b = RealPart(block.at[0][1]), c = RealPart(block.at[1][0]),
                 d = RealPart(block.at[1][1]);
    // First one from the left that makes the block symmetric.
    double first_c = 1, first_s = 0;
    if (std::fabs(c - b) >= kLeastDouble) {
      const double ratio = (a + d) / (c - b), root = std::sqrt(1 + ratio * ratio);
      first_s = 1 / root;
      first_c = ratio / root;
    }
    const double x = first_c * a + first_s * c, y = first_c * b + first_s * d, z = -first_s * b + first_c * d;
    double right_c = 1, right_s = 0;
    if (2 * std::fabs(y) >= kLeastDouble) {
      const double tau = (x - z) / (2 * std::fabs(y)), root = std::sqrt(tau * tau + 1);
      const double t = tau > 0 ? 1 / (tau + root) : 1 / (tau - root);
      right_c = 1 / std::sqrt(t * t + 1);
      right_s = (t > 0 ? -1 : 1) * (y / std::fabs(y)) * std::fabs(t) * right_c;
    }
    const double left_c = first_c * right_c + first_s * right_s, left_s = first_s * right_c - first_c * right_s;
    return {{{{W(left_c), W(left_s)}, {W(-left_s), W(left_c)}}},
            {{{W(right_c), W(right_s)}, {W(-right_s), W(right_c)}}}};
  }

  /// Makes a block of complex numbers upper triangular with real elements.
  WEIR_GPU_FN static PairRotation ToReal(Small<W> block) {
    PairRotation made{Small<W>::Identity(), Small<W>::Identity()};
    if constexpr (functors::kIsDeviceComplex<W>) {
      const double size = std::sqrt(SquaredMagnitude(block.at[0][0]) + SquaredMagnitude(block.at[1][0]));
      const auto turn = [](W x) { return W(Magnitude(x)) / x; };
      if (size == 0) {
        block.at[0][0] = block.at[1][0] = W(0);
        if (std::fabs(block.at[0][1].im) > kLeastDouble) made.left.at[0][0] = turn(block.at[0][1]);
        if (std::fabs(block.at[1][1].im) > kLeastDouble) made.left.at[1][1] = turn(block.at[1][1]);
        return made;
      }
      const W c = Divided(functors::Conjugated(block.at[0][0]), size), s = Divided(block.at[1][0], size);
      made.left = {{{c, functors::Conjugated(s)}, {-s, functors::Conjugated(c)}}};
      block = made.left * block;
      if (std::fabs(block.at[0][1].im) > kLeastDouble) {
        made.right.at[1][1] = turn(block.at[0][1]);
        block = block * made.right;
      }
      if (std::fabs(block.at[1][1].im) > kLeastDouble) {
        const W z = turn(block.at[1][1]);
        for (int j = 0; j < 2; ++j) made.left.at[1][j] = made.left.at[1][j] * z;
      }
    }
    return made;
  }
};

/// Extents of one Svd: a matrix is [rows, columns], u [rows, u_columns], v [columns, v_columns].
struct SvdShape {
  int64_t rows, columns, u_columns, v_columns;
  WEIR_HD int64_t inner() const { return rows < columns ? rows : columns; }
  WEIR_HD int64_t tall() const { return rows < columns ? columns : rows; }
  /// Elements of scratch memory: the square matrix, u, v, the matrix with at least as many rows as columns, taus.
  WEIR_HD int64_t numbers() const {
    return inner() * inner() + rows * u_columns + columns * v_columns + rows * columns + inner();
  }
  /// Words of scratch memory: values and two norms of columns, then places.
  WEIR_HD int64_t words() const { return 4 * inner(); }
};

template <class S>
struct SvdWork {
  using W = SvdNumber<typename S::C>;
  Ptr<const char> from;
  Ptr<char> s, u, v;
  Ptr<W> scratch;
  Ptr<double> lines;
  SvdShape shape;
  bool wanted;  // u and v
  S storage;

  struct State {
    double scale, largest, threshold;
    PairRotation<W> turn;
    int32_t bad, acts, finished;
  };
  /// The parts of a block's scratch memory.
  struct Parts {
    W *square, *u, *v, *tall, *taus;
    double *values, *updated, *direct;
    int64_t* places;
  };

  template <class Block>
  WEIR_GPU_FN void operator()(Block& block) const {
    State* const state = block.template Shared<State>(256 * sizeof(double));
    Parts parts;
    parts.square = scratch.get() + block.index() * shape.numbers();
    parts.u = parts.square + shape.inner() * shape.inner();
    parts.v = parts.u + shape.rows * shape.u_columns;
    parts.tall = parts.v + shape.columns * shape.v_columns;
    parts.taus = parts.tall + shape.rows * shape.columns;
    parts.values = lines.get() + block.index() * shape.words();
    parts.updated = parts.values + shape.inner();
    parts.direct = parts.updated + shape.inner();
    parts.places = reinterpret_cast<int64_t*>(parts.direct + shape.inner());
    Load(block, parts, state);
    if (shape.rows != shape.columns) Reduce(block, parts);
    Rotate(block, parts, state);
    Store(block, parts, state);
  }

 private:
  WEIR_GPU_FN bool Turned() const { return shape.rows < shape.columns; }

  /// The matrix, or its adjoint if that is taller, scaled by its largest element; u and v as identities.
  template <class Block>
  WEIR_GPU_FN void Load(Block& block, const Parts& parts, State* state) const {
    double* const largest = block.template Shared<double>(0);
    const int64_t size = shape.rows * shape.columns, n = shape.inner();
    block.ForEachThread([&](int t) {
      double own = 0;
      for (int64_t e = t; e < size; e += block.threads()) {
        const W x(storage.Load(from.get(), block.index() * size + e));
        const bool finite = std::isfinite(RealPart(x)) && std::isfinite(ImaginaryPart(x));
        const double magnitude = Magnitude(x);
        if (own >= 0 && magnitude > own) own = magnitude;
        if (!finite) own = -1;
        const int64_t i = e / shape.columns, j = e % shape.columns;
        if (Turned()) {
          parts.tall[j * n + i] = functors::Conjugated(x);
        } else {
          parts.tall[e] = x;
        }
      }
      largest[t] = own;
      for (int64_t e = t; e < shape.rows * shape.u_columns; e += block.threads()) {
        parts.u[e] = e / shape.u_columns == e % shape.u_columns ? W(1) : W(0);
      }
      for (int64_t e = t; e < shape.columns * shape.v_columns; e += block.threads()) {
        parts.v[e] = e / shape.v_columns == e % shape.v_columns ? W(1) : W(0);
      }
    });
    block.ForEachThread([&](int t) {
      if (t != 0) return;
      state->scale = state->largest = 0;
      state->bad = 0;
      for (int k = 0; k < block.threads(); ++k) {
        if (largest[k] < 0) state->bad = 1;
        if (largest[k] > state->scale) state->scale = largest[k];
      }
      if (state->scale == 0 || state->bad != 0) state->scale = 1;
    });
    block.ForEachThread([&](int t) {
      for (int64_t e = t; e < size; e += block.threads()) {
        parts.tall[e] = state->bad != 0 ? W(0) : Divided(parts.tall[e], state->scale);
        if (shape.rows == shape.columns) parts.square[e] = parts.tall[e];
      }
    });
  }

  /// QR with column pivots of the tall matrix: its R, or the adjoint of that, is the square one.
  template <class Block>
  WEIR_GPU_FN void Reduce(Block& block, const Parts& parts) const {
    const int64_t m = shape.tall(), n = shape.inner();
    W* const x = parts.tall;
    block.ForEachThread([&](int t) {
      for (int64_t j = t; j < n; j += block.threads()) {
        parts.direct[j] = parts.updated[j] = ColumnNorm(x, m, n, j, 0);
        parts.places[j] = j;
      }
    });
    for (int64_t k = 0; k < n; ++k) {
      block.ForEachThread([&](int t) {
        if (t == 0) Pivot(parts, n, k);
      });
      const int64_t pivot = static_cast<int64_t>(parts.values[k]);
      block.ForEachThread([&](int t) {
        for (int64_t i = t; pivot != k && i < m; i += block.threads()) {
          const W moved = x[i * n + k];
          x[i * n + k] = x[i * n + pivot];
          x[i * n + pivot] = moved;
        }
      });
      const double* const tail = ColumnSquares(block, x, m, n, k, k + 1);
      block.ForEachThread([&](int t) {
        const Reflection<W> reflection(x[k * n + k], *tail);
        if (t == 0) {
          parts.taus[k] = reflection.tau;
          parts.values[k] = reflection.beta;
        }
        for (int64_t i = k + 1 + t; reflection.tau != W(0) && i < m; i += block.threads()) {
          x[i * n + k] = x[i * n + k] / reflection.divisor;
        }
      });
      block.ForEachThread([&](int t) {
        if (t == 0) x[k * n + k] = W(parts.values[k]);
      });
      Reflect(block, x, m, n, k, k, parts.taus[k], x, n, k + 1);
      block.ForEachThread([&](int t) {
        for (int64_t j = k + 1 + t; j < n; j += block.threads()) Downdate(parts, x, m, n, k, j);
      });
    }
    Unpack(block, parts);
  }
  WEIR_GPU_FN static double ColumnNorm(const W* x, int64_t m, int64_t n, int64_t j, int64_t first) {
    double sum = 0;
    for (int64_t i = first; i < m; ++i) sum += SquaredMagnitude(x[i * n + j]);
    return std::sqrt(sum);
  }
  /// Moves the longest column to place k; its number, which doubles hold exactly, is left in values[k].
  WEIR_GPU_FN static void Pivot(const Parts& parts, int64_t n, int64_t k) {
    int64_t pivot = k;
    for (int64_t j = k + 1; j < n; ++j) {
      if (parts.updated[j] > parts.updated[pivot]) pivot = j;
    }
    parts.values[k] = static_cast<double>(pivot);
    const auto exchange = [&](auto* numbers) {
      const auto moved = numbers[k];
      numbers[k] = numbers[pivot];
      numbers[pivot] = moved;
    };
    exchange(parts.updated);
    exchange(parts.direct);
    exchange(parts.places);
  }
  /// The length of column j below row k, from that of before, or anew where that is not exact enough (LAPACK's note
  /// 176).
  WEIR_GPU_FN static void Downdate(const Parts& parts, const W* x, int64_t m, int64_t n, int64_t k, int64_t j) {
    double& length = parts.updated[j];
    if (length == 0) return;
    const double part = Magnitude(x[k * n + j]) / length, rest = (1 + part) * (1 - part);
    const double left = rest < 0 ? 0 : rest, ratio = length / parts.direct[j];
    if (left * ratio * ratio <= std::sqrt(std::numeric_limits<double>::epsilon())) {
      length = parts.direct[j] = ColumnNorm(x, m, n, j, k + 1);
    } else {
      length *= std::sqrt(left);
    }
  }
  template <class Block>
  WEIR_GPU_FN void Unpack(Block& block, const Parts& parts) const {
    const int64_t m = shape.tall(), n = shape.inner();
    // Q is the longer side's matrix, the order of the columns that of the other one.
    W* const unitary = Turned() ? parts.v : parts.u;
    W* const ordered = Turned() ? parts.u : parts.v;
    const int64_t unitary_columns = Turned() ? shape.v_columns : shape.u_columns;
    for (int64_t k = n; k-- > 0;) {
      Reflect(block, parts.tall, m, n, k, k, functors::Conjugated(parts.taus[k]), unitary, unitary_columns, 0);
    }
    block.ForEachThread([&](int t) {
      for (int64_t e = t; e < n * n; e += block.threads()) {
        const int64_t i = e / n, j = e % n;
        ordered[e] = parts.places[j] == i ? W(1) : W(0);
        if (Turned()) {
          parts.square[e] = j <= i ? functors::Conjugated(parts.tall[j * n + i]) : W(0);
        } else {
          parts.square[e] = j >= i ? parts.tall[e] : W(0);
        }
      }
    });
  }

  template <class Block>
  WEIR_GPU_FN void Rotate(Block& block, const Parts& parts, State* state) const {
    const int64_t n = shape.inner();
    W* const x = parts.square;
    block.ForEachThread([&](int t) {
      for (int64_t i = 0; t == 0 && i < n; ++i) {
        if (Magnitude(x[i * n + i]) > state->largest) state->largest = Magnitude(x[i * n + i]);
      }
    });
    for (int sweep = 0; sweep < kMostSweeps; ++sweep) {
      block.ForEachThread([&](int t) {
        if (t == 0) state->finished = 1;
      });
      for (int64_t p = 1; p < n; ++p) {
        for (int64_t q = 0; q < p; ++q) {
          block.ForEachThread([&](int t) {
            if (t == 0) Plan(x, n, p, q, state);
          });
          block.ForEachThread([&](int t) {
            for (int64_t j = t; state->acts != 0 && j < n; j += block.threads()) {
              const auto& l = state->turn.left.at;
              const W above = x[p * n + j], below = x[q * n + j];
              x[p * n + j] = l[0][0] * above + l[0][1] * below;
              x[q * n + j] = l[1][0] * above + l[1][1] * below;
            }
          });
          block.ForEachThread([&](int t) {
            if (state->acts == 0) return;
            const auto& l = state->turn.left.at;
            const Small<W> adjoint{{{functors::Conjugated(l[0][0]), functors::Conjugated(l[1][0])},
                                    {functors::Conjugated(l[0][1]), functors::Conjugated(l[1][1])}}};
            for (int64_t i = t; i < n; i += block.threads()) Columns(x + i * n, p, q, state->turn.right);
            for (int64_t i = t; wanted && i < shape.rows; i += block.threads()) {
              Columns(parts.u + i * shape.u_columns, p, q, adjoint);
            }
            for (int64_t i = t; wanted && i < shape.columns; i += block.threads()) {
              Columns(parts.v + i * shape.v_columns, p, q, state->turn.right);
            }
          });
        }
      }
      if (state->finished != 0) break;
      block.ForEachThread([](int) {});  // nobody starts a sweep before all have looked
    }
  }
  WEIR_GPU_FN static void Columns(W* row, int64_t p, int64_t q, const Small<W>& by) {
    const W x = row[p], y = row[q];
    row[p] = x * by.at[0][0] + y * by.at[1][0];
    row[q] = x * by.at[0][1] + y * by.at[1][1];
  }
  /// The rotations of rows and columns p and q, if they are not diagonal yet.
  WEIR_GPU_FN static void Plan(const W* x, int64_t n, int64_t p, int64_t q, State* state) {
    constexpr double kPrecision = std::numeric_limits<double>::epsilon();
    Small<W> block{{{x[p * n + p], x[p * n + q]}, {x[q * n + p], x[q * n + q]}}};
    state->acts = Beside(block) > Limit(state->largest, 2 * kPrecision) ? 1 : 0;
    if (state->acts == 0) return;
    state->finished = 0;
    state->turn = {Small<W>::Identity(), Small<W>::Identity()};
    if constexpr (functors::kIsDeviceComplex<W>) {
      state->turn = PairRotation<W>::ToReal(block);
      block = state->turn.left * block * state->turn.right;
      Note(block, state);
      if (!(Beside(block) > Limit(state->largest, kPrecision))) return;
    }
    const auto real = PairRotation<W>::Real(block);
    state->turn.left = real.left * state->turn.left;
    state->turn.right = state->turn.right * real.right;
    Note(real.left * block * real.right, state);
  }
  WEIR_GPU_FN static double Limit(double largest, double precision) {
    return precision * largest > kLeastDouble ? precision * largest : kLeastDouble;
  }
  WEIR_GPU_FN static double Beside(const Small<W>& block) {
    const double above = Magnitude(block.at[0][1]), below = Magnitude(block.at[1][0]);
    return above > below ? above : below;
  }
  WEIR_GPU_FN static void Note(const Small<W>& block, State* state) {
    for (int i = 0; i < 2; ++i) {
      const double size = Magnitude(block.at[i][i]);
      if (size > state->largest) state->largest = size;
    }
  }

  /// Values in descending order, made positive by the columns of u.
  template <class Block>
  WEIR_GPU_FN void Store(Block& block, const Parts& parts, const State* state) const {
    const int64_t n = shape.inner(), at = block.index();
    block.ForEachThread([&](int t) {
      for (int64_t i = t; i < n; i += block.threads()) {
        const W x = parts.square[i * n + i];
        W sign(RealPart(x) < 0 ? -1.0 : 1.0);
        parts.values[i] = std::fabs(RealPart(x));
        if (std::fabs(ImaginaryPart(x)) > kLeastDouble) {
          parts.values[i] = Magnitude(x);
          sign = Divided(x, Magnitude(x));
        }
        parts.values[i] *= state->scale;
        for (int64_t row = 0; wanted && row < shape.rows; ++row) {
          parts.u[row * shape.u_columns + i] = parts.u[row * shape.u_columns + i] * sign;
        }
      }
    });
    block.ForEachThread([&](int t) {
      if (t == 0) Sort(parts, n);
    });
    block.ForEachThread([&](int t) {
      const double none = std::numeric_limits<double>::quiet_NaN();
      for (int64_t i = t; i < n; i += block.threads()) {
        Put(s, at * n + i, W(state->bad != 0 ? none : parts.values[i]));
      }
      if (!wanted) return;
      for (int64_t e = t; e < shape.rows * shape.u_columns; e += block.threads()) {
        Put(u, at * shape.rows * shape.u_columns + e,
            state->bad != 0 ? W(none) : Sorted(parts, parts.u, shape.u_columns, e));
      }
      for (int64_t e = t; e < shape.columns * shape.v_columns; e += block.threads()) {
        Put(v, at * shape.columns * shape.v_columns + e,
            state->bad != 0 ? W(none) : Sorted(parts, parts.v, shape.v_columns, e));
      }
    });
  }
  WEIR_GPU_FN W Sorted(const Parts& parts, const W* x, int64_t columns, int64_t e) const {
    const int64_t j = e % columns;
    return x[e - j + (j < shape.inner() ? parts.places[j] : j)];
  }
  WEIR_GPU_FN void Put(const Ptr<char>& to, int64_t i, W x) const { storage.Store(to.get(), i, typename S::C(x)); }
  WEIR_GPU_FN static void Sort(const Parts& parts, int64_t n) {
    for (int64_t i = 0; i < n; ++i) parts.places[i] = i;
    for (int64_t i = 0; i < n; ++i) {
      int64_t most = i;
      for (int64_t k = i + 1; k < n; ++k) {
        if (parts.values[k] > parts.values[most]) most = k;
      }
      const double value = parts.values[i];
      parts.values[i] = parts.values[most];
      parts.values[most] = value;
      const int64_t place = parts.places[i];
      parts.places[i] = parts.places[most];
      parts.places[most] = place;
    }
  }
};

struct Svd {
  functors::MatrixBatch batch;
  bool vectors = true, full = false;

  int32_t Prepare(Prep& prep) {
    vectors = prep.node().Bool("compute_uv", true);
    full = prep.node().Bool("full_matrices");
    if (const int32_t code = batch.Plan(prep); code != WEIR_OK || batch.count == 0) return code;
    prep.Scratch(LineBytes() + static_cast<uint64_t>(batch.count * Shape().numbers()) *
                                   ((kComplexBits & WEIR_DTYPE_BIT(prep.input(0).dtype)) != 0 ? 16 : 8));
    return WEIR_OK;
  }
  SvdShape Shape() const {
    const int64_t inner = batch.inner();
    return {batch.rows, batch.columns, full ? batch.rows : inner, full ? batch.columns : inner};
  }
  uint64_t LineBytes() const { return static_cast<uint64_t>(batch.count * Shape().words() + 8) / 8 * 64; }

  int32_t Run(Env& env, AnyInput x, AnyOutput s, AnyOutput u, AnyOutput v, sdk::Scratch<char> scratch) const {
    int32_t code = WEIR_OK;
    if (batch.count == 0) return code;
    WithStorage<kFloats | kWide | kComplexes>(x.dtype(), [&](auto storage) {
      using Work = SvdWork<decltype(storage)>;
      const Work work{From(x),
                      To(s),
                      To(u),
                      To(v),
                      reinterpret_cast<typename Work::W*>(scratch.data() + LineBytes()),
                      reinterpret_cast<double*>(scratch.data()),
                      Shape(),
                      vectors,
                      storage};
      code = LaunchBlocks(env, batch.count, MatrixThreads(batch.rows, batch.columns),
                          256 * sizeof(double) + sizeof(typename Work::State), work);
    });
    return code;
  }
};

}  // namespace

void AddSvd(sdk::KernelTable& k) {
  for (const char* op : {"Svd", "BatchSvd"}) {
    k.Add<Svd>(op).Restrict("T", kFloatBits | kComplexBits).Class(WEIR_CLASS_GEMM, 30);
  }
}

}  // namespace weir::gpu
