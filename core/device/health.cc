#include "core/device/health.h"

#include "core/base/errors.h"

namespace weir::device {

Status Health::Get() const {
  if (!lost_.load(std::memory_order_relaxed)) return {};
  const std::lock_guard lock(mutex_);
  return loss_;
}

bool Health::ResetNeeded() const { return lost_.load(std::memory_order_relaxed) && Ask() == WEIR_HEALTH_RESET_NEEDED; }

Status Health::Judge(const Status& status, uint32_t error_flags) {
  if (status.ok()) return status;
  const int32_t health = Ask();
  if (health == WEIR_HEALTH_OK && (error_flags & WEIR_ERROR_DEVICE_LOST) == 0) return status;
  const std::lock_guard lock(mutex_);
  if (!lost_) {
    const bool named = status.message().starts_with(name_);
    loss_ =
        Unavailable("the device was lost: {}{}{}{}", named ? "" : name_, named ? "" : ": ", status.message(),
                    health == WEIR_HEALTH_RESET_NEEDED
                        ? "; it needs a reset: after all sessions that use it are closed, the next one opens it again"
                        : "");
    lost_ = true;
    any_lost_ = true;
  }
  return loss_;
}

}  // namespace weir::device
