// What `weir run` reads from the command line and writes to its folder.
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

/// "NAME=VALUE" cut at the first "=". The command's parser has seen that there is one.
std::pair<std::string, std::string> SplitFeed(const std::string& text);

/// Reads an .npy file or a literal as a tensor for something of type `wanted`. A file keeps its own type, except that
/// types which .npy cannot express are made from those that stand for them there: bfloat16 from float32, quantised
/// types from integers. Errors name the feed.
Result<Tensor> ReadFeed(const std::string& name, const std::string& value, DType wanted);
/// True when the value of a feed means a file: it ends in ".npy" and exists.
bool IsFile(const std::string& value);

/// "<dir>/<name with '/' and ':' as '_'>.npy" for each fetch; InvalidArgument naming two that collide.
Result<std::vector<std::string>> OutputFiles(const std::string& dir, const std::vector<std::string>& fetches);

/// Writes the .npy file; for strings that end in NUL, which such files drop, also "<file>.json" with all lengths.
Status WriteOutput(const std::string& file, const Tensor& tensor);

/// A word as a POSIX shell reads it back.
std::string ShellQuoted(const std::string& word);

}  // namespace weir::cli

#endif  // WEIR_TOOLS_WEIR_RUN_FILES_H_
