// What nested device scopes ask for together.
#ifndef WEIR_CORE_SCOPE_DEVICE_MERGE_H_
#define WEIR_CORE_SCOPE_DEVICE_MERGE_H_

#include <string>
#include <string_view>

#include "core/base/status.h"

namespace weir::scope {

/// `inner` completed by the parts that only `outer` states: "/cpu:0" in "/job:ps" is "/job:ps/device:CPU:0". Each part
/// counts for itself, so "/device:CPU:*" in "/device:GPU:2" is "/device:CPU:2". Any spelling goes in, the canonical one
/// comes out; errors are those of ParseDeviceName.
Result<std::string> MergeDevices(std::string_view inner, std::string_view outer);

}  // namespace weir::scope

#endif  // WEIR_CORE_SCOPE_DEVICE_MERGE_H_
