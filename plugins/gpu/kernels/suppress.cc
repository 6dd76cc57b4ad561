// Suppression of boxes that overlap better ones: NonMaxSuppressionV2 to V4. One block of threads selects greedily: each
// round finds the best box that is left and lowers the scores of those that it suppresses.
#include <algorithm>
#include <cmath>
#include <limits>

#include "plugins/gpu/kernels/families.h"
#include "plugins/gpu/kernels/storage.h"
#include "sdk/cpp/kernel.h"

namespace weir::gpu {
namespace {

using sdk::Buffer;
using sdk::Context;

constexpr int kSelectThreads = 512;

struct CornerBox {
  float top, left, bottom, right;
  WEIR_GPU_FN explicit CornerBox(const float* at) {
    top = at[0] < at[2] ? at[0] : at[2];
    left = at[1] < at[3] ? at[1] : at[3];
    bottom = at[0] < at[2] ? at[2] : at[0];
    right = at[1] < at[3] ? at[3] : at[1];
  }
  WEIR_GPU_FN float Area() const { return (bottom - top) * (right - left); }
};
/// Intersection over union, corners in any order; 0 if a box has no area.
WEIR_GPU_FN inline float OverlapOf(const float* x, const float* y) {
  const CornerBox a(x), b(y);
  if (a.Area() <= 0 || b.Area() <= 0) return 0;
  const float bottom = a.bottom < b.bottom ? a.bottom : b.bottom, top = a.top > b.top ? a.top : b.top;
  const float right = a.right < b.right ? a.right : b.right, left = a.left > b.left ? a.left : b.left;
  const float height = bottom - top > 0 ? bottom - top : 0, width = right - left > 0 ? right - left : 0;
  const float shared = height * width;
  return shared / (a.Area() + b.Area() - shared);
}

/// What the op is told.
struct SelectLimits {
  int64_t most = 0;
  float overlap = 0;
  float score = std::numeric_limits<float>::lowest();  // that a box must be above
};

struct SelectBoxesWork {
  Ptr<const float> boxes, scores;
  Ptr<float> left;  // scores of the boxes that may still be selected; others are not above the limit
  Ptr<int32_t> selected;
  Ptr<int64_t> count;
  int64_t n, most;
  SelectLimits limits;

  struct Best {
    float score;
    int32_t box;  // -1: none
  };
  WEIR_GPU_FN static bool Better(const Best& x, const Best& y) {
    if (x.box < 0 || y.box < 0) return x.box >= 0;
    return x.score > y.score || (x.score == y.score && x.box < y.box);
  }

  template <class Block>
  WEIR_GPU_FN void operator()(Block& block) const {
    Best* const best = block.template Shared<Best>(0);
    block.ForEachThread([&](int t) {
      for (int64_t i = t; i < n; i += block.threads()) left[i] = scores[i];
      if (t == 0) count[0] = 0;
    });
    for (int64_t round = 0; round < most; ++round) {
      block.ForEachThread([&](int t) {
        Best own{0, -1};
        for (int64_t i = t; i < n; i += block.threads()) {
          const Best other{left[i], static_cast<int32_t>(i)};
          if (other.score > limits.score && Better(other, own)) own = other;
        }
        best[t] = own;
      });
      for (int half = block.threads() / 2; half > 0; half /= 2) {
        block.ForEachThread([&](int t) {
          if (t < half && Better(best[t + half], best[t])) best[t] = best[t + half];
        });
      }
      if (best[0].box < 0) break;
      block.ForEachThread([&](int t) {
        const int64_t chosen = best[0].box;
        for (int64_t i = t; i < n; i += block.threads()) {
          if (i == chosen) {
            left[i] = limits.score;
            selected[round] = static_cast<int32_t>(i);
            count[0] = round + 1;
            continue;
          }
          const float shared = OverlapOf(boxes.get() + 4 * i, boxes.get() + 4 * chosen);
          if (shared > limits.overlap) {
            left[i] = limits.score;
          } else if (!(shared <= limits.overlap)) {
            left[i] *= 0;  // an overlap that is not a number, as on the CPU
          }
        }
      });
    }
  }
};

/// The selected boxes, with zeros behind them.
struct WriteSelectedWork {
  Ptr<const int32_t> selected;
  Ptr<int32_t> to;
  int64_t count;
  WEIR_GPU_FN void operator()(int64_t i) const { to[i] = i < count ? selected[i] : 0; }
};
struct WriteCountWork {
  Ptr<int32_t> to;
  int64_t count;
  WEIR_GPU_FN void operator()(int64_t) const { to[0] = static_cast<int32_t>(count); }
};

int32_t CheckBoxes(const sdk::Error& error, const weir_shape& boxes, const weir_shape& scores) {
  if (boxes.rank != 2) return error.InvalidArgument("boxes must be 2-D", boxes);
  if (boxes.dims[1] != 4) return error.InvalidArgument("boxes must have 4 columns, got shape ", boxes);
  if (scores.rank != 1) return error.InvalidArgument("scores must be 1-D", scores);
  if (scores.dims[0] != boxes.dims[0]) {
    return error.InvalidArgument("scores has incompatible shape ", scores, " for boxes ", boxes);
  }
  if (boxes.dims[0] <= std::numeric_limits<int32_t>::max()) return WEIR_OK;
  return error.InvalidArgument("boxes of shape ", boxes, " are too many for int32 indices");
}

/// kScored: with a limit of scores. kCounted: the number of boxes is an output, and they may be padded.
template <bool kScored, bool kCounted>
struct NonMaxSuppression {
  bool padded = false;
  int32_t Prepare(const sdk::Node& node, const sdk::Error&) {
    padded = kCounted && node.Bool("pad_to_max_output_size");
    return WEIR_OK;
  }

  template <class Threshold>
  int32_t Compute(Context& ctx) {
    SelectLimits limits;
    if (const int32_t code = ReadLimits<Threshold>(ctx, &limits); code != WEIR_OK) return code;
    Buffer<const float> boxes, scores;
    if (const int32_t code = ctx.Input(0, &boxes); code != WEIR_OK) return code;
    if (const int32_t code = ctx.Input(1, &scores); code != WEIR_OK) return code;
    if (const int32_t code = CheckBoxes(ctx.error(), boxes.shape(), scores.shape()); code != WEIR_OK) return code;
    const int64_t n = scores.size(), most = std::min(limits.most, n);
    const NativeStream stream = StreamOf(ctx);
    int64_t count = 0;
    int32_t* selected = nullptr;
    if (most > 0) {
      weir_buf memory{};
      const uint64_t bytes = 64 + static_cast<uint64_t>(n) * sizeof(float) + static_cast<uint64_t>(most) * 4;
      if (const int32_t code = ctx.Temp(bytes, WEIR_SPACE_DEVICE, &memory); code != WEIR_OK) return code;
      auto* const found = reinterpret_cast<int64_t*>(memory.handle + memory.offset);
      auto* const left = reinterpret_cast<float*>(found + 8);
      selected = reinterpret_cast<int32_t*>(left + n);
      const SelectBoxesWork work{AddressOf(boxes), AddressOf(scores), left, selected, found, n, most, limits};
      int32_t code = LaunchBlocks(stream, 1, kSelectThreads, kSelectThreads * sizeof(SelectBoxesWork::Best), work)
                         .Tell(ctx.error(), "launch");
      if (code == WEIR_OK) code = ReadBack(stream, &count, found, sizeof count).Tell(ctx.error(), "read");
      if (code != WEIR_OK) return code;
    }
    return Write(ctx, selected, count, padded ? limits.most : count);
  }

 private:
  template <class Threshold>
  static int32_t ReadScalar(const Context& ctx, uint32_t i, std::string_view name, float* value) {
    sdk::View<const Threshold> view;
    if (const int32_t code = ctx.Input(i, &view); code != WEIR_OK) return code;
    if (view.rank() != 0) return ctx.error().InvalidArgument(name, " must be 0-D, got shape ", view.shape());
    *value = static_cast<float>(view[0]);
    return WEIR_OK;
  }
  template <class Threshold>
  static int32_t ReadLimits(const Context& ctx, SelectLimits* limits) {
    const sdk::Error& error = ctx.error();
    sdk::Integers most;
    if (const int32_t code = ctx.Input(2, &most); code != WEIR_OK) return code;
    if (most.rank() != 0) return error.InvalidArgument("max_output_size must be 0-D, got shape ", most.shape());
    limits->most = most[0];
    if (limits->most < 0) return error.InvalidArgument("output size must be non-negative");
    int32_t code = ReadScalar<Threshold>(ctx, 3, "iou_threshold", &limits->overlap);
    if (code != WEIR_OK) return code;
    if (!(limits->overlap >= 0 && limits->overlap <= 1)) {
      return error.InvalidArgument("iou_threshold must be in [0, 1]");
    }
    if constexpr (kScored) code = ReadScalar<Threshold>(ctx, 4, "score_threshold", &limits->score);
    return code;
  }

  static int32_t Write(const Context& ctx, const int32_t* selected, int64_t count, int64_t size) {
    Buffer<int32_t> boxes, number;
    if (const int32_t code = ctx.Output(0, weir_shape{1, 0, &size}, &boxes); code != WEIR_OK) return code;
    const Outcome written = Launch(StreamOf(ctx), size, WriteSelectedWork{selected, AddressOf(boxes), count});
    if (!written.ok() || !kCounted) return written.Tell(ctx.error(), "launch");
    if (const int32_t code = ctx.Output(1, weir_shape{0, 0, nullptr}, &number); code != WEIR_OK) return code;
    return Launch(StreamOf(ctx), 1, WriteCountWork{AddressOf(number), count}).Tell(ctx.error(), "launch");
  }
};

}  // namespace

void AddSuppress(sdk::KernelTable& k) {
  // As in TensorFlow, boxes are floats; the sizes and limits lie in host memory.
#if defined(WEIR_KERNEL_DTYPES_SHORT)
  constexpr auto kThresholds = sdk::Attr("T_threshold", sdk::Types<float>());
#else
  constexpr auto kThresholds = sdk::Attr("T_threshold", sdk::Types<float, sdk::half>());
#endif
  const auto add = [](sdk::Kernel& kernel, uint64_t host_inputs) {
    kernel.Restrict("T", DTypes({WEIR_FLOAT32})).Flags(WEIR_KERNEL_STREAM).Class(WEIR_CLASS_SORT, 10);
    kernel.record.host_inputs = host_inputs;
  };
  add(k.Add<NonMaxSuppression<false, false>>("NonMaxSuppressionV2", kThresholds), 4 | 8);
  add(k.Add<NonMaxSuppression<true, false>>("NonMaxSuppressionV3", kThresholds), 4 | 8 | 16);
  add(k.Add<NonMaxSuppression<true, true>>("NonMaxSuppressionV4", kThresholds), 4 | 8 | 16);
}

}  // namespace weir::gpu
