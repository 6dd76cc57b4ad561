// Ranking of the kernels that compete for a node.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "core/plan/plan.h"

namespace weir::plan {
namespace {

double OrElse(double value, double fallback) { return std::isfinite(value) && value > 0 ? value : fallback; }

/// Roofline time in ns of a declared cost on a device that declared `profile` (which may be null).
double TimeOf(const weir_cost& cost, const weir_profile* profile, DType dtype) {
  if (std::isfinite(cost.whole_ns)) return cost.whole_ns;
  const auto type = std::min<uint32_t>(static_cast<uint32_t>(dtype), 31);
  const auto kind = std::min<uint32_t>(cost.cost_class, 15);
  double peak = 1, bandwidth = 10, launch = 0;
  if (profile != nullptr) {
    peak = OrElse(profile->peak_flops_per_ns[type], 1) * OrElse(profile->compute_efficiency[kind], 1);
    bandwidth = OrElse(profile->bandwidth_bytes_per_ns, 10) * OrElse(profile->memory_efficiency[kind], 1);
    launch = OrElse(profile->launch_ns, 0);
  }
  const double compute = OrElse(cost.flops, 0) / peak;
  const double memory = OrElse(cost.bytes, 0) / bandwidth;
  return launch + OrElse(cost.fixed_ns, 0) + std::max(compute, memory);
}

/// What a record without `estimate` says: its class, work per element of the largest operand, bytes moved.
weir_cost DeclaredCost(const weir_kernel& record, std::span<const kernel::OperandSpec> inputs,
                       std::span<const kernel::OperandSpec> outputs) {
  weir_cost cost{};
  cost.struct_size = sizeof(cost);
  cost.cost_class = record.cost_class;
  cost.whole_ns = cost.fixed_ns = std::numeric_limits<double>::quiet_NaN();
  double largest = 0;
  for (const auto operands : {inputs, outputs}) {
    for (const kernel::OperandSpec& operand : operands) {
      const double elements = static_cast<double>(operand.shape.elements());
      largest = std::max(largest, elements);
      cost.bytes += elements * static_cast<double>(SizeOf(operand.dtype));
    }
  }
  cost.flops = OrElse(record.flops_per_element, 1) * largest;
  return cost;
}

/// What the kernel estimates for these operands, else what its record says.
weir_cost CostOf(const kernel::KernelEntry& entry, const weir_node& node, std::span<const kernel::OperandSpec> inputs,
                 std::span<const kernel::OperandSpec> outputs, weir_device* device, const weir_profile* profile) {
  if (!WEIR_HAS(entry.record, estimate)) return DeclaredCost(*entry.record, inputs, outputs);
  Result<weir_cost> cost = kernel::Estimate(entry, node, inputs, outputs, device, profile);
  return cost.ok() ? *cost : DeclaredCost(*entry.record, inputs, outputs);
}

}  // namespace

double DeclaredNanoseconds(const kernel::KernelEntry& entry, const weir_node& node,
                           std::span<const kernel::OperandSpec> inputs, std::span<const kernel::OperandSpec> outputs,
                           bool shapes_known, device::Device& device) {
  constexpr double kUndeclared = 1e6, kUnknownShapes = 1e3;
  const weir_kernel& record = *entry.record;
  const bool declares =
      WEIR_HAS(&record, estimate) || record.flops_per_element > 0 || (record.flags & WEIR_KERNEL_INLINE_CHEAP) != 0;
  if (!declares) return kUndeclared;
  if (!shapes_known) return kUnknownShapes;
  Result<weir_device*> open = device.Open();
  if (!open.ok()) return kUnknownShapes;
  const weir_profile* profile = device.profile();
  const DType dtype = !outputs.empty() ? outputs[0].dtype : !inputs.empty() ? inputs[0].dtype : DType::kFloat;
  return TimeOf(CostOf(entry, node, inputs, outputs, *open, profile), profile, dtype);
}

std::vector<const kernel::KernelEntry*> RankKernels(const kernel::KernelRegistry& kernels, const weir_node& node,
                                                    std::span<const kernel::OperandSpec> inputs,
                                                    std::span<const kernel::OperandSpec> outputs, bool shapes_known,
                                                    device::Device& device, const kernel::Calibration* calibration) {
  std::vector<const kernel::KernelEntry*> found = kernels.Find(node.attrs, device.info().platform);
  if (!shapes_known || found.size() < 2) return found;
  Result<weir_device*> open = device.Open();
  if (!open.ok()) return found;
  const weir_profile* profile = device.profile();
  const DType dtype = !outputs.empty() ? outputs[0].dtype : !inputs.empty() ? inputs[0].dtype : DType::kFloat;
  std::vector<std::pair<double, const kernel::KernelEntry*>> timed;
  for (const kernel::KernelEntry* entry : found) {
    if (!kernel::Supports(*entry, node, inputs, outputs, *open).ok()) continue;
    timed.emplace_back(TimeOf(CostOf(*entry, node, inputs, outputs, *open, profile), profile, dtype), entry);
  }
  if (calibration != nullptr) {
    std::vector<std::string> plugins;
    for (const auto& [time, entry] : timed) plugins.push_back(entry->plugin);
    const std::vector<double> measured = calibration->Times(node.attrs, inputs, plugins);
    for (size_t i = 0; i < measured.size(); ++i) timed[i].first = measured[i];
  }
  std::stable_sort(timed.begin(), timed.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<const kernel::KernelEntry*> ranked;
  for (const auto& [time, entry] : timed) ranked.push_back(entry);
  return ranked;
}

}  // namespace weir::plan
