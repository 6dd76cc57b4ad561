#include "core/io/sweep.h"

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <ctime>
#include <random>
#include <string_view>

#include "core/io/bundle_commit.h"
#include "core/io/files.h"

namespace weir::io {
namespace {

constexpr std::string_view kTensorFlowMark = ".tempstate";
constexpr std::string_view kShardsMark = "_temp_";
constexpr size_t kShardsDigits = 32;  // length of TensorFlow's uuid4().hex
constexpr std::string_view kHexDigits = "0123456789abcdef";
constexpr std::string_view kPart = "part";
constexpr time_t kStaleSeconds = 3600;

bool AllOf(std::string_view text, std::string_view allowed) {
  return !text.empty() && text.find_first_not_of(allowed) == std::string_view::npos;
}

// The part of `name` before `mark` if only `allowed` characters follow the mark; otherwise empty.
std::string_view Before(std::string_view name, std::string_view mark, std::string_view allowed) {
  const size_t at = name.rfind(mark);
  if (at == std::string_view::npos || !AllOf(name.substr(at + mark.size()), allowed)) return {};
  return name.substr(0, at);
}

bool IsFolderOfParts(std::string_view name) {
  const std::string_view before = Before(name, kShardsMark, kHexDigits);
  return !before.empty() && before.size() + kShardsMark.size() + kShardsDigits == name.size();
}

// An open file or folder; locked if no other process holds the lock.
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

  // `locked_by_owner`: the file's writer holds its lock. Otherwise only the age counts.
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
  void RemoveParts(const std::string& folder, bool abandoned);

  const std::string& dir_;
};

void Sweep::Look(const std::string& name) {
  const std::string path = JoinPath(dir_, name);
  const std::string_view ours = Before(name, kTemporaryMark, kHexDigits);
  if (!ours.empty() || !Before(name, kTensorFlowMark, "0123456789").empty()) {
    const Candidate file(path, O_RDWR);
    if (!file.Abandoned(!ours.empty())) return;
    // A temporary index means that its save left unfinished data files too.
    if (ours.ends_with(".index")) RemoveUnnamedData(JoinPath(dir_, ours.substr(0, ours.size() - 6)));
    if (IsFolderOfParts(ours)) RemoveParts(JoinPath(dir_, ours), true);
    Remove(path);
  } else if (IsFolderOfParts(name)) {
    RemoveParts(path, false);
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

// `abandoned`: the owner is known to be dead. Otherwise the age decides.
void Sweep::RemoveParts(const std::string& folder, bool abandoned) {
  const Result<std::vector<std::string>> names = ListDirectory(folder);
  if (!names.ok()) return;
  if (!abandoned && !Candidate(folder, O_RDONLY | O_DIRECTORY).Abandoned(false)) return;
  for (const std::string& name : *names) {
    if (!name.starts_with(kPart)) return;
    if (!abandoned && !Candidate(JoinPath(folder, name), O_RDWR).Abandoned(false)) return;
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

std::string ShardsSuffix() {
  std::random_device random;
  return fmt::format("{}{:08x}{:08x}{:08x}{:08x}/{}", kShardsMark, random(), random(), random(), random(), kPart);
}

HeldFolders::HeldFolders(const std::vector<std::string>& parts) {
  for (const std::string& part : parts) {
    const std::string folder = DirName(part);
    if (locks_.contains(folder) || !MakeDirectory(DirName(folder)).ok()) continue;
    Result<OutputFile> lock = OutputFile::Create(TemporaryName(folder), IfExists::kFailAndLock);
    if (lock.ok()) locks_.emplace(folder, std::move(*lock));
    static_cast<void>(MakeDirectory(folder));  // the first part reports errors
  }
}

HeldFolders::~HeldFolders() {
  for (const auto& [folder, lock] : locks_) {
    const Result<std::vector<std::string>> names = ListDirectory(folder);
    for (size_t i = 0; names.ok() && i < names->size(); ++i) {
      if ((*names)[i].starts_with(kPart)) static_cast<void>(RemoveFile(JoinPath(folder, (*names)[i])));
    }
    static_cast<void>(RemoveEmptyDirectory(folder));
    static_cast<void>(RemoveFile(lock.path()));
  }
}

}  // namespace weir::io
