#include "core/builtin/padding.h"

#include <algorithm>
#include <cstring>

#include "core/base/errors.h"

namespace weir::builtin {
namespace {

/// `from` at the beginning of each axis of `to`, which is not smaller.
void CopyCorner(const Tensor& from, Tensor& to) {
  const int rank = from.shape().rank();
  const size_t bytes = SizeOf(from.dtype());
  const int64_t row = rank == 0 ? 1 : from.shape().dim(rank - 1);
  std::vector<int64_t> at(static_cast<size_t>(rank), 0);
  for (int64_t from_at = 0; from_at < from.elements(); from_at += row) {
    int64_t to_at = 0;
    for (int d = 0; d < rank; ++d) to_at = to_at * to.shape().dim(d) + at[static_cast<size_t>(d)];
    if (bytes == 0) {
      const auto texts = from.as<std::string>().subspan(static_cast<size_t>(from_at), static_cast<size_t>(row));
      std::copy(texts.begin(), texts.end(), to.mutable_as<std::string>().begin() + static_cast<ptrdiff_t>(to_at));
    } else {
      std::memcpy(to.mutable_raw() + static_cast<size_t>(to_at) * bytes,
                  from.raw() + static_cast<size_t>(from_at) * bytes, static_cast<size_t>(row) * bytes);
    }
    for (int d = rank - 2; d >= 0 && ++at[static_cast<size_t>(d)] == from.shape().dim(d); --d) {
      at[static_cast<size_t>(d)] = 0;
    }
  }
}

}  // namespace

Status PadToLargest(std::vector<Tensor>& tensors) {
  if (tensors.empty()) return Status();
  const DType dtype = tensors[0].dtype();
  std::vector<int64_t> dims(static_cast<size_t>(tensors[0].shape().rank()), 0);
  bool same = true;
  for (const Tensor& tensor : tensors) {
    if (tensor.shape().rank() != static_cast<int>(dims.size())) {
      return InvalidArgument("tensors of rank {} and {} cannot be padded to one shape", dims.size(),
                             tensor.shape().rank());
    }
    same = same && tensor.shape() == tensors[0].shape();
    for (size_t d = 0; d < dims.size(); ++d) dims[d] = std::max(dims[d], tensor.shape().dim(static_cast<int>(d)));
  }
  if (same) return Status();
  if (!HasFixedSize(dtype) && dtype != DType::kString) return Unimplemented("padding of type {}", Name(dtype));
  WEIR_ASSIGN(const Shape shape, Shape::Make(dims));
  for (Tensor& tensor : tensors) {
    if (tensor.shape() == shape) continue;
    WEIR_ASSIGN(Tensor padded, Tensor::Make(dtype, shape));
    if (HasFixedSize(dtype) && padded.bytes() > 0) std::memset(padded.mutable_raw(), 0, padded.bytes());
    if (tensor.elements() > 0) CopyCorner(tensor, padded);
    tensor = std::move(padded);
  }
  return Status();
}

}  // namespace weir::builtin
