// Queues of tensor tuples. Ops wait if the queue is full or has too few elements.
#include "core/op/grad_context.h"
#include "core/op/shape_context.h"
#include "core/ops/families.h"

namespace weir::ops {
namespace {

using op::Category;
using op::OpBuilder;
using op::OpRegistry;
using op::Scalar;
using op::ShapeContext;

constexpr std::string_view kQueued = "what a queue holds is state, not a function of the inputs";

Status QueueHandle(ShapeContext& c) { return c.WithRank(0, 0).status(); }

Status DequeueManyShape(ShapeContext& c) {
  WEIR_TRY(QueueHandle(c));
  return c.WithRank(1, 0).status();
}

Status QueueFact(ShapeContext& c) {
  WEIR_TRY(QueueHandle(c));
  c.set_output(0, PartialShape(Shape()));
  return Status();
}

OpBuilder QueueOp(OpRegistry& ops, std::string_view name) {
  return ops.Declare(name).Is(Category::kState).Stateful().NoGradient(kQueued);
}

OpBuilder Enqueue(OpRegistry& ops, std::string_view name) {
  return QueueOp(ops, name)
      .In("handle: resource")
      .In("components: [Tcomponents]")
      .Attr("Tcomponents: list(type) >= 1")
      .Attr("timeout_ms: int = -1")
      .Shape(QueueHandle);
}

OpBuilder Dequeue(OpRegistry& ops, std::string_view name) {
  return QueueOp(ops, name)
      .In("handle: resource")
      .Out("components: [component_types]")
      .Attr("component_types: list(type) >= 1")
      .Attr("timeout_ms: int = -1")
      .Shape(QueueHandle);
}

OpBuilder MadeQueue(OpRegistry& ops, std::string_view name) {
  return QueueOp(ops, name)
      .Out("handle: resource")
      .Attr("capacity: int = -1")
      .Attr("container: string = ''")
      .Attr("shared_name: string = ''")
      .Shape(Scalar());
}

}  // namespace

void DeclareQueue(OpRegistry& ops) {
  MadeQueue(ops, "PaddingFIFOQueueV2")
      .Attr("component_types: list(type) >= 1")
      .Attr("shapes: list(shape) >= 0 = []")
      .Doc("As FIFOQueueV2; components taken together are padded at their ends to the largest of them.");
  MadeQueue(ops, "RandomShuffleQueueV2")
      .Attr("component_types: list(type) >= 1")
      .Attr("shapes: list(shape) >= 0 = []")
      .Attr("min_after_dequeue: int = 0")
      .Attr("seed: int = 0")
      .Attr("seed2: int = 0")
      .Doc(
          "A handle of a queue that gives tuples in random order. While it is open, min_after_dequeue of them stay in "
          "it, so that the order is random enough.");
  MadeQueue(ops, "PriorityQueueV2")
      .Attr("component_types: list(type) >= 0 = []")
      .Attr("shapes: list(shape) >= 0")
      .Doc("A handle of a queue that gives the tuple with the least first component, an int64 before the others.");
  MadeQueue(ops, "FIFOQueueV2")
      .Attr("component_types: list(type) >= 1")
      .Attr("shapes: list(shape) >= 0 = []")
      .Doc("A handle of a queue of tuples, first in, first out, with room for `capacity` (negative: any number).");
  Enqueue(ops, "QueueEnqueueV2").Doc("Puts one tuple at the end, once there is room.");
  Enqueue(ops, "QueueEnqueueManyV2")
      .Doc("Puts the slices along the first axis at the end one by one, as there is room.");
  Dequeue(ops, "QueueDequeueV2").Doc("Takes the first tuple, once there is one.");
  Dequeue(ops, "QueueDequeueManyV2")
      .In("n: int32")
      .Shape(DequeueManyShape)
      .Doc("Takes the first n tuples, once there are as many, each component stacked along a new first axis.");
  Dequeue(ops, "QueueDequeueUpToV2")
      .In("n: int32")
      .Shape(DequeueManyShape)
      .Doc("As QueueDequeueManyV2; of a closed queue, which gets no more, those that are left.");
  QueueOp(ops, "QueueCloseV2")
      .In("handle: resource")
      .Attr("cancel_pending_enqueues: bool = false")
      .Shape(QueueHandle)
      .Doc("Nothing can be put into the queue any more; what it holds can be taken.");
  QueueOp(ops, "QueueIsClosedV2")
      .In("handle: resource")
      .Out("is_closed: bool")
      .Shape(QueueFact)
      .Doc("True once the queue was closed.");
  QueueOp(ops, "QueueSizeV2")
      .In("handle: resource")
      .Out("size: int32")
      .Shape(QueueFact)
      .Doc("How many tuples the queue holds.");
}

}  // namespace weir::ops
