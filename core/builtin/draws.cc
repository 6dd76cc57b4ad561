#include "core/builtin/draws.h"

#include <random>

namespace weir::builtin {

Draws::Draws(int64_t seed, int64_t seed2) : key_(static_cast<uint64_t>(seed)), stream_(static_cast<uint64_t>(seed2)) {
  if (seed != 0 || seed2 != 0) return;
  std::random_device system;
  key_ = uint64_t{system()} << 32 | system();
  stream_ = uint64_t{system()} << 32 | system();
}

std::array<uint32_t, 4> Draws::Block() const {
  std::array<uint32_t, 4> x = {static_cast<uint32_t>(block_), static_cast<uint32_t>(block_ >> 32),
                               static_cast<uint32_t>(stream_), static_cast<uint32_t>(stream_ >> 32)};
  auto low = static_cast<uint32_t>(key_), high = static_cast<uint32_t>(key_ >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t first = uint64_t{0xD2511F53u} * x[0], third = uint64_t{0xCD9E8D57u} * x[2];
    x = {static_cast<uint32_t>(third >> 32) ^ x[1] ^ low, static_cast<uint32_t>(third),
         static_cast<uint32_t>(first >> 32) ^ x[3] ^ high, static_cast<uint32_t>(first)};
    low += 0x9E3779B9u;
    high += 0xBB67AE85u;
  }
  return x;
}

uint32_t Draws::Next() {
  if (used_ == words_.size()) {
    words_ = Block();
    ++block_;
    used_ = 0;
  }
  return words_[used_++];
}

}  // namespace weir::builtin
