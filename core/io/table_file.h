// LevelDB's table format: sorted keys with values, in checksummed blocks. The index of a checkpoint is such a file.
// Format: data blocks | metaindex block | index block | 48-byte footer; see tf_formats 4.2 in TensorFlow's own terms
// ("sorted string table").
#ifndef WEIR_CORE_IO_TABLE_FILE_H_
#define WEIR_CORE_IO_TABLE_FILE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"

namespace weir::io {

struct TableEntry {
  std::string key;
  std::string value;
};

/// All entries of a table, keys strictly increasing bytewise. Blocks may be raw or snappy. Every checksum, length and
/// offset is checked, lengths against what is really there before anything is allocated: DataLoss naming `path` and
/// offset. ResourceExhausted for a table whose entries would take much more memory than its bytes justify.
Result<std::vector<TableEntry>> ParseTable(std::string_view file, const std::string& path);
/// The same from a file.
Result<std::vector<TableEntry>> ReadTable(const std::string& path);
/// A file that may be a table, as bytes. ResourceExhausted for one that is too large to be one.
Result<std::string> ReadTableBytes(const std::string& path);

/// Builds a table as TensorFlow does: raw blocks of about 256 KiB, restart interval 16.
class TableBuilder {
 public:
  /// InvalidArgument unless `key` is greater than the one before.
  Status Add(std::string_view key, std::string_view value);
  /// The whole file; the builder is empty then.
  std::string Finish();

 private:
  class Block {
   public:
    explicit Block(int restart_interval) : restart_interval_(restart_interval) {}
    void Add(std::string_view key, std::string_view value);
    /// The block's contents; the block is empty then.
    std::string Finish();
    /// Bytes that Finish would give.
    size_t size() const { return bytes_.size() + 4 * (restarts_.size() + 1); }
    bool empty() const { return bytes_.empty(); }

   private:
    int restart_interval_;
    int since_restart_ = 0;
    std::string bytes_;
    std::string last_key_;
    std::vector<uint32_t> restarts_ = {0};
  };
  struct Handle {
    uint64_t offset;
    uint64_t size;
  };

  Handle WriteBlock(std::string_view contents);
  void FlushData();
  void IndexPending(std::string_view separator);

  std::string file_;
  Block data_{16};
  Block index_{1};
  std::string last_key_;
  bool any_ = false;
  bool pending_ = false;  // a data block was written whose index entry awaits the next key
  Handle pending_handle_{};
};

}  // namespace weir::io

#endif  // WEIR_CORE_IO_TABLE_FILE_H_
