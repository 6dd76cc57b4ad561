#include "core/io/byte_stream.h"

#include <zlib.h>

#include <algorithm>
#include <span>
#include <utility>

#include "core/base/errors.h"
#include "core/io/files.h"

namespace weir::io {
namespace {

constexpr uint64_t kChunkBytes = 256 << 10;
constexpr int kWindowBits = 15, kGzipFrame = 16;  // of inflateInit2

}  // namespace

/// Where the bytes come from.
class ByteStream::Source {
 public:
  explicit Source(InputFile file) : file_(std::move(file)) {}
  virtual ~Source() = default;
  const std::string& path() const { return file_.path(); }

  /// Appends some bytes, `wanted` at most if the file is not compressed; false at the end.
  virtual Result<bool> Append(uint64_t wanted, std::string& to) = 0;
  virtual std::optional<uint64_t> left() const = 0;

 protected:
  uint64_t unread() const { return file_.size() - read_; }
  Result<std::string> Read(uint64_t bytes) {
    WEIR_ASSIGN(std::string chunk, file_.ReadAt(read_, bytes));
    read_ += bytes;
    return chunk;
  }

 private:
  const InputFile file_;
  uint64_t read_ = 0;
};

namespace {

class PlainSource final : public ByteStream::Source {
 public:
  using Source::Source;
  Result<bool> Append(uint64_t wanted, std::string& to) override {
    if (unread() == 0) return false;
    WEIR_ASSIGN(const std::string chunk, Read(std::min(std::max(wanted, kChunkBytes), unread())));
    to += chunk;
    return true;
  }
  std::optional<uint64_t> left() const override { return unread(); }
};

/// One or several compressed streams, one after the other.
class InflatingSource final : public ByteStream::Source {
 public:
  InflatingSource(InputFile file, Compression compression) : Source(std::move(file)) {
    const int bits = kWindowBits + (compression == Compression::kGzip ? kGzipFrame : 0);
    ready_ = inflateInit2(&stream_, bits) == Z_OK;
  }
  ~InflatingSource() override {
    if (ready_) inflateEnd(&stream_);
  }
  InflatingSource(const InflatingSource&) = delete;
  InflatingSource& operator=(const InflatingSource&) = delete;

  Result<bool> Append(uint64_t, std::string& to) override {
    if (!ready_) return ResourceExhausted("{}: no memory to decompress it", path());
    const size_t before = to.size();
    to.resize(before + kChunkBytes);
    const Result<size_t> made = Inflate({to.data() + before, kChunkBytes});
    to.resize(before + (made.ok() ? *made : 0));
    if (!made.ok()) return made.status();
    return *made > 0;
  }
  std::optional<uint64_t> left() const override { return std::nullopt; }

 private:
  /// How many bytes were made, 0 at the end.
  Result<size_t> Inflate(std::span<char> out) {
    stream_.next_out = reinterpret_cast<Bytef*>(out.data());
    stream_.avail_out = static_cast<uInt>(out.size());
    while (stream_.avail_out == out.size()) {
      if (stream_.avail_in == 0) {
        if (unread() == 0) return inside_ ? Result<size_t>(EndsEarly()) : Result<size_t>(size_t{0});
        WEIR_ASSIGN(chunk_, Read(std::min(kChunkBytes, unread())));
        stream_.next_in = reinterpret_cast<Bytef*>(chunk_.data());
        stream_.avail_in = static_cast<uInt>(chunk_.size());
      }
      inside_ = true;
      const int code = inflate(&stream_, Z_NO_FLUSH);
      if (code == Z_STREAM_END) {
        inside_ = false;
        inflateReset(&stream_);
      } else if (code != Z_OK && code != Z_BUF_ERROR) {
        return DataLoss("inflate() failed with error {}: {}; {}", code,
                        stream_.msg == nullptr ? zError(code) : stream_.msg, path());
      }
    }
    return out.size() - stream_.avail_out;
  }
  Status EndsEarly() const { return DataLoss("{} ends in the middle of its compressed bytes", path()); }

  z_stream stream_{};
  bool ready_ = false;
  bool inside_ = false;  // of a compressed stream
  std::string chunk_;
};

}  // namespace

Result<Compression> ParseCompression(std::string_view name) {
  if (name.empty()) return Compression::kNone;
  if (name == "ZLIB") return Compression::kZlib;
  if (name == "GZIP") return Compression::kGzip;
  return InvalidArgument("compression '{}' is unknown; wanted '', 'ZLIB' or 'GZIP'", name);
}

Result<ByteStream> ByteStream::Open(const std::string& path, Compression compression) {
  WEIR_ASSIGN(InputFile file, InputFile::Open(path));
  if (compression == Compression::kNone) return ByteStream(std::make_unique<PlainSource>(std::move(file)));
  return ByteStream(std::make_unique<InflatingSource>(std::move(file), compression));
}

ByteStream::ByteStream(std::unique_ptr<Source> source) : source_(std::move(source)) {}
ByteStream::ByteStream(ByteStream&&) noexcept = default;
ByteStream& ByteStream::operator=(ByteStream&&) noexcept = default;
ByteStream::~ByteStream() = default;

const std::string& ByteStream::path() const { return source_->path(); }

std::optional<uint64_t> ByteStream::left() const {
  const std::optional<uint64_t> unread = source_->left();
  return unread ? std::optional(*unread + window_.size() - begin_) : std::nullopt;
}

Result<std::string_view> ByteStream::Peek(uint64_t size) {
  if (window_.size() - begin_ < size) {
    window_.erase(0, begin_);
    begin_ = 0;
  }
  while (window_.size() - begin_ < size) {
    WEIR_ASSIGN(const bool more, source_->Append(size - (window_.size() - begin_), window_));
    if (!more) break;
  }
  return std::string_view(window_).substr(begin_, size);
}

void ByteStream::Take(uint64_t size) {
  begin_ += size;
  offset_ += size;
}

Result<bool> ByteStream::Skip(uint64_t size) {
  while (size > 0) {
    WEIR_ASSIGN(const std::string_view some, Peek(std::min(size, kChunkBytes)));
    if (some.empty()) return false;
    Take(some.size());
    size -= some.size();
  }
  return true;
}

Result<std::optional<std::string>> ByteStream::TakeLine() {
  size_t searched = 0;
  for (;;) {
    const size_t end = std::string_view(window_).find('\n', begin_ + searched);
    if (end != std::string::npos) {
      std::string line = window_.substr(begin_, end - begin_);
      Take(line.size() + 1);
      if (line.ends_with('\r')) line.pop_back();
      return std::optional(std::move(line));
    }
    searched = window_.size() - begin_;
    WEIR_ASSIGN(const std::string_view more, Peek(searched + 1));
    if (more.size() > searched) continue;
    if (searched == 0) return std::optional<std::string>();
    std::string line(more);
    Take(line.size());
    return std::optional(std::move(line));
  }
}

}  // namespace weir::io
