// Stage costs: the figures of devices, links and kernels, and the times that they promise.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <ctime>
#include <fstream>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/base/errors.h"
#include "core/device/cost_faults.h"
#include "core/device/error_record.h"
#include "core/kernel/host.h"
#include "core/kernel/prepared.h"
#include "core/kernel/roofline.h"
#include "core/plugin/compatible.h"
#include "tools/weir/cases/case_table.h"
#include "tools/weir/cases/kernel_run.h"
#include "tools/weir/check/device_memory.h"
#include "tools/weir/check/kernel_set.h"
#include "tools/weir/check/kernel_trial.h"
#include "tools/weir/check/recorder.h"
#include "tools/weir/check/stages.h"
#include "tools/weir/check/subject.h"

namespace weir::check {
namespace {

using cases::OpCase;
using device::CallPlugin;
using kernel::KernelEntry;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kFactor = 3;  // between declared and measured times, before a warning
constexpr double kWrong = 10;  // and before a fault: processors differ by less
constexpr int kRounds = 8, kAttempts = 4;

/// A call of an op with large operands, whose shapes replace those of the line.
struct Work {
  const char* line;
  std::vector<std::vector<int64_t>> shapes;

  std::string ToString() const {
    std::string text(line, std::strchr(line, ' ') - line);
    for (const auto& shape : shapes) text += fmt::format(" [{}]", fmt::join(shape, ","));
    return text;
  }
};

/// Products hide what a call costs; other works also exceed caches.
const std::vector<Work>& Works() {
  static const std::vector<Work> works = [] {
    std::vector<Work> all;
    for (const int64_t n : {96, 128, 192, 256}) all.push_back({"MatMul : [[1]] ; [[1]] -> any", {{n, n}, {n, n}}});
    for (const int64_t n : {int64_t{6} << 20, int64_t{8} << 20, int64_t{10} << 20}) {
      for (const char* const op : {"AddV2 : [1] ; [1] -> any", "Mul : [1] ; [1] -> any"}) {
        all.push_back({op, {{n}, {n}}});
      }
      for (const char* const op : {"Neg : [1] -> any", "Relu : [1] -> any", "Square : [1] -> any"}) {
        all.push_back({op, {{n}}});
      }
    }
    return all;
  }();
  return works;
}

Result<OpCase> CaseOf(const Work& work, const op::OpRegistry& ops) {
  WEIR_ASSIGN(std::vector<OpCase> made, cases::ParseCases(ops, work.line));
  OpCase& c = made[0];
  for (size_t i = 0; i < work.shapes.size(); ++i) {
    WEIR_ASSIGN(const Shape shape, Shape::Make(work.shapes[i]));
    WEIR_ASSIGN(c.inputs[i], Tensor::Make(DType::kFloat, shape));
    std::ranges::fill(c.inputs[i].mutable_as<float>(), 1.25f);
  }
  return std::move(c);
}

// The number of works of a kind that have to agree on a fault.
constexpr size_t kLeastWorks = 2;

double Median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

// Optimised builds only: others are slower than their hardware.
bool Measurable() {
#ifdef __OPTIMIZE__
  return plugin::HostTraits::Current().sanitizer == WEIR_SANITIZER_NONE;
#else
  return false;
#endif
}

Status CheckProfile(const weir_cost_api* api, const OpenedDevice& device) {
  weir_profile profile{};
  profile.struct_size = sizeof(profile);
  for (double& f : profile.peak_flops_per_ns) f = kNan;
  for (double& f : profile.compute_efficiency) f = kNan;
  for (double& f : profile.memory_efficiency) f = kNan;
  profile.bandwidth_bytes_per_ns = profile.cache_bytes = profile.cache_bandwidth_bytes_per_ns = profile.launch_ns =
      profile.issue_gap_ns = profile.sync_wake_ns = profile.half_saturation_flops = profile.half_saturation_bytes =
          kNan;
  WEIR_TRY(CallPlugin("profile", [&](weir_error* error) { return api->profile(device.handle(), &profile, error); }));
  const std::vector<std::string> faults = device::ClearFaults(profile);
  if (faults.empty()) return {};
  return InvalidArgument("device '{}': {}", device.found().uid, device::ListFaults(faults));
}

Result<weir_link> AskLink(const weir_cost_api* api, const OpenedDevice& device, uint32_t from, uint32_t to) {
  weir_link link{};
  link.struct_size = sizeof(link);
  link.latency_ns = link.bandwidth_pageable_bytes_per_ns = link.bandwidth_pinned_bytes_per_ns = kNan;
  WEIR_TRY(CallPlugin("link",
                      [&](weir_error* error) { return api->link(device.handle(), from, nullptr, to, &link, error); }));
  return link;
}

constexpr struct {
  uint32_t from, to;
  const char* name;
} kWays[] = {{WEIR_SPACE_HOST, WEIR_SPACE_DEVICE, "from the host"},
             {WEIR_SPACE_DEVICE, WEIR_SPACE_HOST, "to the host"}};

Status CheckLinks(const weir_cost_api* api, const OpenedDevice& device) {
  for (const auto& way : kWays) {
    Result<weir_link> link = AskLink(api, device, way.from, way.to);
    if (link.status().code() == Code::kUnimplemented) continue;
    WEIR_TRY(link.status());
    if (const std::vector<std::string> faults = device::ClearFaults(*link); !faults.empty()) {
      return InvalidArgument("device '{}', {}: {}", device.found().uid, way.name, device::ListFaults(faults));
    }
  }
  return {};
}

double NowOn(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

// The least times of several copies of pageable memory.
Result<cases::CallTime> CopyNs(const OpenedDevice& device, const Block& block, std::vector<uint8_t>& host,
                               uint32_t to) {
  const weir_buf here = HostRange(host.data(), host.size()), there = block.Range(0, host.size());
  cases::CallTime least{std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity()};
  for (int round = 0; round < kRounds; ++round) {
    const double begin = NowOn(CLOCK_MONOTONIC), used = NowOn(CLOCK_PROCESS_CPUTIME_ID);
    WEIR_TRY(CallPlugin("copy", [&](weir_error* error) {
      return to == WEIR_SPACE_DEVICE ? device.api().copy(device.handle(), nullptr, &there, &here, host.size(), error)
                                     : device.api().copy(device.handle(), nullptr, &here, &there, host.size(), error);
    }));
    least.wall_ns = std::min(least.wall_ns, NowOn(CLOCK_MONOTONIC) - begin);
    least.cpu_ns = std::min(least.cpu_ns, NowOn(CLOCK_PROCESS_CPUTIME_ID) - used);
  }
  return least;
}

/// Times by declared ones. A busy machine takes longer by the clock, but does not use more of its processors for us.
struct Ratios {
  double wall = 1, cpu = 1;

  bool far_off() const { return wall > kFactor || wall < 1 / kFactor; }
  /// Whatever else runs: the work is quicker than declared, or uses the processors for longer.
  bool wrong() const { return wall > kWrong || wall < 1 / kWrong; }
  bool certain() const { return wall < 1 / kWrong || cpu > kWrong; }
};

Ratios MedianOf(const std::vector<Ratios>& all) {
  std::vector<double> wall, cpu;
  for (const Ratios& ratios : all) {
    wall.push_back(ratios.wall);
    cpu.push_back(ratios.cpu);
  }
  return {Median(wall), Median(cpu)};
}

// The nearer to what is declared: each of two measurements may have been disturbed.
Ratios Nearer(const Ratios& a, const Ratios& b) {
  const auto nearer = [](double x, double y) { return std::abs(std::log(x)) < std::abs(std::log(y)) ? x : y; };
  return {nearer(a.wall, b.wall), std::min(a.cpu, b.cpu)};
}

/// Whether others used the machine since the object was made.
class Bystanders {
 public:
  bool Busy() const {
    const Ticks now = Read();
    const double all = now.all - begin_.all, busy = now.busy - begin_.busy, own = now.own - begin_.own;
    return all > 0 && (busy - own) / all > 0.1;
  }

 private:
  struct Ticks {
    double all = 0, busy = 0, own = 0;
  };
  static Ticks Read() {
    Ticks ticks;
    std::ifstream file("/proc/stat");
    std::string name;
    file >> name;
    double value = 0;
    for (int field = 0; field < 8 && file >> value; ++field) {
      ticks.all += value;
      if (field != 3 && field != 4) ticks.busy += value;  // idle, and waiting for a disk
    }
    timespec used{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    ticks.own = (static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9) *
                static_cast<double>(sysconf(_SC_CLK_TCK));
    return ticks;
  }
  const Ticks begin_ = Read();
};

std::string Off(double ratio) {
  return ratio > 1 ? fmt::format("{:.3g} times as long as declared", ratio)
                   : fmt::format("{:.3g} of the declared time", ratio);
}

// A fault, or a warning if the time is not plainly wrong or may be that of other programs.
Finding Judge(std::string text, bool wrong, bool certain, const Bystanders& others) {
  if (!wrong) return Finding::Warn(std::move(text));
  if (certain || !others.Busy()) return Status(FailedPrecondition("{}", text));
  return Finding::Warn(text + "; other programs use the machine, so that this may be their time");
}

// The nearest of some medians counts.
Finding CheckLinkTimes(const weir_cost_api* api, const OpenedDevice& device) {
  bool any = false;
  const Bystanders others;
  for (const auto& way : kWays) {
    Result<weir_link> link = AskLink(api, device, way.from, way.to);
    if (!link.ok() || link->provenance == WEIR_PROVENANCE_UNKNOWN || !device::ClearFaults(*link).empty()) continue;
    if (std::isnan(link->bandwidth_pageable_bytes_per_ns)) continue;
    any = true;
    Ratios nearest;
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      std::vector<Ratios> ratios;
      for (const uint64_t bytes : {uint64_t{1} << 20, uint64_t{4} << 20, uint64_t{16} << 20}) {
        Result<std::unique_ptr<Block>> block = Block::Make(device, bytes);
        if (!block.ok()) continue;
        std::vector<uint8_t> host(bytes, 1);
        const Result<cases::CallTime> time = CopyNs(device, **block, host, way.to);
        if (!time.ok()) return time.status();
        const double latency = std::isnan(link->latency_ns) ? 0 : link->latency_ns;
        const double declared = latency + static_cast<double>(bytes) / link->bandwidth_pageable_bytes_per_ns;
        ratios.push_back({time->wall_ns / declared, time->cpu_ns / declared});
      }
      if (ratios.empty()) return Finding::Skip("no memory for large copies");
      nearest = attempt == 0 ? MedianOf(ratios) : Nearer(nearest, MedianOf(ratios));
      if (!nearest.far_off()) break;
    }
    if (nearest.far_off()) {
      return Judge(fmt::format("device '{}': large copies {} take {}", device.found().uid, way.name, Off(nearest.wall)),
                   nearest.wrong(), nearest.certain(), others);
    }
  }
  return any ? Finding(Status()) : Finding::Skip("it declares no bandwidth, or only guesses");
}

class KernelCosts {
 public:
  KernelCosts(const Target& target, const KernelSet& set, Recorder& recorder)
      : target_(target), set_(set), recorder_(recorder) {}

  Finding CheckEstimates() {
    FaultList faults;
    for (const KernelEntry* entry : set_.registry().All()) {
      const op::OpDef& def = *target_.ops->Find(kernel::Text(entry->record->op));
      if (std::string fault = kernel::WorkFault(*entry->record); !fault.empty()) faults.Add(def.name, std::move(fault));
      if (!WEIR_HAS(entry->record, estimate)) continue;
      ForEachTrial(def, *entry->record, [&](const KernelTrial& trial) { return Estimates(*entry, trial, faults); });
    }
    if (faults.empty()) return Status();
    return Status(FailedPrecondition("{}", faults.ToString()));
  }

  Finding CheckTimes() {
    const Bystanders others;
    std::map<std::string, std::vector<Ratios>> ratios;
    const std::set<std::string> ops = set_.Ops();
    for (const Work& work : Works()) {
      if (!ops.contains(std::string(work.line, std::strchr(work.line, ' ')))) continue;
      const Result<OpCase> made = CaseOf(work, *target_.ops);
      if (!made.ok()) continue;
      for (const auto& [platform, device] : set_.devices()) {
        const weir_profile* const profile = device->profile();
        if (profile == nullptr || profile->provenance == WEIR_PROVENANCE_UNKNOWN) continue;
        for (const KernelEntry* entry : set_.registry().Find(made->view(), platform)) {
          recorder_.Note(work.ToString());
          const std::optional<Ratios> ratio = Measure(*entry, *made, *device);
          if (ratio) ratios[made->def->name].push_back(*ratio);
        }
      }
    }
    std::string text;
    bool any = false, wrong = false, certain = false;
    for (const auto& [op, of_op] : ratios) {
      if (of_op.size() < kLeastWorks) continue;
      any = true;
      const Ratios median = MedianOf(of_op);
      if (!median.far_off()) continue;
      wrong = wrong || median.wrong();
      certain = certain || median.certain();
      text += fmt::format("{}{} takes {}", text.empty() ? "" : "; ", op, Off(median.wall));
    }
    if (!text.empty()) return Judge("in the median of several large works, " + text, wrong, certain, others);
    return any ? Finding(Status()) : Finding::Skip("nothing to measure: its costs are guesses, or no large work fits");
  }

 private:
  bool Estimates(const KernelEntry& entry, const KernelTrial& trial, FaultList& faults) {
    device::Device& device = set_.DeviceOf(entry);
    const Result<weir_device*> handle = device.Open();
    if (!handle.ok()) return true;
    if (!kernel::Supports(entry, trial.node(), trial.inputs(), trial.outputs(), *handle).ok()) return false;
    const auto ask = [&] {
      return kernel::Estimate(entry, trial.node(), trial.inputs(), trial.outputs(), *handle, device.profile());
    };
    recorder_.Note(trial.ToString());
    const Result<weir_cost> cost = ask(), again = ask();
    if (!cost.ok()) {
      if (cost.status().code() != Code::kInternal) return false;
      faults.Add(kernel::Text(entry.record->op), fmt::format("{}: {}", trial.ToString(), cost.status().message()));
    } else if (!again.ok() || std::memcmp(&*cost, &*again, sizeof(weir_cost)) != 0) {
      faults.Add(kernel::Text(entry.record->op), fmt::format("{}: a second estimate differs", trial.ToString()));
    }
    return true;
  }

  // Of some attempts, since other programs take time. The CPU's kernels work in the thread that calls them.
  std::optional<Ratios> Measure(const KernelEntry& entry, const OpCase& work, device::Device& device) const {
    const Result<double> declared = cases::DeclaredTime(entry, work, device);
    if (!declared.ok() || !(*declared > 0)) return std::nullopt;
    std::optional<Ratios> nearest;
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      const Result<cases::CallTime> time = cases::TimeCalls(entry, work, device, kRounds);
      if (!time.ok()) return std::nullopt;
      Ratios ratios{time->wall_ns / *declared, time->cpu_ns / *declared};
      if (device.info().platform == "cpu") ratios.wall = ratios.cpu;
      nearest = nearest ? Nearer(*nearest, ratios) : ratios;
      if (!nearest->far_off()) break;
    }
    return nearest;
  }

  const Target& target_;
  const KernelSet& set_;
  Recorder& recorder_;
};

}  // namespace

std::vector<RuleResult> CostsStage(const Target& target) {
  return RunInChild("WEIR-COST-00", target.time_limit_ms, [&](Recorder& recorder) {
    const Result<Subject> subject = Subject::Start(target);
    std::vector<std::unique_ptr<OpenedDevice>> devices;
    const weir_cost_api* const api = subject.ok() ? subject->Interface<weir_cost_api>(WEIR_COST_INTERFACE) : nullptr;
    KernelSet set(target);
    bool kernels = false;
    recorder.Try("WEIR-COST-00", [&]() -> Finding {
      if (!subject.ok()) return subject.status();
      (void)set.Add(*subject, target.path);  // WEIR-KERNEL-01 has the faults
      kernels = !set.empty() && set.OpenDevices(*subject).verdict == Verdict::kPass;
      if (api == nullptr || subject->devices() == nullptr) {
        return kernels ? Finding(Status()) : Finding::Skip("it tells no costs, and has no kernels to run here");
      }
      const Result<std::vector<FoundDevice>> found = Enumerate(*subject);
      if (!found.ok()) return found.status();
      for (const FoundDevice& device : *found) {
        Result<std::unique_ptr<OpenedDevice>> open = OpenedDevice::Open(*subject, device);
        if (!open.ok()) return open.status();
        devices.push_back(std::move(*open));
      }
      return Status();
    });
    bool right = true;  // all figures; otherwise times need no measuring
    for (const auto& device : devices) {
      if (WEIR_HAS(api, profile)) {
        right = recorder.Try("WEIR-COST-01", [&] { return CheckProfile(api, *device); }) && right;
      }
      if (WEIR_HAS(api, link)) {
        right = recorder.Try("WEIR-COST-02", [&] { return CheckLinks(api, *device); }) && right;
      }
    }
    KernelCosts costs(target, set, recorder);
    if (kernels) right = recorder.Try("WEIR-COST-03", [&] { return costs.CheckEstimates(); }) && right;
    const auto measured = [&](std::string_view rule, const auto& body) {
      recorder.Try(rule, [&]() -> Finding {
        if (!right) return Finding::Skip("the figures themselves are wrong");
        if (!Measurable()) return Finding::Skip("this build of weir is not optimised, or has a sanitizer");
        return body();
      });
    };
    if (kernels) measured("WEIR-COST-04", [&] { return costs.CheckTimes(); });
    // Devices of one plugin are alike.
    if (!devices.empty() && WEIR_HAS(api, link)) {
      measured("WEIR-COST-05", [&] { return CheckLinkTimes(api, *devices.front()); });
    }
  });
}

}  // namespace weir::check
