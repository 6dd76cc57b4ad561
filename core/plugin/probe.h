// Trial load of a plugin file in a separate process (`plugins.probe`), so that a crash does not end this one.
#ifndef WEIR_CORE_PLUGIN_PROBE_H_
#define WEIR_CORE_PLUGIN_PROBE_H_

#include <chrono>
#include <string>

#include "core/base/status.h"
#include "core/config/config.h"
#include "core/op/registry.h"
#include "core/plugin/scan.h"

namespace weir::plugin {

/// The trial program, tools/weir/probe.cc: `weir-probe` in the parent of the usual plugin folder.
std::string ProbeProgram();

/// Loads and starts the file with the options from `config`, enumerates its devices, reads its kernels and shuts it
/// down, as this process would. Ok if all calls return, even with errors, which the loader will report. Aborted if the
/// process crashed, with the cause; DeadlineExceeded if a call exceeds `limit`; Unavailable if `program` cannot be run.
///
/// One trial per file, contents and options. Results are cached for the life of the process; successes also as empty
/// files in $XDG_CACHE_HOME/weir/probed (default ~/.cache; not in privileged processes). Thread-safe.
Status Probe(const ScannedFile& file, const config::Config& config, const std::string& program,
             std::chrono::milliseconds limit);

/// Runs the trial in this process; called by the program.
Status TryFile(const std::string& path, const config::Config& config, const op::OpRegistry& ops,
               std::chrono::milliseconds limit);

}  // namespace weir::plugin

#endif  // WEIR_CORE_PLUGIN_PROBE_H_
