// Convolutions of images and their gradients in float, depthwise ones as groups.
#include <algorithm>
#include <cmath>
#include <vector>

#include "plugins/functors/biased_convolution.h"
#include "plugins/functors/finish_rows.h"
#include "plugins/kernels_onednn/families.h"
#include "plugins/kernels_onednn/library.h"
#include "plugins/kernels_onednn/packed.h"
#include "plugins/kernels_onednn/primitive.h"
#include "sdk/cpp/convolutions.h"
#include "sdk/cpp/cpu.h"
#include "sdk/cpp/kernel.h"
#include "sdk/cpp/products.h"

namespace weir::kernels_onednn {
namespace {

using sdk::Convolution;
using sdk::View;
using Direction = Convolution::Direction;

constexpr int64_t kPartBytes = 256 << 10;  // of the results that one call makes, if it need not make all: they stay in
                                           // the second cache until their bias and activation follow
constexpr int64_t kPartPlaces = 256;       // results of each filter, at least: its elements are used that often
constexpr double kPartFlops = 4e6;         // of a tile: ten times the cost of starting it on another thread

/// The images that one call of the primitive convolves: a divisor of the batch.
int64_t ImagesAtOnce(const Convolution& conv) {
  const int64_t batch = conv.windows.batch, places = conv.windows.OutputPlaces();
  const double bytes = 4 * static_cast<double>(places) * static_cast<double>(conv.out);
  const double by_bytes = static_cast<double>(kPartBytes) / bytes;
  const double by_places = static_cast<double>(kPartPlaces) / static_cast<double>(places);
  const auto wanted = static_cast<int64_t>(std::max({1.0, by_bytes, std::ceil(by_places)}));
  if (wanted >= batch) return batch;
  int64_t images = wanted;
  while (batch % images != 0) --images;
  return 4 * images < wanted ? batch : images;
}

/// Descriptions of the arrays: as weir stores them, and with the filter's layout open.
struct ArrayDescs {
  dnnl_memory_desc_t x, y, filter, filter_open, bias;

  /// For that many images. False if oneDNN cannot describe them.
  bool Make(const Convolution& conv, int64_t images_at_once) {
    const sdk::WindowAxis &h = conv.windows.axes[0], &w = conv.windows.axes[1];
    const dnnl_dims_t x_dims = {images_at_once, conv.in, h.input, w.input};
    const dnnl_dims_t y_dims = {images_at_once, conv.out, h.output, w.output}, bias_dims = {conv.out};
    const dnnl_format_tag_t images = conv.windows.channels_first ? dnnl_nchw : dnnl_nhwc;
    if (OneDnn().dnnl_memory_desc_init_by_tag(&x, 4, x_dims, dnnl_f32, images) != dnnl_success ||
        OneDnn().dnnl_memory_desc_init_by_tag(&y, 4, y_dims, dnnl_f32, images) != dnnl_success ||
        OneDnn().dnnl_memory_desc_init_by_tag(&bias, 1, bias_dims, dnnl_f32, dnnl_a) != dnnl_success) {
      return false;
    }
    // The filter is [height, width, input channels of a group, outputs].
    const int64_t in = conv.group_in(), out = conv.group_out();
    const dnnl_dims_t dims = {out, in, h.window, w.window};
    const dnnl_dims_t steps = {1, conv.out, w.window * in * conv.out, in * conv.out};
    const dnnl_dims_t group_dims = {conv.groups, out, in, h.window, w.window};
    const dnnl_dims_t group_steps = {out, 1, conv.out, w.window * in * conv.out, in * conv.out};
    const bool grouped = conv.groups > 1;
    const int rank = grouped ? 5 : 4;
    return OneDnn().dnnl_memory_desc_init_by_strides(&filter, rank, grouped ? group_dims : dims, dnnl_f32,
                                                     grouped ? group_steps : steps) == dnnl_success &&
           OneDnn().dnnl_memory_desc_init_by_tag(&filter_open, rank, grouped ? group_dims : dims, dnnl_f32,
                                                 dnnl_format_tag_any) == dnnl_success;
  }
};

/// oneDNN's description of the operation. Only a forward one may be biased.
dnnl_status_t Describe(const Convolution& conv, Direction direction, const ArrayDescs& arrays, bool biased,
                       dnnl_convolution_desc_t* desc) {
  const sdk::WindowAxis &h = conv.windows.axes[0], &w = conv.windows.axes[1];
  const dnnl_dims_t strides = {h.stride, w.stride}, dilations = {h.dilation - 1, w.dilation - 1};
  const dnnl_dims_t before = {h.before, w.before};
  // oneDNN checks the output extents, so paddings behind are those that the windows use.
  const auto used = [](const sdk::WindowAxis& a) {
    return a.Start(a.output - 1) + (a.window - 1) * a.dilation + 1 - a.input;
  };
  const dnnl_dims_t after = {used(h), used(w)};
  switch (direction) {
    case Direction::kForward:
      return OneDnn().dnnl_dilated_convolution_forward_desc_init(
          desc, dnnl_forward_inference, dnnl_convolution_direct, &arrays.x, &arrays.filter_open,
          biased ? &arrays.bias : nullptr, &arrays.y, strides, dilations, before, after);
    case Direction::kByInput:
      return OneDnn().dnnl_dilated_convolution_backward_data_desc_init(
          desc, dnnl_convolution_direct, &arrays.x, &arrays.filter_open, &arrays.y, strides, dilations, before, after);
    default:
      return OneDnn().dnnl_dilated_convolution_backward_weights_desc_init(desc, dnnl_convolution_direct, &arrays.x,
                                                                          &arrays.filter_open, nullptr, &arrays.y,
                                                                          strides, dilations, before, after);
  }
}

/// oneDNN's extents are ints in places; its plain code is slow where a group has several outputs of one channel.
bool Serves(const Convolution& conv, bool depthwise) {
  constexpr int64_t kMost = int64_t{1} << 30;
  for (uint32_t i = 0; i < 2; ++i) {
    const sdk::WindowAxis& a = conv.windows.axes[i];
    if (std::max({a.input, a.window, a.output, a.stride, a.dilation, a.before, a.after}) > kMost) return false;
  }
  if (std::max({conv.in, conv.out, conv.windows.batch}) > kMost) return false;
  return !depthwise || conv.in == conv.out;
}

/// What oneDNN's convolutions reach in one direction.
struct Rate {
  double share;    // of the core's peak, with many channels
  double few;      // input channels with which half of it is reached
  double strided;  // share of that with strides and windows of several places
  double read_ns;  // at least, per byte of a filter beyond kSecondCacheBytes and image
};
/// On one kind of processor. Version 2.6 has code for AVX2 that reads a filter beyond the second cache again for each
/// image. Fitted to runs, like the constants of the other kernel sets, so that estimates are comparable; those of Intel
/// on Emerald Rapids.
struct ConvolutionRates {
  Rate forward, by_input, by_filter;
  double far_ns;         // more per byte of a filter beyond kNearFilterBytes and image
  bool inputs_in_lanes;  // the gradient by the filter takes whole vectors of input channels too, else 16 outputs
  double call_ns;
  double reorder_ns;  // per element of a filter
};
constexpr ConvolutionRates kConvolutionRates[] = {
    {{0.60, 1.2, 1, 0}, {0.60, 1.2, 1, 0}, {0.45, 1.2, 1, 0}, 0.08, true, 1200, 0.25},                  // baseline
    {{0.85, 1.2, 1, 0}, {0.92, 1.2, 1, 0}, {0.65, 1.2, 1, 0}, 0.08, true, 1200, 0.25},                  // amd-avx2
    {{0.95, 1.2, 1, 0}, {0.95, 1.2, 1, 0}, {0.95, 1.2, 1, 0}, 0, true, 1200, 0.25},                     // amd-avx512
    {{1.0, 1.2, 1, 0}, {1.0, 0.5, 1, 0}, {0.95, 0.5, 1, 0}, 0, true, 400, 0.08},                          // amd-zen5
    {{0.88, 0.15, 0.94, 0.11}, {0.93, 0, 0.87, 0.115}, {0.91, 0.2, 0.82, 0.12}, 0, false, 1200, 0.25},  // intel-avx2
    {{1.08, 0.5, 1, 0.073}, {1.08, 0, 0.85, 0.045}, {0.95, 0.2, 0.82, 0.075}, 0, false, 1200, 0.25},    // intel-avx512
};
constexpr double kNearFilterBytes = 512 << 10, kSecondCacheBytes = 2 << 20;

/// The share of the lanes of whole vectors that so many channels fill.
double FilledLanes(int64_t channels, int64_t lanes) {
  return static_cast<double>(channels) / static_cast<double>((channels + lanes - 1) / lanes * lanes);
}

template <Direction kDirection, bool kDepthwise>
struct Conv2D {
  static constexpr size_t kFilter = kDirection == Direction::kByFilter ? 2 : 1;  // among the primitive's operands

  Convolution conv;
  int64_t images = 0;  // of one call of the primitive; all of them in the gradients
  Primitive primitive;
  Primitive reordering;  // between the filter as stored and as the primitive has it
  PackedArray packed;    // a constant filter in the primitive's layout
  uint64_t filter_bytes = 0;

  int32_t Prepare(sdk::Prep& prep, bool biased = false) {
    if (const int32_t code = LoadOneDnn(prep.error()); code != WEIR_OK) return code;
    if (const int32_t code = conv.Plan(prep, kDirection, 2, kDepthwise); code != WEIR_OK) return code;
    if (conv.empty) return WEIR_OK;
    if (!Serves(conv, kDepthwise)) return prep.error().Unimplemented("oneDNN takes no convolution of this shape");
    images = kDirection == Direction::kForward ? ImagesAtOnce(conv) : conv.windows.batch;
    const OneThread one;
    ArrayDescs arrays;
    dnnl_convolution_desc_t desc;
    if (!arrays.Make(conv, images) || Describe(conv, kDirection, arrays, biased, &desc) != dnnl_success) {
      return prep.error().Unimplemented("oneDNN takes no convolution of this shape");
    }
    if (const int32_t code = primitive.Make(&desc, Arguments(biased), prep.error()); code != WEIR_OK) return code;
    const dnnl_memory_desc_t& filter = primitive.desc(kFilter);
    if (OneDnn().dnnl_memory_desc_equal(&filter, &arrays.filter) == 0) {
      if (const int32_t code = PlanFilter(prep, arrays.filter, filter); code != WEIR_OK) return code;
    }
    prep.Scratch(primitive.scratch_bytes() + filter_bytes);
    // A tile would reorder the filter anew.
    if (filter_bytes == 0) {
      const double tiles = std::min(static_cast<double>(conv.windows.batch / images), conv.Flops() / kPartFlops);
      if (tiles >= 2) prep.Tiles(static_cast<uint64_t>(tiles));
    }
    return WEIR_OK;
  }

  void Zero(const View<float>& result) const {
    if (std::find(result.dims().begin(), result.dims().end(), 0) != result.dims().end()) return;
    std::fill_n(result.data(), result.size(), 0.0f);
  }

  /// `a`, `b` and `to` are the operands of a gradient in the primitive's order, the filter as it is stored.
  int32_t Execute(sdk::Env& env, const float* a, const float* b, float* to, char* scratch) const {
    const OneThread one;
    char* own = scratch + filter_bytes;
    if (filter_bytes == 0) return primitive.Run({a, packed != nullptr ? packed.get() : b, to, own}, env.error());
    if constexpr (kDirection == Direction::kByFilter) {
      if (const int32_t code = primitive.Run({a, b, scratch, own}, env.error()); code != WEIR_OK) return code;
      return reordering.Run({scratch, to}, env.error());
    } else {
      if (const int32_t code = reordering.Run({b, scratch}, env.error()); code != WEIR_OK) return code;
      return primitive.Run({a, scratch, to, own}, env.error());
    }
  }

  /// The forward convolution of this call's images. `bias` is null unless Prepare was told of one. Calls end(first, n)
  /// when elements [first, first + n) of y are there.
  template <class End>
  int32_t Convolve(sdk::Env& env, const float* x, const float* filter, const float* bias, float* y, char* scratch,
                   End&& end) const {
    const OneThread one;
    char* own = scratch + filter_bytes;
    if (packed != nullptr) filter = packed.get();
    if (filter_bytes != 0) {
      if (const int32_t code = reordering.Run({filter, scratch}, env.error()); code != WEIR_OK) return code;
      filter = reinterpret_cast<const float*>(scratch);
    }
    const auto range = env.Range(conv.windows.batch / images);
    const int64_t x_size = images * conv.windows.InputPlaces() * conv.in;
    const int64_t y_size = images * conv.windows.OutputPlaces() * conv.out;
    for (int64_t i = range.first; i < range.second; ++i) {
      const float* from = x + i * x_size;
      float* to = y + i * y_size;
      const int32_t code = bias != nullptr ? primitive.Run({from, filter, to, bias, own}, env.error())
                                           : primitive.Run({from, filter, to, own}, env.error());
      if (code != WEIR_OK) return code;
      end(i * y_size, y_size);
    }
    return WEIR_OK;
  }

  /// The share of the peak grows with the channels that a register covers. A filter that is no constant is reordered at
  /// each call.
  static sdk::Cost Estimate(const sdk::Prep& prep, const weir_profile* profile) {
    Convolution conv;
    sdk::Cost cost;
    if (conv.Plan(prep, kDirection, 2, kDepthwise) != WEIR_OK || conv.empty || !Serves(conv, kDepthwise)) return cost;
    const double peak = sdk::PeakFlops(profile, WEIR_FLOAT32);
    cost.flops = conv.Flops();
    cost.bytes = 4 * static_cast<double>(prep.size(0) + prep.size(1));
    const double in = static_cast<double>(conv.group_in());
    const int64_t lanes = sdk::ThisCpu().Below(sdk::HighestIsa()) == sdk::Isa::kV4 ? 16 : 8;
    double filled = FilledLanes(kDirection == Direction::kByInput ? conv.group_in() : conv.group_out(), lanes);
    const ConvolutionRates& rates = kConvolutionRates[static_cast<size_t>(sdk::ThisCpuClass())];
    if (kDirection == Direction::kByFilter) {
      filled = rates.inputs_in_lanes ? filled * FilledLanes(conv.group_in(), lanes) : FilledLanes(conv.group_out(), 16);
    }
    const Rate& rate = kDirection == Direction::kByFilter  ? rates.by_filter
                       : kDirection == Direction::kByInput ? rates.by_input
                                                           : rates.forward;
    const bool strides = conv.windows.axes[0].stride > 1 || conv.windows.axes[1].stride > 1;
    const double strided = strides && conv.windows.Taps() > 1 ? rate.strided : 1;
    const double reached = rate.share * strided * in / (in + rate.few) * filled;
    const double filter = 4 * static_cast<double>(conv.Rows()) * static_cast<double>(conv.out);
    const double read = filter * static_cast<double>(conv.windows.batch);
    const double read_ns = filter > kSecondCacheBytes ? rate.read_ns * read : 0;
    const bool reorders = kDirection != Direction::kForward || prep.input(1).value == nullptr;
    cost.whole_ns = rates.call_ns + std::max(cost.flops / ((kDepthwise ? 0.45 : reached) * peak), read_ns) +
                    (filter > kNearFilterBytes ? rates.far_ns * read : 0) +
                    (reorders ? rates.reorder_ns * filter / 4 : 0);
    return cost;
  }

 private:
  static std::vector<int> Arguments(bool biased) {
    switch (kDirection) {
      case Direction::kForward:
        if (biased) return {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST, DNNL_ARG_BIAS};
        return {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST};
      case Direction::kByInput:
        return {DNNL_ARG_DIFF_DST, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_SRC};
      default:
        return {DNNL_ARG_SRC, DNNL_ARG_DIFF_DST, DNNL_ARG_DIFF_WEIGHTS};
    }
  }

  int32_t PlanFilter(sdk::Prep& prep, const dnnl_memory_desc_t& stored, const dnnl_memory_desc_t& wanted) {
    const size_t bytes = (OneDnn().dnnl_memory_desc_get_size(&wanted) + 63) / 64 * 64;
    if constexpr (kDirection == Direction::kByFilter) {
      filter_bytes = bytes;
      return reordering.MakeReorder(wanted, stored, prep.error());
    } else {
      const weir_tensor* constant = prep.input(1).value;
      if (constant == nullptr || constant->buf.host == nullptr) {
        filter_bytes = bytes;
        return reordering.MakeReorder(stored, wanted, prep.error());
      }
      return Pack(stored, constant->buf.host, prep.size(1), wanted, prep.error(), &packed);
    }
  }
};

template <bool kDepthwise>
struct Forward : Conv2D<Direction::kForward, kDepthwise> {
  int32_t Run(sdk::Env& env, View<const float> x, View<const float> filter, View<float> y,
              sdk::Scratch<char> scratch) const {
    if (this->conv.empty) {
      this->Zero(y);
      return WEIR_OK;
    }
    return this->Convolve(env, x.data(), filter.data(), nullptr, y.data(), scratch.data(), [](int64_t, int64_t) {});
  }
};

/// activation(x * filter + bias). oneDNN adds the bias; its own Relu would turn NaN into 0.
template <bool kDepthwise>
struct Biased : Conv2D<Direction::kForward, kDepthwise> {
  functors::Finish finish;

  int32_t Prepare(sdk::Prep& prep) {
    if (const int32_t code = Conv2D<Direction::kForward, kDepthwise>::Prepare(prep, true); code != WEIR_OK) return code;
    return functors::PrepareFinish(prep, this->conv, false, &finish);
  }
  int32_t Run(sdk::Env& env, View<const float> x, View<const float> filter, View<const float> bias, View<float> y,
              sdk::Scratch<char> scratch) const {
    return this->Convolve(
        env, x.data(), filter.data(), bias.data(), y.data(), scratch.data(),
        [&](int64_t first, int64_t n) { functors::FinishRowsHere(finish, y.data() + first, nullptr, nullptr, 1, n); });
  }
};

/// activation(x * filter + bias + addend).
struct Residual : Conv2D<Direction::kForward, false> {
  functors::Finish finish;

  int32_t Prepare(sdk::Prep& prep) {
    if (const int32_t code = Conv2D<Direction::kForward, false>::Prepare(prep, true); code != WEIR_OK) return code;
    return functors::PrepareFinish(prep, conv, true, &finish);
  }
  int32_t Run(sdk::Env& env, View<const float> x, View<const float> filter, View<const float> bias,
              View<const float> addend, View<float> y, sdk::Scratch<char> scratch) const {
    return Convolve(env, x.data(), filter.data(), bias.data(), y.data(), scratch.data(), [&](int64_t first, int64_t n) {
      functors::FinishRowsHere(finish, y.data() + first, nullptr, addend.data() + first, 1, n);
    });
  }
};

template <bool kDepthwise>
struct ByInput : Conv2D<Direction::kByInput, kDepthwise> {
  int32_t Run(sdk::Env& env, sdk::HostIntegers, View<const float> filter, View<const float> dy, View<float> dx,
              sdk::Scratch<char> scratch) const {
    if (this->conv.empty) {
      this->Zero(dx);
      return WEIR_OK;
    }
    return this->Execute(env, dy.data(), filter.data(), dx.data(), scratch.data());
  }
};

template <bool kDepthwise>
struct ByFilter : Conv2D<Direction::kByFilter, kDepthwise> {
  int32_t Run(sdk::Env& env, View<const float> x, sdk::HostIntegers, View<const float> dy, View<float> dw,
              sdk::Scratch<char> scratch) const {
    if (this->conv.empty) {
      this->Zero(dw);
      return WEIR_OK;
    }
    return this->Execute(env, x.data(), dy.data(), dw.data(), scratch.data());
  }
};

}  // namespace

void AddConvolution(sdk::KernelTable& k) {
  const auto add = [&k]<class Kernel>(const char* op, Kernel*) {
    k.Add<Kernel>(op).Restrict("T", {WEIR_FLOAT32}).Class(WEIR_CLASS_CONV);
  };
  add("Conv2D", static_cast<Forward<false>*>(nullptr));
  add("_BiasedConv2D", static_cast<Biased<false>*>(nullptr));
  add("_ResidualConv2D", static_cast<Residual*>(nullptr));
  add("_BiasedDepthwiseConv2D", static_cast<Biased<true>*>(nullptr));
  add("Conv2DBackpropInput", static_cast<ByInput<false>*>(nullptr));
  add("Conv2DBackpropFilter", static_cast<ByFilter<false>*>(nullptr));
  add("DepthwiseConv2dNative", static_cast<Forward<true>*>(nullptr));
  add("DepthwiseConv2dNativeBackpropInput", static_cast<ByInput<true>*>(nullptr));
  add("DepthwiseConv2dNativeBackpropFilter", static_cast<ByFilter<true>*>(nullptr));
}

}  // namespace weir::kernels_onednn
