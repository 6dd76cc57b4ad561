// Version 2 checkpoints ("tensor bundles"): tensors by name in PREFIX.data-?????-of-?????, found through the table
// PREFIX.index. What is written here TensorFlow reads, and the other way round.
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

/// Where one tensor lies. A partitioned tensor has its full shape, the slices that exist, and no place of its own.
struct BundleEntry {
  std::string name;
  DType dtype = DType::kInvalid;
  Shape shape;
  int shard = 0;
  uint64_t offset = 0;
  uint64_t size = 0;        // bytes
  uint32_t masked_crc = 0;  // CRC-32C of those bytes (for strings: see tf_formats 4.3), masked
  std::vector<TensorSlice> slices;
};

/// A checkpoint open for reading. Opening reads and checks the whole index and opens the data files that belong to it
/// (the first 64 of them), so that a save to the same prefix does not disturb the reader; each read compares what the
/// index says with its file's size before allocating, and checks the checksum. Damage is DataLoss naming file and
/// offset, never a crash or a large allocation. Immutable, so thread-safe.
class BundleReader {
 public:
  /// NotFound when there is no PREFIX.index. A data file that is missing is an error only of what reads it.
  static Result<BundleReader> Open(const std::string& prefix);

  const std::string& prefix() const { return prefix_; }
  int num_shards() const { return num_shards_; }
  /// Sorted by name; a partitioned tensor is one entry.
  const std::vector<BundleEntry>& entries() const { return entries_; }
  /// Null when there is none of that name.
  const BundleEntry* Find(std::string_view name) const;
  /// The entry, or NotFound "Key x not found in checkpoint" with the nearest names.
  Result<const BundleEntry*> Get(std::string_view name) const;

  /// A whole tensor; a partitioned one is put together from its slices, which must cover it. DataLoss when two of them
  /// overlap.
  Result<Tensor> Read(std::string_view name) const;
  /// Part of a tensor, however it was saved. InvalidArgument when the slice does not fit the stored shape, or the
  /// stored slices do not cover it; DataLoss when two of these overlap.
  Result<Tensor> ReadSlice(std::string_view name, const TensorSlice& slice) const;
  /// Reads everything and checks every checksum, and that slices neither overlap nor leave gaps; the first error.
  Status Verify() const;
  /// The same for one of entries().
  Status VerifyTensor(const BundleEntry& entry) const;
  /// Where the parts of a partitioned tensor lie, in the order of `entry.slices`; the entry itself for a whole one.
  std::vector<BundleEntry> StoredParts(const BundleEntry& entry) const;

 private:
  static Result<BundleReader> Parse(const std::string& prefix, std::string_view index);
  Status AddEntry(std::string_view key, std::string_view value, const std::string& path);
  Status CheckSlices(const std::string& path) const;
  void HoldFiles();
  Result<Tensor> ReadStored(const BundleEntry& entry) const;
  Result<Tensor> ReadCovered(const BundleEntry& entry, const TensorSlice& wanted) const;

  std::string prefix_;
  int num_shards_ = 0;
  bool big_endian_ = false;
  std::vector<BundleEntry> entries_;
  std::map<std::string, BundleEntry, std::less<>> slice_entries_;  // by SliceKey
  std::map<int, std::shared_ptr<const InputFile>> held_;           // by shard
};

/// Writes a checkpoint of one shard under temporary names; Finish gives them their own, the index last. At every
/// moment, and after a crash or a power loss at any of them, PREFIX.index and the data files that it names are the
/// checkpoint that was there before or the new one, whole, for TensorFlow too. Where the old one has as many data files
/// as the new one, their names are taken: the new one then first exists under names of one data file more, an empty one
/// (PREFIX.data-00000-of-00002 …), and keeps these on file systems without hard links. An error (disk full …) is
/// returned, and the temporary files go with the writer. Single-threaded.
class BundleWriter {
 public:
  /// Makes the folder of `prefix` if only it is missing.
  static Result<BundleWriter> Create(const std::string& prefix);
  BundleWriter(BundleWriter&& other) noexcept = default;
  BundleWriter& operator=(BundleWriter&&) = delete;
  /// Removes what was not finished.
  ~BundleWriter();

  /// Appends a host tensor. InvalidArgument for an empty or repeated name; Unimplemented for a type without a file
  /// form.
  Status Add(std::string_view name, const Tensor& tensor);
  /// Appends a part of tensor `name` of shape `full`. A slice that is all of it is added as a whole tensor. Finish
  /// refuses parts that overlap.
  Status AddSlice(std::string_view name, const Shape& full, const TensorSlice& slice, const Tensor& tensor);
  /// Makes the checkpoint exist: data on disk, then the index. Call once, last.
  Status Finish();

 private:
  BundleWriter(std::string prefix, OutputFile data) : prefix_(std::move(prefix)), data_(std::move(data)) {}
  Status Store(std::string key, const Tensor& tensor);

  std::string prefix_;
  OutputFile data_;
  std::map<std::string, BundleEntry> entries_;  // by key of the index
};

/// What MergeBundles does beside merging.
struct MergeOptions {
  bool delete_old_dirs = true;       // removes folders of the sources that are empty afterwards
  bool allow_missing_files = false;  // a source without an index is skipped; at least one must exist
};

/// Makes the checkpoint `destination` out of several by renaming their data files and writing one index; the rename
/// of the index is the moment at which it exists, and an old checkpoint of that prefix stays whole until then as with
/// BundleWriter. Sources and destination lie on one file system. The sources are gone then, and may be after an error.
/// InvalidArgument when two hold the same tensor, or slices of it that overlap or differ in type or full shape.
Status MergeBundles(const std::vector<std::string>& sources, const std::string& destination,
                    const MergeOptions& options = {});

/// Removes PREFIX.meta and PREFIX.index, then the data files. What is not there is no error.
Status RemoveCheckpoint(const std::string& prefix);

}  // namespace weir::io

#endif  // WEIR_CORE_IO_BUNDLE_H_
