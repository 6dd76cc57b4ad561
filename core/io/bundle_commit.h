// The moment at which a checkpoint comes to be: complete data files get their names, then the index does. bundle.h says
// what holds at every moment of it.
#ifndef WEIR_CORE_IO_BUNDLE_COMMIT_H_
#define WEIR_CORE_IO_BUNDLE_COMMIT_H_

#include <map>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/io/bundle.h"
#include "core/io/bundle_format.h"

namespace weir::io {

/// Makes the checkpoint `prefix` of `entries` (by key of the index) and the data files `files`, one per shard of
/// `header`, which are on disk and lie on its file system. They are gone then, and so is what the old checkpoint of
/// that prefix consisted of. The caller keeps them locked until this returns. On an error before the new checkpoint
/// exists the old one is as it was; what goes wrong afterwards while files are tidied up is no error.
Status CommitBundle(const std::string& prefix, const BundleHeader& header,
                    const std::map<std::string, BundleEntry>& entries, const std::vector<std::string>& files);

/// Data files of the checkpoint `prefix` as its index says; 0 without an index, -1 for one that cannot be read.
int CommittedShards(const std::string& prefix);

/// A data file PREFIX.data-DDDDD-of-DDDDD that exists.
struct DataFile {
  std::string path;
  int num_shards = 0;
};
/// Those of exactly that prefix; an empty list when the folder is missing.
Result<std::vector<DataFile>> ListDataFiles(const std::string& prefix);

/// An empty temporary file beside PREFIX.index for as long as data files of the prefix may lie there that no index
/// names. Where the process dies, it is what leads SweepFolder to them. Best effort: a full disk keeps no one from
/// saving. Move-only.
class CommitMarker {
 public:
  explicit CommitMarker(const std::string& prefix);
  CommitMarker(const CommitMarker&) = delete;
  CommitMarker& operator=(const CommitMarker&) = delete;
  ~CommitMarker();
  /// Leaves the file to a sweeper.
  void Abandon() { path_.clear(); }

 private:
  std::string path_;
  Result<OutputFile> file_;
};

}  // namespace weir::io

#endif  // WEIR_CORE_IO_BUNDLE_COMMIT_H_
