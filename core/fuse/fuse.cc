#include "core/fuse/fuse.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "core/graph/frames.h"

namespace weir::fuse {
namespace {

using graph::Endpoint;
using graph::NodeId;
using graph::StepGraph;
using graph::StepNode;

/// A value, neither a reference nor a handle: nobody changes it while the step works.
bool IsValue(DType type) { return !IsRef(type) && type != DType::kResource; }

class Fuser {
 public:
  Fuser(const device::DeviceSet& devices, const kernel::KernelRegistry& kernels, StepGraph& step,
        graph::Placement& placement)
      : devices_(devices), kernels_(kernels), step_(step), placement_(placement) {}

  Status Run() {
    for (const StepNode& node : step_.nodes) candidates_ = candidates_ || IsDescent(node);
    if (!candidates_) return Status();
    CountReaders();
    kept_.assign(step_.nodes.size(), true);
    instead_.resize(step_.nodes.size());
    for (size_t i = 0; i < step_.nodes.size(); ++i) WEIR_TRY(FuseDescent(static_cast<NodeId>(i)));
    for (StepNode& node : step_.nodes) RewireControls(node.control_inputs);
    const std::vector<NodeId> moved = graph::Keep(step_, kept_);
    for (size_t i = 0; i < moved.size(); ++i) {
      if (moved[i] >= 0) placement_.device_of[static_cast<size_t>(moved[i])] = placement_.device_of[i];
    }
    placement_.device_of.resize(step_.nodes.size());
    return Status();
  }

 private:
  static bool IsDescent(const StepNode& node) {
    return node.is_op("ApplyGradientDescent") || node.is_op("ResourceApplyGradientDescent");
  }

  /// Inputs that lead from each node, fetches and targets included.
  void CountReaders() {
    readers_.assign(step_.nodes.size(), 0);
    const auto read = [&](NodeId id) { ++readers_[static_cast<size_t>(id)]; };
    for (const StepNode& node : step_.nodes) {
      for (const Endpoint& input : node.inputs) read(input.node);
    }
    for (const Endpoint& fetch : step_.fetches) read(fetch.node);
    for (const NodeId target : step_.targets) read(target);
  }
  bool HasOneReader(NodeId id) const { return readers_[static_cast<size_t>(id)] == 1; }

  /// The shape of the variable that a step changes; unknown unless the op that names it is the direct input.
  PartialShape VariableShape(const StepNode& descent) const {
    const StepNode& variable = step_.node(descent.inputs[0].node);
    if (!variable.is_op("VarHandleOp")) return step_.ShapeOf(descent.inputs[0]);
    const Result<PartialShape> declared = variable.source->attrs().ShapeAttr("shape");
    return declared.ok() ? *declared : PartialShape();
  }

  /// Whether a product may become part of a step: the conditions of Fuse, but for the kernel.
  bool Belong(NodeId descent_id, NodeId product_id) const {
    const StepNode &descent = step_.node(descent_id), &product = step_.node(product_id);
    if (!product.is_op("MatMul") || !HasOneReader(product_id)) return false;
    const int device = placement_.device_of[static_cast<size_t>(descent_id)];
    if (device < 0 || device != placement_.device_of[static_cast<size_t>(product_id)]) return false;
    if (descent.frame != product.frame) return false;
    // A control edge from what reads a Switch says which way was taken; one from the Switch itself would not.
    const auto plain = [&](const Endpoint& input) {
      return IsValue(step_.TypeOf(input)) && step_.ShapeOf(input).fully_defined() &&
             graph::FlowOf(step_.node(input.node)) != graph::Flow::kSwitch;
    };
    if (!std::all_of(product.inputs.begin(), product.inputs.end(), plain) || !plain(descent.inputs[1])) return false;
    const PartialShape variable = VariableShape(descent);
    return step_.ShapeOf(descent.inputs[1]).rank() == 0 && variable.fully_defined() && variable == product.shapes[0];
  }

  /// The node that makes a gradient, behind the Identity nodes that TensorFlow's gradients put after it to order all
  /// gradients of one op; `between` gets those.
  NodeId MakerOf(NodeId descent, std::vector<NodeId>* between) const {
    const auto beside = [&](NodeId id) {
      return step_.node(id).frame == step_.node(descent).frame &&
             placement_.device_of[static_cast<size_t>(id)] == placement_.device_of[static_cast<size_t>(descent)];
    };
    NodeId at = step_.node(descent).inputs[2].node;
    while (step_.node(at).is_op("Identity") && HasOneReader(at) && beside(at)) {
      between->push_back(at);
      at = step_.node(at).inputs[0].node;
    }
    return at;
  }

  /// Removes a node without effects; who waits for it waits for what it waited for.
  void Remove(NodeId id) {
    std::vector<NodeId>& instead = instead_[static_cast<size_t>(id)];
    instead = step_.node(id).control_inputs;
    for (const Endpoint& input : step_.node(id).inputs) {
      if (step_.node(input.node).kind == StepNode::Kind::kOp) instead.push_back(input.node);
    }
    kept_[static_cast<size_t>(id)] = false;
    RewireControls(instead);
  }
  void RewireControls(std::vector<NodeId>& controls) const {
    const auto removed = [&](NodeId id) { return !kept_[static_cast<size_t>(id)]; };
    if (std::none_of(controls.begin(), controls.end(), removed)) return;
    std::vector<NodeId> rewired;
    for (const NodeId id : controls) {
      const std::vector<NodeId>& instead = instead_[static_cast<size_t>(id)];
      if (removed(id)) {
        rewired.insert(rewired.end(), instead.begin(), instead.end());
      } else {
        rewired.push_back(id);
      }
    }
    std::sort(rewired.begin(), rewired.end());
    rewired.erase(std::unique(rewired.begin(), rewired.end()), rewired.end());
    controls = std::move(rewired);
  }

  Status FuseDescent(NodeId id) {
    StepNode& descent = step_.nodes[static_cast<size_t>(id)];
    if (!IsDescent(descent)) return Status();
    std::vector<NodeId> between;
    const NodeId product_id = MakerOf(id, &between);
    if (!Belong(id, product_id)) return Status();
    const StepNode& product = step_.node(product_id);
    const bool resource = descent.is_op("ResourceApplyGradientDescent");
    const op::OpDef* const fused =
        step_.graph->ops().Find(resource ? "_ResourceApplyGradientDescentMatMul" : "_ApplyGradientDescentMatMul");
    if (fused == nullptr) return Status();
    op::AttrList attrs;
    for (const char* flag : {"transpose_a", "transpose_b"}) {
      WEIR_ASSIGN(const bool set, product.source->attrs().Bool(flag));
      attrs.emplace_back(flag, set);
    }
    WEIR_ASSIGN(const DType type, descent.source->attrs().Type("T"));
    WEIR_ASSIGN(const bool locking, descent.source->attrs().Bool("use_locking"));
    attrs.emplace_back("T", type);
    attrs.emplace_back("use_locking", locking);
    const int device = placement_.device_of[static_cast<size_t>(id)];
    const std::string& platform = devices_.all()[static_cast<size_t>(device)]->info().platform;
    if (kernels_.Find(op::AttrView(*fused, attrs), platform).empty()) return Status();
    graph::MadeNode made;
    WEIR_ASSIGN(made.node, graph::Node::InPlaceOf(*descent.source, *fused, std::move(attrs)));
    between.push_back(product_id);
    for (auto node = between.rbegin(); node != between.rend(); ++node) {
      made.stands_for.push_back(step_.node(*node).source);
    }
    made.stands_for.push_back(descent.source);
    descent.source = made.node.get();
    step_.made.push_back(std::move(made));
    descent.inputs = {descent.inputs[0], descent.inputs[1], product.inputs[0], product.inputs[1]};
    for (const NodeId node : between) {
      const std::vector<NodeId>& controls = step_.node(node).control_inputs;
      descent.control_inputs.insert(descent.control_inputs.end(), controls.begin(), controls.end());
    }
    for (auto node = between.rbegin(); node != between.rend(); ++node) Remove(*node);  // what comes first, first
    return Status();
  }

  const device::DeviceSet& devices_;
  const kernel::KernelRegistry& kernels_;
  StepGraph& step_;
  graph::Placement& placement_;
  bool candidates_ = false;
  std::vector<int> readers_;  // by node
  std::vector<bool> kept_;
  std::vector<std::vector<NodeId>> instead_;  // of removed nodes: what those who waited for it wait for
};

}  // namespace

Status Fuse(const device::DeviceSet& devices, const kernel::KernelRegistry& kernels, StepGraph& step,
            graph::Placement& placement) {
  return Fuser(devices, kernels, step, placement).Run();
}

}  // namespace weir::fuse
