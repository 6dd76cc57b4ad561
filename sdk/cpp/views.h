// Borrowed tensors as parameters of kernels. The type of a parameter determines its role: an input, an output, a
// variable …
#ifndef WEIR_SDK_CPP_VIEWS_H_
#define WEIR_SDK_CPP_VIEWS_H_

#include <cstdint>
#include <span>
#include <type_traits>

#include "sdk/abi/types.h"
#include "sdk/cpp/types.h"

namespace weir::sdk {

/// Number of elements of a concrete shape.
inline int64_t SizeOf(const weir_shape& shape) {
  int64_t n = 1;
  for (uint32_t i = 0; i < shape.rank; ++i) n *= shape.dims[i];
  return n;
}

inline bool SameShape(const weir_shape& a, const weir_shape& b) {
  if (a.rank != b.rank) return false;
  for (uint32_t i = 0; i < a.rank; ++i) {
    if (a.dims[i] != b.dims[i]) return false;
  }
  return true;
}

/// A dense row-major tensor: an input if T is const, else an output.
template <class T>
class View {
 public:
  View() = default;
  View(T* data, const weir_shape& shape) : data_(data), shape_(shape) {}
  explicit View(const weir_reg& reg) : data_(reinterpret_cast<T*>(reg.data)), shape_(*reg.shape) {}

  T* data() const { return data_; }
  const weir_shape& shape() const { return shape_; }
  uint32_t rank() const { return shape_.rank; }
  int64_t dim(uint32_t i) const { return shape_.dims[i]; }
  std::span<const int64_t> dims() const { return {shape_.dims, shape_.rank}; }
  /// Number of elements; computed at every call.
  int64_t size() const { return SizeOf(shape_); }
  T& operator[](int64_t i) const { return data_[i]; }

 private:
  T* data_ = nullptr;
  weir_shape shape_{};
};

/// An input that lies in host memory on every platform.
template <class T>
class Host : public View<T> {
 public:
  using View<T>::View;
};

/// A variable's value: Variable<T> is written in place under an exclusive lock, Variable<const T> is read.
template <class T>
class Variable : public View<T> {
 public:
  using View<T>::View;
};

/// Scratch memory of the call, with the size requested by Prep::Scratch.
template <class T>
class Scratch {
 public:
  explicit Scratch(const weir_reg& reg) : data_(reinterpret_cast<T*>(reg.data)) {}
  T* data() const { return data_; }

 private:
  T* data_;
};

/// Integers of any width, read as int64_t; unsigned 64-bit values beyond its range read as its maximum.
class Integers {
 public:
  Integers() = default;
  Integers(const void* data, uint32_t dtype, const weir_shape& shape) : data_(data), dtype_(dtype), shape_(shape) {}
  explicit Integers(const weir_reg& reg) : Integers(reinterpret_cast<const void*>(reg.data), reg.dtype, *reg.shape) {}

  const weir_shape& shape() const { return shape_; }
  uint32_t rank() const { return shape_.rank; }
  int64_t dim(uint32_t i) const { return shape_.dims[i]; }
  int64_t size() const { return SizeOf(shape_); }
  uint32_t dtype() const { return dtype_; }
  int64_t operator[](int64_t i) const {
    switch (dtype_) {
      case WEIR_INT32:
        return static_cast<const int32_t*>(data_)[i];
      case WEIR_INT64:
        return static_cast<const int64_t*>(data_)[i];
      case WEIR_INT16:
        return static_cast<const int16_t*>(data_)[i];
      case WEIR_INT8:
        return static_cast<const int8_t*>(data_)[i];
      case WEIR_UINT8:
        return static_cast<const uint8_t*>(data_)[i];
      case WEIR_UINT16:
        return static_cast<const uint16_t*>(data_)[i];
      case WEIR_UINT32:
        return static_cast<const uint32_t*>(data_)[i];
      case WEIR_UINT64: {
        const uint64_t value = static_cast<const uint64_t*>(data_)[i];
        return value > static_cast<uint64_t>(INT64_MAX) ? INT64_MAX : static_cast<int64_t>(value);
      }
      default:
        return 0;
    }
  }

 private:
  const void* data_ = nullptr;
  uint32_t dtype_ = WEIR_INVALID;
  weir_shape shape_{};
};

/// The same in host memory: shapes, axes, permutations.
class HostIntegers : public Integers {
 public:
  using Integers::Integers;
};

/// An input of any element type; the kernel checks dtype().
class AnyInput {
 public:
  explicit AnyInput(const weir_reg& reg)
      : data_(reinterpret_cast<const void*>(reg.data)), dtype_(reg.dtype), shape_(*reg.shape) {}
  const void* data() const { return data_; }
  uint32_t dtype() const { return dtype_; }
  const weir_shape& shape() const { return shape_; }
  int64_t size() const { return SizeOf(shape_); }

 private:
  const void* data_;
  uint32_t dtype_;
  weir_shape shape_;
};

/// A variable's value of any element type, read only; the kernel checks dtype().
class AnyVariable : public AnyInput {
 public:
  using AnyInput::AnyInput;
};

/// An output of any element type; the kernel checks dtype().
class AnyOutput {
 public:
  explicit AnyOutput(const weir_reg& reg)
      : data_(reinterpret_cast<void*>(reg.data)), dtype_(reg.dtype), shape_(*reg.shape) {}
  void* data() const { return data_; }
  uint32_t dtype() const { return dtype_; }
  const weir_shape& shape() const { return shape_; }
  int64_t size() const { return SizeOf(shape_); }

 private:
  void* data_;
  uint32_t dtype_;
  weir_shape shape_;
};

/// A list argument ("values: N * T"): inputs if T is const, else outputs.
template <class T>
class Views {
 public:
  Views(const weir_reg* regs, uint32_t count) : regs_(regs), count_(count) {}
  uint32_t size() const { return count_; }
  View<T> operator[](uint32_t i) const { return View<T>(regs_[i]); }

 private:
  const weir_reg* regs_;
  uint32_t count_;
};

/// A list argument of any element type; the kernel checks dtype() of its elements.
template <class Operand>
class AnyList {
 public:
  AnyList(const weir_reg* regs, uint32_t count) : regs_(regs), count_(count) {}
  uint32_t size() const { return count_; }
  Operand operator[](uint32_t i) const { return Operand(regs_[i]); }

 private:
  const weir_reg* regs_;
  uint32_t count_;
};
using AnyInputs = AnyList<AnyInput>;
using AnyOutputs = AnyList<AnyOutput>;

/// A list of inputs in host memory.
template <class T>
class HostViews : public Views<T> {
 public:
  using Views<T>::Views;
};

/// Bytes of an element of T; 0 = any type.
template <class T>
constexpr uint32_t ElementBytes() {
  if constexpr (std::is_void_v<T>) {
    return 0;
  } else {
    return sizeof(T);
  }
}

/// A dense row-major tensor as handle and offset, for devices whose memory has no address: an input if T is const, else
/// an output. `Buffer<const void>` and `Buffer<void>` have any element type; the kernel checks dtype(). On a device
/// whose alloc sets `host` a tensor has an address instead: View.
template <class T>
class Buffer {
 public:
  Buffer() = default;
  Buffer(uint64_t handle, uint64_t offset, uint32_t dtype, const weir_shape& shape)
      : handle_(handle), offset_(offset), dtype_(dtype), shape_(shape) {}
  explicit Buffer(const weir_reg& reg) : Buffer(reg.handle, reg.data, reg.dtype, *reg.shape) {}

  /// The handle that alloc gave to the block, and the first byte of the tensor in it.
  uint64_t handle() const { return handle_; }
  uint64_t offset() const { return offset_; }
  uint32_t dtype() const { return dtype_; }
  /// Lives until the call returns: enqueued work copies what it needs.
  const weir_shape& shape() const { return shape_; }
  uint32_t rank() const { return shape_.rank; }
  int64_t dim(uint32_t i) const { return shape_.dims[i]; }
  /// Number of elements; computed at every call.
  int64_t size() const { return SizeOf(shape_); }
  uint64_t bytes() const { return static_cast<uint64_t>(size()) * SizeOf(dtype_); }

 private:
  uint64_t handle_ = 0;
  uint64_t offset_ = 0;
  uint32_t dtype_ = WEIR_INVALID;
  weir_shape shape_{};
};

/// A variable's value as handle and offset; see Variable.
template <class T>
class VariableBuffer : public Buffer<T> {
 public:
  using Buffer<T>::Buffer;
};

/// Scratch memory of the call as handle and offset, with the size requested by Prep::Scratch.
class ScratchBuffer {
 public:
  explicit ScratchBuffer(const weir_reg& reg) : handle_(reg.handle), offset_(reg.data) {}
  uint64_t handle() const { return handle_; }
  uint64_t offset() const { return offset_; }

 private:
  uint64_t handle_;
  uint64_t offset_;
};

/// A list argument of buffers: inputs if T is const, else outputs.
template <class T>
class Buffers {
 public:
  Buffers(const weir_reg* regs, uint32_t count) : regs_(regs), count_(count) {}
  uint32_t size() const { return count_; }
  Buffer<T> operator[](uint32_t i) const { return Buffer<T>(regs_[i]); }

 private:
  const weir_reg* regs_;
  uint32_t count_;
};

}  // namespace weir::sdk

#endif  // WEIR_SDK_CPP_VIEWS_H_
