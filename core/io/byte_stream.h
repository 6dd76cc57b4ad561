// The bytes of a file from front to back, decompressed on the way.
#ifndef WEIR_CORE_IO_BYTE_STREAM_H_
#define WEIR_CORE_IO_BYTE_STREAM_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/status.h"

namespace weir::io {

enum class Compression : uint8_t { kNone, kZlib, kGzip };
/// TensorFlow's names: "", "ZLIB" and "GZIP". InvalidArgument for another one.
Result<Compression> ParseCompression(std::string_view name);

/// Reads a file in order. Memory grows with the bytes that are there, never with a size that somebody asks for.
/// Single-threaded, move-only.
class ByteStream {
 public:
  class Source;  // of the .cc file

  static Result<ByteStream> Open(const std::string& path, Compression compression = Compression::kNone);
  ByteStream(ByteStream&&) noexcept;
  ByteStream& operator=(ByteStream&&) noexcept;
  ~ByteStream();

  const std::string& path() const;
  /// The number of bytes taken so far, decompressed.
  uint64_t offset() const { return offset_; }
  /// The number of bytes that are left; nullopt if only decompressing can tell.
  std::optional<uint64_t> left() const;

  /// The next `size` bytes, fewer at the end. They are not taken. Valid until the next call.
  /// DataLoss if the compressed bytes are damaged or end early.
  Result<std::string_view> Peek(uint64_t size);
  /// Takes bytes that the last Peek returned.
  void Take(uint64_t size);
  /// Takes `size` bytes; false if the stream ends before.
  Result<bool> Skip(uint64_t size);
  /// Takes a line and returns it without its end, "\n" or "\r\n". The last line may lack one. nullopt at the end.
  Result<std::optional<std::string>> TakeLine();

 private:
  explicit ByteStream(std::unique_ptr<Source> source);

  std::unique_ptr<Source> source_;
  std::string window_;  // bytes that were read and not yet dropped
  size_t begin_ = 0;    // of those that were not taken
  uint64_t offset_ = 0;
};

}  // namespace weir::io

#endif  // WEIR_CORE_IO_BYTE_STREAM_H_
