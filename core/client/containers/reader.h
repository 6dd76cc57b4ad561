// Readers: they make records of the files whose names a queue gives.
#ifndef WEIR_CORE_CLIENT_CONTAINERS_READER_H_
#define WEIR_CORE_CLIENT_CONTAINERS_READER_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "core/client/containers/queue.h"
#include "core/client/ops/operand.h"

namespace weir {

/// What all readers can do. A reader lives as long as the session and reads one file after the other; an op that needs
/// a file waits for its name in the queue, a string scalar, and holds no thread. Once the queue is closed and empty:
/// OutOfRange "… is closed and has insufficient elements (requested 1, current size 0)".
class ReaderBase {
 public:
  /// Strings: scalars of Read, vectors of ReadUpTo.
  struct Records {
    Output key, value;
  };

  /// The reader behind a handle.
  explicit ReaderBase(const Output& handle, bool supports_serialize = false)
      : handle_(handle), supports_serialize_(supports_serialize) {}

  const Output& reader_ref() const { return handle_; }
  /// True if SerializeState and RestoreState work.
  bool supports_serialize() const { return supports_serialize_; }

  Records Read(const QueueBase& queue, std::string_view name = {}, Where where = Where::current()) const;
  /// At least one record and at most `num_records` (int64 scalar), all of one file.
  Records ReadUpTo(const QueueBase& queue, const Operand& num_records, std::string_view name = {},
                   Where where = Where::current()) const;
  /// int64 scalars: records given so far, and files read to their ends.
  Output NumRecordsProduced(std::string_view name = {}, Where where = Where::current()) const;
  Output NumWorkUnitsCompleted(std::string_view name = {}, Where where = Where::current()) const;
  Output SerializeState(std::string_view name = {}, Where where = Where::current()) const;
  Operation RestoreState(const Operand& state, std::string_view name = {}, Where where = Where::current()) const;
  /// Forgets the file under way and the counts.
  Operation Reset(std::string_view name = {}, Where where = Where::current()) const;

 private:
  Output handle_;
  bool supports_serialize_ = false;
};

/// Records are the names themselves.
class IdentityReader : public ReaderBase {
 public:
  explicit IdentityReader(std::string_view name = {}, Where where = Where::current());
};

/// A file is one record, with its name as the key.
class WholeFileReader : public ReaderBase {
 public:
  explicit WholeFileReader(std::string_view name = {}, Where where = Where::current());
};

/// Lines without their ends. The key is "file:number", from 1.
class TextLineReader : public ReaderBase {
 public:
  explicit TextLineReader(int64_t skip_header_lines = 0, std::string_view name = {}, Where where = Where::current());
};

/// Records of TFRecord files, compressed by "", "ZLIB" or "GZIP". The key is "file:offset".
class TFRecordReader : public ReaderBase {
 public:
  explicit TFRecordReader(const std::string& compression_type = {}, std::string_view name = {},
                          Where where = Where::current());
};

struct FixedLengthRecordReaderOptions {
  int64_t header_bytes = 0;
  int64_t footer_bytes = 0;
  int64_t hop_bytes = 0;      // from record to record; 0 = one after the other
  std::string encoding = {};  // "", "ZLIB" or "GZIP"
  std::string_view name = {};
};

/// Records of `record_bytes` bytes. The key is "file:number", from 0.
class FixedLengthRecordReader : public ReaderBase {
 public:
  explicit FixedLengthRecordReader(int64_t record_bytes, const FixedLengthRecordReaderOptions& options = {},
                                   Where where = Where::current());
};

}  // namespace weir

#endif  // WEIR_CORE_CLIENT_CONTAINERS_READER_H_
