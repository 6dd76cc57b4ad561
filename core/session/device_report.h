// The devices and plugins of a runtime.
#ifndef WEIR_CORE_SESSION_DEVICE_REPORT_H_
#define WEIR_CORE_SESSION_DEVICE_REPORT_H_

#include <string>
#include <vector>

#include "core/session/reports.h"
#include "core/session/runtime.h"

namespace weir::session {

/// `used`: names of devices that have run nodes.
DeviceReport MakeDeviceReport(const Runtime& runtime, std::vector<std::string> used);

}  // namespace weir::session

#endif  // WEIR_CORE_SESSION_DEVICE_REPORT_H_
