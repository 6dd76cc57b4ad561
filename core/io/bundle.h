// Version 2 checkpoints ("tensor bundles"): tensors by name in PREFIX.data-?????-of-?????, located by the table
// PREFIX.index. Compatible with TensorFlow in both directions.
#ifndef WEIR_CORE_IO_BUNDLE_H_
#define WEIR_CORE_IO_BUNDLE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/io/files.h"
#include "core/io/tensor_slice.h"
#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"
#include "core/tensor/tensor.h"

namespace weir::io {

/// "PREFIX.index".
std::string IndexPath(std::string_view prefix);
/// "PREFIX.data-00000-of-00002".
std::string DataPath(std::string_view prefix, int shard, int num_shards);

/// Location of one tensor. A partitioned tensor has its full shape and a list of slices, but no location.
struct BundleEntry {
  std::string name;
  DType dtype = DType::kInvalid;
  Shape shape;
  int shard = 0;
  uint64_t offset = 0;
  uint64_t size = 0;        // bytes
  uint32_t masked_crc = 0;  // CRC-32C of those bytes, masked (for strings see tf_formats 4.3)
  std::vector<TensorSlice> slices;
};

/// A checkpoint open for reading. Opening reads and checks the whole index and opens its data files (the first 64), so
/// that a save to the same prefix does not disturb the reader. Each read compares the index with the file size before
/// it allocates, and verifies the checksum. Damage is DataLoss naming file and offset, never a crash or a large
/// allocation. Immutable, therefore thread-safe.
class BundleReader {
 public:
  /// NotFound if PREFIX.index does not exist. A missing data file is an error only when it is read.
  static Result<BundleReader> Open(const std::string& prefix);

  const std::string& prefix() const { return prefix_; }
  int num_shards() const { return num_shards_; }
  /// Sorted by name; a partitioned tensor is one entry.
  const std::vector<BundleEntry>& entries() const { return entries_; }
  /// Null if there is none of that name.
  const BundleEntry* Find(std::string_view name) const;
  /// The entry, or NotFound "Key x not found in checkpoint" with the nearest names.
  Result<const BundleEntry*> Get(std::string_view name) const;

  /// Reads a whole tensor. A partitioned one is assembled from its slices, which must cover it. DataLoss if slices
  /// overlap.
  Result<Tensor> Read(std::string_view name) const;
  /// As Read, but large contents may be a DeferredBuffer (core/tensor/deferred.h), which keeps its data file open.
  Result<Tensor> ReadDeferred(std::string_view name) const;
  /// Reads part of a tensor, regardless of how it was saved. InvalidArgument if the slice does not fit the stored shape
  /// or the stored slices do not cover it; DataLoss if stored slices overlap.
  Result<Tensor> ReadSlice(std::string_view name, const TensorSlice& slice) const;
  /// Reads everything and verifies all checksums, and that slices neither overlap nor leave gaps. Returns the first
  /// error.
  Status Verify() const;
  /// As Verify, for one of entries().
  Status VerifyTensor(const BundleEntry& entry) const;
  /// Locations of the parts of a partitioned tensor, in the order of `entry.slices`; for a whole tensor the entry
  /// itself.
  std::vector<BundleEntry> StoredParts(const BundleEntry& entry) const;

 private:
  static Result<BundleReader> Parse(const std::string& prefix, std::string_view index);
  Status AddEntry(std::string_view key, std::string_view value, const std::string& path);
  Status CheckSlices(const std::string& path) const;
  void HoldFiles();
  Result<std::shared_ptr<const InputFile>> FileOf(const BundleEntry& entry) const;
  Result<Tensor> ReadStored(const BundleEntry& entry) const;
  Status VerifyStored(const BundleEntry& entry) const;
  Result<Tensor> ReadCovered(const BundleEntry& entry, const TensorSlice& wanted) const;

  std::string prefix_;
  int num_shards_ = 0;
  bool big_endian_ = false;
  std::vector<BundleEntry> entries_;
  std::map<std::string, BundleEntry, std::less<>> slice_entries_;  // by SliceKey
  std::map<int, std::shared_ptr<const InputFile>> held_;           // by shard
};

/// Writes a checkpoint of one shard under temporary names; Finish renames the files, the index last. At any time, also
/// after a crash or power loss, PREFIX.index and the data files that it names are either the complete old checkpoint or
/// the complete new one, for TensorFlow too. If both have the same number of data files, their names clash. The new
/// checkpoint then first gets names with one more data file, an empty one (PREFIX.data-00000-of-00002 …), and keeps
/// them on file systems without hard links. An error (for example a full disk) is returned; the writer removes the
/// temporary files. Single-threaded.
class BundleWriter {
 public:
  /// Creates the folder of `prefix` if its parent exists.
  static Result<BundleWriter> Create(const std::string& prefix);
  BundleWriter(BundleWriter&& other) noexcept = default;
  BundleWriter& operator=(BundleWriter&&) = delete;
  /// Removes unfinished files.
  ~BundleWriter();

  /// Appends a host tensor. InvalidArgument for an empty or repeated name; Unimplemented for a type that cannot be
  /// stored.
  Status Add(std::string_view name, const Tensor& tensor);
  /// Appends a slice of tensor `name` of shape `full`. A slice that covers the whole shape is added as a whole tensor.
  /// Finish rejects overlapping slices.
  Status AddSlice(std::string_view name, const Shape& full, const TensorSlice& slice, const Tensor& tensor);
  /// Commits the checkpoint: data files to disk, then the index. Call once, last.
  Status Finish();

 private:
  BundleWriter(std::string prefix, OutputFile data) : prefix_(std::move(prefix)), data_(std::move(data)) {}
  Status Store(std::string key, const Tensor& tensor);

  std::string prefix_;
  OutputFile data_;
  std::map<std::string, BundleEntry> entries_;  // by key of the index
};

/// Options of MergeBundles.
struct MergeOptions {
  bool delete_old_dirs = true;       // remove source folders that are empty afterwards
  bool allow_missing_files = false;  // skip sources without an index; at least one must exist
};

/// Merges several checkpoints into `destination` by renaming their data files and writing one index. The checkpoint
/// exists once the index is renamed; an old checkpoint of that prefix stays intact until then, as with BundleWriter.
/// Sources and destination must be on one file system. The sources are removed, possibly also after an error.
/// InvalidArgument if two sources contain the same tensor, or slices of it that overlap or differ in type or full
/// shape.
Status MergeBundles(const std::vector<std::string>& sources, const std::string& destination,
                    const MergeOptions& options = {});

/// Removes PREFIX.meta and PREFIX.index, then the data files. Missing files are not an error.
Status RemoveCheckpoint(const std::string& prefix);

}  // namespace weir::io

#endif  // WEIR_CORE_IO_BUNDLE_H_
