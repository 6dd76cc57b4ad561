#include "core/io/record_file.h"

#include <algorithm>
#include <cstring>

#include "core/base/errors.h"
#include "core/io/coding.h"
#include "core/io/crc32c.h"

namespace weir::io {
namespace {

constexpr uint64_t kWindowBytes = 256 << 10;

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

Result<RecordReader> RecordReader::Open(const std::string& path) {
  WEIR_ASSIGN(InputFile file, InputFile::Open(path));
  return RecordReader(std::move(file));
}

Result<std::string_view> RecordReader::Peek(uint64_t offset, uint64_t size) {
  const uint64_t end = window_start_ + window_.size();
  if (offset < window_start_ || offset + size > end) {
    const uint64_t wanted = std::min(std::max(size, kWindowBytes), file_.size() - offset);
    WEIR_ASSIGN(window_, file_.ReadAt(offset, wanted));
    window_start_ = offset;
  }
  return std::string_view(window_).substr(offset - window_start_, size);
}

Result<std::optional<std::string>> RecordReader::Next() {
  const uint64_t left = file_.size() - offset_;
  if (left < kRecordHeaderBytes) return std::optional<std::string>();
  WEIR_ASSIGN(const std::string_view header, Peek(offset_, kRecordHeaderBytes));
  const uint64_t length = LoadFixed64(header.data());
  if (UnmaskCrc(LoadFixed32(header.data() + 8)) != Crc32c(header.substr(0, 8))) {
    return Corrupted(offset_, file_.path());
  }
  const uint64_t behind_header = left - kRecordHeaderBytes;
  if (behind_header < kRecordFooterBytes || length > behind_header - kRecordFooterBytes) {
    return DataLoss("truncated record at {}: {} announces {} bytes there and has {}", offset_, file_.path(), length,
                    behind_header);
  }
  const uint64_t start = offset_ + kRecordHeaderBytes;
  WEIR_ASSIGN(const std::string_view body, Peek(start, length + kRecordFooterBytes));
  offset_ = start + length + kRecordFooterBytes;
  const std::string_view payload = body.substr(0, length);
  if (UnmaskCrc(LoadFixed32(body.data() + length)) != Crc32c(payload)) return Corrupted(start, file_.path());
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
