#include "core/plugin/scan.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>

#include "core/base/errors.h"
#include "core/plugin/loadable.h"

namespace weir::plugin {
namespace {

namespace fs = std::filesystem;

FileIdentity IdentityOf(const struct stat& info) {
  return {static_cast<uint64_t>(info.st_dev), static_cast<uint64_t>(info.st_ino),
          static_cast<int64_t>(info.st_mtim.tv_sec) * 1'000'000'000 + info.st_mtim.tv_nsec,
          static_cast<int64_t>(info.st_size)};
}

// Only root and the process user may have write access to loaded files.
Status CheckTrust(const struct stat& info, const std::string& path) {
  if (info.st_uid != 0 && info.st_uid != geteuid()) {
    return PermissionDenied("{} belongs to user {}, wanted root or user {}", path, info.st_uid, geteuid());
  }
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return PermissionDenied("{} may be written by its group or by others (mode {:04o}), wanted 0755", path,
                            info.st_mode & 07777);
  }
  return {};
}

Result<struct stat> Stat(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) == 0) return info;
  if (errno == ENOENT || errno == ENOTDIR) return NotFound("{} does not exist", path);
  return Unavailable("cannot stat {}: {}", path, std::strerror(errno));
}

Result<std::string> Canonical(const std::string& path) {
  std::error_code error;
  const fs::path resolved = fs::canonical(path, error);
  if (error) return NotFound("cannot resolve {}: {}", path, error.message());
  return resolved.string();
}

bool LiesIn(const fs::path& file, const fs::path& folder) {
  const fs::path relative = file.lexically_relative(folder);
  return !relative.empty() && *relative.begin() != "..";
}

// Adds the .so files in `folder` and, at the top level, in its subfolders.
void Collect(const fs::path& folder, bool top, std::vector<std::string>& files) {
  std::error_code error;
  std::vector<fs::path> entries;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    entries.push_back(it->path());
  std::sort(entries.begin(), entries.end());
  for (const fs::path& entry : entries) {
    if (entry.extension() == ".so" && !fs::is_directory(entry, error)) files.push_back(entry.string());
  }
  if (!top) return;
  for (const fs::path& entry : entries) {
    if (fs::is_directory(entry, error)) Collect(entry, false, files);
  }
}

}  // namespace

Result<FileIdentity> FileIdentity::Of(const std::string& path) {
  WEIR_ASSIGN(const struct stat info, Stat(path));
  return IdentityOf(info);
}

Result<std::vector<std::string>> ListFolder(const std::string& folder) {
  if (folder.empty() || folder[0] != '/') return InvalidArgument("plugin folder '{}' is no absolute path", folder);
  WEIR_ASSIGN(const struct stat info, Stat(folder));
  if (!S_ISDIR(info.st_mode)) return InvalidArgument("{} is not a folder", folder);
  WEIR_ASSIGN(const std::string resolved, Canonical(folder));
  WEIR_TRY(CheckTrust(info, resolved));
  std::vector<std::string> files;
  Collect(resolved, true, files);
  return files;
}

Result<ScannedFile> ScanFile(const std::string& path, const std::string& folder) {
  if (path.empty() || path[0] != '/') return InvalidArgument("plugin file '{}' is no absolute path", path);
  ScannedFile scanned;
  WEIR_ASSIGN(scanned.path, Canonical(path));
  const std::string parent = fs::path(scanned.path).parent_path().string();
  std::string within = parent;
  if (!folder.empty()) {
    WEIR_ASSIGN(within, Canonical(folder));
  }
  if (!LiesIn(scanned.path, within)) return PermissionDenied("{} leads out of {} to {}", path, within, scanned.path);
  WEIR_ASSIGN(const struct stat parent_info, Stat(parent));
  WEIR_TRY(CheckTrust(parent_info, parent));

  // O_NONBLOCK, because opening a FIFO would otherwise wait for a writer.
  const int fd = open(scanned.path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return Unavailable("cannot open {}: {}", scanned.path, std::strerror(errno));
  const std::unique_ptr<const int, void (*)(const int*)> closer(&fd, [](const int* open_fd) { close(*open_fd); });
  struct stat info;
  if (fstat(fd, &info) != 0) return Unavailable("cannot stat {}: {}", scanned.path, std::strerror(errno));
  if (!S_ISREG(info.st_mode)) return PermissionDenied("{} is not a regular file", scanned.path);
  if ((info.st_mode & (S_ISUID | S_ISGID)) != 0) return PermissionDenied("{} has a set-id bit", scanned.path);
  WEIR_TRY(CheckTrust(info, scanned.path));
  scanned.identity = IdentityOf(info);
  WEIR_ASSIGN(const FileSource source, FileSource::Of(fd));
  WEIR_ASSIGN(scanned.note, ReadNote(source));
  scanned.loadable = CheckLoadable(source);
  return scanned;
}

}  // namespace weir::plugin
