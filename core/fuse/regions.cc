#include "core/fuse/regions_internal.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/fuse/node_sets_internal.h"

namespace weir::fuse {
namespace {

using graph::Endpoint;
using graph::NodeId;
using graph::StepNode;

constexpr int64_t kLeastElements = 8192;  // fewer stay in the first cache between two ops
constexpr size_t kMostOps = 64;

class TileRules : public SetRules {
 public:
  explicit TileRules(const Scene& scene) : SetRules(2, kMostOps), scene_(scene) {}

  bool MayBeIn(NodeId id) const override {
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

  bool MayJoin(NodeId id, NodeId root, std::span<const NodeId> outside) const override {
    if (!outside.empty() || !MayBeIn(id)) return false;
    const StepNode &node = scene_.step.node(id), &last = scene_.step.node(root);
    return node.types[0] == last.types[0] && node.shapes[0] == last.shapes[0];
  }
  std::span<const Endpoint> OperandsOf(NodeId id) const override { return scene_.step.node(id).inputs; }

 private:
  /// A kernel of a device in host memory, without streams, that needs no operand in advance.
  bool HasKernel(NodeId id) const {
    const int number = scene_.DeviceOf(id);
    if (number < 0) return false;
    const device::Device& device = *scene_.options.devices->all()[PositionOf(number)];
    if (!device.host_memory() || device.has_streams()) return false;
    const auto kernels = scene_.options.kernels->Find(scene_.step.node(id).source->attrs(), device.info().platform);
    return std::ranges::any_of(kernels, [](const kernel::KernelEntry* entry) {
      return WEIR_HAS(entry->record, prepare) && entry->record->host_inputs == 0 &&
             (entry->record->flags & (WEIR_KERNEL_STATEFUL | WEIR_KERNEL_ASYNC)) == 0;
    });
  }

  const Scene& scene_;
};

Found FoundIn(const Scene& scene, NodeSet set, const op::OpDef& result) {
  Found found{&result, nullptr, set.nodes.back(), {}, std::move(set.inputs), {}};
  std::vector<std::string> ops;
  std::vector<int64_t> operands;
  for (size_t i = 0; i < set.nodes.size(); ++i) {
    ops.push_back(scene.step.node(set.nodes[i]).source->op().name);
    operands.insert(operands.end(), set.operands[i].begin(), set.operands[i].end());
  }
  const StepNode& root = scene.step.node(found.root);
  found.attrs = {{"Tin", std::vector<DType>(found.inputs.size(), root.types[0])},
                 {"Tout", std::vector<DType>{root.types[0]}},
                 {"shapes", std::vector<PartialShape>{root.shapes[0]}},
                 {"ops", std::move(ops)},
                 {"operands", std::move(operands)}};
  set.nodes.pop_back();
  found.inner = std::move(set.nodes);
  return found;
}

}  // namespace

std::vector<Found> FindRegions(const Scene& scene, const op::OpDef& result) {
  std::vector<Found> all;
  for (NodeSet& set : FindSets(scene, ReadersOf(scene.step), TileRules(scene))) {
    all.push_back(FoundIn(scene, std::move(set), result));
  }
  return all;
}

}  // namespace weir::fuse
