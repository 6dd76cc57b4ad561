// Whether an open device still works.
#ifndef WEIR_CORE_DEVICE_HEALTH_H_
#define WEIR_CORE_DEVICE_HEALTH_H_

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <utility>

#include "core/base/status.h"
#include "sdk/abi/device.h"

namespace weir::device {

/// A device that was lost stays so. Thread-safe.
class Health {
 public:
  /// `device` is open as long as this is used. `name` for error texts.
  Health(std::string name, const weir_device_api* api, weir_device* device)
      : name_(std::move(name)), api_(api), device_(device) {}

  const std::string& name() const { return name_; }
  /// Some device of the process was lost; until then no run has to ask for its own.
  static bool AnyLost() { return any_lost_.load(std::memory_order_relaxed); }
  /// Ok, or Unavailable with the text of the loss.
  Status Get() const;
  /// What a failed call on the device means: its loss, by the flags of the call's error record or by asking the plugin,
  /// which is noted and returned; else `status`, which names the device if it should.
  Status Judge(const Status& status, uint32_t error_flags);

 private:
  const std::string name_;
  const weir_device_api* const api_;
  weir_device* const device_;
  static inline std::atomic<bool> any_lost_{false};
  std::atomic<bool> lost_{false};
  mutable std::mutex mutex_;  // protects loss_
  Status loss_;
};

}  // namespace weir::device

#endif  // WEIR_CORE_DEVICE_HEALTH_H_
