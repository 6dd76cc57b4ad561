// Suppression of boxes that overlap better ones.
#include <algorithm>
#include <cmath>
#include <limits>
#include <queue>
#include <vector>

#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/families.h"
#include "plugins/kernels_eigen/operands.h"
#include "sdk/cpp/kernel.h"

namespace weir::kernels_eigen {
namespace {

using sdk::Context;
using sdk::Error;
using sdk::Node;
using sdk::View;

/// A box that is not selected yet; its score is up to date with the first `seen` selected boxes.
struct Candidate {
  float score = 0;
  int32_t box = 0;
  size_t seen = 0;

  /// Better ones first, of equal ones the first.
  friend bool operator<(const Candidate& x, const Candidate& y) {
    return x.score < y.score || (x.score == y.score && x.box > y.box);
  }
};

struct Limits {
  int64_t most = 0;                                    // boxes selected
  float overlap = 0;                                   // above which a box is suppressed
  float score = std::numeric_limits<float>::lowest();  // that a box must be above
  float sigma = 0;                                     // positive: overlaps lower scores instead
};

struct Selection {
  std::vector<int32_t> boxes;
  std::vector<float> scores;

  /// Selects greedily. `overlap(i, j)`: of two boxes; NaN makes the score 0, as in
  /// TensorFlow, and with a sigma suppresses the box.
  template <class Score, class Overlap>
  void Find(int64_t count, const Limits& limits, Score score, Overlap overlap) {
    std::priority_queue<Candidate> queue;
    for (int64_t i = 0; i < count; ++i) {
      const float own = score(i);
      if (own > limits.score) queue.push({own, static_cast<int32_t>(i), 0});
    }
    const float factor = limits.sigma > 0 ? -0.5f / limits.sigma : 0;
    while (static_cast<int64_t>(boxes.size()) < limits.most && !queue.empty()) {
      Candidate next = queue.top();
      queue.pop();
      const float before = next.score;
      bool suppressed = false;
      for (size_t i = boxes.size(); i-- > next.seen && !suppressed;) {
        const float shared = overlap(next.box, boxes[i]);
        if (limits.sigma > 0) {
          next.score *= std::exp(factor * shared * shared);
          suppressed = !(next.score > limits.score);
        } else {
          if (!(shared <= limits.overlap)) next.score *= 0;
          suppressed = shared > limits.overlap || !(next.score > limits.score);
        }
      }
      if (suppressed) continue;
      next.seen = boxes.size();
      if (next.score == before) {
        boxes.push_back(next.box);
        scores.push_back(next.score);
      } else {
        queue.push(next);
      }
    }
  }
};

/// Intersection over union of two boxes of [boxes, 4], corners in any order; 0 if one has no area.
template <class T>
float OverlapOf(const T* boxes, int64_t i, int64_t j) {
  struct Box {
    float top, left, bottom, right;
    explicit Box(const T* at) {
      const float y1 = at[0], x1 = at[1], y2 = at[2], x2 = at[3];
      top = std::min(y1, y2);
      left = std::min(x1, x2);
      bottom = std::max(y1, y2);
      right = std::max(x1, x2);
    }
    float Area() const { return (bottom - top) * (right - left); }
  };
  const Box a(boxes + 4 * i), b(boxes + 4 * j);
  if (a.Area() <= 0 || b.Area() <= 0) return 0;
  const float height = std::max(std::min(a.bottom, b.bottom) - std::max(a.top, b.top), 0.0f);
  const float width = std::max(std::min(a.right, b.right) - std::max(a.left, b.left), 0.0f);
  const float shared = height * width;
  return shared / (a.Area() + b.Area() - shared);
}

/// Reads scalar input i.
template <class T>
int32_t ReadScalar(const Context& ctx, uint32_t i, std::string_view name, float* value) {
  View<const T> view;
  if (const int32_t code = ctx.Input(i, &view); code != WEIR_OK) return code;
  if (view.rank() != 0) return ctx.error().InvalidArgument(name, " must be 0-D, got shape ", view.shape());
  *value = static_cast<float>(view[0]);
  return WEIR_OK;
}

int32_t ReadMost(const Context& ctx, Limits* limits) {
  sdk::Integers most;
  if (const int32_t code = ctx.Input(2, &most); code != WEIR_OK) return code;
  if (most.rank() != 0) {
    return ctx.error().InvalidArgument("max_output_size must be 0-D, got shape ", most.shape());
  }
  limits->most = most[0];
  return limits->most >= 0 ? WEIR_OK : ctx.error().InvalidArgument("output size must be non-negative");
}

int32_t CheckOverlap(const Context& ctx, float overlap) {
  return overlap >= 0 && overlap <= 1 ? WEIR_OK : ctx.error().InvalidArgument("iou_threshold must be in [0, 1]");
}

/// Boxes [boxes, 4] and scores [boxes], inputs 0 and 1.
template <class T>
int32_t SelectBoxes(const Context& ctx, const Limits& limits, Selection* selection) {
  View<const T> boxes, scores;
  if (const int32_t code = ctx.Input(0, &boxes); code != WEIR_OK) return code;
  if (const int32_t code = ctx.Input(1, &scores); code != WEIR_OK) return code;
  if (boxes.rank() != 2) return ctx.error().InvalidArgument("boxes must be 2-D", boxes.shape());
  if (boxes.dim(1) != 4) return ctx.error().InvalidArgument("boxes must have 4 columns, got shape ", boxes.shape());
  if (scores.rank() != 1) return ctx.error().InvalidArgument("scores must be 1-D", scores.shape());
  if (scores.dim(0) != boxes.dim(0)) {
    return ctx.error().InvalidArgument("scores has incompatible shape ", scores.shape(), " for boxes ", boxes.shape());
  }
  if (boxes.dim(0) > std::numeric_limits<int32_t>::max()) {
    return ctx.error().InvalidArgument("boxes of shape ", boxes.shape(), " are too many for int32 indices");
  }
  selection->Find(
      boxes.dim(0), limits, [&](int64_t i) { return static_cast<float>(scores[i]); },
      [&](int64_t i, int64_t j) { return OverlapOf(boxes.data(), i, j); });
  return WEIR_OK;
}

/// Writes a vector of `size` elements that begins with `values`; the rest are zeros.
template <class T, class V>
int32_t WritePadded(const Context& ctx, uint32_t i, const std::vector<V>& values, int64_t size) {
  View<T> out;
  if (const int32_t code = ctx.Output(i, {size}, &out); code != WEIR_OK) return code;
  for (size_t k = 0; k < values.size(); ++k) out[static_cast<int64_t>(k)] = static_cast<T>(values[k]);
  std::fill(out.data() + values.size(), out.data() + size, T());
  return WEIR_OK;
}

int32_t WriteBoxes(const Context& ctx, const Selection& selection) {
  return WritePadded<int32_t>(ctx, 0, selection.boxes, static_cast<int64_t>(selection.boxes.size()));
}

int32_t WriteCount(const Context& ctx, uint32_t i, const Selection& selection) {
  View<int32_t> count;
  if (const int32_t code = ctx.Output(i, {}, &count); code != WEIR_OK) return code;
  count[0] = static_cast<int32_t>(selection.boxes.size());
  return WEIR_OK;
}

struct NonMaxSuppression {
  float overlap = 0;
  int32_t Prepare(const Node& node, const Error&) {
    overlap = static_cast<float>(node.Float("iou_threshold", 0.5));
    return WEIR_OK;
  }
  int32_t Compute(Context& ctx) const {
    Limits limits;
    limits.overlap = overlap;
    Selection selection;
    if (const int32_t code = CheckOverlap(ctx, overlap); code != WEIR_OK) return code;
    if (const int32_t code = ReadMost(ctx, &limits); code != WEIR_OK) return code;
    if (const int32_t code = SelectBoxes<float>(ctx, limits, &selection); code != WEIR_OK) return code;
    return WriteBoxes(ctx, selection);
  }
};

/// Versions 2 to 5: thresholds are inputs, `kScored`: that of scores too, `kSoft`: and sigma.
template <bool kScored, bool kSoft>
struct Suppressing {
  bool padded = false;
  int32_t Prepare(const Node& node, const Error&) {
    padded = node.Bool("pad_to_max_output_size", false);
    return WEIR_OK;
  }

  template <class T, class Threshold>
  int32_t Select(const Context& ctx, Limits* limits, Selection* selection) const {
    if (const int32_t code = ReadMost(ctx, limits); code != WEIR_OK) return code;
    if (const int32_t code = ReadScalar<Threshold>(ctx, 3, "iou_threshold", &limits->overlap); code != WEIR_OK) {
      return code;
    }
    if (const int32_t code = CheckOverlap(ctx, limits->overlap); code != WEIR_OK) return code;
    if constexpr (kScored) {
      if (const int32_t code = ReadScalar<Threshold>(ctx, 4, "score_threshold", &limits->score); code != WEIR_OK) {
        return code;
      }
    }
    if constexpr (kSoft) {
      if (const int32_t code = ReadScalar<Threshold>(ctx, 5, "soft_nms_sigma", &limits->sigma); code != WEIR_OK) {
        return code;
      }
      if (!(limits->sigma >= 0)) return ctx.error().InvalidArgument("soft_nms_sigma_val must be >= 0");
    }
    return SelectBoxes<T>(ctx, *limits, selection);
  }

  int64_t SizeFor(const Limits& limits, const Selection& selection) const {
    return padded ? limits.most : static_cast<int64_t>(selection.boxes.size());
  }
};

/// Versions 2 and 3.
template <bool kScored>
struct SuppressionOfBoxes : Suppressing<kScored, false> {
  template <class T, class Threshold>
  int32_t Compute(Context& ctx) const {
    Limits limits;
    Selection selection;
    const int32_t code = this->template Select<T, Threshold>(ctx, &limits, &selection);
    return code != WEIR_OK ? code : WriteBoxes(ctx, selection);
  }
};

struct NonMaxSuppressionV4 : Suppressing<true, false> {
  template <class T, class Threshold>
  int32_t Compute(Context& ctx) const {
    Limits limits;
    Selection selection;
    if (const int32_t code = Select<T, Threshold>(ctx, &limits, &selection); code != WEIR_OK) return code;
    const int32_t code = WritePadded<int32_t>(ctx, 0, selection.boxes, SizeFor(limits, selection));
    return code != WEIR_OK ? code : WriteCount(ctx, 1, selection);
  }
};

struct NonMaxSuppressionV5 : Suppressing<true, true> {
  template <class T>
  int32_t Compute(Context& ctx) const {
    Limits limits;
    Selection selection;
    if (const int32_t code = Select<T, T>(ctx, &limits, &selection); code != WEIR_OK) return code;
    const int64_t size = SizeFor(limits, selection);
    if (const int32_t code = WritePadded<int32_t>(ctx, 0, selection.boxes, size); code != WEIR_OK) return code;
    if (const int32_t code = WritePadded<T>(ctx, 1, selection.scores, size); code != WEIR_OK) return code;
    return WriteCount(ctx, 2, selection);
  }
};

struct SuppressionWithOverlaps {
  int32_t Compute(Context& ctx) const {
    const Error& error = ctx.error();
    Limits limits;
    if (const int32_t code = ReadMost(ctx, &limits); code != WEIR_OK) return code;
    if (const int32_t code = ReadScalar<float>(ctx, 3, "overlap_threshold", &limits.overlap); code != WEIR_OK) {
      return code;
    }
    if (const int32_t code = ReadScalar<float>(ctx, 4, "score_threshold", &limits.score); code != WEIR_OK) return code;
    View<const float> overlaps, scores;
    if (const int32_t code = ctx.Input(0, &overlaps); code != WEIR_OK) return code;
    if (const int32_t code = ctx.Input(1, &scores); code != WEIR_OK) return code;
    if (overlaps.rank() != 2) return error.InvalidArgument("overlaps must be 2-D", overlaps.shape());
    const int64_t count = overlaps.dim(0);
    if (overlaps.dim(1) != count) return error.InvalidArgument("overlaps must be square", overlaps.shape());
    if (scores.rank() != 1) return error.InvalidArgument("scores must be 1-D", scores.shape());
    if (scores.dim(0) != count) {
      return error.InvalidArgument("scores has incompatible shape ", scores.shape(), " for overlaps ",
                                   overlaps.shape());
    }
    Selection selection;
    selection.Find(
        count, limits, [&](int64_t i) { return scores[i]; },
        [&](int64_t i, int64_t j) { return overlaps[i * count + j]; });
    return WriteBoxes(ctx, selection);
  }
};

/// Boxes of several classes: those of all classes by their scores.
struct CombinedSuppression {
  bool per_class = false, clip = true;
  int32_t Prepare(const Node& node, const Error&) {
    per_class = node.Bool("pad_per_class", false);
    clip = node.Bool("clip_boxes", true);
    return WEIR_OK;
  }

  struct Found {
    float score;
    int64_t box;  // a row of boxes
    int64_t of_class;
  };
  struct Scene {
    View<const float> boxes, scores;
    int64_t count, kinds, classes;  // kinds: of boxes, 1 or one for each class
  };

  int32_t Compute(Context& ctx) const {
    Scene scene;
    Limits limits;
    int64_t total = 0;
    if (const int32_t code = Read(ctx, &scene, &limits, &total); code != WEIR_OK) return code;
    const int64_t batch = scene.boxes.dim(0);
    const int64_t size = per_class ? std::min(total, limits.most * scene.classes) : total;
    View<float> boxes, scores, classes;
    View<int32_t> valid;
    if (const int32_t code = ctx.Output(0, {batch, size, 4}, &boxes); code != WEIR_OK) return code;
    if (const int32_t code = ctx.Output(1, {batch, size}, &scores); code != WEIR_OK) return code;
    if (const int32_t code = ctx.Output(2, {batch, size}, &classes); code != WEIR_OK) return code;
    if (const int32_t code = ctx.Output(3, {batch}, &valid); code != WEIR_OK) return code;
    for (const View<float>* out : {&boxes, &scores, &classes}) std::fill_n(out->data(), out->size(), 0.0f);
    for (int64_t image = 0; image < batch; ++image) {
      const std::vector<Found> found = Best(scene, image, limits);
      const int64_t kept = std::min(size, static_cast<int64_t>(found.size()));
      valid[image] = static_cast<int32_t>(kept);
      for (int64_t i = 0; i < kept; ++i) {
        const Found& one = found[static_cast<size_t>(i)];
        for (int64_t k = 0; k < 4; ++k) {
          const float at = scene.boxes[4 * one.box + k];
          boxes[(image * size + i) * 4 + k] = clip ? std::max(std::min(at, 1.0f), 0.0f) : at;
        }
        scores[image * size + i] = one.score;
        classes[image * size + i] = static_cast<float>(one.of_class);
      }
    }
    return WEIR_OK;
  }

  static int32_t Read(const Context& ctx, Scene* scene, Limits* limits, int64_t* total) {
    const Error& error = ctx.error();
    if (const int32_t code = ctx.Input(0, &scene->boxes); code != WEIR_OK) return code;
    if (const int32_t code = ctx.Input(1, &scene->scores); code != WEIR_OK) return code;
    const View<const float>&boxes = scene->boxes, &scores = scene->scores;
    if (boxes.rank() != 4) return error.InvalidArgument("boxes must be 4-D", boxes.shape());
    if (scores.rank() != 3) return error.InvalidArgument("scores must be 3-D", scores.shape());
    if (boxes.dim(0) != scores.dim(0)) return error.InvalidArgument("boxes and scores must have same batch size");
    if (boxes.dim(3) != 4) return error.InvalidArgument("boxes must have 4 columns");
    if (boxes.dim(1) != scores.dim(1)) return error.InvalidArgument("scores has incompatible shape");
    if (boxes.dim(2) != 1 && boxes.dim(2) != scores.dim(2)) {
      return error.InvalidArgument("third dimension of boxes must be either 1 or num classes");
    }
    scene->count = boxes.dim(1);
    scene->kinds = boxes.dim(2);
    scene->classes = scores.dim(2);
    sdk::Integers most, all;
    if (const int32_t code = ctx.Input(2, &most); code != WEIR_OK) return code;
    if (const int32_t code = ctx.Input(3, &all); code != WEIR_OK) return code;
    if (most.rank() != 0) {
      return error.InvalidArgument("max_size_per_class must be 0-D, got shape ", most.shape());
    }
    if (all.rank() != 0) return error.InvalidArgument("max_total_size must be 0-D, got shape ", all.shape());
    if (most[0] <= 0) return error.InvalidArgument("max_size_per_class must be positive");
    if (all[0] <= 0) return error.InvalidArgument("max_total_size must be > 0");
    limits->most = most[0];
    *total = all[0];
    if (const int32_t code = ReadScalar<float>(ctx, 4, "iou_threshold", &limits->overlap); code != WEIR_OK) return code;
    if (const int32_t code = CheckOverlap(ctx, limits->overlap); code != WEIR_OK) return code;
    return ReadScalar<float>(ctx, 5, "score_threshold", &limits->score);
  }

  static std::vector<Found> Best(const Scene& scene, int64_t image, const Limits& limits) {
    std::vector<Found> found;
    for (int64_t c = 0; c < scene.classes; ++c) {
      const auto row = [&](int64_t i) { return (image * scene.count + i) * scene.kinds + (scene.kinds == 1 ? 0 : c); };
      Selection selection;
      selection.Find(
          scene.count, limits, [&](int64_t i) { return scene.scores[(image * scene.count + i) * scene.classes + c]; },
          [&](int64_t i, int64_t j) { return OverlapOf(scene.boxes.data(), row(i), row(j)); });
      for (size_t i = 0; i < selection.boxes.size(); ++i)
        found.push_back({selection.scores[i], row(selection.boxes[i]), c});
    }
    std::stable_sort(found.begin(), found.end(), [](const Found& x, const Found& y) { return x.score > y.score; });
    return found;
  }
};

}  // namespace

void AddSuppress(sdk::KernelTable& k) {
  constexpr auto kBoxTypes = sdk::Types<sdk::half, float>();
  constexpr auto kThresholdTypes = sdk::Attr("T_threshold", kBoxTypes);
  k.Add<NonMaxSuppression>("NonMaxSuppression").Class(WEIR_CLASS_SORT, 10);
  k.Add<SuppressionOfBoxes<false>>("NonMaxSuppressionV2", kBoxTypes, kThresholdTypes).Class(WEIR_CLASS_SORT, 10);
  k.Add<SuppressionOfBoxes<true>>("NonMaxSuppressionV3", kBoxTypes, kThresholdTypes).Class(WEIR_CLASS_SORT, 10);
  k.Add<NonMaxSuppressionV4>("NonMaxSuppressionV4", kBoxTypes, kThresholdTypes).Class(WEIR_CLASS_SORT, 10);
  k.Add<NonMaxSuppressionV5>("NonMaxSuppressionV5", kBoxTypes).Class(WEIR_CLASS_SORT, 10);
  k.Add<CombinedSuppression>("CombinedNonMaxSuppression").Class(WEIR_CLASS_SORT, 10);
  k.Add<SuppressionWithOverlaps>("NonMaxSuppressionWithOverlaps").Class(WEIR_CLASS_SORT, 10);
}

}  // namespace weir::kernels_eigen
