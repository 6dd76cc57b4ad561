#include "core/session/memory_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <set>
#include <shared_mutex>
#include <utility>

#include "core/plan/plan.h"

namespace weir::session {
namespace {

constexpr size_t kShown = 20;
constexpr size_t kNamesShown = 3;

/// Describes a step by its fetches: "gives y, z and 3 more".
std::string Purpose(const graph::Definition& graph, const ResolvedNames& asked) {
  std::set<std::string> names;
  for (const graph::Endpoint& fetch : asked.fetches) names.insert(graph.node(fetch.node).name());
  const bool gives = !names.empty();
  if (!gives) {
    for (const graph::NodeId target : asked.targets) names.insert(graph.node(target).name());
  }
  std::string text(gives ? "gives " : "runs ");
  size_t shown = 0;
  for (const std::string& name : names) {
    if (++shown > kNamesShown) break;
    text += (shown == 1 ? "" : ", ") + name;
  }
  if (names.size() > kNamesShown) text += fmt::format(" and {} more", names.size() - kNamesShown);
  return text;
}

}  // namespace

void MemoryReport::Hold(Holder holder) {
  const auto larger = [](const Holder& a, const Holder& b) { return a.bytes > b.bytes; };
  holders.insert(std::upper_bound(holders.begin(), holders.end(), holder, larger), std::move(holder));
}

void MemoryReport::AddVariables(const runtime::ResourceScope& scope) {
  for (const auto& [key, variable] : scope.Variables()) {
    const std::shared_lock<std::shared_mutex> lock(variable->mutex, std::try_to_lock);
    if (!lock.owns_lock() || variable->value.dtype() == DType::kInvalid) continue;
    const uint64_t bytes = variable->value.bytes();
    Hold({fmt::format("variable {} {} {}", key.name, Name(variable->value.dtype()), variable->value.shape().ToString()),
          key.device, bytes});
    for (OnDevice& device : devices) {
      if (device.device == key.device) device.variables += bytes;
    }
  }
}

void MemoryReport::AddPlan(const plan::ExecutionPlan& plan, int runs, const graph::Definition& graph,
                           const ResolvedNames& names) {
  if (runs == 0) return;
  for (const plan::SpaceId s : plan.arena_bytes.indices()) {
    const device::Device* device = s == plan::kHostSpace ? plan.host_device : plan.devices[plan::OwnerOf(s)];
    const uint64_t bytes = plan.arena_bytes[s] * static_cast<uint64_t>(runs);
    if (device == nullptr || bytes == 0) continue;
    Hold({fmt::format("memory of {} {} of a step that {}", runs, runs == 1 ? "run" : "runs", Purpose(graph, names)),
          device->name(), bytes});
    for (OnDevice& on : devices) {
      if (on.device == device->name()) on.steps += bytes;
    }
  }
}

MemoryReport MakeMemoryReport(const device::DeviceSet& devices) {
  MemoryReport report;
  for (const auto& device : devices.all()) {
    report.devices.push_back({device->name(), 0, 0, device->memory_use(), device->reported_memory()});
  }
  return report;
}

std::string ToText(const MemoryReport& report) {
  std::string text;
  for (const MemoryReport::OnDevice& on : report.devices) {
    if (on.all.reserved == 0 && on.variables == 0) continue;
    text += fmt::format(
        "\n{}: {} bytes in use, at most {} so far, {} reserved; {} are free in {} pieces, the largest of {} "
        "(fragmentation {:.0f} %). This session: {} in variables, {} kept for steps.",
        on.device, on.all.in_use, on.all.peak, on.all.reserved, on.all.free_bytes, on.all.free_pieces,
        on.all.largest_free, 100 * on.all.fragmentation(), on.variables, on.steps);
    if (on.reported && on.reported->total != 0) {
      text += fmt::format(" The device has {} of {} bytes free.", on.reported->free, on.reported->total);
    }
  }
  if (!report.holders.empty()) text += "\nThe session's largest holders:";
  for (size_t i = 0; i < std::min(kShown, report.holders.size()); ++i) {
    const MemoryReport::Holder& holder = report.holders[i];
    text += fmt::format("\n{:>14} bytes  {}  on {}", holder.bytes, holder.what, holder.device);
  }
  if (report.holders.size() > kShown) text += fmt::format("\nand {} smaller ones", report.holders.size() - kShown);
  text +=
      "\nHint: smaller batches, fewer sessions or a higher limit help; "
      "`weir explain memory` estimates a step before it runs.";
  return text;
}

}  // namespace weir::session
