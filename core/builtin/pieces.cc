#include "core/builtin/pieces.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "core/base/errors.h"
#include "core/tensor/buffer.h"
#include "core/tensor/resource.h"
#include "core/tensor/sum.h"
#include "core/tensor/variant.h"

namespace weir::builtin {
namespace {

/// Copies elements that are objects one by one.
template <class T>
void CopyObjects(const Tensor& from, int64_t first, Tensor& to, int64_t at, int64_t count) {
  const auto source = from.as<T>();
  const auto target = to.mutable_as<T>();
  for (int64_t i = 0; i < count; ++i) target[static_cast<size_t>(at + i)] = source[static_cast<size_t>(first + i)];
}

/// Copies elements [first, first + count) of `from` to position `at` of `to`. Both must have them and be of one type.
void CopyElements(const Tensor& from, int64_t first, Tensor& to, int64_t at, int64_t count) {
  const uint64_t size = SizeOf(from.dtype());
  if (count == 0) return;
  if (size > 0) {
    std::byte* const target = to.mutable_raw();
    if (target == nullptr) return;
    std::memcpy(target + static_cast<uint64_t>(at) * size, from.raw() + static_cast<uint64_t>(first) * size,
                static_cast<uint64_t>(count) * size);
  } else if (from.dtype() == DType::kString) {
    CopyObjects<std::string>(from, first, to, at, count);
  } else if (from.dtype() == DType::kResource) {
    CopyObjects<ResourceHandle>(from, first, to, at, count);
  } else {
    CopyObjects<Variant>(from, first, to, at, count);
  }
}

}  // namespace

Shape InnerShape(const Shape& shape, int first) {
  return Shape::Of(shape.dims().subspan(static_cast<size_t>(std::min(first, shape.rank()))));
}

Result<Shape> WithCount(int64_t count, const Shape& inner) {
  std::vector<int64_t> dims = {count};
  dims.insert(dims.end(), inner.dims().begin(), inner.dims().end());
  return Shape::Make(dims);
}

Result<Tensor> Rows(const Tensor& tensor, int64_t begin, int64_t count) {
  const Shape inner = InnerShape(tensor.shape());
  WEIR_ASSIGN(Shape shape, WithCount(count, inner));
  const uint64_t offset = tensor.offset() + static_cast<uint64_t>(begin * inner.elements()) * SizeOf(tensor.dtype());
  const bool aligned = HasFixedSize(tensor.dtype()) && tensor.buffer() && tensor.buffer()->host() != nullptr &&
                       reinterpret_cast<uintptr_t>(tensor.buffer()->host() + offset) % kBufferAlignment == 0;
  if (aligned) return Tensor::Over(tensor.dtype(), std::move(shape), tensor.buffer(), offset);
  WEIR_ASSIGN(Tensor piece, Tensor::Make(tensor.dtype(), std::move(shape)));
  CopyElements(tensor, begin * inner.elements(), piece, 0, piece.elements());
  return piece;
}

Result<Tensor> Row(const Tensor& tensor, int64_t i) {
  WEIR_ASSIGN(const Tensor row, Rows(tensor, i, 1));
  return row.Reshaped(InnerShape(tensor.shape()));
}

Result<Joiner> Joiner::Make(DType dtype, const Shape& whole) {
  if (dtype != DType::kResource && dtype != DType::kVariant) {
    WEIR_ASSIGN(Tensor zeros, Zeros(dtype, whole));
    return Joiner(std::move(zeros));
  }
  WEIR_ASSIGN(Tensor empty, Tensor::Make(dtype, whole));
  return Joiner(std::move(empty));
}

Status Joiner::Put(int64_t at, const Tensor& piece) {
  if (piece.dtype() != whole_.dtype() || at < 0 || piece.elements() > whole_.elements() - at) {
    return Internal("a piece of {} {} does not fit into {} {} at element {}", Name(piece.dtype()),
                    piece.shape().ToString(), Name(whole_.dtype()), whole_.shape().ToString(), at);
  }
  CopyElements(piece, 0, whole_, at, piece.elements());
  return Status();
}

Result<Tensor> Stacked(DType dtype, const Shape& inner, std::span<const Tensor> rows) {
  WEIR_ASSIGN(const Shape shape, WithCount(static_cast<int64_t>(rows.size()), inner));
  WEIR_ASSIGN(Joiner joiner, Joiner::Make(dtype, shape));
  for (size_t i = 0; i < rows.size(); ++i) {
    WEIR_TRY(joiner.Put(static_cast<int64_t>(i) * inner.elements(), rows[i]));
  }
  return joiner.Take();
}

}  // namespace weir::builtin
