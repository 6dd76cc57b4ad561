// Ranks the kernels that can run a node.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "core/kernel/roofline.h"
#include "core/plan/plan.h"

namespace weir::plan {
namespace {

/// The kernel's estimate for these operands, otherwise the record's declared work.
weir_cost CostOf(const kernel::KernelEntry& entry, const weir_node& node, std::span<const kernel::OperandSpec> inputs,
                 std::span<const kernel::OperandSpec> outputs, weir_device* device, const weir_profile* profile) {
  if (!WEIR_HAS(entry.record, estimate)) return kernel::DeclaredWork(*entry.record, inputs, outputs);
  Result<weir_cost> cost = kernel::Estimate(entry, node, inputs, outputs, device, profile);
  return cost.ok() ? *cost : kernel::DeclaredWork(*entry.record, inputs, outputs);
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
  return kernel::RooflineNs(CostOf(entry, node, inputs, outputs, *open, profile), profile, dtype);
}

void AddDeclined(const kernel::KernelEntry& entry, const Status& why, std::string* declined) {
  if (declined == nullptr) return;
  *declined += fmt::format("{}kernel {} of {}: {}", declined->empty() ? "" : "; ", kernel::Text(entry.record->op),
                           entry.plugin, why.message());
}

std::vector<const kernel::KernelEntry*> RankKernels(const std::vector<const kernel::KernelEntry*>& kernels,
                                                    const weir_node& node, std::span<const kernel::OperandSpec> inputs,
                                                    std::span<const kernel::OperandSpec> outputs,
                                                    device::Device& device, const kernel::Calibration* calibration,
                                                    std::string* declined) {
  const auto asks = [](const kernel::KernelEntry* entry) { return WEIR_HAS(entry->record, supports); };
  if (kernels.size() < 2 && std::none_of(kernels.begin(), kernels.end(), asks)) return kernels;
  Result<weir_device*> open = device.Open();
  if (!open.ok()) return kernels;
  const weir_profile* profile = device.profile();
  const DType dtype = !outputs.empty() ? outputs[0].dtype : !inputs.empty() ? inputs[0].dtype : DType::kFloat;
  std::vector<std::pair<double, const kernel::KernelEntry*>> timed;
  for (const kernel::KernelEntry* entry : kernels) {
    if (const Status supported = kernel::Supports(*entry, node, inputs, outputs, *open); !supported.ok()) {
      AddDeclined(*entry, supported, declined);
      continue;
    }
    timed.emplace_back(kernel::RooflineNs(CostOf(*entry, node, inputs, outputs, *open, profile), profile, dtype),
                       entry);
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
