// One device of a plugin as the core sees it: name, memory, copies.
#ifndef WEIR_CORE_DEVICE_DEVICE_H_
#define WEIR_CORE_DEVICE_DEVICE_H_

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/device/device_name.h"
#include "core/device/memory_use.h"
#include "core/device/stream.h"
#include "core/tensor/buffer.h"
#include "core/tensor/tensor.h"
#include "sdk/abi/cost.h"
#include "sdk/abi/device.h"

namespace weir::device {

/// Limits of a device's arena; they compose. Devices with unified memory or MUST_GROW always grow: reserving the memory
/// that the process itself lives in would help nobody.
struct MemoryOptions {
  bool allow_growth = false;      // true: start small and double; false: first slab takes the whole limit on first use
  uint64_t limit_bytes = 0;       // 0 = the device's own capacity
  uint64_t initial_bytes = 0;     // first slab when growing; 0 = 1 MiB
  std::string limit_source = {};  // what set limit_bytes, for errors: "weir.toml:3: device.\"GPU:0\".memory_limit_mb"
};

/// Figures that the user declares instead of the plugin; 0 or absent = the plugin's.
struct CostFigures {
  std::map<int, double> peak_flops_per_ns = {};  // by dtype number
  double bandwidth_bytes_per_ns = 0;
  double launch_ns = 0;

  bool empty() const { return peak_flops_per_ns.empty() && bandwidth_bytes_per_ns == 0 && launch_ns == 0; }
};

/// Keeps memory of devices to be quick the next time, and can do without it.
class MemoryKeeper {
 public:
  virtual ~MemoryKeeper() = default;
  /// Gives back what nobody uses now; false when there was nothing. Called by whichever thread lacks memory, which may
  /// hold locks of variables: asks for no memory and waits for no run.
  virtual bool GiveBack() = 0;
};

class SharedHardware;

/// What a device may be given beyond its plugin's tables.
struct DeviceExtras {
  CostFigures cost = {};
  /// Options for the plugin's `open`, borrowed from `keep`.
  std::vector<weir_opt> options = {};
  std::shared_ptr<const void> keep = nullptr;
  /// Of logical devices cut from one physical one, which is opened once for all of them; null = this device's own.
  std::shared_ptr<SharedHardware> hardware = nullptr;
  /// For the plugin's `open`; 0 = none.
  std::chrono::milliseconds open_limit{0};
};
/// One per physical device that is cut into logical ones.
std::shared_ptr<SharedHardware> MakeSharedHardware();

/// What the plugin said of it in enumerate.
struct DeviceInfo {
  DeviceName name;  // full
  std::string uid;
  std::string class_id;
  std::string kind;
  std::string platform;
  std::string display_name;
  std::string driver_version;
  std::string plugin;
  uint32_t flags = 0;
  uint64_t memory_bytes = 0;  // of a capped or logical device, what it may use
  uint64_t alignment = 64;
  int numa_node = -1;

  /// The CPU reads and writes its memory directly.
  bool unified_memory() const { return (flags & WEIR_DEVICE_UNIFIED_MEMORY) != 0; }
  /// It pools memory itself; the core's arena only passes requests on.
  bool self_pool() const { return (flags & WEIR_DEVICE_SELF_POOL) != 0; }
};

/// An enumerated device. Opened on first use, once, and kept until the process ends. Thread-safe.
class Device {
 public:
  /// `api` and `cost` (may be null) belong to the plugin and live as long as the process. `plugin` is kept until the
  /// device is closed, which is when the last of its buffers is gone; it may be null.
  Device(DeviceInfo info, const weir_device_api* api, const weir_cost_api* cost, MemoryOptions memory,
         std::shared_ptr<const void> plugin = nullptr, DeviceExtras extras = {});
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const DeviceInfo& info() const { return info_; }
  /// "/job:localhost/replica:0/task:0/device:CPU:0"
  const std::string& name() const { return name_; }
  /// For a device that works asynchronously, before anything else is asked of it; the tables live as long as the
  /// process.
  void SetStreamApis(const StreamApis& apis) { stream_apis_ = apis; }
  /// It works on streams: memory may be touched only in their order.
  bool has_streams() const { return stream_apis_.stream != nullptr; }
  /// Its streams; opens the device on first use. Null for a device that works while it is called.
  Result<Streams*> streams();
  /// The CPU reads and writes this device's memory directly.
  bool host_memory() const { return (info_.flags & WEIR_DEVICE_UNIFIED_MEMORY) != 0; }

  /// The plugin's handle; opens the device on first use. Unavailable with the plugin's text when that fails,
  /// DeadlineExceeded when it does not end within the limit; either way it is not tried again.
  Result<weir_device*> Open();
  /// The arena over this device's memory. ResourceExhausted names the device, what was asked for, what is in use; the
  /// keepers have given back what they could by then, unless it would not have been enough anyway.
  Allocator& allocator();
  /// The user has limited the arena.
  bool capped() const;
  /// `keeper` is asked before this device's memory runs out, for as long as it lives. Thread-safe.
  void AddKeeper(std::weak_ptr<MemoryKeeper> keeper);
  /// Blocking copies, for memory that no stream works on. `ToHost` of a tensor that is on the host already returns it
  /// unchanged, and so does `FromHost` where the device works in host memory. InvalidArgument for types without a fixed
  /// size that would have to cross.
  Result<Tensor> ToHost(const Tensor& tensor);
  Result<Tensor> FromHost(const Tensor& tensor);
  /// Between this device's memory and the host's (weir_buf with space HOST), or within either.
  Status Copy(const weir_buf& to, const weir_buf& from, uint64_t bytes);
  /// The declared cost profile; unknown fields are NaN. Null when the plugin has none.
  const weir_profile* profile();
  /// What a transfer between memory of this device and `peer` (null: the host) costs, in one direction; spaces are
  /// WEIR_SPACE_*. Unimplemented when the plugin declares nothing, Internal for figures that are none.
  Result<weir_link> Link(uint32_t space, Device* peer, uint32_t peer_space);
  /// What of the profile is a fault of the plugin (negative or infinite figures, an error), empty when there is none.
  /// Such figures count as unknown. Asks for the profile.
  const std::string& profile_fault();
  /// Zeros before the first use.
  MemoryUse memory_use() const;
  /// Gives memory that holds no buffer back to the plugin; the bytes that this freed.
  uint64_t Trim();
  /// Ok, or Unavailable with the text of its loss. A device that was not opened is not lost.
  Status health() const;
  /// What a call on the open device that failed means: its loss, which is noted, or `status`. `error_flags` are those
  /// of the call's error record.
  Status Judge(const Status& status, uint32_t error_flags) const;
  /// Something has used it: its plugin may hold a driver's context.
  bool opened() const;

 private:
  class State;
  DeviceInfo info_;
  std::string name_;
  StreamApis stream_apis_;
  std::unique_ptr<State> state_;
};

/// All devices of the process, in stable order: plugins' order, then ordinal. Immutable after loading.
class DeviceSet {
 public:
  void Add(std::shared_ptr<Device> device) { devices_.push_back(std::move(device)); }
  const std::vector<std::shared_ptr<Device>>& all() const { return devices_; }
  /// Full name; null when there is none.
  Device* Find(std::string_view full_name) const;
  /// Devices that a partial name allows, in order.
  std::vector<Device*> Matching(const DeviceName& spec) const;

 private:
  std::vector<std::shared_ptr<Device>> devices_;
};

}  // namespace weir::device

#endif  // WEIR_CORE_DEVICE_DEVICE_H_
