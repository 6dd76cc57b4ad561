// Random operands and attribute values: mostly matching ones, else limits, invalid values and special numbers.
#ifndef WEIR_TESTS_FUZZ_OP_VALUES_H_
#define WEIR_TESTS_FUZZ_OP_VALUES_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/op/attr_value.h"
#include "core/op/op_def.h"
#include "core/tensor/dtype.h"
#include "core/tensor/tensor.h"
#include "tests/fuzz/dice.h"

namespace weir::fuzz {

/// Values of one case. `wild` is the percentage of choices made without regard to what fits.
class Values {
 public:
  Values(Dice& dice, int wild);

  bool Wild() { return dice_.Percent(wild_); }

  /// The shape from which the operands' shapes are derived.
  const std::vector<int64_t>& base() const { return base_; }
  /// `base`, a shape that broadcasts to it, one of its rows, a matrix that it can be multiplied by …
  std::vector<int64_t> Related();
  /// A number at the limit of some type or check.
  int64_t Absurd();
  /// Extents for declared shapes: any sign, any product.
  std::vector<int64_t> AbsurdShape();
  /// A random tensor with at most a few thousand elements.
  Tensor Random(DType dtype, const std::vector<int64_t>& dims);
  /// The tensor, or, sometimes, one of its type with other values or another shape.
  Tensor Near(const Tensor& value);
  /// An integer operand that steers an op, chosen by the argument's name: a permutation, extents, an axis, indices.
  Tensor Index(DType dtype, std::string_view argument);
  std::string Text();
  /// A value for an attribute that is neither a type nor a number of operands.
  op::AttrValue Attr(const op::AttrDef& attr);
  DType AnyType();

 private:
  std::vector<int64_t> SmallShape();
  std::vector<int64_t> IndexValues(std::string_view argument, std::vector<int64_t>& dims);
  op::AttrValue ListAttr(const op::AttrDef& attr);
  int64_t IntAttr(const op::AttrDef& attr);
  PartialShape ShapeAttr();

  Dice& dice_;
  int wild_;
  std::vector<int64_t> base_;
};

/// Elements of the shape, or -1 if it is invalid or too large for a case.
int64_t ElementsOf(const std::vector<int64_t>& dims);

}  // namespace weir::fuzz

#endif  // WEIR_TESTS_FUZZ_OP_VALUES_H_
