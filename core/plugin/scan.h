// Plugin folders and files before any of their code runs: who may have written them, and what their notes say.
#ifndef WEIR_CORE_PLUGIN_SCAN_H_
#define WEIR_CORE_PLUGIN_SCAN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/plugin/note.h"

namespace weir::plugin {

/// What tells one file from another, and a file from its later contents.
struct FileIdentity {
  uint64_t device = 0;
  uint64_t inode = 0;
  int64_t mtime_ns = 0;
  int64_t bytes = 0;
  auto operator<=>(const FileIdentity&) const = default;

  /// Of what lies at `path` now.
  static Result<FileIdentity> Of(const std::string& path);
};

/// A file that may be trusted and has a note.
struct ScannedFile {
  std::string path;  // canonical
  FileIdentity identity;
  PluginNote note;
  Status loadable;  // why the dynamic linker must not be given it
};

/// A folder's plugin files, sorted by name: `<folder>/*.so`, then `<folder>/<name>/*.so`. The path is canonical.
/// PermissionDenied for a folder that others than root and the process user own or may write; NotFound when there is
/// none; InvalidArgument for a relative path.
Result<std::vector<std::string>> ListFolder(const std::string& folder);

/// Checks owner, mode and place of a file and reads its note from the same descriptor. `folder` is what the file has to
/// lie in once links are resolved; empty = its own folder. PermissionDenied saying what is wrong, or as ReadNote.
Result<ScannedFile> ScanFile(const std::string& path, const std::string& folder = {});

}  // namespace weir::plugin

#endif  // WEIR_CORE_PLUGIN_SCAN_H_
