// Combines nested device scopes.
#ifndef WEIR_CORE_SCOPE_DEVICE_MERGE_H_
#define WEIR_CORE_SCOPE_DEVICE_MERGE_H_

#include <string>
#include <string_view>

#include "core/base/status.h"

namespace weir::scope {

/// `inner` completed by parts that only `outer` specifies: "/cpu:0" in "/job:ps" is "/job:ps/device:CPU:0". Parts are
/// merged independently, so "/device:CPU:*" in "/device:GPU:2" is "/device:CPU:2". Accepts every spelling and returns
/// the canonical one. Errors as in ParseDeviceName.
Result<std::string> MergeDevices(std::string_view inner, std::string_view outer);

}  // namespace weir::scope

#endif  // WEIR_CORE_SCOPE_DEVICE_MERGE_H_
