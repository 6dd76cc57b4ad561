#include "core/io/sweep.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <ctime>
#include <string_view>

#include "core/io/bundle_commit.h"
#include "core/io/files.h"

namespace weir::io {
namespace {

constexpr std::string_view kTensorFlowMark = ".tempstate";
constexpr std::string_view kShardsMark = "_temp_";
constexpr size_t kShardsDigits = 32;  // of TensorFlow's uuid4().hex
constexpr time_t kStaleSeconds = 3600;

bool AllOf(std::string_view text, std::string_view allowed) {
  return !text.empty() && text.find_first_not_of(allowed) == std::string_view::npos;
}

// What stands before `mark` in a name that ends with it and `allowed` characters; empty for other names.
std::string_view Before(std::string_view name, std::string_view mark, std::string_view allowed) {
  const size_t at = name.rfind(mark);
  if (at == std::string_view::npos || !AllOf(name.substr(at + mark.size()), allowed)) return {};
  return name.substr(0, at);
}

// A file or folder that is open, and locked where nobody else has it.
class Candidate {
 public:
  Candidate(const std::string& path, int flags)
      : path_(path), fd_(open(path.c_str(), flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)) {
    if (fd_ >= 0) lock_ = TryLock(fd_, FileLock::kExclusive);
  }
  Candidate(const Candidate&) = delete;
  Candidate& operator=(const Candidate&) = delete;
  ~Candidate() {
    if (fd_ >= 0) close(fd_);
  }

  // `locked_by_owner`: whoever writes this holds its lock. Otherwise only age tells.
  bool Abandoned(bool locked_by_owner) const {
    if (lock_ == LockOutcome::kHeld) return false;
    if (locked_by_owner && lock_ == LockOutcome::kLocked) return true;
    struct stat info;
    return fd_ >= 0 && fstat(fd_, &info) == 0 && std::time(nullptr) - info.st_mtime > kStaleSeconds;
  }

 private:
  const std::string& path_;
  const int fd_;
  LockOutcome lock_ = LockOutcome::kHeld;
};

class Sweep {
 public:
  explicit Sweep(const std::string& dir) : dir_(dir) {}

  void Run(const std::vector<std::string>& names) {
    for (const std::string& name : names) Look(name);
  }
  std::vector<std::string> removed;

 private:
  void Look(const std::string& name);
  void Remove(const std::string& path) {
    if (RemoveFile(path).ok()) removed.push_back(path);
  }
  void RemoveUnnamedData(const std::string& prefix);
  void RemoveShards(const std::string& folder);

  const std::string& dir_;
};

void Sweep::Look(const std::string& name) {
  const std::string path = JoinPath(dir_, name);
  const std::string_view ours = Before(name, kTemporaryMark, "0123456789abcdef");
  if (!ours.empty() || !Before(name, kTensorFlowMark, "0123456789").empty()) {
    const Candidate file(path, O_RDWR);
    if (!file.Abandoned(!ours.empty())) return;
    // A temporary index means that its save was not done with the data files either.
    if (ours.ends_with(".index")) RemoveUnnamedData(JoinPath(dir_, ours.substr(0, ours.size() - 6)));
    Remove(path);
  } else if (Before(name, kShardsMark, "0123456789abcdef").size() + kShardsMark.size() + kShardsDigits == name.size()) {
    const Candidate folder(path, O_RDONLY | O_DIRECTORY);
    if (folder.Abandoned(false)) RemoveShards(path);
  }
}

void Sweep::RemoveUnnamedData(const std::string& prefix) {
  const int committed = CommittedShards(prefix);
  const Result<std::vector<DataFile>> files = ListDataFiles(prefix);
  if (committed < 0 || !files.ok()) return;
  for (const DataFile& file : *files) {
    if (file.num_shards != committed && Candidate(file.path, O_RDWR).Abandoned(true)) Remove(file.path);
  }
}

void Sweep::RemoveShards(const std::string& folder) {
  const Result<std::vector<std::string>> names = ListDirectory(folder);
  if (!names.ok()) return;
  for (const std::string& name : *names) {
    const std::string path = JoinPath(folder, name);
    if (!name.starts_with("part") || !Candidate(path, O_RDWR).Abandoned(false)) return;
  }
  for (const std::string& name : *names) Remove(JoinPath(folder, name));
  if (RemoveEmptyDirectory(folder).ok()) removed.push_back(folder);
}

}  // namespace

std::vector<std::string> SweepFolder(const std::string& dir) {
  Sweep sweep(dir);
  if (const Result<std::vector<std::string>> names = ListDirectory(dir); names.ok()) sweep.Run(*names);
  return sweep.removed;
}

}  // namespace weir::io
