#include "core/tensor/tensor.h"

#include <algorithm>
#include <atomic>
#include <new>
#include <utility>

#include "core/base/errors.h"
#include "core/tensor/buffer.h"
#include "core/tensor/resource.h"
#include "core/tensor/variant.h"
#include "sdk/abi/device.h"

namespace weir {
namespace {

/// Heap objects, destroyed with the buffer.
template <class T>
class ObjectBuffer final : public Buffer {
 public:
  static Result<std::shared_ptr<Buffer>> Make(int64_t count) {
    const auto n = static_cast<uint64_t>(std::max<int64_t>(count, 1));
    uint64_t bytes = 0;
    const bool overflow = __builtin_mul_overflow(n, sizeof(T), &bytes);
    T* objects = !overflow && FitsHostMemory(bytes) ? new (std::nothrow) T[n] : nullptr;
    if (objects == nullptr) return ResourceExhausted("out of host memory: {} objects were asked for", count);
    return std::shared_ptr<Buffer>(new ObjectBuffer(objects, bytes));
  }
  ~ObjectBuffer() override { delete[] objects_; }

 private:
  ObjectBuffer(T* objects, uint64_t bytes) : Buffer(Describe(objects, bytes)), objects_(objects) {}

  static weir_buf Describe(T* objects, uint64_t bytes) {
    weir_buf memory = {};
    memory.struct_size = sizeof(memory);
    memory.space = WEIR_SPACE_HOST;
    memory.handle = reinterpret_cast<uintptr_t>(objects);
    memory.bytes = bytes;
    memory.host = objects;
    return memory;
  }

  T* objects_;
};

Status CheckStorable(DType dtype) {
  if (!IsKnown(dtype) || IsRef(dtype)) return InvalidArgument("a tensor cannot have type {}", Name(dtype));
  return {};
}

Status WhenAllocating(const Status& status, DType dtype, const Shape& shape) {
  const bool full = status.code() == Code::kResourceExhausted;
  return status.Prepend(fmt::format("{} tensor with shape{} and type {}: ",
                                    full ? "OOM when allocating" : "cannot allocate", shape.ToString(), Name(dtype)));
}

bool Same(const ResourceHandle& a, const ResourceHandle& b) {
  return a.device == b.device && a.container == b.container && a.name == b.name && a.hash_code == b.hash_code &&
         a.type_name == b.type_name;
}
bool Same(const Variant& a, const Variant& b) { return a.value == b.value; }
bool Same(const std::string& a, const std::string& b) { return a == b; }

/// Calls `use` with a default object of the element type of an object tensor (string, handle or variant).
template <class Use>
auto WithObject(DType dtype, const Use& use) {
  if (dtype == DType::kString) return use(std::string());
  return dtype == DType::kResource ? use(ResourceHandle()) : use(Variant());
}

}  // namespace

Result<uint64_t> PayloadBytes(DType dtype, const Shape& shape) {
  uint64_t bytes = 0;
  if (__builtin_mul_overflow(static_cast<uint64_t>(shape.elements()), SizeOf(dtype), &bytes) || bytes > kMostBytes) {
    return WhenAllocating(ResourceExhausted("no device holds more than {} bytes", kMostBytes), dtype, shape);
  }
  return bytes;
}

Result<Tensor> Tensor::Make(DType dtype, Shape shape) {
  WEIR_TRY(shape.Check());
  WEIR_TRY(CheckStorable(dtype));
  if (HasFixedSize(dtype)) return Make(dtype, std::move(shape), HostAllocator());
  Result<std::shared_ptr<Buffer>> buffer =
      WithObject(dtype, [&]<class T>(const T&) { return ObjectBuffer<T>::Make(shape.elements()); });
  if (!buffer.ok()) return WhenAllocating(buffer.status(), dtype, shape);
  return Tensor(dtype, std::move(shape), std::move(*buffer), 0);
}

Result<Tensor> Tensor::Make(DType dtype, Shape shape, Allocator& allocator) {
  WEIR_TRY(shape.Check());
  WEIR_TRY(CheckStorable(dtype));
  if (!HasFixedSize(dtype)) return InvalidArgument("tensors of type {} live in host memory only", Name(dtype));
  WEIR_ASSIGN(const uint64_t bytes, PayloadBytes(dtype, shape));
  Result<std::shared_ptr<Buffer>> buffer = allocator.Allocate(bytes);
  if (!buffer.ok()) return WhenAllocating(buffer.status(), dtype, shape);
  return Tensor(dtype, std::move(shape), std::move(*buffer), 0);
}

Result<Tensor> Tensor::Over(DType dtype, Shape shape, std::shared_ptr<Buffer> buffer, uint64_t offset) {
  WEIR_TRY(shape.Check());
  WEIR_TRY(CheckStorable(dtype));
  if (!HasFixedSize(dtype)) return InvalidArgument("a tensor of type {} cannot be laid over plain memory", Name(dtype));
  WEIR_ASSIGN(const uint64_t bytes, PayloadBytes(dtype, shape));
  const uint64_t available = buffer ? buffer->bytes() : 0;
  if (offset > available || bytes > available - offset) {
    return InvalidArgument("a tensor of type {} and shape {} needs {} bytes at offset {}, but its buffer has {}",
                           Name(dtype), shape.ToString(), bytes, offset, available);
  }
  return Tensor(dtype, std::move(shape), std::move(buffer), offset);
}

Tensor Tensor::String(std::string_view value) { return Scalar(std::string(value)); }

Result<Tensor> Tensor::Reshaped(Shape shape) const {
  if (shape.elements() != elements()) {
    return InvalidArgument("a tensor of shape {} cannot take shape {}: it has {} elements, not {}", shape_.ToString(),
                           shape.ToString(), elements(), shape.elements());
  }
  return Tensor(dtype_, std::move(shape), buffer_, offset_);
}

std::byte* Tensor::mutable_raw() {
  if (!buffer_ || buffer_->host() == nullptr) return nullptr;
  if (buffer_.use_count() != 1) {
    Result<Tensor> own = Clone();
    if (!own.ok()) return nullptr;
    *this = std::move(*own);
  }
#if WEIR_SANITIZER_KIND == 2
  const std::shared_ptr<Buffer> seen = buffer_;  // the thread sanitizer does not model fences
#else
  std::atomic_thread_fence(std::memory_order_acquire);  // orders the other owners' accesses before ours
#endif
  return buffer_->host() + offset_;
}

Result<Tensor> Tensor::Clone() const {
  if (!valid()) return Tensor();
  if (!on_host()) return FailedPrecondition("a tensor outside host memory cannot be cloned");
  WEIR_ASSIGN(Tensor copy, Make(dtype_, shape_));
  if (!HasFixedSize(dtype_)) {
    WithObject(dtype_, [&]<class T>(const T&) { std::ranges::copy(as<T>(), copy.mutable_as<T>().begin()); });
  } else if (bytes() > 0) {
    std::memcpy(copy.mutable_raw(), raw(), bytes());
  }
  return copy;
}

bool Tensor::SameBits(const Tensor& other) const {
  if (dtype_ != other.dtype_ || shape_ != other.shape_) return false;
  if (elements() == 0 || (buffer_ == other.buffer_ && offset_ == other.offset_)) return true;
  if (raw() == nullptr || other.raw() == nullptr) return false;
  if (!HasFixedSize(dtype_)) {
    return WithObject(dtype_, [&]<class T>(const T&) {
      return std::ranges::equal(as<T>(), other.as<T>(), [](const T& a, const T& b) { return Same(a, b); });
    });
  }
  return std::memcmp(raw(), other.raw(), bytes()) == 0;
}

}  // namespace weir
