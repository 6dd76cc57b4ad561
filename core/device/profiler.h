// The device's own times of work that was enqueued on its streams.
#ifndef WEIR_CORE_DEVICE_PROFILER_H_
#define WEIR_CORE_DEVICE_PROFILER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "core/base/status.h"
#include "core/device/stream.h"
#include "sdk/abi/profiler.h"

namespace weir::device {

/// One piece of work; times are those of CLOCK_MONOTONIC, as std::chrono::steady_clock has them.
struct DeviceActivity {
  uint64_t mark = 0;
  uint32_t kind = 0;  // WEIR_ACTIVITY_*
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
};

/// The profiler/1 of one open device, shared by the steps that are traced. The upper half of a mark is the number of
/// the run that set it, never 0. Thread-safe.
class Profiler {
 public:
  /// Null unless the plugin has marks and all functions of profiler/1.
  static std::shared_ptr<Profiler> Make(const StreamApis& apis, weir_device* device);
  Profiler(const weir_profiler_api* api, weir_device* device) : api_(api), device_(device) {}

  /// Records the work of a run from here on.
  Status Begin(uint32_t run);
  /// What the run's work took; it must have ended. Records of runs that did not Begin are dropped.
  std::vector<DeviceActivity> End(uint32_t run);

 private:
  void Drain();

  const weir_profiler_api* const api_;
  weir_device* const device_;
  std::mutex mutex_;  // serializes calls of the plugin, protects runs_
  std::map<uint32_t, std::vector<DeviceActivity>> runs_;
};

/// The run and the rest of a mark.
constexpr uint64_t MarkOf(uint32_t run, uint32_t rest) { return uint64_t{run} << 32 | rest; }
constexpr uint32_t RunOf(uint64_t mark) { return static_cast<uint32_t>(mark >> 32); }
constexpr uint32_t RestOf(uint64_t mark) { return static_cast<uint32_t>(mark); }

}  // namespace weir::device

#endif  // WEIR_CORE_DEVICE_PROFILER_H_
