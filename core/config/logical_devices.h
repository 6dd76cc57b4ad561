// The devices visible to a session and their memory limits: applies gpu_options, device_count and [device.X] to the
// physical devices found by the plugins.
#ifndef WEIR_CORE_CONFIG_LOGICAL_DEVICES_H_
#define WEIR_CORE_CONFIG_LOGICAL_DEVICES_H_

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/config/config.h"
#include "core/device/device.h"
#include "core/tensor/dtype.h"

namespace weir::config {

/// A device as seen by sessions. `KIND:N` is its position in the list.
struct LogicalDevice {
  size_t hardware = 0;        // index of the physical device
  bool shared = false;        // other logical devices use the same hardware
  bool enabled = false;       // used even if its plugin marks it as opt-in
  uint64_t memory_bytes = 0;  // that it may use
  device::MemoryOptions memory = {};
  device::CostFigures cost = {};
};

/// The devices of one kind in order of their numbers. `hardware` lists all physical devices of that kind in a stable
/// order, at least one. Memory settings come from [device."KIND:N"], else [device.KIND], else gpu_options unless the
/// kind is CPU. N is the index in the result; for virtual_memory_limit_mb it is the index in the list of visible
/// devices. InvalidArgument, naming the source of the setting, for a visible device that does not exist or is repeated,
/// more virtual_devices than devices, limits whose sum exceeds the device's memory, a fraction above 1 without unified
/// memory, and a fraction of a device with unknown memory.
Result<std::vector<LogicalDevice>> LogicalDevices(const Config& config,
                                                  std::span<const device::DeviceInfo* const> hardware);

/// Maps "f32" to float32; nullopt for an unknown short name.
std::optional<DType> ElementType(std::string_view short_name);

}  // namespace weir::config

#endif  // WEIR_CORE_CONFIG_LOGICAL_DEVICES_H_
