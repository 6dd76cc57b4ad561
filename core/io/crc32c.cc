#include "core/io/crc32c.h"

#include <array>
#include <bit>
#include <cstring>

namespace weir::io {
namespace {

static_assert(std::endian::native == std::endian::little, "files are read and written without swapping");

constexpr uint32_t kPolynomial = 0x82f63b78;  // reflected

// kTables[k][b]: checksum of byte b followed by k zero bytes.
constexpr auto kTables = [] {
  std::array<std::array<uint32_t, 256>, 8> tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? kPolynomial : 0);
    tables[0][byte] = value;
  }
  for (size_t k = 1; k < 8; ++k) {
    for (size_t byte = 0; byte < 256; ++byte) {
      const uint32_t before = tables[k - 1][byte];
      tables[k][byte] = (before >> 8) ^ tables[0][before & 255];
    }
  }
  return tables;
}();

uint64_t Load64(const char* p) {
  uint64_t value;
  std::memcpy(&value, p, sizeof(value));
  return value;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) uint32_t ExtendByInstruction(uint32_t crc, std::string_view data) {
  uint64_t value = ~crc;
  const char* p = data.data();
  size_t left = data.size();
  for (; left >= 8; left -= 8, p += 8) value = __builtin_ia32_crc32di(value, Load64(p));
  auto low = static_cast<uint32_t>(value);
  for (; left > 0; --left, ++p) low = __builtin_ia32_crc32qi(low, static_cast<unsigned char>(*p));
  return ~low;
}
#endif

}  // namespace

uint32_t ExtendCrc32cPortable(uint32_t crc, std::string_view data) {
  uint32_t value = ~crc;
  const char* p = data.data();
  size_t left = data.size();
  for (; left >= 8; left -= 8, p += 8) {
    const uint64_t word = Load64(p) ^ value;
    value = 0;
    for (size_t k = 0; k < 8; ++k) value ^= kTables[7 - k][(word >> (8 * k)) & 255];
  }
  for (; left > 0; --left, ++p) value = (value >> 8) ^ kTables[0][(value ^ static_cast<unsigned char>(*p)) & 255];
  return ~value;
}

uint32_t ExtendCrc32c(uint32_t crc, std::string_view data) {
#if defined(__x86_64__)
  static const bool has_instruction = __builtin_cpu_supports("sse4.2");
  if (has_instruction) return ExtendByInstruction(crc, data);
#endif
  return ExtendCrc32cPortable(crc, data);
}

}  // namespace weir::io
