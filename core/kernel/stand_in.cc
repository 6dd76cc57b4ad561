#include "core/kernel/stand_in.h"

#include <algorithm>
#include <deque>
#include <tuple>

#include "core/device/error_record.h"
#include "core/kernel/host.h"

namespace weir::kernel {
namespace {

/// Records and what they refer to.
struct StandIns {
  struct One {
    std::string op, platform;
    std::vector<std::string> attrs;
    std::vector<weir_type_constraint> types;
    weir_kernel record;
  };
  std::deque<One> all;
};

int32_t RunElsewhere(void*, weir_ctx*, weir_error* error) {
  return device::Report(error, WEIR_FAILED_PRECONDITION, "the kernel belongs to another process");
}

std::vector<std::pair<std::string, uint64_t>> SortedTypes(const weir_kernel& record) {
  std::vector<std::pair<std::string, uint64_t>> types;
  for (uint32_t i = 0; record.types != nullptr && i < record.type_count; ++i) {
    types.emplace_back(Text(record.types[i].attr), record.types[i].dtypes);
  }
  std::ranges::sort(types);
  return types;
}

auto IdentityOf(const KernelDescription& kernel) {
  return std::tie(kernel.op, kernel.platform, kernel.plugin, kernel.priority, kernel.types);
}

KernelDescription DescriptionOf(const KernelEntry& entry) {
  const weir_kernel& record = *entry.record;
  KernelDescription one;
  one.op = Text(record.op);
  one.platform = Text(record.platform);
  one.plugin = entry.plugin;
  one.flags = record.flags;
  one.cost_class = record.cost_class;
  one.priority = record.priority;
  one.host_inputs = record.host_inputs;
  one.host_outputs = record.host_outputs;
  one.variable_reads = record.variable_reads;
  one.variable_writes = record.variable_writes;
  one.flops_per_element = record.flops_per_element;
  one.types = SortedTypes(record);
  return one;
}

/// The estimate of the same kernel, else of one with the same op: without one, a product of matrices would count as an
/// elementwise op.
auto EstimateFor(const KernelDescription& kernel, const KernelRegistry& known) -> decltype(weir_kernel::estimate) {
  decltype(weir_kernel::estimate) of_op = nullptr;
  for (const KernelEntry* own : known.ForOp(kernel.op)) {
    if (own->host != nullptr || !WEIR_HAS(own->record, estimate)) continue;
    if (IdentityOf(DescriptionOf(*own)) == IdentityOf(kernel)) return own->record->estimate;
    if (of_op == nullptr) of_op = own->record->estimate;
  }
  return of_op;
}

}  // namespace

std::vector<KernelDescription> DescribeKernels(const KernelRegistry& kernels, std::span<const std::string> platforms) {
  std::vector<KernelDescription> all;
  for (const KernelEntry* entry : kernels.All()) {
    if (entry->host != nullptr) continue;
    KernelDescription one = DescriptionOf(*entry);
    if (std::ranges::find(platforms, one.platform) != platforms.end()) all.push_back(std::move(one));
  }
  using One = KernelDescription;
  std::ranges::stable_sort(all, [](const One& a, const One& b) { return IdentityOf(a) < IdentityOf(b); });
  const auto same = [](const One& a, const One& b) { return IdentityOf(a) == IdentityOf(b); };
  all.erase(std::unique(all.begin(), all.end(), same), all.end());
  return all;
}

std::shared_ptr<const void> AddStandIns(const op::OpRegistry& ops, std::span<const KernelDescription> kernels,
                                        const std::string& platform, const std::string& at, KernelRegistry& to) {
  auto made = std::make_shared<StandIns>();
  for (const KernelDescription& kernel : kernels) {
    if (kernel.platform != platform || ops.Find(kernel.op) == nullptr) continue;
    StandIns::One& one = made->all.emplace_back();
    one.op = kernel.op;
    one.platform = at;
    for (const auto& [attr, dtypes] : kernel.types) one.attrs.push_back(attr);
    for (size_t i = 0; i < one.attrs.size(); ++i) one.types.push_back({ViewOf(one.attrs[i]), kernel.types[i].second});
    weir_kernel& record = one.record;
    record = {};
    record.struct_size = sizeof record;
    record.flags = kernel.flags;
    record.op = ViewOf(one.op);
    record.platform = ViewOf(one.platform);
    record.types = one.types.data();
    record.type_count = static_cast<uint32_t>(one.types.size());
    record.priority = kernel.priority;
    record.host_inputs = kernel.host_inputs;
    record.host_outputs = kernel.host_outputs;
    record.variable_reads = kernel.variable_reads;
    record.variable_writes = kernel.variable_writes;
    record.cost_class = kernel.cost_class;
    record.flops_per_element = kernel.flops_per_element;
    record.compute = &RunElsewhere;
    record.estimate = EstimateFor(kernel, to);
    // A record that does not fit is only missing as a candidate.
    const bool fits = to.Add(ops, {&record, kernel.plugin, kernel.plugin + "@" + at, 0, nullptr, {}}).ok();
    if (!fits) made->all.pop_back();
  }
  return made;
}

}  // namespace weir::kernel
