// Parts, patterns and hashes of strings.
#include "core/op/grad_context.h"
#include "core/op/shape_context.h"
#include "core/ops/families.h"
#include "core/ops/shape_algebra.h"

namespace weir::ops {
namespace {

using op::BroadcastShapes;
using op::Category;
using op::OpBuilder;
using op::OpRegistry;
using op::SameAs;
using op::ShapeContext;

Status SubstrShape(ShapeContext& c) {
  const PartialShape &pos = c.input(1), &length = c.input(2);
  if (pos.has_rank() && length.has_rank()) {
    WEIR_TRY(ToRank(length, pos.rank()).status());
    if (!pos.CompatibleWith(length)) {
      return InvalidArgument("pos and len shapes must match: {} vs. {}", pos.ToString(), length.ToString());
    }
  }
  WEIR_ASSIGN(PartialShape shape, BroadcastShapes(c.input(0), pos));
  c.set_output(0, std::move(shape));
  return Status();
}

/// A vector of strings, cut at the characters or the string of input 1.
Status SplitShape(ShapeContext& c) {
  WEIR_TRY(c.WithRank(0, 1).status());
  WEIR_TRY(c.WithRank(1, 0).status());
  c.set_output(0, PartialShape::Of({-1, 2}));
  c.set_output(1, VectorOf(-1));
  c.set_output(2, VectorOf(2));
  return Status();
}

Status ReduceJoinShape(ShapeContext& c) {
  const PartialShape& input = c.input(0);
  WEIR_ASSIGN(const bool keep, c.attrs().Bool("keep_dims"));
  WEIR_TRY(ToRankAtMost(c.input(1), 1).status());
  const std::optional<std::vector<int64_t>> axes = c.ints(1);
  if (!axes || !input.has_rank()) {
    if (keep && input.has_rank()) c.set_output(0, PartialShape::OfRank(input.rank()));
    return Status();
  }
  std::vector<bool> joined(static_cast<size_t>(input.rank()));
  for (const int64_t axis : *axes) {
    if (axis < -input.rank() || axis >= input.rank()) {
      return InvalidArgument("Invalid reduction dimension {} for input with {} dimensions.", axis, input.rank());
    }
    joined[static_cast<size_t>(axis < 0 ? axis + input.rank() : axis)] = true;
  }
  std::vector<int64_t> dims;
  for (int i = 0; i < input.rank(); ++i) {
    if (!joined[static_cast<size_t>(i)]) dims.push_back(input.dim(i));
    if (joined[static_cast<size_t>(i)] && keep) dims.push_back(1);
  }
  WEIR_ASSIGN(PartialShape shape, PartialShape::Make(dims));
  c.set_output(0, std::move(shape));
  return Status();
}

/// [num_segments], followed by the axes of the input that the segment numbers do not cover.
Status SegmentJoinShape(ShapeContext& c) {
  const PartialShape &input = c.input(0), &ids = c.input(1);
  WEIR_ASSIGN(const int64_t segments, DimFromScalar(c, 2));
  if (!input.has_rank() || !ids.has_rank()) return Status();
  WEIR_TRY(MergePrefix(input, ids).status());
  WEIR_ASSIGN(PartialShape shape, Join(VectorOf(segments), Span(input, ids.rank())));
  c.set_output(0, std::move(shape));
  return Status();
}

Status RegexReplaceShape(ShapeContext& c) {
  WEIR_TRY(c.WithRank(1, 0).status());
  WEIR_TRY(c.WithRank(2, 0).status());
  c.set_output(0, c.input(0));
  return Status();
}

Status RegexMatchShape(ShapeContext& c) {
  WEIR_TRY(c.WithRank(1, 0).status());
  c.set_output(0, c.input(0));
  return Status();
}

OpBuilder Text(OpRegistry& ops, std::string_view name) { return ops.Declare(name).Is(Category::kArray); }

void DeclareStringParts(OpRegistry& ops) {
  Text(ops, "StringLength")
      .In("input: string")
      .Out("output: int32")
      .Attr("unit: {'BYTE', 'UTF8_CHAR'} = 'BYTE'")
      .Shape(SameAs(0))
      .NoGradient("text has none")
      .Doc("The length of each string in bytes or in UTF-8 characters.");
  Text(ops, "Substr")
      .In("input: string")
      .In("pos: T")
      .In("len: T")
      .Out("output: string")
      .Attr("unit: {'BYTE', 'UTF8_CHAR'} = 'BYTE'")
      .Attr("T: {int32, int64}")
      .Shape(SubstrShape)
      .NoGradient("text has none")
      .Doc(
          "The part of each string that begins at `pos` (negative: counted from the end) and has `len` bytes or "
          "characters, or ends with the string; pos and len broadcast with input.");
  Text(ops, "StringStrip")
      .In("input: string")
      .Out("output: string")
      .Shape(SameAs(0))
      .NoGradient("text has none")
      .Doc("Each string without white space at both ends.");
  Text(ops, "StringLower")
      .In("input: string")
      .Out("output: string")
      .Attr("encoding: string = ''")
      .Shape(SameAs(0))
      .NoGradient("text has none")
      .Doc("Each string in lower case; encoding '' changes ASCII letters only, 'utf-8' all.");
  Text(ops, "StringUpper")
      .In("input: string")
      .Out("output: string")
      .Attr("encoding: string = ''")
      .Shape(SameAs(0))
      .NoGradient("text has none")
      .Doc("Each string in upper case; encoding '' changes ASCII letters only, 'utf-8' all.");
}

void DeclarePieces(OpRegistry& ops) {
  Text(ops, "StringSplit")
      .In("input: string")
      .In("delimiter: string")
      .Out("indices: int64")
      .Out("values: string")
      .Out("shape: int64")
      .Attr("skip_empty: bool = true")
      .Shape(SplitShape)
      .NoGradient("text has none")
      .Doc(
          "The pieces of each string between the characters of `delimiter` (none: its bytes) as a sparse [strings, "
          "pieces].");
  Text(ops, "StringSplitV2")
      .In("input: string")
      .In("sep: string")
      .Out("indices: int64")
      .Out("values: string")
      .Out("shape: int64")
      .Attr("maxsplit: int = -1")
      .Shape(SplitShape)
      .NoGradient("text has none")
      .Doc(
          "The pieces of each string between occurrences of `sep` (none: white space) as a sparse [strings, pieces]; "
          "at most maxsplit cuts unless it is negative.");
  Text(ops, "ReduceJoin")
      .In("inputs: string")
      .In("reduction_indices: int32")
      .Out("output: string")
      .Attr("keep_dims: bool = false")
      .Attr("separator: string = ''")
      .Shape(ReduceJoinShape)
      .NoGradient("text has none")
      .Doc("The strings along the given axes joined by `separator`; without axes the input.");
  Text(ops, "UnsortedSegmentJoin")
      .In("inputs: string")
      .In("segment_ids: Tindices")
      .In("num_segments: Tnumsegments")
      .Out("output: string")
      .Attr("separator: string = ''")
      .Attr("Tnumsegments: {int32, int64} = DT_INT32")
      .Attr("Tindices: {int32, int64}")
      .Shape(SegmentJoinShape)
      .NoGradient("text has none")
      .Doc("The strings of each segment joined by `separator`, in order.");
}

void DeclarePatterns(OpRegistry& ops) {
  Text(ops, "RegexReplace")
      .In("input: string")
      .In("pattern: string")
      .In("rewrite: string")
      .Out("output: string")
      .Attr("replace_global: bool = true")
      .Shape(RegexReplaceShape)
      .NoGradient("text has none")
      .Doc("Each string with matches of the pattern (RE2 syntax) replaced; \\\\1 in `rewrite` is the first group.");
  Text(ops, "StaticRegexReplace")
      .In("input: string")
      .Out("output: string")
      .Attr("pattern: string")
      .Attr("replace_global: bool = true")
      .Attr("rewrite: string")
      .Shape(SameAs(0))
      .NoGradient("text has none")
      .Doc("Each string with matches of the pattern (RE2 syntax) replaced; \\\\1 in `rewrite` is the first group.");
  Text(ops, "RegexFullMatch")
      .In("input: string")
      .In("pattern: string")
      .Out("output: bool")
      .Shape(RegexMatchShape)
      .NoGradient("text has none")
      .Doc("True for each string that the pattern (RE2 syntax) matches from end to end.");
  Text(ops, "StringToHashBucketFast")
      .In("input: string")
      .Out("output: int64")
      .Attr("num_buckets: int >= 1")
      .Shape(SameAs(0))
      .NoGradient("text has none")
      .Doc("FarmHash64 of each string, modulo num_buckets.");
  Text(ops, "StringToHashBucketStrong")
      .In("input: string")
      .Out("output: int64")
      .Attr("key: list(int)")
      .Attr("num_buckets: int >= 1")
      .Shape(SameAs(0))
      .NoGradient("text has none")
      .Doc("SipHash of each string with a secret key of two numbers, modulo num_buckets.");
  Text(ops, "StringToHashBucket")
      .In("string_tensor: string")
      .Out("output: int64")
      .Attr("num_buckets: int >= 1")
      .Shape(SameAs(0))
      .NoGradient("text has none")
      .Doc("A 64-bit hash of each string, modulo num_buckets. StringToHashBucketFast is faster.");
}

}  // namespace

void DeclareStrings(OpRegistry& ops) {
  DeclareStringParts(ops);
  DeclarePieces(ops);
  DeclarePatterns(ops);
}

}  // namespace weir::ops
