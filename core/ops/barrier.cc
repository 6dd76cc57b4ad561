// Barriers: tuples whose components come one by one under a key, and which are taken once they are whole.
#include "core/op/grad_context.h"
#include "core/op/shape_context.h"
#include "core/ops/families.h"
#include "core/ops/references.h"
#include "core/ops/type_lists.h"

namespace weir::ops {
namespace {

using op::Category;
using op::OpBuilder;
using op::OpRegistry;
using op::ShapeContext;

constexpr std::string_view kGathered = "what a barrier holds is state, not a function of the inputs";

OpBuilder BarrierOp(OpRegistry& ops, std::string_view name) {
  return ops.Declare(name).Is(Category::kState).NoGradient(kGathered);
}

Status InsertShape(ShapeContext& c) {
  WEIR_TRY(ReferenceShape(c));
  WEIR_ASSIGN(const PartialShape keys, c.WithRank(1, 1));
  WEIR_ASSIGN(const PartialShape values, c.WithRankAtLeast(2, 1));
  if (!keys.has_rank() || !values.has_rank()) return Status();
  return PartialShape::Of({keys.dim(0)}).Merge(PartialShape::Of({values.dim(0)})).status();
}

OpBuilder Size(OpRegistry& ops, std::string_view name) {
  return BarrierOp(ops, name).In(kByReference).Out("size: int32").Shape([](ShapeContext& c) -> Status {
    WEIR_TRY(ReferenceShape(c));
    c.set_output(0, PartialShape(Shape()));
    return Status();
  });
}

}  // namespace

void DeclareBarrier(OpRegistry& ops) {
  BarrierOp(ops, "Barrier")
      .Stateful()
      .Out(kByReference)
      .Attr("component_types: list(type) >= 1")
      .Attr("shapes: list(shape) >= 0 = []")
      .Attr("capacity: int = -1")
      .Attr("container: string = ''")
      .Attr("shared_name: string = ''")
      .Shape([](ShapeContext& c) {
        c.set_output(0, PartialShape::Of({2}));
        return Status();
      })
      .Doc("A reference to a barrier, which holds tuples by their keys until they are whole and taken.");
  BarrierOp(ops, "BarrierInsertMany")
      .In(kByReference)
      .In("keys: string")
      .In("values: T")
      .Attr("T: type")
      .Attr("component_index: int")
      .Shape(InsertShape)
      .Doc("Gives the tuple of each key its component; a tuple that is whole can be taken.");
  BarrierOp(ops, "BarrierTakeMany")
      .In(kByReference)
      .In("num_elements: int32")
      .Out("indices: int64")
      .Out("keys: string")
      .Out("values: [component_types]")
      .Attr("component_types: list(type) >= 1")
      .Attr("allow_small_batch: bool = false")
      .Attr("wait_for_incomplete: bool = false")
      .Attr("timeout_ms: int = -1")
      .Shape([](ShapeContext&) { return Status(); })
      .Doc("Takes num_elements whole tuples, those first whose keys came first, once there are as many.");
  BarrierOp(ops, "BarrierClose")
      .In(kByReference)
      .Attr("cancel_pending_enqueues: bool = false")
      .Shape(ReferenceShape)
      .Doc("No new keys can be put into the barrier; tuples of those that it has can be made whole unless cancelled.");
  Size(ops, "BarrierReadySize").Doc("How many tuples are whole.");
  Size(ops, "BarrierIncompleteSize").Doc("How many tuples lack components.");
}

}  // namespace weir::ops
