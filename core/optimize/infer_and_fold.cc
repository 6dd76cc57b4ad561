// Shape inference from the feeds' shapes and constant folding with the normal kernels, in one forward walk. Folded
// values are inputs of shape functions, and known shapes turn Shape, Size and Rank into constants.
#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "core/graph/frames.h"
#include "core/graph/rewriter.h"
#include "core/graph/stacks.h"
#include "core/optimize/passes_internal.h"
#include "core/tensor/buffer.h"
#include "core/tensor/common_shape.h"

namespace weir::optimize {
namespace {

using graph::Endpoint;
using graph::StepGraph;
using graph::StepNode;

/// The values of a shape query if the input shapes determine them, else empty. Also empty if the output type cannot
/// represent them: the error is reported at run time.
std::vector<Tensor> ShapeValues(const StepGraph& step, const StepNode& node) {
  const op::ShapeQueryFn query = node.source->op().traits.shape_query;
  std::vector<Tensor> values;
  if (query == nullptr) return values;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    Result<Tensor> value = query(step.ShapeOf(node.inputs[i]), static_cast<int>(i), node.types[i]);
    if (!value.ok() || !value->valid()) return {};
    values.push_back(std::move(*value));
  }
  return values;
}

bool IsConstant(const StepNode& node) { return node.source->op().traits.universal == op::Universal::kConstant; }

bool Foldable(const StepGraph& step, const StepNode& node) {
  const op::OpDef& op = node.source->op();
  if (op.MayDiffer() || op.run_by == op::RunBy::kExecutor || node.inputs.empty()) return false;
  const auto odd = [](DType t) { return IsRef(t) || t == DType::kResource || t == DType::kVariant; };
  if (std::any_of(node.types.begin(), node.types.end(), odd) || node.types.empty()) return false;
  return std::all_of(node.inputs.begin(), node.inputs.end(),
                     [&](const Endpoint& input) { return step.ValueOf(input) != nullptr; });
}

/// True if the node runs in every step regardless of its inputs: it has no control inputs, and each input is a constant
/// or, outside conds, has no known value. An input with a known value that is not a constant still waits for a node,
/// and so must this node.
bool RunsAlways(const StepGraph& step, const StepNode& node, int conds) {
  const auto any_time = [&](const Endpoint& e) {
    return step.node(e.node).kind == StepNode::Kind::kConstant || (conds == 0 && step.ValueOf(e) == nullptr);
  };
  return node.control_inputs.empty() && std::all_of(node.inputs.begin(), node.inputs.end(), any_time);
}

/// Sets known values. A node that always runs becomes a constant. Other nodes stay, since they are dead if their inputs
/// are, but need not be computed.
void SetValues(const StepGraph& step, graph::NodeId id, int conds, std::vector<Tensor> values,
               graph::Rewriter& rewriter) {
  rewriter.SetValues(id, std::move(values));
  if (RunsAlways(step, step.node(id), conds)) rewriter.MakeConstant(id);
}

/// Exceeds the Merges of any graph: a received value may be dead because of conds in another part.
constexpr int kUnknownConds = 1 << 20;

/// Switches minus Merges on the path to a node's outputs; if 0, the outputs are never dead.
int CondsAround(const StepGraph& step, const StepNode& node, const std::vector<int>& conds) {
  int around = 0;
  bool closes_loop = false;
  for (const Endpoint& input : node.inputs) {
    closes_loop = closes_loop || graph::IsBackEdge(step, node, input);
    if (!graph::IsBackEdge(step, node, input)) around = std::max(around, conds[static_cast<size_t>(input.node)]);
  }
  for (const graph::NodeId control : node.control_inputs) {
    around = std::max(around, conds[static_cast<size_t>(control)]);
  }
  switch (graph::FlowOf(node)) {
    case graph::Flow::kSwitch:
    case graph::Flow::kEnter:
      return around + 1;
    case graph::Flow::kMerge:
      return closes_loop ? around : std::max(around - 1, 0);
    case graph::Flow::kRecv:
      return kUnknownConds;
    case graph::Flow::kExit:  // leaves the loop through its Switch
      return std::max(around - 2, 0);
    default:
      return around;
  }
}

/// True if every shape compatible with `known` is compatible with `assumed`.
bool Implies(const PartialShape& known, const PartialShape& assumed) {
  const Result<PartialShape> both = known.Merge(assumed);
  return both.ok() && *both == known;
}

void InferNode(StepGraph& step, StepNode& node) {
  bool unchanged = true;
  for (size_t i = 0; i < node.inputs.size() && unchanged; ++i) {
    const Endpoint& input = node.inputs[i];
    unchanged = step.ShapeOf(input) == step.graph->ShapeOf(node.source->inputs()[i]) &&
                (step.ValueOf(input) == nullptr || IsConstant(step.node(input.node)));
  }
  if (unchanged) return;  // the graph's own inference already has the result
  std::vector<PartialShape> inputs;
  inputs.reserve(node.inputs.size());
  for (const Endpoint& input : node.inputs) inputs.push_back(step.ShapeOf(input));
  auto inferred = graph::InferShapes(*step.graph, *node.source, inputs,
                                     [&](int i) { return step.ValueOf(node.inputs[static_cast<size_t>(i)]); });
  if (!inferred.ok()) {
    // Shape errors caused by feeds are reported at run time by the op itself, since a cond may keep the op from running
    // at all.
    for (PartialShape& shape : node.shapes) shape = PartialShape();
    return;
  }
  bool holds = true;  // the graph's inference, made for input shapes at most as specific
  for (size_t i = 0; i < inputs.size(); ++i) {
    holds = holds && Implies(inputs[i], step.graph->ShapeOf(node.source->inputs()[i]));
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

Status Fold(const PassContext& context, const StepGraph& step, graph::NodeId id, int conds,
            graph::Rewriter& rewriter) {
  const StepNode& node = step.node(id);
  if (std::vector<Tensor> values = ShapeValues(step, node); !values.empty()) {
    SetValues(step, id, conds, std::move(values), rewriter);
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
  if (!values.ok()) return Status();  // the error is reported at run time
  if (PayloadBytes(*values) <= limit && values->size() == node.types.size()) {
    SetValues(step, id, conds, std::move(*values), rewriter);
  }
  return Status();
}

/// Uses the shape that the partitioner wrote on a Recv. Received values are checked against it.
void TakeWrittenShape(StepNode& node) {
  const Result<std::vector<PartialShape>> written = node.source->attrs().Shapes("_output_shapes");
  if (written.ok() && written->size() == 1) node.shapes[0] = (*written)[0];
}

/// Enter and Exit forward a tensor, but their shape functions promise less. A loop constant has one value in all
/// iterations.
void PassOn(const StepGraph& step, graph::NodeId id, StepNode& node, graph::Rewriter& rewriter) {
  const graph::Flow flow = graph::FlowOf(node);
  if (flow == graph::Flow::kRecv) return TakeWrittenShape(node);
  if (flow != graph::Flow::kEnter && flow != graph::Flow::kExit) return;
  Result<PartialShape> merged = node.shapes[0].Merge(step.ShapeOf(node.inputs[0]));
  if (merged.ok()) node.shapes[0] = std::move(*merged);
  if (flow != graph::Flow::kEnter) return;
  const Result<bool> constant = node.source->attrs().Bool("is_constant");
  const Tensor* const value = step.ValueOf(node.inputs[0]);
  if (constant.ok() && *constant && value != nullptr) rewriter.SetValues(id, {*value});
}

/// Assumed shapes of loop variables in all iterations, by Merge node.
using LoopShapes = std::map<graph::NodeId, PartialShape>;

/// Shapes of values popped from private stacks (core/graph/stacks.h): the dimensions that all pushes share. A push may
/// follow a pop in the step, so shapes are assumed before they are known.
class PopShapes {
 public:
  explicit PopShapes(const StepGraph& step) : stacks_(graph::FindPrivateStacks(step)), assumed_(stacks_.size()) {
    for (size_t s = 0; s < stacks_.size(); ++s) {
      for (const graph::NodeId pop : stacks_[s].pops) stack_of_.emplace(pop, s);
    }
  }

  /// Leaves nodes as they are that pop nothing, or something of a shape that is not known.
  void Infer(graph::NodeId id, StepNode& node) const {
    const auto stack = stack_of_.find(id);
    if (stack == stack_of_.end() || !assumed_[stack->second]) return;
    Result<PartialShape> merged = node.shapes[0].Merge(*assumed_[stack->second]);
    if (merged.ok()) node.shapes[0] = std::move(*merged);
  }

  enum class Verdict { kHold, kFirst, kWeaker };
  /// Compares assumptions with the shapes that they led to. kFirst: there is an assumption where there was none. Else
  /// assumptions that did not hold are generalised.
  Verdict Check(const StepGraph& step) {
    Verdict verdict = Verdict::kHold;
    for (size_t s = 0; s < stacks_.size(); ++s) {
      if (stacks_[s].pushes.empty() || stacks_[s].pops.empty()) continue;
      PartialShape common = step.ShapeOf({stacks_[s].pushes[0], 0});
      for (const graph::NodeId push : stacks_[s].pushes) common = CommonShape(common, step.ShapeOf({push, 0}));
      const bool first = !assumed_[s];
      if (first && !common.has_rank()) continue;  // it may be known once other stacks are
      if (!first) common = CommonShape(common, *assumed_[s]);
      if (!first && common == *assumed_[s]) continue;
      assumed_[s] = std::move(common);
      if (verdict != Verdict::kFirst) verdict = first ? Verdict::kFirst : Verdict::kWeaker;
    }
    return verdict;
  }

 private:
  const std::vector<graph::PrivateStack> stacks_;
  std::vector<std::optional<PartialShape>> assumed_;  // by stack
  std::map<graph::NodeId, size_t> stack_of_;          // by pop
};

/// Shape of a loop's Merge: the shape on entry, generalised by previous rounds. False for a Merge outside loops.
bool InferLoopMerge(const StepGraph& step, graph::NodeId id, StepNode& node, LoopShapes& assumed) {
  bool loops = false;
  PartialShape entered;
  bool first = true;
  for (const Endpoint& input : node.inputs) {
    if (graph::IsBackEdge(step, node, input)) {
      loops = true;
      continue;
    }
    entered = first ? step.ShapeOf(input) : CommonShape(entered, step.ShapeOf(input));
    first = false;
  }
  if (!loops) return false;
  const auto [found, fresh] = assumed.try_emplace(id, entered);
  if (!fresh) found->second = CommonShape(found->second, entered);  // an outer loop's shape may be more general now
  node.shapes[0] = found->second;
  return true;
}

/// Generalises the assumed shapes by those of NextIteration inputs; false if an assumption changed.
bool LoopsAgree(const StepGraph& step, LoopShapes& assumed) {
  bool agree = true;
  for (auto& [id, shape] : assumed) {
    const StepNode& node = step.node(id);
    for (const Endpoint& input : node.inputs) {
      if (!graph::IsBackEdge(step, node, input)) continue;
      PartialShape weaker = CommonShape(shape, step.ShapeOf(input));
      if (weaker == shape) continue;
      shape = std::move(weaker);
      agree = false;
    }
  }
  return agree;
}

Status Walk(const PassContext& context, const PopShapes& pops, StepGraph& step, LoopShapes& assumed) {
  std::vector<int> conds(step.nodes.size(), 0);
  graph::Rewriter rewriter(step);
  for (graph::NodeId id = 0; id < static_cast<graph::NodeId>(step.nodes.size()); ++id) {
    StepNode& node = rewriter.Visit(id);
    if (node.kind != StepNode::Kind::kOp) continue;
    int& around = conds[PositionOf(id)];
    around = CondsAround(step, node, conds);
    if (InferLoopMerge(step, id, node, assumed)) continue;
    if (IsConstant(node)) {
      Result<Tensor> value = node.source->attrs().TensorAttr("value");
      if (!value.ok()) return graph::AtNode(value.status(), *node.source);
      SetValues(step, id, around, {std::move(*value)}, rewriter);
      continue;
    }
    InferNode(step, node);
    PassOn(step, id, node, rewriter);
    pops.Infer(id, node);
    WEIR_TRY(Fold(context, step, id, around, rewriter));
  }
  (void)rewriter.Finish();  // nothing is erased
  return Status();
}

}  // namespace

Status InferAndFold(const PassContext& context, StepGraph& step) {
  LoopShapes assumed;
  PopShapes pops(step);
  if (step.frames.size() <= 1) return Walk(context, pops, step, assumed);
  // Terminates: each round makes at least one extent or rank of a loop variable or of a stack's elements unknown, but
  // for the first one that knows a stack's elements.
  for (;;) {
    StepGraph attempt = step;
    WEIR_TRY(Walk(context, pops, attempt, assumed));
    const PopShapes::Verdict verdict = pops.Check(attempt);
    if (verdict == PopShapes::Verdict::kFirst) {
      assumed.clear();  // loop variables are no more general than what is popped
      continue;
    }
    if (!LoopsAgree(attempt, assumed) || verdict != PopShapes::Verdict::kHold) continue;
    step = std::move(attempt);
    return Status();
  }
}

}  // namespace weir::optimize
