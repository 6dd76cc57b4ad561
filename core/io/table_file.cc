#include "core/io/table_file.h"

#include <snappy.h>

#include <algorithm>

#include "core/base/errors.h"
#include "core/io/coding.h"
#include "core/io/crc32c.h"
#include "core/io/files.h"

namespace weir::io {
namespace {

constexpr uint64_t kFooterBytes = 48;
constexpr uint64_t kTrailerBytes = 5;  // block type, masked checksum
constexpr uint64_t kTableMagic = 0xdb4775248b80fb57;
constexpr size_t kBlockBytes = 256 << 10;
constexpr char kRaw = 0;
constexpr char kSnappy = 1;
// A snappy copy element takes at least 2 bytes and produces at most 64.
constexpr uint64_t kMaxSnappyRatio = 32;
// Valid tables expand far less than this by shared key prefixes and snappy.
constexpr uint64_t kMaxExpansion = 64;
constexpr uint64_t kExpansionSlack = 1 << 20;
constexpr uint64_t kMaxTableBytes = uint64_t{4} << 30;

// Parses a table. Errors name the file and the offset of the block.
class Parser {
 public:
  Parser(std::string_view file, const std::string& path)
      : file_(file), path_(path), budget_(file.size() * kMaxExpansion + kExpansionSlack) {}

  Result<std::vector<TableEntry>> Parse();

 private:
  Status Bad(uint64_t offset, std::string_view what) const {
    return DataLoss("{}: bad table at offset {}: {}", path_, offset, what);
  }
  Result<std::string_view> Block(std::string_view& handle, uint64_t handle_at, std::string& storage);
  template <class F>
  Status ForEach(std::string_view block, uint64_t offset, F f);

  std::string_view file_;
  const std::string& path_;
  uint64_t budget_;
  uint64_t block_at_ = 0;  // offset of the last block returned by Block
};

// Removes a block handle from the front of `handle` and returns the block's contents, decompressed to `storage` if
// needed.
Result<std::string_view> Parser::Block(std::string_view& handle, uint64_t handle_at, std::string& storage) {
  uint64_t offset = 0;
  uint64_t size = 0;
  if (!TakeVarint(handle, offset) || !TakeVarint(handle, size)) return Bad(handle_at, "a block handle is cut short");
  const uint64_t limit = file_.size() - kFooterBytes;
  if (offset > limit || size > limit - offset || limit - offset - size < kTrailerBytes) {
    return Bad(handle_at,
               fmt::format("a block handle says {} bytes at {}, but the file has {}", size, offset, file_.size()));
  }
  block_at_ = offset;
  const std::string_view stored = file_.substr(offset, size + 1);
  const uint32_t want = UnmaskCrc(LoadFixed32(file_.data() + offset + size + 1));
  if (const uint32_t got = Crc32c(stored); got != want) {
    return Bad(offset, fmt::format("block checksum mismatch: stored {:08x}, computed {:08x}", want, got));
  }
  const std::string_view contents = stored.substr(0, size);
  if (stored.back() == kRaw) return contents;
  if (stored.back() != kSnappy) return Bad(offset, fmt::format("unknown block type {}", int{stored.back()}));
  size_t unpacked = 0;
  if (!snappy::GetUncompressedLength(contents.data(), contents.size(), &unpacked) ||
      unpacked > contents.size() * kMaxSnappyRatio) {
    return Bad(offset, "a snappy block states an impossible length");
  }
  storage.resize(unpacked);
  if (!snappy::RawUncompress(contents.data(), contents.size(), storage.data())) {
    return Bad(offset, "a snappy block is damaged");
  }
  return std::string_view(storage);
}

// Calls f(key, value), which returns a Status, for every entry of a block.
template <class F>
Status Parser::ForEach(std::string_view block, uint64_t offset, F f) {
  if (block.size() < 4) return Bad(offset, "a block is shorter than its restart count");
  const uint64_t restarts = LoadFixed32(block.data() + block.size() - 4);
  if (restarts > (block.size() - 4) / 4) return Bad(offset, "a block's restart count exceeds its size");
  std::string_view entries = block.substr(0, block.size() - 4 - 4 * restarts);
  std::string key;
  while (!entries.empty()) {
    uint64_t shared = 0, unshared = 0, value_size = 0;
    std::string_view delta, value;
    if (!TakeVarint(entries, shared) || !TakeVarint(entries, unshared) || !TakeVarint(entries, value_size) ||
        shared > key.size() || !TakeBytes(entries, unshared, delta) || !TakeBytes(entries, value_size, value)) {
      return Bad(offset, "an entry exceeds its block");
    }
    key.resize(shared);
    key += delta;
    WEIR_TRY(f(std::string_view(key), value));
  }
  return Status();
}

Result<std::vector<TableEntry>> Parser::Parse() {
  if (file_.size() < kFooterBytes) {
    return DataLoss("{}: file is too short ({} bytes) to be a table (sstable)", path_, file_.size());
  }
  const uint64_t footer_at = file_.size() - kFooterBytes;
  std::string_view footer = file_.substr(footer_at);
  if (LoadFixed64(footer.data() + kFooterBytes - 8) != kTableMagic) {
    return DataLoss("{}: not a table (bad magic number): perhaps the file is not a checkpoint index", path_);
  }
  std::string meta_storage, index_storage;
  WEIR_ASSIGN(const std::string_view meta, Block(footer, footer_at, meta_storage));
  WEIR_TRY(ForEach(meta, block_at_, [](std::string_view, std::string_view) { return Status(); }));
  WEIR_ASSIGN(const std::string_view index, Block(footer, footer_at, index_storage));
  const uint64_t index_at = block_at_;
  footer.remove_suffix(8);
  if (footer.find_first_not_of('\0') != std::string_view::npos) return Bad(footer_at, "the footer is damaged");

  std::vector<TableEntry> all;
  WEIR_TRY(ForEach(index, index_at, [&](std::string_view separator, std::string_view handle) -> Status {
    std::string storage;
    WEIR_ASSIGN(const std::string_view block, Block(handle, index_at, storage));
    const uint64_t block_at = block_at_;
    return ForEach(block, block_at, [&](std::string_view key, std::string_view value) -> Status {
      if (!all.empty() && key <= all.back().key) return Bad(block_at, "keys are not in order");
      if (key > separator) return Bad(block_at, "a key is greater than its index entry");
      const uint64_t cost = sizeof(TableEntry) + key.size() + value.size();
      if (cost > budget_) {
        return ResourceExhausted("{}: the table's entries expand to more than {} times the file", path_, kMaxExpansion);
      }
      budget_ -= cost;
      all.push_back({std::string(key), std::string(value)});
      return Status();
    });
  }));
  return all;
}

size_t CommonPrefix(std::string_view a, std::string_view b) {
  return static_cast<size_t>(
      std::mismatch(a.begin(), a.begin() + static_cast<ptrdiff_t>(std::min(a.size(), b.size())), b.begin()).first -
      a.begin());
}

// A short key k with a <= k < b, for a < b.
std::string ShortSeparator(std::string_view a, std::string_view b) {
  const size_t at = CommonPrefix(a, b);
  if (at < a.size() && at < b.size()) {
    const auto byte = static_cast<unsigned char>(a[at]);
    if (byte < 0xff && byte + 1 < static_cast<unsigned char>(b[at])) {
      std::string key(a.substr(0, at + 1));
      key.back() = static_cast<char>(byte + 1);
      return key;
    }
  }
  return std::string(a);
}

// A short key >= a.
std::string ShortSuccessor(std::string_view a) {
  for (size_t i = 0; i < a.size(); ++i) {
    const auto byte = static_cast<unsigned char>(a[i]);
    if (byte == 0xff) continue;
    std::string key(a.substr(0, i + 1));
    key.back() = static_cast<char>(byte + 1);
    return key;
  }
  return std::string(a);
}

}  // namespace

Result<std::vector<TableEntry>> ParseTable(std::string_view file, const std::string& path) {
  return Parser(file, path).Parse();
}

Result<std::string> ReadTableBytes(const std::string& path) {
  WEIR_ASSIGN(const InputFile file, InputFile::Open(path));
  if (file.size() > kMaxTableBytes) {
    return ResourceExhausted("{}: a table of {} bytes exceeds the limit of {}", path, file.size(), kMaxTableBytes);
  }
  return file.ReadAt(0, file.size());
}

Result<std::vector<TableEntry>> ReadTable(const std::string& path) {
  WEIR_ASSIGN(const std::string contents, ReadTableBytes(path));
  return ParseTable(contents, path);
}

void TableBuilder::Block::Add(std::string_view key, std::string_view value) {
  size_t shared = 0;
  if (since_restart_ == restart_interval_) {
    restarts_.push_back(static_cast<uint32_t>(bytes_.size()));
    since_restart_ = 0;
  } else {
    shared = CommonPrefix(last_key_, key);
  }
  AppendVarint(bytes_, shared);
  AppendVarint(bytes_, key.size() - shared);
  AppendVarint(bytes_, value.size());
  bytes_ += key.substr(shared);
  bytes_ += value;
  last_key_ = key;
  ++since_restart_;
}

std::string TableBuilder::Block::Finish() {
  std::string contents = std::move(bytes_);
  for (const uint32_t restart : restarts_) AppendFixed32(contents, restart);
  AppendFixed32(contents, static_cast<uint32_t>(restarts_.size()));
  *this = Block(restart_interval_);
  return contents;
}

TableBuilder::Handle TableBuilder::WriteBlock(std::string_view contents) {
  const Handle handle{file_.size(), contents.size()};
  file_ += contents;
  file_.push_back(kRaw);
  AppendFixed32(file_, MaskCrc(Crc32c(std::string_view(file_).substr(handle.offset))));
  return handle;
}

void TableBuilder::FlushData() {
  if (data_.empty()) return;
  pending_handle_ = WriteBlock(data_.Finish());
  pending_ = true;
}

void TableBuilder::IndexPending(std::string_view separator) {
  if (!pending_) return;
  std::string handle;
  AppendVarint(handle, pending_handle_.offset);
  AppendVarint(handle, pending_handle_.size);
  index_.Add(separator, handle);
  pending_ = false;
}

Status TableBuilder::Add(std::string_view key, std::string_view value) {
  if (any_ && key <= last_key_) return InvalidArgument("table key '{}' does not follow '{}'", key, last_key_);
  // As in TensorFlow, an entry of twice the block size gets its own block.
  if (key.size() + value.size() >= 2 * kBlockBytes) FlushData();
  if (pending_) IndexPending(ShortSeparator(last_key_, key));
  data_.Add(key, value);
  last_key_ = key;
  any_ = true;
  if (data_.size() >= kBlockBytes) FlushData();
  return Status();
}

std::string TableBuilder::Finish() {
  FlushData();
  IndexPending(ShortSuccessor(last_key_));
  const Handle meta = WriteBlock(Block(16).Finish());
  const Handle index = WriteBlock(index_.Finish());
  std::string footer;
  for (const uint64_t number : {meta.offset, meta.size, index.offset, index.size}) AppendVarint(footer, number);
  footer.resize(kFooterBytes - 8);
  AppendFixed64(footer, kTableMagic);
  file_ += footer;
  return std::exchange(*this, TableBuilder()).file_;
}

}  // namespace weir::io
