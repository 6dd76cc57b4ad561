// Linear algebra on batches of matrices, a block of threads for each: Cholesky, LU and what follows from it, triangular
// systems, QR. As in TensorFlow, a matrix that has no inverse is an error: the host waits for the word that says so.
#include <algorithm>
#include <limits>

#include "plugins/functors/matrix_batch.h"
#include "plugins/gpu/kernels/broadcasting.h"
#include "plugins/gpu/kernels/dense.h"
#include "plugins/gpu/kernels/families.h"
#include "plugins/gpu/kernels/storage.h"
#include "sdk/cpp/kernel.h"

namespace weir::gpu {
namespace {

using functors::MatrixBatch;
using sdk::AnyInput;
using sdk::AnyOutput;
using sdk::Buffer;
using sdk::Context;
using sdk::Env;
using sdk::Prep;

constexpr unsigned kFields = kFloats | kWide | kComplexes;
constexpr uint64_t kFieldBits = kFloatBits | kComplexBits;

template <class C, class View>
Ptr<const C> ConstMatrices(const View& view) {
  return Ptr<const C>(static_cast<const C*>(static_cast<const void*>(view.data())));
}
template <class C, class View>
Ptr<C> Matrices(const View& view) {
  return Ptr<C>(static_cast<C*>(static_cast<void*>(view.data())));
}

/// The lower factor of a matrix given by its lower triangle; NaN there if it is not positive definite.
template <class C>
struct CholeskyWork {
  Ptr<const C> from;
  Ptr<C> to;
  int64_t n;
  template <class Block>
  WEIR_GPU_FN void operator()(Block& block) const {
    int64_t* const failed = block.template Shared<int64_t>(0);
    C* const l = to.get() + block.index() * n * n;
    block.ForEachThread([&](int t) {
      for (int64_t e = t; e < n * n; e += block.threads()) {
        l[e] = e % n <= e / n ? from[block.index() * n * n + e] : C(0);
      }
      if (t == 0) *failed = 0;
    });
    for (int64_t j = 0; j < n; ++j) {
      C* const row = l + j * n;
      block.ForEachThread([&](int t) {
        if (t != 0) return;
        const RealOf<C> square = RealPart(row[j] - Inner(row, row, j));
        if (square <= 0) *failed = 1;
        row[j] = C(std::sqrt(square));
      });
      block.ForEachThread([&](int t) {
        for (int64_t i = j + 1 + t; i < n; i += block.threads()) {
          l[i * n + j] = (l[i * n + j] - Inner(l + i * n, row, j)) / row[j];
        }
      });
    }
    block.ForEachThread([&](int t) {
      if (*failed == 0) return;
      for (int64_t e = t; e < n * n; e += block.threads()) {
        if (e % n <= e / n) l[e] = C(std::numeric_limits<RealOf<C>>::quiet_NaN());
      }
    });
  }
};
struct Cholesky {
  MatrixBatch batch;
  int32_t Prepare(Prep& prep) {
    const int32_t code = batch.Plan(prep);
    return code != WEIR_OK ? code : batch.CheckSquare(prep.error());
  }
  int32_t Run(Env& env, AnyInput x, AnyOutput y) const {
    int32_t code = WEIR_OK;
    WithStorage<kFields>(x.dtype(), [&](auto storage) {
      using C = typename decltype(storage)::C;
      code = LaunchBlocks(env, batch.count, MatrixThreads(batch.rows, batch.rows), kDenseSharedBytes,
                          CholeskyWork<C>{ConstMatrices<C>(x), Matrices<C>(y), batch.rows});
    });
    return code;
  }
};

template <class C>
WEIR_GPU_FN C DirectionOf(C x) {
  if constexpr (functors::kIsDeviceComplex<C>) {
    const RealOf<C> size = Magnitude(x);
    return size == 0 ? C() : Divided(x, size);
  } else {
    return x > 0 ? C(1) : x < 0 ? C(-1) : x;
  }
}

/// A determinant, or its sign and the logarithm of its magnitude.
template <class C, bool kLog>
struct DeterminantWork {
  Ptr<const C> from;
  Ptr<C> lu, to, log_to;
  Ptr<int64_t> order;  // n + 1 words a matrix
  int64_t n;
  template <class Block>
  WEIR_GPU_FN void operator()(Block& block) const {
    const int64_t at = block.index();
    C* const factors = lu.get() + at * n * n;
    int64_t* const rows = order.get() + at * (n + 1);
    block.ForEachThread([&](int t) {
      for (int64_t e = t; e < n * n; e += block.threads()) factors[e] = from[at * n * n + e];
    });
    FactorLu(block, factors, n, rows, rows + n);
    block.ForEachThread([&](int t) {
      if (t != 0) return;
      C sign(static_cast<RealOf<C>>(rows[n]));
      RealOf<C> log = 0;
      for (int64_t i = 0; i < n; ++i) {
        sign = sign * DirectionOf(factors[i * n + i]);
        log += std::log(Magnitude(factors[i * n + i]));
      }
      to[at] = kLog ? sign : Scaled(sign, std::exp(log));
      if constexpr (kLog) log_to[at] = C(log);
    });
  }
};
template <bool kLog>
struct DeterminantBase {
  MatrixBatch batch;
  int32_t Prepare(Prep& prep) {
    int32_t code = batch.Plan(prep);
    if (code == WEIR_OK) code = batch.CheckSquare(prep.error());
    if (code == WEIR_OK && batch.count > 0) prep.Scratch(OrderBytes() + MatrixBytes(prep.input(0).dtype));
    return code;
  }
  uint64_t OrderBytes() const { return static_cast<uint64_t>(batch.count * (batch.rows + 1) + 31) / 32 * 256; }
  uint64_t MatrixBytes(uint32_t dtype) const {
    return static_cast<uint64_t>(batch.count * batch.size()) * sdk::SizeOf(dtype);
  }
  int32_t Enqueue(const Env& env, const AnyInput& x, void* to, void* log, char* scratch) const {
    int32_t code = WEIR_OK;
    WithStorage<kFields>(x.dtype(), [&](auto storage) {
      using C = typename decltype(storage)::C;
      code = LaunchBlocks(env, batch.count, MatrixThreads(batch.rows, batch.rows), kDenseSharedBytes,
                          DeterminantWork<C, kLog>{ConstMatrices<C>(x), reinterpret_cast<C*>(scratch + OrderBytes()),
                                                   static_cast<C*>(to), static_cast<C*>(log),
                                                   reinterpret_cast<int64_t*>(scratch), batch.rows});
    });
    return code;
  }
};
struct MatrixDeterminant : DeterminantBase<false> {
  int32_t Run(Env& env, AnyInput x, AnyOutput y, sdk::Scratch<char> scratch) const {
    return Enqueue(env, x, y.data(), nullptr, scratch.data());
  }
};
struct LogMatrixDeterminant : DeterminantBase<true> {
  int32_t Run(Env& env, AnyInput x, AnyOutput sign, AnyOutput log, sdk::Scratch<char> scratch) const {
    return Enqueue(env, x, sign.data(), log.data(), scratch.data());
  }
};

/// LU factors, and with `x` the solutions of linear systems: of `right`, or of the identity where there is none.
template <class C>
struct LuWork {
  Ptr<const C> from, right;
  Ptr<C> lu, x;
  Ptr<int64_t> order;     // n + 1 words a matrix
  Ptr<int32_t> singular;  // set if a matrix has no inverse
  int64_t n, columns;
  bool adjoint;
  template <class Block>
  WEIR_GPU_FN void operator()(Block& block) const {
    const int64_t at = block.index();
    C* const factors = lu.get() + at * n * n;
    int64_t* const rows = order.get() + at * (n + 1);
    const MaybeAdjoint<C> given{from.get() + at * n * n, n, adjoint};
    block.ForEachThread([&](int t) {
      for (int64_t e = t; e < n * n; e += block.threads()) factors[e] = given(e / n, e % n);
    });
    FactorLu(block, factors, n, rows, rows + n);
    block.ForEachThread([&](int t) {
      if (t == 0 && !IsInvertible(factors, n)) AtomicMax(singular.get(), 1);
    });
    if (!x) return;
    C* const solution = x.get() + at * n * columns;
    block.ForEachThread([&](int t) {
      for (int64_t e = t; e < n * columns; e += block.threads()) {
        const int64_t row = rows[e / columns], j = e % columns;
        solution[e] = right ? right[at * n * columns + row * columns + j] : (row == j ? C(1) : C(0));
      }
    });
    const MaybeAdjoint<C> triangles{factors, n, false};
    SolveTriangle(block, triangles, n, true, true, solution, columns);
    SolveTriangle(block, triangles, n, false, false, solution, columns);
  }
};
/// Row numbers in the output's type.
struct WriteOrderWork {
  Ptr<const int64_t> order;
  Ptr<char> to;
  int64_t n;
  Integer storage;
  WEIR_GPU_FN void operator()(int64_t i) const { storage.Store(to.get(), i, order[i / n * (n + 1) + i % n]); }
};

/// One call of an op that needs LU factors. Addresses are the device's.
struct LuCall {
  MatrixBatch batch;
  const void *from = nullptr, *right = nullptr;
  void *factors = nullptr, *x = nullptr;  // factors: null if they are no output
  int64_t columns = 0;
  bool adjoint = false;
  int64_t* order = nullptr;

  int32_t Run(const Context& ctx, uint32_t dtype, std::string_view message) {
    if (batch.count == 0 || batch.rows == 0) return WEIR_OK;
    const sdk::Error& error = ctx.error();
    const NativeStream stream = StreamOf(ctx);
    const uint64_t words = static_cast<uint64_t>(batch.count * (batch.rows + 1) + 8) / 8 * 64;
    const uint64_t own = static_cast<uint64_t>(batch.count * batch.size()) * sdk::SizeOf(dtype);
    weir_buf memory{};
    int32_t code = ctx.Temp(64 + words + (factors == nullptr ? own : 0), WEIR_SPACE_DEVICE, &memory);
    if (code != WEIR_OK) return code;
    auto* const singular = reinterpret_cast<int32_t*>(memory.handle + memory.offset);
    order = reinterpret_cast<int64_t*>(singular + 16);
    void* const lu = factors != nullptr ? factors : reinterpret_cast<char*>(order) + words;
    if (code = Fill(stream, singular, 0, 64).Tell(error, "fill"); code != WEIR_OK) return code;
    WithStorage<kFields>(dtype, [&](auto storage) {
      using C = typename decltype(storage)::C;
      const LuWork<C> work{static_cast<const C*>(from),
                           static_cast<const C*>(right),
                           static_cast<C*>(lu),
                           static_cast<C*>(x),
                           order,
                           singular,
                           batch.rows,
                           columns,
                           adjoint};
      code = LaunchBlocks(stream, batch.count, MatrixThreads(batch.rows, std::max(batch.rows, columns)),
                          kDenseSharedBytes, work)
                 .Tell(error, "launch");
    });
    int32_t found = 0;
    if (code == WEIR_OK) code = ReadBack(stream, &found, singular, sizeof found).Tell(error, "read");
    return code != WEIR_OK || found == 0 ? code : error.InvalidArgument(message);
  }
};

struct Lu {
  int32_t Compute(Context& ctx) {
    LuCall call;
    Buffer<const void> input;
    Buffer<void> lu, p;
    const sdk::Error& error = ctx.error();
    if (const int32_t code = ctx.Input(0, &input); code != WEIR_OK) return code;
    if (input.rank() < 2) return error.InvalidArgument("Input tensor must have rank >= 2, got ", input.rank());
    int32_t code = call.batch.Read(error, 0, input.shape(), !functors::HasNoElements(input.shape()));
    if (code == WEIR_OK) code = call.batch.CheckSquare(error);
    if (code == WEIR_OK) code = ctx.Output(0, input.shape(), &lu);
    if (code == WEIR_OK) code = ctx.Output(1, weir_shape{input.rank() - 1, 0, input.shape().dims}, &p);
    if (code != WEIR_OK) return code;
    call.from = AddressOf(input);
    call.factors = AddressOf(lu);
    if (code = call.Run(ctx, input.dtype(), "Input is not invertible."); code != WEIR_OK) return code;
    const int64_t n = call.batch.rows;
    const WriteOrderWork write{call.order, static_cast<char*>(AddressOf(p)), n, Integer{p.dtype()}};
    return Launch(StreamOf(ctx), call.batch.count * n, write).Tell(error, "launch");
  }
};

struct MatrixInverse {
  bool adjoint = false;
  int32_t Prepare(const sdk::Node& node, const sdk::Error&) {
    adjoint = node.Bool("adjoint");
    return WEIR_OK;
  }
  int32_t Compute(Context& ctx) {
    LuCall call;
    Buffer<const void> input;
    Buffer<void> output;
    int32_t code = ctx.Input(0, &input);
    if (code == WEIR_OK) {
      code = call.batch.Read(ctx.error(), 0, input.shape(), !functors::HasNoElements(input.shape()));
    }
    if (code == WEIR_OK) code = call.batch.CheckSquare(ctx.error());
    if (code == WEIR_OK) code = ctx.Output(0, input.shape(), &output);
    if (code != WEIR_OK) return code;
    call.from = AddressOf(input);
    call.x = AddressOf(output);
    call.columns = call.batch.rows;
    call.adjoint = adjoint;
    return call.Run(ctx, input.dtype(), "Input is not invertible.");
  }
};

struct MatrixSolve {
  bool adjoint = false;
  int32_t Prepare(const sdk::Node& node, const sdk::Error&) {
    adjoint = node.Bool("adjoint");
    return WEIR_OK;
  }
  int32_t Compute(Context& ctx) {
    LuCall call;
    MatrixBatch sides;
    Buffer<const void> matrix, rhs;
    Buffer<void> output;
    const sdk::Error& error = ctx.error();
    int32_t code = ctx.Input(0, &matrix);
    if (code == WEIR_OK) code = ctx.Input(1, &rhs);
    if (code != WEIR_OK) return code;
    const bool any = !functors::HasNoElements(rhs.shape());
    code = call.batch.Read(error, 0, matrix.shape(), any);
    if (code == WEIR_OK) code = sides.Read(error, 1, rhs.shape(), any);
    if (code == WEIR_OK) code = functors::CheckSystem(error, call.batch, matrix.shape(), sides, rhs.shape());
    if (code == WEIR_OK) code = ctx.Output(0, rhs.shape(), &output);
    if (code != WEIR_OK) return code;
    call.from = AddressOf(matrix);
    call.right = AddressOf(rhs);
    call.x = AddressOf(output);
    call.columns = sides.columns;
    call.adjoint = adjoint;
    return call.Run(ctx, matrix.dtype(), "Input matrix is not invertible.");
  }
};

template <class C>
struct TriangularWork {
  Ptr<const C> matrix, right;
  Ptr<C> x;
  Broadcasting<2> batches;
  int64_t n, columns;
  bool lower, adjoint;
  template <class Block>
  WEIR_GPU_FN void operator()(Block& block) const {
    int64_t at[2];
    batches.At(block.index(), at);
    const MaybeAdjoint<C> given{matrix.get() + at[0] * n * n, n, adjoint};
    const C* const from = right.get() + at[1] * n * columns;
    C* const to = x.get() + block.index() * n * columns;
    block.ForEachThread([&](int t) {
      for (int64_t e = t; e < n * columns; e += block.threads()) to[e] = from[e];
    });
    SolveTriangle(block, given, n, lower != adjoint, false, to, columns);
  }
};
struct TriangularSolve : functors::TriangularPlan {
  Broadcasting<2> batches;
  int32_t Prepare(Prep& prep) {
    const int32_t code = Plan(prep);
    return code != WEIR_OK || empty ? code : PlanBatches(prep, &batches);
  }
  int32_t Run(Env& env, AnyInput matrix, AnyInput rhs, AnyOutput x) const {
    if (empty) return WEIR_OK;
    int32_t code = WEIR_OK;
    WithStorage<kFields>(x.dtype(), [&](auto storage) {
      using C = typename decltype(storage)::C;
      code = LaunchBlocks(env, x.size() / (n * columns), MatrixThreads(n, columns), kDenseSharedBytes,
                          TriangularWork<C>{ConstMatrices<C>(matrix), ConstMatrices<C>(rhs), Matrices<C>(x), batches, n,
                                            columns, lower, adjoint});
    });
    return code;
  }
};

/// Householder reflections in LAPACK's form: R on and above the diagonal, the v, whose first element is 1, below.
template <class C>
struct QrWork {
  Ptr<const C> from;
  Ptr<C> qr, taus, q, r;
  int64_t rows, columns, inner;  // inner: columns of q
  template <class Block>
  WEIR_GPU_FN void operator()(Block& block) const {
    const int64_t at = block.index(), steps = rows < columns ? rows : columns;
    C* const x = qr.get() + at * rows * columns;
    C* const tau = taus.get() + at * steps;
    C* const unitary = q.get() + at * rows * inner;
    C* const upper = r.get() + at * inner * columns;
    block.ForEachThread([&](int t) {
      for (int64_t e = t; e < rows * columns; e += block.threads()) x[e] = from[at * rows * columns + e];
      for (int64_t e = t; e < rows * inner; e += block.threads()) unitary[e] = e / inner == e % inner ? C(1) : C(0);
    });
    for (int64_t k = 0; k < steps; ++k) {
      const RealOf<C>* const tail = ColumnSquares(block, x, rows, columns, k, k + 1);
      block.ForEachThread([&](int t) {
        const Reflection<C> reflection(x[k * columns + k], *tail);
        if (t == 0) tau[k] = reflection.tau;
        if (reflection.tau == C(0)) return;
        for (int64_t i = k + 1 + t; i < rows; i += block.threads()) {
          x[i * columns + k] = x[i * columns + k] / reflection.divisor;
        }
      });
      block.ForEachThread([&](int t) {
        if (t == 0 && tau[k] != C(0)) x[k * columns + k] = C(Reflection<C>(x[k * columns + k], *tail).beta);
      });
      Reflect(block, x, rows, columns, k, k, tau[k], x, columns, k + 1);
    }
    for (int64_t k = steps; k-- > 0;) {
      Reflect(block, x, rows, columns, k, k, functors::Conjugated(tau[k]), unitary, inner, 0);
    }
    block.ForEachThread([&](int t) {
      for (int64_t e = t; e < inner * columns; e += block.threads()) {
        const int64_t i = e / columns;
        upper[e] = e % columns >= i && i < steps ? x[e] : C(0);
      }
    });
  }
};
struct Qr {
  MatrixBatch batch;
  bool full = false;
  int32_t Prepare(Prep& prep) {
    full = prep.node().Bool("full_matrices");
    if (const int32_t code = batch.Plan(prep); code != WEIR_OK || batch.count == 0) return code;
    const int64_t elements = batch.count * (batch.size() + batch.inner());
    if (elements > 0) prep.Scratch(static_cast<uint64_t>(elements) * sdk::SizeOf(prep.input(0).dtype));
    return WEIR_OK;
  }
  int32_t Run(Env& env, AnyInput x, AnyOutput q, AnyOutput r, sdk::Scratch<char> scratch) const {
    int32_t code = WEIR_OK;
    WithStorage<kFields>(x.dtype(), [&](auto storage) {
      using C = typename decltype(storage)::C;
      C* const factors = reinterpret_cast<C*>(scratch.data());
      const int64_t inner = full ? batch.rows : batch.inner();
      code =
          LaunchBlocks(env, batch.count, MatrixThreads(batch.rows, std::max(batch.columns, inner)), kDenseSharedBytes,
                       QrWork<C>{ConstMatrices<C>(x), factors, factors + batch.count * batch.size(), Matrices<C>(q),
                                 Matrices<C>(r), batch.rows, batch.columns, inner});
    });
    return code;
  }
};

}  // namespace

void AddLinearAlgebra(sdk::KernelTable& k) {
  const auto add = [](sdk::Kernel& kernel) -> sdk::Kernel& {
    return kernel.Restrict("T", kFieldBits).Class(WEIR_CLASS_GEMM);
  };
  const auto waits = [&](sdk::Kernel& kernel) { add(kernel).Flags(WEIR_KERNEL_STREAM); };
  add(k.Add<Cholesky>("Cholesky"));
  add(k.Add<MatrixDeterminant>("MatrixDeterminant"));
  add(k.Add<LogMatrixDeterminant>("LogMatrixDeterminant"));
  add(k.Add<TriangularSolve>("MatrixTriangularSolve"));
  // The batched forms of old graphs.
  const auto old = [](sdk::Kernel& kernel) -> sdk::Kernel& {
    return kernel.Restrict("T", kFloatBits).Class(WEIR_CLASS_GEMM);
  };
  old(k.Add<TriangularSolve>("BatchMatrixTriangularSolve"));
  old(k.Add<Cholesky>("BatchCholesky"));
  k.Add<MatrixDeterminant>("BatchMatrixDeterminant").Restrict("T", kFieldBits).Class(WEIR_CLASS_GEMM);
  old(k.Add<MatrixInverse>("BatchMatrixInverse")).Flags(WEIR_KERNEL_STREAM);
  old(k.Add<MatrixSolve>("BatchMatrixSolve")).Flags(WEIR_KERNEL_STREAM);
  add(k.Add<Qr>("Qr"));
  k.Add<Lu>("Lu")
      .Restrict("T", kFieldBits)
      .Restrict("output_idx_type", kIndexBits)
      .Flags(WEIR_KERNEL_STREAM)
      .Class(WEIR_CLASS_GEMM);
  waits(k.Add<MatrixInverse>("MatrixInverse"));
  waits(k.Add<MatrixSolve>("MatrixSolve"));
}

}  // namespace weir::gpu
