// Copies, uninitialised memory, updates of rows in a copy, sums and joins of many arrays, rolls and cross products.
#include "core/base/errors.h"
#include "core/op/grad_context.h"
#include "core/op/shape_context.h"
#include "core/ops/families.h"
#include "core/ops/shape_algebra.h"
#include "core/ops/type_lists.h"

namespace weir::ops {
namespace {

using op::Category;
using op::Grad;
using op::GradContext;
using op::OpBuilder;
using op::OpRegistry;
using op::SameAs;
using op::ShapeContext;
using op::Value;

Status RollShape(ShapeContext& c) {
  WEIR_ASSIGN(PartialShape in, c.WithRankAtLeast(0, 1));
  WEIR_ASSIGN(const PartialShape shift, ToRankAtMost(c.input(1), 1));
  WEIR_ASSIGN(const PartialShape axis, ToRankAtMost(c.input(2), 1));
  WEIR_TRY(shift.Merge(axis).status());
  c.set_output(0, std::move(in));
  return Status();
}

Status CrossShape(ShapeContext& c) {
  WEIR_TRY(c.WithRankAtLeast(0, 1).status());
  WEIR_TRY(c.WithRankAtLeast(1, 1).status());
  WEIR_ASSIGN(PartialShape both, c.input(0).Merge(c.input(1)));
  if (both.has_rank()) WEIR_TRY(ExpectDim(both.dim(both.rank() - 1), 3));
  c.set_output(0, std::move(both));
  return Status();
}

Status AccumulateShape(ShapeContext& c) {
  WEIR_ASSIGN(PartialShape shape, c.attrs().ShapeAttr("shape"));
  for (int i = 0; i < c.num_inputs(); ++i) {
    WEIR_ASSIGN(shape, shape.Merge(c.input(i)));
  }
  c.set_output(0, std::move(shape));
  return Status();
}

Status ParallelConcatShape(ShapeContext& c) {
  WEIR_ASSIGN(PartialShape whole, c.attrs().ShapeAttr("shape"));
  if (!whole.fully_defined()) return InvalidArgument("shape attr must be fully defined.");
  if (whole.rank() < 1) return InvalidArgument("Shape must be at least rank 1 but is rank 0");
  const PartialShape part = Replaced(whole, 0, 1);
  for (int i = 0; i < c.num_inputs(); ++i) {
    if (!c.input(i).has_rank()) continue;
    WEIR_ASSIGN(const PartialShape in, c.WithRankAtLeast(i, 1));
    if (in.dim(0) > 1 || in.dim(0) == 0) return InvalidArgument("Size of first dimension must be 1.");
    const Status merged = in.Merge(part).status();
    if (!merged.ok()) return merged.Append(fmt::format("\n\tFrom merging shape {} with other shapes.", i));
  }
  if (whole.dim(0) != c.num_inputs()) {
    return InvalidArgument("shape attr {} must have the number of values, {}, as its first dimension", whole.ToString(),
                           c.num_inputs());
  }
  c.set_output(0, std::move(whole));
  return Status();
}

Status EmptyShape(ShapeContext& c) {
  WEIR_TRY(c.WithRank(0, 1).status());
  for (const int64_t dim : c.ints(0).value_or(std::vector<int64_t>())) {
    if (dim < 0) return InvalidArgument("Dimension {} must be >= 0", dim);
  }
  WEIR_ASSIGN(PartialShape shape, c.shape_from(0));
  c.set_output(0, std::move(shape));
  return Status();
}

void DeclareInplace(OpRegistry& ops, std::string_view name, std::string_view doc) {
  OpBuilder declared = ops.Declare(name);
  declared.Is(Category::kArray).In("x: T").In("i: int32").In("v: T").Out("y: T").Attr(kAnyT);
  declared.Shape(SameAs(0)).NoGradient(op::kUndefinedGradient).Doc(doc);
}

void DeclareRows(OpRegistry& ops) {
  DeclareInplace(ops, "InplaceUpdate",
                 "x with row k of v as its row i[k]; indices are taken modulo the number of rows.");
  DeclareInplace(ops, "InplaceAdd", "x with row k of v added to its row i[k]; indices are taken modulo the rows.");
  DeclareInplace(ops, "InplaceSub",
                 "x with row k of v subtracted from its row i[k]; indices are taken modulo the rows.");
}

void DeclareCopies(OpRegistry& ops) {
  ops.Declare("DeepCopy")
      .Is(Category::kArray)
      .In("x: T")
      .Out("y: T")
      .Attr(kAnyT)
      .Stateful()
      .MovesElements()
      .Shape(SameAs(0))
      .NoGradient(op::kUndefinedGradient)
      .Doc("A copy of x that shares no memory with it.");
  ops.Declare("Empty")
      .Is(Category::kArray)
      .In("shape: int32")
      .Out("output: dtype")
      .Attr("dtype: type")
      .Attr("init: bool = false")
      .Stateful()
      .Shape(EmptyShape)
      .NoGradient("it does not depend on the values of its input")
      .Doc("A tensor of `shape`: zeros, on which callers rely only if `init` is true.");
  ops.Declare("ParallelConcat")
      .Is(Category::kArray)
      .In("values: N * T")
      .Out("output: T")
      .Attr("N: int >= 1")
      .Attr(kAnyT)
      .Attr("shape: shape")
      .MovesElements()
      .Shape(ParallelConcatShape)
      .NoGradient(op::kUndefinedGradient)
      .Doc("Tensors with a first extent of 1, one after the other along that axis.");
}

}  // namespace

void DeclareWholeArray(OpRegistry& ops) {
  DeclareCopies(ops);
  DeclareRows(ops);
  ops.Declare("AccumulateNV2")
      .In("inputs: N * T")
      .Out("sum: T")
      .Attr("N: int >= 1")
      .Attr(kNumberT)
      .Attr("shape: shape")
      .Commutative()
      .Aggregate()
      .Shape(AccumulateShape)
      .Grad([](GradContext& g) { return std::vector<Grad>(static_cast<size_t>(g.num_inputs()), g.DyAsIs(0)); })
      .Doc("The sum of N tensors of one shape, without broadcasting.");
  ops.Declare("Roll")
      .Is(Category::kArray)
      .In("input: T")
      .In("shift: Tshift")
      .In("axis: Taxis")
      .Out("output: T")
      .Attr(kAnyT)
      .Attr("Tshift: {int32, int64}")
      .Attr("Taxis: {int32, int64}")
      .MovesElements()
      .Shape(RollShape)
      .Grad([](GradContext& g) -> Result<std::vector<Grad>> {
        return std::vector<Grad>{g.Apply("Roll", {g.Dy(0), g.Neg(g.X(1)), g.X(2)}), Grad::None(), Grad::None()};
      })
      .Doc("The elements moved on by `shift` places along each axis; those beyond the end come in at the start.");
  ops.Declare("Cross")
      .In("a: T")
      .In("b: T")
      .Out("product: T")
      .Attr(kRealNumberT)
      .Shape(CrossShape)
      .Grad([](GradContext& g) -> Result<std::vector<Grad>> {
        return std::vector<Grad>{g.Apply("Cross", {g.X(1), g.Dy(0)}), g.Apply("Cross", {g.Dy(0), g.X(0)})};
      })
      .Doc("Vector products of the vectors with 3 elements in the last axis.");
}

}  // namespace weir::ops
