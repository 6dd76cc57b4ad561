// Stateful random ops with TensorFlow's Philox generator: equal seeds give equal numbers.
#include "core/op/shape_context.h"
#include "core/ops/families.h"

namespace weir::ops {
namespace {

using op::Category;
using op::OpBuilder;
using op::OpRegistry;
using op::ShapeContext;

Status SampleShape(ShapeContext& c) {
  WEIR_ASSIGN(PartialShape shape, c.shape_from(0));
  c.set_output(0, std::move(shape));
  return Status();
}

/// `shape` is an integer vector. If both seeds are 0 an arbitrary seed is used. Each node of a session has a separate
/// generator, which continues from run to run.
OpBuilder Sample(OpRegistry& ops, std::string_view name) {
  return ops.Declare(name)
      .Is(Category::kRandom)
      .In("shape: T")
      .Out("output: dtype")
      .Attr("seed: int = 0")
      .Attr("seed2: int = 0")
      .Attr("dtype: {half, bfloat16, float, double}")
      .Attr("T: {int32, int64}")
      .Stateful()
      .Shape(SampleShape)
      .NoGradient("the only input is an integer shape, which carries no gradient");
}

}  // namespace

void DeclareRandom(OpRegistry& ops) {
  Sample(ops, "RandomUniform").Doc("Independent numbers of the given shape, uniform in [0, 1).");
  Sample(ops, "RandomStandardNormal")
      .Doc("Independent numbers of the given shape, normal with mean 0 and deviation 1.");
  Sample(ops, "TruncatedNormal")
      .Doc("Independent numbers of the given shape, normal with mean 0 and deviation 1 but drawn again when beyond 2.");
}

}  // namespace weir::ops
