// Version 1 checkpoints: tables whose values are SavedTensorSlices messages; one file per shard.
#ifndef WEIR_CORE_IO_LEGACY_CHECKPOINT_H_
#define WEIR_CORE_IO_LEGACY_CHECKPOINT_H_

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/io/tensor_slice.h"
#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"
#include "core/tensor/tensor.h"

namespace weir::io {

/// A checkpoint read into memory: the tables of all its files. Damage is DataLoss naming the file. Immutable, therefore
/// thread-safe.
class LegacyReader {
 public:
  struct Entry {
    DType dtype = DType::kInvalid;
    Shape shape;
    std::vector<TensorSlice> slices;  // as stored
  };

  /// `pattern` is that of MatchingPaths. NotFound with TensorFlow's text if no file matches.
  static Result<LegacyReader> Open(const std::string& pattern);

  const std::map<std::string, Entry, std::less<>>& entries() const { return entries_; }
  /// Null if there is none of that name.
  const Entry* Find(std::string_view name) const;
  /// Reads part of a tensor. InvalidArgument if the slice does not fit the stored shape or the stored slices do not
  /// cover it.
  Result<Tensor> ReadSlice(std::string_view name, const TensorSlice& slice) const;

 private:
  Status Take(const std::string& path);

  std::map<std::string, Entry, std::less<>> entries_;
  std::map<std::string, std::string> values_;  // by SliceKey
};

/// Collects tensors in memory and writes one file under a temporary name, which Finish renames. Single-threaded.
class LegacyWriter {
 public:
  explicit LegacyWriter(std::string path) : path_(std::move(path)) {}

  /// Appends a slice of tensor `name` of shape `full`; a repeated slice replaces the first. InvalidArgument for slices
  /// that disagree; Unimplemented for a type that such checkpoints have not.
  Status Add(const std::string& name, const Shape& full, const TensorSlice& slice, const Tensor& tensor);
  /// Creates the folder of the file if its parent exists.
  Status Finish();

 private:
  std::string path_;
  std::map<std::string, LegacyReader::Entry> entries_;
  std::map<std::string, std::string> values_;  // by SliceKey
};

}  // namespace weir::io

#endif  // WEIR_CORE_IO_LEGACY_CHECKPOINT_H_
