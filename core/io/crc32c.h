// CRC-32C (Castagnoli), the checksum of records, table blocks and checkpoint tensors.
#ifndef WEIR_CORE_IO_CRC32C_H_
#define WEIR_CORE_IO_CRC32C_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace weir::io {

/// Extends `crc`, the checksum of the preceding bytes, by `data`; 0 is the checksum of no bytes. Uses the CPU's
/// instruction if available.
uint32_t ExtendCrc32c(uint32_t crc, std::string_view data);
inline uint32_t Crc32c(std::string_view data) { return ExtendCrc32c(0, data); }
inline uint32_t Crc32c(std::span<const std::byte> data) {
  return Crc32c(std::string_view(reinterpret_cast<const char*>(data.data()), data.size()));
}

/// The same with tables only.
uint32_t ExtendCrc32cPortable(uint32_t crc, std::string_view data);

/// Checksums stored within checksummed data are masked (rotated and offset), so that a checksum over them stays strong.
constexpr uint32_t MaskCrc(uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8u; }
constexpr uint32_t UnmaskCrc(uint32_t masked) {
  const uint32_t rotated = masked - 0xa282ead8u;
  return (rotated >> 17) | (rotated << 15);
}

}  // namespace weir::io

#endif  // WEIR_CORE_IO_CRC32C_H_
