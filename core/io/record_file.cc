#include "core/io/record_file.h"

#include <cstring>

#include "core/base/errors.h"
#include "core/io/coding.h"
#include "core/io/crc32c.h"

namespace weir::io {
namespace {

Status Corrupted(uint64_t offset, const std::string& path) {
  return DataLoss("corrupted record at {}{}: {}", offset, offset == 0 ? " (Is this even a TFRecord file?)" : "", path);
}

}  // namespace

size_t BeginRecord(std::string& out) {
  const size_t begin = out.size();
  out.append(kRecordHeaderBytes, '\0');
  return begin;
}

void EndRecord(std::string& out, size_t begin) {
  const uint64_t length = out.size() - begin - kRecordHeaderBytes;
  const uint32_t crc = MaskCrc(Crc32c(std::string_view(out).substr(begin + kRecordHeaderBytes)));
  AppendFixed32(out, crc);
  char* const header = out.data() + begin;
  std::memcpy(header, &length, sizeof(length));
  const uint32_t length_crc = MaskCrc(Crc32c({header, sizeof(length)}));
  std::memcpy(header + sizeof(length), &length_crc, sizeof(length_crc));
}

std::string FrameRecord(std::string_view payload) {
  std::string frame;
  frame.reserve(kRecordHeaderBytes + payload.size() + kRecordFooterBytes);
  const size_t begin = BeginRecord(frame);
  frame += payload;
  EndRecord(frame, begin);
  return frame;
}

Result<RecordReader> RecordReader::Open(const std::string& path, Compression compression) {
  WEIR_ASSIGN(ByteStream bytes, ByteStream::Open(path, compression));
  return RecordReader(std::move(bytes));
}

Result<std::optional<std::string>> RecordReader::Next() {
  const std::string& path = bytes_.path();
  const uint64_t offset = bytes_.offset();
  WEIR_ASSIGN(const std::string_view header, bytes_.Peek(kRecordHeaderBytes));
  if (header.size() < kRecordHeaderBytes) return std::optional<std::string>();
  const uint64_t length = LoadFixed64(header.data());
  if (UnmaskCrc(LoadFixed32(header.data() + 8)) != Crc32c(header.substr(0, 8))) return Corrupted(offset, path);
  const auto truncated = [&](uint64_t there) {
    return DataLoss("truncated record at {}: {} announces {} bytes there and has {}", offset, path, length,
                    there - kRecordHeaderBytes);
  };
  constexpr uint64_t kFrame = kRecordHeaderBytes + kRecordFooterBytes;
  const std::optional<uint64_t> left = bytes_.left();
  if (left && (*left < kFrame || length > *left - kFrame)) return truncated(*left);
  if (!left && length > kMostCompressedRecord) {
    return ResourceExhausted("{} announces a record of {} bytes at {}, at most {} are read of a compressed file", path,
                             length, offset, kMostCompressedRecord);
  }
  WEIR_ASSIGN(const std::string_view record, bytes_.Peek(kFrame + length));
  if (record.size() < kFrame + length) return truncated(record.size());
  const std::string_view payload = record.substr(kRecordHeaderBytes, length);
  const bool intact = UnmaskCrc(LoadFixed32(payload.data() + length)) == Crc32c(payload);
  bytes_.Take(kFrame + length);
  if (!intact) return Corrupted(offset + kRecordHeaderBytes, path);
  return std::optional<std::string>(payload);
}

Result<RecordWriter> RecordWriter::Create(const std::string& path, IfExists if_exists) {
  WEIR_ASSIGN(OutputFile file, OutputFile::Create(path, if_exists));
  return RecordWriter(std::move(file));
}

Status RecordWriter::Append(std::string_view payload) {
  std::string header;
  AppendFixed64(header, payload.size());
  AppendFixed32(header, MaskCrc(Crc32c(header)));
  WEIR_TRY(file_.Append(header));
  WEIR_TRY(file_.Append(payload));
  std::string footer;
  AppendFixed32(footer, MaskCrc(Crc32c(payload)));
  return file_.Append(footer);
}

}  // namespace weir::io
