#include "core/client/ops/array_ops.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>
#include <utility>

#include "core/base/errors.h"
#include "core/client/graph/scopes.h"
#include "core/client/ops/array_extra_ops.h"
#include "core/client/ops/build_op.h"
#include "core/tensor/number.h"

namespace weir {
namespace {

/// int32 or int64 values as a tensor of `dtype`, or an error for the graph.
Output ConstInts(Graph& graph, const std::vector<int64_t>& values, bool scalar, DType dtype, std::string_view name,
                 Where where) {
  const Tensor wide = scalar ? Tensor::Scalar<int64_t>(values[0]) : Tensor::Vector<int64_t>(values);
  Literal literal(wide);
  literal.flexible = true;
  return Operand(std::move(literal), where).In(graph, dtype, name);
}

Output Filled(const Shape& shape, DType dtype, double value, std::string_view name, const Where& where) {
  Graph& graph = Graph::Default();
  Result<Tensor> filled = Tensor::Make(dtype, shape);
  const Result<Tensor> one = ScalarFrom(dtype, value);
  if (!filled.ok() || !one.ok()) {
    (void)graph.Fail((filled.ok() ? one.status() : filled.status()).Append(" (" + Format(where) + ")"));
    return Output::Absent(graph);
  }
  const size_t size = SizeOf(dtype);
  for (int64_t i = 0; i < filled->elements(); ++i) {
    std::memcpy(filled->mutable_raw() + static_cast<size_t>(i) * size, one->raw(), size);
  }
  return Operand(Literal(*filled), where).In(graph, dtype, name);
}

/// Values of one type: the first that is no literal decides.
std::vector<Output> Together(Graph& graph, const std::vector<Operand>& values, std::string_view name) {
  DType dtype = DType::kInvalid;
  for (const Operand& value : values) {
    if (!value.is_literal() && dtype == DType::kInvalid) dtype = BaseType(value.dtype());
  }
  std::vector<Output> all;
  for (size_t i = 0; i < values.size(); ++i) {
    all.push_back(values[i].In(graph, values[i].is_literal() ? dtype : DType::kInvalid,
                               std::string(name) + (i == 0 ? "" : "_" + std::to_string(i))));
  }
  return all;
}

}  // namespace

Output ShapeOf(const Operand& input, DType out_type, std::string_view name, Where where) {
  const PartialShape shape = input.shape();
  if (!shape.fully_defined()) return BuildOp("Shape", {input}, {{"out_type", out_type}}, name, where).output(0);
  return ConstInts(GraphOf(input), {shape.dims().begin(), shape.dims().end()}, false, out_type, name, where);
}

Output RankOf(const Operand& input, std::string_view name, Where where) {
  const PartialShape shape = input.shape();
  if (!shape.has_rank()) return BuildOp("Rank", {input}, {}, name, where).output(0);
  return ConstInts(GraphOf(input), {shape.rank()}, true, DType::kInt32, name, where);
}

Output SizeOf(const Operand& input, DType out_type, std::string_view name, Where where) {
  const PartialShape shape = input.shape();
  if (!shape.fully_defined()) return BuildOp("Size", {input}, {{"out_type", out_type}}, name, where).output(0);
  return ConstInts(GraphOf(input), {shape.elements()}, true, out_type, name, where);
}

Output Zeros(const Shape& shape, DType dtype, std::string_view name, Where where) {
  return Filled(shape, dtype, 0, name, where);
}

Output Ones(const Shape& shape, DType dtype, std::string_view name, Where where) {
  return Filled(shape, dtype, 1, name, where);
}

Output Fill(const Operand& dims, const Operand& value, std::string_view name, Where where) {
  return BuildOp("Fill", {dims, value}, {}, name, where).output(0);
}

Output Range(const Operand& start, const Operand& limit, const Operand& delta, std::string_view name, Where where) {
  return BuildOp("Range", {start, limit, delta}, {}, name, where).output(0);
}

Output Reshape(const Operand& tensor, const Operand& shape, std::string_view name, Where where) {
  return BuildOp("Reshape", {tensor, shape}, {}, name, where).output(0);
}

Output ExpandDims(const Operand& input, const Operand& axis, std::string_view name, Where where) {
  return BuildOp("ExpandDims", {input, axis}, {}, name, where).output(0);
}

Output Squeeze(const Operand& input, const std::vector<int64_t>& axes, std::string_view name, Where where) {
  op::AttrList attrs;
  if (!axes.empty()) attrs.emplace_back("squeeze_dims", axes);
  return BuildOp("Squeeze", {input}, std::move(attrs), name, where).output(0);
}

Output Transpose(const Operand& x, const Permutation& perm, std::string_view name, Where where) {
  if (name.empty()) name = perm.name();
  if (perm.axes()) return BuildOp("Transpose", {x, *perm.axes()}, {}, name, where).output(0);
  const PartialShape shape = x.shape();
  if (shape.has_rank()) {
    std::vector<int32_t> axes(static_cast<size_t>(shape.rank()));
    std::iota(axes.rbegin(), axes.rend(), 0);
    return Transpose(x, Operand(Literal(Tensor::Vector<int32_t>(axes)), where), name, where);
  }
  Graph& graph = GraphOf(x);
  const NameScope scope(name, graph);
  const Output rank = RankOf(x, "Rank", where);
  const Output last = BuildOp("Sub", {rank, Operand(1, where)}, {}, "sub", where).output(0);
  const Output up = Range(Operand(0, where), rank, Operand(1, where), "Range", where);
  const Output down = BuildOp("Sub", {last, up}, {}, "sub", where).output(0);
  return BuildOp("Transpose", {x, down}, {}, scope.path(), where).output(0);
}

Output BroadcastTo(const Operand& input, const Operand& shape, std::string_view name, Where where) {
  return BuildOp("BroadcastTo", {input, shape}, {}, name, where).output(0);
}

Output Tile(const Operand& input, const Operand& multiples, std::string_view name, Where where) {
  return BuildOp("Tile", {input, multiples}, {}, name, where).output(0);
}

Output Pad(const Operand& tensor, const Operand& paddings, std::string_view name, Where where) {
  return BuildOp("Pad", {tensor, paddings}, {}, name, where).output(0);
}

Output Reverse(const Operand& tensor, const Operand& axis, std::string_view name, Where where) {
  return BuildOp("ReverseV2", {tensor, axis}, {}, name, where).output(0);
}

Output Bitcast(const Operand& input, DType type, std::string_view name, Where where) {
  return BuildOp("Bitcast", {input}, {{"type", type}}, name, where).output(0);
}

Output Concat(const std::vector<Operand>& values, int axis, std::string_view name, Where where) {
  if (values.size() == 1) return BuildOp("Identity", values, {}, name, where).output(0);
  Graph& graph = GraphOf(values);
  const NameScope scope(name, graph);
  OperationSpec spec;
  spec.op = "ConcatV2";
  spec.inputs = Together(graph, values, "values");
  spec.inputs.push_back(Operand(axis, where).In(graph, DType::kInt32, "axis"));
  const std::string path = scope.path();
  spec.name = path;
  spec.where = where;
  return graph.Add(spec).output(0);
}

Output Stack(const std::vector<Operand>& values, int axis, std::string_view name, Where where) {
  Graph& graph = GraphOf(values);
  const NameScope scope(name, graph);
  OperationSpec spec;
  spec.op = "Pack";
  spec.inputs = Together(graph, values, "values");
  spec.attrs = {{"axis", axis}};
  const std::string path = scope.path();
  spec.name = path;
  spec.where = where;
  return graph.Add(spec).output(0);
}

List<Output> Split(const Operand& value, int num, int axis, std::string_view name, Where where) {
  return OutputsOr(BuildOp("Split", {Operand(axis, where), value}, {{"num_split", num}}, name, where), num);
}

List<Output> Split(int axis, int num, const Output& value, std::string_view name, Where where) {
  return Split(Operand(value, where), num, axis, name, where);
}

List<Output> SplitV(const Operand& value, const std::vector<int>& sizes, int axis, std::string_view name, Where where) {
  const auto count = static_cast<int64_t>(sizes.size());
  const Operation split =
      BuildOp("SplitV", {value, Operand(sizes, where), Operand(axis, where)}, {{"num_split", count}}, name, where);
  return OutputsOr(split, count);
}

List<Output> Unstack(const Operand& value, int axis, int num, std::string_view name, Where where) {
  int64_t count = num;
  if (num < 0) {
    const PartialShape shape = value.shape();
    const int64_t at = axis < 0 ? int64_t{axis} + shape.rank() : axis;
    const bool there = shape.has_rank() && at >= 0 && at < shape.rank();
    count = there ? shape.dim(static_cast<int>(at)) : -1;
    if (count < 0) {
      (void)GraphOf(value).Fail(
          InvalidArgument("Cannot infer num from shape {} ({})", shape.ToTupleString(), Format(where)));
      return AbsentValues(GraphOf(value), 0);
    }
  }
  const Operation apart = BuildOp("Unpack", {value.ReadNow()}, {{"num", count}, {"axis", axis}}, name, where);
  return OutputsOr(apart, count);
}

Output Slice(const Operand& input, const Operand& begin, const Operand& size, std::string_view name, Where where) {
  return BuildOp("Slice", {input, begin, size}, {}, name, where).output(0);
}

Output StridedSlice(const Operand& input, const Operand& begin, const Operand& end, const Operand& strides,
                    const StridedSliceOptions& options, Where where) {
  return BuildOp("StridedSlice", {input, begin, end, strides},
                 {{"begin_mask", options.begin_mask},
                  {"end_mask", options.end_mask},
                  {"ellipsis_mask", options.ellipsis_mask},
                  {"new_axis_mask", options.new_axis_mask},
                  {"shrink_axis_mask", options.shrink_axis_mask}},
                 options.name, where)
      .output(0);
}

Output Gather(const Operand& params, const Operand& indices, int axis, std::string_view name, Where where) {
  return BuildOp("GatherV2", {params, indices, Operand(axis, where)}, {}, name, where).output(0);
}

Output OneHot(const Operand& indices, const Operand& depth, const OneHotOptions& options, Where where) {
  return BuildOp("OneHot", {indices, depth, options.on_value, options.off_value}, {{"axis", options.axis}},
                 options.name, where)
      .output(0);
}

Output WhereTrue(const Operand& condition, std::string_view name, Where where) {
  return BuildOp("Where", {condition}, {}, name, where).output(0);
}

Output Select(const Operand& condition, const Operand& x, const Operand& y, std::string_view name, Where where) {
  return BuildOp("Select", {condition, x, y}, {}, name, where).output(0);
}

Output SelectV2(const Operand& condition, const Operand& x, const Operand& y, std::string_view name, Where where) {
  return BuildOp("SelectV2", {condition, x, y}, {}, name, where).output(0);
}

UniqueValues Unique(const Operand& x, std::string_view name, Where where) {
  const Operation unique = BuildOp("Unique", {x}, {}, name, where);
  return unique.exists() ? UniqueValues{unique.output(0), unique.output(1)} : UniqueValues();
}

}  // namespace weir
