#include "core/fuse/node_sets_internal.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <queue>
#include <set>
#include <utility>

namespace weir::fuse {
namespace {

using graph::Endpoint;
using graph::NodeId;

class SetFinder {
 public:
  SetFinder(const Scene& scene, const Readers& readers, const SetRules& rules)
      : scene_(scene), readers_(readers), rules_(rules), taken_(scene.step.nodes.size(), 0) {}

  std::vector<NodeSet> Find() {
    std::vector<NodeSet> all;
    for (auto id = static_cast<NodeId>(taken_.size()) - 1; id >= 0; --id) {
      if (taken_[id] != 0 || !rules_.MayBeIn(id)) continue;
      std::vector<NodeId> members = Grow(id);
      if (members.size() < rules_.least) continue;
      for (const NodeId member : members) taken_[member] = 1;
      all.push_back(Connect(std::move(members)));
    }
    return all;
  }

 private:
  /// The set that ends with `root`, ascending. A node is looked at after all its readers, which have larger ids.
  std::vector<NodeId> Grow(NodeId root) const {
    std::set<NodeId> members = {root}, seen;
    std::priority_queue<NodeId> next;
    const auto look_at_operands = [&](NodeId id) {
      for (const Endpoint& operand : rules_.OperandsOf(id)) {
        if (operand.index == 0 && seen.insert(operand.node).second) next.push(operand.node);
      }
    };
    look_at_operands(root);
    while (!next.empty() && members.size() < rules_.most) {
      const NodeId id = next.top();
      next.pop();
      const bool together =
          scene_.DeviceOf(id) == scene_.DeviceOf(root) && scene_.step.node(id).frame == scene_.step.node(root).frame;
      if (taken_[id] != 0 || !together) continue;
      std::vector<NodeId> outside;
      std::ranges::copy_if(readers_[id], std::back_inserter(outside),
                           [&](NodeId reader) { return !members.contains(reader); });
      if (!rules_.MayJoin(id, root, outside)) continue;
      members.insert(id);
      look_at_operands(id);
    }
    return {members.begin(), members.end()};
  }

  NodeSet Connect(std::vector<NodeId> members) const {
    NodeSet made;
    std::map<NodeId, size_t> position;
    for (const NodeId id : members) position.emplace(id, position.size());
    std::map<Endpoint, uint32_t> number;  // of an input
    for (const NodeId id : members) {
      for (const Endpoint& value : rules_.OperandsOf(id)) {
        if (position.contains(value.node)) continue;
        if (number.emplace(value, static_cast<uint32_t>(number.size())).second) made.inputs.push_back(value);
      }
    }
    for (const NodeId id : members) {
      std::vector<uint32_t>& operands = made.operands.emplace_back();
      for (const Endpoint& value : rules_.OperandsOf(id)) {
        const auto inner = position.find(value.node);
        operands.push_back(inner == position.end() ? number.at(value)
                                                   : static_cast<uint32_t>(made.inputs.size() + inner->second));
      }
    }
    made.nodes = std::move(members);
    return made;
  }

  const Scene& scene_;
  const Readers& readers_;
  const SetRules& rules_;
  IndexedVector<NodeId, char> taken_;
};

}  // namespace

Readers ReadersOf(const graph::StepGraph& step) {
  Readers readers(step.nodes.size());
  const auto count = static_cast<NodeId>(step.nodes.size());
  for (NodeId id = 0; id < count; ++id) {
    for (const Endpoint& input : step.node(id).inputs) readers[input.node].push_back(id);
  }
  for (const Endpoint& fetch : step.fetches) readers[fetch.node].push_back(-1);
  for (const NodeId target : step.targets) readers[target].push_back(-1);
  return readers;
}

std::vector<NodeSet> FindSets(const Scene& scene, const Readers& readers, const SetRules& rules) {
  return SetFinder(scene, readers, rules).Find();
}

}  // namespace weir::fuse
