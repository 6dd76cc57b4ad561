#include "core/builtin/fingerprint.h"

#include <bit>
#include <utility>

namespace weir::builtin {
namespace {

uint64_t LittleEndian(std::string_view text, size_t at, size_t bytes) {
  uint64_t word = 0;
  for (size_t i = 0; i < bytes; ++i) word |= uint64_t{static_cast<unsigned char>(text[at + i])} << (8 * i);
  return word;
}

/// FarmHash of texts by their length.
class Farm {
 public:
  explicit Farm(std::string_view text) : text_(text), length_(text.size()) {}

  uint64_t Hash() const {
    if (length_ <= 16) return UpTo16();
    const uint64_t mul = kC + length_ * 2;
    if (length_ <= 32) return UpTo32(mul);
    return length_ <= 64 ? UpTo64(mul) : Long();
  }

 private:
  using Pair = std::pair<uint64_t, uint64_t>;

  // Primes of the algorithm.
  static constexpr uint64_t kA = 0xc3a5c85c97cb3127, kB = 0xb492b66fbe98f273, kC = 0x9ae16a3b2f90404f;

  static uint64_t Shifted(uint64_t x) { return x ^ (x >> 47); }
  static uint64_t Mix(uint64_t u, uint64_t v, uint64_t mul) {
    const uint64_t a = Shifted((u ^ v) * mul);
    return Shifted((v ^ a) * mul) * mul;
  }
  uint64_t Word(size_t at) const { return LittleEndian(text_, at, 8); }
  uint64_t HalfWord(size_t at) const { return LittleEndian(text_, at, 4); }
  uint64_t FromEnd(size_t bytes) const { return Word(length_ - bytes); }

  uint64_t UpTo16() const {
    const uint64_t mul = kC + length_ * 2;
    if (length_ >= 8) {
      const uint64_t a = Word(0) + kC, b = FromEnd(8);
      return Mix(std::rotr(b, 37) * mul + a, (std::rotr(a, 25) + b) * mul, mul);
    }
    if (length_ >= 4) return Mix(length_ + (HalfWord(0) << 3), HalfWord(length_ - 4), mul);
    if (length_ == 0) return kC;
    const uint64_t first = LittleEndian(text_, 0, 1), middle = LittleEndian(text_, length_ / 2, 1);
    const uint64_t last = LittleEndian(text_, length_ - 1, 1);
    return Shifted((first + (middle << 8)) * kC ^ (length_ + (last << 2)) * kA) * kC;
  }

  uint64_t UpTo32(uint64_t mul) const {
    const uint64_t a = Word(0) * kB, b = Word(8), c = FromEnd(8) * mul, d = FromEnd(16) * kC;
    return Mix(std::rotr(a + b, 43) + std::rotr(c, 30) + d, a + std::rotr(b + kC, 18) + c, mul);
  }

  uint64_t UpTo64(uint64_t mul) const {
    const uint64_t a = Word(0) * kC, b = Word(8), c = FromEnd(8) * mul, d = FromEnd(16) * kC;
    const uint64_t y = std::rotr(a + b, 43) + std::rotr(c, 30) + d;
    const uint64_t z = Mix(y, a + std::rotr(b + kC, 18) + c, mul);
    const uint64_t e = Word(16) * mul, f = Word(24), g = (y + FromEnd(32)) * mul, h = (z + FromEnd(24)) * mul;
    return Mix(std::rotr(e + f, 43) + std::rotr(g, 30) + h, e + std::rotr(f + a, 18) + g, mul);
  }

  /// 32 bytes and two seeds.
  Pair Weak(size_t at, uint64_t a, uint64_t b) const {
    const uint64_t w = Word(at), x = Word(at + 8), y = Word(at + 16), z = Word(at + 24);
    a += w;
    b = std::rotr(b + a + z, 21);
    const uint64_t c = a;
    a += x + y;
    return {a + z, b + std::rotr(a, 44) + c};
  }

  struct State {
    uint64_t x, y, z;
    Pair v{0, 0}, w{0, 0};
  };
  /// 64 bytes.
  void Round(size_t at, uint64_t mul, uint64_t factor, State* s) const {
    s->x = std::rotr(s->x + s->y + s->v.first + Word(at + 8), 37) * mul;
    s->y = std::rotr(s->y + s->v.second + Word(at + 48), 42) * mul;
    s->x ^= s->w.second * factor;
    s->y += s->v.first * factor + Word(at + 40);
    s->z = std::rotr(s->z + s->w.first, 33) * mul;
    s->v = Weak(at, s->v.second * mul, s->x + s->w.first);
    s->w = Weak(at + 32, s->z + s->w.second, s->y + Word(at + 16));
    std::swap(s->z, s->x);
  }

  uint64_t Long() const {
    constexpr uint64_t kSeed = 81;
    State s{kSeed * kC + Word(0), kSeed * kB + 113, 0};
    s.z = Shifted(s.y * kC + 113) * kC;
    const size_t end = (length_ - 1) / 64 * 64;
    for (size_t at = 0; at < end; at += 64) Round(at, kB, 1, &s);
    const uint64_t mul = kB + ((s.z & 0xff) << 1);
    s.w.first += (length_ - 1) & 63;
    s.v.first += s.w.first;
    s.w.first += s.v.first;
    Round(length_ - 64, mul, 9, &s);
    return Mix(Mix(s.v.first, s.w.first, mul) + Shifted(s.y) * kA + s.z, Mix(s.v.second, s.w.second, mul) + s.x, mul);
  }

  std::string_view text_;
  uint64_t length_;
};

}  // namespace

uint64_t FarmFingerprint(std::string_view text) { return Farm(text).Hash(); }

uint64_t SipHash(std::string_view text, uint64_t key0, uint64_t key1) {
  uint64_t a = key0 ^ 0x736f6d6570736575, b = key1 ^ 0x646f72616e646f6d;
  uint64_t c = key0 ^ 0x6c7967656e657261, d = key1 ^ 0x7465646279746573;
  const auto round = [&] {
    a += b;
    b = std::rotl(b, 13) ^ a;
    a = std::rotl(a, 32);
    c += d;
    d = std::rotl(d, 16) ^ c;
    a += d;
    d = std::rotl(d, 21) ^ a;
    c += b;
    b = std::rotl(b, 17) ^ c;
    c = std::rotl(c, 32);
  };
  const auto take = [&](uint64_t word) {
    d ^= word;
    round();
    round();
    a ^= word;
  };
  size_t at = 0;
  for (; at + 8 <= text.size(); at += 8) take(LittleEndian(text, at, 8));
  take(LittleEndian(text, at, text.size() - at) | uint64_t{text.size()} << 56);
  c ^= 0xff;
  for (int i = 0; i < 4; ++i) round();
  return a ^ b ^ c ^ d;
}

uint64_t MurmurHash(std::string_view text) {
  constexpr uint64_t kSeed = 0xdecafcaffe, kMul = 0xc6a4a7935bd1e995;
  constexpr int kShift = 47;
  uint64_t hash = kSeed ^ (text.size() * kMul);
  size_t at = 0;
  for (; at + 8 <= text.size(); at += 8) {
    uint64_t word = LittleEndian(text, at, 8) * kMul;
    word = (word ^ word >> kShift) * kMul;
    hash = (hash ^ word) * kMul;
  }
  if (at < text.size()) hash = (hash ^ LittleEndian(text, at, text.size() - at)) * kMul;
  hash = (hash ^ hash >> kShift) * kMul;
  return hash ^ hash >> kShift;
}

}  // namespace weir::builtin
