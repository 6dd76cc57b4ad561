#include <algorithm>
#include <optional>

#include "core/base/errors.h"
#include "core/io/bundle.h"
#include "core/io/bundle_commit.h"
#include "core/io/bundle_format.h"
#include "core/io/table_file.h"

namespace weir::io {
namespace {

// Number of data files that a merge keeps locked. Sweepers could take the others for leftovers of a process that was
// killed during a save to the same prefix.
constexpr size_t kMaxHeldFiles = 256;

// Index keys that are empty or start with NUL are reserved.
Status CheckName(std::string_view name) {
  if (!name.empty() && name.front() != '\0') return Status();
  return InvalidArgument("a checkpoint key must not be empty or start with NUL");
}

// Merges one part into a tensor's entry; type and full shape must agree.
Status JoinSlices(BundleEntry& have, const BundleEntry& more, std::string_view where) {
  if (have.dtype != more.dtype || !(have.shape == more.shape)) {
    return InvalidArgument("slices of tensor '{}' disagree{}: {} {} and {} {}", have.name, where, Name(have.dtype),
                           have.shape.ToString(), Name(more.dtype), more.shape.ToString());
  }
  have.slices.insert(have.slices.end(), more.slices.begin(), more.slices.end());
  return Status();
}

// Overlapping parts could be written, but not read.
Status RefuseOverlaps(const std::map<std::string, BundleEntry>& entries) {
  for (const auto& [key, entry] : entries) {
    if (entry.slices.size() < 2) continue;
    std::vector<TensorSlice> slices;
    for (const TensorSlice& slice : entry.slices) {
      WEIR_ASSIGN(TensorSlice resolved, Resolve(slice, entry.shape));
      slices.push_back(std::move(resolved));
    }
    WEIR_ASSIGN(const auto found, FindOverlap(slices));
    if (!found) continue;
    return InvalidArgument("tensor '{}': Overlapping slices: existing slice = {}, new slice = {}", entry.name,
                           ToString(entry.slices[found->first]), ToString(entry.slices[found->second]));
  }
  return Status();
}

// Bundles read for merging: their entries in the common index, and the new names of their data files.
struct Merge {
  BundleHeader header{0, false};
  std::map<std::string, BundleEntry> entries;
  std::vector<std::string> data_files;  // by new shard number
  std::vector<std::string> sources;     // those that exist

  Status Take(const std::string& prefix);
};

Status Merge::Take(const std::string& prefix) {
  const std::string path = IndexPath(prefix);
  WEIR_ASSIGN(const std::vector<TableEntry> table, ReadTable(path));
  if (table.empty() || !table.front().key.empty()) return DataLoss("{}: the index has no header", path);
  Result<BundleHeader> found = DecodeHeader(table.front().value);
  if (!found.ok()) return found.status().Prepend(path + ": ");
  if (!sources.empty() && found->big_endian != header.big_endian) {
    return InvalidArgument("{}: its byte order differs from that of the bundles before it", path);
  }
  header.big_endian = found->big_endian;
  for (size_t i = 1; i < table.size(); ++i) {
    Result<BundleEntry> entry = DecodeEntry(table[i].value, *found);
    if (!entry.ok()) return entry.status().Prepend(fmt::format("{}: entry '{}': ", path, table[i].key));
    entry->name = table[i].key;
    if (entry->slices.empty()) entry->shard += header.num_shards;
    const auto [it, fresh] = entries.emplace(table[i].key, *entry);
    if (fresh) continue;
    if (entry->slices.empty() || it->second.slices.empty()) {
      return InvalidArgument("Duplicate tensor keyed by {} encountered, when merging prefix: {}", entry->name, prefix);
    }
    WEIR_TRY(JoinSlices(it->second, *entry, fmt::format(", when merging prefix: {}", prefix)));
  }
  for (int shard = 0; shard < found->num_shards; ++shard) {
    data_files.push_back(DataPath(prefix, shard, found->num_shards));
    if (!FileExists(data_files.back())) return ErrnoStatus(ENOENT, data_files.back());
  }
  header.num_shards += found->num_shards;
  sources.push_back(prefix);
  return Status();
}

}  // namespace

Result<BundleWriter> BundleWriter::Create(const std::string& prefix) {
  WEIR_TRY(MakeDirectory(DirName(prefix)));
  WEIR_ASSIGN(OutputFile data, OutputFile::Create(TemporaryName(DataPath(prefix, 0, 1)), IfExists::kFailAndLock));
  return BundleWriter(prefix, std::move(data));
}

BundleWriter::~BundleWriter() {
  if (!data_.path().empty()) static_cast<void>(RemoveFile(data_.path()));
}

Status BundleWriter::Store(std::string key, const Tensor& tensor) {
  BundleEntry entry;
  entry.name = key;
  WEIR_TRY(WritePayload(tensor, data_, entry));
  entries_.emplace(std::move(key), std::move(entry));
  return Status();
}

Status BundleWriter::Add(std::string_view name, const Tensor& tensor) {
  WEIR_TRY(CheckName(name));
  if (entries_.count(std::string(name)) != 0) return InvalidArgument("Adding duplicate key: {}", name);
  return Store(std::string(name), tensor);
}

Status BundleWriter::AddSlice(std::string_view name, const Shape& full, const TensorSlice& slice,
                              const Tensor& tensor) {
  WEIR_ASSIGN(const TensorSlice resolved, Resolve(slice, full));
  WEIR_ASSIGN(const Shape shape, ShapeOf(resolved));
  if (!(shape == tensor.shape())) {
    return InvalidArgument("slice {} of tensor '{}' has shape {}, but the tensor to save has {}", ToString(slice), name,
                           shape.ToString(), tensor.shape().ToString());
  }
  if (shape == full) return Add(name, tensor);
  WEIR_TRY(CheckName(name));
  BundleEntry whole;
  whole.name = name;
  whole.dtype = tensor.dtype();
  whole.shape = full;
  whole.slices = {slice};
  std::string key = SliceKey(name, slice);
  const auto have = entries_.find(whole.name);
  if (entries_.count(key) != 0 || (have != entries_.end() && have->second.slices.empty())) {
    return InvalidArgument("Adding duplicate key: {}", name);
  }
  if (have != entries_.end()) {
    WEIR_TRY(JoinSlices(have->second, whole, ""));
  } else {
    entries_.emplace(whole.name, whole);
  }
  return Store(std::move(key), tensor);
}

Status BundleWriter::Finish() {
  WEIR_TRY(RefuseOverlaps(entries_));
  WEIR_TRY(data_.Sync());
  WEIR_TRY(CommitBundle(prefix_, BundleHeader{}, entries_, {data_.path()}));
  return data_.Close();
}

Status MergeBundles(const std::vector<std::string>& sources, const std::string& destination,
                    const MergeOptions& options) {
  Merge merge;
  for (const std::string& prefix : sources) {
    if (prefix == destination) return InvalidArgument("cannot merge checkpoint {} into itself", prefix);
    if (options.allow_missing_files && !FileExists(IndexPath(prefix))) continue;
    WEIR_TRY(merge.Take(prefix));
  }
  if (merge.sources.empty()) return InvalidArgument("no checkpoint to merge into {}", destination);
  WEIR_TRY(RefuseOverlaps(merge.entries));
  WEIR_TRY(MakeDirectory(DirName(destination)));
  std::vector<InputFile> held;
  for (const std::string& file : merge.data_files) {
    if (held.size() == kMaxHeldFiles) break;
    WEIR_ASSIGN(InputFile open, InputFile::Open(file));
    open.HoldShared();
    held.push_back(std::move(open));
  }
  WEIR_TRY(CommitBundle(destination, merge.header, merge.entries, merge.data_files));
  // The checkpoint exists; sources that cannot be removed are not an error.
  for (const std::string& prefix : merge.sources) static_cast<void>(RemoveFile(IndexPath(prefix)));
  if (options.delete_old_dirs) {
    for (const std::string& prefix : merge.sources) static_cast<void>(RemoveEmptyDirectory(DirName(prefix)));
  }
  return Status();
}

Status RemoveCheckpoint(const std::string& prefix) {
  WEIR_ASSIGN(const std::vector<DataFile> files, ListDataFiles(prefix));
  if (files.empty() && !FileExists(IndexPath(prefix))) return RemoveFile(prefix + ".meta");
  const CommitMarker marker(prefix);
  WEIR_TRY(RemoveFile(prefix + ".meta"));
  WEIR_TRY(RemoveFile(IndexPath(prefix)));
  for (const DataFile& file : files) WEIR_TRY(RemoveFile(file.path));
  return Status();
}

}  // namespace weir::io
