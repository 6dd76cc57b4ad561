// A device of a plugin: its name, memory, copies and streams.
#ifndef WEIR_CORE_DEVICE_DEVICE_H_
#define WEIR_CORE_DEVICE_DEVICE_H_

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
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

/// Limits of a device's arena; they combine. Devices with unified memory or MUST_GROW always grow, because a
/// reservation would take memory from the process itself.
struct MemoryOptions {
  bool allow_growth = false;      // true: start small and double; false: first slab takes the whole limit on first use
  uint64_t limit_bytes = 0;       // 0 = the device's own capacity
  uint64_t initial_bytes = 0;     // first slab when growing; 0 = 1 MiB
  std::string limit_source = {};  // what set limit_bytes, for errors: "weir.toml:3: device.\"GPU:0\".memory_limit_mb"
};

/// Cost figures set by the user; 0 or absent = the plugin's.
struct CostFigures {
  std::map<int, double> peak_flops_per_ns = {};  // by dtype number
  double bandwidth_bytes_per_ns = 0;
  double launch_ns = 0;
  double cache_bandwidth_bytes_per_ns = 0;

  bool empty() const {
    return peak_flops_per_ns.empty() && bandwidth_bytes_per_ns == 0 && launch_ns == 0 &&
           cache_bandwidth_bytes_per_ns == 0;
  }
};

/// A cache of device memory that can be released on demand.
class MemoryKeeper {
 public:
  virtual ~MemoryKeeper() = default;
  /// Releases all unused memory; false if there was none. Called by any thread that runs out of memory, possibly with
  /// variable locks held, so it must not allocate memory or wait for a run.
  virtual bool GiveBack() = 0;
};

class SharedHardware;

/// Options of a device beyond its plugin's tables.
struct DeviceExtras {
  CostFigures cost = {};
  /// Options for the plugin's `open`. `keep` owns them.
  std::vector<weir_opt> options = {};
  std::shared_ptr<const void> keep = nullptr;
  /// Shared by logical devices of one physical device, which is opened once; null = not shared.
  std::shared_ptr<SharedHardware> hardware = nullptr;
  /// Time limit of the plugin's `open`; 0 = none.
  std::chrono::milliseconds open_limit{0};
};
/// Creates the state shared by the logical devices of one physical device.
std::shared_ptr<SharedHardware> MakeSharedHardware();

/// The properties reported by the plugin's `enumerate`.
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
  int numa_node = -1;
  uint64_t memory_bytes = 0;  // for a capped or logical device, its limit
  uint64_t alignment = 64;          // of each tensor in the device's own memory: a power of two, at least 64
  uint64_t largest_allocation = 0;  // 0: no limit but the memory's
  std::string elsewhere = {};       // address of the process whose remote device it is; empty = none
  bool stand_in = false;            // for a device of another process: its handle is not the plugin's

  /// True if the CPU accesses the device memory directly.
  bool unified_memory() const { return (flags & WEIR_DEVICE_UNIFIED_MEMORY) != 0; }
  /// True if the device pools memory itself; the core's arena only forwards requests.
  bool self_pool() const { return (flags & WEIR_DEVICE_SELF_POOL) != 0; }
};

/// An enumerated device. Opened on first use, once, and closed with this object and its last buffer. Thread-safe.
class Device {
 public:
  /// `api` and `cost` (may be null) belong to the plugin and live as long as the process. `plugin` (may be null) is
  /// kept until the device closes, which happens after its last buffer is freed.
  Device(DeviceInfo info, const weir_device_api* api, const weir_cost_api* cost, MemoryOptions memory,
         std::shared_ptr<const void> plugin = nullptr, DeviceExtras extras = {});
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const DeviceInfo& info() const { return info_; }
  /// "/job:localhost/replica:0/task:0/device:CPU:0"
  const std::string& name() const { return name_; }
  /// For asynchronous devices; must be the first call. The tables live as long as the process.
  void SetStreamApis(const StreamApis& apis) { stream_apis_ = apis; }
  /// True if the device uses streams: its memory may be accessed only in stream order.
  bool has_streams() const { return stream_apis_.stream != nullptr; }
  /// The device's streams; opens the device on first use. Null for a synchronous device.
  Result<Streams*> streams();
  /// True if the CPU accesses the device memory directly.
  bool host_memory() const { return (info_.flags & WEIR_DEVICE_UNIFIED_MEMORY) != 0; }

  /// The plugin's handle; opens the device on first use. Unavailable with the plugin's text if opening fails,
  /// DeadlineExceeded if it exceeds the limit. A failed open is not retried.
  Result<weir_device*> Open();
  /// The arena of the device's memory. Before an allocation fails, the keepers release unused memory if that could
  /// help. ResourceExhausted names the device, the request and the bytes in use.
  Allocator& allocator();
  /// True if the user limited the arena.
  bool capped() const;
  /// Registers a cache. It is called to release memory before the device runs out, as long as it lives. Thread-safe.
  void AddKeeper(std::weak_ptr<MemoryKeeper> keeper);
  /// Blocking copies, for memory without pending stream work. `ToHost` of a host tensor returns it unchanged, as does
  /// `FromHost` for a device that uses host memory. InvalidArgument for types without a fixed size that would have to
  /// be copied.
  Result<Tensor> ToHost(const Tensor& tensor);
  Result<Tensor> FromHost(const Tensor& tensor);
  /// Copies between this device's memory and host memory (weir_buf with space HOST), or within either.
  Status Copy(const weir_buf& to, const weir_buf& from, uint64_t bytes);
  /// Measured figures, which replace the plugin's; those of the configuration replace both. Before the first call of
  /// `profile`.
  void SetMeasuredCosts(CostFigures measured);
  /// The declared cost profile; unknown fields are NaN. Null if the plugin has none.
  const weir_profile* profile();
  /// The one-way transfer cost between memory of this device and `peer` (null: the host); spaces are WEIR_SPACE_*.
  /// Unimplemented if the plugin declares none, Internal for invalid figures.
  Result<weir_link> Link(uint32_t space, Device* peer, uint32_t peer_space);
  /// A description of faults in the plugin's profile (negative or infinite figures, an error), or empty. Faulty figures
  /// count as unknown. Reads the profile.
  const std::string& profile_fault();
  /// All zero before the first use.
  MemoryUse memory_use() const;
  /// What the plugin says about the memory (mem_info); nothing if it does not say, or if the device is not open.
  std::optional<ReportedMemory> reported_memory() const;
  /// Returns empty slabs to the plugin; the result is the number of bytes freed.
  uint64_t Trim();
  /// Ok, or Unavailable with the reason if the device was lost. An unopened device is not lost.
  Status health() const;
  /// True if the device was lost and would work again if it were closed and opened.
  bool reset_needed() const;
  /// Classifies the failure of a call on the open device: returns `status`, or the device's loss, which is recorded.
  /// `error_flags` come from the call's error record.
  Status Judge(const Status& status, uint32_t error_flags) const;
  /// True if the device was opened; its plugin may hold a driver context.
  bool opened() const;

 private:
  class State;
  DeviceInfo info_;
  std::string name_;
  StreamApis stream_apis_;
  std::unique_ptr<State> state_;
};

/// All devices of the process in a stable order: by plugin, then by ordinal. Immutable after loading.
class DeviceSet {
 public:
  void Add(std::shared_ptr<Device> device) { devices_.push_back(std::move(device)); }
  const std::vector<std::shared_ptr<Device>>& all() const { return devices_; }
  /// Looks up a full name; null if there is none.
  Device* Find(std::string_view full_name) const;
  /// Devices that match a partial name, in order.
  std::vector<Device*> Matching(const DeviceName& spec) const;

 private:
  std::vector<std::shared_ptr<Device>> devices_;
};

}  // namespace weir::device

#endif  // WEIR_CORE_DEVICE_DEVICE_H_
