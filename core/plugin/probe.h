// A first load of a plugin file in a process of its own (`plugins.probe`): what it does there ends no program.
#ifndef WEIR_CORE_PLUGIN_PROBE_H_
#define WEIR_CORE_PLUGIN_PROBE_H_

#include <chrono>
#include <string>

#include "core/base/status.h"
#include "core/config/config.h"
#include "core/op/registry.h"
#include "core/plugin/scan.h"

namespace weir::plugin {

/// The program that tries files, tools/weir/probe.cc: `weir-probe` in the folder above the usual one of plugins.
std::string ProbeProgram();

/// Loads and starts the file with the options that `config` gives it, finds its devices, reads its kernels and ends it,
/// as this process would. Ok when all that ends, in errors too, which the loader meets again. Aborted saying how the
/// process ended when that was not by itself, DeadlineExceeded when a call does not return within `limit`, Unavailable
/// when `program` cannot be run.
///
/// One trial for each file, contents and options: answers are kept for the life of the process, good ones also as empty
/// files in $XDG_CACHE_HOME/weir/probed (~/.cache without it; nowhere for a process with privileges). Thread-safe.
Status Probe(const ScannedFile& file, const config::Config& config, const std::string& program,
             std::chrono::milliseconds limit);

/// The trial as the program makes it, in this process.
Status TryFile(const std::string& path, const config::Config& config, const op::OpRegistry& ops,
               std::chrono::milliseconds limit);

}  // namespace weir::plugin

#endif  // WEIR_CORE_PLUGIN_PROBE_H_
