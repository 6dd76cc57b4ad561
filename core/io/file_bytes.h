// A file's bytes for parsers: mapped where the file allows it.
#ifndef WEIR_CORE_IO_FILE_BYTES_H_
#define WEIR_CORE_IO_FILE_BYTES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "core/base/status.h"

namespace weir::io {

/// The bytes of a whole file. A regular file of 64 KiB or more is mapped: its pages are read when they are used, and a
/// write through the mapping stays in this process. The file must not change while somebody owns the bytes: overwriting
/// it changes them, and truncating it ends the process with SIGBUS. Replacing it by renaming is harmless. Other files
/// (pipes, small ones) are copied.
class FileBytes {
 public:
  /// ResourceExhausted above `limit_bytes`, before the file is read.
  static Result<FileBytes> Open(const std::string& path, uint64_t limit_bytes);

  std::string_view bytes() const { return bytes_; }
  /// Keeps the bytes alive.
  const std::shared_ptr<const void>& owner() const { return owner_; }

 private:
  FileBytes(std::string_view bytes, std::shared_ptr<const void> owner) : bytes_(bytes), owner_(std::move(owner)) {}
  std::string_view bytes_;
  std::shared_ptr<const void> owner_;
};

}  // namespace weir::io

#endif  // WEIR_CORE_IO_FILE_BYTES_H_
