#include "plugins/remote/secrets.h"

#include <sys/random.h>

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

namespace weir_remote {
namespace {

/// SHA-256 (FIPS 180-4).
class Sha256 {
 public:
  void Add(std::string_view data) {
    bytes_ += data.size();
    for (const char c : data) {
      block_[used_++] = static_cast<uint8_t>(c);
      if (used_ == block_.size()) Mix();
    }
  }
  std::array<uint8_t, 32> Finish() {
    const uint64_t bits = bytes_ * 8;
    Add(std::string_view("\x80", 1));
    while (used_ != block_.size() - 8) Add(std::string_view("\0", 1));
    std::string length;
    for (int shift = 56; shift >= 0; shift -= 8) length += static_cast<char>(bits >> shift & 0xff);
    Add(length);
    std::array<uint8_t, 32> digest;
    for (size_t i = 0; i < digest.size(); ++i) {
      digest[i] = static_cast<uint8_t>(state_[i / 4] >> (24 - 8 * (i % 4)) & 0xff);
    }
    return digest;
  }

 private:
  static constexpr std::array<uint32_t, 64> kRounds = {
      0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
      0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
      0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
      0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
      0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
      0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
      0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
      0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

  void Mix() {
    std::array<uint32_t, 64> w{};
    for (size_t i = 0; i < 64; ++i) w[i / 4] = w[i / 4] << 8 | block_[i];
    for (size_t i = 16; i < 64; ++i) {
      const uint32_t a = w[i - 15], b = w[i - 2];
      w[i] = w[i - 16] + w[i - 7] + (std::rotr(a, 7) ^ std::rotr(a, 18) ^ a >> 3) +
             (std::rotr(b, 17) ^ std::rotr(b, 19) ^ b >> 10);
    }
    std::array<uint32_t, 8> s = state_;
    for (size_t i = 0; i < 64; ++i) {
      const uint32_t big = std::rotr(s[4], 6) ^ std::rotr(s[4], 11) ^ std::rotr(s[4], 25);
      const uint32_t first = s[7] + big + ((s[4] & s[5]) ^ (~s[4] & s[6])) + kRounds[i] + w[i];
      const uint32_t small = std::rotr(s[0], 2) ^ std::rotr(s[0], 13) ^ std::rotr(s[0], 22);
      const uint32_t second = small + ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
      s = {first + second, s[0], s[1], s[2], s[3] + first, s[4], s[5], s[6]};
    }
    for (size_t i = 0; i < 8; ++i) state_[i] += s[i];
    used_ = 0;
  }

  std::array<uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<uint8_t, 64> block_{};
  size_t used_ = 0;
  uint64_t bytes_ = 0;
};

std::string_view TextOfDigest(const std::array<uint8_t, 32>& digest) {
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

}  // namespace

std::string RandomBytes(size_t count) {
  std::string bytes(count, '\0');
  size_t have = 0;
  while (have < count) {
    const ssize_t got = getrandom(bytes.data() + have, count - have, 0);
    if (got <= 0) break;
    have += static_cast<size_t>(got);
  }
  bytes.resize(have);
  return bytes;
}

MacBytes HmacSha256(std::string_view key, std::string_view data) {
  constexpr size_t kBlock = 64;
  std::string padded(key);
  if (key.size() > kBlock) {
    Sha256 shorter;
    shorter.Add(key);
    padded = TextOfDigest(shorter.Finish());
  }
  padded.resize(kBlock, '\0');
  std::string inner_key = padded, outer_key = padded;
  for (char& c : inner_key) c = static_cast<char>(c ^ 0x36);
  for (char& c : outer_key) c = static_cast<char>(c ^ 0x5c);
  Sha256 inner, outer;
  inner.Add(inner_key);
  inner.Add(data);
  const std::array<uint8_t, 32> digest = inner.Finish();
  outer.Add(outer_key);
  outer.Add(TextOfDigest(digest));
  const std::array<uint8_t, 32> last = outer.Finish();
  MacBytes mac;
  std::memcpy(mac.data(), last.data(), mac.size());
  return mac;
}

}  // namespace weir_remote
