// The queue ops.
#include <algorithm>
#include <limits>

#include "core/base/errors.h"
#include "core/builtin/families.h"
#include "core/builtin/handles.h"
#include "core/builtin/operands.h"
#include "core/builtin/pieces.h"
#include "core/builtin/queue.h"
#include "core/builtin/references.h"

namespace weir::builtin {
namespace {

using Queue = std::shared_ptr<FifoQueue>;

Status CheckShared(const FifoQueue& queue, const FifoQueue::Options& asked, const std::string& name) {
  const FifoQueue::Options& has = queue.options();
  if (has.order != asked.order) {
    return InvalidArgument("Shared queue '{}' has type '{}' that does not match type of Node: {}V2", name,
                           Name(has.order), Name(asked.order));
  }
  if (has.capacity != asked.capacity) {
    return InvalidArgument("Shared queue '{}' has capacity {} but requested capacity was {}", name, has.capacity,
                           asked.capacity);
  }
  if (has.types != asked.types) {
    return InvalidArgument("Shared queue '{}' has component types {} but requested component types were {}", name,
                           ListText(has.types), ListText(asked.types));
  }
  if (has.min_after_dequeue != asked.min_after_dequeue) {
    return InvalidArgument("Shared queue '{}' has min_after_dequeue {} but requested min_after_dequeue was {}.", name,
                           has.min_after_dequeue, asked.min_after_dequeue);
  }
  if ((asked.seed != 0 || asked.seed2 != 0) && (has.seed != asked.seed || has.seed2 != asked.seed2)) {
    return InvalidArgument("Shared queue '{}' has random seeds ({}, {}) but requested seeds are ({}, {}).", name,
                           has.seed, has.seed2, asked.seed, asked.seed2);
  }
  if (has.shapes == asked.shapes) return Status();
  return InvalidArgument("Shared queue '{}' has component shapes {} but requested component shapes were {}", name,
                         ListText(has.shapes), ListText(asked.shapes));
}

/// What the orders have beyond types, shapes and capacity.
Status ReadOrder(const kernel::BuiltinCall& call, FifoQueue::Options& options) {
  if (options.order == QueueOrder::kPriority) {
    options.types.insert(options.types.begin(), DType::kInt64);
    options.shapes.insert(options.shapes.begin(), PartialShape(Shape()));
  }
  if (options.order == QueueOrder::kPadded) {
    if (options.shapes.size() != options.types.size()) {
      return InvalidArgument("Shapes must be provided for all components, but received {} dtypes and {} shapes.",
                             options.types.size(), options.shapes.size());
    }
    for (const PartialShape& shape : options.shapes) {
      if (!shape.has_rank()) return InvalidArgument("shape {} must have known rank.", shape.ToString());
    }
  }
  if (options.order != QueueOrder::kShuffled) return Status();
  WEIR_ASSIGN(const int64_t kept, call.attrs.Int("min_after_dequeue"));
  WEIR_ASSIGN(options.seed, call.attrs.Int("seed"));
  WEIR_ASSIGN(options.seed2, call.attrs.Int("seed2"));
  if (kept < 0) return InvalidArgument("min_after_dequeue {} must be >= 0", kept);
  if (options.capacity >= 0 && kept >= options.capacity) {
    return InvalidArgument("min_after_dequeue {} must be < capacity {}", kept, options.capacity);
  }
  if (kept > std::numeric_limits<int32_t>::max()) return InvalidArgument("min_after_dequeue {} is too large", kept);
  options.min_after_dequeue = static_cast<int32_t>(kept);
  return Status();
}

enum class Named : uint8_t { kHandle, kReference };

Status MakeQueue(kernel::BuiltinCall& call, QueueOrder order, Named named) {
  FifoQueue::Options options;
  options.order = order;
  WEIR_ASSIGN(options.types, call.attrs.Types("component_types"));
  WEIR_ASSIGN(options.shapes, call.attrs.Shapes("shapes"));
  WEIR_ASSIGN(const int64_t capacity, call.attrs.Int("capacity"));
  if (capacity > std::numeric_limits<int32_t>::max()) return InvalidArgument("capacity {} is too large", capacity);
  options.capacity = static_cast<int32_t>(std::max<int64_t>(capacity, -1));
  if (!options.shapes.empty() && options.shapes.size() != options.types.size()) {
    return InvalidArgument("Different number of component types.  Types: {}, Shapes: {}", ListText(options.types),
                           ListText(options.shapes));
  }
  WEIR_TRY(ReadOrder(call, options));
  WEIR_ASSIGN(const std::string shared, call.attrs.String("shared_name"));
  WEIR_ASSIGN(const std::shared_ptr<Resource> made,
              OutputOfSession(call, 0, FifoQueue::kTypeName, [&]() -> Result<std::shared_ptr<Resource>> {
                return std::shared_ptr<Resource>(
                    std::make_shared<FifoQueue>(shared.empty() ? std::string(call.node_name) : shared, options));
              }));
  const auto queue = std::dynamic_pointer_cast<FifoQueue>(made);
  if (!queue) return Internal("a queue of another kind has the name '{}'", shared);
  WEIR_TRY(CheckShared(*queue, options, shared));
  if (named == Named::kReference) ReferToHandle(call, 0);
  return Status();
}

Status CheckTimeout(const kernel::BuiltinCall& call) {
  WEIR_ASSIGN(const int64_t timeout, call.attrs.Int("timeout_ms"));
  return timeout == -1 ? Status() : InvalidArgument("Timeout not supported yet.");
}

/// The components after the handle as one tuple, or, with `many`, as one tuple per row.
Result<std::vector<FifoQueue::Tuple>> TuplesOf(const FifoQueue& queue, const kernel::BuiltinCall& call, bool many) {
  FifoQueue::Tuple tuple(call.inputs.begin() + 1, call.inputs.end());
  WEIR_TRY(CheckSignature(call, queue.options().types, {}, {}));
  const int64_t count = many && tuple[0].shape().rank() > 0 ? tuple[0].shape().dim(0) : 1;
  for (size_t c = 0; c < tuple.size(); ++c) {
    const Shape& shape = tuple[c].shape();
    if (many && (shape.rank() == 0 || shape.dim(0) != count)) {
      return InvalidArgument(
          "All input tensors must have the same size in the 0th dimension. Component {} has {}, and "
          "should have {}",
          c, shape.rank() == 0 ? 0 : shape.dim(0), count);
    }
    const Shape element = many ? InnerShape(shape) : shape;
    if (queue.options().shapes.empty() || queue.options().shapes[c].CompatibleWith(element)) continue;
    return InvalidArgument("Shape mismatch in tuple component {}. Expected {}, got {}", c,
                           queue.options().shapes[c].ToString(), element.ToString());
  }
  if (!many) return std::vector<FifoQueue::Tuple>{std::move(tuple)};
  std::vector<FifoQueue::Tuple> tuples(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    for (const Tensor& component : tuple) {
      WEIR_ASSIGN(Tensor row, Row(component, i));
      tuples[static_cast<size_t>(i)].push_back(std::move(row));
    }
  }
  return tuples;
}

void EnqueueTuples(kernel::BuiltinCall call, runtime::Completion done, bool many) {
  const auto start = [&]() -> Status {
    WEIR_TRY(CheckTimeout(call));
    WEIR_ASSIGN(const Queue queue, ResourceBehind<FifoQueue>(call, 0));
    WEIR_ASSIGN(std::vector<FifoQueue::Tuple> tuples, TuplesOf(*queue, call, many));
    queue->Enqueue(std::move(tuples), call.cancellation, std::move(done));
    return Status();
  };
  if (const Status started = start(); !started.ok()) done(started);
}

void DequeueTuples(kernel::BuiltinCall call, runtime::Completion done, bool many, FifoQueue::Leftover leftover) {
  const auto start = [&]() -> Status {
    WEIR_TRY(CheckTimeout(call));
    WEIR_ASSIGN(const Queue queue, ResourceBehind<FifoQueue>(call, 0));
    WEIR_ASSIGN(const std::vector<DType> types, call.attrs.Types("component_types"));
    const std::vector<DType> count_type(many ? 1 : 0, DType::kInt32);
    WEIR_TRY(CheckSignature(call, count_type, types, queue->options().types));
    int32_t count = 1;
    if (many) {
      WEIR_ASSIGN(count, Scalar<int32_t>(call, 1, "n"));
      const bool up_to = leftover == FifoQueue::Leftover::kTake;
      if (count < 0) {
        return InvalidArgument("{} requested {} < 0 elements", up_to ? "DequeueUpToOp" : "DequeueManyOp", count);
      }
      const auto known = [](const PartialShape& shape) { return shape.fully_defined(); };
      const std::vector<PartialShape>& shapes = queue->options().shapes;
      const QueueOrder order = queue->options().order;
      if (order != QueueOrder::kPadded && (shapes.empty() || !std::all_of(shapes.begin(), shapes.end(), known))) {
        return InvalidArgument("{}'s DequeueMany and DequeueUpTo require the components to have specified shapes.",
                               Name(order));
      }
    }
    queue->Dequeue(count, many, leftover, call.cancellation, std::move(done));
    return Status();
  };
  if (const Status started = start(); !started.ok()) done(started);
}

void CloseQueue(kernel::BuiltinCall call, runtime::Completion done) {
  const Result<Queue> queue = ResourceBehind<FifoQueue>(call, 0);
  const Result<bool> cancel = call.attrs.Bool("cancel_pending_enqueues");
  if (!queue.ok() || !cancel.ok()) return done(queue.ok() ? cancel.status() : queue.status());
  (*queue)->Close(*cancel ? FifoQueue::Pending::kCancel : FifoQueue::Pending::kFinish, call.cancellation,
                  std::move(done));
}

Status QueueSize(kernel::BuiltinCall& call) {
  WEIR_ASSIGN(const Queue queue, ResourceBehind<FifoQueue>(call, 0));
  call.outputs[0] = Tensor::Scalar(static_cast<int32_t>(queue->size()));
  return Status();
}

Status QueueIsClosed(kernel::BuiltinCall& call) {
  WEIR_ASSIGN(const Queue queue, ResourceBehind<FifoQueue>(call, 0));
  call.outputs[0] = Tensor::Scalar(queue->closed());
  return Status();
}

}  // namespace

void AddQueues(kernel::KernelRegistry& kernels) {
  using kernel::InputUse;
  using Leftover = FifoQueue::Leftover;
  for (const QueueOrder order :
       {QueueOrder::kFifo, QueueOrder::kPadded, QueueOrder::kShuffled, QueueOrder::kPriority}) {
    for (const Named named : {Named::kHandle, Named::kReference}) {
      kernels.AddHost(fmt::format("{}{}", Name(order), named == Named::kHandle ? "V2" : ""),
                      [order, named](kernel::BuiltinCall& call) { return MakeQueue(call, order, named); });
    }
  }
  const auto enqueue = [](bool many) {
    return [many](kernel::BuiltinCall call, runtime::Completion done) {
      EnqueueTuples(std::move(call), std::move(done), many);
    };
  };
  const auto dequeue = [](bool many, Leftover leftover) {
    return [many, leftover](kernel::BuiltinCall call, runtime::Completion done) {
      DequeueTuples(std::move(call), std::move(done), many, leftover);
    };
  };
  for (const std::string version : {"", "V2"}) {
    kernels.AddHostAsync("QueueEnqueue" + version, enqueue(false), InputUse::kKept);
    kernels.AddHostAsync("QueueEnqueueMany" + version, enqueue(true), InputUse::kKept);
    kernels.AddHostAsync("QueueDequeue" + version, dequeue(false, Leftover::kError));
    kernels.AddHostAsync("QueueDequeueMany" + version, dequeue(true, Leftover::kError));
    kernels.AddHostAsync("QueueDequeueUpTo" + version, dequeue(true, Leftover::kTake));
    kernels.AddHostAsync("QueueClose" + version, CloseQueue);
    kernels.AddHost("QueueSize" + version, QueueSize);
    kernels.AddHost("QueueIsClosed" + version, QueueIsClosed);
  }
}

}  // namespace weir::builtin
