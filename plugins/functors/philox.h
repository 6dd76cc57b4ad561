// The generator Philox4x32-10 of Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3" (2011).
#ifndef WEIR_PLUGINS_FUNCTORS_PHILOX_H_
#define WEIR_PLUGINS_FUNCTORS_PHILOX_H_

#include <cstdint>

#include "plugins/functors/scalar.h"

namespace weir::functors {

/// A random-access sequence of blocks of four words. Block 0 has `origin` as the lower half of the 128-bit counter and
/// `stream` as the upper.
struct Philox {
  static constexpr int kWords = 4;

  uint64_t key = 0, stream = 0, origin = 0;

  /// Generates the kCount blocks from `first` on.
  template <int kCount>
  WEIR_HD void Blocks(uint64_t first, uint32_t (&words)[kCount * kWords]) const {
    uint32_t a[kCount], b[kCount], c[kCount], d[kCount];
    for (int i = 0; i < kCount; ++i) {
      const uint64_t number = origin + (first + static_cast<uint64_t>(i));
      const uint64_t upper = stream + (number < origin ? 1 : 0);
      a[i] = static_cast<uint32_t>(number);
      b[i] = static_cast<uint32_t>(number >> 32);
      c[i] = static_cast<uint32_t>(upper);
      d[i] = static_cast<uint32_t>(upper >> 32);
    }
    auto k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
    for (int round = 0; round < 10; ++round, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u) {
      for (int i = 0; i < kCount; ++i) {
        const uint64_t p = uint64_t{0xD2511F53u} * a[i], q = uint64_t{0xCD9E8D57u} * c[i];
        a[i] = static_cast<uint32_t>(q >> 32) ^ b[i] ^ k0;
        b[i] = static_cast<uint32_t>(q);
        c[i] = static_cast<uint32_t>(p >> 32) ^ d[i] ^ k1;
        d[i] = static_cast<uint32_t>(p);
      }
    }
    for (int i = 0; i < kCount; ++i) {
      words[i * kWords] = a[i];
      words[i * kWords + 1] = b[i];
      words[i * kWords + 2] = c[i];
      words[i * kWords + 3] = d[i];
    }
  }
};

}  // namespace weir::functors

#endif  // WEIR_PLUGINS_FUNCTORS_PHILOX_H_
