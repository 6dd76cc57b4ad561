// A hash of constants, by which kernels share what they made of them.
#ifndef WEIR_PLUGINS_FUNCTORS_CONTENT_HASH_H_
#define WEIR_PLUGINS_FUNCTORS_CONTENT_HASH_H_

#include <cstdint>
#include <cstring>
#include <utility>

namespace weir::functors {

/// Two independent hashes of the bytes of `n` floats.
inline std::pair<uint64_t, uint64_t> ContentHash(const float* x, int64_t n) {
  uint64_t a = 0x9e3779b97f4a7c15, b = 0xc2b2ae3d27d4eb4f;
  int64_t i = 0;
  for (; i + 2 <= n; i += 2) {
    uint64_t word;
    std::memcpy(&word, x + i, sizeof word);
    a = (a ^ word) * 0x9fb21c651e98df25;
    a ^= a >> 29;
    b = (b + word) * 0xd6e8feb86659fd93;
    b ^= b >> 32;
  }
  for (; i < n; ++i) {
    uint32_t word;
    std::memcpy(&word, x + i, sizeof word);
    a = (a ^ word) * 0x9fb21c651e98df25;
    b = (b + word) * 0xd6e8feb86659fd93;
  }
  return {a ^ a >> 31, b ^ b >> 33};
}

}  // namespace weir::functors

#endif  // WEIR_PLUGINS_FUNCTORS_CONTENT_HASH_H_
