// TFRecord files: a sequence of byte strings, each with its length and two checksums. Format: u64 length | masked
// CRC-32C of the length | bytes | masked CRC-32C of the bytes, all little-endian.
#ifndef WEIR_CORE_IO_RECORD_FILE_H_
#define WEIR_CORE_IO_RECORD_FILE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/status.h"
#include "core/io/byte_stream.h"
#include "core/io/files.h"

namespace weir::io {

/// Bytes before and after the payload of a record.
inline constexpr uint64_t kRecordHeaderBytes = 12;
inline constexpr uint64_t kRecordFooterBytes = 4;

/// A payload with its header and footer.
std::string FrameRecord(std::string_view payload);
/// Frames a payload where it is encoded: BeginRecord appends room for the header and returns its position, EndRecord
/// takes what was appended since as the payload.
size_t BeginRecord(std::string& out);
void EndRecord(std::string& out, size_t begin);

/// Reads records in order. Single-threaded.
class RecordReader {
 public:
  static Result<RecordReader> Open(const std::string& path, Compression compression = Compression::kNone);

  /// The next payload, or nullopt at the end. As in TensorFlow, a file that ends within a header counts as ended there.
  /// DataLoss "corrupted record at <offset>" for a wrong checksum, "truncated record at <offset>" for a truncated
  /// payload. After a payload with a wrong checksum the next call continues with the next record; all other errors
  /// repeat. ResourceExhausted for a compressed record above kMostCompressedRecord.
  Result<std::optional<std::string>> Next();

  /// Offset of the next record.
  uint64_t offset() const { return bytes_.offset(); }

 private:
  explicit RecordReader(ByteStream bytes) : bytes_(std::move(bytes)) {}

  ByteStream bytes_;
};
/// Bytes of a record, decompressed. Its announced size is all that one knows before.
inline constexpr uint64_t kMostCompressedRecord = uint64_t{1} << 30;

/// Writes records. Single-threaded.
class RecordWriter {
 public:
  static Result<RecordWriter> Create(const std::string& path, IfExists if_exists = IfExists::kReplace);

  Status Append(std::string_view payload);
  /// Appends records that have their frames.
  Status AppendFramed(std::string_view records) { return file_.Append(records); }
  /// Hands appended records to the system, so that readers see them.
  Status Flush() { return file_.Flush(); }
  /// Writes appended records to the disk.
  Status Sync() { return file_.Sync(); }
  Status Close() { return file_.Close(); }

  const std::string& path() const { return file_.path(); }
  /// Bytes appended so far, including frames.
  uint64_t size() const { return file_.size(); }
  /// After an error: truncates to the first `size` bytes, so that writing can continue there.
  Status TruncateTo(uint64_t size) { return file_.TruncateTo(size); }

 private:
  explicit RecordWriter(OutputFile file) : file_(std::move(file)) {}
  OutputFile file_;
};

}  // namespace weir::io

#endif  // WEIR_CORE_IO_RECORD_FILE_H_
