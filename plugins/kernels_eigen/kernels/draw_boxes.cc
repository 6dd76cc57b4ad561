// Outlines of boxes in images.
#include <algorithm>
#include <array>
#include <cmath>

#include "plugins/kernels_eigen/families.h"
#include "plugins/kernels_eigen/operands.h"
#include "sdk/cpp/kernel.h"

namespace weir::kernels_eigen {
namespace {

using sdk::Prep;
using sdk::View;

constexpr int64_t kColourCount = 10;
/// Yellow, blue, red, lime, purple, olive, maroon, navy, aqua, fuchsia: TensorFlow's colours.
constexpr std::array<float, 4 * kColourCount> kColours = {1, 1, 0,    1, 0,    0, 1,    1,    1, 0, 0,    1, 0, 1,
                                                          0, 1, 0.5f, 0, 0.5f, 1, 0.5f, 0.5f, 0, 1, 0.5f, 0, 0, 1,
                                                          0, 0, 0.5f, 1, 0,    1, 1,    1,    1, 0, 1,    1};

/// Colours with `channels` numbers each.
struct Palette {
  const float* colours;
  int64_t count, channels;
  bool grey;  // of the default palette, the first channel counts as full

  float At(int64_t box, int64_t c) const { return grey && c == 0 ? 1 : colours[box % count * channels + c]; }
};

/// First and last row or column of a box on an axis of `extent` pixels; they may be outside.
struct Edges {
  int64_t first, last;
  bool known;  // both are numbers, and within reach

  Edges(float from, float to, int64_t extent) {
    const float span = static_cast<float>(extent - 1), low = from * span, high = to * span;
    constexpr float kReach = 1e15f;
    known = std::fabs(low) < kReach && std::fabs(high) < kReach;
    first = known ? static_cast<int64_t>(low) : 0;
    last = known ? static_cast<int64_t>(high) : 0;
  }
  bool Visible(int64_t extent) const { return known && first <= last && first < extent && last >= 0; }
};

struct Drawing {
  int64_t batch = 0, height = 0, width = 0, depth = 0, boxes = 0;

  int32_t Plan(Prep& prep) {
    const sdk::Error& error = prep.error();
    const weir_shape &images = prep.shape(0), &corners = prep.shape(1);
    if (images.rank != 4) return error.InvalidArgument("The rank of the images should be 4");
    if (corners.rank != 3) return error.InvalidArgument("The rank of the boxes tensor should be 3");
    if (images.dims[0] != corners.dims[0]) return error.InvalidArgument("The batch sizes should be the same");
    if (corners.dims[2] != 4) {
      return error.InvalidArgument("The size of the third dimension of the box must be 4. Received: ", corners.dims[2]);
    }
    depth = images.dims[3];
    if (depth != 1 && depth != 3 && depth != 4) {
      return error.InvalidArgument("Channel depth should be either 1 (GRY), 3 (RGB), or 4 (RGBA)");
    }
    batch = prep.size(0) == 0 ? 0 : images.dims[0];
    height = images.dims[1];
    width = images.dims[2];
    boxes = corners.dims[1];
    prep.MayAlias(0, 0);
    return WEIR_OK;
  }

  template <class T>
  void Draw(const View<const T>& x, const View<const float>& corners, const Palette& palette, const View<T>& y) const {
    if (batch == 0) return;
    if (x.data() != y.data()) std::copy_n(x.data(), x.size(), y.data());
    for (int64_t image = 0; image < batch; ++image) {
      T* canvas = y.data() + image * height * width * depth;
      for (int64_t box = 0; box < boxes; ++box) {
        const float* at = corners.data() + 4 * (image * boxes + box);
        const Edges rows(at[0], at[2], height), columns(at[1], at[3], width);
        if (rows.Visible(height) && columns.Visible(width)) Outline(canvas, rows, columns, palette, box);
      }
    }
  }

  /// Edges outside of the image are not drawn.
  template <class T>
  void Outline(T* canvas, const Edges& rows, const Edges& columns, const Palette& palette, int64_t box) const {
    const int64_t top = std::max<int64_t>(rows.first, 0), bottom = std::min(rows.last, height - 1);
    const int64_t left = std::max<int64_t>(columns.first, 0), right = std::min(columns.last, width - 1);
    const auto dot = [&](int64_t row, int64_t column) {
      T* pixel = canvas + (row * width + column) * depth;
      for (int64_t c = 0; c < depth; ++c) pixel[c] = static_cast<T>(palette.At(box, c));
    };
    for (int64_t column = left; column <= right; ++column) {
      if (rows.first >= 0) dot(rows.first, column);
      if (rows.last < height) dot(rows.last, column);
    }
    for (int64_t row = top; row <= bottom; ++row) {
      if (columns.first >= 0) dot(row, columns.first);
      if (columns.last < width) dot(row, columns.last);
    }
  }
};

struct DrawBoundingBoxes : Drawing {
  int32_t Prepare(Prep& prep) { return Plan(prep); }
  template <class T>
  void Run(View<const T> x, View<const float> corners, View<T> y) const {
    Draw(x, corners, {kColours.data(), kColourCount, 4, depth == 1}, y);
  }
};

struct DrawBoundingBoxesV2 : Drawing {
  int64_t colours = 0, channels = 0;

  int32_t Prepare(Prep& prep) {
    if (const int32_t code = Plan(prep); code != WEIR_OK) return code;
    const weir_shape& given = prep.shape(2);
    if (given.rank != 2) return prep.error().InvalidArgument("colors must be a 2-D matrix", given);
    if (given.dims[1] < depth) {
      return prep.error().InvalidArgument("colors must have equal or more channels than the image provided: ", given);
    }
    colours = given.dims[0];
    channels = given.dims[1];
    return WEIR_OK;
  }
  template <class T>
  void Run(View<const T> x, View<const float> corners, View<const float> given, View<T> y) const {
    const Palette own{given.data(), colours, channels, false};
    Draw(x, corners, colours > 0 ? own : Palette{kColours.data(), kColourCount, 4, depth == 1}, y);
  }
};

}  // namespace

void AddDrawBoxes(sdk::KernelTable& k) {
  constexpr auto kImageTypes = sdk::Types<sdk::half, float>();
  k.Add<DrawBoundingBoxes>("DrawBoundingBoxes", kImageTypes).Class(WEIR_CLASS_GATHER, 1);
  k.Add<DrawBoundingBoxesV2>("DrawBoundingBoxesV2", kImageTypes).Class(WEIR_CLASS_GATHER, 1);
}

}  // namespace weir::kernels_eigen
