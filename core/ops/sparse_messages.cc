// Sparse tensors as messages: their three parts, each serialized or held by a variant; and maps that hold them by
// number, for queues of sparse tensors.
#include "core/base/errors.h"
#include "core/op/shape_context.h"
#include "core/ops/families.h"
#include "core/ops/shape_algebra.h"
#include "core/ops/type_lists.h"

namespace weir::ops {
namespace {

using op::Category;
using op::OpBuilder;
using op::OpRegistry;
using op::ShapeContext;

constexpr std::string_view kMessage = "its answer is a message";

Status SerializeShape(ShapeContext& c) {
  WEIR_TRY(c.WithRank(0, 2).status());
  WEIR_TRY(c.WithRank(1, 1).status());
  WEIR_TRY(c.WithRank(2, 1).status());
  c.set_output(0, VectorOf(3));
  return Status();
}

Status SerializeManyShape(ShapeContext& c) {
  WEIR_TRY(SerializeShape(c));
  c.set_output(0, PartialShape{-1, 3});
  return Status();
}

void SetUnknownSparse(ShapeContext& c) {
  c.set_output(0, PartialShape{-1, -1});
  c.set_output(1, VectorOf(-1));
  c.set_output(2, VectorOf(-1));
}

Status DeserializeManyShape(ShapeContext& c) {
  WEIR_ASSIGN(const PartialShape messages, c.WithRank(0, 2));
  WEIR_TRY(ExpectDim(messages.dim(1), 3));
  SetUnknownSparse(c);
  return Status();
}

Status DeserializeShape(ShapeContext& c) {
  WEIR_ASSIGN(const PartialShape messages, c.WithRankAtLeast(0, 1));
  if (messages.has_rank()) WEIR_TRY(ExpectDim(messages.dim(messages.rank() - 1), 3));
  SetUnknownSparse(c);
  return Status();
}

OpBuilder Serialize(OpRegistry& ops, std::string_view name) {
  return ops.Declare(name)
      .Is(Category::kArray)
      .In("sparse_indices: int64")
      .In("sparse_values: T")
      .In("sparse_shape: int64")
      .Out("serialized_sparse: out_type")
      .Attr(kAnyT)
      .Attr("out_type: {string, variant} = DT_STRING")
      .NoGradient(kMessage);
}

OpBuilder Deserialize(OpRegistry& ops, std::string_view name, std::string_view input) {
  return ops.Declare(name)
      .Is(Category::kArray)
      .In(input)
      .Out("sparse_indices: int64")
      .Out("sparse_values: dtype")
      .Out("sparse_shape: int64")
      .Attr("dtype: type")
      .NoGradient("its input is a message");
}

/// An op of the map that the attributes name.
OpBuilder OfMap(OpRegistry& ops, std::string_view name) {
  return ops.Declare(name)
      .Is(Category::kState)
      .Stateful()
      .Attr("container: string = ''")
      .Attr("shared_name: string = ''")
      .NoGradient("what a map holds is state, not a function of the inputs");
}

OpBuilder AddToMap(OpRegistry& ops, std::string_view name, std::string_view numbers) {
  return OfMap(ops, name)
      .In("sparse_indices: int64")
      .In("sparse_values: T")
      .In("sparse_shape: int64")
      .Out(numbers)
      .Attr(kAnyT);
}

Status AddShape(ShapeContext& c) {
  WEIR_TRY(SerializeShape(c));
  c.set_output(0, PartialShape(Shape()));
  return Status();
}

Status AddManyShape(ShapeContext& c) {
  WEIR_TRY(SerializeShape(c));
  c.set_output(0, VectorOf(-1));
  return Status();
}

Status TakeManyShape(ShapeContext& c) {
  WEIR_TRY(c.WithRank(0, 1).status());
  SetUnknownSparse(c);
  return Status();
}

void DeclareSparseMaps(OpRegistry& ops) {
  AddToMap(ops, "AddSparseToTensorsMap", "sparse_handle: int64")
      .Shape(AddShape)
      .Doc("Keeps a sparse tensor until TakeManySparseFromTensorsMap asks for its number.");
  AddToMap(ops, "AddManySparseToTensorsMap", "sparse_handles: int64")
      .Shape(AddManyShape)
      .Doc("Keeps each sparse tensor along the first axis.");
  OfMap(ops, "TakeManySparseFromTensorsMap")
      .In("sparse_handles: int64")
      .Out("sparse_indices: int64")
      .Out("sparse_values: dtype")
      .Out("sparse_shape: int64")
      .Attr("dtype: type")
      .Shape(TakeManyShape)
      .Doc("The sparse tensors with these numbers behind each other along a new first axis; the map drops them.");
}

}  // namespace

void DeclareSparseMessages(OpRegistry& ops) {
  Serialize(ops, "SerializeSparse")
      .Shape(SerializeShape)
      .Doc("The coordinates, values and shape of a sparse tensor as three messages.");
  Serialize(ops, "SerializeManySparse")
      .Shape(SerializeManyShape)
      .Doc("Three messages for each sparse tensor along the first axis.");
  Deserialize(ops, "DeserializeManySparse", "serialized_sparse: string")
      .Shape(DeserializeManyShape)
      .Doc("The sparse tensors of SerializeManySparse behind each other along a new first axis.");
  Deserialize(ops, "DeserializeSparse", "serialized_sparse: Tserialized")
      .Attr("Tserialized: {string, variant} = DT_STRING")
      .Shape(DeserializeShape)
      .Doc("The sparse tensors of SerializeSparse, with the leading axes of the messages.");
  DeclareSparseMaps(ops);
}

}  // namespace weir::ops
