// Printing and verification of a step.
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "core/base/errors.h"
#include "core/graph/frames.h"
#include "core/graph/placement.h"
#include "core/graph/step_graph.h"

namespace weir::graph {
namespace {

constexpr int64_t kValuesShown = 6;

std::string EndpointText(const StepGraph& step, const Endpoint& e) {
  const std::string_view name = step.node(e.node).name();
  return e.index == 0 ? std::string(name) : fmt::format("{}:{}", name, e.index);
}

std::string OperandsText(const StepGraph& step, const StepNode& node) {
  std::string text;
  const auto add = [&text](const std::string& operand) { text += (text.empty() ? "" : ", ") + operand; };
  for (const Endpoint& input : node.inputs) add(EndpointText(step, input));
  for (const NodeId control : node.control_inputs) add("^" + std::string(step.node(control).name()));
  return text;
}

/// Explicit attributes, without tensors and without types that the operands and results show.
std::string AttrsText(const Node& node) {
  std::string text;
  for (const auto& [name, value] : node.attrs().explicit_values()) {
    const op::AttrDef* const def = node.op().FindAttr(name);
    const bool tells = def != nullptr && def->type != "type" && def->type != "list(type)" && def->type != "tensor";
    if (tells && !(value == def->default_value)) text += fmt::format(" {}={}", name, value.ToString());
  }
  return text;
}

/// " on GPU:0"
std::string WhereText(const Placement* placement, size_t node) {
  const int device = placement == nullptr ? -1 : placement->device_of[node];
  if (device < 0) return {};
  const std::string& name = placement->devices[static_cast<size_t>(device)];
  const size_t colon = name.rfind("device:");
  return " on " + (colon == std::string::npos ? name : name.substr(colon + 7));
}

/// " for product, step": the nodes that a node outside the graph replaces.
std::string ReplacedText(const StepGraph& step, const Node* source) {
  const auto is_it = [source](const MadeNode& made) { return made.node.get() == source; };
  const auto made = std::ranges::find_if(step.made, is_it);
  std::string text;
  if (made == step.made.end()) return text;
  for (const Node* const node : made->stands_for) text += (text.empty() ? " for " : ", ") + node->name();
  return text;
}

std::string NodeText(const StepGraph& step, const StepNode& node, const Placement* placement) {
  std::string text = std::string(node.name()) + " = ";
  switch (node.kind) {
    case StepNode::Kind::kFeed:
      text += fmt::format("feed {}", node.feed);
      break;
    case StepNode::Kind::kConstant:
      text += "constant";
      break;
    case StepNode::Kind::kOp:
      text += fmt::format("{}({}){}", node.source->op().name, OperandsText(step, node), AttrsText(*node.source));
      if (!node.source->device().empty()) text += " @" + node.source->device();
      if (node.frame > kStepFrame) text += " in " + step.frames[node.frame].name;
      text += WhereText(placement, static_cast<size_t>(&node - step.nodes.data()));
      text += ReplacedText(step, node.source);
      break;
  }
  for (size_t i = 0; i < node.types.size(); ++i) {
    text += fmt::format("{} {} {}", i == 0 ? " ->" : ",", Name(node.types[i]), node.shapes[i].ToString());
    if (!node.values.empty()) text += " " + node.values[i].SummarizeValues(kValuesShown);
  }
  return text;
}

class Verifier {
 public:
  explicit Verifier(const StepGraph& step) : step_(step) {}

  Status Run() const {
    for (const NodeId id : step_.nodes.indices()) WEIR_TRY(CheckNode(id));
    for (const Endpoint& fetch : step_.fetches) {
      if (!Exists(fetch))
        return Internal("a fetch is output {} of node {}, which is not there", fetch.index, fetch.node);
    }
    for (const NodeId target : step_.targets) {
      if (!IsNode(target)) return Internal("a target is node {}, which is not there", target);
    }
    return Status();
  }

 private:
  bool IsNode(NodeId id) const { return id >= 0 && step_.nodes.Has(id); }
  bool Exists(const Endpoint& e) const {
    return IsNode(e.node) && e.index >= 0 && static_cast<size_t>(e.index) < step_.node(e.node).types.size();
  }

  Status CheckNode(NodeId id) const {
    const StepNode& node = step_.node(id);
    if (node.source == nullptr) return Internal("node {} has no source node", id);
    if (node.shapes.size() != node.types.size()) {
      return Internal("'{}' has {} types and {} shapes", node.name(), node.types.size(), node.shapes.size());
    }
    for (const Endpoint& input : node.inputs) {
      if (!Exists(input)) return Internal("'{}' reads output {} of node {}", node.name(), input.index, input.node);
      if (input.node >= id && !IsBackEdge(step_, node, input)) {
        return Internal("'{}' reads '{}', which comes later", node.name(), step_.node(input.node).name());
      }
    }
    for (const NodeId control : node.control_inputs) {
      if (!IsNode(control) || control >= id) {
        return Internal("'{}' waits for node {}, which does not come before it", node.name(), control);
      }
    }
    if (node.kind == StepNode::Kind::kConstant && !node.inputs.empty()) {
      return Internal("constant '{}' has {} inputs", node.name(), node.inputs.size());
    }
    if (node.kind != StepNode::Kind::kConstant) WEIR_TRY(CheckOp(node));
    return node.kind == StepNode::Kind::kConstant || !node.values.empty() ? CheckValues(node) : Status();
  }

  Status CheckOp(const StepNode& node) const {
    if (node.kind == StepNode::Kind::kFeed) {
      return node.feed >= 0 && node.types.size() == 1 ? Status() : Internal("'{}' is not a valid feed", node.name());
    }
    if (node.types.size() != node.source->output_types().size()) {
      return Internal("'{}' has {} outputs, its op {}", node.name(), node.types.size(), node.source->num_outputs());
    }
    if (!node.frame.valid() || node.frame.position() >= step_.frame_count()) {
      return Internal("'{}' is in frame {}, which is not there", node.name(), node.frame.number());
    }
    return Status();
  }

  Status CheckValues(const StepNode& node) const {
    if (node.values.size() != node.types.size()) {
      return Internal("'{}' has {} values and {} outputs", node.name(), node.values.size(), node.types.size());
    }
    for (size_t i = 0; i < node.values.size(); ++i) {
      const Result<PartialShape> both = node.shapes[i].Merge(node.values[i].shape());
      if (node.values[i].dtype() == BaseType(node.types[i]) && both.ok()) continue;
      return Internal("value {} of '{}' is {} {}, wanted {} {}", i, node.name(), Name(node.values[i].dtype()),
                      node.values[i].shape().ToString(), Name(node.types[i]), node.shapes[i].ToString());
    }
    return Status();
  }

  const StepGraph& step_;
};

}  // namespace

std::string ToString(const StepGraph& step, const Placement* placement) {
  std::string text;
  for (const StepNode& node : step.nodes) text += NodeText(step, node, placement) + "\n";
  for (const Endpoint& fetch : step.fetches) text += "fetch " + EndpointText(step, fetch) + "\n";
  for (const NodeId target : step.targets) text += "run " + std::string(step.node(target).name()) + "\n";
  return text;
}

Status Verify(const StepGraph& step) { return Verifier(step).Run(); }

}  // namespace weir::graph
