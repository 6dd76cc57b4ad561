// A dense, row-major, typed n-dimensional array whose memory its copies share.
#ifndef WEIR_CORE_TENSOR_TENSOR_H_
#define WEIR_CORE_TENSOR_TENSOR_H_

#include <cstring>
#include <iosfwd>
#include <memory>
#include <span>
#include <string>
#include <string_view>
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

/// No device has more memory; sums of a few thousand such numbers do not overflow.
inline constexpr uint64_t kMostBytes = uint64_t{1} << 48;

/// Bytes of that many elements; 0 for strings and handles, which are no bytes to lay out. ResourceExhausted above
/// kMostBytes. Whoever multiplies a shape by the size of an element asks here.
Result<uint64_t> PayloadBytes(DType dtype, const Shape& shape);

/// A value: copies share memory until one of them is written. Feeding and fetching copy too. The default tensor has
/// type kInvalid and shape [0]. Thread-compatible.
class Tensor {
 public:
  Tensor() = default;

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

  /// Elements as T; the caller has checked the dtype. Works for std::string and ResourceHandle too.
  template <class T>
  std::span<const T> as() const {
    return {reinterpret_cast<const T*>(raw()), raw() ? static_cast<size_t>(elements()) : 0};
  }
  template <class T>
  std::span<T> mutable_as() {
    return {reinterpret_cast<T*>(mutable_raw()), mutable_raw() ? static_cast<size_t>(elements()) : 0};
  }
  /// First element; the caller has checked dtype and count.
  template <class T>
  const T& scalar() const {
    return as<T>()[0];
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
  std::span<T> to = made->mutable_as<T>();
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

#endif  // WEIR_CORE_TENSOR_TENSOR_H_
