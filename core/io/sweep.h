// What killed processes leave in folders of checkpoints.
#ifndef WEIR_CORE_IO_SWEEP_H_
#define WEIR_CORE_IO_SWEEP_H_

#include <map>
#include <string>
#include <vector>

#include "core/io/files.h"

namespace weir::io {

/// Removes from `dir` what savers that were killed left there, and gives the paths: temporary files, and data files
/// that the checkpoint of their prefix does not name. A temporary file of weir's is locked by the process that writes
/// it (IfExists::kFailAndLock in files.h), so one that can be locked has no owner. One of TensorFlow's (".tempstate"
/// and digits), and any on a file system without locks, goes when nothing was written to it for an hour; so does a
/// folder of shards ("PREFIX_temp_" and 32 hexadecimal digits) with nothing but parts in it that nobody holds. Best
/// effort: what cannot be listed, locked or removed stays.
std::vector<std::string> SweepFolder(const std::string& dir);

/// "_temp_<32 hexadecimal digits>/part": what a sharded save puts after its prefix for the names of its parts.
std::string ShardsSuffix();

/// The folders of the parts of a sharded save, which are made, and removed with all parts in them in the end. As long
/// as this lives, sweepers leave them; those of a process that was killed go like its temporary files. Best effort.
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
