// Windows of images as rows of a matrix, and their sums back to images.
#ifndef WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_PATCHES_H_
#define WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_PATCHES_H_

#include <algorithm>
#include <array>
#include <cstdint>

#include "plugins/kernels_eigen/wrap.h"
#include "sdk/cpp/windows.h"

namespace weir::kernels_eigen {

/// Windows over images [depth, height, width, channels], one behind the other. A patch has an element per tap and
/// channel, taps row by row, channels innermost. Images without depth have one with a single place and tap.
struct Patches {
  std::array<sdk::WindowAxis, 3> axes;  // depth, height, width
  int64_t channels = 0;

  static Patches Of(const sdk::Windows& windows) {
    Patches patches;
    patches.axes[0] = {.input = 1, .window = 1, .output = 1};
    for (uint32_t i = 0; i < windows.spatial; ++i) patches.axes[i + 3 - windows.spatial] = windows.axes[i];
    patches.channels = windows.channels;
    return patches;
  }
  int64_t Taps() const { return axes[0].window * axes[1].window * axes[2].window; }
  int64_t Places() const { return axes[0].output * axes[1].output * axes[2].output; }
  /// Elements of an image.
  int64_t ImageSize() const { return axes[0].input * axes[1].input * axes[2].input * channels; }
};

/// A part of the channels.
struct ChannelRange {
  int64_t first = 0, count = 0;
};

/// A position that runs through the places of all images.
struct Place {
  int64_t image = 0;
  std::array<int64_t, 3> at{};

  Place(const Patches& patches, int64_t index) {
    for (size_t i = 3; i-- > 0;) {
      at[i] = index % patches.axes[i].output;
      index /= patches.axes[i].output;
    }
    image = index;
  }
  void Next(const Patches& patches) {
    for (size_t i = 3; i-- > 0;) {
      if (++at[i] < patches.axes[i].output) return;
      at[i] = 0;
    }
    ++image;
  }
};

/// Calls row(taps, n, offset, step) for each run of n > 0 taps of a place along the width that read the image: `taps`
/// counts all taps before the first, `offset` is the element of the first tap in the images, `step` the elements to the
/// next. Calls padding(taps, n) for each run that reads padding.
template <class Row, class Padding>
void ForTapRows(const Patches& p, const Place& place, Row&& row, Padding&& padding) {
  const sdk::WindowAxis &depth = p.axes[0], &height = p.axes[1], &width = p.axes[2];
  const sdk::Places inside = width.Taps(place.at[2]);
  const int64_t start = width.Start(place.at[2]) + inside.first * width.dilation;
  const int64_t step = width.dilation * p.channels;
  int64_t taps = 0;
  for (int64_t i = 0; i < depth.window; ++i) {
    const int64_t z = depth.Start(place.at[0]) + i * depth.dilation;
    for (int64_t j = 0; j < height.window; ++j, taps += width.window) {
      const int64_t y = height.Start(place.at[1]) + j * height.dilation;
      if (z < 0 || z >= depth.input || y < 0 || y >= height.input || inside.empty()) {
        padding(taps, width.window);
        continue;
      }
      if (inside.first > 0) padding(taps, inside.first);
      const int64_t offset = place.image * p.ImageSize() + ((z * height.input + y) * width.input + start) * p.channels;
      row(taps + inside.first, inside.end - inside.first, offset, step);
      if (inside.end < width.window) padding(taps + inside.end, width.window - inside.end);
    }
  }
}

/// Writes the patches of `count` places from place `first` on, of the channels in `range`; padding is zeros.
template <class E>
void CopyPatches(const Patches& p, const E* images, int64_t first, int64_t count, const ChannelRange& range, E* to) {
  const int64_t n = range.count, size = p.Taps() * n;
  const E* from = images + range.first;
  Place place(p, first);
  for (int64_t i = 0; i < count; ++i, to += size, place.Next(p)) {
    ForTapRows(
        p, place,
        [&](int64_t taps, int64_t run, int64_t offset, int64_t step) {
          if (step == n) {
            std::copy_n(from + offset, run * n, to + taps * n);
            return;
          }
          for (int64_t tap = 0; tap < run; ++tap) std::copy_n(from + offset + tap * step, n, to + (taps + tap) * n);
        },
        [&](int64_t taps, int64_t run) { std::fill_n(to + taps * n, run * n, E()); });
  }
}

/// Adds patches to the images that CopyPatches would read them from.
template <class E>
void AddPatches(const Patches& p, const E* from, int64_t first, int64_t count, const ChannelRange& range, E* images) {
  const int64_t n = range.count, size = p.Taps() * n;
  E* to = images + range.first;
  Place place(p, first);
  for (int64_t i = 0; i < count; ++i, from += size, place.Next(p)) {
    ForTapRows(
        p, place,
        [&](int64_t taps, int64_t run, int64_t offset, int64_t step) {
          const int64_t dense = step == n ? run * n : n;
          for (int64_t tap = 0; tap < run * n; tap += dense) {
            E* sum = to + offset + tap / n * step;
            const E* term = from + taps * n + tap;
            for (int64_t c = 0; c < dense; ++c) sum[c] = Sum(sum[c], term[c]);
          }
        },
        [](int64_t, int64_t) {});
  }
}

}  // namespace weir::kernels_eigen

#endif  // WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_PATCHES_H_
