#include "core/kernel/roofline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>

namespace weir::kernel {

double KnownOr(double figure, double otherwise) { return std::isfinite(figure) && figure > 0 ? figure : otherwise; }

weir_cost DeclaredWork(const weir_kernel& record, std::span<const OperandSpec> inputs,
                       std::span<const OperandSpec> outputs) {
  weir_cost cost{};
  cost.struct_size = sizeof(cost);
  cost.cost_class = record.cost_class;
  cost.whole_ns = cost.fixed_ns = std::numeric_limits<double>::quiet_NaN();
  double largest = 0;
  for (const auto operands : {inputs, outputs}) {
    for (const OperandSpec& operand : operands) {
      const auto elements = static_cast<double>(operand.shape.elements());
      largest = std::max(largest, elements);
      cost.bytes += elements * static_cast<double>(SizeOf(operand.dtype));
    }
  }
  cost.flops = (WorkFault(record).empty() ? KnownOr(record.flops_per_element, 1) : 1) * largest;
  return cost;
}

std::string WorkFault(const weir_kernel& record) {
  constexpr double kLeast = 1e-6, kMost = 1e12;
  const double flops = record.flops_per_element;
  if (flops == 0 || (flops >= kLeast && flops <= kMost)) return {};
  return fmt::format(
      "kernel {}: flops_per_element is {:g}, wanted {:g} to {:g}, or 0 for unknown; it counts as unknown",
      std::string_view(record.op.data, record.op.size), flops, kLeast, kMost);
}

double RooflineNs(const weir_cost& cost, const weir_profile* profile, DType dtype, double launch_ns) {
  if (std::isfinite(cost.whole_ns)) return cost.whole_ns;
  const auto type = std::min<uint32_t>(static_cast<uint32_t>(dtype), 31);
  const auto kind = std::min<uint32_t>(cost.cost_class, 15);
  const double flops = KnownOr(cost.flops, 0);
  const double bytes = KnownOr(cost.bytes, 0);
  double peak = kAssumedFlopsPerNs;
  double bandwidth = kAssumedBytesPerNs;
  if (profile != nullptr) {
    const auto saturation = [](double work, double half) {
      return work > 0 && std::isfinite(half) && half > 0 ? work / (work + half) : 1.0;
    };
    peak = KnownOr(profile->peak_flops_per_ns[type], peak) * KnownOr(profile->compute_efficiency[kind], 1) *
           saturation(flops, profile->half_saturation_flops);
    const bool cached = std::isfinite(profile->cache_bytes) && bytes <= profile->cache_bytes;
    bandwidth = KnownOr(profile->bandwidth_bytes_per_ns, bandwidth);
    if (cached) bandwidth = KnownOr(profile->cache_bandwidth_bytes_per_ns, bandwidth);
    bandwidth *= KnownOr(profile->memory_efficiency[kind], 1) * saturation(bytes, profile->half_saturation_bytes);
    launch_ns = KnownOr(profile->launch_ns, launch_ns);
  }
  return launch_ns + KnownOr(cost.fixed_ns, 0) + std::max(flops / peak, bytes / bandwidth);
}

}  // namespace weir::kernel
