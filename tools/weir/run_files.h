// Feeds of `weir run` from the command line, and its output files.
#ifndef WEIR_TOOLS_WEIR_RUN_FILES_H_
#define WEIR_TOOLS_WEIR_RUN_FILES_H_

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "core/tensor/dtype.h"
#include "core/tensor/tensor.h"

namespace weir::cli {

/// "NAME=VALUE" split at the first "=". The command's parser has checked that there is one.
std::pair<std::string, std::string> SplitFeed(const std::string& text);

/// Reads an .npy file or a literal as a tensor for something of type `wanted`. A file keeps its own type. Types that
/// .npy cannot express are converted from their substitutes: bfloat16 from float32, quantised types from integers.
/// Errors name the feed.
Result<Tensor> ReadFeed(const std::string& name, const std::string& value, DType wanted);
/// True if the value of a feed is a file name: it ends in ".npy" and the file exists.
bool IsFile(const std::string& value);

/// "<dir>/<name with '/' and ':' as '_'>.npy" for each fetch; InvalidArgument naming two that collide.
Result<std::vector<std::string>> OutputFiles(const std::string& dir, const std::vector<std::string>& fetches);

/// Writes the .npy file; for strings that end in NUL, which such files drop, also "<file>.json" with all lengths.
Status WriteOutput(const std::string& file, const Tensor& tensor);

/// A word quoted for a POSIX shell.
std::string ShellQuoted(const std::string& word);

}  // namespace weir::cli

#endif  // WEIR_TOOLS_WEIR_RUN_FILES_H_
