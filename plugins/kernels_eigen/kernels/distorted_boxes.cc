// Random parts of an image that cover enough of a box, the same as TensorFlow's for a seed.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "plugins/kernels_eigen/function_families.h"
#include "plugins/kernels_eigen/kernels/draws.h"
#include "plugins/kernels_eigen/kernels/float_lists.h"
#include "plugins/kernels_eigen/kernels/node_stream.h"
#include "plugins/kernels_eigen/kernels/seeds.h"
#include "sdk/cpp/kernel.h"

namespace weir::kernels_eigen {
namespace {

using sdk::Error;
using sdk::Prep;
using sdk::View;

/// Pixels [left, right) of the rows [top, bottom).
struct PixelBox {
  int32_t left = 0, top = 0, right = 0, bottom = 0;

  /// In 32 bits, as TensorFlow has it: numbers of pixels from 2^31 on wrap.
  float Area() const { return AreaOf(right - left, bottom - top); }
  static float AreaOf(int64_t width, int64_t height) {
    return static_cast<float>(static_cast<int32_t>(static_cast<uint64_t>(width * height)));
  }
  PixelBox Common(const PixelBox& other) const {
    const PixelBox both = {std::max(left, other.left), std::max(top, other.top), std::min(right, other.right),
                           std::min(bottom, other.bottom)};
    return both.left > both.right || both.top > both.bottom ? PixelBox() : both;
  }
};

/// A number in [0, n), without a bias for small ones; n = 0 gives 0.
uint32_t DrawBelow(Words& words, uint32_t n) {
  if (n == 0) return words.Next() * n;
  if ((n & (n - 1)) == 0) return words.Next() & (n - 1);
  const uint32_t surplus = std::numeric_limits<uint32_t>::max() % n + 1;
  for (;;) {
    const uint32_t word = words.Next();
    if (word >= surplus) return word % n;
  }
}

/// To the nearest integer; within 32 bits.
int32_t Rounded(float x) {
  if (!(std::fabs(x) < 2147483648.0f)) return x > 0 ? std::numeric_limits<int32_t>::max() : 0;
  return static_cast<int32_t>(std::lrint(x));
}

struct DistortedBoxes {
  float areas[2] = {}, ratios[2] = {};
  int64_t attempts = 0;
  bool whole_image = false;

  int32_t ReadAttrs(const Prep& prep) {
    const Error& error = prep.error();
    whole_image = prep.node().Bool("use_image_if_no_bounding_boxes");
    attempts = prep.node().Int("max_attempts", 100);
    const std::span<const double> ratio = FloatsOf(prep.node(), "aspect_ratio_range");
    const std::span<const double> area = FloatsOf(prep.node(), "area_range");
    if (ratio.size() != 2) return error.InvalidArgument("Aspect ratio range field must specify 2 dimensions");
    if (!(ratio[0] > 0 && ratio[1] > 0)) {
      return error.InvalidArgument("Aspect ratio range must be non-negative: [", static_cast<float>(ratio[0]), ", ",
                                   static_cast<float>(ratio[1]), "]");
    }
    if (area.size() != 2) return error.InvalidArgument("Area range field must specify 2 dimensions");
    for (int i = 0; i < 2; ++i) {
      ratios[i] = static_cast<float>(ratio[static_cast<size_t>(i)]);
      areas[i] = static_cast<float>(area[static_cast<size_t>(i)]);
    }
    if (!(areas[0] > 0 && areas[1] > 0)) {
      return error.InvalidArgument("Area range must be non-negative: [", areas[0], ", ", areas[1], "]");
    }
    if (!(areas[0] <= 1 && areas[1] <= 1)) {
      return error.InvalidArgument("Area range must be less then or equal to 1.0: [", areas[0], ", ", areas[1], "]");
    }
    if (attempts <= 0) return error.InvalidArgument("Max attempts must be non-negative: ", attempts);
    return WEIR_OK;
  }

  static int32_t CheckShapes(const Prep& prep) {
    const weir_shape &size = prep.shape(0), &boxes = prep.shape(1);
    if (size.rank != 1) return prep.error().InvalidArgument("image_size must be 1-dimensional", size);
    if (size.dims[0] != 3) return prep.error().InvalidArgument("image_size must contain 3 elements", size);
    if (boxes.rank != 3) {
      return prep.error().InvalidArgument("input boxes must be 3-dimensional [batch, num_boxes, coords]: ", boxes);
    }
    if (boxes.dims[2] != 4) {
      return prep.error().InvalidArgument("bounding boxes must have shape [4] or [*, 4], got ", boxes);
    }
    if (prep.inputs() < 3 || prep.shape(2).rank == 0) return WEIR_OK;
    return prep.error().InvalidArgument("min_object_covered must be 0-D, got shape ", prep.shape(2));
  }

  static int32_t CheckCovered(const Error& error, float covered) {
    return covered >= 0 ? WEIR_OK : error.InvalidArgument("Min object covered must be non-negative: ", covered);
  }

  template <class T>
  int32_t Draw(const Error& error, Words words, View<const T> size, View<const float> given, float covered,
               View<T> begin, View<T> extent, View<float> box) const {
    PixelBox image;
    for (int i = 0; i < 2; ++i) {
      const auto pixels = static_cast<int64_t>(size[i]);
      if (pixels < 0 || pixels >= std::numeric_limits<int32_t>::max()) {
        return error.InvalidArgument("image ", i == 0 ? "height" : "width", " cannot be >= int32 max");
      }
      (i == 0 ? image.bottom : image.right) = static_cast<int32_t>(pixels);
    }
    if (const int32_t code = CheckCovered(error, covered); code != WEIR_OK) return code;
    std::vector<PixelBox> objects;
    if (const int32_t code = ReadBoxes(error, image, given, &objects); code != WEIR_OK) return code;
    PixelBox part, found = image;
    for (int64_t i = 0; i < attempts; ++i) {
      const float ratio = words.NextFloat() * (ratios[1] - ratios[0]) + ratios[0];
      if (!DrawPart(words, image, ratio, &part) || !Covers(part, objects, covered)) continue;
      found = part;
      break;
    }
    begin[0] = static_cast<T>(found.top);
    begin[1] = static_cast<T>(found.left);
    begin[2] = T(0);
    extent[0] = static_cast<T>(found.bottom - found.top);
    extent[1] = static_cast<T>(found.right - found.left);
    extent[2] = static_cast<T>(-1);
    const auto height = static_cast<float>(image.bottom), width = static_cast<float>(image.right);
    box[0] = static_cast<float>(found.top) / height;
    box[1] = static_cast<float>(found.left) / width;
    box[2] = static_cast<float>(found.bottom) / height;
    box[3] = static_cast<float>(found.right) / width;
    return WEIR_OK;
  }

 private:
  int32_t ReadBoxes(const Error& error, const PixelBox& image, View<const float> given,
                    std::vector<PixelBox>* objects) const {
    const auto height = static_cast<float>(image.bottom), width = static_cast<float>(image.right);
    const auto scaled = [](float x, float pixels, int32_t extent) {
      return x * pixels < pixels ? static_cast<int32_t>(x * pixels) : extent;
    };
    for (int64_t i = 0, n = given.size() / 4; i < n; ++i) {
      const float* const at = given.data() + i * 4;
      for (int k = 0; k < 4; ++k) {
        if (at[k] >= 0 && at[k] <= 1) continue;
        return error.InvalidArgument("All bounding box coordinates must be in [0.0, 1.0]: ", at[k]);
      }
      objects->push_back({scaled(at[1], width, image.right), scaled(at[0], height, image.bottom),
                          scaled(at[3], width, image.right), scaled(at[2], height, image.bottom)});
    }
    if (!objects->empty()) return WEIR_OK;
    if (!whole_image) {
      return error.InvalidArgument(
          "No bounding boxes provided as input. One must enable use_image_if_no_bounding_boxes if you wish to not "
          "provide any bounding boxes.");
    }
    objects->push_back(image);
    return WEIR_OK;
  }

  /// Some object of at least one pixel lies in `part` to that portion.
  static bool Covers(const PixelBox& part, const std::vector<PixelBox>& objects, float portion) {
    if (part.Area() < 1) return false;
    return std::any_of(objects.begin(), objects.end(), [&](const PixelBox& object) {
      const float area = object.Area();
      return !(area < 1) && part.Common(object).Area() / area >= portion;
    });
  }

  /// A part of the image with width = ratio * height and an area in the range; false if there is none.
  bool DrawPart(Words& words, const PixelBox& image, float ratio, PixelBox* part) const {
    const int32_t rows = image.bottom, columns = image.right;
    if (areas[1] <= 0 || ratio <= 0 || columns <= 0 || rows <= 0 || areas[0] > areas[1]) return false;
    const float least = areas[0] * static_cast<float>(columns) * static_cast<float>(rows);
    const float most = areas[1] * static_cast<float>(columns) * static_cast<float>(rows);
    const auto width_for = [ratio](int32_t height) { return Rounded(static_cast<float>(height) * ratio); };
    int32_t height = Rounded(std::sqrt(least / ratio)), limit = Rounded(std::sqrt(most / ratio));
    if (width_for(limit) > columns) {  // the largest height whose width is not above the image's
      const double exact = (columns + 0.5 - static_cast<double>(0.0000001f)) / static_cast<double>(ratio);
      limit = exact < 2147483647.0 ? static_cast<int32_t>(exact) : std::numeric_limits<int32_t>::max();
      if (width_for(limit) > columns) --limit;
    }
    limit = std::min(limit, rows);
    height = std::min(height, limit);
    if (height < limit) height += static_cast<int32_t>(DrawBelow(words, static_cast<uint32_t>(limit - height + 1)));
    int32_t width = width_for(height);
    // Rounding may leave the range by one row.
    float area = PixelBox::AreaOf(width, height);
    const auto change = [&](int32_t by) {
      height += by;
      width = width_for(height);
      area = PixelBox::AreaOf(width, height);
    };
    if (area < least) change(1);
    if (area > most) change(-1);
    if (area < least || area > most || width > columns || height > rows || width <= 0 || height <= 0) return false;
    const auto offset = [&](int32_t all, int32_t some) {
      return some < all ? static_cast<int32_t>(DrawBelow(words, static_cast<uint32_t>(all - some))) : 0;
    };
    part->top = offset(rows, height);
    part->left = offset(columns, width);
    part->bottom = part->top + height;
    part->right = part->left + width;
    return true;
  }
};

/// The generator of a node.
struct DistortedBoxesOfNode : DistortedBoxes {
  NodeStream stream;

  int32_t Open(const Prep& prep) {
    int32_t code = ReadAttrs(prep);
    if (code == WEIR_OK) code = CheckShapes(prep);
    return code != WEIR_OK ? code : stream.Open(prep);
  }
  Words Reserve() const { return {stream.generator(), stream.Reserve(static_cast<uint64_t>(attempts))}; }
};

struct SampleDistortedBoxes : DistortedBoxesOfNode {
  float covered = 0;

  int32_t Prepare(const Prep& prep) {
    covered = static_cast<float>(prep.node().Float("min_object_covered", 0.1));
    const int32_t code = CheckCovered(prep.error(), covered);
    return code != WEIR_OK ? code : Open(prep);
  }
  template <class T>
  int32_t Run(sdk::Env& env, View<const T> size, View<const float> boxes, View<T> begin, View<T> extent,
              View<float> box) {
    return Draw(env.error(), Reserve(), size, boxes, covered, begin, extent, box);
  }
};

struct SampleDistortedBoxesV2 : DistortedBoxesOfNode {
  int32_t Prepare(const Prep& prep) { return Open(prep); }
  template <class T>
  int32_t Run(sdk::Env& env, View<const T> size, View<const float> boxes, View<const float> covered, View<T> begin,
              View<T> extent, View<float> box) {
    return Draw(env.error(), Reserve(), size, boxes, covered[0], begin, extent, box);
  }
};

struct SeededDistortedBoxes : DistortedBoxes {
  int32_t Prepare(const Prep& prep) {
    int32_t code = ReadAttrs(prep);
    if (code == WEIR_OK) code = CheckSeed(prep, 3);
    return code != WEIR_OK ? code : CheckShapes(prep);
  }
  template <class T>
  int32_t Run(sdk::Env& env, View<const T> size, View<const float> boxes, View<const float> covered, SeedWords seed,
              View<T> begin, View<T> extent, View<float> box) const {
    return Draw(env.error(), Words(FromSeed(seed), 0), size, boxes, covered[0], begin, extent, box);
  }
};

}  // namespace

void AddDistortedBoxes(sdk::KernelTable& k) {
#if defined(WEIR_KERNEL_DTYPES_SHORT)
  constexpr sdk::Types<int32_t, int64_t> kSizes;
#else
  constexpr sdk::Types<uint8_t, int8_t, int16_t, int32_t, int64_t> kSizes;
#endif
  k.Add<SampleDistortedBoxes>("SampleDistortedBoundingBox", kSizes).Class(WEIR_CLASS_RNG, 100);
  k.Add<SampleDistortedBoxesV2>("SampleDistortedBoundingBoxV2", kSizes).Class(WEIR_CLASS_RNG, 100);
  k.Add<SeededDistortedBoxes>("StatelessSampleDistortedBoundingBox", kSizes).Class(WEIR_CLASS_RNG, 100);
}

}  // namespace weir::kernels_eigen
