// Splits and joins tensors along their first axis.
#ifndef WEIR_CORE_BUILTIN_PIECES_H_
#define WEIR_CORE_BUILTIN_PIECES_H_

#include <span>

#include "core/base/status.h"
#include "core/tensor/tensor.h"

namespace weir::builtin {

/// The extents from axis `first` on.
Shape InnerShape(const Shape& shape, int first = 1);
/// [count, inner...]. InvalidArgument if the element count overflows.
Result<Shape> WithCount(int64_t count, const Shape& inner);

/// Rows [begin, begin + count) of a host tensor along its first axis; they must exist, and the rank must be at least 1.
/// Shares memory if the rows start at an address that is aligned for kernels.
Result<Tensor> Rows(const Tensor& tensor, int64_t begin, int64_t count);
/// Row `i` without the first axis.
Result<Tensor> Row(const Tensor& tensor, int64_t i);

/// Fills a tensor in row-major order with the elements of others.
class Joiner {
 public:
  /// Elements not covered by a piece are zeros.
  static Result<Joiner> Make(DType dtype, const Shape& whole);
  /// Copies the elements of `piece` to element index `at`. Internal if they do not fit or have another type.
  Status Put(int64_t at, const Tensor& piece);
  Tensor Take() { return std::move(whole_); }

 private:
  explicit Joiner(Tensor whole) : whole_(std::move(whole)) {}
  Tensor whole_;
};

/// Stacks tensors of equal shape along a new first axis; `inner` is the shape of each.
Result<Tensor> Stacked(DType dtype, const Shape& inner, std::span<const Tensor> rows);

}  // namespace weir::builtin

#endif  // WEIR_CORE_BUILTIN_PIECES_H_
