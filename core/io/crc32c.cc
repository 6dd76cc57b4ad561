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
// Checksums as polynomials modulo kPolynomial: the highest bit is the coefficient of x^0.
constexpr uint32_t TimesX(uint32_t value) { return (value >> 1) ^ ((value & 1) != 0 ? kPolynomial : 0); }

constexpr uint32_t Product(uint32_t a, uint32_t b) {
  uint32_t product = 0;
  for (; a != 0; a <<= 1, b = TimesX(b)) product ^= (a >> 31) != 0 ? b : 0;
  return product;
}

// kZeros<n>[k][b]: the state b << 8k after n zero bytes.
template <size_t kBytes>
constexpr auto kZeros = [] {
  uint32_t power = uint32_t{1} << 31;
  for (size_t bit = 0; bit < 8 * kBytes; ++bit) power = TimesX(power);
  std::array<std::array<uint32_t, 256>, 4> tables{};
  for (uint32_t k = 0; k < 4; ++k) {
    for (uint32_t byte = 0; byte < 256; ++byte) tables[k][byte] = Product(byte << (8 * k), power);
  }
  return tables;
}();

template <size_t kBytes>
uint64_t AfterZeros(uint64_t state) {
  constexpr auto& tables = kZeros<kBytes>;
  return tables[0][state & 255] ^ tables[1][(state >> 8) & 255] ^ tables[2][(state >> 16) & 255] ^
         tables[3][(state >> 24) & 255];
}

// The instruction has a latency of three cycles and starts in each cycle: three ranges of kBytes side by side take the
// time of one.
template <size_t kBytes>
__attribute__((target("sse4.2"))) uint64_t InThreeStreams(uint64_t state, std::string_view& data) {
  for (; data.size() >= 3 * kBytes; data.remove_prefix(3 * kBytes)) {
    const char* const p = data.data();
    uint64_t second = 0, third = 0;
    for (size_t i = 0; i < kBytes; i += 8) {
      state = __builtin_ia32_crc32di(state, Load64(p + i));
      second = __builtin_ia32_crc32di(second, Load64(p + kBytes + i));
      third = __builtin_ia32_crc32di(third, Load64(p + 2 * kBytes + i));
    }
    state = AfterZeros<kBytes>(AfterZeros<kBytes>(state) ^ second) ^ third;
  }
  return state;
}

__attribute__((target("sse4.2"))) uint32_t ExtendByInstruction(uint32_t crc, std::string_view data) {
  constexpr size_t kLong = 4096, kShort = 256;
  uint64_t value = ~crc;
  value = InThreeStreams<kLong>(value, data);
  value = InThreeStreams<kShort>(value, data);
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
