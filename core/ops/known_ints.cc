#include "core/ops/known_ints.h"

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace weir::ops {

using op::Ints;
using op::kMostKnownInts;
using op::KnownIntsContext;
using op::kUnknownInt;

namespace {

KnownInts ScalarInt(int64_t value) { return Ints{true, {value}}; }

/// Combines two elements; unknown if one of them is.
int64_t Combined(CombineFn combine, int64_t a, int64_t b) {
  return a == kUnknownInt || b == kUnknownInt ? kUnknownInt : combine(a, b);
}

bool Divides(int64_t b) { return b != 0 && b != -1; }

/// True if a quotient that was truncated towards zero must be decremented to round down.
bool RoundsDown(int64_t a, int64_t b) { return a % b != 0 && (a % b < 0) != (b < 0); }

bool FirstBit(const KnownIntsContext& c, std::string_view mask) {
  const op::AttrView attrs = c.attrs();
  const op::AttrValue* const value = attrs.Find(mask);
  const int64_t* const bits = value != nullptr ? value->get<int64_t>() : nullptr;
  return bits != nullptr && (*bits & 1) != 0;
}

}  // namespace

int64_t AddInts(int64_t a, int64_t b) {
  int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? kUnknownInt : sum;
}
int64_t SubtractInts(int64_t a, int64_t b) {
  int64_t difference = 0;
  return __builtin_sub_overflow(a, b, &difference) ? kUnknownInt : difference;
}
int64_t MultiplyInts(int64_t a, int64_t b) {
  int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? kUnknownInt : product;
}
int64_t LargerInt(int64_t a, int64_t b) { return std::max(a, b); }
int64_t SmallerInt(int64_t a, int64_t b) { return std::min(a, b); }
int64_t FloorQuotient(int64_t a, int64_t b) { return Divides(b) ? a / b - (RoundsDown(a, b) ? 1 : 0) : kUnknownInt; }
int64_t FloorRemainder(int64_t a, int64_t b) { return Divides(b) ? a % b + (RoundsDown(a, b) ? b : 0) : kUnknownInt; }

namespace known_ints_internal {

KnownInts Elementwise(KnownIntsContext& c, CombineFn combine) {
  const KnownInts a = c.ints(0), b = c.ints(1);
  if (!a || !b) return std::nullopt;
  const size_t na = a->elements.size(), nb = b->elements.size();
  if (na != nb && na != 1 && nb != 1) return std::nullopt;
  Ints ints{a->scalar && b->scalar, {}};
  const size_t n = na == 1 ? nb : na;
  for (size_t i = 0; i < n; ++i) {
    ints.elements.push_back(Combined(combine, a->elements[na == 1 ? 0 : i], b->elements[nb == 1 ? 0 : i]));
  }
  return ints;
}

KnownInts Reduction(KnownIntsContext& c, CombineFn combine, int64_t first) {
  const KnownInts from = c.ints(0);
  if (!from || from->scalar || c.output_shape().rank() != 0) return std::nullopt;
  int64_t total = first;
  for (const int64_t v : from->elements) total = Combined(combine, total, v);
  return ScalarInt(total);
}

}  // namespace known_ints_internal

KnownInts KnownSame(KnownIntsContext& c) { return c.ints(0); }

KnownInts KnownReshaped(KnownIntsContext& c) {
  KnownInts ints = c.ints(0);
  const int rank = c.output_shape().rank();
  if (!ints || rank < 0 || rank > 1 || (rank == 0 && ints->elements.size() != 1)) return std::nullopt;
  ints->scalar = rank == 0;
  return ints;
}

KnownInts KnownExtents(KnownIntsContext& c) {
  const PartialShape& shape = c.shape(c.output());
  if (!shape.has_rank()) return std::nullopt;
  Ints ints;
  for (const int64_t extent : shape.dims()) ints.elements.push_back(extent < 0 ? kUnknownInt : extent);
  return ints;
}

KnownInts KnownRank(KnownIntsContext& c) {
  const PartialShape& shape = c.shape(0);
  return shape.has_rank() ? ScalarInt(shape.rank()) : std::nullopt;
}

KnownInts KnownSize(KnownIntsContext& c) {
  const PartialShape& shape = c.shape(0);
  return shape.fully_defined() && shape.elements() >= 0 ? ScalarInt(shape.elements()) : std::nullopt;
}

KnownInts KnownPack(KnownIntsContext& c) {
  Ints ints;
  for (int i = 0; i < c.num_inputs(); ++i) {
    if (c.shape(i).rank() != 0 || static_cast<size_t>(i) >= kMostKnownInts) return std::nullopt;
    const KnownInts element = c.ints(i);
    ints.elements.push_back(element && element->elements.size() == 1 ? element->elements[0] : kUnknownInt);
  }
  return ints;
}

KnownInts KnownConcat(KnownIntsContext& c) {
  Ints ints;
  for (int i = 0; i + 1 < c.num_inputs(); ++i) {
    const PartialShape& shape = c.shape(i);
    if (shape.rank() != 1) return std::nullopt;
    if (const KnownInts part = c.ints(i)) {
      ints.elements.insert(ints.elements.end(), part->elements.begin(), part->elements.end());
    } else if (shape.dim(0) >= 0 && shape.dim(0) <= static_cast<int64_t>(kMostKnownInts)) {
      ints.elements.insert(ints.elements.end(), static_cast<size_t>(shape.dim(0)), kUnknownInt);
    } else {
      return std::nullopt;
    }
    if (ints.elements.size() > kMostKnownInts) return std::nullopt;
  }
  return ints;
}

KnownInts KnownStridedSlice(KnownIntsContext& c) {
  const KnownInts from = c.ints(0);
  const std::optional<int64_t> begin = c.scalar(1), end = c.scalar(2), stride = c.scalar(3);
  if (!from || from->scalar || !begin || !end || !stride || *stride == 0) return std::nullopt;
  if (FirstBit(c, "ellipsis_mask") || FirstBit(c, "new_axis_mask")) return std::nullopt;
  const auto length = static_cast<int64_t>(from->elements.size());
  const auto from_end = [&](int64_t i) { return i < 0 ? i + length : i; };
  if (FirstBit(c, "shrink_axis_mask")) {
    if (FirstBit(c, "begin_mask")) return std::nullopt;
    const int64_t at = from_end(*begin);
    return at >= 0 && at < length ? ScalarInt(from->elements[static_cast<size_t>(at)]) : std::nullopt;
  }
  const int64_t least = *stride > 0 ? 0 : -1;
  const int64_t most = *stride > 0 ? length : length - 1;
  const int64_t first =
      FirstBit(c, "begin_mask") ? (*stride > 0 ? 0 : length - 1) : std::clamp(from_end(*begin), least, most);
  const int64_t last = FirstBit(c, "end_mask") ? (*stride > 0 ? length : -1) : std::clamp(from_end(*end), least, most);
  const int64_t step = std::clamp<int64_t>(*stride, -length - 1, length + 1);
  Ints ints;
  for (int64_t i = first; step > 0 ? i < last : i > last; i += step) {
    ints.elements.push_back(from->elements[static_cast<size_t>(i)]);
  }
  return ints;
}

KnownInts KnownSlice(KnownIntsContext& c) {
  const KnownInts from = c.ints(0);
  const std::optional<int64_t> begin = c.scalar(1), size = c.scalar(2);
  if (!from || from->scalar || !begin || !size) return std::nullopt;
  const auto length = static_cast<int64_t>(from->elements.size());
  if (*begin < 0 || *begin > length || *size < -1 || *size > length - *begin) return std::nullopt;
  const auto first = from->elements.begin() + *begin;
  return Ints{false, {first, *size < 0 ? from->elements.end() : first + *size}};
}

KnownInts KnownGather(KnownIntsContext& c) {
  const KnownInts from = c.ints(0), indices = c.ints(1);
  if (!from || from->scalar || !indices) return std::nullopt;
  Ints ints{indices->scalar, {}};
  for (const int64_t i : indices->elements) {
    if (i != kUnknownInt && (i < 0 || i >= static_cast<int64_t>(from->elements.size()))) return std::nullopt;
    ints.elements.push_back(i == kUnknownInt ? kUnknownInt : from->elements[static_cast<size_t>(i)]);
  }
  return ints;
}

KnownInts KnownRange(KnownIntsContext& c) {
  const std::optional<int64_t> start = c.scalar(0), limit = c.scalar(1), delta = c.scalar(2);
  if (!start || !limit || !delta || *delta == 0) return std::nullopt;
  Ints ints;
  for (int64_t v = *start; *delta > 0 ? v < *limit : v > *limit;) {
    if (ints.elements.size() >= kMostKnownInts) return std::nullopt;
    ints.elements.push_back(v);
    if (__builtin_add_overflow(v, *delta, &v)) break;
  }
  return ints;
}

}  // namespace weir::ops
