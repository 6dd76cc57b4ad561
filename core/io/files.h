// Files and folders on POSIX systems: whole reads with a limit, positioned reads, durable writes. Every error names the
// path and keeps the system's own text.
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

/// "<path>; <text of errno>" under TensorFlow's code for the errno: ENOENT is NotFound, ENOSPC ResourceExhausted …
Status ErrnoStatus(int error, std::string_view path);

/// "a/b" + "c" = "a/b/c"; an absolute `name` or an empty `dir` gives `name`.
std::string JoinPath(std::string_view dir, std::string_view name);
/// Everything before the last '/'; "" without one, "/" for "/name".
std::string DirName(std::string_view path);
/// Everything after the last '/'.
std::string BaseName(std::string_view path);

/// True when something of that name can be reached.
bool FileExists(const std::string& path);
/// True when both lead to one file or folder; "" is the current folder.
bool SameFile(const std::string& a, const std::string& b);
/// When the file was last written to, in seconds since 1970; nothing when it cannot be reached.
std::optional<double> ModifiedSeconds(const std::string& path);
/// Base names in a folder, sorted, without "." and "..".
Result<std::vector<std::string>> ListDirectory(const std::string& dir);
/// Makes one folder, whose parent must exist; one that exists is no error, nor is "".
Status MakeDirectory(const std::string& dir);
/// Makes a folder and the missing ones above it; one that exists is no error. "" is the current folder.
Status MakeDirectories(const std::string& dir);
/// Renames over whatever has the new name; both on one file system.
Status RenameFile(const std::string& from, const std::string& to);
/// A file that is not there is no error.
Status RemoveFile(const std::string& path);
/// FailedPrecondition when it is not empty; one that is not there is no error.
Status RemoveEmptyDirectory(const std::string& dir);
/// Gives a file a second name, which must be free; false when its file system has no such links.
Result<bool> LinkFile(const std::string& from, const std::string& to);
/// Makes renames and new names in `dir` ("" is the current folder) survive a power loss.
Status SyncDirectory(const std::string& dir);
/// `path` + kTemporaryMark + 64 random bits in hexadecimal, for a file that is renamed to `path` once it is complete.
std::string TemporaryName(const std::string& path);
inline constexpr std::string_view kTemporaryMark = ".tempstate-weir-";

/// The whole of a file or pipe. ResourceExhausted when there are more than `limit_bytes`, found before a regular file
/// is read; never allocates more than that.
Result<std::string> ReadFile(const std::string& path, uint64_t limit_bytes);
/// Replaces a file as a whole: readers see the old or the new contents, after a power loss too. Symbolic links stay and
/// the file that they lead to is replaced; what is no regular file (a pipe, a terminal) is written to as it is.
Status WriteFileAtomically(const std::string& path, std::string_view contents);

enum class FileLock { kShared, kExclusive };
/// Whether the lock was had, somebody else holds it, or the file system has none. It lasts as long as `fd` is open.
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
  /// Bytes in the file when it was opened.
  uint64_t size() const { return size_; }
  /// Fills `to` from `offset`; DataLoss naming the offset when the file ends before.
  Status ReadAt(uint64_t offset, std::span<std::byte> to) const;
  /// The bytes [offset, offset + size), compared with the file's size before anything is allocated.
  Result<std::string> ReadAt(uint64_t offset, uint64_t size) const;
  /// Keeps sweepers from the file as long as it is open, where the file system has locks.
  void HoldShared() const { static_cast<void>(TryLock(fd_, FileLock::kShared)); }

 private:
  InputFile(int fd, uint64_t size, std::string path) : fd_(fd), size_(size), path_(std::move(path)) {}
  int fd_ = -1;
  uint64_t size_ = 0;
  std::string path_;
};

/// What to do when the file of an OutputFile exists. kFailAndLock is for temporary files: the file is locked (flock)
/// until it is closed or its process dies, so that SweepFolder (sweep.h) leaves it.
enum class IfExists { kReplace, kFail, kFailAndLock };

/// A file being written from its start, through a buffer. Errors are kept: after one, every call repeats it. Move-only.
class OutputFile {
 public:
  /// Errors call the file `shown_as`, where that is not empty.
  static Result<OutputFile> Create(const std::string& path, IfExists if_exists = IfExists::kReplace,
                                   const std::string& shown_as = {});
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&& other) noexcept;
  /// Closes without reporting; call Close to know.
  ~OutputFile();

  const std::string& path() const { return path_; }
  /// Bytes appended so far.
  uint64_t size() const { return written_ + buffer_.size(); }
  Status Append(std::string_view bytes);
  /// Gives the buffer to the system.
  Status Flush();
  /// Flush, and the file's contents reach the disk.
  Status Sync();
  Status Close();
  /// Forgets an error and everything after the first `size` bytes, which the system has taken.
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
