// Executables kept as files in the user's cache folder.
#ifndef WEIR_CORE_COMPILE_STORE_H_
#define WEIR_CORE_COMPILE_STORE_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/status.h"

namespace weir::compile {

/// Files of io::CacheFolder("regions"), one per key. A file has a magic number, the key, the bytes and a checksum of
/// all of it; it is written under another name first. Several processes may use the folder at once.
class Store {
 public:
  static constexpr uint64_t kMostFileBytes = uint64_t{16} << 20;
  static constexpr size_t kMostFiles = 2048;
  static constexpr uint64_t kMostBytes = uint64_t{256} << 20;

  /// The bytes that were kept for the key. NotFound if there are none; DataLoss, naming the file, if it is damaged or
  /// was kept for another key.
  static Result<std::string> Read(std::string_view key);
  /// Keeps the bytes. Silently does nothing without a folder, for too many bytes, or if the file cannot be written.
  /// Removes the oldest files when there are more than kMostFiles or kMostBytes.
  static void Write(std::string_view key, std::string_view bytes);
  static void Remove(std::string_view key);
};

/// 32 hexadecimal digits.
std::string HashText(std::string_view text);

}  // namespace weir::compile

#endif  // WEIR_CORE_COMPILE_STORE_H_
