// SelfAdjointEigV2: a block of threads for each matrix, in double precision as on the CPU. Householder reflections make
// the matrix tridiagonal, implicit QR steps with Wilkinson's shift make it diagonal (Golub and Van Loan, 8.3).
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "plugins/functors/matrix_batch.h"
#include "plugins/gpu/kernels/dense.h"
#include "plugins/gpu/kernels/families.h"
#include "plugins/gpu/kernels/storage.h"
#include "sdk/cpp/kernel.h"

namespace weir::gpu {
namespace {

using sdk::Buffer;
using sdk::Context;

/// Double precision for numbers of type C.
template <class C>
using WideNumber = std::conditional_t<functors::kIsDeviceComplex<C>, functors::Complex128, double>;

constexpr int64_t kMostSteps = 30;  // for each row of a matrix

/// A rotation that takes (x, z) to (r, 0).
struct PlaneRotation {
  double c = 1, s = 0;
  WEIR_GPU_FN PlaneRotation(double x, double z) {
    if (z == 0) {
      c = x < 0 ? -1 : 1;
    } else if (x == 0) {
      c = 0;
      s = z < 0 ? 1 : -1;
    } else if (std::fabs(x) > std::fabs(z)) {
      const double ratio = z / x, root = std::sqrt(1 + ratio * ratio);
      c = 1 / (x < 0 ? -root : root);
      s = -ratio * c;
    } else {
      const double ratio = x / z, root = std::sqrt(1 + ratio * ratio);
      s = -1 / (z < 0 ? -root : root);
      c = -ratio * s;
    }
  }
};

/// A symmetric tridiagonal matrix of n rows, and the rotations of a step.
struct Tridiagonal {
  double *diagonal, *beside, *c, *s;
  int64_t n;

  /// Sets elements beside the diagonal to 0 that are too small to matter.
  WEIR_GPU_FN void Deflate(int64_t start, int64_t end) const {
    for (int64_t i = start; i < end; ++i) {
      const double scaled = beside[i] / std::numeric_limits<double>::epsilon();
      const bool tiny = std::fabs(beside[i]) < std::numeric_limits<double>::min();
      if (tiny || scaled * scaled <= std::fabs(diagonal[i]) + std::fabs(diagonal[i + 1])) beside[i] = 0;
    }
  }
  WEIR_GPU_FN double Shift(int64_t end) const {
    const double half = (diagonal[end - 1] - diagonal[end]) * 0.5, e = beside[end - 1];
    if (half == 0) return diagonal[end] - std::fabs(e);
    if (e == 0) return diagonal[end];
    const double root = std::hypot(half, e), sum = half + (half > 0 ? root : -root);
    return diagonal[end] - (e * e == 0 ? e / (sum / e) : e * e / sum);
  }
  /// One step on rows [start, end]; returns the number of its rotations.
  WEIR_GPU_FN int64_t Step(int64_t start, int64_t end) const {
    double x = diagonal[start] - Shift(end), z = beside[start];
    int64_t k = start;
    for (; k < end && z != 0; ++k) {
      const PlaneRotation r(x, z);
      const double low = r.s * diagonal[k] + r.c * beside[k], high = r.s * beside[k] + r.c * diagonal[k + 1];
      diagonal[k] = r.c * (r.c * diagonal[k] - r.s * beside[k]) - r.s * (r.c * beside[k] - r.s * diagonal[k + 1]);
      diagonal[k + 1] = r.s * low + r.c * high;
      beside[k] = r.c * low - r.s * high;
      if (k > start) beside[k - 1] = r.c * beside[k - 1] - r.s * z;
      x = beside[k];
      if (k < end - 1) {
        z = -r.s * beside[k + 1];
        beside[k + 1] = r.c * beside[k + 1];
      }
      c[k] = r.c;
      s[k] = r.s;
    }
    return k - start;
  }
};

template <class S>
struct EigenPairsWork {
  using W = WideNumber<typename S::C>;
  Ptr<const char> from;
  Ptr<char> values, vectors;
  Ptr<W> matrices;      // 2 n^2 a matrix: itself and the vectors; behind those of all, 2 n a matrix
  Ptr<double> numbers;  // 4 n a matrix
  Ptr<int64_t> order;   // n a matrix
  Ptr<int32_t> failed;
  int64_t count, n;
  bool wanted;  // the vectors
  S storage;

  struct State {
    double scale, beta;
    int64_t start, end, first, rotations, steps;
    int32_t bad, done;
  };

  template <class Block>
  WEIR_GPU_FN void operator()(Block& block) const {
    const int64_t at = block.index();
    W* const a = matrices.get() + at * 2 * n * n;
    W* const q = a + n * n;
    W* const taus = matrices.get() + count * 2 * n * n + at * 2 * n;
    double* const lines = numbers.get() + at * 4 * n;
    const Tridiagonal tri{lines, lines + n, lines + 2 * n, lines + 3 * n, n};
    State* const state = block.template Shared<State>(256 * sizeof(double));
    Load(block, a, state);
    if (state->bad != 0) {
      block.ForEachThread([&](int t) {
        if (t == 0) AtomicMax(failed.get(), 1);
      });
      return;
    }
    for (int64_t i = 0; i + 1 < n; ++i) Annihilate(block, a, taus, i, state);
    block.ForEachThread([&](int t) {
      for (int64_t e = t; e < n * n; e += block.threads()) q[e] = e / n == e % n ? W(1) : W(0);
      for (int64_t i = t; i < n; i += block.threads()) {
        tri.diagonal[i] = RealPart(a[i * n + i]);
        tri.beside[i] = i + 1 < n ? RealPart(a[(i + 1) * n + i]) : 0;
      }
    });
    for (int64_t k = n - 1; wanted && k-- > 0;) {
      Reflect(block, a, n, n, k, k + 1, functors::Conjugated(taus[k]), q, n, k + 1);
    }
    Diagonalise(block, tri, q, state);
    Store(block, tri, q, order.get() + at * n, state);
  }

 private:
  /// The lower triangle, scaled by its largest element.
  template <class Block>
  WEIR_GPU_FN void Load(Block& block, W* a, State* state) const {
    double* const largest = block.template Shared<double>(0);
    block.ForEachThread([&](int t) {
      double own = 0;
      for (int64_t e = t; e < n * n; e += block.threads()) {
        a[e] = e % n <= e / n ? W(storage.Load(from.get(), block.index() * n * n + e)) : W(0);
        const double size = Magnitude(a[e]);
        if (!(own < 0) && size > own) own = size;
        if (!std::isfinite(RealPart(a[e])) || !std::isfinite(ImaginaryPart(a[e]))) own = -1;
      }
      largest[t] = own;
    });
    block.ForEachThread([&](int t) {
      if (t != 0) return;
      *state = {0, 0, 0, n - 1, 0, 0, 0, 0, 0};
      for (int k = 0; k < block.threads(); ++k) {
        if (largest[k] < 0) state->bad = 1;
        if (largest[k] > state->scale) state->scale = largest[k];
      }
      if (n == 1) state->bad = 0;
      if (state->scale == 0 || n == 1) state->scale = 1;
    });
    block.ForEachThread([&](int t) {
      for (int64_t e = t; e < n * n; e += block.threads()) a[e] = Divided(a[e], state->scale);
    });
  }

  /// Makes column i 0 below the element that is beside the diagonal. Both triangles stand for the lower one.
  template <class Block>
  WEIR_GPU_FN void Annihilate(Block& block, W* a, W* taus, int64_t i, State* state) const {
    W* const p = taus + n;
    const int64_t rest = n - i - 1;
    const double* const tail = ColumnSquares(block, a, n, n, i, i + 2);
    block.ForEachThread([&](int t) {
      const Reflection<W> reflection(a[(i + 1) * n + i], *tail);
      if (t == 0) {
        taus[i] = reflection.tau;
        state->beta = reflection.beta;
      }
      for (int64_t r = i + 2 + t; reflection.tau != W(0) && r < n; r += block.threads()) {
        a[r * n + i] = a[r * n + i] / reflection.divisor;
      }
    });
    const auto v = [&](int64_t r) { return r == 0 ? W(1) : a[(i + 1 + r) * n + i]; };
    block.ForEachThread([&](int t) {
      const W factor = functors::Conjugated(taus[i]);
      for (int64_t r = t; r < rest; r += block.threads()) {
        W sum(0);
        for (int64_t c = 0; c < rest; ++c) {
          const W lower = a[(i + 1 + (c <= r ? r : c)) * n + i + 1 + (c <= r ? c : r)];
          sum = sum + (c == r ? W(RealPart(lower)) : c < r ? lower : functors::Conjugated(lower)) * (factor * v(c));
        }
        p[r] = sum;
      }
    });
    block.ForEachThread([&](int t) {
      if (t != 0) return;
      W dot(0);
      for (int64_t r = 0; r < rest; ++r) dot = dot + functors::Conjugated(p[r]) * v(r);
      p[n - 1] = Scaled(functors::Conjugated(taus[i]) * dot, -0.5);  // rest < n: the last element is free
    });
    block.ForEachThread([&](int t) {
      for (int64_t r = t; r < rest; r += block.threads()) p[r] = p[r] + p[n - 1] * v(r);
    });
    block.ForEachThread([&](int t) {
      for (int64_t e = t; e < rest * rest; e += block.threads()) {
        const int64_t r = e / rest, c = e % rest;
        if (c > r) continue;
        W& to = a[(i + 1 + r) * n + i + 1 + c];
        to = to - (v(r) * functors::Conjugated(p[c]) + p[r] * functors::Conjugated(v(c)));
      }
    });
    block.ForEachThread([&](int t) {
      if (t == 0) a[(i + 1) * n + i] = W(state->beta);
    });
  }

  template <class Block>
  WEIR_GPU_FN void Diagonalise(Block& block, const Tridiagonal& tri, W* q, State* state) const {
    for (int64_t step = 0; step <= kMostSteps * n; ++step) {
      block.ForEachThread([&](int t) {
        if (t == 0) Plan(tri, state);
      });
      block.ForEachThread([&](int t) {
        for (int64_t r = t; wanted && state->done == 0 && r < n; r += block.threads()) {
          W* const row = q + r * n;
          for (int64_t k = state->first; k < state->first + state->rotations; ++k) {
            const W x = row[k], y = row[k + 1];
            row[k] = Scaled(x, tri.c[k]) - Scaled(y, tri.s[k]);
            row[k + 1] = Scaled(x, tri.s[k]) + Scaled(y, tri.c[k]);
          }
        }
      });
      if (state->done != 0) break;
      block.ForEachThread([](int) {});  // nobody plans before all have looked
    }
  }
  /// The next step; `done` if there is none, or there were too many.
  WEIR_GPU_FN void Plan(const Tridiagonal& tri, State* state) const {
    tri.Deflate(state->start, state->end);
    while (state->end > 0 && tri.beside[state->end - 1] == 0) --state->end;
    state->done = state->end <= 0 ? 1 : 0;
    if (state->done == 0 && ++state->steps > kMostSteps * n) {
      state->done = 1;
      state->bad = 1;
    }
    if (state->done != 0) return;
    state->start = state->end - 1;
    while (state->start > 0 && tri.beside[state->start - 1] != 0) --state->start;
    state->first = state->start;
    state->rotations = tri.Step(state->start, state->end);
  }

  /// Values in ascending order, with their vectors in columns.
  template <class Block>
  WEIR_GPU_FN void Store(Block& block, const Tridiagonal& tri, const W* q, int64_t* places, State* state) const {
    using C = typename S::C;
    const int64_t at = block.index();
    block.ForEachThread([&](int t) {
      if (t != 0) return;
      if (state->bad != 0) AtomicMax(failed.get(), 1);
      for (int64_t i = 0; i < n; ++i) places[i] = i;
      for (int64_t i = 0; i + 1 < n; ++i) {
        int64_t least = i;
        for (int64_t k = i + 1; k < n; ++k) {
          if (tri.diagonal[k] < tri.diagonal[least]) least = k;
        }
        const double value = tri.diagonal[i];
        tri.diagonal[i] = tri.diagonal[least];
        tri.diagonal[least] = value;
        const int64_t place = places[i];
        places[i] = places[least];
        places[least] = place;
      }
    });
    block.ForEachThread([&](int t) {
      for (int64_t i = t; i < n; i += block.threads()) {
        storage.Store(values.get(), at * n + i, C(static_cast<RealOf<C>>(tri.diagonal[i] * state->scale)));
      }
      for (int64_t e = t; wanted && e < n * n; e += block.threads()) {
        storage.Store(vectors.get(), at * n * n + e, C(q[e / n * n + places[e % n]]));
      }
    });
  }
};

struct SelfAdjointEig {
  bool vectors = true;

  int32_t Prepare(const sdk::Node& node, const sdk::Error&) {
    vectors = node.Bool("compute_v", true);
    return WEIR_OK;
  }
  int32_t Compute(Context& ctx) {
    functors::MatrixBatch batch;
    Buffer<const void> input;
    Buffer<void> values, pairs;
    const sdk::Error& error = ctx.error();
    int32_t code = ctx.Input(0, &input);
    const bool any = code == WEIR_OK && !functors::HasNoElements(input.shape());
    if (code == WEIR_OK) code = batch.Read(error, 0, input.shape(), any);
    if (code == WEIR_OK) code = batch.CheckSquare(error);
    if (code != WEIR_OK) return code;
    const int64_t none = 0;
    code = ctx.Output(0, weir_shape{input.rank() - 1, 0, input.shape().dims}, &values);
    if (code == WEIR_OK) code = ctx.Output(1, vectors ? input.shape() : weir_shape{1, 0, &none}, &pairs);
    if (code != WEIR_OK || batch.count == 0 || batch.rows == 0) return code;
    return Enqueue(ctx, batch, input, values, pairs);
  }

 private:
  int32_t Enqueue(const Context& ctx, const functors::MatrixBatch& batch, const Buffer<const void>& input,
                  const Buffer<void>& values, const Buffer<void>& pairs) const {
    const int64_t n = batch.rows, count = batch.count;
    const NativeStream stream = StreamOf(ctx);
    const bool complex = (kComplexBits & WEIR_DTYPE_BIT(input.dtype())) != 0;
    const auto wide = static_cast<uint64_t>(count * (2 * n * n + 2 * n)) * (complex ? 16 : 8);
    const auto words = static_cast<uint64_t>(count * 5 * n) * 8;
    weir_buf memory{};
    int32_t code = ctx.Temp(64 + wide + words, WEIR_SPACE_DEVICE, &memory);
    if (code != WEIR_OK) return code;
    auto* const failed = reinterpret_cast<int32_t*>(memory.handle + memory.offset);
    char* const matrices = reinterpret_cast<char*>(failed) + 64;
    auto* const numbers = reinterpret_cast<double*>(matrices + wide);
    auto* const order = reinterpret_cast<int64_t*>(numbers + count * 4 * n);
    code = Fill(stream, failed, 0, 64).Tell(ctx.error(), "fill");
    if (code != WEIR_OK) return code;
    WithStorage<kFloats | kWide | kComplexes>(input.dtype(), [&](auto storage) {
      using Work = EigenPairsWork<decltype(storage)>;
      const Work work{static_cast<const char*>(AddressOf(input)),
                      static_cast<char*>(AddressOf(values)),
                      static_cast<char*>(AddressOf(pairs)),
                      reinterpret_cast<typename Work::W*>(matrices),
                      numbers,
                      order,
                      failed,
                      count,
                      n,
                      vectors,
                      storage};
      code = LaunchBlocks(stream, count, MatrixThreads(n, n), 256 * sizeof(double) + sizeof(typename Work::State), work)
                 .Tell(ctx.error(), "launch");
    });
    int32_t found = 0;
    if (code == WEIR_OK) code = ReadBack(stream, &found, failed, sizeof found).Tell(ctx.error(), "read");
    if (code != WEIR_OK || found == 0) return code;
    return ctx.error().InvalidArgument(
        "Self-adjoint eigen decomposition was not successful. The input might not be valid.");
  }
};

}  // namespace

void AddEigenPairs(sdk::KernelTable& k) {
  const auto add = [&](const char* op, uint64_t dtypes) {
    k.Add<SelfAdjointEig>(op).Restrict("T", dtypes).Flags(WEIR_KERNEL_STREAM).Class(WEIR_CLASS_GEMM, 10);
  };
  add("SelfAdjointEigV2", kFloatBits | kComplexBits);
  add("BatchSelfAdjointEigV2", kFloatBits);
}

}  // namespace weir::gpu
