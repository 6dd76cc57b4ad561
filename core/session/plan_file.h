// Placement plans from outside.
#ifndef WEIR_CORE_SESSION_PLAN_FILE_H_
#define WEIR_CORE_SESSION_PLAN_FILE_H_

#include <map>
#include <string>
#include <string_view>

#include "core/base/status.h"

namespace weir::session {

/// Node name -> device. The file is JSON with a field "nodes": an object from names to devices, or a list of objects
/// with the fields "name" and "device", as `weir explain --json` and Placement write it; such a list may also be the
/// whole file. Other fields are ignored. InvalidArgument, naming `source` and the fault, for other contents, for a
/// malformed device, and for a node with two devices.
Result<std::map<std::string, std::string>> ParsePlan(std::string_view text, const std::string& source);

/// As ParsePlan, for a file of at most 256 MiB.
Result<std::map<std::string, std::string>> ReadPlan(const std::string& path);

struct SessionOptions;
/// Reads SessionOptions::plan_file into `placement`; nothing without one.
Status UsePlanFile(SessionOptions& options);

}  // namespace weir::session

#endif  // WEIR_CORE_SESSION_PLAN_FILE_H_
