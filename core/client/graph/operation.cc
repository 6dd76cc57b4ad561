// Output and Operation: handles to what a graph has, and to what it has not.
#include <fmt/format.h>

#include <utility>

#include "core/base/errors.h"
#include "core/client/graph/graph.h"
#include "core/client/graph/graph_internal.h"

namespace weir {
namespace {

/// What Operation::node refers to where there is none.
const graph::Node& NoNode() {
  static const graph::Definition* const kGraph = [] {
    static const op::OpRegistry kNoOps;
    auto* graph = new graph::Definition(kNoOps);  // for what is destroyed at exit, too
    graph::NodeSpec none;
    none.name = "None";
    none.op = &graph->AddForeignOp("None", 0);
    (void)graph->Add(std::move(none));
    return graph;
  }();
  return kGraph->node(0);
}

}  // namespace

Output Output::Absent(Graph& graph) { return {&graph, {Internals(graph).LatestError(), 0}}; }
Operation Operation::Absent(Graph& graph) { return {&graph, Internals(graph).LatestError()}; }
bool Output::exists() const { return graph_ != nullptr && Internals(*graph_).definition.Has(endpoint_); }
bool Operation::exists() const { return graph_ != nullptr && Internals(*graph_).definition.Has(id_); }
Operation Output::op() const { return {graph_, endpoint_.node}; }
std::string Output::name() const {
  return exists() ? graph::FullEndpointName(Internals(*graph_).definition, endpoint_) : "";
}
DType Output::dtype() const { return exists() ? Internals(*graph_).definition.TypeOf(endpoint_) : DType::kInvalid; }
PartialShape Output::shape() const {
  return exists() ? Internals(*graph_).definition.ShapeOf(endpoint_) : PartialShape();
}

void Output::SetShape(const PartialShape& shape) const {
  if (!exists()) return;
  const Status valid = shape.Check();
  (void)graph_->Fail(valid.ok() ? Internals(*graph_).definition.RefineShape(endpoint_, shape) : valid);
}

Result<std::vector<int64_t>> AsList(const PartialShape& shape) {
  if (!shape.has_rank()) return InvalidArgument("as_list() is not defined on an unknown TensorShape.");
  return std::vector<int64_t>(shape.dims().begin(), shape.dims().end());
}

std::string Output::ToString() const {
  if (!exists()) return "None";
  const PartialShape known = shape();
  const std::string device = op().device();
  return fmt::format("Tensor(\"{}\"{}, dtype={}{})", name(), known.has_rank() ? ", shape=" + known.ToTupleString() : "",
                     NumpyName(dtype()), device.empty() ? "" : ", device=" + device);
}

std::string Output::DebugString() const {
  return exists()
             ? fmt::format("<tf.Tensor '{}' shape={} dtype={}>", name(), shape().ToTupleString(), NumpyName(dtype()))
             : "None";
}

const graph::Node& Operation::node() const { return exists() ? Internals(*graph_).definition.node(id_) : NoNode(); }
std::string Operation::name() const { return exists() ? node().name() : ""; }
std::string Operation::type() const { return exists() ? node().op().name : ""; }
std::string Operation::device() const { return exists() ? node().device() : ""; }
int Operation::num_outputs() const { return exists() ? node().num_outputs() : 0; }

Output Operation::output(int i, std::source_location where) const {
  if (!exists()) return {graph_, {id_, 0}};
  if (i >= 0 && i < num_outputs()) return {graph_, {id_, i}};
  (void)graph_->Fail(OutOfRange("Operation '{}' ({}) has no output {}: it has {} ({})", name(), type(), i,
                                num_outputs(), Format(where))
                         .WithNode(name(), node().origin()));
  return Output::Absent(*graph_);
}

List<Output> Operation::outputs() const {
  List<Output> all({}, Output(graph_, {}));
  for (int i = 0; i < num_outputs(); ++i) all.push_back(output(i));
  return all;
}

List<Output> Operation::inputs() const {
  List<Output> all({}, Output(graph_, {}));
  for (const graph::Endpoint& input : node().inputs()) all.emplace_back(graph_, input);
  return all;
}

List<Operation> Operation::control_inputs() const {
  List<Operation> all({}, Operation(graph_, -1));
  for (const graph::NodeId control : node().control_inputs()) all.emplace_back(graph_, control);
  return all;
}

std::string Operation::ToString() const {
  return exists() ? fmt::format("<tf.Operation '{}' type={}>", name(), type()) : "None";
}

}  // namespace weir
