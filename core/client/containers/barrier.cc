#include "core/client/containers/barrier.h"

#include <algorithm>

#include "core/base/errors.h"
#include "core/client/graph/scopes.h"
#include "core/client/ops/build_op.h"
#include "core/tensor/number.h"

namespace weir {
namespace {

Output MakeBarrier(const std::vector<DType>& types, const BarrierOptions& options, const Where& where) {
  Graph& graph = Graph::Default();
  const auto fail = [&](const Status& status) {
    (void)graph.Fail(status.Append(" (" + Format(where) + ")"));
    return Output::Absent(graph);
  };
  if (!options.shapes.empty() && options.shapes.size() != types.size()) {
    return fail(InvalidArgument("Barrier shapes must have the same length as types, received {} and {}",
                                options.shapes.size(), types.size()));
  }
  for (const PartialShape& shape : options.shapes) {
    if (shape.fully_defined()) continue;
    return fail(InvalidArgument("All shapes must be fully defined: {}", shape.ToTupleString()));
  }
  std::vector<PartialShape> shapes = options.shapes;
  shapes.resize(types.size());
  return BuildOp("Barrier", {},
                 {{"component_types", types}, {"shapes", shapes}, {"shared_name", options.shared_name}},
                 options.name.empty() ? "barrier" : options.name, where)
      .output(0);
}

}  // namespace

Barrier::Barrier(std::vector<DType> types, const BarrierOptions& options, Where where)
    : handle_(MakeBarrier(types, options, where)), types_(std::move(types)), shapes_(options.shapes) {
  shapes_.resize(types_.size());
}

Operation Barrier::Build(std::string_view op, const std::vector<Operand>& operands, op::AttrList attrs,
                         std::string_view name, const Where& where) const {
  Graph& graph = GraphOf(handle_);
  if (!handle_.exists()) return Operation::Absent(graph);
  const AsDefault in(graph);
  std::vector<Operand> inputs = {handle_};
  inputs.insert(inputs.end(), operands.begin(), operands.end());
  const std::string own = this->name();
  const std::string usual = own.substr(own.rfind('/') + 1) + "_" + std::string(op);
  return BuildOp(op, inputs, std::move(attrs), name.empty() ? std::string_view(usual) : name, where);
}

Operation Barrier::InsertMany(int64_t component_index, const Operand& keys, const Operand& values,
                              std::string_view name, Where where) const {
  const bool there = component_index >= 0 && component_index < static_cast<int64_t>(types_.size());
  op::AttrList attrs = {{"component_index", component_index}};
  // A literal takes the type of its component.
  if (there && values.is_literal()) attrs.emplace_back("T", types_[static_cast<size_t>(component_index)]);
  return Build("BarrierInsertMany", {keys, values}, std::move(attrs), name, where);
}

BarrierTuples Barrier::TakeMany(const Operand& num_elements, bool allow_small_batch, std::string_view name,
                                Where where) const {
  const Operation taken = Build("BarrierTakeMany", {num_elements},
                                {{"component_types", types_}, {"allow_small_batch", allow_small_batch}}, name, where);
  const List<Output> outputs = OutputsOr(taken, static_cast<int64_t>(types_.size()) + 2);
  BarrierTuples tuples{outputs[0], outputs[1], {}};
  for (size_t i = 0; i < types_.size(); ++i) tuples.values.push_back(outputs[i + 2]);
  if (!taken.exists()) return tuples;
  int64_t rows = -1;
  if (!allow_small_batch && num_elements.is_literal() && num_elements.literal().tensor.elements() == 1) {
    rows = static_cast<int64_t>(ElementAsDouble(num_elements.literal().tensor, 0));
  }
  tuples.indices.SetShape(PartialShape::Of({rows}));
  tuples.keys.SetShape(PartialShape::Of({rows}));
  for (size_t i = 0; i < types_.size(); ++i) {
    if (!shapes_[i].has_rank()) continue;
    std::vector<int64_t> dims = {rows};
    dims.insert(dims.end(), shapes_[i].dims().begin(), shapes_[i].dims().end());
    tuples.values[i].SetShape(PartialShape::Of(dims));
  }
  return tuples;
}

Operation Barrier::Close(bool cancel_pending_enqueues, std::string_view name, Where where) const {
  return Build("BarrierClose", {}, {{"cancel_pending_enqueues", cancel_pending_enqueues}}, name, where);
}
Output Barrier::ReadySize(std::string_view name, Where where) const {
  return OutputsOr(Build("BarrierReadySize", {}, {}, name, where), 1)[0];
}
Output Barrier::IncompleteSize(std::string_view name, Where where) const {
  return OutputsOr(Build("BarrierIncompleteSize", {}, {}, name, where), 1)[0];
}

}  // namespace weir
