// Submits C++ functions as work of platform "handle/1".
#ifndef WEIR_SDK_EXAMPLES_HANDLE_DEVICE_SUBMIT_H_
#define WEIR_SDK_EXAMPLES_HANDLE_DEVICE_SUBMIT_H_

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>
#include <type_traits>
#include <utility>

#include "sdk/cpp/status.h"
#include "sdk/cpp/views.h"
#include "handle_platform.h"

namespace handle_device {

/// Submits `run(pointers …)` to the queue behind a native stream, one pointer for each buffer in order. `run` returns
/// nothing, or a code with a leading `const Error&` parameter. It is copied and called once on the queue's thread; it
/// must hold all that it needs, since the shapes of the buffers are gone by then.
template <class Run, class... T>
int32_t Submit(uint64_t native_stream, std::string_view name, const weir::sdk::Error& error, Run run,
               const weir::sdk::Buffer<T>&... buffers) {
  const auto* queue = reinterpret_cast<const weir_handle_queue*>(native_stream);
  if (queue == nullptr) return error.Fail(WEIR_FAILED_PRECONDITION, name, " needs a stream");
  const std::array<weir_handle_operand, sizeof...(T)> operands = {
      weir_handle_operand{buffers.handle(), buffers.offset(), buffers.bytes()}...};
  weir_handle_work work{};
  work.struct_size = sizeof work;
  work.operand_count = sizeof...(T);
  work.operands = operands.data();
  work.name = weir::sdk::Str(name);
  work.arg = std::make_unique<Run>(std::move(run)).release();
  work.drop = [](void* arg) { delete static_cast<Run*>(arg); };
  work.run = [](void* arg, void* const* addresses, weir_error* record) -> int32_t {
    return weir::sdk::Guard(record, [&] {
      return [&]<size_t... i>(std::index_sequence<i...>) -> int32_t {
        Run& call = *static_cast<Run*>(arg);
        if constexpr (std::is_invocable_r_v<int32_t, Run&, const weir::sdk::Error&, T*...>) {
          return call(weir::sdk::Error(record), static_cast<T*>(addresses[i])...);
        } else {
          call(static_cast<T*>(addresses[i])...);
          return WEIR_OK;
        }
      }
      (std::make_index_sequence<sizeof...(T)>());
    });
  };
  return queue->submit(queue->queue, &work, error.record());
}

}  // namespace handle_device

#endif  // WEIR_SDK_EXAMPLES_HANDLE_DEVICE_SUBMIT_H_
