#include "core/client/training/input.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/base/errors.h"
#include "core/client/control_flow/control_flow.h"
#include "core/client/graph/attribute_scopes.h"
#include "core/client/graph/scopes.h"
#include "core/client/ops/array_ops.h"
#include "core/client/ops/build_op.h"
#include "core/client/ops/ops.h"
#include "core/client/training/queue_runner.h"
#include "core/client/training/summary.h"
#include "core/client/variables/state_ops.h"

namespace weir {
namespace {

PartialShape InnerOf(const PartialShape& shape) {
  return shape.rank() < 1 ? PartialShape() : PartialShape::Of(shape.dims().subspan(1));
}

/// The queue of an input producer, filled with the rows of `rows`, which are in its scope.
FIFOQueue Produced(const Output& rows, const PartialShape& element, const InputProducerOptions& options,
                   const std::string& scope, const std::string& summary_name, const Where& where) {
  Output input = rows;
  if (options.shuffle) {
    const SeedPair seeds = OpSeeds(Graph::Default(), options.seed);
    input = BuildOp("RandomShuffle", {input}, {{"seed", seeds.seed}, {"seed2", seeds.seed2}}, {}, where).output(0);
  }
  input = LimitEpochs(input, options.num_epochs, "limit_epochs", where);
  FIFOQueue queue(options.capacity, {BaseType(input.dtype())},
                  {.shapes = {element}, .shared_name = options.shared_name, .name = scope}, where);
  AddQueueRunner(QueueRunner(queue, {queue.EnqueueMany(input, {}, where)}, {}, where));
  (void)summary::Scalar(
      summary_name, Cast(queue.Size({}, where), DType::kFloat) * (1.0 / static_cast<double>(options.capacity)), where);
  return queue;
}

std::string FullOf(int64_t capacity) { return fmt::format("fraction_of_{}_full", capacity); }

/// The tensors of a batch as values of the graph, and the shapes of their elements.
struct Batched {
  std::vector<Operand> values;
  std::vector<DType> types;
  std::vector<PartialShape> shapes;
};

Batched ReadTensors(const std::vector<Operand>& tensors, const std::vector<PartialShape>& shapes, bool many,
                    Graph& graph) {
  Batched read;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Output value = tensors[i].In(graph);
    read.values.emplace_back(value);
    read.types.push_back(BaseType(value.dtype()));
    const PartialShape known = many ? InnerOf(value.shape()) : value.shape();
    read.shapes.push_back(i < shapes.size() ? shapes[i] : known);
  }
  return read;
}

/// The runner of a batch: as many threads, all with one operation.
void FillWith(const QueueBase& queue, const Batched& read, bool many, int threads, const Where& where) {
  const QueueTuple tuple(read.values);
  const Operation enqueue = many ? queue.EnqueueMany(tuple, {}, where) : queue.Enqueue(tuple, {}, where);
  AddQueueRunner(
      QueueRunner(queue, std::vector<Operation>(static_cast<size_t>(std::max(threads, 1)), enqueue), {}, where));
}

List<Output> TakeBatch(const QueueBase& queue, const Operand& size, bool smaller, const std::string& name,
                       const Where& where) {
  return smaller ? queue.DequeueUpTo(size, name, where) : queue.DequeueMany(size, name, where);
}

/// Values that do not exist, after an error.
List<Output> Refuse(size_t count, const Status& why, const Where& where) {
  Graph& graph = Graph::Default();
  (void)graph.Fail(why.Append(" (" + Format(where) + ")"));
  return AbsentValues(graph, static_cast<int64_t>(count));
}

Status CheckBatch(const std::vector<Operand>& tensors, const Batched& read, bool needs_rank) {
  if (tensors.empty()) return InvalidArgument("Expected at least one tensor in batch().");
  if (!needs_rank) return Status();
  for (const PartialShape& shape : read.shapes) {
    if (!shape.has_rank()) return InvalidArgument("Cannot infer Tensor's rank: the elements need a known rank");
  }
  return Status();
}

}  // namespace

Output LimitEpochs(const Operand& tensor, std::optional<int64_t> num_epochs, std::string_view name, Where where) {
  Graph& graph = GraphOf(tensor);
  const Output value = tensor.In(graph);
  if (!num_epochs) return value;
  if (*num_epochs <= 0) {
    (void)graph.Fail(InvalidArgument("num_epochs must be > 0 not {}. ({})", *num_epochs, Format(where)));
    return Output::Absent(graph);
  }
  const AsDefault in(graph);
  const NameScope scope(name, graph);
  const std::string path = scope.path();
  const Output zero = Constant(Tensor::Scalar<int64_t>(0));
  const Variable epochs(zero, {.name = "epochs", .trainable = false, .collections = {keys::kLocalVariables}}, where);
  const Output counter = CountUpTo(epochs, *num_epochs, {}, where);
  const ControlDependencies after({counter}, graph);
  return BuildOp("Identity", {value}, {}, path, where).output(0);
}

FIFOQueue InputProducer(const Operand& input_tensor, const InputProducerOptions& options, Where where) {
  Graph& graph = GraphOf(input_tensor);
  const AsDefault in(graph);
  const std::string base(options.name.empty() ? "input_producer" : options.name);
  const NameScope scope(base, graph);
  const Output rows = input_tensor.In(graph, DType::kInvalid, "input_producer");
  return Produced(rows, InnerOf(rows.shape()), options, scope.path(), FullOf(options.capacity), where);
}

FIFOQueue StringInputProducer(const Operand& string_tensor, const InputProducerOptions& options, Where where) {
  Graph& graph = GraphOf(string_tensor);
  const AsDefault in(graph);
  const bool none = string_tensor.is_literal() &&
                    (string_tensor.literal().is_empty_list() || string_tensor.literal().tensor.elements() == 0);
  const char* const needed = "string_input_producer requires a non-null input tensor";
  if (none) (void)graph.Fail(InvalidArgument("{} ({})", needed, Format(where)));
  const std::string base(options.name.empty() ? "input_producer" : options.name);
  const NameScope scope(base, graph);
  const Output strings = none ? Output::Absent(graph) : string_tensor.In(graph, DType::kString);
  const Output some = Greater(SizeOf(strings), 0);
  const Operation check = Assert(some, {Operand(needed, where)}, {}, where);
  Output checked;
  {
    const ControlDependencies after({check}, graph);
    checked = BuildOp("Identity", {strings}, {}, {}, where).output(0);
  }
  return Produced(checked, PartialShape(Shape()), options, scope.path(), FullOf(options.capacity), where);
}

FIFOQueue RangeInputProducer(const Operand& limit, const InputProducerOptions& options, Where where) {
  Graph& graph = GraphOf(limit);
  const AsDefault in(graph);
  const std::string base(options.name.empty() ? "input_producer" : options.name);
  const NameScope scope(base, graph);
  const Output numbers = Range(0, limit, 1, "range", where);
  return Produced(numbers, PartialShape(Shape()), options, scope.path(), FullOf(options.capacity), where);
}

List<Output> SliceInputProducer(const std::vector<Operand>& tensors, const InputProducerOptions& options, Where where) {
  if (tensors.empty()) {
    return Refuse(1, InvalidArgument("Expected at least one tensor in slice_input_producer()."), where);
  }
  Graph& graph = GraphOf(tensors);
  const AsDefault in(graph);
  const bool own = !options.name.empty() && options.name != InputProducerOptions().name;
  const NameScope scope(own ? options.name : "input_producer", graph);
  std::vector<Output> values;
  for (const Operand& tensor : tensors) values.push_back(tensor.In(graph));
  const Output count = ShapeOf(values[0], DType::kInt32, "Shape", where)[0];
  InputProducerOptions numbers = options;
  numbers.name = "input_producer";
  const Output index = RangeInputProducer(count, numbers, where).Dequeue({}, where)[0];
  List<Output> slices;
  for (const Output& value : values) slices.push_back(Gather(value, index));
  return slices;
}

List<Output> Batch(const std::vector<Operand>& tensors, const Operand& batch_size, const BatchOptions& options,
                   Where where) {
  Graph& graph = GraphOf(tensors);
  const AsDefault in(graph);
  const NameScope scope(options.name.empty() ? "batch" : options.name, graph);
  const std::string path = scope.path();
  const Batched read = ReadTensors(tensors, options.shapes, options.enqueue_many, graph);
  if (const Status fits = CheckBatch(tensors, read, options.dynamic_pad); !fits.ok()) {
    return Refuse(tensors.size(), fits, where);
  }
  const FIFOQueueOptions queue_options = {.shapes = read.shapes, .shared_name = options.shared_name};
  const QueueBase queue = options.dynamic_pad
                              ? QueueBase(PaddingFIFOQueue(options.capacity, read.types, queue_options, where))
                              : QueueBase(FIFOQueue(options.capacity, read.types, queue_options, where));
  FillWith(queue, read, options.enqueue_many, options.num_threads, where);
  const Output held = Cast(queue.Size({}, where), DType::kFloat);
  (void)summary::Scalar(FullOf(options.capacity), held * (1.0 / static_cast<double>(options.capacity)), where);
  return TakeBatch(queue, batch_size, options.allow_smaller_final_batch, path, where);
}

List<Output> ShuffleBatch(const std::vector<Operand>& tensors, const Operand& batch_size,
                          const ShuffleBatchOptions& options, Where where) {
  Graph& graph = GraphOf(tensors);
  const AsDefault in(graph);
  const NameScope scope(options.name.empty() ? "shuffle_batch" : options.name, graph);
  const std::string path = scope.path();
  const Batched read = ReadTensors(tensors, options.shapes, options.enqueue_many, graph);
  if (const Status fits = CheckBatch(tensors, read, false); !fits.ok()) return Refuse(tensors.size(), fits, where);
  const RandomShuffleQueue queue(options.capacity, options.min_after_dequeue, read.types,
                                 {.shapes = read.shapes, .seed = options.seed, .shared_name = options.shared_name},
                                 where);
  FillWith(queue, read, options.enqueue_many, options.num_threads, where);
  const int64_t room = options.capacity - options.min_after_dequeue;
  const Output above = Maximum(0, queue.Size({}, where) - static_cast<int32_t>(options.min_after_dequeue));
  (void)summary::Scalar(fmt::format("fraction_over_{}_of_{}_full", options.min_after_dequeue, room),
                        Cast(above, DType::kFloat) * (1.0 / static_cast<double>(std::max<int64_t>(room, 1))), where);
  return TakeBatch(queue, batch_size, options.allow_smaller_final_batch, path, where);
}

}  // namespace weir
