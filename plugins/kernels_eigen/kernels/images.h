// Images of any layout and element type as dense [place, channel] matrices of the type that arithmetic is done in.
#ifndef WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_IMAGES_H_
#define WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_IMAGES_H_

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "sdk/cpp/types.h"
#include "sdk/cpp/views.h"

namespace weir::kernels_eigen {

/// One image as stored.
struct ImageLayout {
  int64_t places = 0, channels = 0;
  bool channels_first = false;
  int64_t Size() const { return places * channels; }
};

/// True if stored images are such matrices already.
template <class T>
bool IsPlain(bool channels_first) {
  return !channels_first && std::is_same_v<T, sdk::Compute<T>>;
}

template <class T>
void LoadImage(const ImageLayout& image, const T* from, sdk::Compute<T>* to) {
  using C = sdk::Compute<T>;
  if (image.channels_first) {
    for (int64_t i = 0; i < image.places; ++i) {
      for (int64_t c = 0; c < image.channels; ++c)
        to[i * image.channels + c] = static_cast<C>(from[c * image.places + i]);
    }
  } else if constexpr (std::is_same_v<T, C>) {
    std::copy_n(from, image.Size(), to);
  } else {
    sdk::Widen(from, to, image.Size());
  }
}

template <class T>
void StoreImage(const ImageLayout& image, const sdk::Compute<T>* from, T* to) {
  using C = sdk::Compute<T>;
  if (image.channels_first) {
    for (int64_t c = 0; c < image.channels; ++c) {
      for (int64_t i = 0; i < image.places; ++i)
        to[c * image.places + i] = static_cast<T>(from[i * image.channels + c]);
    }
  } else if constexpr (std::is_same_v<T, C>) {
    std::copy_n(from, image.Size(), to);
  } else {
    sdk::Narrow(from, to, image.Size());
  }
}

/// Zeros for the result of a call without operands. The extents beside a 0 may have no representable product.
template <class T>
void ZeroFill(const sdk::View<T>& result) {
  if (std::find(result.dims().begin(), result.dims().end(), 0) != result.dims().end()) return;
  std::fill_n(result.data(), result.size(), T());
}

/// Parts of the scratch memory of a call, all aligned. Without memory it counts elements for Prep::Scratch.
template <class C>
class Workspace {
 public:
  explicit Workspace(C* memory) : memory_(memory) {}
  C* Take(int64_t elements) {
    C* part = memory_ == nullptr ? nullptr : memory_ + used_;
    used_ += (elements + 63) / 64 * 64;
    return part;
  }
  uint64_t bytes() const { return static_cast<uint64_t>(used_) * sizeof(C); }

 private:
  C* memory_;
  int64_t used_ = 0;
};

}  // namespace weir::kernels_eigen

#endif  // WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_IMAGES_H_
