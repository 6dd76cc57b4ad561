#include "core/device/cost_faults.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <iterator>
#include <limits>
#include <string_view>

#include "core/tensor/dtype.h"

namespace weir::device {
namespace {

constexpr size_t kShown = 3;

// What hardware can have, with several orders of magnitude to spare.
struct Range {
  double least, most;
  bool zero;          // is a value
  bool time = false;  // large ones make a device slow, otherwise small ones
};
constexpr Range kRate{1e-6, 1e8, false};       // flops or bytes per ns: 1 k/s to 100 P/s
constexpr Range kTime{1e-3, 1e8, true, true};  // ns: 1 ps to 0.1 s
constexpr Range kAmount{1, 1e18, true};        // flops or bytes
constexpr Range kCache{1, 1e18, false};        // bytes
constexpr Range kEfficiency{1e-6, 10, false};  // some figures of caches exceed 1

class Clearing {
 public:
  void Figure(double& figure, const Range& range, std::string_view name) {
    if (std::isnan(figure) || (figure == 0 && range.zero) || (figure >= range.least && figure <= range.most)) return;
    faults_.push_back(fmt::format("{} is {:g}, wanted {:g} to {:g}", name, figure, range.least, range.most));
    // A device that is slow beyond belief keeps its figures, and so attracts no work.
    const bool slow = range.time ? figure > range.most : figure < range.least;
    if (!(figure > 0) || std::isinf(figure) || !slow) figure = std::numeric_limits<double>::quiet_NaN();
  }
  std::vector<std::string> Take() { return std::move(faults_); }

 private:
  std::vector<std::string> faults_;
};

}  // namespace

std::vector<std::string> ClearFaults(weir_profile& profile) {
  Clearing clearing;
  for (size_t i = 0; i < std::size(profile.peak_flops_per_ns); ++i) {
    clearing.Figure(profile.peak_flops_per_ns[i], kRate,
                    fmt::format("peak_flops_per_ns[{}]", Name(static_cast<DType>(i))));
  }
  clearing.Figure(profile.bandwidth_bytes_per_ns, kRate, "bandwidth_bytes_per_ns");
  clearing.Figure(profile.cache_bytes, kCache, "cache_bytes");
  clearing.Figure(profile.cache_bandwidth_bytes_per_ns, kRate, "cache_bandwidth_bytes_per_ns");
  clearing.Figure(profile.launch_ns, kTime, "launch_ns");
  clearing.Figure(profile.issue_gap_ns, kTime, "issue_gap_ns");
  clearing.Figure(profile.sync_wake_ns, kTime, "sync_wake_ns");
  clearing.Figure(profile.half_saturation_flops, kAmount, "half_saturation_flops");
  clearing.Figure(profile.half_saturation_bytes, kAmount, "half_saturation_bytes");
  for (size_t i = 0; i < WEIR_CLASS_COUNT; ++i) {
    clearing.Figure(profile.compute_efficiency[i], kEfficiency, fmt::format("compute_efficiency[{}]", i));
    clearing.Figure(profile.memory_efficiency[i], kEfficiency, fmt::format("memory_efficiency[{}]", i));
  }
  return clearing.Take();
}

std::vector<std::string> ClearFaults(weir_link& link) {
  Clearing clearing;
  clearing.Figure(link.latency_ns, kTime, "latency_ns");
  clearing.Figure(link.bandwidth_pageable_bytes_per_ns, kRate, "bandwidth_pageable_bytes_per_ns");
  clearing.Figure(link.bandwidth_pinned_bytes_per_ns, kRate, "bandwidth_pinned_bytes_per_ns");
  return clearing.Take();
}

std::string ListFaults(const std::vector<std::string>& faults) {
  const size_t shown = std::min(faults.size(), kShown);
  const std::string text =
      fmt::format("{}", fmt::join(faults.begin(), faults.begin() + static_cast<long>(shown), "; "));
  return faults.size() == shown ? text : fmt::format("{} (and {} more)", text, faults.size() - shown);
}

}  // namespace weir::device
