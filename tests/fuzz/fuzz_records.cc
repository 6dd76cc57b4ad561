// Arbitrary bytes as a record file, a compressed one and an event file: the reader returns the records framed in the
// file, then the end or a persistent error. The same bytes with correct framing reach the event reader behind the
// checksums.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "core/io/event_file.h"
#include "core/io/record_file.h"

namespace {

void Check(bool good) {
  if (!good) std::abort();
}

void ReadRecords(const std::string& path, std::string_view bytes) {
  weir::Result<weir::io::RecordReader> reader = weir::io::RecordReader::Open(path);
  Check(reader.ok());
  for (size_t read = 0; read <= bytes.size();) {
    const uint64_t before = reader->offset();
    const weir::Result<std::optional<std::string>> record = reader->Next();
    if (record.ok() && !*record) break;
    if (!record.ok()) {
      if (reader->offset() == before) break;
      continue;
    }
    Check(bytes.substr(before).starts_with(weir::io::FrameRecord(**record)));
    read += (*record)->size() + weir::io::kRecordHeaderBytes;
  }
}

/// Bytes that are taken for compressed ones: the end, or an error, and no more memory than they make.
void ReadCompressed(const std::string& path, weir::io::Compression compression) {
  weir::Result<weir::io::RecordReader> reader = weir::io::RecordReader::Open(path, compression);
  Check(reader.ok());
  for (;;) {
    const uint64_t before = reader->offset();
    const weir::Result<std::optional<std::string>> record = reader->Next();
    if (record.ok() ? !*record : reader->offset() == before) break;
  }
  weir::Result<weir::io::ByteStream> lines = weir::io::ByteStream::Open(path, compression);
  Check(lines.ok());
  for (;;) {
    const weir::Result<std::optional<std::string>> line = lines->TakeLine();
    if (!line.ok() || !*line) break;
    Check((*line)->find('\n') == std::string::npos);
  }
}

void ReadEvents(const std::string& path, size_t size) {
  weir::Result<weir::io::EventReader> reader = weir::io::EventReader::Open(path);
  Check(reader.ok());
  for (size_t i = 0; i <= size; ++i) {
    const weir::Result<std::optional<weir::io::Event>> event = reader->Next();
    if (!event.ok() || !*event) return;
  }
  Check(false);  // more events than bytes
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::string framed = weir::io::FrameRecord(bytes);
  for (const std::string_view file : {bytes, std::string_view(framed)}) {
    const int fd = memfd_create("fuzz", 0);
    Check(fd >= 0 && write(fd, file.data(), file.size()) == static_cast<ssize_t>(file.size()));
    const std::string path = "/proc/self/fd/" + std::to_string(fd);
    ReadRecords(path, file);
    ReadEvents(path, file.size());
    for (const auto compression : {weir::io::Compression::kZlib, weir::io::Compression::kGzip}) {
      ReadCompressed(path, compression);
    }
    close(fd);
  }
  return 0;
}
