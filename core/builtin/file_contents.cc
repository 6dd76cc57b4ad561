// Whole files as strings, and their names by pattern. Paths are those of the machine that runs the kernel.
#include <algorithm>

#include "core/base/errors.h"
#include "core/builtin/families.h"
#include "core/builtin/operands.h"
#include "core/io/file_pattern.h"
#include "core/io/files.h"

namespace weir::builtin {
namespace {

/// TensorFlow's limit of a message; a larger file could not be a graph's constant either.
constexpr uint64_t kMostFileBytes = uint64_t{1} << 31;

Result<std::string> ScalarText(const kernel::BuiltinCall& call, size_t i, std::string_view what) {
  WEIR_ASSIGN(const std::span<const std::string> texts, Elements<std::string>(call, i, what));
  if (call.inputs[i].shape().rank() == 0) return texts[0];
  return InvalidArgument("{} tensor must be scalar, but had shape: {}", what, call.inputs[i].shape().ToString());
}

Status ReadFileOp(kernel::BuiltinCall& call) {
  WEIR_TRY(CheckCounts(call, 1, 1));
  WEIR_ASSIGN(const std::string path, ScalarText(call, 0, "Input filename"));
  WEIR_ASSIGN(std::string contents, io::ReadFile(path, kMostFileBytes));
  call.outputs[0] = Tensor::String(std::move(contents));
  return Status();
}

Status WriteFileOp(kernel::BuiltinCall& call) {
  WEIR_TRY(CheckCounts(call, 2, 0));
  WEIR_ASSIGN(const std::string path, ScalarText(call, 0, "Input filename"));
  WEIR_ASSIGN(const std::string contents, ScalarText(call, 1, "Contents"));
  WEIR_TRY(io::MakeDirectories(io::DirName(path)));
  return io::WriteFileAtomically(path, contents);
}

Status MatchingFilesOp(kernel::BuiltinCall& call) {
  WEIR_TRY(CheckCounts(call, 1, 1));
  WEIR_ASSIGN(const std::span<const std::string> patterns, Elements<std::string>(call, 0, "pattern"));
  if (call.inputs[0].shape().rank() > 1) {
    return InvalidArgument("Input patterns tensor must be scalar or vector, but had shape: {}",
                           call.inputs[0].shape().ToString());
  }
  std::vector<std::string> paths;
  for (const std::string& pattern : patterns) {
    WEIR_ASSIGN(const std::vector<std::string> found, io::MatchingPaths(pattern));
    paths.insert(paths.end(), found.begin(), found.end());
  }
  std::sort(paths.begin(), paths.end());
  call.outputs[0] = Tensor::Vector<std::string>(paths);
  return Status();
}

}  // namespace

void AddFileContents(kernel::KernelRegistry& kernels) {
  kernels.AddHostBlocking("ReadFile", ReadFileOp);
  kernels.AddHostBlocking("WriteFile", WriteFileOp);
  kernels.AddHostBlocking("MatchingFiles", MatchingFilesOp);
}

}  // namespace weir::builtin
