// The tables and properties of open devices, by the plugin's handle.
#ifndef WEIR_CORE_DEVICE_OPEN_DEVICES_H_
#define WEIR_CORE_DEVICE_OPEN_DEVICES_H_

#include <cstdint>
#include <string_view>

#include "core/device/stream.h"
#include "sdk/abi/cost.h"
#include "sdk/abi/device.h"

namespace weir::device {

/// What the owner of a device provides; null for tables that it lacks.
struct DeviceTables {
  const weir_device_api* device = nullptr;
  const weir_cost_api* cost = nullptr;
  StreamApis streams;
  uint64_t alignment = 0;  // of every tensor in the device's own memory
};

/// Thread-safe. Logical devices of one physical device share a handle: each adds and removes it.
void AddOpenDevice(weir_device* handle, const DeviceTables& tables);
void RemoveOpenDevice(weir_device* handle);
/// Table `id` ("native/1" …) of the plugin that opened the device; null if it has none or the handle is not open.
const void* TableOfOpenDevice(weir_device* handle, std::string_view id);
/// Alignment of tensors in the device's own memory; 0 if the handle is not open.
uint64_t AlignmentOfOpenDevice(weir_device* handle);

}  // namespace weir::device

#endif  // WEIR_CORE_DEVICE_OPEN_DEVICES_H_
