// Joining and splitting of arrays along an axis: Concat, Split, Pack, Unpack.
#include "core/base/errors.h"
#include "core/op/grad_context.h"
#include "core/op/shape_context.h"
#include "core/ops/families.h"
#include "core/ops/grad_shapes.h"
#include "core/ops/known_ints.h"
#include "core/ops/shape_algebra.h"
#include "core/ops/type_lists.h"

namespace weir::ops {
namespace {

using op::Category;
using op::Grad;
using op::GradContext;
using op::OpBuilder;
using op::OpRegistry;
using op::ShapeContext;
using op::Value;

/// The shape without a known axis: only the common rank of all operands.
Result<PartialShape> ConcatRank(const ShapeContext& c, int first, int count) {
  PartialShape out;
  for (int i = first; i < first + count; ++i) {
    if (out.has_rank()) {
      WEIR_TRY(c.WithRank(i, out.rank()).status());
    } else {
      out = MaybeRank(c.input(i).rank());
    }
    if (out.rank() == 0) return InvalidArgument("Can't concatenate scalars (use tf.stack instead)");
  }
  return out;
}

/// The shape along a known axis (negative: from the end) of operands of `rank`.
Result<PartialShape> ConcatAlong(const ShapeContext& c, int first, int count, int64_t given, int rank) {
  const int64_t least = given < 0 ? -given : given + 1;
  if (least > rank) return InvalidArgument("Shape must be at least rank {} but is rank {}", least, rank);
  const int axis = static_cast<int>(given < 0 ? given + rank : given);
  PartialShape before, after;
  int64_t length = 0;
  for (int i = first + count - 1; i >= first; --i) {
    WEIR_ASSIGN(const PartialShape in, c.WithRank(i, rank));
    WEIR_ASSIGN(before, Span(in, 0, axis).Merge(before));
    WEIR_ASSIGN(length, AddDims(length, in.dim(axis)));
    WEIR_ASSIGN(after, Span(in, axis + 1).Merge(after));
  }
  WEIR_ASSIGN(const PartialShape head, Join(before, VectorOf(length)));
  return Join(head, after);
}

/// The axis is a scalar or, as in TensorFlow's kernels, a vector with one element.
Status CheckConcatAxis(const ShapeContext& c, int axis_input) {
  const PartialShape& axis = c.input(axis_input);
  return axis.rank() == 1 && axis.dim(0) == 1 ? Status() : c.WithRank(axis_input, 0).status();
}

/// Concatenates the shapes of operands `first` to `first + count - 1` along the axis in input `axis_input`.
Status ConcatShape(ShapeContext& c, int axis_input, int first, int count) {
  WEIR_TRY(CheckConcatAxis(c, axis_input));
  const std::optional<int64_t> axis = c.scalar_int(axis_input);
  if (axis && (*axis < -kMaxRank || *axis >= kMaxRank)) return InvalidArgument("axis {} is beyond any rank", *axis);
  WEIR_ASSIGN(PartialShape out, ConcatRank(c, first, count));
  if (axis && out.has_rank()) {
    WEIR_ASSIGN(out, ConcatAlong(c, first, count, *axis, out.rank()));
  }
  c.set_output(0, std::move(out));
  return Status();
}

Status ConcatOffsetShape(ShapeContext& c) {
  WEIR_TRY(c.WithRank(0, 0).status());
  for (int i = 1; i < c.num_inputs(); ++i) {
    WEIR_ASSIGN(PartialShape shape, c.WithRank(i, 1));
    c.set_output(i - 1, std::move(shape));
  }
  return Status();
}

/// Sets output shapes of which only the rank is known.
Status PiecesOfRank(ShapeContext& c, const PartialShape& whole) {
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, MaybeRank(whole.rank()));
  return Status();
}

Status SplitShape(ShapeContext& c) {
  const PartialShape& whole = c.input(1);
  WEIR_ASSIGN(const std::optional<int> axis, AxisFromScalar(c, 0, whole.rank()));
  if (!axis || !whole.has_rank()) return PiecesOfRank(c, whole);
  const Result<int64_t> piece = DivideDims(whole.dim(*axis), c.num_outputs());
  if (!piece.ok()) {
    return piece.status().Append("\n\tNumber of ways to split should evenly divide the split dimension");
  }
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, Replaced(whole, *axis, *piece));
  return Status();
}

/// The sizes of the pieces. Replaces a -1 by the remainder of `whole`, or -1 if that is unknown.
Result<std::vector<int64_t>> PieceSizes(std::vector<int64_t> sizes, int64_t whole, int pieces) {
  if (static_cast<int64_t>(sizes.size()) != pieces) {
    return InvalidArgument("Length of size_splits should be equal to num_outputs");
  }
  int64_t total = 0;
  std::optional<size_t> open;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] < -1) return InvalidArgument("Split size at index {} must be >= 0. Got: {}", i, sizes[i]);
    if (sizes[i] == -1) {
      if (open) return InvalidArgument("size_splits can only have one -1");
      open = i;
      continue;
    }
    WEIR_ASSIGN(total, AddDims(total, sizes[i]));
  }
  if (whole < 0) return sizes;
  if (open ? total > whole : total != whole) {
    std::string listed;
    for (const int64_t size : sizes) listed += (listed.empty() ? "" : ",") + std::to_string(size);
    return InvalidArgument("can't split axis of size {} into pieces of size [{}]", whole, listed);
  }
  if (open) sizes[*open] = whole - total;
  return sizes;
}

Status SplitVShape(ShapeContext& c) {
  const PartialShape& whole = c.input(0);
  if (whole.rank() == 0) return InvalidArgument("Can't split scalars");
  WEIR_TRY(c.WithRank(1, 1).status());
  WEIR_ASSIGN(const std::optional<int> axis, AxisFromScalar(c, 2, whole.rank()));
  if (!axis || !whole.has_rank()) return PiecesOfRank(c, whole);
  std::vector<int64_t> sizes(static_cast<size_t>(c.num_outputs()), -1);
  if (std::optional<std::vector<int64_t>> given = c.ints(1)) {
    WEIR_ASSIGN(sizes, PieceSizes(std::move(*given), whole.dim(*axis), c.num_outputs()));
  }
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, Replaced(whole, *axis, sizes[static_cast<size_t>(i)]));
  return Status();
}

/// The attribute `axis` of a packed array of `rank`, converted to a non-negative axis.
Result<int> PackAxis(const ShapeContext& c, int rank) {
  WEIR_ASSIGN(const int64_t axis, c.attrs().Int("axis"));
  if (axis < -rank || axis >= rank) return InvalidArgument("Invalid axis: {}; must be in [{},{})", axis, -rank, rank);
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

Status PackShape(ShapeContext& c) {
  PartialShape each = c.input(c.num_inputs() - 1);
  for (int i = c.num_inputs() - 2; i >= 0; --i) {
    Result<PartialShape> merged = c.input(i).Merge(each);
    if (!merged.ok()) return merged.status().Append(fmt::format("\n\tFrom merging shape {} with other shapes.", i));
    each = std::move(*merged);
  }
  if (!each.has_rank()) return Status();
  WEIR_ASSIGN(const int axis, PackAxis(c, each.rank() + 1));
  WEIR_ASSIGN(const PartialShape head, Join(Span(each, 0, axis), VectorOf(c.num_inputs())));
  WEIR_ASSIGN(PartialShape out, Join(head, Span(each, axis)));
  c.set_output(0, std::move(out));
  return Status();
}

Status UnpackShape(ShapeContext& c) {
  const PartialShape& whole = c.input(0);
  if (!whole.has_rank()) return Status();
  WEIR_ASSIGN(const int axis, PackAxis(c, whole.rank()));
  WEIR_TRY(ExpectDim(whole.dim(axis), c.num_outputs()));
  WEIR_ASSIGN(const PartialShape each, Join(Span(whole, 0, axis), Span(whole, axis + 1)));
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, each);
  return Status();
}

/// The slice of dy for each operand, using ConcatOffset. The operands are inputs `first` to `first + count - 1`.
Result<std::vector<Grad>> ConcatGradient(GradContext& g, int axis_input, int first) {
  std::vector<Grad> grads(static_cast<size_t>(g.num_inputs()));
  const int64_t count = g.num_inputs() - 1;
  if (count == 1) {
    grads[static_cast<size_t>(first)] = g.Dy(0);
    return grads;
  }
  std::vector<Value> operands;
  for (int i = first; i < first + count; ++i) operands.push_back(g.X(i));
  const std::vector<Value> sizes = g.ApplyAll("ShapeN", operands, {{"N", count}});
  if (static_cast<int64_t>(sizes.size()) != count) return g.status();
  std::vector<Value> queries = {g.Apply("FloorMod", {AsInt32(g, g.X(axis_input)), g.Apply("Rank", {operands[0]})})};
  queries.insert(queries.end(), sizes.begin(), sizes.end());
  const std::vector<Value> offsets = g.ApplyAll("ConcatOffset", queries, {{"N", count}});
  if (static_cast<int64_t>(offsets.size()) != count) return g.status();
  for (size_t i = 0; i < operands.size(); ++i) {
    grads[static_cast<size_t>(first) + i] = g.Apply("Slice", {g.Dy(0), offsets[i], sizes[i]});
  }
  return grads;
}

/// Concatenates the pieces' gradients along the axis in input `axis_input`; a single piece is the whole.
Value JoinedPieces(GradContext& g, int axis_input) {
  if (g.num_outputs() == 1) return g.Dy(0);
  std::vector<Value> operands;
  for (int i = 0; i < g.num_outputs(); ++i) operands.push_back(g.Dy(i));
  operands.push_back(g.X(axis_input));
  return g.ApplyList("ConcatV2", operands, {{"N", static_cast<int64_t>(g.num_outputs())}});
}

Result<std::vector<Grad>> PackGradient(GradContext& g) {
  WEIR_ASSIGN(const int64_t axis, g.attrs().Int("axis"));
  const std::vector<Value> pieces =
      g.ApplyAll("Unpack", {g.Dy(0)}, {{"num", static_cast<int64_t>(g.num_inputs())}, {"axis", axis}});
  return std::vector<Grad>(pieces.begin(), pieces.end());
}

Result<std::vector<Grad>> UnpackGradient(GradContext& g) {
  WEIR_ASSIGN(const int64_t axis, g.attrs().Int("axis"));
  std::vector<Value> pieces;
  for (int i = 0; i < g.num_outputs(); ++i) pieces.push_back(g.Dy(i));
  if (pieces.empty()) return std::vector<Grad>(1);
  return op::One(g.ApplyList("Pack", pieces, {{"N", static_cast<int64_t>(pieces.size())}, {"axis", axis}}));
}

void DeclareConcats(OpRegistry& ops) {
  ops.Declare("ConcatV2")
      .Is(Category::kArray)
      .In("values: N*T")
      .In("axis: Tidx")
      .Out("output: T")
      .Attr("N: int >= 2")
      .Attr(kAnyT)
      .Attr(kIndexT)
      .MovesElements()
      .KnownInts(KnownConcat)
      .Shape([](ShapeContext& c) { return ConcatShape(c, c.num_inputs() - 1, 0, c.num_inputs() - 1); })
      .Grad([](GradContext& g) { return ConcatGradient(g, g.num_inputs() - 1, 0); })
      .Doc("The operands one after the other along `axis`; their other extents must be equal.");
  ops.Declare("Concat")
      .Is(Category::kArray)
      .In("concat_dim: int32")
      .In("values: N*T")
      .Out("output: T")
      .Attr("N: int >= 2")
      .Attr(kAnyT)
      .MovesElements()
      .Shape([](ShapeContext& c) { return ConcatShape(c, 0, 1, c.num_inputs() - 1); })
      .Grad([](GradContext& g) { return ConcatGradient(g, 0, 1); })
      .Doc("ConcatV2 with the axis in front.");
  ops.Declare("ConcatOffset")
      .In("concat_dim: int32")
      .In("shape: N*shape_type")
      .Out("offset: N*shape_type")
      .Attr("N: int >= 2")
      .Attr("shape_type: {int32, int64} = DT_INT32")
      .Is(Category::kArray)
      .Shape(ConcatOffsetShape)
      .NoGradient("its answer is discrete")
      .Doc("Where each operand of those shapes begins in their concatenation.");
}

void DeclareSplits(OpRegistry& ops) {
  ops.Declare("Split")
      .Is(Category::kArray)
      .In("split_dim: int32")
      .In("value: T")
      .Out("output: num_split*T")
      .Attr("num_split: int >= 1")
      .Attr(kAnyT)
      .MovesElements()
      .Shape(SplitShape)
      .Grad([](GradContext& g) -> Result<std::vector<Grad>> {
        return std::vector<Grad>{Grad::None(), JoinedPieces(g, 0)};
      })
      .Doc("`value` cut along an axis into num_split equal pieces.");
  ops.Declare("SplitV")
      .Is(Category::kArray)
      .In("value: T")
      .In("size_splits: Tlen")
      .In("split_dim: int32")
      .Out("output: num_split*T")
      .Attr("num_split: int >= 1")
      .Attr(kAnyT)
      .Attr("Tlen: {int8, int32, int64} = DT_INT64")
      .MovesElements()
      .Shape(SplitVShape)
      .Grad([](GradContext& g) -> Result<std::vector<Grad>> {
        return std::vector<Grad>{JoinedPieces(g, 2), Grad::None(), Grad::None()};
      })
      .Doc("`value` cut along an axis into pieces of the given sizes, one of which may be -1: what the others leave.");
}

void DeclarePacks(OpRegistry& ops) {
  ops.Declare("Pack")
      .Is(Category::kArray)
      .In("values: N*T")
      .Out("output: T")
      .Attr("N: int >= 1")
      .Attr(kAnyT)
      .Attr("axis: int = 0")
      .MovesElements()
      .KnownInts(KnownPack)
      .Shape(PackShape)
      .Grad(PackGradient)
      .Doc("N arrays of one shape stacked along a new axis.");
  ops.Declare("Unpack")
      .Is(Category::kArray)
      .In("value: T")
      .Out("output: num*T")
      .Attr("num: int >= 0")
      .Attr(kAnyT)
      .Attr("axis: int = 0")
      .MovesElements()
      .Shape(UnpackShape)
      .Grad(UnpackGradient)
      .Doc("The slices of `value` along an axis, without that axis.");
}

}  // namespace

void DeclareConcat(OpRegistry& ops) {
  DeclareConcats(ops);
  DeclareSplits(ops);
  DeclarePacks(ops);
}

}  // namespace weir::ops
