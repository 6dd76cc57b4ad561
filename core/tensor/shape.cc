#include "core/tensor/shape.h"

#include <algorithm>
#include <optional>
#include <ostream>
#include <utility>

#include "core/base/errors.h"

namespace weir {
namespace {

/// The extents as in TensorFlow's messages; unknown ones print as "?".
std::string Join(std::span<const int64_t> dims, const char* separator) {
  std::string text;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (i > 0) text += separator;
    text += dims[i] == -1 ? "?" : std::to_string(dims[i]);
  }
  return text;
}

/// The raw numbers of a bad list for messages; long lists are truncated.
std::string Raw(std::span<const int64_t> dims) {
  constexpr size_t kShown = 16;
  std::string text = "[";
  for (size_t i = 0; i < std::min(dims.size(), kShown); ++i) text += (i > 0 ? "," : "") + std::to_string(dims[i]);
  return text + (dims.size() > kShown ? ",...]" : "]");
}

/// Product of the known non-zero extents; nullopt if it needs more than 63 bits. Zeros are skipped so that the product
/// over any subset of an empty tensor's extents also fits.
std::optional<int64_t> ProductOfNonZero(std::span<const int64_t> dims) {
  int64_t product = 1;
  for (int64_t d : dims) {
    if (d > 0 && __builtin_mul_overflow(product, d, &product)) return std::nullopt;
  }
  return product;
}

Status CheckExtents(std::span<const int64_t> dims, int64_t least) {
  if (dims.size() > static_cast<size_t>(kMaxRank)) {
    return InvalidArgument("Shape {} has too many dimensions: {}, at most {} are possible", Raw(dims), dims.size(),
                           kMaxRank);
  }
  for (int64_t d : dims) {
    if (d >= least) continue;
    return least == 0
               ? InvalidArgument("Shape {} has negative dimensions", Raw(dims))
               : InvalidArgument("Shape {} has dimensions with values below -1 (where -1 means unknown)", Raw(dims));
  }
  if (!ProductOfNonZero(dims)) {
    return InvalidArgument("Shape {} is too large (more than 2**63 - 1 entries)", Raw(dims));
  }
  return {};
}

}  // namespace

Dims::Dims(std::span<const int64_t> dims) : size_(static_cast<int>(dims.size())) {
  if (dims.size() > std::size(inline_)) heap_ = std::make_unique<int64_t[]>(dims.size());
  std::copy(dims.begin(), dims.end(), data());
}

Result<Shape> Shape::Make(std::span<const int64_t> dims) {
  WEIR_TRY(CheckExtents(dims, 0));
  Shape shape;
  shape.dims_ = Dims(dims);
  shape.elements_ = std::find(dims.begin(), dims.end(), 0) != dims.end() ? 0 : *ProductOfNonZero(dims);
  return shape;
}

Shape Shape::Of(std::span<const int64_t> dims) {
  Result<Shape> made = Make(dims);
  if (made.ok()) return std::move(*made);
  Shape bad;
  bad.dims_ = Dims(dims);
  bad.elements_ = -1;
  return bad;
}

Status Shape::Check() const { return valid() ? Status() : CheckExtents(dims(), 0); }

Shape Shape::Of(std::initializer_list<int64_t> dims) { return Of(std::span(dims.begin(), dims.size())); }

bool Shape::operator==(const Shape& other) const {
  const int n = rank();
  if (n != other.rank()) return false;
  const int64_t* const a = dims_.data();
  const int64_t* const b = other.dims_.data();
  for (int i = 0; i < n; ++i) {  // a loop, because most shapes are too short for memcmp to pay
    if (a[i] != b[i]) return false;
  }
  return true;
}

std::string Shape::ToString() const { return "[" + Join(dims(), ",") + "]"; }

std::ostream& operator<<(std::ostream& out, const Shape& shape) { return out << PartialShape(shape); }

PartialShape::PartialShape(const Shape& shape) : has_rank_(shape.valid()), dims_(shape.dims()) {}

Result<PartialShape> PartialShape::Make(std::span<const int64_t> dims) {
  WEIR_TRY(CheckExtents(dims, -1));
  PartialShape shape;
  shape.has_rank_ = true;
  shape.dims_ = Dims(dims);
  return shape;
}

PartialShape PartialShape::Of(std::span<const int64_t> dims) {
  Result<PartialShape> made = Make(dims);
  if (made.ok()) return std::move(*made);
  PartialShape bad;
  bad.dims_ = Dims(dims);
  return bad;
}

PartialShape PartialShape::Of(std::initializer_list<int64_t> dims) { return Of(std::span(dims.begin(), dims.size())); }

PartialShape PartialShape::OfRank(int rank) {
  if (rank < 0 || rank > kMaxRank) return {};
  int64_t unknown[kMaxRank];
  std::fill_n(unknown, rank, -1);
  return Of(std::span<const int64_t>(unknown, static_cast<size_t>(rank)));
}

bool PartialShape::fully_defined() const {
  return has_rank_ && std::ranges::none_of(dims(), [](int64_t d) { return d < 0; });
}

Status PartialShape::Check() const { return valid() ? Status() : CheckExtents(dims_.span(), -1); }

int64_t PartialShape::elements() const {
  if (!fully_defined()) return -1;
  if (std::ranges::find(dims(), 0) != dims().end()) return 0;
  return ProductOfNonZero(dims()).value_or(-1);
}

Result<Shape> PartialShape::ToShape() const {
  if (!fully_defined()) return InvalidArgument("Shape {} is not fully defined", ToString());
  return Shape::Make(dims());
}

bool PartialShape::operator==(const PartialShape& other) const {
  return has_rank_ == other.has_rank_ && std::ranges::equal(dims(), other.dims());
}

bool PartialShape::CompatibleWith(const PartialShape& other) const {
  if (!has_rank_ || !other.has_rank_) return true;
  return std::ranges::equal(dims(), other.dims(), [](int64_t a, int64_t b) { return a < 0 || b < 0 || a == b; });
}

bool PartialShape::CompatibleWith(const Shape& other) const {
  if (!has_rank_) return true;
  return std::ranges::equal(dims(), other.dims(), [](int64_t a, int64_t b) { return a < 0 || a == b; });
}

Result<PartialShape> PartialShape::Merge(const PartialShape& other) const {
  if (!other.has_rank_) return *this;
  if (!has_rank_) return other;
  if (rank() != other.rank()) {
    return InvalidArgument("Shapes must be equal rank, but are {} and {}", rank(), other.rank());
  }
  PartialShape merged = *this;
  for (int i = 0; i < rank(); ++i) {
    if (dim(i) >= 0 && other.dim(i) >= 0 && dim(i) != other.dim(i)) {
      return InvalidArgument("Dimension {} in both shapes must be equal, but are {} and {}. Shapes are {} and {}.", i,
                             dim(i), other.dim(i), ToString(), other.ToString());
    }
    if (dim(i) < 0) merged.set_dim(i, other.dim(i));
  }
  return merged;
}

std::string PartialShape::ToString() const { return has_rank_ ? "[" + Join(dims(), ",") + "]" : "<unknown>"; }

std::string PartialShape::ToTupleString() const {
  if (!has_rank_) return "<unknown>";
  return "(" + Join(dims(), ", ") + (rank() == 1 ? ",)" : ")");
}

std::ostream& operator<<(std::ostream& out, const PartialShape& shape) { return out << shape.ToTupleString(); }

}  // namespace weir
