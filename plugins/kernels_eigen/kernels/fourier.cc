// Discrete Fourier transforms along the last axes, computed in double precision: FFT, IFFT, RFFT, IRFFT and those of
// two and three axes.
#include "plugins/kernels_eigen/kernels/fourier.h"

#include <array>

#include "plugins/functors/fourier_plan.h"
#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/function_families.h"
#include "sdk/cpp/kernel.h"

namespace weir::kernels_eigen {
namespace {

using Wide = std::complex<double>;

using functors::FourierKind;

struct FourierLines : functors::FourierPlan {
  std::array<AnyFourier, 3> transforms;
  int64_t block = 1;  // elements of one transform
  int64_t longest = 1;

  int32_t Make(sdk::Prep& prep) {
    if (const int32_t code = Read(prep); code != WEIR_OK) return code;
    if (empty) {
      block = 0;
      return WEIR_OK;
    }
    int64_t work = 0;
    for (size_t i = 0; i < 3; ++i) {
      transforms[i] = AnyFourier(lengths[i]);
      block *= lengths[i];
      longest = std::max(longest, lengths[i]);
      work = std::max(work, transforms[i].work());
    }
    prep.Scratch(static_cast<uint64_t>(block + longest + work) * sizeof(Wide));
    return WEIR_OK;
  }

  /// Transforms each line of axis i of a block; of axes before the last only the lines [0, last) along that one.
  void Along(size_t i, int64_t last, Wide* block_data, Wide* line) const {
    const std::array<int64_t, 3> dims = {lengths[0], lengths[1], lengths[2]};
    if (dims[i] == 1) return;
    const int64_t step = i == 2 ? 1 : i == 1 ? dims[2] : dims[1] * dims[2];
    const AnyFourier& transform = transforms[i];
    for (int64_t a = 0; a < (i == 0 ? 1 : dims[0]); ++a) {
      for (int64_t b = 0; b < (i == 1 ? 1 : dims[1]); ++b) {
        for (int64_t c = 0; c < (i == 2 ? 1 : last); ++c) {
          Wide* begin = block_data + (a * dims[1] + b) * dims[2] + c;
          if (step == 1) {
            transform.Run(begin, inverse, line + longest);
            continue;
          }
          for (int64_t k = 0; k < dims[i]; ++k) line[k] = begin[k * step];
          transform.Run(line, inverse, line + longest);
          for (int64_t k = 0; k < dims[i]; ++k) begin[k * step] = line[k];
        }
      }
    }
  }

  /// The frequencies beyond n / 2 of each line of the last axis are the conjugates of those below.
  void Complete(Wide* block_data) const {
    const int64_t n = lengths[2];
    for (int64_t row = 0; row < lengths[0] * lengths[1]; ++row) {
      Wide* line = block_data + row * n;
      line[0] = line[0].real();
      if (n % 2 == 0) line[n / 2] = line[n / 2].real();
      for (int64_t k = n / 2 + 1; k < n; ++k) line[k] = std::conj(line[n - k]);
    }
  }

  template <class T, class U>
  void Block(const T* x, U* y, Wide* memory) const {
    Wide* line = memory + block;
    const int64_t taken = kind == FourierKind::kFromHalf ? lengths[2] / 2 + 1 : lengths[2];
    for (int64_t a = 0; a < lengths[0]; ++a) {
      for (int64_t b = 0; b < lengths[1]; ++b) {
        const T* from = x + (a * in[1] + b) * in[2];
        std::copy(from, from + taken, memory + (a * lengths[1] + b) * lengths[2]);
      }
    }
    if (kind == FourierKind::kFromHalf) {
      Along(0, taken, memory, line);
      Along(1, taken, memory, line);
      Complete(memory);
      Along(2, taken, memory, line);
    } else {
      for (size_t i = 3; i-- > 0;) Along(i, out[2], memory, line);
    }
    for (int64_t row = 0; row < lengths[0] * lengths[1]; ++row) {
      for (int64_t c = 0; c < out[2]; ++c) Store(memory[row * lengths[2] + c], y + row * out[2] + c);
    }
  }

  template <class R>
  static void Store(Wide z, std::complex<R>* to) {
    *to = {static_cast<R>(z.real()), static_cast<R>(z.imag())};
  }
  template <class R>
  static void Store(Wide z, R* to) {
    *to = static_cast<R>(z.real());
  }

  template <class T, class U>
  void All(sdk::View<const T> input, sdk::View<U> output, Wide* memory) const {
    if (input.size() == 0 || block == 0) {
      std::fill_n(output.data(), output.size(), U());
      return;
    }
    const int64_t from = in[0] * in[1] * in[2], to = out[0] * out[1] * out[2];
    for (int64_t i = 0; i < input.size() / from; ++i) Block(input.data() + i * from, output.data() + i * to, memory);
  }
};

template <int kAxes, bool kInverse>
struct Fourier : FourierLines {
  int32_t Prepare(sdk::Prep& prep) {
    axes = kAxes;
    inverse = kInverse;
    return Make(prep);
  }
  template <class T>
  void Run(sdk::View<const T> input, sdk::View<T> output, sdk::Scratch<Wide> scratch) const {
    All(input, output, scratch.data());
  }
};

template <int kAxes, bool kInverse>
struct RealFourierOp : FourierLines {
  int32_t Prepare(sdk::Prep& prep) {
    axes = kAxes;
    inverse = kInverse;
    kind = kInverse ? FourierKind::kFromHalf : FourierKind::kToHalf;
    return Make(prep);
  }
};

template <int kAxes>
struct ToHalf : RealFourierOp<kAxes, false> {
  template <class R>
  void Run(sdk::View<const R> input, sdk::HostIntegers, sdk::View<std::complex<R>> output,
           sdk::Scratch<Wide> scratch) const {
    this->All(input, output, scratch.data());
  }
};

template <int kAxes>
struct FromHalf : RealFourierOp<kAxes, true> {
  template <class R>
  void Run(sdk::View<const std::complex<R>> input, sdk::HostIntegers, sdk::View<R> output,
           sdk::Scratch<Wide> scratch) const {
    this->All(input, output, scratch.data());
  }
};

#if !defined(WEIR_KERNEL_DTYPES_SHORT)  // which has no complex types
template <int kAxes>
void AddAxes(sdk::KernelTable& k, const std::string& suffix) {
  constexpr double kFlops = 30;  // per element
  k.Add<Fourier<kAxes, false>>("FFT" + suffix, sdk::Attr("Tcomplex", kComplex)).Class(WEIR_CLASS_FFT, kFlops);
  k.Add<Fourier<kAxes, true>>("IFFT" + suffix, sdk::Attr("Tcomplex", kComplex)).Class(WEIR_CLASS_FFT, kFlops);
  const auto add = [&](auto real, uint32_t complex) {
    k.Add<ToHalf<kAxes>>("RFFT" + suffix, real).Restrict("Tcomplex", {complex}).Class(WEIR_CLASS_FFT, kFlops);
    k.Add<FromHalf<kAxes>>("IRFFT" + suffix, real).Restrict("Tcomplex", {complex}).Class(WEIR_CLASS_FFT, kFlops);
  };
  add(sdk::Attr("Treal", sdk::Types<float>()), WEIR_COMPLEX64);
  add(sdk::Attr("Treal", sdk::Types<double>()), WEIR_COMPLEX128);
}
#endif

}  // namespace

void AddFourier([[maybe_unused]] sdk::KernelTable& k) {
#if !defined(WEIR_KERNEL_DTYPES_SHORT)
  AddAxes<1>(k, "");
  AddAxes<2>(k, "2D");
  AddAxes<3>(k, "3D");
#endif
}

}  // namespace weir::kernels_eigen
