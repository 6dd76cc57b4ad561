// Shapes: concrete ones of tensors, with an element count below 2^63, and partial ones for shape inference.
#ifndef WEIR_CORE_TENSOR_SHAPE_H_
#define WEIR_CORE_TENSOR_SHAPE_H_

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "core/base/status.h"

namespace weir {

/// Extents of a shape: up to 4 inline, more on the heap, at most 254 (TensorFlow's limit).
class Dims {
 public:
  Dims() = default;
  explicit Dims(std::span<const int64_t> dims);
  /// A single extent of 0.
  static Dims Zero() {
    Dims zero;
    zero.size_ = 1;
    return zero;
  }
  Dims(const Dims& other) : size_(other.size_) {
    if (other.heap_) {
      *this = Dims(other.span());
    } else {
      std::copy(std::begin(other.inline_), std::end(other.inline_), inline_);
    }
  }
  Dims(Dims&& other) noexcept : size_(std::exchange(other.size_, 0)), heap_(std::move(other.heap_)) {
    std::copy(std::begin(other.inline_), std::end(other.inline_), inline_);
  }
  Dims& operator=(const Dims& other) { return *this = Dims(other); }
  Dims& operator=(Dims&& other) noexcept {
    size_ = std::exchange(other.size_, 0);
    heap_ = std::move(other.heap_);
    std::copy(std::begin(other.inline_), std::end(other.inline_), inline_);
    return *this;
  }

  int size() const { return size_; }
  int64_t* data() { return heap_ ? heap_.get() : inline_; }
  const int64_t* data() const { return heap_ ? heap_.get() : inline_; }
  std::span<const int64_t> span() const { return {data(), static_cast<size_t>(size_)}; }
  int64_t& operator[](int i) { return data()[i]; }
  int64_t operator[](int i) const { return data()[i]; }

 private:
  int size_ = 0;
  int64_t inline_[4] = {};
  std::unique_ptr<int64_t[]> heap_;
};

inline constexpr int kMaxRank = 254;

/// Shape of a tensor: all extents are known and non-negative, and their product (the element count) is below 2^63. The
/// default is a scalar. Only Of can make an invalid shape, which no tensor can have.
class Shape {
 public:
  Shape() = default;
  /// `Shape{2, 3}`; see Of.
  Shape(std::initializer_list<int64_t> dims) : Shape(Of(dims)) {}
  /// InvalidArgument for a negative extent, a rank above kMaxRank, or an element count that overflows.
  static Result<Shape> Make(std::span<const int64_t> dims);
  static Result<Shape> Make(std::initializer_list<int64_t> dims) { return Make(std::span(dims.begin(), dims.size())); }
  /// For literal extents in a program. A bad list gives a shape that is not valid(): it prints as written, and creating
  /// a tensor, node or variable with it returns InvalidArgument.
  static Shape Of(std::initializer_list<int64_t> dims);
  static Shape Of(std::span<const int64_t> dims);
  /// The shape [0].
  static Shape Empty() {
    Shape empty;
    empty.dims_ = Dims::Zero();
    empty.elements_ = 0;
    return empty;
  }

  int rank() const { return dims_.size(); }
  int64_t dim(int i) const { return dims_[i]; }
  std::span<const int64_t> dims() const { return dims_.span(); }
  /// -1 if not valid.
  int64_t elements() const { return elements_; }
  bool valid() const { return elements_ >= 0; }
  /// The error of Make if the shape is not valid.
  Status Check() const;
  bool operator==(const Shape& other) const;

  /// "[2,3]"; "[]" for a scalar.
  std::string ToString() const;

 private:
  Dims dims_;
  int64_t elements_ = 1;
};
/// "(2, 3)", as Python prints it.
std::ostream& operator<<(std::ostream& out, const Shape& shape);

/// The statically known part of a shape: nothing, its rank, some extents (-1 = unknown), or all.
class PartialShape {
 public:
  /// Unknown rank.
  PartialShape() = default;
  PartialShape(const Shape& shape);  // NOLINT(google-explicit-constructor)
  /// `PartialShape{-1, 4}`; see Of.
  PartialShape(std::initializer_list<int64_t> dims) : PartialShape(Of(dims)) {}
  /// InvalidArgument for an extent below -1, a rank above kMaxRank, or an overflowing product.
  static Result<PartialShape> Make(std::span<const int64_t> dims);
  /// For literal extents in a program. A bad list gives unknown rank and is not valid(), as in Shape::Of.
  static PartialShape Of(std::initializer_list<int64_t> dims);
  static PartialShape Of(std::span<const int64_t> dims);
  /// Known rank, all extents unknown.
  static PartialShape OfRank(int rank);

  bool has_rank() const { return has_rank_; }
  /// -1 if unknown.
  int rank() const { return has_rank_ ? dims_.size() : -1; }
  int64_t dim(int i) const { return dims_[i]; }
  std::span<const int64_t> dims() const { return has_rank_ ? dims_.span() : std::span<const int64_t>(); }
  void set_dim(int i, int64_t extent) { dims_[i] = extent; }
  bool fully_defined() const;
  /// False for a bad list passed to Of: an extent below -1, a rank above kMaxRank, or an overflowing product.
  bool valid() const { return has_rank_ || dims_.size() == 0; }
  /// The error of Make if the shape is not valid.
  Status Check() const;
  /// Element count, or -1 if not fully defined or overflowing.
  int64_t elements() const;
  /// The concrete shape; InvalidArgument if not fully defined.
  Result<Shape> ToShape() const;

  bool operator==(const PartialShape& other) const;
  /// True if some concrete shape matches both.
  bool CompatibleWith(const PartialShape& other) const;
  bool CompatibleWith(const Shape& other) const;
  /// Combines the knowledge of both; InvalidArgument with TensorFlow's text if they contradict each other.
  Result<PartialShape> Merge(const PartialShape& other) const;

  /// "[?,3]", "<unknown>".
  std::string ToString() const;
  /// As printed by TensorFlow 1.x in Python: "(?, 784)", "(3,)", "()", "<unknown>".
  std::string ToTupleString() const;

 private:
  bool has_rank_ = false;
  Dims dims_;  // the rejected list if the rank is unknown
};
/// As ToTupleString.
std::ostream& operator<<(std::ostream& out, const PartialShape& shape);

}  // namespace weir

#endif  // WEIR_CORE_TENSOR_SHAPE_H_
