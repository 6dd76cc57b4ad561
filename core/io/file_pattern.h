// Names of files by pattern.
#ifndef WEIR_CORE_IO_FILE_PATTERN_H_
#define WEIR_CORE_IO_FILE_PATTERN_H_

#include <string>
#include <vector>

#include "core/base/status.h"

namespace weir::io {

/// The paths of existing files and folders that match, sorted. '*' and '?' stand for characters other than '/',
/// "[a-c]" for one of several, and '\' takes the next character literally. As in TensorFlow, matches of a pattern that
/// begins with none of its folders are below "./".
Result<std::vector<std::string>> MatchingPaths(const std::string& pattern);

}  // namespace weir::io

#endif  // WEIR_CORE_IO_FILE_PATTERN_H_
