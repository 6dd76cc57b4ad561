#include "core/graph/rewriter.h"

#include <algorithm>
#include <utility>

namespace weir::graph {

IndexedVector<NodeId, int> CountUsers(const StepGraph& step) {
  IndexedVector<NodeId, int> users(step.nodes.size(), 0);
  for (const StepNode& node : step.nodes) {
    for (const Endpoint& input : node.inputs) ++users[input.node];
  }
  for (const Endpoint& fetch : step.fetches) ++users[fetch.node];
  for (const NodeId target : step.targets) ++users[target];
  return users;
}

namespace {

void AddStoodFor(const StepGraph& step, const Node* source, std::vector<const Node*>& nodes) {
  const auto is_it = [source](const MadeNode& made) { return made.node.get() == source; };
  const auto made = std::ranges::find_if(step.made, is_it);
  if (made == step.made.end()) return nodes.push_back(source);
  nodes.insert(nodes.end(), made->stands_for.begin(), made->stands_for.end());
}

}  // namespace

Rewriter::Edit& Rewriter::EditOf(NodeId id) {
  if (edit_of_.empty()) edit_of_.assign(step_.nodes.size(), -1);
  behind_ = behind_ || id + 1 < next_;
  int& edit = edit_of_[id];
  if (edit < 0) {
    edit = static_cast<int>(edits_.size());
    edits_.emplace_back();
  }
  return edits_[static_cast<size_t>(edit)];
}

NodeId Rewriter::Replaced(NodeId id) const {
  for (const Edit* edit = Find(id); edit != nullptr && edit->by >= 0; edit = Find(id)) id = edit->by;
  return id;
}

void Rewriter::RedirectControls(std::vector<NodeId>& controls) const {
  const auto bypassed = [this](NodeId id) {
    const Edit* const edit = Find(id);
    return edit != nullptr && edit->bypassed;
  };
  for (NodeId& control : controls) control = Replaced(control);
  if (std::none_of(controls.begin(), controls.end(), bypassed)) return;
  std::vector<NodeId> redirected;
  for (const NodeId id : controls) {
    if (bypassed(id)) {
      const std::vector<NodeId>& instead = Find(id)->controls;
      redirected.insert(redirected.end(), instead.begin(), instead.end());
    } else {
      redirected.push_back(id);
    }
  }
  std::sort(redirected.begin(), redirected.end());
  redirected.erase(std::unique(redirected.begin(), redirected.end()), redirected.end());
  controls = std::move(redirected);
}

void Rewriter::Redirect(StepNode& node) const {
  for (Endpoint& input : node.inputs) input.node = Replaced(input.node);
  if (!node.control_inputs.empty()) RedirectControls(node.control_inputs);
}

StepNode& Rewriter::Visit(NodeId id) {
  StepNode& node = step_.nodes[id];
  if (!edits_.empty()) Redirect(node);
  if (id == next_) ++next_;
  if (std::any_of(node.inputs.begin(), node.inputs.end(), [id](const Endpoint& e) { return e.node >= id; })) {
    back_edges_.push_back(id);
  }
  return node;
}

void Rewriter::SetValues(NodeId id, std::vector<Tensor> values) {
  StepNode& node = step_.nodes[id];
  for (size_t i = 0; i < values.size(); ++i) node.shapes[i] = values[i].shape();
  node.values = std::move(values);
}

void Rewriter::MakeConstant(NodeId id) {
  StepNode& node = step_.nodes[id];
  node.kind = StepNode::Kind::kConstant;
  node.inputs.clear();
  node.control_inputs.clear();
}

void Rewriter::Replace(NodeId id, NodeId by) { EditOf(id).by = by; }

bool Rewriter::Bypass(NodeId id, size_t most) {
  std::vector<NodeId> controls = step_.node(id).control_inputs;
  for (const Endpoint& input : step_.node(id).inputs) {
    if (step_.node(input.node).kind == StepNode::Kind::kOp) controls.push_back(input.node);
  }
  if (!edits_.empty()) RedirectControls(controls);
  std::sort(controls.begin(), controls.end());
  controls.erase(std::unique(controls.begin(), controls.end()), controls.end());
  if (controls.size() > most) return false;
  Edit& edit = EditOf(id);
  edit.controls = std::move(controls);
  edit.bypassed = true;
  return true;
}

Status Rewriter::StandFor(NodeId root, std::span<const NodeId> others, const op::OpDef& op, const op::AttrList& attrs) {
  StepNode& node = step_.nodes[root];
  MadeNode made;
  WEIR_ASSIGN(made.node, Node::InPlaceOf(*node.source, op, attrs));
  for (const NodeId id : others) {
    const StepNode& other = step_.node(id);
    AddStoodFor(step_, other.source, made.stands_for);
    node.control_inputs.insert(node.control_inputs.end(), other.control_inputs.begin(), other.control_inputs.end());
  }
  AddStoodFor(step_, node.source, made.stands_for);
  node.source = made.node.get();
  step_.made.push_back(std::move(made));
  return Status();
}

void Rewriter::Erase(NodeId id) {
  (void)Bypass(id);
  EditOf(id).erased = true;
}

IndexedVector<NodeId, NodeId> Rewriter::Finish() {
  if (edits_.empty()) return {};
  if (behind_ || next_ < step_.nodes.end_index()) {
    for (StepNode& node : step_.nodes) Redirect(node);
  } else {
    for (const NodeId id : back_edges_) Redirect(step_.nodes[id]);
  }
  for (Endpoint& fetch : step_.fetches) fetch.node = Replaced(fetch.node);
  for (NodeId& target : step_.targets) target = Replaced(target);
  IndexedVector<NodeId, bool> kept(step_.nodes.size(), true);
  bool moves = false;
  for (const NodeId id : edit_of_.indices()) {
    const Edit* const edit = Find(id);
    if (edit == nullptr || !edit->erased) continue;
    kept[id] = false;
    moves = true;
  }
  return moves ? Keep(step_, kept) : IndexedVector<NodeId, NodeId>();
}

}  // namespace weir::graph
