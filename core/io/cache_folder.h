// The user's cache folder.
#ifndef WEIR_CORE_IO_CACHE_FOLDER_H_
#define WEIR_CORE_IO_CACHE_FOLDER_H_

#include <string>
#include <string_view>

namespace weir::io {

enum class CacheUse { kRead, kWrite };

/// $XDG_CACHE_HOME/weir/`name` (default ~/.cache), which this user owns and nobody else may write; kWrite creates it.
/// Empty if there is no such folder, and in processes with privileges.
std::string CacheFolder(std::string_view name, CacheUse use);

}  // namespace weir::io

#endif  // WEIR_CORE_IO_CACHE_FOLDER_H_
