// Finds the shared libraries whose absence prevents a file from being loaded.
#ifndef WEIR_CORE_PLUGIN_MISSING_H_
#define WEIR_CORE_PLUGIN_MISSING_H_

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace weir::plugin {

/// All direct and indirect dependencies of the file at `path` that the dynamic linker cannot find. Runs the linker in a
/// child process, as ldd does: it searches like dlopen and runs no code of the files. Empty if all are found or the
/// child gives no answer within `limit`.
std::vector<std::string> MissingLibraries(const std::string& path, std::chrono::milliseconds limit);

/// Extends `failure`, the text of a failed dlopen of `path`, which names at most one missing library: lists all of them
/// if there are several.
std::string WithAllMissing(std::string failure, const std::string& path);

/// Parses ldd output for lines such as "\tlibcuda.so.1 => not found".
std::vector<std::string> NotFoundIn(std::string_view list);

}  // namespace weir::plugin

#endif  // WEIR_CORE_PLUGIN_MISSING_H_
