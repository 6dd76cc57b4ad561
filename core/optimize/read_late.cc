// Values of reference variables are read again for users that follow a write, as if they shared the variable's memory.
#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "core/graph/frames.h"
#include "core/graph/order.h"
#include "core/optimize/passes_internal.h"

namespace weir::optimize {
namespace {

using graph::Endpoint;
using graph::NodeId;
using graph::StepGraph;
using graph::StepNode;

/// The node hands its only input on as its only output.
bool HandsOn(const StepNode& node) {
  return node.kind == StepNode::Kind::kOp && node.inputs.size() == 1 && node.types.size() == 1 &&
         node.source->op().traits.universal == op::Universal::kForward;
}

/// The contents of a variable as the output of a node.
struct Read {
  NodeId variable = -1;  // -1: the node is no read
  Endpoint reference;    // to the variable
  bool waits = false;    // for control inputs
};

/// Input `position` of node `user`, which must be read after writes.
struct LateUse {
  NodeId user = -1;
  size_t position = 0;
  auto operator<=>(const LateUse&) const = default;
};

class LateReader {
 public:
  explicit LateReader(StepGraph& step)
      : step_(step), variable_of_(step.nodes.size(), -1), reads_(step.nodes.size()) {}

  void Run() {
    for (const NodeId id : step_.nodes.indices()) Classify(id);
    DropUnread();
    if (writes_.empty()) return;
    FetchLast();
    for (size_t begin = 0; begin < writes_.size(); begin += kBlock) FindLateUses(begin);
    if (!late_.empty()) Insert();
  }

 private:
  static constexpr size_t kBlock = 64;

  /// The variable that a reference goes to, as far as it is the same in every run; else -1.
  NodeId VariableOf(Endpoint reference) const {
    return reference.index == 0 && IsRef(step_.TypeOf(reference)) ? variable_of_[reference.node] : -1;
  }

  void Classify(NodeId id) {
    const StepNode& node = step_.node(id);
    if (node.kind != StepNode::Kind::kOp || node.types.empty()) return;
    const op::OpDef& op = node.source->op();
    if (op.traits.universal == op::Universal::kVariable && IsRef(node.types[0])) {
      variable_of_[id] = id;
    } else if (IsRef(node.types[0]) && op.run_by != op::RunBy::kExecutor && !node.inputs.empty()) {
      variable_of_[id] = VariableOf(node.inputs[0]);
    } else if (HandsOn(node) && node.frame == graph::kStepFrame) {
      const Endpoint from = node.inputs[0];
      const bool direct = IsRef(step_.TypeOf(from));
      reads_[id] = direct ? Read{VariableOf(from), from, false} : reads_[from.node];
      reads_[id].waits |= !node.control_inputs.empty();
      if (reads_[id].variable >= 0) read_.insert(reads_[id].variable);
    }
    if (!graph::WritesVariable(step_, node)) return;
    for (const Endpoint& input : node.inputs) {
      if (const NodeId variable = VariableOf(input); variable >= 0) writes_.emplace_back(id, variable);
    }
  }

  /// Forgets writes of variables that are not read.
  void DropUnread() {
    std::erase_if(writes_, [this](const auto& write) { return !read_.contains(write.second); });
  }

  void FetchLast() {
    std::set<NodeId> written;
    for (const auto& [id, variable] : writes_) written.insert(variable);
    for (Endpoint& fetch : step_.fetches) {
      const Read& read = reads_[fetch.node];
      if (!read.waits && written.contains(read.variable)) fetch = read.reference;
    }
  }

  /// For writes [begin, begin + kBlock): users of a read that follow a write which the read does not follow.
  void FindLateUses(size_t begin) {
    std::map<NodeId, uint64_t> writes_of;  // by variable and by node
    std::map<NodeId, uint64_t> writes_by;
    for (size_t i = begin; i < std::min(begin + kBlock, writes_.size()); ++i) {
      writes_of[writes_[i].second] |= uint64_t{1} << (i - begin);
      writes_by[writes_[i].first] |= uint64_t{1} << (i - begin);
    }
    IndexedVector<NodeId, uint64_t> after(step_.nodes.size(), 0);
    for (const NodeId id : step_.nodes.indices()) {
      const StepNode& node = step_.node(id);
      for (const Endpoint& input : node.inputs) {
        if (input.node < id) after[id] |= after[input.node];
      }
      for (const NodeId control : node.control_inputs) after[id] |= after[control];
      if (after[id] != 0 && node.frame == graph::kStepFrame && graph::FlowOf(node) != graph::Flow::kMerge) {
        for (size_t i = 0; i < node.inputs.size(); ++i) {
          const Read& read = reads_[node.inputs[i].node];
          const auto writes = writes_of.find(read.variable);
          if (read.variable >= 0 && writes != writes_of.end()) {
            Note({id, i}, writes->second & ~after[node.inputs[i].node], after);
          }
        }
      }
      if (const auto by = writes_by.find(id); by != writes_by.end()) after[id] |= by->second;
    }
  }

  /// `use` waits for the inputs of its user that follow one of `writes`.
  void Note(LateUse use, uint64_t writes, const IndexedVector<NodeId, uint64_t>& after) {
    const StepNode& user = step_.node(use.user);
    const auto wait = [&](NodeId input) {
      if ((after[input] & writes) != 0) late_[use].push_back(input);
    };
    for (const Endpoint& input : user.inputs) wait(input.node);
    for (const NodeId control : user.control_inputs) wait(control);
  }

  /// A read of the reference for the use; ids are those of the step without new nodes.
  StepNode NewRead(const LateUse& use, std::vector<NodeId> waits) const {
    const NodeId from = step_.node(use.user).inputs[use.position].node;
    StepNode read = step_.node(from);
    read.inputs = {reads_[from].reference};
    if (reads_[from].waits) waits.push_back(from);
    std::ranges::sort(waits);
    waits.erase(std::unique(waits.begin(), waits.end()), waits.end());
    read.control_inputs = std::move(waits);
    return read;
  }

  void Insert() {
    IndexedVector<NodeId, NodeId> new_id(step_.nodes.size(), -1);
    IndexedVector<NodeId, StepNode> nodes;
    std::vector<std::pair<LateUse, NodeId>> uses;
    auto next = late_.begin();
    for (const NodeId id : step_.nodes.indices()) {
      for (; next != late_.end() && next->first.user == id; ++next) {
        uses.emplace_back(next->first, nodes.end_index());
        nodes.push_back(NewRead(next->first, std::move(next->second)));
      }
      new_id[id] = nodes.end_index();
      nodes.push_back(step_.node(id));
    }
    for (StepNode& node : nodes) {
      for (Endpoint& input : node.inputs) input.node = new_id[input.node];
      for (NodeId& control : node.control_inputs) control = new_id[control];
    }
    for (const auto& [use, read] : uses) nodes[new_id[use.user]].inputs[use.position] = {read, 0};
    for (Endpoint& fetch : step_.fetches) fetch.node = new_id[fetch.node];
    for (NodeId& target : step_.targets) target = new_id[target];
    step_.nodes = std::move(nodes);
  }

  StepGraph& step_;
  IndexedVector<NodeId, NodeId> variable_of_;      // of a reference
  IndexedVector<NodeId, Read> reads_;              // by node
  std::set<NodeId> read_;                          // variables
  std::vector<std::pair<NodeId, NodeId>> writes_;  // node, variable
  std::map<LateUse, std::vector<NodeId>> late_;    // with the inputs of the user that it waits for
};

}  // namespace

Status ReadLate(const PassContext&, StepGraph& step) {
  LateReader(step).Run();
  return Status();
}

}  // namespace weir::optimize
