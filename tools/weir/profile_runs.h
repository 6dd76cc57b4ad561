// Files of times from runs, for the commands of `weir profile`.
#ifndef WEIR_TOOLS_WEIR_PROFILE_RUNS_H_
#define WEIR_TOOLS_WEIR_PROFILE_RUNS_H_

#include <string>

#include "core/base/status.h"
#include "tools/weir/commands.h"

namespace weir::cli {

/// True if the file has times of runs, false if it has calibration points or something else.
Result<bool> IsMeasuredFile(const std::string& path);
Status ShowMeasuredFile(const std::string& path, const Console& console, Json& report);
/// Of equal kernels the times with more samples count, the later ones if equal.
Status MergeMeasuredFiles(const ProfileOptions& options, const Console& console, Json& report);
Status DiffMeasuredFiles(const ProfileOptions& options, const Console& console, Json& report);

}  // namespace weir::cli

#endif  // WEIR_TOOLS_WEIR_PROFILE_RUNS_H_
