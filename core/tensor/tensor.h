// A dense, row-major, typed n-dimensional array whose memory its copies share.
#ifndef WEIR_CORE_TENSOR_TENSOR_H_
#define WEIR_CORE_TENSOR_TENSOR_H_

#include <cstring>
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
#include "core/tensor/buffer.h"
#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"

namespace weir {

/// Identity of a resource (variable, queue, table): what a tensor of type resource holds.
struct ResourceHandle {
  std::string device;
  std::string container;
  std::string name;
  uint64_t hash_code = 0;
  std::string type_name;
};

template <>
struct DTypeOf<ResourceHandle> {
  static constexpr DType value = DType::kResource;
};

/// Elements of a tensor. Beyond their end operator[] gives T() instead of what lies behind the memory; a write goes
/// nowhere.
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

/// No device has more memory; sums of a few thousand such numbers do not overflow.
inline constexpr uint64_t kMostBytes = uint64_t{1} << 48;

/// Bytes of that many elements; 0 for strings and handles, which are no bytes to lay out. ResourceExhausted above
/// kMostBytes. The one place that multiplies a shape by the size of an element.
Result<uint64_t> PayloadBytes(DType dtype, const Shape& shape);

/// A value: copies share memory until one of them is written. Feeding and fetching copy too. The default tensor has
/// type kInvalid and shape [0]; one that was moved from is not valid() either. Thread-compatible.
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

  /// Host tensor with undefined contents (strings and handles are default-constructed). ResourceExhausted when memory
  /// is lacking or the byte count overflows; InvalidArgument for an unknown or reference type.
  static Result<Tensor> Make(DType dtype, Shape shape);
  /// The same in another device's memory. Only types of fixed size.
  static Result<Tensor> Make(DType dtype, Shape shape, Allocator& allocator);
  /// Over a buffer with at least the bytes that dtype and shape need, starting at `offset`.
  static Result<Tensor> Over(DType dtype, Shape shape, std::shared_ptr<Buffer> buffer, uint64_t offset = 0);

  template <class T>
  static Tensor Scalar(T value);
  /// One-dimensional, from values.
  template <class T>
  static Tensor Vector(const std::vector<T>& values);
  /// Values in row-major order; their count must be the shape's element count, else the tensor is invalid.
  template <class T>
  static Tensor Of(Shape shape, const std::vector<T>& values);
  static Tensor String(std::string_view value);

  bool valid() const { return dtype_ != DType::kInvalid; }
  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  int64_t elements() const { return shape_.elements(); }
  /// Payload bytes of a fixed-size type; 0 for strings and handles.
  uint64_t bytes() const { return static_cast<uint64_t>(elements()) * SizeOf(dtype_); }
  const std::shared_ptr<Buffer>& buffer() const { return buffer_; }
  uint64_t offset() const { return offset_; }
  /// True when the CPU can read the payload.
  bool on_host() const { return !buffer_ || buffer_->host() != nullptr || elements() == 0; }

  /// Payload of a host tensor; null when empty or elsewhere.
  const std::byte* raw() const { return buffer_ && buffer_->host() ? buffer_->host() + offset_ : nullptr; }
  /// The same to write to, moved to memory of its own first when a copy shares it; null, too, where that memory is
  /// lacking. Good until the tensor is copied: writing through it later would change the copy.
  std::byte* mutable_raw();

  /// Elements as T, of a tensor of T's dtype: none of another. Works for std::string and ResourceHandle too; a T
  /// without a dtype (std::complex) stands for any type of its size.
  template <class T>
  Elements<const T> as() const {
    return {reinterpret_cast<const T*>(raw()), Holds<T>() ? static_cast<size_t>(elements()) : 0};
  }
  template <class T>
  Elements<T> mutable_as() {
    T* const first = reinterpret_cast<T*>(mutable_raw());
    return {first, first != nullptr && Holds<T>() ? static_cast<size_t>(elements()) : 0};
  }
  /// The same for who has not looked at the dtype: InvalidArgument that names both.
  template <class T>
  Result<Elements<const T>> values() const {
    WEIR_TRY(CheckReadable(DTypeOf<T>::value));
    return as<T>();
  }
  /// The one element of the tensor as T. Numbers of another type are converted where T has that very number (3.0f is
  /// the int 3, the float 0.1f the double 0.10000000149); InvalidArgument that names both types otherwise, and for a
  /// tensor that has not one element.
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

  /// The same memory under another shape of equal element count, else InvalidArgument.
  Result<Tensor> Reshaped(Shape shape) const;
  /// A host copy that shares nothing with this tensor, which must be on the host.
  Result<Tensor> Clone() const;
  /// Equal dtype, shape and payload bytes (host tensors).
  bool SameBits(const Tensor& other) const;

  /// Values as TensorFlow's printing and asserting ops write them, in one pair of brackets: "[3]", "[1 2 3]", "[1
  /// 2 3...]",
  /// "[[1 2][3...]...]"; at most `limit` in all, or every one when it is negative.
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
  /// Writes the one element to `to`, which has room for one of `wanted`.
  Status ReadNumber(DType wanted, void* to) const;

  DType dtype_ = DType::kInvalid;
  Shape shape_ = Shape::Empty();
  std::shared_ptr<Buffer> buffer_;
  uint64_t offset_ = 0;
};
/// The values as NumPy lays them out (core/tensor/summarize.h), or why there are none to show.
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
