// One call of a dynamic kernel as the host keeps it: the handle behind `weir_ctx`.
#ifndef WEIR_CORE_KERNEL_CALL_H_
#define WEIR_CORE_KERNEL_CALL_H_

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/kernel/context.h"
#include "core/tensor/buffer.h"
#include "core/tensor/tensor.h"
#include "sdk/abi/host.h"

namespace weir::kernel {

/// How an ASYNC kernel says that it is done.
struct Completion {
  std::mutex mutex;  // protects all below
  std::condition_variable changed;
  bool done = false;
  int32_t code = 0;
  std::string message;
};

}  // namespace weir::kernel

/// Lives for the call. Used by one thread at a time, as the kernel's own code orders it.
struct weir_ctx {
  std::span<const weir::kernel::InputRange> ranges;
  std::vector<weir::Tensor> inputs;
  std::span<const weir::DType> output_types;
  std::vector<weir::Tensor> outputs;  // invalid until set
  std::vector<std::shared_ptr<weir::Buffer>> temps;
  weir::Allocator* allocator = nullptr;
  const weir::kernel::OperandPlaces* places = nullptr;
  int64_t step_id = 0;
  const weir::kernel::RunControl* control = nullptr;  // may be null
  int threads = 0;                                    // cap of parallel_for; 0 = all
  weir::kernel::Completion* completion = nullptr;     // of an ASYNC kernel

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

/// Copies as much of `value` as the caller's struct_size has room for, and says there how much that was.
/// InvalidArgument when `out` is null or its struct_size is not set.
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
