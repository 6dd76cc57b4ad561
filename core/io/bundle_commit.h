// Commits a checkpoint: gives the complete data files their names, then the index. bundle.h states the guarantees.
#ifndef WEIR_CORE_IO_BUNDLE_COMMIT_H_
#define WEIR_CORE_IO_BUNDLE_COMMIT_H_

#include <map>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/io/bundle.h"
#include "core/io/bundle_format.h"

namespace weir::io {

/// Commits the checkpoint `prefix` from `entries` (by index key) and the data files `files`, one per shard of `header`.
/// The files must be synced and on the file system of `prefix`; they are renamed, and the files of the old checkpoint
/// are removed. The caller keeps them locked until this returns. On an error before the commit the old checkpoint is
/// unchanged; later failures of the clean-up are ignored.
Status CommitBundle(const std::string& prefix, const BundleHeader& header,
                    const std::map<std::string, BundleEntry>& entries, const std::vector<std::string>& files);

/// Number of data files according to the index of `prefix`; 0 without an index, -1 if it cannot be read.
int CommittedShards(const std::string& prefix);

/// An existing data file PREFIX.data-DDDDD-of-DDDDD.
struct DataFile {
  std::string path;
  int num_shards = 0;
};
/// The data files of exactly that prefix; empty if the folder is missing.
Result<std::vector<DataFile>> ListDataFiles(const std::string& prefix);

/// An empty temporary file beside PREFIX.index that exists while the prefix may have data files not named by an index.
/// If the process dies, it leads SweepFolder to them. Best effort: a full disk does not prevent a save. Move-only.
class CommitMarker {
 public:
  explicit CommitMarker(const std::string& prefix);
  CommitMarker(const CommitMarker&) = delete;
  CommitMarker& operator=(const CommitMarker&) = delete;
  ~CommitMarker();
  /// Keeps the file for a later sweep.
  void Abandon() { path_.clear(); }

 private:
  std::string path_;
  Result<OutputFile> file_;
};

}  // namespace weir::io

#endif  // WEIR_CORE_IO_BUNDLE_COMMIT_H_
