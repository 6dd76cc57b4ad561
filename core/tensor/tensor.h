// A dense, row-major, typed n-dimensional array; copies share memory.
#ifndef WEIR_CORE_TENSOR_TENSOR_H_
#define WEIR_CORE_TENSOR_TENSOR_H_

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <memory>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"

struct weir_buf;

namespace weir {

class Allocator;

/// A shared range of memory. `host()` is null for memory that the CPU cannot reach. Only these may write the contents:
/// the creator before the buffer is shared, the holder of the variable's lock, or the sole owner.
class Buffer {
 public:
  virtual ~Buffer() = default;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  std::byte* host() const { return host_; }
  uint64_t bytes() const { return bytes_; }
  /// For the plugin boundary (core/tensor/buffer.h).
  weir_buf memory() const;
  /// True if code that does not own the buffer may write the memory.
  bool lent() const { return lent_; }

 protected:
  explicit Buffer(const weir_buf& memory, bool lent = false);

 private:
  std::byte* host_;
  uint64_t bytes_, handle_, offset_;
  uint32_t space_;
  bool lent_;
};

/// Elements of a tensor. Out of range, operator[] reads T() and writes have no effect.
template <class T>
class Elements : public std::span<T> {
 public:
  Elements() = default;
  Elements(T* first, size_t count) : std::span<T>(first, count) {}
  T& operator[](size_t i) const { return i < this->size() ? this->data()[i] : None(); }
  T& front() const { return (*this)[0]; }
  T& back() const { return (*this)[this->size() - 1]; }

 private:
  static T& None() {
    static thread_local std::remove_const_t<T> none;
    if constexpr (!std::is_const_v<T>) none = T();
    return none;
  }
};

/// A value type: copies share memory until one of them is written, also when feeding and fetching. The default tensor
/// has type kInvalid and shape [0]; a moved-from tensor is not valid() either. Thread-compatible.
class Tensor {
 public:
  Tensor() = default;
  Tensor(const Tensor&) = default;
  Tensor& operator=(const Tensor&) = default;
  Tensor(Tensor&& other) noexcept
      : dtype_(std::exchange(other.dtype_, DType::kInvalid)),
        shape_(std::move(other.shape_)),
        buffer_(std::move(other.buffer_)),
        offset_(other.offset_) {}
  Tensor& operator=(Tensor&& other) noexcept {
    dtype_ = std::exchange(other.dtype_, DType::kInvalid);
    shape_ = std::move(other.shape_);
    buffer_ = std::move(other.buffer_);
    offset_ = other.offset_;
    return *this;
  }

  /// Host tensor with undefined contents (strings, handles and variants are default-constructed). ResourceExhausted if
  /// memory runs out or the byte count overflows; InvalidArgument for an unknown or reference type.
  static Result<Tensor> Make(DType dtype, Shape shape);
  /// As above, in another device's memory. Fixed-size types only.
  static Result<Tensor> Make(DType dtype, Shape shape, Allocator& allocator);
  /// Views `buffer` from `offset`; it must hold the bytes that dtype and shape need.
  static Result<Tensor> Over(DType dtype, Shape shape, std::shared_ptr<Buffer> buffer, uint64_t offset = 0);

  template <class T>
  static Tensor Scalar(T value);
  /// One-dimensional tensor of the values.
  template <class T>
  static Tensor Vector(const std::vector<T>& values);
  /// Values in row-major order. The tensor is invalid if their count differs from the shape's element count.
  template <class T>
  static Tensor Of(Shape shape, const std::vector<T>& values);
  static Tensor String(std::string_view value);

  bool valid() const { return dtype_ != DType::kInvalid; }
  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  int64_t elements() const { return shape_.elements(); }
  /// Payload bytes of a fixed-size type; 0 for strings, handles and variants.
  uint64_t bytes() const { return static_cast<uint64_t>(elements()) * SizeOf(dtype_); }
  const std::shared_ptr<Buffer>& buffer() const { return buffer_; }
  uint64_t offset() const { return offset_; }
  /// True if the CPU can read the payload.
  bool on_host() const { return !buffer_ || buffer_->host() != nullptr || elements() == 0; }

  /// Payload of a host tensor; null if it is empty or not on the host.
  const std::byte* raw() const { return buffer_ && buffer_->host() ? buffer_->host() + offset_ : nullptr; }
  /// Writable payload. Memory shared with a copy is cloned first; null if that allocation fails. Valid until the tensor
  /// is copied: a later write through the pointer would change the copy.
  std::byte* mutable_raw();

  /// Elements as T; empty if the dtype is not T's. Also supports std::string, ResourceHandle and Variant. A T without a
  /// dtype (std::complex) matches any dtype of its size.
  template <class T>
  Elements<const T> as() const {
    return {reinterpret_cast<const T*>(raw()), Holds<T>() ? static_cast<size_t>(elements()) : 0};
  }
  template <class T>
  Elements<T> mutable_as() {
    T* const first = reinterpret_cast<T*>(mutable_raw());
    return {first, first != nullptr && Holds<T>() ? static_cast<size_t>(elements()) : 0};
  }
  /// As above with a dtype check: InvalidArgument names both types.
  template <class T>
  Result<Elements<const T>> values() const {
    WEIR_TRY(CheckReadable(DTypeOf<T>::value));
    return as<T>();
  }
  /// The single element as T. A number of another type is converted if T represents it exactly (3.0f gives the int 3,
  /// the float 0.1f the double 0.10000000149); otherwise InvalidArgument names both types. InvalidArgument also unless
  /// the tensor has exactly one element.
  template <class T>
  Result<T> scalar() const {
    if constexpr (std::is_arithmetic_v<T>) {
      T number = {};
      WEIR_TRY(ReadNumber(DTypeOf<T>::value, &number));
      return number;
    } else {
      WEIR_TRY(CheckOne(DTypeOf<T>::value));
      WEIR_TRY(CheckReadable(DTypeOf<T>::value));
      return as<T>()[0];
    }
  }

  /// Shares the memory under another shape; InvalidArgument if the element counts differ.
  Result<Tensor> Reshaped(Shape shape) const;
  /// Deep copy of a host tensor.
  Result<Tensor> Clone() const;
  /// True if dtype, shape and payload bytes are equal (host tensors).
  bool SameBits(const Tensor& other) const;

  /// Values as in TensorFlow's printing and asserting ops, at most `limit`, or all if it is negative. Formats: "[3]",
  /// "[1 2 3]", "[1 2 3...]", "[[1 2][3...]...]".
  std::string SummarizeValues(int64_t limit = 3) const;

 private:
  Tensor(DType dtype, Shape shape, std::shared_ptr<Buffer> buffer, uint64_t offset)
      : dtype_(dtype), shape_(std::move(shape)), buffer_(std::move(buffer)), offset_(offset) {}

  template <class T>
  bool Holds() const {
    if (raw() == nullptr) return false;
    if constexpr (requires { DTypeOf<T>::value; }) {
      return dtype_ == DTypeOf<T>::value;
    } else {
      return SizeOf(dtype_) == sizeof(T);
    }
  }
  Status CheckOne(DType wanted) const;
  Status CheckReadable(DType wanted) const;
  /// Writes the single element to `to`, which has room for one `wanted`.
  Status ReadNumber(DType wanted, void* to) const;

  DType dtype_ = DType::kInvalid;
  Shape shape_ = Shape::Empty();
  std::shared_ptr<Buffer> buffer_;
  uint64_t offset_ = 0;
};
/// Prints the values in NumPy's layout (core/tensor/summarize.h), or the reason why they cannot be shown.
std::ostream& operator<<(std::ostream& out, const Tensor& tensor);

template <class T>
Tensor Tensor::Of(Shape shape, const std::vector<T>& values) {
  if (shape.elements() != static_cast<int64_t>(values.size())) return Tensor();
  Result<Tensor> made = Make(DTypeOf<T>::value, std::move(shape));
  if (!made.ok()) return Tensor();
  const std::span<T> to = made->template mutable_as<T>();
  for (size_t i = 0; i < values.size(); ++i) to[i] = values[i];
  return std::move(*made);
}

template <class T>
Tensor Tensor::Vector(const std::vector<T>& values) {
  return Of<T>(Shape::Of({static_cast<int64_t>(values.size())}), values);
}

template <class T>
Tensor Tensor::Scalar(T value) {
  return Of<T>(Shape(), std::vector<T>{value});
}

}  // namespace weir

template <class T>
inline constexpr bool std::ranges::enable_borrowed_range<weir::Elements<T>> = true;
template <class T>
inline constexpr bool std::ranges::enable_view<weir::Elements<T>> = true;

#endif  // WEIR_CORE_TENSOR_TENSOR_H_
