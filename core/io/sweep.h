// Cleans up files that killed processes leave in checkpoint folders.
#ifndef WEIR_CORE_IO_SWEEP_H_
#define WEIR_CORE_IO_SWEEP_H_

#include <map>
#include <string>
#include <vector>

#include "core/io/files.h"

namespace weir::io {

/// Removes the leftovers of killed savers from `dir` and returns their paths: temporary files, and data files not named
/// by the checkpoint of their prefix. A temporary file of weir's is locked by its writer (IfExists::kFailAndLock in
/// files.h), so a file that can be locked is abandoned. TensorFlow's temporary files (".tempstate" and digits), and all
/// files on a file system without locks, are removed if not written for an hour; so is a shard folder ("PREFIX_temp_"
/// and 32 hexadecimal digits) that contains only parts without a lock holder. Best effort: files that cannot be listed,
/// locked or removed stay.
std::vector<std::string> SweepFolder(const std::string& dir);

/// "_temp_<32 hexadecimal digits>/part": the suffix that a sharded save appends to its prefix for part names.
std::string ShardsSuffix();

/// The part folders of a sharded save: created here, and removed at the end with all parts. While this object lives,
/// sweepers skip them; those of a killed process are removed like its temporary files. Best effort.
class HeldFolders {
 public:
  explicit HeldFolders(const std::vector<std::string>& parts);
  HeldFolders(const HeldFolders&) = delete;
  HeldFolders& operator=(const HeldFolders&) = delete;
  ~HeldFolders();

 private:
  std::map<std::string, OutputFile> locks_;  // by folder
};

}  // namespace weir::io

#endif  // WEIR_CORE_IO_SWEEP_H_
