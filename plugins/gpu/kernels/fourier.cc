// Discrete Fourier transforms along the last axes, computed in double precision as on the CPU: one instance serves both
// types. Lines of a power of two are transformed in shared memory; longer ones as a matrix, by columns and then rows
// (Bailey's four steps); others become a convolution of a power of two (Bluestein).
#include "plugins/functors/fourier_plan.h"

#include <algorithm>
#include <bit>
#include <numbers>

#include "plugins/gpu/kernels/families.h"
#include "plugins/gpu/kernels/storage.h"
#include "sdk/cpp/kernel.h"

namespace weir::gpu {
namespace {

using functors::FourierKind;
using sdk::AnyInput;
using sdk::AnyOutput;
using sdk::Env;

constexpr int64_t kMostInBlock = 2048;  // elements of a line, or of several, that a block transforms
constexpr int64_t kMostLength = kMostInBlock * kMostInBlock;
constexpr int kFourierThreads = 256;

/// e^(-2 pi i part / whole), with part < whole.
WEIR_HD Complex128 RootOf(int64_t part, int64_t whole) {
  const double angle = -2 * std::numbers::pi * (static_cast<double>(part) / static_cast<double>(whole));
  return Complex128(std::cos(angle), std::sin(angle));
}

/// What lines are read from or written to. Steps count elements.
struct FourierSide {
  enum class Form : uint8_t { kReal, kComplex, kHalf };  // kHalf: the upper frequencies are conjugates of the lower
  Ptr<char> memory;
  Form form = Form::kComplex;
  bool wide = true;
  int64_t steps[3] = {0, 0, 0};  // between lines
  int64_t step = 1;              // along a line

  WEIR_GPU_FN Complex128 Load(int64_t at) const {
    if (form != Form::kReal) return AnyComplex{wide}.Load(memory.get(), at);
    return Complex128(AnyFloat{wide ? uint32_t{WEIR_FLOAT64} : uint32_t{WEIR_FLOAT32}}.Load(memory.get(), at));
  }
  WEIR_GPU_FN void Store(int64_t at, Complex128 z) const {
    if (form != Form::kReal) {
      AnyComplex{wide}.Store(memory.get(), at, z);
    } else {
      AnyFloat{wide ? uint32_t{WEIR_FLOAT64} : uint32_t{WEIR_FLOAT32}}.Store(memory.get(), at, z.re);
    }
  }
};

/// Transforms of n = 2^log_n elements each, `group` of them by a block. A line of `whole` elements consists of `parts`
/// such transforms: element e of part s is element e * from_e + s * from_s of the line and goes to e * to_e + s * to_s.
struct FourierPass {
  FourierSide from, to;
  int64_t dims[3] = {1, 1, 1};  // of the lines
  int64_t lines = 1, parts = 1, group = 1;
  int log_n = 0;
  int64_t from_e = 1, from_s = 0, to_e = 1, to_s = 0;
  int64_t whole = 1;      // elements of a line
  int64_t spectrum = 1;   // frequencies of which the source has the lower half
  int64_t valid = 1;      // elements that are read, others are 0
  int64_t kept = 1;       // elements that are written
  bool twiddles = false;  // element e of part s is turned by the root e * s of the line
  bool conjugate_first = false, conjugate_before = false, conjugate_last = false;
  double scale = 1;
  Ptr<const Complex128> before, after;  // factors of elements read and written, or null

  WEIR_GPU_FN int64_t Start(const FourierSide& side, int64_t line) const {
    const int64_t c = line % dims[2], rest = line / dims[2];
    return c * side.steps[2] + rest % dims[1] * side.steps[1] + rest / dims[1] * side.steps[0];
  }
  WEIR_GPU_FN Complex128 Read(int64_t line, int64_t index) const {
    if (index >= valid) return Complex128();
    const bool half = from.form == FourierSide::Form::kHalf, mirrored = half && 2 * index > spectrum;
    Complex128 z = from.Load(Start(from, line) + (mirrored ? spectrum - index : index) * from.step);
    if (half && (index == 0 || 2 * index == spectrum)) z.im = 0;
    if (mirrored != conjugate_first) z.im = -z.im;
    return before ? z * before[index] : z;
  }
  WEIR_GPU_FN void Write(int64_t line, int64_t index, Complex128 z) const {
    if (index >= kept) return;
    if (conjugate_before) z.im = -z.im;
    if (after) z = z * after[index];
    z = Complex128(z.re * scale, conjugate_last ? -z.im * scale : z.im * scale);
    to.Store(Start(to, line) + index * to.step, z);
  }
  WEIR_GPU_FN int64_t Reversed(int64_t e) const {
    int64_t reversed = 0;
    for (int bit = 0; bit < log_n; ++bit) reversed = reversed << 1 | (e >> bit & 1);
    return reversed;
  }
  /// Element i of a block's elements as its transform and its place there. Neighbours in memory have neighbours' i.
  WEIR_GPU_FN void Split(int64_t i, bool along, int64_t* transform, int64_t* e) const {
    *transform = along ? i >> log_n : i % group;
    *e = along ? i & ((int64_t{1} << log_n) - 1) : i / group;
  }

  template <class Block>
  WEIR_GPU_FN void operator()(Block& block) const {
    const int64_t n = int64_t{1} << log_n, all = group << log_n, first = block.index() * group, end = lines * parts;
    Complex128* const z = block.template Shared<Complex128>(0);
    Complex128* const roots = z + all;
    const bool reads_along = from.step * from_e <= (parts > 1 ? from.step * from_s : from.steps[2]);
    const bool writes_along = to.step * to_e <= (parts > 1 ? to.step * to_s : to.steps[2]);
    block.ForEachThread([&](int t) {
      for (int64_t i = t; i < n / 2; i += block.threads()) roots[i] = RootOf(i, n);
      for (int64_t i = t; i < all; i += block.threads()) {
        int64_t transform, e;
        Split(i, reads_along, &transform, &e);
        const int64_t at = first + transform, s = at % parts;
        z[transform * n + Reversed(e)] = at < end ? Read(at / parts, e * from_e + s * from_s) : Complex128();
      }
    });
    for (int stage = 0; stage < log_n; ++stage) {
      const int64_t half = int64_t{1} << stage;
      block.ForEachThread([&](int t) {
        for (int64_t i = t; i < all / 2; i += block.threads()) {
          const int64_t k = i & (half - 1), at = (i >> stage << (stage + 1)) + k;
          const Complex128 lower = z[at + half] * roots[k << (log_n - 1 - stage)], upper = z[at];
          z[at] = upper + lower;
          z[at + half] = upper - lower;
        }
      });
    }
    block.ForEachThread([&](int t) {
      for (int64_t i = t; i < all; i += block.threads()) {
        int64_t transform, e;
        Split(i, writes_along, &transform, &e);
        const int64_t at = first + transform, s = at % parts;
        if (at >= end) continue;
        Complex128 value = z[transform * n + e];
        if (twiddles) value = value * RootOf(e * s, whole);
        Write(at / parts, e * to_e + s * to_s, value);
      }
    });
  }

  int32_t Enqueue(const Env& env) const {
    FourierPass pass = *this;
    const int64_t n = int64_t{1} << log_n, transforms = lines * parts;
    pass.group = std::clamp<int64_t>(kMostInBlock / 2 / n, 1, 64);
    const int64_t blocks = transforms / pass.group + (transforms % pass.group != 0 ? 1 : 0);
    const auto threads = static_cast<int>(std::clamp<int64_t>(pass.group * n / 2, 32, kFourierThreads));
    const auto bytes = static_cast<uint32_t>((pass.group * n + n / 2) * static_cast<int64_t>(sizeof(Complex128)));
    return LaunchBlocks(env, blocks, threads, bytes, pass);
  }
};

/// The chirp e^(-pi i k^2 / n) and the sequence whose transform Bluestein's convolution multiplies by, of m elements.
struct ChirpWork {
  Ptr<Complex128> chirp, kernel;
  int64_t n, m;
  WEIR_GPU_FN void operator()(int64_t i) const {
    const int64_t k = i < n ? i : m - i;  // the sequence is even
    if (k >= n) {
      kernel[i] = Complex128();
      return;
    }
    const Complex128 z = RootOf(k * k % (2 * n), 2 * n);
    if (i < n) chirp[i] = z;
    kernel[i] = Complex128(z.re, -z.im);
  }
};

/// Where the parts of a call's scratch memory begin, in complex numbers. In front of them is what lies between axes.
struct FourierMemory {
  int64_t columns = 0, padded = 0, tables = 0, all = 0;
};

bool IsPowerOfTwo(int64_t n) { return std::has_single_bit(static_cast<uint64_t>(n)); }
/// The power of two that n elements are transformed by.
int64_t LengthFor(int64_t n) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(IsPowerOfTwo(n) ? n : 2 * n - 1)));
}

/// Enqueues a transform of whole lines of a power of two, in one or two passes.
int32_t TransformPowers(const Env& env, FourierPass pass, Complex128* columns) {
  const int log_whole = std::countr_zero(static_cast<uint64_t>(pass.whole));
  pass.log_n = log_whole;
  if (pass.whole <= kMostInBlock) return pass.Enqueue(env);
  // A matrix of `down` rows and `across` columns; in between it lies in `columns`.
  const int64_t down = int64_t{1} << (log_whole / 2), across = pass.whole / down;
  FourierSide between;
  between.memory = Ptr<char>(reinterpret_cast<char*>(columns));
  between.steps[2] = pass.whole;
  between.steps[1] = between.steps[2] * pass.dims[2];
  between.steps[0] = between.steps[1] * pass.dims[1];
  FourierPass rows = pass;
  rows.from = between;
  rows.valid = pass.whole;
  rows.conjugate_first = false;
  rows.before = {};
  rows.log_n = std::countr_zero(static_cast<uint64_t>(across));
  rows.parts = down;
  rows.from_s = across;
  rows.to_e = down;
  rows.to_s = 1;
  pass.to = between;
  pass.kept = pass.whole;
  pass.conjugate_before = pass.conjugate_last = false;
  pass.after = {};
  pass.scale = 1;
  pass.twiddles = true;
  pass.log_n = log_whole / 2;
  pass.parts = across;
  pass.from_e = pass.to_e = across;
  pass.from_s = pass.to_s = 1;
  const int32_t code = pass.Enqueue(env);
  return code != WEIR_OK ? code : rows.Enqueue(env);
}

/// Enqueues a transform of lines of any length.
int32_t TransformLines(const Env& env, const FourierPass& pass, Complex128* memory, const FourierMemory& at) {
  Complex128* const columns = memory + at.columns;
  if (IsPowerOfTwo(pass.whole)) return TransformPowers(env, pass, columns);
  const int64_t n = pass.whole, m = LengthFor(n);
  Complex128 *const chirp = memory + at.tables, *const kernel = chirp + n, *const padded = memory + at.padded;
  int32_t code = Launch(env, m, ChirpWork{chirp, kernel, n, m});
  if (code != WEIR_OK) return code;
  FourierPass table;
  table.from.memory = table.to.memory = Ptr<char>(reinterpret_cast<char*>(kernel));
  table.whole = table.valid = table.kept = m;
  if (code = TransformPowers(env, table, columns); code != WEIR_OK) return code;
  FourierSide between;
  between.memory = Ptr<char>(reinterpret_cast<char*>(padded));
  between.steps[2] = m;
  between.steps[1] = between.steps[2] * pass.dims[2];
  between.steps[0] = between.steps[1] * pass.dims[1];
  FourierPass there = pass, back = pass;
  there.to = between;
  there.whole = there.kept = m;
  there.before = chirp;
  there.after = kernel;
  there.conjugate_last = false;
  there.scale = 1;
  if (code = TransformPowers(env, there, columns); code != WEIR_OK) return code;
  back.from = between;
  back.whole = back.valid = m;
  back.conjugate_first = back.conjugate_before = true;
  back.after = chirp;
  back.scale = pass.scale / static_cast<double>(m);
  return TransformPowers(env, back, columns);
}

struct DeviceFourier : functors::FourierPlan {
  int64_t batch = 0;
  FourierMemory memory;

  int32_t Make(sdk::Prep& prep) {
    if (const int32_t code = Read(prep); code != WEIR_OK) return code;
    if (empty || HasNothing()) return WEIR_OK;
    batch = prep.size(0) / (in[0] * in[1] * in[2]);
    const int64_t all = batch * lengths[0] * lengths[1] * Columns();
    const auto transformed = std::count_if(lengths.begin(), lengths.end(), [](int64_t n) { return n > 1; });
    int64_t columns = 0, padded = 0, tables = 0;
    for (size_t i = 0; i < 3; ++i) {
      const int64_t n = lengths[i], m = LengthFor(n), lines = i == 2 ? all / Columns() : all / n;
      if (m > kMostLength) {
        return prep.error().Unimplemented("lines of ", n, " elements are not transformed on the device");
      }
      if (m > kMostInBlock) columns = std::max(columns, lines * m);
      if (m == n) continue;
      padded = std::max(padded, lines * m);
      tables = std::max(tables, n + m);
    }
    memory.columns = transformed > 1 ? all : 0;
    memory.padded = memory.columns + columns;
    memory.tables = memory.padded + padded;
    memory.all = memory.tables + tables;
    prep.Scratch(static_cast<uint64_t>(memory.all) * sizeof(Complex128));
    return WEIR_OK;
  }
  bool HasNothing() const { return std::min({lengths[0], lengths[1], lengths[2]}) == 0; }

  static void Lay(FourierSide* side, const std::array<int64_t, 3>& dims, size_t axis) {
    const int64_t steps[4] = {dims[0] * dims[1] * dims[2], dims[1] * dims[2], dims[2], 1};
    side->step = steps[axis + 1];
    for (size_t i = 0, at = 0; i < 4; ++i) {
      if (i != axis + 1) side->steps[at++] = steps[i];
    }
  }

  int32_t All(const Env& env, const AnyInput& x, const AnyOutput& y, void* scratch) const {
    if (y.size() == 0) return WEIR_OK;
    if (empty || HasNothing()) {
      return Fill(env, y.data(), 0, static_cast<uint64_t>(y.size()) * sdk::SizeOf(y.dtype()));
    }
    using Form = FourierSide::Form;
    const auto side = [](const auto& view) {
      FourierSide made;
      made.memory = Ptr<char>(const_cast<char*>(static_cast<const char*>(static_cast<const void*>(view.data()))));
      const bool complex = (kComplexBits & WEIR_DTYPE_BIT(view.dtype())) != 0;
      made.form = complex ? Form::kComplex : Form::kReal;
      made.wide = view.dtype() == WEIR_FLOAT64 || view.dtype() == WEIR_COMPLEX128;
      return made;
    };
    // The axes that change anything; the last one is the first, but for spectra of real numbers.
    size_t order[3], count = 0;
    for (size_t k = 0; k < 3; ++k) {
      const size_t axis = kind == FourierKind::kFromHalf ? k : 2 - k;
      if (lengths[axis] > 1) order[count++] = axis;
    }
    if (count == 0) order[count++] = 2;
    const std::array<int64_t, 3> between = {lengths[0], lengths[1], Columns()};
    auto* const work = static_cast<Complex128*>(scratch);
    for (size_t k = 0; k < count; ++k) {
      const size_t axis = order[k];
      FourierPass pass;
      pass.dims[0] = batch;
      pass.dims[1] = axis == 0 ? lengths[1] : lengths[0];
      pass.dims[2] = axis == 2 ? lengths[1] : Columns();
      pass.lines = pass.dims[0] * pass.dims[1] * pass.dims[2];
      FourierSide inner;
      inner.memory = Ptr<char>(reinterpret_cast<char*>(work));
      pass.from = k == 0 ? side(x) : inner;
      pass.to = k + 1 == count ? side(y) : inner;
      Lay(&pass.from, k == 0 ? in : between, axis);
      Lay(&pass.to, k + 1 == count ? out : between, axis);
      if (axis == 2 && kind == FourierKind::kFromHalf) pass.from.form = Form::kHalf;
      pass.whole = pass.spectrum = pass.valid = lengths[axis];
      pass.kept = axis == 2 ? out[2] : lengths[axis];
      pass.conjugate_first = pass.conjugate_last = inverse;
      pass.scale = inverse ? 1 / static_cast<double>(lengths[axis]) : 1;
      if (const int32_t code = TransformLines(env, pass, work, memory); code != WEIR_OK) return code;
    }
    return WEIR_OK;
  }
};

template <int kAxes, bool kInverse>
struct FourierOp : DeviceFourier {
  int32_t Prepare(sdk::Prep& prep) {
    axes = kAxes;
    inverse = kInverse;
    return Make(prep);
  }
  int32_t Run(Env& env, AnyInput x, AnyOutput y, sdk::Scratch<char> scratch) const {
    return All(env, x, y, scratch.data());
  }
};
template <int kAxes, bool kInverse>
struct HalfFourierOp : DeviceFourier {
  int32_t Prepare(sdk::Prep& prep) {
    axes = kAxes;
    inverse = kInverse;
    kind = kInverse ? FourierKind::kFromHalf : FourierKind::kToHalf;
    return Make(prep);
  }
  int32_t Run(Env& env, AnyInput x, sdk::HostIntegers, AnyOutput y, sdk::Scratch<char> scratch) const {
    return All(env, x, y, scratch.data());
  }
};

#if !defined(WEIR_KERNEL_DTYPES_SHORT)  // which has no complex types
template <int kAxes>
void AddFourierOf(sdk::KernelTable& k, const std::string& suffix) {
  constexpr double kFlops = 30;  // per element
  k.Add<FourierOp<kAxes, false>>("FFT" + suffix).Restrict("Tcomplex", kComplexBits).Class(WEIR_CLASS_FFT, kFlops);
  k.Add<FourierOp<kAxes, true>>("IFFT" + suffix).Restrict("Tcomplex", kComplexBits).Class(WEIR_CLASS_FFT, kFlops);
  const auto add = [](sdk::Kernel& kernel, uint32_t real, uint32_t complex) {
    kernel.Restrict("Treal", {real}).Restrict("Tcomplex", {complex}).Class(WEIR_CLASS_FFT, kFlops);
  };
  for (const bool wide : {false, true}) {
    const uint32_t real = wide ? WEIR_FLOAT64 : WEIR_FLOAT32, complex = wide ? WEIR_COMPLEX128 : WEIR_COMPLEX64;
    add(k.Add<HalfFourierOp<kAxes, false>>("RFFT" + suffix), real, complex);
    add(k.Add<HalfFourierOp<kAxes, true>>("IRFFT" + suffix), real, complex);
  }
}
#endif

}  // namespace

void AddFourier([[maybe_unused]] sdk::KernelTable& k) {
#if !defined(WEIR_KERNEL_DTYPES_SHORT)
  AddFourierOf<1>(k, "");
  AddFourierOf<2>(k, "2D");
  AddFourierOf<3>(k, "3D");
#endif
}

}  // namespace weir::gpu
