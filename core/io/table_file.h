// LevelDB's table format: sorted keys with values in checksummed blocks. A checkpoint index is such a file. Format:
// data blocks | metaindex block | index block | 48-byte footer. TensorFlow calls it "sorted string table"; see
// tf_formats 4.2.
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

/// All entries of a table, with keys in strictly increasing byte order. Blocks may be raw or snappy. Every checksum,
/// length and offset is checked, lengths against the available bytes before anything is allocated: DataLoss names
/// `path` and offset. ResourceExhausted if the entries would need far more memory than the file size justifies.
Result<std::vector<TableEntry>> ParseTable(std::string_view file, const std::string& path);
/// As ParseTable, from a file.
Result<std::vector<TableEntry>> ReadTable(const std::string& path);
/// Reads a possible table file. ResourceExhausted if it is too large.
Result<std::string> ReadTableBytes(const std::string& path);

/// Builds a table in TensorFlow's layout: raw blocks of about 256 KiB, restart interval 16.
class TableBuilder {
 public:
  /// InvalidArgument unless `key` is greater than the previous key.
  Status Add(std::string_view key, std::string_view value);
  /// Returns the whole file and clears the builder.
  std::string Finish();

 private:
  class Block {
   public:
    explicit Block(int restart_interval) : restart_interval_(restart_interval) {}
    void Add(std::string_view key, std::string_view value);
    /// Returns the block's contents and clears it.
    std::string Finish();
    /// Number of bytes that Finish would return.
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
  bool pending_ = false;  // a written data block whose index entry awaits the next key
  Handle pending_handle_{};
};

}  // namespace weir::io

#endif  // WEIR_CORE_IO_TABLE_FILE_H_
