// Plugin folders and files before any of their code runs: ownership checks and notes.
#ifndef WEIR_CORE_PLUGIN_SCAN_H_
#define WEIR_CORE_PLUGIN_SCAN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/plugin/note.h"

namespace weir::plugin {

/// Identifies a file and its current contents.
struct FileIdentity {
  uint64_t device = 0;
  uint64_t inode = 0;
  int64_t mtime_ns = 0;
  int64_t bytes = 0;
  auto operator<=>(const FileIdentity&) const = default;

  /// The identity of the file now at `path`.
  static Result<FileIdentity> Of(const std::string& path);
};

/// A trusted file with a note.
struct ScannedFile {
  std::string path;  // canonical
  FileIdentity identity;
  PluginNote note;
  Status loadable;  // the reason why it must not be loaded, or ok
};

/// A folder's plugin files, sorted by name: `<folder>/*.so`, then `<folder>/<name>/*.so`. Paths are canonical.
/// PermissionDenied if anyone but root and the process user owns or may write the folder; NotFound if it does not
/// exist; InvalidArgument for a relative path.
Result<std::vector<std::string>> ListFolder(const std::string& folder);

/// Checks owner, mode and location of a file, and reads its note from the same descriptor. After resolving links the
/// file must lie in `folder` (empty = its own folder). PermissionDenied states the fault; otherwise errors as in
/// ReadNote.
Result<ScannedFile> ScanFile(const std::string& path, const std::string& folder = {});

}  // namespace weir::plugin

#endif  // WEIR_CORE_PLUGIN_SCAN_H_
