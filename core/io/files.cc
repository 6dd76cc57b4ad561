#include "core/io/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <random>
#include <system_error>

#include "core/base/errors.h"

namespace weir::io {
namespace {

constexpr size_t kBufferBytes = 256 << 10;
// Linux transfers at most 2 GiB per call; smaller pieces limit the work lost to a signal.
constexpr size_t kCallBytes = 256 << 20;

Code CodeOf(int error) {
  switch (error) {
    case ENOENT:
    case ENODEV:
    case ENXIO:
      return Code::kNotFound;
    case EEXIST:
      return Code::kAlreadyExists;
    case EPERM:
    case EACCES:
    case EROFS:
      return Code::kPermissionDenied;
    case EINVAL:
    case ENAMETOOLONG:
    case ESPIPE:
    case ELOOP:
      return Code::kInvalidArgument;
    case ENOTEMPTY:
    case EISDIR:
    case ENOTDIR:
    case EBADF:
    case EBUSY:
    case EPIPE:
    case EXDEV:
      return Code::kFailedPrecondition;
    case ENOSPC:
    case EDQUOT:
    case EMFILE:
    case ENFILE:
    case EMLINK:
    case ENOMEM:
    case EFBIG:
      return Code::kResourceExhausted;
    case EIO:
      return Code::kDataLoss;
    case EAGAIN:
    case ETIMEDOUT:
    case ESTALE:
      return Code::kUnavailable;
    default:
      return Code::kUnknown;
  }
}

// Repeats `f` until it is not interrupted by a signal.
template <class F>
auto Retry(F f) {
  decltype(f()) result;
  do {
    result = f();
  } while (result < 0 && errno == EINTR);
  return result;
}

// The target of `path` through symbolic links; it need not exist.
Result<std::string> FollowLinks(const std::string& path) {
  constexpr int kMaxLinks = 40;  // as in Linux
  std::string target = path;
  for (int i = 0; i < kMaxLinks; ++i) {
    std::error_code error;
    const std::filesystem::path next = std::filesystem::read_symlink(target, error);
    if (error) return target;
    target = JoinPath(DirName(target), next.string());
  }
  return ErrnoStatus(ELOOP, path);
}

}  // namespace

Status ErrnoStatus(int error, std::string_view path) {
  return Status(CodeOf(error), fmt::format("{}; {}", path, std::generic_category().message(error)));
}

std::string JoinPath(std::string_view dir, std::string_view name) {
  if (dir.empty() || (!name.empty() && name.front() == '/')) return std::string(name);
  return fmt::format("{}{}{}", dir, dir.back() == '/' ? "" : "/", name);
}

std::string DirName(std::string_view path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return "";
  return std::string(path.substr(0, std::max<size_t>(slash, 1)));
}

std::string BaseName(std::string_view path) {
  return std::string(path.substr(path.rfind('/') + 1));  // npos + 1 is 0
}

bool FileExists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

bool SameFile(const std::string& a, const std::string& b) {
  struct stat of_a, of_b;
  return stat(a.empty() ? "." : a.c_str(), &of_a) == 0 && stat(b.empty() ? "." : b.c_str(), &of_b) == 0 &&
         of_a.st_dev == of_b.st_dev && of_a.st_ino == of_b.st_ino;
}

std::optional<double> ModifiedSeconds(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) return std::nullopt;
  return static_cast<double>(info.st_mtim.tv_sec) + static_cast<double>(info.st_mtim.tv_nsec) * 1e-9;
}

Result<std::vector<std::string>> ListDirectory(const std::string& dir) {
  struct Closer {
    void operator()(DIR* d) const { closedir(d); }
  };
  const std::unique_ptr<DIR, Closer> stream(opendir(dir.empty() ? "." : dir.c_str()));
  if (!stream) return ErrnoStatus(errno, dir);
  std::vector<std::string> names;
  for (errno = 0; const dirent* entry = readdir(stream.get()); errno = 0) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  if (errno != 0) return ErrnoStatus(errno, dir);
  std::sort(names.begin(), names.end());
  return names;
}

Status MakeDirectory(const std::string& dir) {
  if (dir.empty() || mkdir(dir.c_str(), 0777) == 0) return Status();
  const int error = errno;
  struct stat info;
  if (stat(dir.c_str(), &info) != 0) return ErrnoStatus(error, dir);
  return S_ISDIR(info.st_mode) ? Status() : ErrnoStatus(ENOTDIR, dir);
}

Status MakeDirectories(const std::string& dir) {
  // Shortest prefix first, so that each level has its parent.
  for (size_t end = 0; end < dir.size();) {
    end = std::min(dir.find('/', end + 1), dir.size());
    WEIR_TRY(MakeDirectory(dir.substr(0, end)));
  }
  return Status();
}

Status RenameFile(const std::string& from, const std::string& to) {
  if (rename(from.c_str(), to.c_str()) == 0) return Status();
  return ErrnoStatus(errno, from).Append(fmt::format(" (renaming it to {})", to));
}

Result<bool> LinkFile(const std::string& from, const std::string& to) {
  if (link(from.c_str(), to.c_str()) == 0) return true;
  if (errno == EPERM || errno == EOPNOTSUPP || errno == ENOSYS || errno == EMLINK) return false;
  return ErrnoStatus(errno, to).Append(fmt::format(" (linking it to {})", from));
}

Status RemoveFile(const std::string& path) {
  if (unlink(path.c_str()) == 0 || errno == ENOENT) return Status();
  return ErrnoStatus(errno, path);
}

Status RemoveEmptyDirectory(const std::string& dir) {
  if (rmdir(dir.c_str()) == 0 || errno == ENOENT) return Status();
  return ErrnoStatus(errno, dir);
}

Status SyncDirectory(const std::string& dir) {
  const int fd = Retry([&] { return open(dir.empty() ? "." : dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
  if (fd < 0) return ErrnoStatus(errno, dir);
  // Some file systems do not support folder syncs and return EINVAL; they need none.
  const bool ok = fsync(fd) == 0 || errno == EINVAL;
  const int error = errno;
  close(fd);
  return ok ? Status() : ErrnoStatus(error, dir);
}

std::string TemporaryName(const std::string& path) {
  std::random_device random;
  return fmt::format("{}{}{:016x}", path, kTemporaryMark, (uint64_t{random()} << 32) | random());
}

LockOutcome TryLock(int fd, FileLock lock) {
  const int operation = (lock == FileLock::kShared ? LOCK_SH : LOCK_EX) | LOCK_NB;
  if (Retry([&] { return flock(fd, operation); }) == 0) return LockOutcome::kLocked;
  return errno == EWOULDBLOCK ? LockOutcome::kHeld : LockOutcome::kUnsupported;
}

Result<std::string> ReadFile(const std::string& path, uint64_t limit_bytes) {
  const int fd = Retry([&] { return open(path.c_str(), O_RDONLY | O_CLOEXEC); });
  if (fd < 0) return ErrnoStatus(errno, path);
  struct Closer {
    int fd;
    ~Closer() { close(fd); }
  } closer{fd};
  struct stat info;
  if (fstat(fd, &info) != 0) return ErrnoStatus(errno, path);
  std::string contents;
  const auto too_large = [&] { return ResourceExhausted("{}: larger than the limit of {} bytes", path, limit_bytes); };
  if (S_ISREG(info.st_mode)) {
    if (static_cast<uint64_t>(info.st_size) > limit_bytes) return too_large();
    contents.reserve(static_cast<size_t>(info.st_size) + 1);
  }
  for (;;) {
    const size_t have = contents.size();
    const size_t room = std::max<size_t>(contents.capacity() - have, 64 << 10);
    contents.resize(have + std::min(room, kCallBytes));
    const ssize_t got = Retry([&] { return read(fd, contents.data() + have, contents.size() - have); });
    if (got < 0) return ErrnoStatus(errno, path);
    contents.resize(have + static_cast<size_t>(got));
    if (got == 0) return contents;
    if (contents.size() > limit_bytes) return too_large();
  }
}

Status WriteFileAtomically(const std::string& path, std::string_view contents) {
  const auto fill = [&](const std::string& name, IfExists if_exists) -> Result<OutputFile> {
    WEIR_ASSIGN(OutputFile file, OutputFile::Create(name, if_exists, path));
    WEIR_TRY(file.Append(contents));
    WEIR_TRY(file.Sync());
    return file;
  };
  struct stat info;
  if (stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) {
    WEIR_ASSIGN(OutputFile file, fill(path, IfExists::kReplace));
    return file.Close();
  }
  WEIR_ASSIGN(const std::string target, FollowLinks(path));
  const std::string temporary = TemporaryName(target);
  const Result<OutputFile> file = fill(temporary, IfExists::kFailAndLock);
  Status status = file.status();
  if (status.ok() && rename(temporary.c_str(), target.c_str()) != 0) status = ErrnoStatus(errno, path);
  if (!status.ok()) {
    unlink(temporary.c_str());
    return status;
  }
  return SyncDirectory(DirName(target));
}

Result<InputFile> InputFile::Open(const std::string& path) {
  // Opened non-blocking; a FIFO would otherwise block until a writer opens it.
  const int fd = Retry([&] { return open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK); });
  if (fd < 0) return ErrnoStatus(errno, path);
  InputFile file(fd, 0, path);
  struct stat info;
  if (fstat(fd, &info) != 0) return ErrnoStatus(errno, path);
  if (S_ISDIR(info.st_mode)) return ErrnoStatus(EISDIR, path);
  if (!S_ISREG(info.st_mode)) return FailedPrecondition("{}: not a regular file", path);
  file.size_ = static_cast<uint64_t>(info.st_size);
  return file;
}

InputFile::InputFile(InputFile&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), size_(other.size_), path_(std::move(other.path_)) {}

InputFile& InputFile::operator=(InputFile&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(size_, other.size_);
  std::swap(path_, other.path_);
  return *this;
}

InputFile::~InputFile() {
  if (fd_ >= 0) close(fd_);
}

Status InputFile::ReadAt(uint64_t offset, std::span<std::byte> to) const {
  if (offset > size_ || to.size() > size_ - offset) {
    return DataLoss("{}: {} bytes wanted at offset {}, but the file has {}", path_, to.size(), offset, size_);
  }
  for (size_t done = 0; done < to.size();) {
    const ssize_t got = Retry([&] {
      return pread(fd_, to.data() + done, std::min(to.size() - done, kCallBytes), static_cast<off_t>(offset + done));
    });
    if (got < 0) return ErrnoStatus(errno, path_);
    if (got == 0) return DataLoss("{}: the file shrank to {} bytes while it was read", path_, offset + done);
    done += static_cast<size_t>(got);
  }
  return Status();
}

Result<std::string> InputFile::ReadAt(uint64_t offset, uint64_t size) const {
  std::string bytes;
  if (offset > size_ || size > size_ - offset) {
    return DataLoss("{}: {} bytes wanted at offset {}, but the file has {}", path_, size, offset, size_);
  }
  bytes.resize(size);
  WEIR_TRY(ReadAt(offset, std::as_writable_bytes(std::span(bytes))));
  return bytes;
}

Result<OutputFile> OutputFile::Create(const std::string& path, IfExists if_exists, const std::string& shown_as) {
  const int flags = O_WRONLY | O_CREAT | O_CLOEXEC | (if_exists == IfExists::kReplace ? O_TRUNC : O_EXCL);
  const std::string& name = shown_as.empty() ? path : shown_as;
  constexpr int kAttempts = 100;  // each fails rarely, even beside a process that does nothing but sweep
  for (int attempt = 1;; ++attempt) {
    const int fd = Retry([&] { return open(path.c_str(), flags, 0666); });
    if (fd < 0) return ErrnoStatus(errno, name);
    OutputFile file(fd, name);
    if (if_exists != IfExists::kFailAndLock) return file;
    // A sweeper that acted between the two calls holds the lock until it has removed the file.
    struct stat info;
    if (Retry([&] { return flock(fd, LOCK_EX); }) != 0 || fstat(fd, &info) != 0 || info.st_nlink > 0) return file;
    if (attempt == kAttempts) return Unavailable("{}: another process removes its temporary files", name);
  }
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      written_(other.written_),
      path_(std::move(other.path_)),
      buffer_(std::move(other.buffer_)),
      error_(std::move(other.error_)) {}

OutputFile& OutputFile::operator=(OutputFile&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(written_, other.written_);
  std::swap(path_, other.path_);
  std::swap(buffer_, other.buffer_);
  std::swap(error_, other.error_);
  return *this;
}

OutputFile::~OutputFile() {
  if (fd_ < 0) return;
  if (error_.ok() && !buffer_.empty()) static_cast<void>(WriteOut(buffer_));
  close(fd_);
}

Status OutputFile::WriteOut(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t put = Retry([&] { return write(fd_, bytes.data(), std::min(bytes.size(), kCallBytes)); });
    if (put < 0) return error_ = ErrnoStatus(errno, path_);
    written_ += static_cast<uint64_t>(put);
    bytes.remove_prefix(static_cast<size_t>(put));
  }
  return Status();
}

Status OutputFile::Append(std::string_view bytes) {
  WEIR_TRY(error_);
  if (fd_ < 0) return FailedPrecondition("{}: written to after it was closed", path_);
  if (bytes.size() < kBufferBytes && buffer_.size() + bytes.size() <= kBufferBytes) {
    buffer_.append(bytes);
    return Status();
  }
  WEIR_TRY(Flush());
  if (bytes.size() >= kBufferBytes) return WriteOut(bytes);
  buffer_.assign(bytes);
  return Status();
}

Status OutputFile::Flush() {
  WEIR_TRY(error_);
  WEIR_TRY(WriteOut(buffer_));
  buffer_.clear();
  return Status();
}

Status OutputFile::Sync() {
  WEIR_TRY(Flush());
  // After a failed sync the system may have dropped the pages: the error is permanent, and the file must be rewritten.
  if (fd_ >= 0 && fdatasync(fd_) != 0 && errno != EINVAL) error_ = ErrnoStatus(errno, path_);
  return error_;
}

Status OutputFile::Close() {
  if (fd_ < 0) return error_;
  Status status = Flush();
  if (close(std::exchange(fd_, -1)) != 0 && status.ok()) status = error_ = ErrnoStatus(errno, path_);
  return status;
}

Status OutputFile::TruncateTo(uint64_t size) {
  buffer_.clear();
  error_ = Status();
  if (ftruncate(fd_, static_cast<off_t>(size)) != 0 || lseek(fd_, static_cast<off_t>(size), SEEK_SET) < 0) {
    return error_ = ErrnoStatus(errno, path_);
  }
  written_ = size;
  return Status();
}

}  // namespace weir::io
