#include "core/fuse/regions_internal.h"

#include <algorithm>
#include <map>
#include <queue>
#include <string>
#include <utility>

namespace weir::fuse {
namespace {

using graph::Endpoint;
using graph::NodeId;
using graph::StepNode;

constexpr int64_t kLeastElements = 8192;  // fewer stay in the first cache between two ops
constexpr size_t kMostOps = 64;

class RegionFinder {
 public:
  RegionFinder(const Scene& scene, const op::OpDef& result) : scene_(scene), result_(result) {}

  std::vector<Found> Find() {
    const auto count = static_cast<NodeId>(scene_.step.nodes.size());
    IndexedVector<NodeId, char> taken(static_cast<size_t>(count), 0);
    std::vector<Found> all;
    for (NodeId id = count - 1; id >= 0; --id) {
      if (taken[id] != 0 || !MayBeIn(id)) continue;
      std::vector<NodeId> members = Grow(id, taken);
      if (members.size() < 2) continue;
      for (const NodeId member : members) taken[member] = 1;
      all.push_back(MakeFound(std::move(members)));
    }
    return all;
  }

 private:
  bool MayBeIn(NodeId id) const {
    const StepNode& node = scene_.step.node(id);
    if (node.kind != StepNode::Kind::kOp || !node.values.empty() || node.types.size() != 1) return false;
    const op::OpDef& op = node.source->op();
    const bool real = node.types[0] == DType::kFloat || node.types[0] == DType::kDouble;
    if (!op.traits.elementwise || op.attrs.size() != 1 || !real) return false;
    const PartialShape& shape = node.shapes[0];
    if (!shape.fully_defined() || shape.elements() < kLeastElements) return false;
    const bool fits = std::ranges::all_of(node.inputs, [&](const Endpoint& input) {
      const PartialShape& other = scene_.step.ShapeOf(input);
      return IsPlain(scene_.step, input) && scene_.step.TypeOf(input) == node.types[0] &&
             (other == shape || other.elements() == 1);
    });
    return fits && HasKernel(id);
  }

  /// A kernel of a device in host memory, without streams, that needs no operand in advance.
  bool HasKernel(NodeId id) const {
    const int number = scene_.DeviceOf(id);
    if (number < 0) return false;
    const device::Device& device = *scene_.options.devices->all()[static_cast<size_t>(number)];
    if (!device.host_memory() || device.has_streams()) return false;
    const auto kernels = scene_.options.kernels->Find(scene_.step.node(id).source->attrs(), device.info().platform);
    return std::ranges::any_of(kernels, [](const kernel::KernelEntry* entry) {
      return WEIR_HAS(entry->record, prepare) && entry->record->host_inputs == 0 &&
             (entry->record->flags & (WEIR_KERNEL_STATEFUL | WEIR_KERNEL_ASYNC)) == 0;
    });
  }

  bool Belongs(NodeId id, const StepNode& root, int device) const {
    const StepNode& node = scene_.step.node(id);
    return scene_.DeviceOf(id) == device && node.frame == root.frame && MayBeIn(id) && node.types[0] == root.types[0] &&
           node.shapes[0] == root.shapes[0];
  }

  /// The region that ends with `root`, ascending. A node is looked at after all its users, which have larger ids.
  std::vector<NodeId> Grow(NodeId root, const IndexedVector<NodeId, char>& taken) const {
    const StepNode& last = scene_.step.node(root);
    const int device = scene_.DeviceOf(root);
    std::map<NodeId, int> uses;
    std::priority_queue<NodeId> next;
    std::vector<NodeId> members = {root};
    const auto use_inputs = [&](const StepNode& node) {
      for (const Endpoint& input : node.inputs) {
        if (input.index == 0 && ++uses[input.node] == 1) next.push(input.node);
      }
    };
    use_inputs(last);
    while (!next.empty() && members.size() < kMostOps) {
      const NodeId id = next.top();
      next.pop();
      if (taken[id] != 0 || uses[id] != scene_.users[id] || !Belongs(id, last, device)) continue;
      members.push_back(id);
      use_inputs(scene_.step.node(id));
    }
    std::ranges::sort(members);
    return members;
  }

  Found MakeFound(std::vector<NodeId> members) const {
    Found found{&result_, nullptr, members.back(), {}, {}, {}};
    std::map<NodeId, size_t> position;
    for (size_t i = 0; i < members.size(); ++i) position[members[i]] = i;
    const auto input_number = [&](const Endpoint& value) {
      const auto at = std::ranges::find(found.inputs, value);
      if (at != found.inputs.end()) return static_cast<int64_t>(at - found.inputs.begin());
      found.inputs.push_back(value);
      return static_cast<int64_t>(found.inputs.size()) - 1;
    };
    for (const NodeId id : members) {
      for (const Endpoint& value : scene_.step.node(id).inputs) {
        if (!position.contains(value.node)) (void)input_number(value);
      }
    }
    std::vector<std::string> ops;
    std::vector<int64_t> operands;
    for (const NodeId id : members) {
      const StepNode& node = scene_.step.node(id);
      ops.push_back(node.source->op().name);
      for (const Endpoint& value : node.inputs) {
        const auto inner = position.find(value.node);
        operands.push_back(inner == position.end() ? input_number(value)
                                                   : static_cast<int64_t>(found.inputs.size() + inner->second));
      }
    }
    const StepNode& root = scene_.step.node(found.root);
    found.attrs = {{"Tin", std::vector<DType>(found.inputs.size(), root.types[0])},
                   {"Tout", std::vector<DType>{root.types[0]}},
                   {"shapes", std::vector<PartialShape>{root.shapes[0]}},
                   {"ops", std::move(ops)},
                   {"operands", std::move(operands)}};
    members.pop_back();
    found.inner = std::move(members);
    return found;
  }

  const Scene& scene_;
  const op::OpDef& result_;
};

}  // namespace

std::vector<Found> FindRegions(const Scene& scene, const op::OpDef& result) {
  return RegionFinder(scene, result).Find();
}

}  // namespace weir::fuse
