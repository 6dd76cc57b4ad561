// The host's state of one call of a dynamic kernel: the object behind `weir_ctx`.
#ifndef WEIR_CORE_KERNEL_CALL_H_
#define WEIR_CORE_KERNEL_CALL_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/errors.h"
#include "core/kernel/context.h"
#include "core/tensor/buffer.h"
#include "core/tensor/tensor.h"
#include "sdk/abi/host.h"

/// Lives until the call returns; for an ASYNC kernel until it completed (pending_calls.h). Used by one thread at a
/// time, as ordered by the kernel.
struct weir_ctx {
  std::span<const weir::kernel::InputRange> ranges;
  std::vector<weir::Tensor> inputs;
  std::span<const weir::DType> output_types;
  std::vector<weir::Tensor> outputs;  // invalid until set
  std::vector<std::shared_ptr<weir::Buffer>> temps;
  weir::Allocator* allocator = nullptr;
  const weir::kernel::OperandPlaces* places = nullptr;
  int64_t step_id = 0;
  weir::runtime::Cancellation* cancellation = nullptr;  // the step's; may be null
  int threads = 0;                                      // cap of parallel_for; 0 = all
  weir_device* device = nullptr;                        // null for the host
  weir_stream* stream = nullptr;                        // the step's; null for a synchronous device
  uint64_t native_stream = 0;

  weir::Status Input(uint32_t i, weir_tensor* tensor) const;
  weir::Status Range(std::string_view arg, uint32_t* first, uint32_t* count) const;
  weir::Status Output(uint32_t i, const weir_shape* shape, weir_tensor* tensor);
  weir::Status SetOutput(uint32_t i, const weir_tensor* tensor);
  bool Forward(uint32_t in, uint32_t out);
  weir::Status Temp(uint64_t bytes, uint32_t space, weir_buf* buf);

 private:
  weir::Status CheckOutput(uint32_t i) const;
  bool HostInput(uint32_t i) const;
  bool HostOutput(uint32_t i) const;
  bool Writable(uint32_t i) const;
};

namespace weir::kernel {

/// Copies the part of `value` that fits the caller's struct_size, and sets struct_size to the size copied.
/// InvalidArgument if `out` is null or its struct_size is not set.
template <class T>
Status WriteOut(const T& value, T* out) {
  if (out == nullptr || out->struct_size < sizeof(uint32_t)) {
    return InvalidArgument("the caller has to give a struct with its struct_size set");
  }
  const auto size = std::min<uint32_t>(out->struct_size, sizeof(T));
  std::memcpy(static_cast<void*>(out), &value, size);
  out->struct_size = size;
  return {};
}

}  // namespace weir::kernel

#endif  // WEIR_CORE_KERNEL_CALL_H_
