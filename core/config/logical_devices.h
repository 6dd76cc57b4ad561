// Which devices a session sees, and how much memory each may use: gpu_options, device_count and [device.X] applied to
// what the plugins found.
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

/// One device as sessions see it: `KIND:N` is its place in the list.
struct LogicalDevice {
  size_t hardware = 0;        // index of the physical device
  bool shared = false;        // others are cut from it too
  bool enabled = false;       // like any other, though its plugin says that it must be asked for
  uint64_t memory_bytes = 0;  // that it may use
  device::MemoryOptions memory = {};
  device::CostFigures cost = {};
};

/// The devices of one kind, in the order of their numbers. `hardware`: all physical devices of that kind in stable
/// order, at least one. What sets a device's memory: [device."KIND:N"], else [device.KIND], else gpu_options unless the
/// kind is CPU; N counts what this returns, but for virtual_memory_limit_mb, which counts what the list of visible
/// devices left. InvalidArgument, with the place that said it, for a visible device that is not there or occurs twice,
/// more virtual_devices than devices, limits that add up to more than a device has, a fraction above 1 without unified
/// memory, a fraction of a device that does not say how much it has.
Result<std::vector<LogicalDevice>> LogicalDevices(const Config& config,
                                                  std::span<const device::DeviceInfo* const> hardware);

/// "f32" -> float32; empty for what is no short name of an element type.
std::optional<DType> ElementType(std::string_view short_name);

}  // namespace weir::config

#endif  // WEIR_CORE_CONFIG_LOGICAL_DEVICES_H_
