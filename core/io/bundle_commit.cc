#include "core/io/bundle_commit.h"

#include <charconv>
#include <optional>

#include "core/io/table_file.h"

namespace weir::io {
namespace {

// An index under a temporary name, complete on disk. The destructor removes it unless it was placed.
class PendingIndex {
 public:
  explicit PendingIndex(std::string prefix) : prefix_(std::move(prefix)) {}
  PendingIndex(const PendingIndex&) = delete;
  PendingIndex& operator=(const PendingIndex&) = delete;
  ~PendingIndex() {
    if (file_) static_cast<void>(RemoveFile(path_));
  }

  Status Write(const BundleHeader& header, const std::map<std::string, BundleEntry>& entries) {
    const std::string target = IndexPath(prefix_);
    WEIR_ASSIGN(const std::string bytes, EncodeIndex(header, entries));
    path_ = TemporaryName(target);
    WEIR_ASSIGN(OutputFile file, OutputFile::Create(path_, IfExists::kFailAndLock, target));
    file_.emplace(std::move(file));
    WEIR_TRY(file_->Append(bytes));
    return file_->Sync();
  }

  // Makes it the checkpoint's index. `placed` tells whether the rename happened, even if it may not be on disk yet.
  Status Place(bool& placed) {
    WEIR_TRY(RenameFile(path_, IndexPath(prefix_)));
    placed = true;
    file_.reset();
    return SyncDirectory(DirName(prefix_));
  }

 private:
  std::string prefix_;
  std::string path_;
  std::optional<OutputFile> file_;
};

// False if a file could not be removed.
bool RemoveData(const std::string& prefix, int num_shards) {
  bool gone = true;
  for (int shard = 0; shard < num_shards; ++shard) {
    gone = RemoveFile(DataPath(prefix, shard, num_shards)).ok() && gone;
  }
  return gone;
}

class Commit {
 public:
  Commit(const std::string& prefix, const BundleHeader& header, const std::map<std::string, BundleEntry>& entries,
         const std::vector<std::string>& files)
      : prefix_(prefix), header_(header), entries_(entries), files_(files), marker_(prefix) {}

  Status Run();

 private:
  Status Directly(int committed);
  Status ByDetour(int committed);
  Status RenameData();
  Status GiveSecondNames(int num_shards, bool& moved);
  // Removes data files that no index names; a later sweep removes the remaining ones.
  void Tidy(int num_shards) {
    if (!RemoveData(prefix_, num_shards)) marker_.Abandon();
  }

  const std::string& prefix_;
  const BundleHeader header_;
  const std::map<std::string, BundleEntry>& entries_;
  const std::vector<std::string>& files_;
  CommitMarker marker_;
};

Status Commit::Run() {
  const int committed = CommittedShards(prefix_);
  return committed == header_.num_shards || committed < 0 ? ByDetour(committed) : Directly(committed);
}

Status Commit::RenameData() {
  for (size_t i = 0; i < files_.size(); ++i) {
    WEIR_TRY(RenameFile(files_[i], DataPath(prefix_, static_cast<int>(i), header_.num_shards)));
  }
  return SyncDirectory(DirName(prefix_));
}

// For data file names that no committed index uses.
Status Commit::Directly(int committed) {
  PendingIndex index(prefix_);
  WEIR_TRY(index.Write(header_, entries_));
  bool placed = false;
  Status status = RenameData();
  if (status.ok()) status = index.Place(placed);
  if (!placed || status.ok()) {
    Tidy(placed ? committed : header_.num_shards);
  } else {
    marker_.Abandon();  // a power loss could leave either index
  }
  return status;
}

// Gives each data file a name among `num_shards`; the last of these is an empty file. `moved`: the file system has no
// links, so these are the only names.
Status Commit::GiveSecondNames(int num_shards, bool& moved) {
  static_cast<void>(RemoveData(prefix_, num_shards));
  for (size_t i = 0; i < files_.size(); ++i) {
    const std::string name = DataPath(prefix_, static_cast<int>(i), num_shards);
    if (i == 0) {
      WEIR_ASSIGN(const bool linked, LinkFile(files_[i], name));
      moved = !linked;
      if (linked) continue;
    }
    if (moved) {
      WEIR_TRY(RenameFile(files_[i], name));
    } else {
      WEIR_TRY(LinkFile(files_[i], name).status());
    }
  }
  WEIR_ASSIGN(OutputFile empty, OutputFile::Create(DataPath(prefix_, num_shards - 1, num_shards), IfExists::kFail));
  WEIR_TRY(empty.Close());
  return SyncDirectory(DirName(prefix_));
}

Status Commit::ByDetour(int committed) {
  BundleHeader other = header_;
  ++other.num_shards;
  PendingIndex first(prefix_), second(prefix_);
  WEIR_TRY(first.Write(other, entries_));
  WEIR_TRY(second.Write(header_, entries_));
  bool placed = false, moved = false;
  Status status = GiveSecondNames(other.num_shards, moved);
  if (status.ok()) status = first.Place(placed);
  if (!placed) Tidy(other.num_shards);
  if (placed && !status.ok()) marker_.Abandon();  // a power loss could leave either index
  WEIR_TRY(status);
  // The new checkpoint exists; later failures are ignored.
  if (moved) {
    Tidy(committed);
    return Status();
  }
  bool settled = false;
  if (RenameData().ok() && second.Place(settled).ok()) {
    Tidy(other.num_shards);
  } else {
    marker_.Abandon();
  }
  return Status();
}

}  // namespace

Status CommitBundle(const std::string& prefix, const BundleHeader& header,
                    const std::map<std::string, BundleEntry>& entries, const std::vector<std::string>& files) {
  return Commit(prefix, header, entries, files).Run();
}

int CommittedShards(const std::string& prefix) {
  const Result<std::vector<TableEntry>> table = ReadTable(IndexPath(prefix));
  if (!table.ok()) return table.status().code() == Code::kNotFound ? 0 : -1;
  if (table->empty() || !table->front().key.empty()) return -1;
  const Result<BundleHeader> header = DecodeHeader(table->front().value);
  return header.ok() ? header->num_shards : -1;
}

Result<std::vector<DataFile>> ListDataFiles(const std::string& prefix) {
  const std::string dir = DirName(prefix);
  const std::string start = BaseName(prefix) + ".data-";
  std::vector<DataFile> files;
  Result<std::vector<std::string>> names = ListDirectory(dir);
  if (!names.ok()) {
    if (names.status().code() == Code::kNotFound) return files;
    return names.status();
  }
  for (const std::string& name : *names) {
    // Accepts only PREFIX.data-DDDDD-of-DDDDD: another prefix may start with this one.
    const std::string_view rest = name.starts_with(start) ? std::string_view(name).substr(start.size()) : "";
    const auto digits = [](std::string_view part) {
      return part.size() >= 5 && part.find_first_not_of("0123456789") == std::string_view::npos;
    };
    const size_t of = rest.find("-of-");
    if (of == std::string_view::npos || !digits(rest.substr(0, of)) || !digits(rest.substr(of + 4))) continue;
    DataFile file{JoinPath(dir, name), 0};
    const std::string_view count = rest.substr(of + 4);
    std::from_chars(count.data(), count.data() + count.size(), file.num_shards);
    files.push_back(std::move(file));
  }
  return files;
}

CommitMarker::CommitMarker(const std::string& prefix)
    : path_(TemporaryName(IndexPath(prefix))), file_(OutputFile::Create(path_, IfExists::kFailAndLock)) {}

CommitMarker::~CommitMarker() {
  if (!path_.empty()) static_cast<void>(RemoveFile(path_));
}

}  // namespace weir::io
