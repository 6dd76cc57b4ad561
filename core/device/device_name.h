// TensorFlow device names, full or partial, including all legacy spellings.
#ifndef WEIR_CORE_DEVICE_DEVICE_NAME_H_
#define WEIR_CORE_DEVICE_DEVICE_NAME_H_

#include <optional>
#include <string>
#include <string_view>

#include "core/base/status.h"

namespace weir::device {

/// Parts of a device name; an absent part is unconstrained.
struct DeviceName {
  std::optional<std::string> job;
  std::optional<int> replica;
  std::optional<int> task;
  std::optional<std::string> type;
  std::optional<int> id;

  bool full() const { return job && replica && task && type && id; }
  bool operator==(const DeviceName&) const = default;
  /// "/job:worker/replica:0/task:1/device:GPU:0". Absent parts are omitted; an absent id prints as ":*".
  std::string ToString() const;
};

/// Parses "/job:worker/task:1/device:GPU:0", "/cpu:0", "/gpu:1", "/device:CPU:*", "GPU:0", "/", "". InvalidArgument
/// contains the text and the position of the fault.
Result<DeviceName> ParseDeviceName(std::string_view text);

/// True if `name` agrees with every part specified in `spec`.
bool Matches(const DeviceName& spec, const DeviceName& name);

/// The union of both specifications. InvalidArgument "Cannot merge devices with incompatible …" names both; with
/// `soft`, conflicting types or ids become unconstrained instead.
Result<DeviceName> MergeNames(const DeviceName& a, const DeviceName& b, bool soft);

}  // namespace weir::device

#endif  // WEIR_CORE_DEVICE_DEVICE_NAME_H_
