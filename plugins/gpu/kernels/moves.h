// Copies of boxes of elements between arrays on a device.
#ifndef WEIR_PLUGINS_GPU_KERNELS_MOVES_H_
#define WEIR_PLUGINS_GPU_KERNELS_MOVES_H_

#include <cstdint>
#include <vector>

#include "plugins/gpu/kernels/broadcasting.h"
#include "plugins/gpu/kernels/storage.h"
#include "sdk/cpp/prepare.h"

namespace weir::gpu {

/// A box with steps in two arrays. Steps and offsets count elements.
struct Box {
  static constexpr uint32_t kMostAxes = 24;
  struct Axis {
    int64_t n, from, to;
  };
  uint32_t count = 0;
  Divider divider;
  int64_t from_offset = 0, to_offset = 0;
  Axis axes[kMostAxes] = {};  // innermost first

  /// The positions of element i of the box.
  WEIR_HD void At(int64_t i, int64_t* from, int64_t* to) const {
    int64_t f = from_offset, t = to_offset;
    for (uint32_t d = 0; d < count; ++d) {
      const int64_t index = d + 1 < count ? divider.Split(i, axes[d].n) : i;
      f += index * axes[d].from;
      t += index * axes[d].to;
    }
    *from = f;
    *to = t;
  }
};

template <class E>
struct BoxWork {
  Ptr<const E> from;
  Ptr<E> to;
  Box box;
  WEIR_GPU_FN void operator()(int64_t i) const {
    int64_t f, t;
    box.At(i, &f, &t);
    to[t] = from[f];
  }
};

/// A planned copy, as StridedCopy of kernels_eigen; see there.
class DeviceCopy {
 public:
  void Plan(const std::vector<int64_t>& dims, const std::vector<int64_t>& from, const std::vector<int64_t>& to,
            uint32_t bytes, int64_t from_offset = 0, int64_t to_offset = 0);
  bool dense() const {
    return box_.count == 1 && box_.axes[0].from == 1 && box_.axes[0].to == 1 && box_.from_offset == 0 &&
           box_.to_offset == 0;
  }
  /// Unimplemented for more axes than a kernel takes.
  int32_t Check(const sdk::Prep& prep) const {
    if (fits_) return WEIR_OK;
    return prep.error().Unimplemented("arrays with more than ", Box::kMostAxes, " axes are not copied on the device");
  }
  int32_t Run(const sdk::Env& env, const void* from, void* to) const;

 private:
  Box box_;
  int64_t size_ = 0;  // elements; 0: nothing to do
  uint32_t bytes_ = 0;
  bool fits_ = true;
};

/// Fills `n` elements of `bytes` bytes by the one at `value` in device memory.
int32_t FillWithDeviceElement(const sdk::Env& env, const void* value, void* to, int64_t n, uint32_t bytes);
/// The same by the low bytes of `bits`; elements of 16 bytes have zeros behind them.
int32_t FillWithBits(const sdk::Env& env, uint64_t bits, void* to, int64_t n, uint32_t bytes);

}  // namespace weir::gpu

#endif  // WEIR_PLUGINS_GPU_KERNELS_MOVES_H_
