// Colour spaces, and adjustments of contrast, hue and saturation: a thread for each pixel.
#include "plugins/functors/colours.h"

#include "plugins/gpu/kernels/families.h"
#include "plugins/gpu/kernels/storage.h"
#include "sdk/cpp/kernel.h"

namespace weir::gpu {
namespace {

using functors::Pixel;
using sdk::AnyInput;
using sdk::AnyOutput;
using sdk::Env;
using sdk::Prep;

// What becomes of a pixel; `by` is 0 without an operand.
struct ToHsv {
  template <class C>
  WEIR_HD Pixel<C> operator()(const Pixel<C>& rgb, C) const {
    return functors::HsvOf(rgb);
  }
};
struct ToRgb {
  template <class C>
  WEIR_HD Pixel<C> operator()(const Pixel<C>& hsv, C) const {
    return functors::RgbOf(hsv);
  }
};
struct TurnHue {
  template <class C>
  WEIR_HD Pixel<C> operator()(const Pixel<C>& rgb, C by) const {
    return functors::Turned(rgb, by);
  }
};
struct Saturate {
  template <class C>
  WEIR_HD Pixel<C> operator()(const Pixel<C>& rgb, C by) const {
    return functors::Saturated(rgb, by);
  }
};

template <class F, class S>
struct PixelWork {
  using C = typename S::C;
  Ptr<const char> x;
  Ptr<const float> by;  // null: none
  Ptr<char> y;
  S storage;
  WEIR_GPU_FN void operator()(int64_t i) const {
    const char* const from = x.get();
    const Pixel<C> pixel{storage.Load(from, 3 * i), storage.Load(from, 3 * i + 1), storage.Load(from, 3 * i + 2)};
    const Pixel<C> made = F()(pixel, by ? static_cast<C>(by[0]) : C(0));
    storage.Store(y.get(), 3 * i, made.a);
    storage.Store(y.get(), 3 * i + 1, made.b);
    storage.Store(y.get(), 3 * i + 2, made.c);
  }
};
template <class F>
int32_t ChangePixels(const Env& env, const AnyInput& x, const void* by, const AnyOutput& y) {
  int32_t code = WEIR_OK;
  WithStorage<kFloats>(x.dtype(), [&](auto storage) {
    const Ptr<const float> operand(static_cast<const float*>(by));
    code = Launch(env, y.size() / 3, PixelWork<F, decltype(storage)>{From(x), operand, To(y), storage});
  });
  return code;
}

template <class F>
struct ColourSpace : functors::ColourSpacePlan {
  int32_t Run(Env& env, AnyInput x, AnyOutput y) const { return ChangePixels<F>(env, x, nullptr, y); }
};
struct AdjustHue {
  int32_t Prepare(Prep& prep) { return functors::PlanAdjustment(prep, "delta"); }
  int32_t Run(Env& env, AnyInput x, AnyInput delta, AnyOutput y) const {
    return ChangePixels<TurnHue>(env, x, delta.data(), y);
  }
};
struct AdjustSaturation {
  int32_t Prepare(Prep& prep) { return functors::PlanAdjustment(prep, "scale"); }
  int32_t Run(Env& env, AnyInput x, AnyInput scale, AnyOutput y) const {
    return ChangePixels<Saturate>(env, x, scale.data(), y);
  }
};

constexpr int kContrastThreads = 128;

/// The mean of a channel of an image; a block for each.
template <class S>
struct ChannelMeanWork {
  Ptr<const char> x;
  Ptr<double> means;
  int64_t pixels, channels;
  S storage;
  template <class Block>
  WEIR_GPU_FN void operator()(Block& block) const {
    double* const sums = block.template Shared<double>(0);
    const int64_t first = block.index() / channels * pixels * channels + block.index() % channels;
    block.ForEachThread([&](int t) {
      double sum = 0;
      for (int64_t i = t; i < pixels; i += block.threads()) {
        sum += static_cast<double>(storage.Load(x.get(), first + i * channels));
      }
      sums[t] = sum;
    });
    for (int half = block.threads() / 2; half > 0; half /= 2) {
      block.ForEachThread([&](int t) {
        if (t < half) sums[t] += sums[t + half];
      });
    }
    block.ForEachThread([&](int t) {
      if (t == 0) means[block.index()] = sums[0] / static_cast<double>(pixels);
    });
  }
};
template <class S>
struct ContrastWork {
  Ptr<const char> x;
  Ptr<const float> factor;
  Ptr<const double> means;
  Ptr<char> y;
  int64_t pixels, channels;
  S storage;
  WEIR_GPU_FN void operator()(int64_t i) const {
    const auto mean = static_cast<float>(means[i / channels / pixels * channels + i % channels]);
    storage.Store(y.get(), i, (static_cast<float>(storage.Load(x.get(), i)) - mean) * factor[0] + mean);
  }
};
struct AdjustContrast : functors::ContrastPlan {
  int32_t Prepare(Prep& prep) {
    prep.MayAlias(0, 0);
    const int32_t code = Plan(prep);
    if (code == WEIR_OK && images > 0) prep.Scratch(static_cast<uint64_t>(images * channels) * sizeof(double));
    return code;
  }
  int32_t Run(Env& env, AnyInput x, AnyInput factor, AnyOutput y, sdk::Scratch<double> means) const {
    if (images == 0) return WEIR_OK;
    int32_t code = WEIR_OK;
    WithStorage<kFloats>(x.dtype(), [&](auto storage) {
      using S = decltype(storage);
      const Ptr<double> to(means.data());
      code = LaunchBlocks(env, images * channels, kContrastThreads, kContrastThreads * sizeof(double),
                          ChannelMeanWork<S>{From(x), to, pixels, channels, storage});
      if (code != WEIR_OK) return;
      const Ptr<const float> by(static_cast<const float*>(factor.data()));
      code = Launch(env, y.size(), ContrastWork<S>{From(x), by, Ptr<const double>(means.data()), To(y), pixels,
                                                   channels, storage});
    });
    return code;
  }
};

}  // namespace

void AddColours(sdk::KernelTable& k) {
  constexpr uint64_t kImages = DTypes({WEIR_FLOAT32}) | (kShort ? 0 : DTypes({WEIR_FLOAT16}));
  const auto add = [](sdk::Kernel& kernel, uint64_t dtypes, double flops) {
    kernel.Restrict("T", dtypes).Class(WEIR_CLASS_ELEMENTWISE, flops);
  };
  add(k.Add<ColourSpace<ToHsv>>("RGBToHSV"), kFloatingBits, 8);
  add(k.Add<ColourSpace<ToRgb>>("HSVToRGB"), kFloatingBits, 8);
  add(k.Add<AdjustHue>("AdjustHue"), kImages, 12);
  add(k.Add<AdjustSaturation>("AdjustSaturation"), kImages, 16);
  k.Add<AdjustContrast>("AdjustContrastv2").Restrict("T", kImages).Class(WEIR_CLASS_REDUCE, 4);
}

}  // namespace weir::gpu
