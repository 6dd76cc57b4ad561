// Convolutions in two and three dimensions and their gradients, as products of matrices of windows.
#include <algorithm>
#include <memory>
#include <type_traits>

#include "plugins/functors/biased_convolution.h"
#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/families.h"
#include "plugins/kernels_eigen/kernels/gemm.h"
#include "plugins/kernels_eigen/kernels/images.h"
#include "plugins/kernels_eigen/kernels/packed_product.h"
#include "plugins/kernels_eigen/kernels/patches.h"
#include "plugins/kernels_eigen/wrap.h"
#include "sdk/cpp/convolutions.h"
#include "sdk/cpp/kernel.h"

namespace weir::kernels_eigen {
namespace {

using sdk::Convolution;
using sdk::View;
using Direction = Convolution::Direction;

constexpr int64_t kColumnElements = 98304;  // of the windows multiplied at once: they stay in the second-level cache
constexpr double kWindowTileFlops = 4e6;    // ten times the cost of starting a tile on another thread

/// c += op(a) op(b) by plain loops, for integers.
template <class C>
void AddProduct(const sdk::Product& p, const C* a, const C* b, C* c) {
  for (int64_t i = 0; i < p.m; ++i) {
    for (int64_t q = 0; q < p.k; ++q) {
      const C factor = a[p.transpose_a ? q * p.m + i : i * p.k + q];
      C* row = c + i * p.n;
      const C* from = p.transpose_b ? b + q : b + q * p.n;
      const int64_t step = p.transpose_b ? p.k : 1;
      for (int64_t j = 0; j < p.n; ++j) row[j] = Sum(row[j], Product(factor, from[j * step]));
    }
  }
}

/// One convolution, planned for its shapes.
struct Plan {
  Convolution conv;
  Patches patches;
  int64_t chunk = 0;       // places that are multiplied at once
  bool pointwise = false;  // windows are single pixels: images are the matrices of their windows
  GemmBlocks blocks;
  std::shared_ptr<const PackedMatrix> packed;  // a constant filter of one group, in float; null for others

  int64_t rows() const { return conv.Rows(); }
  ImageLayout XImage() const { return {conv.windows.InputPlaces(), conv.in, conv.windows.channels_first}; }
  ImageLayout YImage() const { return {conv.windows.OutputPlaces(), conv.out, conv.windows.channels_first}; }
  /// Places of all images.
  int64_t places() const { return conv.windows.batch * patches.Places(); }
  int64_t FilterSize() const { return rows() * conv.out; }

  void Make() {
    patches = Patches::Of(conv.windows);
    chunk = std::clamp<int64_t>(kColumnElements / std::max<int64_t>(1, rows()), 1, std::min<int64_t>(4096, places()));
    pointwise = conv.groups == 1 && std::all_of(patches.axes.begin(), patches.axes.end(), [](const sdk::WindowAxis& a) {
                  return a.window == 1 && a.stride == 1 && a.input == a.output;
                });
  }
  /// The product for `count` places.
  sdk::Product ProductOf(Direction direction, int64_t count) const {
    sdk::Product p{count, conv.group_out(), rows()};
    if (direction == Direction::kByInput) p = {count, rows(), conv.group_out(), false, true};
    if (direction == Direction::kByFilter) p = {rows(), conv.group_out(), count, true, false};
    return p;
  }
};

/// The arithmetic of a plan in type C, with its memory.
template <class C>
class Arithmetic {
 public:
  static constexpr bool kHasGemm = std::is_floating_point_v<C>;

  Arithmetic(const Plan& plan, Direction direction, Workspace<C>& memory) : plan_(plan), direction_(direction) {
    if (plan.packed != nullptr) {
      packing_ = memory.Take(static_cast<int64_t>(PackedMatrix::ScratchBytes(plan.rows(), plan.chunk) / sizeof(C)));
    } else if constexpr (kHasGemm) {
      packing_ = memory.Take(plan.blocks.Elements());
    }
    if (!plan.pointwise) columns_ = memory.Take(plan.chunk * plan.rows());
    if (plan.conv.groups > 1) part_ = memory.Take(plan.chunk * plan.conv.group_out());
  }

  /// Output places [first, first + count) of images x.
  void Forward(const C* x, const C* filter, int64_t first, int64_t count, C* y) {
    const Convolution& conv = plan_.conv;
    const sdk::Product p = plan_.ProductOf(direction_, count);
    for (int64_t g = 0; g < conv.groups; ++g) {
      const C* windows = Windows(x, first, count, g);
      C* to = conv.groups == 1 ? y + first * conv.out : part_;
      if constexpr (std::is_same_v<C, float>) {
        if (plan_.packed != nullptr) return plan_.packed->Multiply(windows, plan_.rows(), 1, count, to, packing_);
      }
      std::fill_n(to, p.m * p.n, C());
      Multiply(p, windows, filter + g * plan_.rows() * conv.group_out(), to);
      if (conv.groups == 1) continue;
      for (int64_t i = 0; i < count; ++i) {
        std::copy_n(to + i * p.n, p.n, y + (first + i) * conv.out + g * p.n);
      }
    }
  }

  /// Adds the gradients of these output places to the images dx, which are zeros before the first call.
  void ByInput(const C* dy, const C* filter, int64_t first, int64_t count, C* dx) {
    const Convolution& conv = plan_.conv;
    const sdk::Product p = plan_.ProductOf(direction_, count);
    for (int64_t g = 0; g < conv.groups; ++g) {
      const C* group = Group(dy, first, count, g);
      const C* weights = filter + g * plan_.rows() * conv.group_out();
      if (plan_.pointwise) {
        Multiply(p, group, weights, dx + first * conv.in);
        continue;
      }
      std::fill_n(columns_, p.m * p.n, C());
      Multiply(p, group, weights, columns_);
      AddPatches(plan_.patches, columns_, first, count, {g * conv.group_in(), conv.group_in()}, dx);
    }
  }

  /// Adds the gradients by these output places to the filter dw, [group][row, output].
  void ByFilter(const C* x, const C* dy, int64_t first, int64_t count, C* dw) {
    const Convolution& conv = plan_.conv;
    const sdk::Product p = plan_.ProductOf(direction_, count);
    for (int64_t g = 0; g < conv.groups; ++g) {
      const C* windows = Windows(x, first, count, g);
      Multiply(p, windows, Group(dy, first, count, g), dw + g * plan_.rows() * conv.group_out());
    }
  }

  /// Calls body(first, count) for places [begin, end) in chunks.
  template <class Body>
  void ForChunks(int64_t begin, int64_t end, Body&& body) const {
    for (int64_t first = begin; first < end; first += plan_.chunk) body(first, std::min(plan_.chunk, end - first));
  }

 private:
  /// The windows of the places, in the channels of a group.
  const C* Windows(const C* x, int64_t first, int64_t count, int64_t group) {
    const Convolution& conv = plan_.conv;
    if (plan_.pointwise) return x + first * conv.in;
    CopyPatches(plan_.patches, x, first, count, {group * conv.group_in(), conv.group_in()}, columns_);
    return columns_;
  }
  /// The output channels of a group.
  const C* Group(const C* y, int64_t first, int64_t count, int64_t group) {
    const Convolution& conv = plan_.conv;
    if (conv.groups == 1) return y + first * conv.out;
    const int64_t n = conv.group_out();
    for (int64_t i = 0; i < count; ++i) std::copy_n(y + (first + i) * conv.out + group * n, n, part_ + i * n);
    return part_;
  }
  void Multiply(const sdk::Product& p, const C* a, const C* b, C* c) {
    if constexpr (kHasGemm) {
      AddGemm(p, plan_.blocks, a, b, c, packing_);
    } else {
      AddProduct(p, a, b, c);
    }
  }

  const Plan& plan_;
  Direction direction_;
  C* packing_ = nullptr;
  C* columns_ = nullptr;
  C* part_ = nullptr;
};

/// [row, output] as stored, with all outputs side by side, as [group][row, output of the group].
template <class T>
void LoadFilter(const Convolution& conv, const T* from, sdk::Compute<T>* to) {
  const int64_t rows = conv.Rows(), n = conv.group_out();
  for (int64_t g = 0; g < conv.groups; ++g) {
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t j = 0; j < n; ++j) *to++ = static_cast<sdk::Compute<T>>(from[row * conv.out + g * n + j]);
    }
  }
}
template <class T>
void StoreFilter(const Convolution& conv, const sdk::Compute<T>* from, T* to) {
  const int64_t rows = conv.Rows(), n = conv.group_out();
  for (int64_t g = 0; g < conv.groups; ++g) {
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t j = 0; j < n; ++j) to[row * conv.out + g * n + j] = static_cast<T>(*from++);
    }
  }
}
template <class T>
bool IsPlainFilter(const Convolution& conv) {
  return conv.groups == 1 && std::is_same_v<T, sdk::Compute<T>>;
}

/// The filter of a forward convolution if it is a constant that is worth packing, or null.
const float* FilterToPack(const sdk::Prep& prep, const Convolution& conv) {
  const weir_operand& filter = prep.input(1);
  const bool packs = filter.dtype == WEIR_FLOAT32 && conv.groups == 1 && PackedMatrix::FillsPanels(conv.out) &&
                     filter.value != nullptr;
  return packs ? static_cast<const float*>(filter.value->buf.host) : nullptr;
}

/// Time of products on windows, in ns, on a core with this peak. Fitted to runs.
template <Direction direction>
sdk::Cost ConvolutionCost(const sdk::Prep& prep, const weir_profile* profile, uint32_t spatial) {
  Convolution conv;
  sdk::Cost cost;
  if (conv.Plan(prep, direction, spatial, false) != WEIR_OK || conv.empty) return cost;
  const uint32_t dtype = prep.input(1).dtype;
  const double peak = sdk::PeakFlops(profile, dtype);
  const double moved = conv.Flops() / 2 / static_cast<double>(conv.group_out());  // elements of all windows
  const double repeats = dtype == WEIR_FLOAT32 || dtype == WEIR_FLOAT64 ? 1 : 2;
  cost.flops = conv.Flops();
  cost.bytes = static_cast<double>(prep.size(1) + 2 * prep.size(0)) * sdk::SizeOf(dtype);
  // Windows are copied in runs of neighbouring pixels; groups and dilated windows have a run per tap.
  const sdk::WindowAxis& width = conv.windows.axes[spatial - 1];
  const double pixels = conv.groups == 1 && width.dilation == 1 ? static_cast<double>(width.window) : 1;
  const double runs = moved / (pixels * static_cast<double>(conv.group_in()));
  cost.whole_ns = 400 + cost.flops / ((dtype == WEIR_INT32 ? 0.1 : 0.6) * peak) + repeats * (0.27 * moved + 6 * runs);
  if (direction != Direction::kForward || FilterToPack(prep, conv) == nullptr) return cost;
  const double wide = static_cast<double>(PackedMatrix::Bytes(conv.Rows(), conv.out)) /
                      (4 * static_cast<double>(conv.Rows()) * static_cast<double>(conv.out));
  cost.whole_ns = 200 + wide * cost.flops / (0.85 * peak) + 0.35 * moved + 6 * runs;
  return cost;
}

/// What the three kernels share: the plan and its memory.
template <Direction kDirection, uint32_t kSpatial>
struct Convolving {
  Plan plan;

  int32_t Prepare(sdk::Prep& prep) {
    if (const int32_t code = plan.conv.Plan(prep, kDirection, kSpatial, false); code != WEIR_OK) return code;
    if (plan.conv.empty) return WEIR_OK;
    plan.Make();
    if constexpr (kDirection == Direction::kForward) {
      if (const int32_t code = Pack(prep); code != WEIR_OK) return code;
    }
    switch (prep.input(kDirection == Direction::kByInput ? 1 : 0).dtype) {
      case WEIR_FLOAT32:
        return PrepareAs<float>(prep);
      case WEIR_FLOAT64:
        return PrepareAs<double>(prep);
#if !defined(WEIR_KERNEL_DTYPES_SHORT)
      case WEIR_FLOAT16:
        return PrepareAs<sdk::half>(prep);
      case WEIR_BFLOAT16:
        return PrepareAs<sdk::bfloat16>(prep);
#endif
      default:
        return PrepareAs<int32_t>(prep);
    }
  }

  static sdk::Cost Estimate(const sdk::Prep& prep, const weir_profile* profile) {
    return ConvolutionCost<kDirection>(prep, profile, kSpatial);
  }

 protected:
  int32_t Pack(sdk::Prep& prep) {
    const float* filter = FilterToPack(prep, plan.conv);
    if (filter == nullptr) return WEIR_OK;
    plan.packed = PackedMatrix::Of(filter, false, plan.rows(), plan.conv.out);
    if (plan.packed != nullptr) return WEIR_OK;
    return prep.error().ResourceExhausted("no memory for ", PackedMatrix::Bytes(plan.rows(), plan.conv.out), " bytes");
  }
  /// The memory of a call, the same at every call.
  template <class T>
  struct Memory {
    using C = sdk::Compute<T>;
    Workspace<C> space;
    Arithmetic<C> arithmetic;
    C *x = nullptr, *y = nullptr, *filter = nullptr;

    Memory(const Plan& plan, C* base) : space(base), arithmetic(plan, kDirection, space) {
      if (!IsPlain<T>(plan.conv.windows.channels_first)) {
        x = space.Take(plan.XImage().Size());
        y = space.Take(plan.YImage().Size());
      }
      if (!IsPlainFilter<T>(plan.conv)) filter = space.Take(plan.FilterSize());
    }
    /// The filter as matrices.
    const C* Filter(const Plan& plan, const T* stored) {
      if constexpr (std::is_same_v<T, C>) {
        if (filter == nullptr) return stored;
      }
      LoadFilter(plan.conv, stored, filter);
      return filter;
    }
    /// Image i of x or y as a matrix; `image` is its layout, `memory` the place for one that is not plain.
    static const C* Image(const ImageLayout& image, const T* stored, int64_t i, C* memory) {
      if constexpr (std::is_same_v<T, C>) {
        if (memory == nullptr) return stored + i * image.Size();
      }
      LoadImage(image, stored + i * image.Size(), memory);
      return memory;
    }
  };

  template <class T>
  int32_t PrepareAs(sdk::Prep& prep) {
    using C = sdk::Compute<T>;
    if constexpr (std::is_floating_point_v<C>) plan.blocks = PlanGemm<C>(plan.ProductOf(kDirection, plan.chunk));
    prep.Scratch(Memory<T>(plan, nullptr).space.bytes());
    const double tiles = std::min(plan.conv.Flops() / kWindowTileFlops, static_cast<double>(Parts<T>()));
    if (kDirection != Direction::kByFilter && tiles >= 2) prep.Tiles(static_cast<uint64_t>(tiles));
    return WEIR_OK;
  }
  /// Number of parts of a call that tiles consist of: chunks of places, or images.
  template <class T>
  int64_t Parts() const {
    if (kDirection == Direction::kForward && IsPlain<T>(plan.conv.windows.channels_first)) {
      return (plan.places() + plan.chunk - 1) / plan.chunk;
    }
    return plan.conv.windows.batch;
  }
};

template <uint32_t kSpatial>
struct ConvForward : Convolving<Direction::kForward, kSpatial> {
  using Convolving<Direction::kForward, kSpatial>::plan;

  template <class T>
  void Run(sdk::Env& env, View<const T> x, View<const T> filter, View<T> y, sdk::Scratch<char> scratch) const {
    Convolve<T>(env, x, filter, y, scratch.data(), [](auto*, const T*, int64_t) {});
  }

  /// Calls end(sums, result, count) for each run of `count` places whose sums are there: `result` is the place of the
  /// first one in the output. Sums that are not in the output are stored there afterwards.
  template <class T, class End>
  void Convolve(sdk::Env& env, View<const T> x, View<const T> filter, View<T> y, void* scratch, End&& end) const {
    using C = sdk::Compute<T>;
    if (plan.conv.empty) return ZeroFill(y);
    typename ConvForward::template Memory<T> memory(plan, static_cast<C*>(scratch));
    const C* weights = memory.Filter(plan, filter.data());
    const auto [begin, last] = env.Range(this->template Parts<T>());
    if constexpr (std::is_same_v<T, C>) {
      if (memory.x == nullptr) {
        memory.arithmetic.ForChunks(begin * plan.chunk, std::min(plan.places(), last * plan.chunk),
                                    [&](int64_t first, int64_t count) {
                                      memory.arithmetic.Forward(x.data(), weights, first, count, y.data());
                                      C* const sums = y.data() + first * plan.conv.out;
                                      end(sums, sums, count);
                                    });
        return;
      }
    }
    const int64_t size = plan.YImage().Size();
    for (int64_t i = begin; i < last; ++i) {
      const C* image = memory.Image(plan.XImage(), x.data(), i, memory.x);
      memory.arithmetic.ForChunks(0, plan.patches.Places(), [&](int64_t first, int64_t count) {
        memory.arithmetic.Forward(image, weights, first, count, memory.y);
      });
      end(memory.y, y.data() + i * size, plan.patches.Places());
      StoreImage(plan.YImage(), memory.y, y.data() + i * size);
    }
  }
};

/// activation(x * filter + bias), of sums that are in a cache.
template <uint32_t kSpatial>
struct BiasedConv : ConvForward<kSpatial> {
  functors::Finish finish;

  int32_t Prepare(sdk::Prep& prep) {
    if (const int32_t code = ConvForward<kSpatial>::Prepare(prep); code != WEIR_OK) return code;
    return functors::PrepareFinish(prep, this->plan.conv, false, &finish);
  }
  template <class T>
  void Run(sdk::Env& env, View<const T> x, View<const T> filter, View<const T> bias, View<T> y,
           sdk::Scratch<char> scratch) const {
    this->template Convolve<T>(env, x, filter, y, scratch.data(), [&](T* sums, const T*, int64_t count) {
      functors::FinishRows(finish, sums, bias.data(), nullptr, count, this->plan.conv.out);
    });
  }
};

/// activation(x * filter + bias + addend).
struct ResidualConv : ConvForward<2> {
  functors::Finish finish;
  uint64_t turned_at = 0;  // bytes of the scratch memory before an image of the addend with its channels last

  int32_t Prepare(sdk::Prep& prep) {
    if (const int32_t code = ConvForward<2>::Prepare(prep); code != WEIR_OK) return code;
    turned_at = prep.scratch_bytes();
    if (plan.conv.windows.channels_first) {
      prep.Scratch(turned_at + static_cast<uint64_t>(plan.YImage().Size()) * sdk::SizeOf(prep.input(3).dtype));
    }
    return functors::PrepareFinish(prep, plan.conv, true, &finish);
  }
  template <class T>
  void Run(sdk::Env& env, View<const T> x, View<const T> filter, View<const T> bias, View<const T> addend, View<T> y,
           sdk::Scratch<char> scratch) const {
    const ImageLayout image = plan.YImage();
    T* const turned = image.channels_first ? reinterpret_cast<T*>(scratch.data() + turned_at) : nullptr;
    Convolve<T>(env, x, filter, y, scratch.data(), [&](T* sums, const T* result, int64_t count) {
      const T* term = addend.data() + (result - y.data());
      if (turned != nullptr) {
        LoadImage(image, term, turned);
        term = turned;
      }
      functors::FinishRows(finish, sums, bias.data(), term, count, plan.conv.out);
    });
  }
};

template <uint32_t kSpatial>
struct ConvByInput : Convolving<Direction::kByInput, kSpatial> {
  using Convolving<Direction::kByInput, kSpatial>::plan;

  template <class T>
  void Differentiate(sdk::Env& env, View<const T> filter, View<const T> dy, View<T> dx, void* scratch) const {
    using C = sdk::Compute<T>;
    if (plan.conv.empty) return ZeroFill(dx);
    typename ConvByInput::template Memory<T> memory(plan, static_cast<C*>(scratch));
    const C* weights = memory.Filter(plan, filter.data());
    const auto [begin, end] = env.Range(plan.conv.windows.batch);
    for (int64_t i = begin; i < end; ++i) {
      const C* image = memory.Image(plan.YImage(), dy.data(), i, memory.y);
      C* sums = memory.x;
      if constexpr (std::is_same_v<T, C>) {
        if (sums == nullptr) sums = dx.data() + i * plan.XImage().Size();
      }
      std::fill_n(sums, plan.XImage().Size(), C());
      memory.arithmetic.ForChunks(0, plan.patches.Places(), [&](int64_t first, int64_t count) {
        memory.arithmetic.ByInput(image, weights, first, count, sums);
      });
      if (memory.x != nullptr) StoreImage(plan.XImage(), memory.x, dx.data() + i * plan.XImage().Size());
    }
  }
  template <class T>
  void Run(sdk::Env& env, sdk::HostIntegers, View<const T> filter, View<const T> dy, View<T> dx,
           sdk::Scratch<char> scratch) const {
    Differentiate<T>(env, filter, dy, dx, scratch.data());
  }
};

/// The form of old graphs, with an input of the shape.
struct OldConv3DByInput : ConvByInput<3> {
  template <class T>
  void Run(sdk::Env& env, View<const T>, View<const T> filter, View<const T> dy, View<T> dx,
           sdk::Scratch<char> scratch) const {
    Differentiate<T>(env, filter, dy, dx, scratch.data());
  }
};

template <uint32_t kSpatial>
struct ConvByFilter : Convolving<Direction::kByFilter, kSpatial> {
  using Convolving<Direction::kByFilter, kSpatial>::plan;

  template <class T>
  void Differentiate(View<const T> x, View<const T> dy, View<T> dw, void* scratch) const {
    using C = sdk::Compute<T>;
    if (plan.conv.empty) return ZeroFill(dw);
    typename ConvByFilter::template Memory<T> memory(plan, static_cast<C*>(scratch));
    C* sums = memory.filter;
    if constexpr (std::is_same_v<T, C>) {
      if (sums == nullptr) sums = dw.data();
    }
    std::fill_n(sums, plan.FilterSize(), C());
    AddGradients(memory, x.data(), dy.data(), sums);
    if (memory.filter != nullptr) StoreFilter(plan.conv, memory.filter, dw.data());
  }
  template <class T>
  void Run(View<const T> x, sdk::HostIntegers, View<const T> dy, View<T> dw, sdk::Scratch<char> scratch) const {
    Differentiate<T>(x, dy, dw, scratch.data());
  }

 private:
  template <class T, class Memory>
  void AddGradients(Memory& memory, const T* x, const T* dy, sdk::Compute<T>* dw) const {
    if constexpr (std::is_same_v<T, sdk::Compute<T>>) {
      if (memory.x == nullptr) {
        memory.arithmetic.ForChunks(0, plan.places(), [&](int64_t first, int64_t count) {
          memory.arithmetic.ByFilter(x, dy, first, count, dw);
        });
        return;
      }
    }
    for (int64_t i = 0; i < plan.conv.windows.batch; ++i) {
      const auto* image = memory.Image(plan.XImage(), x, i, memory.x);
      const auto* gradient = memory.Image(plan.YImage(), dy, i, memory.y);
      memory.arithmetic.ForChunks(0, plan.patches.Places(), [&](int64_t first, int64_t count) {
        memory.arithmetic.ByFilter(image, gradient, first, count, dw);
      });
    }
  }
};

struct OldConv3DByFilter : ConvByFilter<3> {
  template <class T>
  void Run(View<const T> x, View<const T>, View<const T> dy, View<T> dw, sdk::Scratch<char> scratch) const {
    Differentiate<T>(x, dy, dw, scratch.data());
  }
};

}  // namespace

void AddConvolution(sdk::KernelTable& k) {
  constexpr sdk::Types<int32_t> kInt32;
  k.Add<ConvForward<2>>("Conv2D", kFloating + kInt32).Class(WEIR_CLASS_CONV);
  k.Add<ConvByInput<2>>("Conv2DBackpropInput", kFloating + kInt32).Class(WEIR_CLASS_CONV);
  k.Add<ConvByFilter<2>>("Conv2DBackpropFilter", kFloating).Class(WEIR_CLASS_CONV);
  k.Add<ConvForward<3>>("Conv3D", kFloating).Class(WEIR_CLASS_CONV);
  k.Add<BiasedConv<2>>("_BiasedConv2D", kFloat).Class(WEIR_CLASS_CONV);
  k.Add<BiasedConv<3>>("_BiasedConv3D", kFloat).Class(WEIR_CLASS_CONV);
  k.Add<ResidualConv>("_ResidualConv2D", kFloat).Class(WEIR_CLASS_CONV);
  k.Add<ConvByInput<3>>("Conv3DBackpropInputV2", kFloating).Class(WEIR_CLASS_CONV);
  k.Add<ConvByFilter<3>>("Conv3DBackpropFilterV2", kFloating).Class(WEIR_CLASS_CONV);
#if defined(WEIR_KERNEL_DTYPES_SHORT)
  constexpr auto kOld = kFloat;
#else
  constexpr auto kOld = kFloat + sdk::Types<sdk::half>();
#endif
  k.Add<OldConv3DByInput>("Conv3DBackpropInput", kOld).Class(WEIR_CLASS_CONV);
  k.Add<OldConv3DByFilter>("Conv3DBackpropFilter", kOld).Class(WEIR_CLASS_CONV);
}

}  // namespace weir::kernels_eigen
