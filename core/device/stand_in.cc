#include "core/device/stand_in.h"

#include <fmt/format.h>

#include <atomic>
#include <limits>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "core/base/errors.h"
#include "core/device/error_record.h"

namespace weir::device {
namespace {

/// Stands behind the weir_device of an opened stand-in.
struct FarDevice {
  std::optional<weir_profile> profile;
  std::optional<weir_link> to_host;
  NetworkLink link;
  std::string process;  // DeviceInfo::elsewhere
};

/// Within a process, between memory that the host has and memory apart from it.
constexpr double kNearLatencyNs = 10e3, kNearBytesPerNs = 5;

/// The link between two devices of one process, through its memory.
void BetweenNeighbours(const FarDevice& from, const FarDevice& to, weir_link& link) {
  link.latency_ns = 0;
  double ns_per_byte = 0;
  for (const FarDevice* end : {&from, &to}) {
    if (!end->to_host) continue;  // its memory is the host's
    const auto or_else = [](double figure, double other) { return figure > 0 ? figure : other; };
    link.latency_ns += or_else(end->to_host->latency_ns, kNearLatencyNs);
    const double pageable = or_else(end->to_host->bandwidth_pageable_bytes_per_ns, kNearBytesPerNs);
    ns_per_byte += 1 / or_else(end->to_host->bandwidth_pinned_bytes_per_ns, pageable);
  }
  link.bandwidth_pageable_bytes_per_ns = link.bandwidth_pinned_bytes_per_ns =
      ns_per_byte > 0 ? 1 / ns_per_byte : kNearBytesPerNs;
  link.flags |= 1u;  // not through this process
}

/// The stand-ins that exist, by uid.
class FarDevices {
 public:
  static FarDevices& Get() {
    static FarDevices* const devices = new FarDevices;  // devices may close during static destruction
    return *devices;
  }
  void Add(const std::string& uid, std::shared_ptr<FarDevice> device) {
    const std::lock_guard<std::mutex> lock(mutex_);
    devices_.emplace(uid, std::move(device));
  }
  void Remove(const std::string& uid) {
    const std::lock_guard<std::mutex> lock(mutex_);
    devices_.erase(uid);
  }
  FarDevice* Find(const std::string& uid) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = devices_.find(uid);
    return found == devices_.end() ? nullptr : found->second.get();
  }

 private:
  std::mutex mutex_;  // protects devices_
  std::map<std::string, std::shared_ptr<FarDevice>> devices_;
};

int32_t Elsewhere(weir_error* error) {
  return Report(error, WEIR_FAILED_PRECONDITION, "the device belongs to another process, which runs its ops");
}

const weir_device_api& FarDeviceApi() {
  static const weir_device_api api = [] {
    weir_device_api made{};
    made.struct_size = sizeof(made);
    made.enumerate = [](const weir_opt*, uint64_t, void (*)(void*, const weir_device_record*), void*,
                        weir_error*) -> int32_t { return WEIR_OK; };
    made.open = [](weir_str uid, const weir_opt*, uint64_t, weir_device** device, weir_error* error) -> int32_t {
      FarDevice* const found = FarDevices::Get().Find(std::string(uid.data, uid.size));
      if (found == nullptr) return Elsewhere(error);
      *device = reinterpret_cast<weir_device*>(found);
      return WEIR_OK;
    };
    made.close = [](weir_device*) {};
    made.alloc = [](weir_device*, uint64_t, uint32_t, weir_buf*, weir_error* error) { return Elsewhere(error); };
    made.free = [](weir_device*, const weir_buf*) {};
    made.copy = [](weir_device*, weir_stream*, const weir_buf*, const weir_buf*, uint64_t, weir_error* error) {
      return Elsewhere(error);
    };
    made.health = [](weir_device*) -> int32_t { return WEIR_HEALTH_OK; };
    return made;
  }();
  return api;
}

const weir_cost_api& FarCostApi() {
  static const weir_cost_api api = [] {
    weir_cost_api made{};
    made.struct_size = sizeof(made);
    made.profile = [](weir_device* device, weir_profile* profile, weir_error* error) -> int32_t {
      const auto& known = reinterpret_cast<const FarDevice*>(device)->profile;
      if (!known) return Report(error, WEIR_UNIMPLEMENTED, "the far plugin has no profile");
      *profile = *known;
      return WEIR_OK;
    };
    made.link = [](weir_device* device, uint32_t, weir_device* peer, uint32_t, weir_link* link,
                   weir_error*) -> int32_t {
      const auto* const own = reinterpret_cast<const FarDevice*>(device);
      const auto* const other = reinterpret_cast<const FarDevice*>(peer);
      if (other != nullptr && other != own && !own->process.empty() && other->process == own->process) {
        BetweenNeighbours(*own, *other, *link);
        return WEIR_OK;
      }
      const NetworkLink& network = own->link;
      link->provenance = network.measured ? WEIR_PROVENANCE_MEASURED : WEIR_PROVENANCE_UNKNOWN;
      link->latency_ns = network.latency_ns;
      link->bandwidth_pageable_bytes_per_ns = link->bandwidth_pinned_bytes_per_ns = network.bytes_per_ns;
      return WEIR_OK;
    };
    return made;
  }();
  return api;
}

}  // namespace

DeviceDescription Describe(Device& device) {
  DeviceDescription description{device.info(), std::nullopt};
  if (const weir_profile* const profile = device.profile(); profile != nullptr) description.profile = *profile;
  if (!device.host_memory()) {
    const Result<weir_link> link = device.Link(WEIR_SPACE_DEVICE, nullptr, WEIR_SPACE_HOST);
    description.to_host = link.ok() ? *link : weir_link{};
  }
  return description;
}

std::shared_ptr<Device> MakeStandIn(const DeviceDescription& description, const NetworkLink& link) {
  static std::atomic<uint64_t> made{0};
  DeviceInfo info = description.info;
  info.stand_in = true;
  info.uid = fmt::format("far:{}:{}", made.fetch_add(1, std::memory_order_relaxed), info.uid);
  // Costs of values in host memory are those of this process's memory.
  info.flags = (info.flags & WEIR_DEVICE_OPT_IN) | WEIR_DEVICE_SYNC_ONLY;
  FarDevices::Get().Add(info.uid, std::make_shared<FarDevice>(FarDevice{
                                     description.profile, description.to_host, link, info.elsewhere}));
  // The entry goes when the device has closed, as a plugin would.
  const std::shared_ptr<const void> entry(&FarDevices::Get(),
                                          [uid = info.uid](const void*) { FarDevices::Get().Remove(uid); });
  MemoryOptions memory;
  memory.allow_growth = true;
  return std::make_shared<Device>(std::move(info), &FarDeviceApi(), &FarCostApi(), std::move(memory), entry);
}

}  // namespace weir::device
