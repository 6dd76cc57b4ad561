// Queues of tensor tuples. Ops wait if the queue is full or has too few elements.
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

constexpr std::string_view kQueued = "what a queue holds is state, not a function of the inputs";

Status QueueHandle(ShapeContext& c) { return c.WithRank(0, 0).status(); }

Status DequeueManyShape(ShapeContext& c) {
  WEIR_TRY(QueueHandle(c));
  return c.WithRank(1, 0).status();
}

/// The ops of queues behind handles are those of version 2. Ops on references have names without "V2", and TensorFlow
/// declares only those stateful that make a queue.
class QueueOps {
 public:
  QueueOps(OpRegistry& ops, std::string_view handle) : ops_(ops), handle_(handle) {}

  void DeclareKinds() {
    Kind("PaddingFIFOQueue")
        .Attr("component_types: list(type) >= 1")
        .Attr("shapes: list(shape) >= 0 = []")
        .Doc("As FIFOQueueV2; components taken together are padded at their ends to the largest of them.");
    Kind("RandomShuffleQueue")
        .Attr("component_types: list(type) >= 1")
        .Attr("shapes: list(shape) >= 0 = []")
        .Attr("min_after_dequeue: int = 0")
        .Attr("seed: int = 0")
        .Attr("seed2: int = 0")
        .Doc(
            "A queue that gives tuples in random order. While it is open, min_after_dequeue of them stay in it, so "
            "that the order is random enough.");
    Kind("PriorityQueue")
        .Attr("component_types: list(type) >= 0 = []")
        .Attr("shapes: list(shape) >= 0")
        .Doc("A queue that gives the tuple with the least first component, an int64 before the others.");
    Kind("FIFOQueue")
        .Attr("component_types: list(type) >= 1")
        .Attr("shapes: list(shape) >= 0 = []")
        .Doc("A queue of tuples, first in, first out, with room for `capacity` (negative: any number).");
  }

  void DeclareUses() {
    Enqueue("QueueEnqueue").Doc("Puts one tuple at the end, once there is room.");
    Enqueue("QueueEnqueueMany").Doc("Puts the slices along the first axis at the end one by one, as there is room.");
    Dequeue("QueueDequeue").Shape(Unless(QueueHandle)).Doc("Takes the first tuple, once there is one.");
    Dequeue("QueueDequeueMany")
        .In("n: int32")
        .Shape(Unless(DequeueManyShape))
        .Doc("Takes the first n tuples, once there are as many, each component stacked along a new first axis.");
    Dequeue("QueueDequeueUpTo")
        .In("n: int32")
        .Shape(Unless(DequeueManyShape))
        .Doc("As QueueDequeueManyV2; of a closed queue, which gets no more, those that are left.");
    Use("QueueClose")
        .In(handle_)
        .Attr("cancel_pending_enqueues: bool = false")
        .Shape(behind_handle() ? QueueHandle : ReferenceShape)
        .Doc("Nothing can be put into the queue any more; what it holds can be taken.");
    Fact("QueueIsClosed", "is_closed: bool").Doc("True once the queue was closed.");
    Fact("QueueSize", "size: int32").Doc("How many tuples the queue holds.");
  }

 private:
  bool behind_handle() const { return handle_ == kByHandle; }

  OpBuilder Any(std::string_view name) {
    const std::string full = std::string(name) + (behind_handle() ? "V2" : "");
    return ops_.Declare(full).Is(Category::kState).NoGradient(kQueued);
  }
  OpBuilder Kind(std::string_view name) {
    const PartialShape shape = behind_handle() ? PartialShape(Shape()) : PartialShape::Of({2});
    return Any(name)
        .Stateful()
        .Out(handle_)
        .Attr("capacity: int = -1")
        .Attr("container: string = ''")
        .Attr("shared_name: string = ''")
        .Shape([shape](ShapeContext& c) {
          c.set_output(0, shape);
          return Status();
        });
  }
  OpBuilder Use(std::string_view name) {
    OpBuilder made = Any(name);
    return behind_handle() ? made.Stateful() : made;
  }
  OpBuilder Enqueue(std::string_view name) {
    return Use(name)
        .In(handle_)
        .In("components: [Tcomponents]")
        .Attr("Tcomponents: list(type) >= 1")
        .Attr("timeout_ms: int = -1")
        .Shape(Unless(QueueHandle));
  }
  OpBuilder Dequeue(std::string_view name) {
    return Use(name)
        .In(handle_)
        .Out("components: [component_types]")
        .Attr("component_types: list(type) >= 1")
        .Attr("timeout_ms: int = -1");
  }
  OpBuilder Fact(std::string_view name, std::string_view output) {
    return Use(name).In(handle_).Out(output).Shape([check = behind_handle() ? QueueHandle : ReferenceShape](
                                                       ShapeContext& c) -> Status {
      WEIR_TRY(check(c));
      c.set_output(0, PartialShape(Shape()));
      return Status();
    });
  }
  /// TensorFlow checks no shapes of the ops on references that put and take.
  op::ShapeFn Unless(Status (*of_handle)(ShapeContext&)) const {
    if (behind_handle()) return of_handle;
    return [](ShapeContext&) { return Status(); };
  }

  OpRegistry& ops_;
  const std::string_view handle_;
};

}  // namespace

void DeclareQueue(OpRegistry& ops) {
  for (const std::string_view handle : {kByHandle, kByReference}) {
    QueueOps of(ops, handle);
    of.DeclareKinds();
    of.DeclareUses();
  }
}

}  // namespace weir::ops
