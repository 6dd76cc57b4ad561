#include <algorithm>
#include <memory>
#include <set>

#include "core/base/errors.h"
#include "core/base/nearest.h"
#include "core/io/bundle.h"
#include "core/io/bundle_format.h"
#include "core/io/table_file.h"

namespace weir::io {
namespace {

// Row-major strides of a tensor whose shape is that of the slice `whole`.
std::vector<int64_t> Strides(const TensorSlice& whole) {
  std::vector<int64_t> strides(whole.size(), 1);
  for (size_t i = whole.size(); i-- > 1;) strides[i - 1] = strides[i] * whole[i].length;
  return strides;
}

// Calls f(from, to, count) for each contiguous run of elements in `both`, the intersection of `from` and `to`.
template <class F>
void ForEachRun(const TensorSlice& from, const TensorSlice& to, const TensorSlice& both, F f) {
  const std::vector<int64_t> from_strides = Strides(from);
  const std::vector<int64_t> to_strides = Strides(to);
  std::vector<int64_t> at(both.size(), 0);
  const size_t last = both.size();
  const int64_t run = last == 0 ? 1 : both[last - 1].length;
  for (;;) {
    int64_t from_at = 0, to_at = 0;
    for (size_t i = 0; i < last; ++i) {
      from_at += (both[i].start - from[i].start + at[i]) * from_strides[i];
      to_at += (both[i].start - to[i].start + at[i]) * to_strides[i];
    }
    f(from_at, to_at, run);
    size_t i = last;
    for (i = last < 2 ? 0 : last - 1; i > 0; --i) {
      if (++at[i - 1] < both[i - 1].length) break;
      at[i - 1] = 0;
    }
    if (i == 0) return;
  }
}

void CopyRuns(const Tensor& source, const TensorSlice& from, Tensor& target, const TensorSlice& to,
              const TensorSlice& both) {
  const size_t bytes = SizeOf(source.dtype());
  ForEachRun(from, to, both, [&](int64_t from_at, int64_t to_at, int64_t count) {
    if (source.dtype() == DType::kString) {
      const auto texts = source.as<std::string>().subspan(static_cast<size_t>(from_at), static_cast<size_t>(count));
      std::copy(texts.begin(), texts.end(), target.mutable_as<std::string>().begin() + to_at);
    } else {
      std::memcpy(target.mutable_raw() + static_cast<size_t>(to_at) * bytes,
                  source.raw() + static_cast<size_t>(from_at) * bytes, static_cast<size_t>(count) * bytes);
    }
  });
}

// The bytes of PREFIX.index; NotFound with TensorFlow's text.
Result<std::string> ReadIndexBytes(const std::string& prefix) {
  const std::string path = IndexPath(prefix);
  Result<std::string> bytes = ReadTableBytes(path);
  if (bytes.ok() || bytes.status().code() != Code::kNotFound) return bytes;
  if (!FileExists(prefix)) {
    return NotFound("Unsuccessful TensorSliceReader constructor: Failed to find any matching files for {}", prefix);
  }
  return NotFound(
      "Unsuccessful TensorSliceReader constructor: {} is missing ({} itself is no prefix of a version "
      "2 checkpoint)",
      path, prefix);
}

// The slices of a partitioned tensor with explicit lengths; an error if they overlap.
Result<std::vector<TensorSlice>> SeparateSlices(const BundleEntry& entry, const std::string& prefix) {
  std::vector<TensorSlice> slices;
  for (const TensorSlice& stored : entry.slices) {
    WEIR_ASSIGN(TensorSlice resolved, Resolve(stored, entry.shape));
    slices.push_back(std::move(resolved));
  }
  const auto found = FindOverlap(slices);
  if (!found.ok()) return found.status().Prepend(fmt::format("{}: tensor '{}': ", IndexPath(prefix), entry.name));
  if (!*found) return slices;
  return DataLoss("{}: tensor '{}': Overlapping slices: existing slice = {}, new slice = {}", IndexPath(prefix),
                  entry.name, ToString(entry.slices[(*found)->first]), ToString(entry.slices[(*found)->second]));
}

}  // namespace

std::string IndexPath(std::string_view prefix) { return fmt::format("{}.index", prefix); }

std::string DataPath(std::string_view prefix, int shard, int num_shards) {
  return fmt::format("{}.data-{:05d}-of-{:05d}", prefix, shard, num_shards);
}

Result<BundleReader> BundleReader::Open(const std::string& prefix) {
  // Data files are opened by name after the index was read. If the index has changed by then, everything is read again.
  constexpr int kAttempts = 10;
  const std::string path = IndexPath(prefix);
  Result<std::string> index = ReadIndexBytes(prefix);
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    WEIR_TRY(index.status());
    WEIR_ASSIGN(BundleReader reader, Parse(prefix, *index));
    reader.HoldFiles();
    Result<std::string> now = ReadIndexBytes(prefix);
    if (now.ok() && *now == *index) return reader;
    index = std::move(now);
  }
  return Unavailable("{}: it changed {} times while it was opened", path, kAttempts);
}

Result<BundleReader> BundleReader::Parse(const std::string& prefix, std::string_view index) {
  const std::string path = IndexPath(prefix);
  WEIR_ASSIGN(const std::vector<TableEntry> table, ParseTable(index, path));
  if (table.empty() || !table.front().key.empty()) return DataLoss("{}: the index has no header", path);
  Result<BundleHeader> header = DecodeHeader(table.front().value);
  if (!header.ok()) return header.status().Prepend(path + ": ");
  BundleReader reader;
  reader.prefix_ = prefix;
  reader.num_shards_ = header->num_shards;
  reader.big_endian_ = header->big_endian;
  for (size_t i = 1; i < table.size(); ++i) WEIR_TRY(reader.AddEntry(table[i].key, table[i].value, path));
  WEIR_TRY(reader.CheckSlices(path));
  return reader;
}

// Opens the data files named by entries. A file that cannot be opened is an error of the read that needs it.
void BundleReader::HoldFiles() {
  constexpr size_t kMaxHeld = 64;
  const auto hold = [&](const BundleEntry& entry) {
    if (!entry.slices.empty() || held_.size() >= kMaxHeld || held_.contains(entry.shard)) return;
    Result<InputFile> file = InputFile::Open(DataPath(prefix_, entry.shard, num_shards_));
    held_[entry.shard] = file.ok() ? std::make_shared<const InputFile>(std::move(*file)) : nullptr;
  };
  for (const BundleEntry& entry : entries_) hold(entry);
  for (const auto& [key, entry] : slice_entries_) hold(entry);
}

Status BundleReader::AddEntry(std::string_view key, std::string_view value, const std::string& path) {
  const bool is_slice = key.front() == '\0';
  Result<BundleEntry> entry = DecodeEntry(value, BundleHeader{num_shards_, big_endian_});
  if (!entry.ok()) {
    return entry.status().Prepend(is_slice ? path + ": a slice: " : fmt::format("{}: tensor '{}': ", path, key));
  }
  entry->name = key;
  if (is_slice) {
    slice_entries_.emplace(std::string(key), std::move(*entry));
  } else {
    entries_.push_back(std::move(*entry));
  }
  return Status();
}

// Every listed slice must have an entry of the same type and the slice's shape.
Status BundleReader::CheckSlices(const std::string& path) const {
  for (const BundleEntry& entry : entries_) {
    std::set<std::string> keys;
    for (const TensorSlice& slice : entry.slices) {
      const std::string key = SliceKey(entry.name, slice);
      const auto part = slice_entries_.find(key);
      WEIR_ASSIGN(const TensorSlice resolved, Resolve(slice, entry.shape));
      WEIR_ASSIGN(const Shape shape, ShapeOf(resolved));
      if (part == slice_entries_.end() || part->second.dtype != entry.dtype || !(part->second.shape == shape) ||
          !part->second.slices.empty() || !keys.insert(key).second) {
        return DataLoss("{}: tensor '{}': its slice {} is missing, repeated or of another type or shape", path,
                        entry.name, ToString(slice));
      }
    }
  }
  return Status();
}

const BundleEntry* BundleReader::Find(std::string_view name) const {
  const auto before = [](const BundleEntry& entry, std::string_view wanted) { return entry.name < wanted; };
  const auto it = std::lower_bound(entries_.begin(), entries_.end(), name, before);
  return it != entries_.end() && it->name == name ? &*it : nullptr;
}

Result<const BundleEntry*> BundleReader::Get(std::string_view name) const {
  if (const BundleEntry* entry = Find(name)) return entry;
  std::vector<std::string_view> names;
  for (const BundleEntry& entry : entries_) names.push_back(entry.name);
  return NotFound("Key {} not found in checkpoint {}{}", name, prefix_, NearestHint(name, names));
}

Result<std::shared_ptr<const InputFile>> BundleReader::FileOf(const BundleEntry& entry) const {
  const auto held = held_.find(entry.shard);
  if (held != held_.end() && held->second) return held->second;
  WEIR_ASSIGN(InputFile file, InputFile::Open(DataPath(prefix_, entry.shard, num_shards_)));
  return std::make_shared<const InputFile>(std::move(file));
}

Result<Tensor> BundleReader::ReadStored(const BundleEntry& entry) const {
  WEIR_ASSIGN(const std::shared_ptr<const InputFile> file, FileOf(entry));
  return ReadPayload(entry, *file, big_endian_);
}

Status BundleReader::VerifyStored(const BundleEntry& entry) const {
  WEIR_ASSIGN(const std::shared_ptr<const InputFile> file, FileOf(entry));
  return CheckPayload(entry, *file, big_endian_);
}

Result<Tensor> BundleReader::ReadDeferred(std::string_view name) const {
  constexpr uint64_t kLeastBytes = 64 << 10;
  WEIR_ASSIGN(const BundleEntry* entry, Get(name));
  const bool fixed = IsKnown(entry->dtype) && HasFixedSize(entry->dtype);
  if (!entry->slices.empty() || entry->size < kLeastBytes || !fixed) return Read(name);
  WEIR_ASSIGN(std::shared_ptr<const InputFile> file, FileOf(*entry));
  return DeferPayload(*entry, std::move(file), big_endian_);
}

Result<Tensor> BundleReader::Read(std::string_view name) const {
  WEIR_ASSIGN(const BundleEntry* entry, Get(name));
  if (entry->slices.empty()) return ReadStored(*entry);
  return ReadCovered(*entry, TensorSlice(static_cast<size_t>(entry->shape.rank())));
}

Result<Tensor> BundleReader::ReadSlice(std::string_view name, const TensorSlice& slice) const {
  WEIR_ASSIGN(const BundleEntry* entry, Get(name));
  const Result<TensorSlice> wanted = Resolve(slice, entry->shape);
  if (!wanted.ok()) return wanted.status().Prepend(fmt::format("tensor_name = {}; ", name));
  return ReadCovered(*entry, slice);
}

Result<Tensor> BundleReader::ReadCovered(const BundleEntry& entry, const TensorSlice& wanted_slice) const {
  WEIR_ASSIGN(const TensorSlice wanted, Resolve(wanted_slice, entry.shape));
  WEIR_ASSIGN(const Shape shape, ShapeOf(wanted));
  if (entry.slices.empty() && shape == entry.shape) return ReadStored(entry);

  // The stored parts that intersect the wanted slice; a whole tensor is its own only part.
  struct Part {
    const BundleEntry* entry;
    TensorSlice slice;
    TensorSlice both;
  };
  std::vector<Part> parts;
  uint64_t file_bytes = 0;
  std::set<int> shards;
  WEIR_ASSIGN(std::vector<TensorSlice> slices, SeparateSlices(entry, prefix_));
  if (entry.slices.empty()) slices.push_back(*Resolve(TensorSlice(wanted.size()), entry.shape));
  for (size_t i = 0; i < slices.size(); ++i) {
    std::optional<TensorSlice> both = Intersect(slices[i], wanted);
    if (!both) continue;
    const BundleEntry* part =
        entry.slices.empty() ? &entry : &slice_entries_.find(SliceKey(entry.name, entry.slices[i]))->second;
    parts.push_back({part, std::move(slices[i]), std::move(*both)});
    if (!shards.insert(part->shard).second) continue;
    WEIR_ASSIGN(const InputFile file, InputFile::Open(DataPath(prefix_, part->shard, num_shards_)));
    file_bytes += file.size();
  }
  // Parts do not overlap, so the whole is no larger than the files that hold them.
  const auto elements = static_cast<uint64_t>(shape.elements());
  const Status uncovered =
      InvalidArgument("Does not have sufficient slices for partitioned tensor {} to restore in slice_spec: {}",
                      entry.name, ToString(wanted_slice));
  if (elements > 0 && elements > file_bytes / std::max<size_t>(SizeOf(entry.dtype), 1)) return uncovered;
  WEIR_ASSIGN(Tensor tensor, Tensor::Make(entry.dtype, shape));
  std::vector<bool> covered(elements);
  for (const Part& part : parts) {
    WEIR_ASSIGN(const Tensor stored, ReadStored(*part.entry));
    CopyRuns(stored, part.slice, tensor, wanted, part.both);
    ForEachRun(part.slice, wanted, part.both,
               [&](int64_t, int64_t to_at, int64_t count) { std::fill_n(covered.begin() + to_at, count, true); });
  }
  if (std::find(covered.begin(), covered.end(), false) != covered.end()) return uncovered;
  return tensor;
}

std::vector<BundleEntry> BundleReader::StoredParts(const BundleEntry& entry) const {
  if (entry.slices.empty()) return {entry};
  std::vector<BundleEntry> parts;
  for (const TensorSlice& slice : entry.slices) {
    parts.push_back(slice_entries_.find(SliceKey(entry.name, slice))->second);
    parts.back().slices = {slice};
  }
  return parts;
}

Status BundleReader::VerifyTensor(const BundleEntry& entry) const {
  if (entry.slices.empty()) return VerifyStored(entry);
  WEIR_ASSIGN(const std::vector<TensorSlice> slices, SeparateSlices(entry, prefix_));
  int64_t elements = 0;
  for (size_t i = 0; i < slices.size(); ++i) {
    const BundleEntry& part = slice_entries_.find(SliceKey(entry.name, entry.slices[i]))->second;
    WEIR_TRY(VerifyStored(part));
    elements += part.shape.elements();
  }
  if (elements == entry.shape.elements()) return Status();
  std::string gaps;
  for (const TensorSlice& gap : FindGaps(slices, entry.shape, 3)) gaps += (gaps.empty() ? "" : ", ") + ToString(gap);
  return DataLoss("{}: tensor '{}': its slices leave out {} of {} elements: {}", IndexPath(prefix_), entry.name,
                  entry.shape.elements() - elements, entry.shape.elements(), gaps);
}

Status BundleReader::Verify() const {
  for (const BundleEntry& entry : entries_) WEIR_TRY(VerifyTensor(entry));
  std::set<std::string> listed;
  for (const BundleEntry& entry : entries_) {
    for (const TensorSlice& slice : entry.slices) listed.insert(SliceKey(entry.name, slice));
  }
  for (const auto& [key, entry] : slice_entries_) {
    if (!listed.contains(key)) WEIR_TRY(VerifyStored(entry));
  }
  return Status();
}

}  // namespace weir::io
