// Shape inference for the fed shapes, and constant folding through the normal kernels, in one forward walk: folded
// values feed shape functions, and shapes that became known turn Shape, Size and Rank into constants.
#include <algorithm>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "core/graph/frames.h"
#include "core/graph/shape_values.h"
#include "core/optimize/passes_internal.h"

namespace weir::optimize {
namespace {

using graph::Endpoint;
using graph::StepGraph;
using graph::StepNode;

/// Values of Shape, ShapeN, Size and Rank when the input shapes say them; else nothing, as where the output type cannot
/// hold them: the step will say so when it gets there.
std::vector<Tensor> ShapeValues(const StepGraph& step, const StepNode& node) {
  const std::string_view op = node.source->op().name;
  std::vector<Tensor> values;
  if (!graph::AsksForShape(op)) return values;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const PartialShape& shape = step.ShapeOf(node.inputs[i]);
    // A rank is known before the extents are.
    const bool only_rank = op == "Rank" && shape.has_rank();
    Result<Shape> known =
        only_rank ? Shape::Make(std::vector<int64_t>(static_cast<size_t>(shape.rank()), 0)) : shape.ToShape();
    if (!known.ok()) return {};
    Result<Tensor> value = graph::ShapeValue(op, static_cast<int>(i), *known, node.types[i]);
    if (!value.ok()) return {};
    values.push_back(std::move(*value));
  }
  return values;
}

bool Foldable(const StepGraph& step, const StepNode& node) {
  const op::OpDef& op = node.source->op();
  if (op.stateful || op.run_by == op::RunBy::kExecutor || node.inputs.empty() || !node.control_inputs.empty())
    return false;
  if (op.name == "Placeholder" || op.name == "Variable" || op.name == "VariableV2") return false;
  const auto odd = [](DType t) { return IsRef(t) || t == DType::kResource || t == DType::kVariant; };
  if (std::any_of(node.types.begin(), node.types.end(), odd) || node.types.empty()) return false;
  return std::all_of(node.inputs.begin(), node.inputs.end(),
                     [&](const Endpoint& input) { return step.ValueOf(input) != nullptr; });
}

void MakeConstant(StepNode& node, std::vector<Tensor> values) {
  node.kind = StepNode::Kind::kConstant;
  for (size_t i = 0; i < values.size(); ++i) node.shapes[i] = values[i].shape();
  node.values = std::move(values);
  node.inputs.clear();
}

/// True when whatever fits `known` fits `assumed` too.
bool Implies(const PartialShape& known, const PartialShape& assumed) {
  const Result<PartialShape> both = known.Merge(assumed);
  return both.ok() && *both == known;
}

void InferNode(StepGraph& step, StepNode& node) {
  std::vector<PartialShape> inputs;
  inputs.reserve(node.inputs.size());
  bool unchanged = true;
  bool holds = true;  // the graph's inference, whose operands had these shapes or less certain ones
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const Endpoint& input = node.inputs[i];
    inputs.push_back(step.ShapeOf(input));
    const Endpoint& original = node.source->inputs()[i];
    const PartialShape& assumed = step.graph->ShapeOf(original);
    holds = holds && Implies(inputs.back(), assumed);
    unchanged = unchanged && inputs.back() == assumed &&
                (step.ValueOf(input) == nullptr || step.node(input.node).source->op().name == "Const");
  }
  if (unchanged) return;  // the graph's own inference said it already
  auto inferred = graph::InferShapes(*step.graph, *node.source, inputs,
                                     [&](int i) { return step.ValueOf(node.inputs[static_cast<size_t>(i)]); });
  if (!inferred.ok()) {
    // What is wrong with what is fed is said by the run, in the words of the op, and only if it gets there: a cond may
    // be what keeps the op from such operands.
    for (PartialShape& shape : node.shapes) shape = PartialShape();
    return;
  }
  for (size_t i = 0; i < inferred->size(); ++i) {
    Result<PartialShape> merged = holds ? node.shapes[i].Merge((*inferred)[i]) : std::move((*inferred)[i]);
    node.shapes[i] = merged.ok() ? std::move(*merged) : std::move((*inferred)[i]);
  }
}

uint64_t PayloadBytes(const std::vector<Tensor>& values) {
  uint64_t bytes = 0;
  for (const Tensor& value : values) bytes += value.bytes();
  return bytes;
}

Status Fold(const PassContext& context, StepGraph& step, StepNode& node) {
  if (std::vector<Tensor> values = ShapeValues(step, node); !values.empty() && node.control_inputs.empty()) {
    MakeConstant(node, std::move(values));
    return Status();
  }
  if (!context.options.constant_folding || context.evaluator == nullptr || !Foldable(step, node)) return Status();
  std::vector<Tensor> inputs;
  for (const Endpoint& input : node.inputs) inputs.push_back(*step.ValueOf(input));
  const uint64_t limit = std::max(context.options.max_folded_bytes, PayloadBytes(inputs));
  for (size_t i = 0; i < node.shapes.size(); ++i) {
    const auto size = static_cast<double>(std::max<size_t>(SizeOf(node.types[i]), 1));
    if (static_cast<double>(node.shapes[i].elements()) * size > static_cast<double>(limit)) return Status();
  }
  Result<std::vector<Tensor>> values = context.evaluator->Evaluate(*node.source, inputs);
  if (!values.ok()) return Status();  // the step will say what is wrong when it gets there
  if (PayloadBytes(*values) <= limit && values->size() == node.types.size()) MakeConstant(node, std::move(*values));
  return Status();
}

/// What enters or leaves a loop is the same tensor on both sides, though these ops' own shape functions promise less.
void PassShapeOn(const StepGraph& step, StepNode& node) {
  const graph::Flow flow = graph::FlowOf(node);
  if (flow != graph::Flow::kEnter && flow != graph::Flow::kExit) return;
  Result<PartialShape> merged = node.shapes[0].Merge(step.ShapeOf(node.inputs[0]));
  if (merged.ok()) node.shapes[0] = std::move(*merged);
}

/// The weakest shape that both are: dims that differ become unknown.
PartialShape Common(const PartialShape& a, const PartialShape& b) {
  if (!a.has_rank() || !b.has_rank() || a.rank() != b.rank()) return PartialShape();
  std::vector<int64_t> dims(a.dims().begin(), a.dims().end());
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] != b.dims()[i]) dims[i] = -1;
  }
  return PartialShape::Of(dims);
}

/// Shapes that the variables of loops are taken to have in every iteration, by Merge node.
using LoopShapes = std::map<graph::NodeId, PartialShape>;

/// A loop's Merge: the shape with which the loop is entered, as far as the previous rounds found it to stay.
bool InferLoopMerge(const StepGraph& step, graph::NodeId id, StepNode& node, LoopShapes& assumed) {
  bool loops = false;
  PartialShape entered;
  bool first = true;
  for (const Endpoint& input : node.inputs) {
    if (graph::IsBackEdge(step, node, input)) {
      loops = true;
      continue;
    }
    entered = first ? step.ShapeOf(input) : Common(entered, step.ShapeOf(input));
    first = false;
  }
  if (!loops) return false;
  const auto [found, fresh] = assumed.try_emplace(id, entered);
  if (!fresh) found->second = Common(found->second, entered);  // another loop's variable may enter, weaker by now
  node.shapes[0] = found->second;
  return true;
}

/// Weakens what was assumed by what the iterations give back; false when that changed something.
bool LoopsAgree(const StepGraph& step, LoopShapes& assumed) {
  bool agree = true;
  for (auto& [id, shape] : assumed) {
    const StepNode& node = step.node(id);
    for (const Endpoint& input : node.inputs) {
      if (!graph::IsBackEdge(step, node, input)) continue;
      PartialShape weaker = Common(shape, step.ShapeOf(input));
      if (weaker == shape) continue;
      shape = std::move(weaker);
      agree = false;
    }
  }
  return agree;
}

Status Walk(const PassContext& context, StepGraph& step, LoopShapes& assumed) {
  for (size_t i = 0; i < step.nodes.size(); ++i) {
    StepNode& node = step.nodes[i];
    if (node.kind != StepNode::Kind::kOp) continue;
    if (InferLoopMerge(step, static_cast<graph::NodeId>(i), node, assumed)) continue;
    if (node.source->op().name == "Const" && node.control_inputs.empty()) {
      Result<Tensor> value = node.source->attrs().TensorAttr("value");
      if (!value.ok()) return graph::AtNode(value.status(), *node.source);
      MakeConstant(node, {std::move(*value)});
      continue;
    }
    InferNode(step, node);
    PassShapeOn(step, node);
    WEIR_TRY(Fold(context, step, node));
  }
  return Status();
}

}  // namespace

Status InferAndFold(const PassContext& context, StepGraph& step) {
  LoopShapes assumed;
  if (step.frames.size() <= 1) return Walk(context, step, assumed);
  // Each round weakens at least one dim of one loop variable, so there are few.
  for (;;) {
    StepGraph attempt = step;
    WEIR_TRY(Walk(context, attempt, assumed));
    if (!LoopsAgree(attempt, assumed)) continue;
    step = std::move(attempt);
    return Status();
  }
}

}  // namespace weir::optimize
