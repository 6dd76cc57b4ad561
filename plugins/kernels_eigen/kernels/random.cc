// Random tensors with TensorFlow's numbers: RandomUniform, RandomStandardNormal, TruncatedNormal. A node's stream
// continues from call to call. Equal seeds give equal numbers only if the compiler fuses no product and sum here.
#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <memory>
#include <numbers>
#include <random>

#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/families.h"
#include "plugins/kernels_eigen/kernels/philox.h"
#include "plugins/kernels_eigen/operands.h"

namespace weir::kernels_eigen {
namespace {

/// A generator and its next unused block.
struct Stream {
  explicit Stream(const Philox& seeded) : generator(seeded) {}
  const Philox generator;
  std::atomic<uint64_t> next{0};

  /// Reserves the blocks of a call for n values and returns the first: 256 per value, more than any value uses.
  uint64_t Reserve(int64_t n) { return next.fetch_add(static_cast<uint64_t>(n) * 256, std::memory_order_relaxed); }
};

/// Seeds of a node; arbitrary ones when both are 0.
Philox Seeded(const sdk::Node& node) {
  Philox generator{static_cast<uint64_t>(node.Int("seed")), static_cast<uint64_t>(node.Int("seed2"))};
  if (generator.key == 0 && generator.stream == 0) {
    std::random_device device;
    const auto word = [&] { return uint64_t{device()} << 32 | device(); };
    generator = {word(), word()};
  }
  return generator;
}

/// Number of values of type T in a block.
template <class T>
constexpr int kPerBlock = std::is_same_v<T, double> ? 2 : 4;

/// Random mantissa bits give a number in [1, 2), from which 1 is subtracted.
float UniformFloat(uint32_t word) { return std::bit_cast<float>((word & 0x7fffffu) | 0x3f800000u) - 1.0f; }
double UniformDouble(uint32_t high, uint32_t low) {
  const uint64_t mantissa = (uint64_t{high & 0xfffffu} << 32) | low;
  return std::bit_cast<double>(mantissa | uint64_t{0x3ff} << 52) - 1.0;
}

/// The values of one block.
void Uniform(const uint32_t* words, float* to) {
  for (int i = 0; i < 4; ++i) to[i] = UniformFloat(words[i]);
}
void Uniform(const uint32_t* words, double* to) {
  for (int i = 0; i < 2; ++i) to[i] = UniformDouble(words[2 * i], words[2 * i + 1]);
}
[[maybe_unused]] void Uniform(const uint32_t* words, sdk::half* to) {
  for (int i = 0; i < 4; ++i) {
    sdk::half x;
    x.bits = static_cast<uint16_t>((words[i] & 0x3ffu) | 0x3c00u);
    to[i] = sdk::half(static_cast<float>(x) - 1.0f);
  }
}
[[maybe_unused]] void Uniform(const uint32_t* words, sdk::bfloat16* to) {
  for (int i = 0; i < 4; ++i) {
    sdk::bfloat16 x;
    x.bits = static_cast<uint16_t>((words[i] & 0x7fu) | 0x3f80u);
    to[i] = sdk::bfloat16(static_cast<float>(x) - 1.0f);
  }
}

/// Two independent normal numbers from two uniform ones, by the Box-Muller method.
template <class C>
void NormalPair(C u, C angle, C* to) {
  const C radius = std::sqrt(C(-2) * std::log(std::max(u, C(1.0e-7))));
  to[0] = std::sin(angle) * radius;
  to[1] = std::cos(angle) * radius;
}
constexpr double kTurn = 2 * std::numbers::pi;

void NormalPair(uint32_t x, uint32_t y, float* to) {
  NormalPair(UniformFloat(x), static_cast<float>(kTurn * static_cast<double>(UniformFloat(y))), to);
}
void Normal(const uint32_t* words, float* to) {
  NormalPair(words[0], words[1], to);
  NormalPair(words[2], words[3], to + 2);
}
void Normal(const uint32_t* words, double* to) {
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

template <class Distribution>
struct Random {
  Stream* stream = nullptr;
  std::unique_ptr<Stream> own;  // used if the host has no node resources

  int32_t Prepare(sdk::Prep& prep) {
    std::vector<int64_t> dims;
    if (const int32_t code = Steering(prep, 0, &dims); code != WEIR_OK) return code;
    if (const int32_t code = ExpectOutput(prep, 0, dims); code != WEIR_OK) return code;
    Philox generator = Seeded(prep.node());
    const weir_host* host = sdk::HostTable();
    if (WEIR_HAS(host, node_resource)) {
      stream = static_cast<Stream*>(host->node_resource(
          prep.node().get(), sdk::Str("philox"),
          [](void* seeded) -> void* { return new (std::nothrow) Stream(*static_cast<const Philox*>(seeded)); },
          [](void* object) { delete static_cast<Stream*>(object); }, &generator));
    }
    if (stream == nullptr) {
      own = std::make_unique<Stream>(generator);
      stream = own.get();
    }
    return WEIR_OK;
  }

  template <class T>
  void Run(sdk::HostIntegers, sdk::View<T> output) {
    const int64_t n = output.size();
    Distribution::Draw(stream->generator, stream->Reserve(n), output.data(), n);
  }
};

}  // namespace

void AddRandom(sdk::KernelTable& k) {
  constexpr auto kTypes = sdk::Attr("dtype", kFloating);
  k.Add<Random<UniformValues>>("RandomUniform", kTypes).Class(WEIR_CLASS_RNG, 4);
  k.Add<Random<NormalValues>>("RandomStandardNormal", kTypes).Class(WEIR_CLASS_RNG, 20);
  k.Add<Random<TruncatedValues>>("TruncatedNormal", kTypes).Class(WEIR_CLASS_RNG, 30);
}

}  // namespace weir::kernels_eigen
