// Numbers made of the words of a generator, the same as TensorFlow's: equal seeds give equal numbers only if the
// compiler fuses no product and sum here.
#ifndef WEIR_PLUGINS_FUNCTORS_DRAWS_H_
#define WEIR_PLUGINS_FUNCTORS_DRAWS_H_

#include <algorithm>
#include <bit>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <numbers>

#include "plugins/functors/philox.h"
#include "sdk/cpp/types.h"

namespace weir::functors {

/// Number of values of type T in a block.
template <class T>
inline constexpr int kPerBlock = sizeof(T) == 8 ? 2 : 4;

/// Random mantissa bits give a number in [1, 2), from which 1 is subtracted.
WEIR_HD inline float UniformFloat(uint32_t word) {
  return std::bit_cast<float>((word & 0x7fffffu) | 0x3f800000u) - 1.0f;
}
WEIR_HD inline double UniformDouble(uint32_t high, uint32_t low) {
  const uint64_t mantissa = (uint64_t{high & 0xfffffu} << 32) | low;
  return std::bit_cast<double>(mantissa | uint64_t{0x3ff} << 52) - 1.0;
}

/// The values of one block.
WEIR_HD inline void Uniform(const uint32_t* words, float* to) {
  for (int i = 0; i < 4; ++i) to[i] = UniformFloat(words[i]);
}
WEIR_HD inline void Uniform(const uint32_t* words, double* to) {
  for (int i = 0; i < 2; ++i) to[i] = UniformDouble(words[2 * i], words[2 * i + 1]);
}
inline void Uniform(const uint32_t* words, sdk::half* to) {
  for (int i = 0; i < 4; ++i) {
    sdk::half x;
    x.bits = static_cast<uint16_t>((words[i] & 0x3ffu) | 0x3c00u);
    to[i] = sdk::half(static_cast<float>(x) - 1.0f);
  }
}
inline void Uniform(const uint32_t* words, sdk::bfloat16* to) {
  for (int i = 0; i < 4; ++i) {
    sdk::bfloat16 x;
    x.bits = static_cast<uint16_t>((words[i] & 0x7fu) | 0x3f80u);
    to[i] = sdk::bfloat16(static_cast<float>(x) - 1.0f);
  }
}

/// Two independent normal numbers from two uniform ones, by the Box-Muller method.
template <class C>
WEIR_HD void NormalPair(C u, C angle, C* to) {
  const C radius = std::sqrt(C(-2) * std::log(std::max(u, C(1.0e-7))));
  to[0] = std::sin(angle) * radius;
  to[1] = std::cos(angle) * radius;
}
inline constexpr double kTurn = 2 * std::numbers::pi;

WEIR_HD inline void NormalPair(uint32_t x, uint32_t y, float* to) {
  NormalPair(UniformFloat(x), static_cast<float>(kTurn * static_cast<double>(UniformFloat(y))), to);
}
WEIR_HD inline void Normal(const uint32_t* words, float* to) {
  NormalPair(words[0], words[1], to);
  NormalPair(words[2], words[3], to + 2);
}
WEIR_HD inline void Normal(const uint32_t* words, double* to) {
  NormalPair(UniformDouble(words[0], words[1]), kTurn * UniformDouble(words[2], words[3]), to);
}
template <class T>
void Normal(const uint32_t* words, T* to) {
  float wide[4];
  Normal(words, wide);
  for (int i = 0; i < 4; ++i) to[i] = T(wide[i]);
}

/// Fills `out` with values, block by block.
template <class T, class Sample>
void BlockByBlock(const Philox& generator, uint64_t first, T* out, int64_t n, Sample&& sample) {
  constexpr int kBatch = 16, kValues = kBatch * kPerBlock<T>;
  uint32_t words[kBatch * Philox::kWords];
  T values[kValues];
  for (int64_t i = 0; i < n; i += kValues, first += kBatch) {
    generator.Blocks<kBatch>(first, words);
    for (int b = 0; b < kBatch; ++b) sample(words + b * Philox::kWords, values + b * kPerBlock<T>);
    std::copy(values, values + std::min<int64_t>(kValues, n - i), out + i);
  }
}

struct UniformValues {
  template <class T>
  static void Draw(const Philox& generator, uint64_t first, T* out, int64_t n) {
    BlockByBlock(generator, first, out, n, [](const uint32_t* words, T* to) { Uniform(words, to); });
  }
};

struct NormalValues {
  template <class T>
  static void Draw(const Philox& generator, uint64_t first, T* out, int64_t n) {
    BlockByBlock(generator, first, out, n, [](const uint32_t* words, T* to) { Normal(words, to); });
  }
};

/// Normal numbers with absolute values below 2. Each group of as many values as a block holds has its own blocks, so
/// that it does not depend on the numbers rejected by the groups before.
struct TruncatedValues {
  template <class T>
  static void Draw(const Philox& generator, uint64_t first, T* out, int64_t n) {
    using C = sdk::Compute<T>;
    constexpr int kGroup = kPerBlock<T>;
    uint32_t words[Philox::kWords];
    C drawn[kGroup];
    for (int64_t at = 0; at < n; first += 64 * kGroup) {
      const int64_t end = std::min<int64_t>(n, at + kGroup);
      for (uint64_t block = first; at < end; ++block) {
        generator.Blocks<1>(block, words);
        Normal(words, drawn);
        for (int i = 0; i < kGroup && at < end; ++i) {
          if (std::abs(drawn[i]) < C(2)) out[at++] = T(drawn[i]);
        }
      }
    }
  }
};

/// The integers of one block: its words, or pairs of them with the low half first.
template <std::integral T>
WEIR_HD void Bits(const uint32_t* words, T* to) {
  for (int i = 0; i < kPerBlock<T>; ++i) {
    if constexpr (sizeof(T) == 8) {
      to[i] = static_cast<T>(words[2 * i] | uint64_t{words[2 * i + 1]} << 32);
    } else {
      to[i] = static_cast<T>(words[i]);
    }
  }
}

/// Integers in the whole range of T.
struct FullIntegers {
  template <class T>
  static void Draw(const Philox& generator, uint64_t first, T* out, int64_t n) {
    BlockByBlock(generator, first, out, n, [](const uint32_t* words, T* to) { Bits(words, to); });
  }
};

/// Integers in [low, high), low < high.
template <class T>
void DrawIntegers(const Philox& generator, uint64_t first, T low, T high, T* out, int64_t n) {
  using U = std::make_unsigned_t<T>;
  const U range = static_cast<U>(high) - static_cast<U>(low);
  BlockByBlock(generator, first, out, n, [low, range](const uint32_t* words, T* to) {
    U drawn[kPerBlock<T>];
    Bits(words, drawn);
    for (int i = 0; i < kPerBlock<T>; ++i) to[i] = static_cast<T>(static_cast<U>(low) + drawn[i] % range);
  });
}

/// The words of consecutive blocks one by one.
class Words {
 public:
  Words(const Philox& generator, uint64_t first) : generator_(generator), next_(first) {}
  uint32_t Next() {
    if (used_ == Philox::kWords) {
      generator_.Blocks<1>(next_++, words_);
      used_ = 0;
    }
    return words_[used_++];
  }
  uint64_t Next64() {
    const uint64_t low = Next();
    return low | uint64_t{Next()} << 32;
  }
  float NextFloat() { return UniformFloat(Next()); }
  double NextDouble() {
    const uint32_t high = Next();
    return UniformDouble(high, Next());
  }

 private:
  Philox generator_;
  uint64_t next_;
  uint32_t words_[Philox::kWords] = {};
  int used_ = Philox::kWords;
};

}  // namespace weir::functors

#endif  // WEIR_PLUGINS_FUNCTORS_DRAWS_H_
