// Random tensors with the CPU's numbers: a thread for each block of the generator.
#include "plugins/functors/draws.h"

#include "plugins/functors/generator_state.h"
#include "plugins/functors/node_stream.h"
#include "plugins/functors/operands.h"
#include "plugins/gpu/kernels/families.h"
#include "plugins/gpu/kernels/storage.h"
#include "sdk/cpp/kernel.h"

namespace weir::gpu {
namespace {

using functors::ExpectOutput;
using functors::Philox;
using functors::Steering;
using sdk::AnyOutput;
using sdk::Env;
using sdk::Host;
using sdk::HostIntegers;
using sdk::Prep;
using sdk::View;

/// The generator of a call; with a key and a counter in device memory, these.
struct Generator {
  Philox given;
  Ptr<const uint64_t> key, counter;
  WEIR_GPU_FN Philox Get() const {
    if (!key) return given;
    return {key[0], counter[1], counter[0]};
  }
};

/// Number of values in a block.
template <class S>
constexpr int kValues = sizeof(typename S::C) == 8 ? 2 : 4;

struct DrawUniform {
  template <class S>
  WEIR_HD static void Values(const S& storage, const uint32_t* words, typename S::C* to) {
    if constexpr (std::is_same_v<S, Float16>) {
      // The mantissa bits of the storage type itself.
      for (int i = 0; i < 4; ++i) {
        const auto bits =
            static_cast<uint16_t>(storage.brain ? (words[i] & 0x7fu) | 0x3f80u : (words[i] & 0x3ffu) | 0x3c00u);
        to[i] = storage.Load(reinterpret_cast<const char*>(&bits), 0) - 1.0f;
      }
    } else {
      functors::Uniform(words, to);
    }
  }
};
struct DrawNormal {
  template <class S>
  WEIR_HD static void Values(const S&, const uint32_t* words, typename S::C* to) {
    functors::Normal(words, to);
  }
};

template <class Draw, class S>
struct BlockWork {
  Ptr<char> y;
  Generator generator;
  uint64_t first;
  int64_t n;
  S storage;
  WEIR_GPU_FN void operator()(int64_t i) const {
    uint32_t words[Philox::kWords];
    typename S::C values[kValues<S>];
    generator.Get().template Blocks<1>(first + static_cast<uint64_t>(i), words);
    Draw::Values(storage, words, values);
    for (int k = 0; k < kValues<S>; ++k) {
      const int64_t at = i * kValues<S> + k;
      if (at < n) storage.Store(y.get(), at, values[k]);
    }
  }
};

/// Normal numbers below 2 in size. Each group of as many values as a block holds has blocks of its own.
template <class S>
struct TruncatedWork {
  Ptr<char> y;
  Generator generator;
  uint64_t first;
  int64_t n;
  S storage;
  WEIR_GPU_FN void operator()(int64_t i) const {
    using C = typename S::C;
    uint32_t words[Philox::kWords];
    C values[kValues<S>];
    const Philox philox = generator.Get();
    int64_t at = i * kValues<S>;
    const int64_t end = at + kValues<S> < n ? at + kValues<S> : n;
    for (uint64_t block = first + static_cast<uint64_t>(i) * 64 * kValues<S>; at < end; ++block) {
      philox.template Blocks<1>(block, words);
      functors::Normal(words, values);
      for (int k = 0; k < kValues<S> && at < end; ++k) {
        if (std::fabs(values[k]) < C(2)) storage.Store(y.get(), at++, values[k]);
      }
    }
  }
};

struct DrawTruncated {};

template <class Draw>
int32_t DrawFloats(const Env& env, const Generator& generator, uint64_t first, const AnyOutput& y) {
  const int64_t n = y.size();
  int32_t code = WEIR_OK;
  WithStorage<kFloats>(y.dtype(), [&](auto storage) {
    using S = decltype(storage);
    const int64_t blocks = n / kValues<S> + (n % kValues<S> != 0 ? 1 : 0);
    if constexpr (std::is_same_v<Draw, DrawTruncated>) {
      code = Launch(env, blocks, TruncatedWork<S>{To(y), generator, first, n, storage});
    } else {
      code = Launch(env, blocks, BlockWork<Draw, S>{To(y), generator, first, n, storage});
    }
  });
  return code;
}

/// Integers of T in [low, high), or of its whole range if they are equal.
template <class T>
struct IntegerWork {
  using U = std::make_unsigned_t<T>;
  static constexpr int kOfBlock = functors::kPerBlock<T>;
  Ptr<T> y;
  Generator generator;
  uint64_t first;
  int64_t n;
  T low, high;
  WEIR_GPU_FN void operator()(int64_t i) const {
    uint32_t words[Philox::kWords];
    U drawn[kOfBlock];
    generator.Get().template Blocks<1>(first + static_cast<uint64_t>(i), words);
    functors::Bits(words, drawn);
    const U range = static_cast<U>(static_cast<U>(high) - static_cast<U>(low));
    for (int k = 0; k < kOfBlock; ++k) {
      const int64_t at = i * kOfBlock + k;
      if (at >= n) break;
      y[at] = range == 0 ? static_cast<T>(drawn[k]) : static_cast<T>(static_cast<U>(low) + drawn[k] % range);
    }
  }
};
template <class T>
int32_t DrawWhole(const Env& env, const Generator& generator, uint64_t first, T low, T high, View<T> y) {
  const int64_t n = y.size();
  constexpr int kOfBlock = functors::kPerBlock<T>;
  return Launch(env, n / kOfBlock + (n % kOfBlock != 0 ? 1 : 0),
                IntegerWork<T>{y.data(), generator, first, n, low, high});
}
template <class T>
int32_t DrawInRange(const Env& env, const Generator& generator, uint64_t first, T low, T high, View<T> y) {
  if (y.size() == 0) return WEIR_OK;
  if (low >= high) return env.error().InvalidArgument("Need minval < maxval, got ", low, " >= ", high);
  return DrawWhole(env, generator, first, low, high, y);
}

/// Ops whose input 0 is the shape of their output.
int32_t ExpectDrawn(const Prep& prep) {
  std::vector<int64_t> dims;
  const int32_t code = Steering(prep, 0, &dims);
  return code != WEIR_OK ? code : ExpectOutput(prep, 0, dims);
}
int32_t CheckScalars(const Prep& prep, uint32_t low) {
  if (prep.shape(low).rank != 0) return prep.error().InvalidArgument("minval must be 0-D, got shape ", prep.shape(low));
  if (prep.shape(low + 1).rank == 0) return WEIR_OK;
  return prep.error().InvalidArgument("maxval must be 0-D, got shape ", prep.shape(low + 1));
}

/// Stateful ops: the node's generator continues from call to call.
template <class Draw>
struct OfNode {
  functors::NodeStream stream;

  int32_t Prepare(Prep& prep) {
    const int32_t code = ExpectDrawn(prep);
    return code != WEIR_OK ? code : stream.Open(prep);
  }
  int32_t Run(Env& env, HostIntegers, AnyOutput y) {
    return DrawFloats<Draw>(env, {stream.generator(), {}, {}}, stream.ReserveFor(y.size()), y);
  }
};
struct IntegersOfNode {
  functors::NodeStream stream;

  int32_t Prepare(Prep& prep) {
    if (const int32_t code = CheckScalars(prep, 1); code != WEIR_OK) return code;
    const int32_t code = ExpectDrawn(prep);
    return code != WEIR_OK ? code : stream.Open(prep);
  }
  template <class T>
  int32_t Run(Env& env, HostIntegers, Host<const T> low, Host<const T> high, View<T> y) {
    if (y.size() == 0) return WEIR_OK;
    return DrawInRange(env, {stream.generator(), {}, {}}, stream.ReserveFor(y.size()), low[0], high[0], y);
  }
};

template <class I>
Generator OfSeed(Host<const I> seed) {
  return {functors::FromSeedWords(static_cast<uint64_t>(seed[0]), static_cast<uint64_t>(seed[1])), {}, {}};
}

/// Stateless ops of the first kind: the seed is in host memory.
template <class Draw>
struct OfSeedOnHost {
  int32_t Prepare(Prep& prep) {
    const int32_t code = functors::CheckSeed(prep, 1);
    return code != WEIR_OK ? code : ExpectDrawn(prep);
  }
  template <class I>
  int32_t Run(Env& env, HostIntegers, Host<const I> seed, AnyOutput y) const {
    return DrawFloats<Draw>(env, OfSeed(seed), 0, y);
  }
};
struct IntegersOfSeed {
  int32_t Prepare(Prep& prep) {
    int32_t code = functors::CheckSeed(prep, 1);
    if (code == WEIR_OK) code = CheckScalars(prep, 2);
    return code != WEIR_OK ? code : ExpectDrawn(prep);
  }
  template <class T, class I>
  int32_t Run(Env& env, HostIntegers, Host<const I> seed, Host<const T> low, Host<const T> high, View<T> y) const {
    return DrawInRange(env, OfSeed(seed), 0, low[0], high[0], y);
  }
};
struct AllIntegersOfSeed {
  int32_t Prepare(Prep& prep) {
    const int32_t code = functors::CheckSeed(prep, 1);
    return code != WEIR_OK ? code : ExpectDrawn(prep);
  }
  template <class T, class I>
  int32_t Run(Env& env, HostIntegers, Host<const I> seed, View<T> y) const {
    return DrawWhole(env, OfSeed(seed), 0, T(0), T(0), y);
  }
};

/// Stateless ops of the second kind: key and counter are in device memory.
template <class Draw>
struct OfKey {
  int32_t Prepare(Prep& prep) {
    const int32_t code = functors::CheckKey(prep);
    return code != WEIR_OK ? code : ExpectDrawn(prep);
  }
  int32_t Run(Env& env, HostIntegers, View<const uint64_t> key, View<const uint64_t> counter,
              Host<const int32_t> algorithm, AnyOutput y) const {
    if (const int32_t code = functors::CheckAlgorithm(env.error(), algorithm[0]); code != WEIR_OK) return code;
    return DrawFloats<Draw>(env, {{}, key.data(), counter.data()}, 0, y);
  }
};
struct AllIntegersOfKey {
  int32_t Prepare(Prep& prep) {
    const int32_t code = functors::CheckKey(prep);
    return code != WEIR_OK ? code : ExpectDrawn(prep);
  }
  template <class T>
  int32_t Run(Env& env, HostIntegers, View<const uint64_t> key, View<const uint64_t> counter,
              Host<const int32_t> algorithm, View<T> y) const {
    if (const int32_t code = functors::CheckAlgorithm(env.error(), algorithm[0]); code != WEIR_OK) return code;
    return DrawWhole(env, {{}, key.data(), counter.data()}, 0, T(0), T(0), y);
  }
};
struct IntegersOfKey {
  int32_t Prepare(Prep& prep) {
    int32_t code = functors::CheckKey(prep);
    if (code == WEIR_OK) code = CheckScalars(prep, 4);
    return code != WEIR_OK ? code : ExpectDrawn(prep);
  }
  template <class T>
  int32_t Run(Env& env, HostIntegers, View<const uint64_t> key, View<const uint64_t> counter,
              Host<const int32_t> algorithm, Host<const T> low, Host<const T> high, View<T> y) const {
    if (const int32_t code = functors::CheckAlgorithm(env.error(), algorithm[0]); code != WEIR_OK) return code;
    return DrawInRange(env, {{}, key.data(), counter.data()}, 0, low[0], high[0], y);
  }
};

/// Moves a generator in a variable on, after a copy of its state if there is `old`.
struct SkipWork {
  Ptr<int64_t> state, old;
  uint64_t delta;
  WEIR_GPU_FN void operator()(int64_t) const {
    for (int i = 0; old && i < 3; ++i) old[i] = state[i];
    functors::Advance(state.get(), delta);
  }
};
/// A parameter for int64 would refuse variables of other types as a fault of the plugin, before CheckState names it.
using GeneratorVariable = sdk::VariableBuffer<void>;
int64_t* StateOf(const GeneratorVariable& variable) {
  return reinterpret_cast<int64_t*>(variable.handle() + variable.offset());
}

struct ReadAndSkip {
  int32_t Prepare(Prep& prep) { return functors::CheckState(prep); }
  int32_t Run(Env& env, GeneratorVariable variable, Host<const int32_t> algorithm, Host<const uint64_t> delta,
              View<int64_t> old) const {
    if (const int32_t code = functors::CheckAlgorithm(env.error(), algorithm[0]); code != WEIR_OK) return code;
    return Launch(env, 1, SkipWork{StateOf(variable), old.data(), delta[0]});
  }
};
struct SkipSamples {
  int32_t Prepare(Prep& prep) { return functors::CheckState(prep); }
  int32_t Run(Env& env, GeneratorVariable variable, Host<const int64_t> algorithm, Host<const int64_t> delta) const {
    if (const int32_t code = functors::CheckAlgorithm(env.error(), algorithm[0]); code != WEIR_OK) return code;
    return Launch(env, 1, SkipWork{StateOf(variable), nullptr, static_cast<uint64_t>(delta[0])});
  }
};

}  // namespace

void AddDraws(sdk::KernelTable& k) {
  constexpr sdk::Types<int32_t, int64_t> kIndexTypes;
  constexpr sdk::Types<int32_t, int64_t, uint32_t, uint64_t> kWordTypes;
  const auto seeds = sdk::Attr("Tseed", kIndexTypes);
  const auto add = [](sdk::Kernel& kernel, double flops) {
    kernel.Restrict("dtype", kFloatingBits).Class(WEIR_CLASS_RNG, flops);
  };
  add(k.Add<OfNode<DrawUniform>>("RandomUniform"), 4);
  add(k.Add<OfNode<DrawNormal>>("RandomStandardNormal"), 20);
  add(k.Add<OfNode<DrawTruncated>>("TruncatedNormal"), 30);
  k.Add<IntegersOfNode>("RandomUniformInt", sdk::Attr("Tout", kIndexTypes)).Class(WEIR_CLASS_RNG, 4);
  add(k.Add<OfSeedOnHost<DrawUniform>>("StatelessRandomUniform", seeds), 4);
  add(k.Add<OfSeedOnHost<DrawNormal>>("StatelessRandomNormal", seeds), 20);
  add(k.Add<OfSeedOnHost<DrawTruncated>>("StatelessTruncatedNormal", seeds), 30);
  k.Add<IntegersOfSeed>("StatelessRandomUniformInt", sdk::Attr("dtype", kIndexTypes), seeds).Class(WEIR_CLASS_RNG, 4);
  k.Add<AllIntegersOfSeed>("StatelessRandomUniformFullInt", sdk::Attr("dtype", kWordTypes),
                           sdk::Attr("Tseed", kWordTypes))
      .Class(WEIR_CLASS_RNG, 4);
  add(k.Add<OfKey<DrawUniform>>("StatelessRandomUniformV2"), 4);
  add(k.Add<OfKey<DrawNormal>>("StatelessRandomNormalV2"), 20);
  add(k.Add<OfKey<DrawTruncated>>("StatelessTruncatedNormalV2"), 30);
  k.Add<AllIntegersOfKey>("StatelessRandomUniformFullIntV2", sdk::Attr("dtype", kWordTypes)).Class(WEIR_CLASS_RNG, 4);
  k.Add<IntegersOfKey>("StatelessRandomUniformIntV2", sdk::Attr("dtype", kWordTypes)).Class(WEIR_CLASS_RNG, 4);
  k.Add<ReadAndSkip>("RngReadAndSkip").Class(WEIR_CLASS_RNG);
  k.Add<SkipSamples>("RngSkip").Class(WEIR_CLASS_RNG);
}

}  // namespace weir::gpu
