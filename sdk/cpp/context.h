// One call of a dynamic kernel, which gets its inputs and allocates its outputs once it knows their shapes.
#ifndef WEIR_SDK_CPP_CONTEXT_H_
#define WEIR_SDK_CPP_CONTEXT_H_

#include <initializer_list>
#include <string_view>
#include <vector>

#include "sdk/abi/host.h"
#include "sdk/cpp/prepare.h"

namespace weir::sdk {

/// Everything borrowed from it is valid until the call ends. Single-threaded.
class Context {
 public:
  Context(weir_ctx* ctx, weir_error* record) : ctx_(ctx), error_(record) {}

  const Error& error() const { return error_; }
  bool cancelled() const { return HostTable()->cancelled(ctx_) != 0; }
  weir_device* device() const { return HostTable()->device(ctx_); }
  /// The stream on which a kernel with WEIR_KERNEL_STREAM enqueues its work; null on a synchronous device.
  weir_stream* stream() const { return HostTable()->stream(ctx_); }
  /// The driver's handle of that stream (native/1); 0 without one.
  uint64_t native_stream() const { return HostTable()->native_stream(ctx_); }

  /// Input i; the kernel's registration determines its element type.
  template <class T>
  int32_t Input(uint32_t i, View<const T>* view) const {
    weir_tensor tensor{};
    const int32_t code = Get(i, sizeof(T), &tensor);
    if (code == WEIR_OK) *view = View<const T>(static_cast<const T*>(Address(tensor)), {tensor.rank, 0, tensor.dims});
    return code;
  }
  template <class T>
  int32_t Input(uint32_t i, Buffer<const T>* buffer) const {
    weir_tensor tensor{};
    const int32_t code = Get(i, ElementBytes<T>(), &tensor);
    if (code == WEIR_OK) *buffer = BufferOf<const T>(tensor);
    return code;
  }
  int32_t Input(uint32_t i, Integers* view) const {
    weir_tensor tensor{};
    const int32_t code = Get(i, 0, &tensor);
    if (code == WEIR_OK) *view = Integers(Address(tensor), tensor.dtype, {tensor.rank, 0, tensor.dims});
    return code;
  }
  /// The elements of a string input in row-major order, and its shape.
  int32_t Input(uint32_t i, std::vector<std::string_view>* texts, weir_shape* shape) const {
    weir_tensor tensor{};
    if (const int32_t code = Get(i, 0, &tensor); code != WEIR_OK) return code;
    *shape = {tensor.rank, 0, tensor.dims};
    texts->clear();
    texts->reserve(static_cast<size_t>(SizeOf(*shape)));
    return HostTable()->string_visit(
        &tensor,
        [](void* arg, uint64_t, weir_str text) -> int32_t {
          static_cast<std::vector<std::string_view>*>(arg)->push_back(ToView(text));
          return 0;
        },
        texts);
  }
  /// Flattened index of a list argument's first input, and the number of its inputs.
  int32_t InputRange(std::string_view argument, uint32_t* first, uint32_t* count) const {
    return HostTable()->input_range(ctx_, Str(argument), first, count);
  }

  /// Allocates output i.
  template <class T>
  int32_t Output(uint32_t i, const weir_shape& shape, View<T>* view) const {
    weir_tensor tensor{};
    const int32_t code = Allocate(i, shape, &tensor);
    if (code == WEIR_OK) *view = View<T>(static_cast<T*>(Address(tensor)), {tensor.rank, 0, tensor.dims});
    return code;
  }
  template <class T>
  int32_t Output(uint32_t i, std::initializer_list<int64_t> dims, View<T>* view) const {
    return Output(i, weir_shape{static_cast<uint32_t>(dims.size()), 0, dims.begin()}, view);
  }
  template <class T>
  int32_t Output(uint32_t i, const weir_shape& shape, Buffer<T>* buffer) const {
    weir_tensor tensor{};
    const int32_t code = Allocate(i, shape, &tensor);
    if (code == WEIR_OK) *buffer = BufferOf<T>(tensor);
    return code;
  }
  /// Scratch memory in a space (WEIR_SPACE_*) that lives until the call ends; with WEIR_KERNEL_STREAM, until the work
  /// that the call enqueued is done. `buf` has handle, offset and, if the CPU can access it, `host`.
  int32_t Temp(uint64_t bytes, uint32_t space, weir_buf* buf) const {
    *buf = {};
    buf->struct_size = sizeof *buf;
    return HostTable()->temp(ctx_, bytes, space, buf, error_.record());
  }
  /// Allocates string output i with these elements.
  template <class TextList>
  int32_t OutputTexts(uint32_t i, const weir_shape& shape, const TextList& texts) const {
    weir_tensor tensor{};
    if (const int32_t code = Allocate(i, shape, &tensor); code != WEIR_OK) return code;
    uint64_t at = 0;
    for (const std::string_view text : texts) {
      if (const int32_t code = HostTable()->string_set(&tensor, at++, Str(text)); code != WEIR_OK) return code;
    }
    return WEIR_OK;
  }

  weir_ctx* get() const { return ctx_; }

 private:
  static void* Address(const weir_tensor& tensor) { return tensor.buf.host; }
  template <class T>
  static Buffer<T> BufferOf(const weir_tensor& tensor) {
    return Buffer<T>(tensor.buf.handle, tensor.buf.offset, tensor.dtype, {tensor.rank, 0, tensor.dims});
  }
  int32_t Get(uint32_t i, uint32_t element_bytes, weir_tensor* tensor) const {
    tensor->struct_size = sizeof *tensor;
    if (const int32_t code = HostTable()->input(ctx_, i, tensor); code != WEIR_OK) {
      return error_.Fail(code, "input ", i, " is missing");
    }
    if (element_bytes != 0 && SizeOf(tensor->dtype) != element_bytes) {
      return error_.Fail(WEIR_INTERNAL, "input ", i, " has element type ", tensor->dtype, ", wanted one of ",
                         element_bytes, " bytes");
    }
    return WEIR_OK;
  }
  int32_t Allocate(uint32_t i, const weir_shape& shape, weir_tensor* tensor) const {
    tensor->struct_size = sizeof *tensor;
    return HostTable()->output(ctx_, i, &shape, tensor, error_.record());
  }

  weir_ctx* ctx_;
  Error error_;
};

}  // namespace weir::sdk

#endif  // WEIR_SDK_CPP_CONTEXT_H_
