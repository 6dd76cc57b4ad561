#include "core/device/open_devices.h"

#include <map>
#include <mutex>

namespace weir::device {
namespace {

struct OpenHandle {
  DeviceTables tables;
  int owners = 0;
};

struct OpenHandles {
  std::mutex mutex;  // protects by_handle
  std::map<const weir_device*, OpenHandle> by_handle;
};

OpenHandles& Handles() {
  static auto* const handles = new OpenHandles;  // never destroyed: devices may close at exit
  return *handles;
}

}  // namespace

void AddOpenDevice(weir_device* handle, const DeviceTables& tables) {
  OpenHandles& handles = Handles();
  const std::lock_guard lock(handles.mutex);
  OpenHandle& open = handles.by_handle[handle];
  open.tables = tables;
  ++open.owners;
}

void RemoveOpenDevice(weir_device* handle) {
  OpenHandles& handles = Handles();
  const std::lock_guard lock(handles.mutex);
  const auto found = handles.by_handle.find(handle);
  if (found != handles.by_handle.end() && --found->second.owners == 0) handles.by_handle.erase(found);
}

const void* TableOfOpenDevice(weir_device* handle, std::string_view id) {
  OpenHandles& handles = Handles();
  const std::lock_guard lock(handles.mutex);
  const auto found = handles.by_handle.find(handle);
  if (found == handles.by_handle.end()) return nullptr;
  const DeviceTables& tables = found->second.tables;
  if (id == WEIR_DEVICE_INTERFACE) return tables.device;
  if (id == WEIR_COST_INTERFACE) return tables.cost;
  if (id == WEIR_STREAM_INTERFACE) return tables.streams.stream;
  if (id == WEIR_MEMORY_INTERFACE) return tables.streams.memory;
  if (id == WEIR_COPY_INTERFACE) return tables.streams.copy;
  if (id == WEIR_NATIVE_INTERFACE) return tables.streams.native;
  return nullptr;
}

uint64_t AlignmentOfOpenDevice(weir_device* handle) {
  if (handle == nullptr) return 0;
  OpenHandles& handles = Handles();
  const std::lock_guard lock(handles.mutex);
  const auto found = handles.by_handle.find(handle);
  return found == handles.by_handle.end() ? 0 : found->second.tables.alignment;
}

}  // namespace weir::device
