// Convolutions in two and three dimensions and their gradients, as products of matrices of windows.
#include <algorithm>
#include <memory>
#include <optional>
#include <type_traits>

#include "plugins/functors/biased_convolution.h"
#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/families.h"
#include "plugins/kernels_eigen/kernels/panels.h"
#include "plugins/kernels_eigen/kernels/row_convolution.h"
#include "plugins/kernels_eigen/kernels/window_products.h"
#include "plugins/kernels_eigen/wrap.h"
#include "sdk/cpp/convolutions.h"
#include "sdk/cpp/cpu.h"
#include "sdk/cpp/kernel.h"

namespace weir::kernels_eigen {
namespace {

using sdk::Convolution;
using sdk::View;
using Direction = Convolution::Direction;

constexpr double kWindowTileFlops = 4e6;  // ten times the cost of starting a tile on another thread
constexpr double kPlacesOfPacking = 128;  // of outputs for which a tile may pack the filter itself
constexpr int64_t kRowsOfPart = 64;       // of a filter, at least, for which a tile may read all outputs' gradients

/// The filter of a forward convolution of one group if it is a constant of floats, or null.
const float* ConstantFilter(const sdk::Prep& prep, const Convolution& conv) {
  const weir_operand& filter = prep.input(1);
  const bool packs = filter.dtype == WEIR_FLOAT32 && conv.groups == 1 && filter.value != nullptr;
  return packs ? static_cast<const float*>(filter.value->buf.host) : nullptr;
}

/// True if windows are copied and multiplied with a packed filter.
bool PacksForWindows(const sdk::Prep& prep, const Convolution& conv) {
  return PackedMatrix::FillsPanels(conv.out) && ConstantFilter(prep, conv) != nullptr;
}

/// True if windows are single pixels, so that no matrix of windows is made.
bool IsPointwise(const Convolution& conv) {
  const auto is_single = [](const sdk::WindowAxis& a) { return a.window == 1 && a.stride == 1; };
  const auto* const axes = conv.windows.axes.data();
  return std::all_of(axes, axes + conv.windows.spatial, is_single);
}

/// Plans a convolution of floats, or a gradient, by rows. False if another form serves it, or serves it better.
bool PlanRows(const Convolution& conv, Direction direction, RowConvolution* rows) {
  if (direction == Direction::kByInput) {
    if (rows->PlanTurned(conv) && (rows->narrow() || PackedMatrix::FillsPanels(conv.in))) return true;
    *rows = RowConvolution();
    return rows->PlanByInput(conv);
  }
  const bool pointwise = IsPointwise(conv);
  if (direction == Direction::kByFilter) return !pointwise && rows->PlanByFilter(conv);
  return !(pointwise && PackedMatrix::FillsPanels(conv.out)) && rows->Plan(conv);
}

/// What products on windows, and packed filters, reach on one kind of processor. Fitted to runs.
struct WindowRates {
  double call_ns;
  double share, packed_share;  // of the core's peak, with a filter as it is stored, and with a packed one
  double moved_ns;             // per element of the matrix of windows
  double pack_ns, turn_ns;     // per element of a filter
  double stored_ns;            // per element of the result
};
const WindowRates& WindowRatesHere() {
  static constexpr WindowRates kZen5 = {120, 0.90, 0.90, 0.16, 0.1, 0.3, 0.06};
  static constexpr WindowRates kOthers = {400, 0.60, 0.85, 0.27, 0.5, 0.8, 0};
  return sdk::ThisCpuClass() == sdk::CpuClass::kAmdZen5 ? kZen5 : kOthers;
}

/// Time in ns on a core with this peak.
template <Direction direction>
sdk::Cost ConvolutionCost(const sdk::Prep& prep, const weir_profile* profile, uint32_t spatial) {
  Convolution conv;
  sdk::Cost cost;
  if (conv.Plan(prep, direction, spatial, false) != WEIR_OK || conv.empty) return cost;
  const uint32_t dtype = prep.input(direction == Direction::kByFilter ? 0 : 1).dtype;
  const double peak = sdk::PeakFlops(profile, dtype);
  const bool moves = !IsPointwise(conv) || conv.groups > 1;
  const double moved = moves ? conv.Flops() / 2 / static_cast<double>(conv.group_out()) : 0;  // elements of all windows
  const double repeats = dtype == WEIR_FLOAT32 || dtype == WEIR_FLOAT64 ? 1 : 2;
  cost.flops = conv.Flops();
  cost.bytes = static_cast<double>(prep.size(1) + 2 * prep.size(0)) * sdk::SizeOf(dtype);
  // Windows are copied in runs of neighbouring pixels; groups and dilated windows have a run per tap.
  const sdk::WindowAxis& width = conv.windows.axes[spatial - 1];
  const double pixels = conv.groups == 1 && width.dilation == 1 ? static_cast<double>(width.window) : 1;
  const double runs = moved / (pixels * static_cast<double>(conv.group_in()));
  const double stored = conv.Flops() / 2 / static_cast<double>(conv.Rows());
  const WindowRates& rates = WindowRatesHere();
  cost.whole_ns = rates.call_ns + cost.flops / ((dtype == WEIR_INT32 ? 0.1 : rates.share) * peak) +
                  repeats * (rates.moved_ns * moved + 6 * runs) + rates.stored_ns * stored;
  if (dtype != WEIR_FLOAT32) return cost;
  if (RowConvolution rows; PlanRows(conv, direction, &rows)) {
    const bool packs = rows.turned() || (direction == Direction::kForward && ConstantFilter(prep, conv) == nullptr);
    const bool by_parts = direction == Direction::kByInput && !rows.turned();
    cost.whole_ns = direction == Direction::kByFilter ? rows.ByFilterNanoseconds(peak)
                    : by_parts                        ? rows.ByInputNanoseconds(peak)
                                                      : rows.Nanoseconds(peak);
    const double filter = static_cast<double>(conv.Rows() * conv.out);
    if (packs) cost.whole_ns += (rows.turned() ? rates.turn_ns : rates.pack_ns) * filter;
  } else if (direction == Direction::kForward && PacksForWindows(prep, conv)) {
    const double wide = static_cast<double>(PackedMatrix::Bytes(conv.Rows(), conv.out)) /
                        (4 * static_cast<double>(conv.Rows()) * static_cast<double>(conv.out));
    cost.whole_ns = rates.call_ns / 2 + wide * cost.flops / (rates.packed_share * peak) + 1.3 * rates.moved_ns * moved +
                    6 * runs + rates.stored_ns * stored;
  }
  return cost;
}

/// What the three kernels share: the plan and its memory.
template <Direction kDirection, uint32_t kSpatial>
struct Convolving {
  ConvolutionPlan plan;

  int32_t Prepare(sdk::Prep& prep) {
    if (const int32_t code = plan.conv.Plan(prep, kDirection, kSpatial, false); code != WEIR_OK) return code;
    if (plan.conv.empty) return WEIR_OK;
    plan.Make();
    const uint32_t dtype = prep.input(kDirection == Direction::kByInput ? 1 : 0).dtype;
    if (dtype == WEIR_FLOAT32) {
      if (!PlanRows(plan.conv, kDirection, &plan.by_rows.emplace())) plan.by_rows.reset();
      if constexpr (kDirection == Direction::kForward) {
        if (const int32_t code = Pack(prep); code != WEIR_OK) return code;
      }
      if (plan.by_rows) return PrepareByRows(prep);
    }
    switch (dtype) {
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
    const float* const filter = ConstantFilter(prep, plan.conv);
    if (filter == nullptr || (!plan.by_rows && !PackedMatrix::FillsPanels(plan.conv.out))) return WEIR_OK;
    plan.packed = plan.by_rows ? PackedMatrix::InParts(filter, plan.by_rows->Depths(), plan.conv.out)
                               : PackedMatrix::Of(filter, false, plan.rows(), plan.conv.out);
    if (plan.packed != nullptr) return WEIR_OK;
    return prep.error().ResourceExhausted("no memory for ", PackedMatrix::Bytes(plan.rows(), plan.conv.out), " bytes");
  }
  /// Scratch memory: the filter's panels if it is not packed, a strip's copy, and parts of dy.
  int32_t PrepareByRows(sdk::Prep& prep) {
    const RowConvolution& rows = *plan.by_rows;
    int64_t more = kDirection == Direction::kByFilter ? rows.ByFilterElements() : 0;
    if (MakesParts()) more = rows.LeftElements();
    prep.Scratch(static_cast<uint64_t>(PanelElements() + rows.CopyElements() + more) * sizeof(float));
    double most = static_cast<double>(rows.Strips());
    if (kDirection == Direction::kByFilter) {
      most = rows.FilterTiles();
    } else if (plan.packed == nullptr) {  // each tile packs the filter
      most = std::min(most, static_cast<double>(plan.places()) / kPlacesOfPacking);
    }
    Tile(prep, most);
    return WEIR_OK;
  }
  /// At most so many tiles, of which each has enough to do.
  void Tile(sdk::Prep& prep, double most) const {
    const double tiles = std::min(plan.conv.Flops() / kWindowTileFlops, most);
    if (tiles >= 2) prep.Tiles(static_cast<uint64_t>(tiles));
  }
  /// True for the gradient by x that is not a convolution of dy.
  bool MakesParts() const { return kDirection == Direction::kByInput && !plan.by_rows->turned(); }
  int64_t PanelElements() const {
    if (plan.packed != nullptr || kDirection == Direction::kByFilter) return 0;
    const int64_t turned = PackedElements(plan.conv.windows.Taps() * plan.conv.out, plan.conv.in);
    const int64_t elements = MakesParts()                        ? plan.by_rows->ByInputPanels()
                             : kDirection == Direction::kByInput ? turned
                                                                 : PackedElements(plan.rows(), plan.conv.out);
    return (elements + 15) / 16 * 16;
  }
  /// Calls body(strip) for the strips of this call.
  template <class Body>
  void ForStrips(sdk::Env& env, Body&& body) const {
    const auto [begin, end] = env.Range(plan.by_rows->Strips());
    for (int64_t i = begin; i < end; ++i) body(i);
  }
  /// The memory of a call, the same at every call.
  template <class T>
  struct Memory {
    using C = sdk::Compute<T>;
    Workspace<C> space;
    WindowProducts<C> arithmetic;
    C *x = nullptr, *y = nullptr, *filter = nullptr;

    Memory(const ConvolutionPlan& plan, C* base) : space(base), arithmetic(plan, kDirection, space) {
      if (!IsPlain<T>(plan.conv.windows.channels_first)) {
        x = space.Take(plan.XImage().Size());
        y = space.Take(plan.YImage().Size());
      }
      // Channels of a filter with one tap lie side by side.
      const bool apart = plan.in_parts && plan.conv.windows.Taps() > 1;
      if (apart || !IsPlainFilter<T>(plan.conv)) filter = space.Take(plan.FilterSize());
    }
    /// The filter as matrices.
    const C* Filter(const ConvolutionPlan& plan, const T* stored) {
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
    Tile(prep, static_cast<double>(Parts<T>()));
    plan.in_parts = kDirection == Direction::kByFilter && plan.conv.groups == 1 && prep.tiles() > 1;
    prep.Scratch(Memory<T>(plan, nullptr).space.bytes());
    return WEIR_OK;
  }
  /// Number of parts of a call that tiles consist of: chunks of places, images, or parts of a filter.
  template <class T>
  int64_t Parts() const {
    if (kDirection == Direction::kByFilter) {
      if (plan.conv.groups > 1) return plan.conv.groups;
      // Only in float the sums of a row do not depend on the rows beside it.
      const bool apart = std::is_same_v<sdk::Compute<T>, float>;
      return apart ? std::min(plan.conv.in, plan.rows() / kRowsOfPart) : 1;
    }
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
    if constexpr (std::is_same_v<T, float>) {
      if (plan.by_rows) return ConvolveRows(env, x.data(), filter.data(), y.data(), static_cast<float*>(scratch), end);
    }
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

 private:
  template <class End>
  void ConvolveRows(sdk::Env& env, const float* x, const float* filter, float* y, float* scratch, End& end) const {
    const RowConvolution& rows = *plan.by_rows;
    const float* panels = scratch;
    if (plan.packed != nullptr) {
      panels = plan.packed->panels();
    } else {
      rows.PackFilter(filter, scratch);
    }
    float* const copy = scratch + this->PanelElements();
    this->ForStrips(env, [&](int64_t strip) {
      float* const sums = y + rows.FirstPlace(strip) * plan.conv.out;
      rows.Run(x, panels, strip, sums, copy);
      end(sums, sums, rows.Places(strip));
    });
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
    if constexpr (std::is_same_v<T, float>) {
      if (plan.by_rows) return ByRows(env, filter.data(), dy.data(), dx.data(), static_cast<float*>(scratch));
    }
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

 private:
  void ByRows(sdk::Env& env, const float* filter, const float* dy, float* dx, float* scratch) const {
    const RowConvolution& rows = *plan.by_rows;
    const int64_t x_size = plan.XImage().Size(), y_size = plan.YImage().Size();
    float* const copy = scratch + this->PanelElements();
    if (!this->MakesParts()) {
      rows.PackFilter(filter, scratch);
      this->ForStrips(
          env, [&](int64_t strip) { rows.Run(dy, scratch, strip, dx + rows.FirstPlace(strip) * plan.conv.in, copy); });
      return;
    }
    float* const left = copy + rows.CopyElements();
    rows.PackByInput(filter, scratch);
    this->ForStrips(
        env, [&](int64_t image) { rows.ByInput(dy + image * y_size, scratch, dx + image * x_size, copy, left); });
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
  void Differentiate(sdk::Env& env, View<const T> x, View<const T> dy, View<T> dw, void* scratch) const {
    using C = sdk::Compute<T>;
    if (plan.conv.empty) return ZeroFill(dw);
    if constexpr (std::is_same_v<T, float>) {
      if (plan.by_rows) return ByRows(env, x.data(), dy.data(), dw.data(), static_cast<float*>(scratch));
    }
    typename ConvByFilter::template Memory<T> memory(plan, static_cast<C*>(scratch));
    const FilterPart part = PartOf(env);
    C* sums = memory.filter;
    if constexpr (std::is_same_v<T, C>) {
      if (sums == nullptr) sums = dw.data() + part.channels.first * plan.conv.out;
    }
    std::fill_n(sums, part.groups * plan.RowsOf(part) * plan.conv.group_out(), C());
    AddGradients(memory, x.data(), dy.data(), part, sums);
    if (memory.filter != nullptr) StoreFilter(plan.conv, part, memory.filter, dw.data());
  }
  template <class T>
  void Run(sdk::Env& env, View<const T> x, sdk::HostIntegers, View<const T> dy, View<T> dw,
           sdk::Scratch<char> scratch) const {
    Differentiate<T>(env, x, dy, dw, scratch.data());
  }

 private:
  void ByRows(sdk::Env& env, const float* x, const float* dy, float* dw, float* copy) const {
    const RowConvolution& rows = *plan.by_rows;
    const auto [begin, end] = env.Range(rows.FilterParts());
    rows.ByFilter(x, dy, {begin, end}, dw, copy, copy + rows.CopyElements());
  }

  /// What this call's tiles make.
  FilterPart PartOf(const sdk::Env& env) const {
    const sdk::Convolution& conv = plan.conv;
    const auto [begin, end] = env.Range(plan.in_parts ? conv.in : conv.groups);
    if (plan.in_parts) return {0, 1, {begin, end - begin}};
    return {begin, end - begin, {0, conv.group_in()}};
  }

  template <class T, class Memory>
  void AddGradients(Memory& memory, const T* x, const T* dy, const FilterPart& part, sdk::Compute<T>* dw) const {
    if constexpr (std::is_same_v<T, sdk::Compute<T>>) {
      if (memory.x == nullptr) {
        memory.arithmetic.ForChunks(0, plan.places(), [&](int64_t first, int64_t count) {
          memory.arithmetic.ByFilter(x, dy, first, count, part, dw);
        });
        return;
      }
    }
    for (int64_t i = 0; i < plan.conv.windows.batch; ++i) {
      const auto* image = memory.Image(plan.XImage(), x, i, memory.x);
      const auto* gradient = memory.Image(plan.YImage(), dy, i, memory.y);
      memory.arithmetic.ForChunks(0, plan.patches.Places(), [&](int64_t first, int64_t count) {
        memory.arithmetic.ByFilter(image, gradient, first, count, part, dw);
      });
    }
  }
};

struct OldConv3DByFilter : ConvByFilter<3> {
  template <class T>
  void Run(sdk::Env& env, View<const T> x, View<const T>, View<const T> dy, View<T> dw,
           sdk::Scratch<char> scratch) const {
    Differentiate<T>(env, x, dy, dw, scratch.data());
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
