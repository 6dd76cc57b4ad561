#include "plugins/gpu/kernels/moves.h"

#include <algorithm>

#include "plugins/functors/operands.h"

namespace weir::gpu {
namespace {

template <class E>
struct FillFromWork {
  Ptr<const E> value;
  Ptr<E> to;
  WEIR_GPU_FN void operator()(int64_t i) const { to[i] = value[0]; }
};

template <class E>
struct FillBitsWork {
  Ptr<E> to;
  E value;
  WEIR_GPU_FN void operator()(int64_t i) const { to[i] = value; }
};

}  // namespace

void DeviceCopy::Plan(const std::vector<int64_t>& dims, const std::vector<int64_t>& from,
                      const std::vector<int64_t>& to, uint32_t bytes, int64_t from_offset, int64_t to_offset) {
  box_ = Box();
  size_ = 0;
  bytes_ = bytes;
  fits_ = true;
  box_.from_offset = from_offset;
  box_.to_offset = to_offset;
  if (std::any_of(dims.begin(), dims.end(), [](int64_t n) { return n <= 0; })) return;
  int64_t size = 1;
  for (size_t i = dims.size(); i-- > 0;) {
    if (dims[i] == 1) continue;
    size *= dims[i];
    if (box_.count > 0) {
      Box::Axis& last = box_.axes[box_.count - 1];
      if (from[i] == last.from * last.n && to[i] == last.to * last.n) {
        last.n *= dims[i];
        continue;
      }
    }
    if (box_.count == Box::kMostAxes) {
      fits_ = false;
      return;
    }
    box_.axes[box_.count++] = {dims[i], from[i], to[i]};
  }
  if (box_.count == 0) box_.axes[box_.count++] = {1, 1, 1};
  box_.divider = Divider::For(size);
  size_ = size;
}

int32_t DeviceCopy::Run(const sdk::Env& env, const void* from, void* to) const {
  if (size_ == 0 || (from == to && dense())) return WEIR_OK;
  if (dense()) return Copy(env, to, from, static_cast<uint64_t>(size_) * bytes_);
  return functors::ForBytes(bytes_, [&](auto element) {
    using E = decltype(element);
    return Launch(env, size_, BoxWork<E>{static_cast<const E*>(from), static_cast<E*>(to), box_});
  });
}

int32_t FillWithDeviceElement(const sdk::Env& env, const void* value, void* to, int64_t n, uint32_t bytes) {
  return functors::ForBytes(bytes, [&](auto element) {
    using E = decltype(element);
    return Launch(env, n, FillFromWork<E>{static_cast<const E*>(value), static_cast<E*>(to)});
  });
}

int32_t FillWithBits(const sdk::Env& env, uint64_t bits, void* to, int64_t n, uint32_t bytes) {
  return functors::ForBytes(bytes, [&](auto element) {
    using E = decltype(element);
    E value;
    if constexpr (sizeof(E) == 16) {
      value = E{bits, 0};
    } else {
      value = static_cast<E>(bits);
    }
    return Launch(env, n, FillBitsWork<E>{static_cast<E*>(to), value});
  });
}

}  // namespace weir::gpu
