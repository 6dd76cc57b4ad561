// Files and folders on POSIX systems: whole reads with a limit, positioned reads, durable writes. Every error contains
// the path and the system's text.
#ifndef WEIR_CORE_IO_FILES_H_
#define WEIR_CORE_IO_FILES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/status.h"

namespace weir::io {

/// "<path>; <text of errno>" with TensorFlow's code for the errno: ENOENT is NotFound, ENOSPC is ResourceExhausted …
Status ErrnoStatus(int error, std::string_view path);

/// "a/b" + "c" = "a/b/c"; an absolute `name` or an empty `dir` gives `name`.
std::string JoinPath(std::string_view dir, std::string_view name);
/// Everything before the last '/'; "" without one, "/" for "/name".
std::string DirName(std::string_view path);
/// Everything after the last '/'.
std::string BaseName(std::string_view path);

/// True if `path` exists and is reachable.
bool FileExists(const std::string& path);
/// True if both paths refer to the same file or folder; "" is the current folder.
bool SameFile(const std::string& a, const std::string& b);
/// Modification time in seconds since 1970; nullopt if the file cannot be reached.
std::optional<double> ModifiedSeconds(const std::string& path);
/// Sorted base names of a folder's entries, without "." and "..".
Result<std::vector<std::string>> ListDirectory(const std::string& dir);
/// Creates one folder; its parent must exist. An existing folder or "" is not an error.
Status MakeDirectory(const std::string& dir);
/// Creates a folder and its missing parents. An existing folder is not an error. "" is the current folder.
Status MakeDirectories(const std::string& dir);
/// Renames within one file system; replaces an existing `to`.
Status RenameFile(const std::string& from, const std::string& to);
/// Removes a file. A missing file is not an error.
Status RemoveFile(const std::string& path);
/// Removes an empty folder. FailedPrecondition if it is not empty; a missing one is not an error.
Status RemoveEmptyDirectory(const std::string& dir);
/// Creates a hard link with an unused name; false if the file system has no hard links.
Result<bool> LinkFile(const std::string& from, const std::string& to);
/// Makes renames and new names in `dir` ("" is the current folder) survive a power loss.
Status SyncDirectory(const std::string& dir);
/// `path` + kTemporaryMark + 64 random bits in hexadecimal: the name of a file that will be renamed to `path` once
/// complete.
std::string TemporaryName(const std::string& path);
inline constexpr std::string_view kTemporaryMark = ".tempstate-weir-";

/// Reads a whole file or pipe. ResourceExhausted above `limit_bytes`, checked before a regular file is read; never
/// allocates more than that.
Result<std::string> ReadFile(const std::string& path, uint64_t limit_bytes);
/// Replaces a file atomically: readers see the old or the new contents, also after a power loss. Symbolic links are
/// followed and their target is replaced. A target that is not a regular file (pipe, terminal) is written in place.
Status WriteFileAtomically(const std::string& path, std::string_view contents);

enum class FileLock { kShared, kExclusive };
/// The lock was taken, another process holds it, or the file system has no locks. A lock lasts until `fd` is closed.
enum class LockOutcome { kLocked, kHeld, kUnsupported };
LockOutcome TryLock(int fd, FileLock lock);

/// A regular file open for positioned reads. Move-only; reads may run concurrently.
class InputFile {
 public:
  static Result<InputFile> Open(const std::string& path);
  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&& other) noexcept;
  ~InputFile();

  const std::string& path() const { return path_; }
  /// File size at the time of opening.
  uint64_t size() const { return size_; }
  /// Fills `to` from `offset`; DataLoss names the offset if the file is too short.
  Status ReadAt(uint64_t offset, std::span<std::byte> to) const;
  /// Reads the bytes [offset, offset + size); checks them against the file size before allocating.
  Result<std::string> ReadAt(uint64_t offset, uint64_t size) const;
  /// Protects the file from sweepers while it is open, if the file system has locks.
  void HoldShared() const { static_cast<void>(TryLock(fd_, FileLock::kShared)); }

 private:
  InputFile(int fd, uint64_t size, std::string path) : fd_(fd), size_(size), path_(std::move(path)) {}
  int fd_ = -1;
  uint64_t size_ = 0;
  std::string path_;
};

/// Behaviour if an OutputFile's file exists. kFailAndLock is for temporary files: the file is locked (flock) until it
/// is closed or its process dies, so that SweepFolder (sweep.h) skips it.
enum class IfExists { kReplace, kFail, kFailAndLock };

/// A buffered file written from the start. After an error every call returns it again. Move-only.
class OutputFile {
 public:
  /// If `shown_as` is not empty, errors use it as the name of the file.
  static Result<OutputFile> Create(const std::string& path, IfExists if_exists = IfExists::kReplace,
                                   const std::string& shown_as = {});
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&& other) noexcept;
  /// Closes without reporting errors; call Close to get them.
  ~OutputFile();

  const std::string& path() const { return path_; }
  /// Number of bytes appended so far.
  uint64_t size() const { return written_ + buffer_.size(); }
  Status Append(std::string_view bytes);
  /// Writes the buffer to the system.
  Status Flush();
  /// Flushes, then waits until the contents are on the disk.
  Status Sync();
  Status Close();
  /// Clears an error and truncates the file to its first `size` bytes, which must have been flushed.
  Status TruncateTo(uint64_t size);

 private:
  OutputFile(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  Status WriteOut(std::string_view bytes);

  int fd_ = -1;
  uint64_t written_ = 0;
  std::string path_;
  std::string buffer_;
  Status error_;
};

}  // namespace weir::io

#endif  // WEIR_CORE_IO_FILES_H_
