#include "core/client/containers/queue.h"

#include <optional>
#include <utility>

#include "core/base/errors.h"
#include "core/client/graph/attribute_scopes.h"
#include "core/client/graph/scopes.h"
#include "core/client/ops/build_op.h"
#include "core/tensor/number.h"

namespace weir {
namespace {

PartialShape Behind(int64_t first, const PartialShape& rest) {
  if (!rest.has_rank()) return PartialShape();
  std::vector<int64_t> dims = {first};
  dims.insert(dims.end(), rest.dims().begin(), rest.dims().end());
  return PartialShape::Of(dims);
}

/// `name` of the node; `more`: attributes of the kind of queue.
Output MakeQueue(std::string_view op, std::string_view name, int64_t capacity, const std::vector<DType>& dtypes,
                 const FIFOQueueOptions& options, op::AttrList more, const Where& where) {
  Graph& graph = Graph::Default();
  const auto fits = [&](size_t given, std::string_view of) {
    if (given == 0 || given == dtypes.size()) return true;
    (void)graph.Fail(
        InvalidArgument("Queue {0} must have the same length as dtypes, received len({0})={1}, "
                        "len(dtypes)={2} ({3})",
                        of, given, dtypes.size(), Format(where)));
    return false;
  };
  if (!fits(options.shapes.size(), "shapes") || !fits(options.names.size(), "names")) return Output::Absent(graph);
  // A queue is made outside of conds, loops and what they wait for.
  const ControlDependencies outside(std::nullopt, graph);
  const DeviceScope host("/device:CPU:*", graph);
  op::AttrList attrs = {{"component_types", dtypes},
                        {"shapes", options.shapes},
                        {"capacity", capacity},
                        {"shared_name", options.shared_name}};
  attrs.insert(attrs.end(), more.begin(), more.end());
  return BuildOp(op, {}, attrs, name, where).output(0);
}

Output MakePadded(int64_t capacity, const std::vector<DType>& dtypes, const FIFOQueueOptions& options,
                  const Where& where) {
  if (options.shapes.empty() && !dtypes.empty()) {
    Graph& graph = Graph::Default();
    (void)graph.Fail(
        InvalidArgument("When providing partial shapes, a list of shapes must be provided. ({})", Format(where)));
    return Output::Absent(graph);
  }
  const bool named = !options.name.empty() && options.name != FIFOQueueOptions().name;
  return MakeQueue("PaddingFIFOQueueV2", named ? options.name : "padding_fifo_queue", capacity, dtypes, options, {},
                   where);
}

Output MakeShuffled(int64_t capacity, int64_t min_after_dequeue, const std::vector<DType>& dtypes,
                    const RandomShuffleQueueOptions& options, const Where& where) {
  const SeedPair seeds = OpSeeds(Graph::Default(), options.seed);
  return MakeQueue("RandomShuffleQueueV2", options.name.empty() ? "random_shuffle_queue" : options.name, capacity,
                   dtypes, {.shapes = options.shapes, .names = options.names, .shared_name = options.shared_name},
                   {{"min_after_dequeue", min_after_dequeue}, {"seed", seeds.seed}, {"seed2", seeds.seed2}}, where);
}

}  // namespace

QueueBase::QueueBase(const Output& handle, std::vector<DType> dtypes, std::vector<PartialShape> shapes,
                     std::vector<std::string> names)
    : handle_(handle), dtypes_(std::move(dtypes)), shapes_(std::move(shapes)), names_(std::move(names)) {
  shapes_.resize(dtypes_.size());
}

FIFOQueue::FIFOQueue(int64_t capacity, std::vector<DType> dtypes, const FIFOQueueOptions& options, Where where)
    : QueueBase(MakeQueue("FIFOQueueV2", options.name.empty() ? "fifo_queue" : options.name, capacity, dtypes, options,
                          {}, where),
                dtypes, options.shapes, options.names) {}

PaddingFIFOQueue::PaddingFIFOQueue(int64_t capacity, std::vector<DType> dtypes, const FIFOQueueOptions& options,
                                   Where where)
    : QueueBase(MakePadded(capacity, dtypes, options, where), dtypes, options.shapes, options.names) {}

RandomShuffleQueue::RandomShuffleQueue(int64_t capacity, int64_t min_after_dequeue, std::vector<DType> dtypes,
                                       const RandomShuffleQueueOptions& options, Where where)
    : QueueBase(MakeShuffled(capacity, min_after_dequeue, dtypes, options, where), dtypes, options.shapes,
                options.names) {}

std::string QueueBase::NodeName(std::string_view suffix, std::string_view name) const {
  if (!name.empty()) return std::string(name);
  const std::string own = handle_.op().name();
  return own.substr(own.rfind('/') + 1) + std::string(suffix);
}

Result<std::vector<Operand>> QueueBase::InOrder(const QueueTuple& tuple) const {
  if (!tuple.has_names()) {
    if (!names_.empty()) return InvalidArgument("You must enqueue a dictionary in a Queue with names");
    if (tuple.values().size() == dtypes_.size()) return tuple.values();
    return InvalidArgument("{} values were given for a queue of {} components", tuple.values().size(), dtypes_.size());
  }
  if (names_.empty()) return InvalidArgument("Queue must have names to enqueue a dictionary");
  std::vector<Operand> ordered;
  for (const std::string& component : names_) {
    const auto found = tuple.by_name().find(component);
    if (found != tuple.by_name().end()) ordered.push_back(found->second);
  }
  if (ordered.size() == names_.size() && tuple.by_name().size() == names_.size()) return ordered;
  std::string given, wanted;
  for (const auto& [key, value] : tuple.by_name()) given += (given.empty() ? "'" : ", '") + key + "'";
  for (const std::string& key : names_) wanted += (wanted.empty() ? "'" : ", '") + key + "'";
  return InvalidArgument("Keys in dictionary to enqueue do not match names of Queue.  Dictionary: [{}],Queue: [{}]",
                         given, wanted);
}

/// Value of component `i`, or a batch of such.
Result<Output> QueueBase::Component(size_t i, const Operand& given, bool many) const {
  Graph& graph = GraphOf(handle_);
  const std::string name = "component_" + std::to_string(i);
  const Output value = given.In(graph, given.is_literal() ? dtypes_[i] : DType::kInvalid, name);
  if (!value.exists()) return value;
  if (BaseType(value.dtype()) != dtypes_[i]) {
    return InvalidArgument("Tensor conversion requested dtype {} for Tensor with dtype {}: {}", NumpyName(dtypes_[i]),
                           NumpyName(BaseType(value.dtype())), name);
  }
  PartialShape shape = value.shape();
  if (many && shape.rank() == 0) return InvalidArgument("Shape () must have rank at least 1");
  if (many && shape.has_rank()) shape = PartialShape::Of(shape.dims().subspan(1));
  if (shape.CompatibleWith(shapes_[i])) return value;
  return InvalidArgument("Shapes {} and {} are incompatible", shape.ToTupleString(), shapes_[i].ToTupleString());
}

Operation QueueBase::Put(std::string_view op, std::string_view suffix, const QueueTuple& tuple, std::string_view name,
                         const Where& where) const {
  Graph& graph = GraphOf(handle_);
  if (!handle_.exists()) return Operation::Absent(graph);
  const auto fail = [&](const Status& status) {
    (void)graph.Fail(status.Append(" (" + Format(where) + ")"));
    return Operation::Absent(graph);
  };
  const Result<std::vector<Operand>> values = InOrder(tuple);
  if (!values.ok()) return fail(values.status());
  const AsDefault in(graph);
  const NameScope scope(NodeName(suffix, name), graph);
  std::vector<Operand> inputs = {handle_};
  for (size_t i = 0; i < values->size(); ++i) {
    const Result<Output> value = Component(i, (*values)[i], op == "QueueEnqueueManyV2");
    if (!value.ok()) return fail(value.status());
    if (!value->exists()) return Operation::Absent(graph);
    inputs.emplace_back(*value);
  }
  const std::string path = scope.path();
  return BuildOp(op, inputs, {}, path, where);
}

Operation QueueBase::Enqueue(const QueueTuple& values, std::string_view name, Where where) const {
  return Put("QueueEnqueueV2", "_enqueue", values, name, where);
}
Operation QueueBase::EnqueueMany(const QueueTuple& values, std::string_view name, Where where) const {
  return Put("QueueEnqueueManyV2", "_EnqueueMany", values, name, where);
}

List<Output> QueueBase::Take(std::string_view op, std::string_view suffix, const std::vector<Operand>& count,
                             std::string_view name, const Where& where) const {
  Graph& graph = GraphOf(handle_);
  if (!handle_.exists()) return AbsentValues(graph, static_cast<int64_t>(dtypes_.size()));
  const AsDefault in(graph);
  std::vector<Operand> inputs = {handle_};
  inputs.insert(inputs.end(), count.begin(), count.end());
  const Operation taken = BuildOp(op, inputs, {{"component_types", dtypes_}}, NodeName(suffix, name), where);
  List<Output> components = OutputsOr(taken, static_cast<int64_t>(dtypes_.size()));
  if (!taken.exists()) return components;
  int64_t rows = -1;
  if (op == "QueueDequeueManyV2" && count[0].is_literal() && count[0].literal().tensor.elements() == 1) {
    rows = static_cast<int64_t>(ElementAsDouble(count[0].literal().tensor, 0));
  }
  for (size_t i = 0; i < components.size(); ++i) {
    components[i].SetShape(count.empty() ? shapes_[i] : Behind(rows, shapes_[i]));
  }
  return components;
}

List<Output> QueueBase::Dequeue(std::string_view name, Where where) const {
  return Take("QueueDequeueV2", "_Dequeue", {}, name, where);
}
List<Output> QueueBase::DequeueMany(const Operand& n, std::string_view name, Where where) const {
  return Take("QueueDequeueManyV2", "_DequeueMany", {n}, name, where);
}
List<Output> QueueBase::DequeueUpTo(const Operand& n, std::string_view name, Where where) const {
  return Take("QueueDequeueUpToV2", "_DequeueUpTo", {n}, name, where);
}

NamedOutputs QueueBase::Named(const List<Output>& components) const {
  NamedOutputs named;
  for (size_t i = 0; i < names_.size(); ++i) named.emplace(names_[i], components[i]);
  return named;
}

Operation QueueBase::Close(bool cancel_pending_enqueues, std::string_view name, Where where) const {
  return BuildOp("QueueCloseV2", {handle_}, {{"cancel_pending_enqueues", cancel_pending_enqueues}},
                 NodeName("_Close", name), where);
}
Output QueueBase::IsClosed(std::string_view name, Where where) const {
  return BuildOp("QueueIsClosedV2", {handle_}, {}, NodeName("_Is_Closed", name), where).output(0);
}
Output QueueBase::Size(std::string_view name, Where where) const {
  return BuildOp("QueueSizeV2", {handle_}, {}, NodeName("_Size", name), where).output(0);
}

}  // namespace weir
