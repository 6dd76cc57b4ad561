#include "core/device/health.h"

namespace weir::device {

Status Health::Get() const {
  if (!lost_.load(std::memory_order_relaxed)) return {};
  const std::lock_guard lock(mutex_);
  return loss_;
}

Status Health::Judge(const Status& status, uint32_t error_flags) {
  const bool told = (error_flags & WEIR_ERROR_DEVICE_LOST) != 0;
  if (status.ok() || (!told && (!WEIR_HAS(api_, health) || api_->health(device_) != WEIR_HEALTH_LOST))) return status;
  const std::lock_guard lock(mutex_);
  if (!lost_) {
    const bool named = status.message().starts_with(name_);
    loss_ = Unavailable("the device was lost: {}{}{}", named ? "" : name_, named ? "" : ": ", status.message());
    lost_ = true;
    any_lost_ = true;
  }
  return loss_;
}

}  // namespace weir::device
