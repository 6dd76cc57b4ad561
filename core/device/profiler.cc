#include "core/device/profiler.h"

#include <algorithm>
#include <utility>

#include "core/device/error_record.h"

namespace weir::device {
namespace {

constexpr uint32_t kAllKinds = WEIR_ACTIVITY_KERNEL | WEIR_ACTIVITY_COPY | WEIR_ACTIVITY_FILL;

struct Drained {
  std::map<uint32_t, std::vector<DeviceActivity>>* runs;
  int64_t shift_ns;  // from the device's clock to the host's
};

}  // namespace

std::shared_ptr<Profiler> Profiler::Make(const StreamApis& apis, weir_device* device) {
  const weir_profiler_api* api = apis.profiler;
  const bool complete = WEIR_HAS(apis.stream, mark) && WEIR_HAS(api, start) && WEIR_HAS(api, stop) &&
                        WEIR_HAS(api, drain) && WEIR_HAS(api, clock);
  return complete ? std::make_shared<Profiler>(api, device) : nullptr;
}

Status Profiler::Begin(uint32_t run) {
  const std::lock_guard lock(mutex_);
  if (runs_.empty()) {
    WEIR_TRY(CallPlugin("start of profiler/1",
                        [&](weir_error* error) { return api_->start(device_, kAllKinds, error); }));
  }
  runs_.try_emplace(run);
  return {};
}

std::vector<DeviceActivity> Profiler::End(uint32_t run) {
  const std::lock_guard lock(mutex_);
  const auto found = runs_.find(run);
  if (found == runs_.end()) return {};
  Drain();
  std::vector<DeviceActivity> activities = std::move(found->second);
  runs_.erase(found);
  if (runs_.empty()) {
    // A profiler that cannot stop costs time, not correctness.
    (void)CallPlugin("stop of profiler/1", [&](weir_error* error) { return api_->stop(device_, error); });
  }
  std::sort(activities.begin(), activities.end(),
            [](const DeviceActivity& a, const DeviceActivity& b) { return a.begin_ns < b.begin_ns; });
  return activities;
}

void Profiler::Drain() {
  uint64_t device_ns = 0, host_ns = 0, lost = 0;
  if (!CallPlugin("clock of profiler/1", [&](weir_error* error) {
         return api_->clock(device_, &device_ns, &host_ns, error);
       }).ok()) {
    return;
  }
  Drained drained{&runs_, static_cast<int64_t>(host_ns - device_ns)};
  const auto emit = [](void* ctx, const weir_activity* activity) noexcept {
    const auto& to = *static_cast<const Drained*>(ctx);
    if (!WEIR_HAS(activity, end_ns) || activity->end_ns < activity->begin_ns) return;
    const auto run = to.runs->find(RunOf(activity->mark));
    if (run == to.runs->end()) return;
    run->second.push_back({activity->mark, activity->kind, static_cast<int64_t>(activity->begin_ns) + to.shift_ns,
                           static_cast<int64_t>(activity->end_ns) + to.shift_ns});
  };
  (void)CallPlugin("drain of profiler/1",
                   [&](weir_error* error) { return api_->drain(device_, emit, &drained, &lost, error); });
}

}  // namespace weir::device
