// Checkpoints read by programs, without a graph or a session.
#ifndef WEIR_CORE_CLIENT_SAVER_CHECKPOINT_READER_H_
#define WEIR_CORE_CLIENT_SAVER_CHECKPOINT_READER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "core/tensor/dtype.h"
#include "core/tensor/tensor.h"

namespace weir {
namespace io {
class BundleReader;
}

/// A checkpoint open for reading: that of a path, or the newest of a folder. Thread-safe.
class CheckpointReader {
 public:
  /// NotFound "Unsuccessful TensorSliceReader constructor: Failed to find any matching files for PATH"; InvalidArgument
  /// "Couldn't find 'checkpoint' file or checkpoints in given directory DIR".
  static Result<CheckpointReader> Open(const std::string& path_or_dir);
  std::map<std::string, std::vector<int64_t>> VariableToShapeMap() const;
  std::map<std::string, DType> VariableToDtypeMap() const;
  bool HasTensor(const std::string& name) const;
  /// The whole of a partitioned variable. NotFound "Key x not found in checkpoint".
  Result<Tensor> GetTensor(const std::string& name) const;
  /// A line "v (DT_FLOAT) [2,2]" for each tensor, by name.
  std::string DebugString() const;

 private:
  std::shared_ptr<const io::BundleReader> bundle_;  // null: none is open, and there are no tensors
};

/// Names and shapes of a checkpoint (as CheckpointReader opens it), sorted by name.
Result<std::vector<std::pair<std::string, std::vector<int64_t>>>> ListVariables(const std::string& path_or_dir);
Result<Tensor> LoadVariable(const std::string& path_or_dir, const std::string& name);

}  // namespace weir

#endif  // WEIR_CORE_CLIENT_SAVER_CHECKPOINT_READER_H_
