#include <algorithm>
#include <utility>

#include "core/op/equal_attrs.h"
#include "core/plan/bound_kernels_internal.h"

namespace weir::plan {
namespace {

/// The memory of an operand's constant, which identifies it; else null.
const void* MemoryOf(const kernel::OperandSpec& spec) { return spec.value == nullptr ? nullptr : spec.value->raw(); }

/// An empty constant has no memory to identify it; one on a device is not visible to kernels.
bool Tellable(const kernel::OperandSpec& spec) { return spec.value == nullptr || spec.value->raw() != nullptr; }

bool CanShare(const graph::Node& node, const BoundKernels::Operands& operands) {
  return !node.op().stateful && std::ranges::all_of(operands.inputs, Tellable);
}

bool Alike(std::span<const kernel::OperandSpec> a, std::span<const kernel::OperandSpec> b) {
  return std::ranges::equal(a, b, [](const kernel::OperandSpec& x, const kernel::OperandSpec& y) {
    return x.dtype == y.dtype && x.variable == y.variable && x.shape == y.shape;
  });
}

uint64_t HashOfOperands(const graph::Node& node, DeviceId device, const BoundKernels::Operands& operands) {
  uint64_t hash = reinterpret_cast<uintptr_t>(&node.op());
  const auto add = [&hash](uint64_t number) {
    hash = (hash ^ number) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 32;
  };
  add(static_cast<uint64_t>(device.number()));
  for (const auto& side : {operands.inputs, operands.outputs}) {
    for (const kernel::OperandSpec& spec : side) {
      add(static_cast<uint64_t>(spec.dtype));
      add(reinterpret_cast<uintptr_t>(MemoryOf(spec)));
      for (const int64_t dim : spec.shape.dims()) add(static_cast<uint64_t>(dim));
    }
  }
  return hash;
}

}  // namespace

bool BoundKernels::Same(const Entry& entry, const graph::Node& node, DeviceId device, const Operands& operands) {
  if (&entry.node->op() != &node.op() || entry.device != device) return false;
  if (!Alike(entry.inputs, operands.inputs) || !Alike(entry.outputs, operands.outputs)) return false;
  for (size_t i = 0; i < operands.inputs.size(); ++i) {
    if (entry.values[i] != MemoryOf(operands.inputs[i])) return false;
  }
  return op::EqualAttrs(entry.node->attrs(), node.attrs());
}

const BoundKernels::Bound* BoundKernels::Find(const graph::Node& node, DeviceId device,
                                              const Operands& operands) const {
  if (!CanShare(node, operands)) return nullptr;
  const auto [begin, end] = entries_.equal_range(HashOfOperands(node, device, operands));
  const auto found = std::find_if(begin, end, [&](const auto& e) { return Same(e.second, node, device, operands); });
  return found == end ? nullptr : &found->second.bound;
}

void BoundKernels::Add(const graph::Node& node, DeviceId device, const Operands& operands, Bound bound) {
  if (!CanShare(node, operands)) return;
  Entry entry{&node, device, {}, {}, {}, bound};
  entry.inputs.assign(operands.inputs.begin(), operands.inputs.end());
  entry.outputs.assign(operands.outputs.begin(), operands.outputs.end());
  for (kernel::OperandSpec& input : entry.inputs) {
    entry.values.push_back(MemoryOf(input));
    input.value = nullptr;  // borrowed for the call only
  }
  entries_.emplace(HashOfOperands(node, device, operands), std::move(entry));
}

}  // namespace weir::plan
