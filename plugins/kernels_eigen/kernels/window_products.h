// Convolutions as products of matrices of windows: the plan of one, and its arithmetic.
#ifndef WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_WINDOW_PRODUCTS_H_
#define WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_WINDOW_PRODUCTS_H_

#include <algorithm>
#include <memory>
#include <optional>
#include <type_traits>

#include "plugins/kernels_eigen/kernels/gemm.h"
#include "plugins/kernels_eigen/kernels/images.h"
#include "plugins/kernels_eigen/kernels/packed_product.h"
#include "plugins/kernels_eigen/kernels/panels.h"
#include "plugins/kernels_eigen/kernels/patches.h"
#include "plugins/kernels_eigen/kernels/row_convolution.h"
#include "sdk/cpp/convolutions.h"
#include "sdk/cpp/products.h"

namespace weir::kernels_eigen {

// Elements of the windows multiplied at once: they stay in the second-level cache.
inline constexpr int64_t kWindowElements = 98304;

/// c += op(a) op(b) by plain loops, for integers.
template <class C>
void AddProductByLoops(const sdk::Product& p, const C* a, const C* b, C* c) {
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

/// A part of a filter: some groups, or some channels of the only one.
struct FilterPart {
  int64_t first_group = 0, groups = 1;
  ChannelRange channels;  // of a group's inputs
};

/// One convolution, planned for its shapes.
struct ConvolutionPlan {
  sdk::Convolution conv;
  Patches patches;
  int64_t chunk = 0;       // places that are multiplied at once
  bool pointwise = false;  // windows are single pixels: images are the matrices of their windows
  GemmBlocks blocks;
  std::shared_ptr<const PackedMatrix> packed;  // a constant filter of one group, in float; null for others
  std::optional<RowConvolution> by_rows;       // in float; null for others
  bool in_parts = false;  // tiles of the gradient by the filter make parts with some channels of the only group

  int64_t rows() const { return conv.Rows(); }
  ImageLayout XImage() const { return {conv.windows.InputPlaces(), conv.in, conv.windows.channels_first}; }
  ImageLayout YImage() const { return {conv.windows.OutputPlaces(), conv.out, conv.windows.channels_first}; }
  /// Places of all images.
  int64_t places() const { return conv.windows.batch * patches.Places(); }
  int64_t FilterSize() const { return rows() * conv.out; }
  int64_t RowsOf(const FilterPart& part) const { return conv.windows.Taps() * part.channels.count; }

  void Make() {
    patches = Patches::Of(conv.windows);
    chunk = std::clamp<int64_t>(kWindowElements / std::max<int64_t>(1, rows()), 1, std::min<int64_t>(4096, places()));
    pointwise = conv.groups == 1 && std::all_of(patches.axes.begin(), patches.axes.end(), [](const sdk::WindowAxis& a) {
                  return a.window == 1 && a.stride == 1 && a.input == a.output;
                });
  }
  /// The product for `count` places.
  sdk::Product ProductOf(sdk::Convolution::Direction direction, int64_t count) const {
    sdk::Product p{count, conv.group_out(), rows()};
    if (direction == sdk::Convolution::Direction::kByInput) p = {count, rows(), conv.group_out(), false, true};
    if (direction == sdk::Convolution::Direction::kByFilter) p = {rows(), conv.group_out(), count, true, false};
    return p;
  }
};

/// The arithmetic of a plan in type C, with its memory.
template <class C>
class WindowProducts {
 public:
  static constexpr bool kHasGemm = std::is_floating_point_v<C>;

  WindowProducts(const ConvolutionPlan& plan, sdk::Convolution::Direction direction, Workspace<C>& memory)
      : plan_(plan), direction_(direction) {
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
    const sdk::Convolution& conv = plan_.conv;
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
    const sdk::Convolution& conv = plan_.conv;
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

  /// Adds the gradients by these output places to the part dw of the filter, [group][row, output].
  void ByFilter(const C* x, const C* dy, int64_t first, int64_t count, const FilterPart& part, C* dw) {
    const sdk::Convolution& conv = plan_.conv;
    sdk::Product p = plan_.ProductOf(direction_, count);
    p.m = plan_.RowsOf(part);
    const ChannelRange& channels = part.channels;
    for (int64_t g = part.first_group; g < part.first_group + part.groups; ++g, dw += p.m * p.n) {
      const C* const gradients = Group(dy, first, count, g);
      if (!plan_.pointwise) {
        CopyPatches(plan_.patches, x, first, count, {g * conv.group_in() + channels.first, channels.count}, columns_);
        Multiply(p, columns_, gradients, dw);
        continue;
      }
      const C* const places = x + first * conv.in + channels.first;
      if constexpr (std::is_same_v<C, float>) {
        MultiplyMatrices({places, 1, conv.in}, {gradients, p.n, 1}, p.m, count, p.n, dw, dw, packing_);
      } else {
        Multiply(p, places, gradients, dw);
      }
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
    const sdk::Convolution& conv = plan_.conv;
    if (plan_.pointwise) return x + first * conv.in;
    CopyPatches(plan_.patches, x, first, count, {group * conv.group_in(), conv.group_in()}, columns_);
    return columns_;
  }
  /// The output channels of a group.
  const C* Group(const C* y, int64_t first, int64_t count, int64_t group) {
    const sdk::Convolution& conv = plan_.conv;
    if (conv.groups == 1) return y + first * conv.out;
    const int64_t n = conv.group_out();
    for (int64_t i = 0; i < count; ++i) std::copy_n(y + (first + i) * conv.out + group * n, n, part_ + i * n);
    return part_;
  }
  void Multiply(const sdk::Product& p, const C* a, const C* b, C* c) {
    if constexpr (kHasGemm) {
      AddGemm(p, plan_.blocks, a, b, c, packing_);
    } else {
      AddProductByLoops(p, a, b, c);
    }
  }

  const ConvolutionPlan& plan_;
  sdk::Convolution::Direction direction_;
  C* packing_ = nullptr;
  C* columns_ = nullptr;
  C* part_ = nullptr;
};

/// [row, output] as stored, with all outputs side by side, as [group][row, output of the group].
template <class T>
void LoadFilter(const sdk::Convolution& conv, const T* from, sdk::Compute<T>* to) {
  const int64_t rows = conv.Rows(), n = conv.group_out();
  for (int64_t g = 0; g < conv.groups; ++g) {
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t j = 0; j < n; ++j) *to++ = static_cast<sdk::Compute<T>>(from[row * conv.out + g * n + j]);
    }
  }
}
/// A part, to its places in the filter.
template <class T>
void StoreFilter(const sdk::Convolution& conv, const FilterPart& part, const sdk::Compute<T>* from, T* to) {
  const int64_t taps = conv.windows.Taps(), n = conv.group_out();
  for (int64_t g = part.first_group; g < part.first_group + part.groups; ++g) {
    for (int64_t tap = 0; tap < taps; ++tap) {
      T* row = to + (tap * conv.group_in() + part.channels.first) * conv.out + g * n;
      for (int64_t i = 0; i < part.channels.count; ++i, row += conv.out) {
        for (int64_t j = 0; j < n; ++j) row[j] = static_cast<T>(*from++);
      }
    }
  }
}
template <class T>
bool IsPlainFilter(const sdk::Convolution& conv) {
  return conv.groups == 1 && std::is_same_v<T, sdk::Compute<T>>;
}

}  // namespace weir::kernels_eigen

#endif  // WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_WINDOW_PRODUCTS_H_
