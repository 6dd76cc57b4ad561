// Integers in files: fixed-size little-endian numbers and varints, appended to and removed from byte strings.
#ifndef WEIR_CORE_IO_CODING_H_
#define WEIR_CORE_IO_CODING_H_

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace weir::io {

inline uint32_t LoadFixed32(const char* from) {
  uint32_t value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

inline uint64_t LoadFixed64(const char* from) {
  uint64_t value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

inline void AppendFixed32(std::string& out, uint32_t value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

inline void AppendFixed64(std::string& out, uint64_t value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

/// Seven bits per byte, lowest first; the top bit is set in all bytes but the last. 1 to 10 bytes.
inline void AppendVarint(std::string& out, uint64_t value) {
  for (; value >= 128; value >>= 7) out.push_back(static_cast<char>(value | 128));
  out.push_back(static_cast<char>(value));
}

/// Removes a varint from the front of `in`. False, with `in` unspecified, if it is truncated, exceeds 64 bits or is
/// longer than necessary.
inline bool TakeVarint(std::string_view& in, uint64_t& value) {
  value = 0;
  for (int shift = 0; shift < 64 && !in.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(in.front());
    in.remove_prefix(1);
    if ((shift == 63 && byte > 1) || (shift > 0 && byte == 0)) return false;
    value |= static_cast<uint64_t>(byte & 127) << shift;
    if (byte < 128) return true;
  }
  return false;
}

/// Removes `size` bytes from the front of `in`; false if there are fewer.
inline bool TakeBytes(std::string_view& in, uint64_t size, std::string_view& bytes) {
  if (size > in.size()) return false;
  bytes = in.substr(0, size);
  in.remove_prefix(size);
  return true;
}

}  // namespace weir::io

#endif  // WEIR_CORE_IO_CODING_H_
