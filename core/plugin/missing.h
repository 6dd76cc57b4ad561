// Which shared libraries a file cannot be loaded for.
#ifndef WEIR_CORE_PLUGIN_MISSING_H_
#define WEIR_CORE_PLUGIN_MISSING_H_

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace weir::plugin {

/// All libraries that the file at `path` needs, or that those need which it does, and that the dynamic linker does not
/// find. Asks a process of the linker, as ldd does, which looks where dlopen does and runs no code of the files.
/// Empty when it finds all, or gives no answer within `limit`.
std::vector<std::string> MissingLibraries(const std::string& path, std::chrono::milliseconds limit);

/// `failure`, the text of a dlopen of `path` that failed, which names one missing library at most; with all of them
/// where there are several.
std::string WithAllMissing(std::string failure, const std::string& path);

/// What such a list says, whose lines are "\tlibcuda.so.1 => not found" for libraries that are not there.
std::vector<std::string> NotFoundIn(std::string_view list);

}  // namespace weir::plugin

#endif  // WEIR_CORE_PLUGIN_MISSING_H_
