#include "core/graph/stacks.h"

#include <map>

#include "core/base/errors.h"
#include "core/graph/frames.h"
#include "core/op/attrs.h"

namespace weir::graph {
namespace {

using op::StackRole;

class Finder {
 public:
  explicit Finder(const StepGraph& step) : step_(step) {}

  std::vector<PrivateStack> Run() {
    for (size_t i = 0; i < step_.nodes.size(); ++i) {
      const StepNode& node = step_.nodes[i];
      if (RoleOf(node) == StackRole::kMake) {
        Begin(static_cast<NodeId>(i), node);
      } else if (!stack_of_.empty()) {
        Visit(static_cast<NodeId>(i), node);
      }
    }
    for (const Endpoint& fetch : step_.fetches) Escape(StackAt(fetch));
    std::vector<PrivateStack> found;
    for (size_t s = 0; s < stacks_.size(); ++s) {
      if (!escaped_[s]) found.push_back(std::move(stacks_[s]));
    }
    return found;
  }

 private:
  static StackRole RoleOf(const StepNode& node) {
    return node.kind == StepNode::Kind::kOp ? node.source->op().traits.stack : StackRole::kNone;
  }

  /// Of a constant, also before the step has its values.
  Result<Tensor> ValueOf(const Endpoint& e) const {
    if (const Tensor* const known = step_.ValueOf(e)) return *known;
    const StepNode& node = step_.node(e.node);
    const bool constant =
        node.kind == StepNode::Kind::kOp && node.source->op().traits.universal == op::Universal::kConstant;
    return constant ? node.source->attrs().TensorAttr("value") : Result<Tensor>(NotFound("no constant"));
  }

  /// -1 for any other value.
  int StackAt(const Endpoint& handle) const {
    const auto found = stack_of_.find(handle.node);
    return found == stack_of_.end() ? -1 : found->second;
  }

  void Escape(int stack) {
    if (stack >= 0) escaped_[static_cast<size_t>(stack)] = true;
  }

  void Begin(NodeId id, const StepNode& node) {
    const Result<Tensor> most = ValueOf(node.inputs[0]);
    const Result<DType> type = node.source->attrs().Type("elem_type");
    if (!most.ok() || most->dtype() != DType::kInt32 || most->shape().rank() != 0 || !type.ok()) return;
    stack_of_.emplace(id, static_cast<int>(stacks_.size()));
    PrivateStack& stack = stacks_.emplace_back();
    stack.make = id;
    stack.most = most->as<int32_t>()[0];
    types_.push_back(*type);
    escaped_.push_back(false);
  }

  void Visit(NodeId id, const StepNode& node) {
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const int stack = StackAt(node.inputs[i]);
      if (stack < 0) continue;
      const auto s = static_cast<size_t>(stack);
      const StackRole role = i == 0 ? RoleOf(node) : StackRole::kNone;
      if (role == StackRole::kPush && step_.TypeOf(node.inputs[1]) == types_[s]) {
        stacks_[s].pushes.push_back(id);
      } else if (role == StackRole::kPop && node.types[0] == types_[s]) {
        stacks_[s].pops.push_back(id);
      } else if (i == 0 && HandsOn(node)) {
        stack_of_.emplace(id, stack);
      } else {
        Escape(stack);
      }
    }
  }

  /// All outputs are the first input.
  static bool HandsOn(const StepNode& node) {
    const Flow flow = FlowOf(node);
    if (flow == Flow::kSwitch || flow == Flow::kEnter) return true;
    return node.kind == StepNode::Kind::kOp && node.source->op().traits.passes_value && node.inputs.size() == 1;
  }

  const StepGraph& step_;
  std::map<NodeId, int> stack_of_;  // nodes whose outputs are the handle of a stack
  // By stack.
  std::vector<PrivateStack> stacks_;
  std::vector<DType> types_;
  std::vector<bool> escaped_;
};

}  // namespace

std::vector<PrivateStack> FindPrivateStacks(const StepGraph& step) {
  if (step.frames.size() <= 1) return {};
  return Finder(step).Run();
}

}  // namespace weir::graph
