// Detection of device loss.
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

/// Loss is permanent for an open device. If the plugin asks for a reset, the device can be closed and opened again.
/// Thread-safe.
class Health {
 public:
  /// `device` must stay open as long as this object is used. `name` is for error texts.
  Health(std::string name, const weir_device_api* api, weir_device* device)
      : name_(std::move(name)), api_(api), device_(device) {}

  const std::string& name() const { return name_; }
  /// True once any device of the process was lost; until then runs need not check their own.
  static bool AnyLost() { return any_lost_.load(std::memory_order_relaxed); }
  /// Ok, or Unavailable with the reason of the loss.
  Status Get() const;
  /// True if the device was lost and its plugin reports that opening it again repairs it.
  bool ResetNeeded() const;
  /// Classifies the failure of a call. If the error flags or the plugin report that the device is lost, records and
  /// returns the loss, with the remedy if there is one; otherwise returns `status`, which names the device if it
  /// should.
  Status Judge(const Status& status, uint32_t error_flags);

 private:
  /// WEIR_HEALTH_*; OK if the plugin does not tell.
  int32_t Ask() const { return WEIR_HAS(api_, health) ? api_->health(device_) : int32_t{WEIR_HEALTH_OK}; }

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
