// Random tensors that follow from a seed, or from key and counter, with TensorFlow's numbers; generators in variables.
#include "plugins/functors/generator_state.h"
#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/kernels/draws.h"
#include "plugins/kernels_eigen/kernels/row_shuffle.h"
#include "plugins/kernels_eigen/kernels/seeds.h"
#include "plugins/kernels_eigen/operands.h"
#include "plugins/kernels_eigen/sequence_families.h"

namespace weir::kernels_eigen {
namespace {

using functors::Advance;
using functors::CheckAlgorithm;
using functors::CheckState;
using sdk::Host;
using sdk::HostIntegers;
using sdk::Integers;
using sdk::Prep;
using sdk::View;

/// Ops whose input 0 is the shape of their output.
int32_t ExpectShape(const Prep& prep) {
  std::vector<int64_t> dims;
  const int32_t code = Steering(prep, 0, &dims);
  return code != WEIR_OK ? code : ExpectOutput(prep, 0, dims);
}

int32_t CheckRange(const Prep& prep, uint32_t low) {
  if (prep.shape(low).rank != 0) return prep.error().InvalidArgument("minval must be 0-D, got shape ", prep.shape(low));
  if (prep.shape(low + 1).rank == 0) return WEIR_OK;
  return prep.error().InvalidArgument("maxval must be 0-D, got shape ", prep.shape(low + 1));
}

template <class T>
int32_t FillRange(sdk::Env& env, const Philox& generator, T low, T high, View<T> output) {
  if (output.size() == 0) return WEIR_OK;
  if (low >= high) return env.error().InvalidArgument("Need minval < maxval, got ", low, " >= ", high);
  DrawIntegers(generator, 0, low, high, output.data(), output.size());
  return WEIR_OK;
}

template <class Distribution>
struct Seeded {
  int32_t Prepare(Prep& prep) {
    const int32_t code = CheckSeed(prep, 1);
    return code != WEIR_OK ? code : ExpectShape(prep);
  }
  template <class T>
  void Run(HostIntegers, SeedWords seed, View<T> output) const {
    Distribution::Draw(FromSeed(seed), 0, output.data(), output.size());
  }
};

struct SeededIntegers {
  int32_t Prepare(Prep& prep) {
    int32_t code = CheckSeed(prep, 1);
    if (code == WEIR_OK) code = CheckRange(prep, 2);
    return code != WEIR_OK ? code : ExpectShape(prep);
  }
  template <class T>
  int32_t Run(sdk::Env& env, HostIntegers, SeedWords seed, View<const T> low, View<const T> high,
              View<T> output) const {
    return FillRange(env, FromSeed(seed), low[0], high[0], output);
  }
};

Philox FromKey(View<const uint64_t> key, View<const uint64_t> counter) { return {key[0], counter[1], counter[0]}; }

template <class Distribution>
struct Keyed {
  int32_t Prepare(Prep& prep) {
    const int32_t code = CheckKey(prep);
    return code != WEIR_OK ? code : ExpectShape(prep);
  }
  template <class T>
  int32_t Run(sdk::Env& env, HostIntegers, View<const uint64_t> key, View<const uint64_t> counter,
              Host<const int32_t> algorithm, View<T> output) const {
    if (const int32_t code = CheckAlgorithm(env.error(), algorithm[0]); code != WEIR_OK) return code;
    Distribution::Draw(FromKey(key, counter), 0, output.data(), output.size());
    return WEIR_OK;
  }
};

struct KeyedIntegers {
  int32_t Prepare(Prep& prep) {
    int32_t code = CheckKey(prep);
    if (code == WEIR_OK) code = CheckRange(prep, 4);
    return code != WEIR_OK ? code : ExpectShape(prep);
  }
  template <class T>
  int32_t Run(sdk::Env& env, HostIntegers, View<const uint64_t> key, View<const uint64_t> counter,
              Host<const int32_t> algorithm, View<const T> low, View<const T> high, View<T> output) const {
    if (const int32_t code = CheckAlgorithm(env.error(), algorithm[0]); code != WEIR_OK) return code;
    return FillRange(env, FromKey(key, counter), low[0], high[0], output);
  }
};

struct KeyedShuffle : RowShuffle {
  int32_t Prepare(Prep& prep) {
    const int32_t code = CheckKey(prep);
    return code != WEIR_OK ? code : Plan(prep);
  }
  int32_t Run(sdk::Env& env, sdk::AnyInput input, View<const uint64_t> key, View<const uint64_t> counter,
              Host<const int32_t> algorithm, sdk::AnyOutput output, sdk::Scratch<int64_t> order) const {
    if (const int32_t code = CheckAlgorithm(env.error(), algorithm[0]); code != WEIR_OK) return code;
    Move(Words(FromKey(key, counter), 0), input, output, order.data());
    return WEIR_OK;
  }
};

/// A generator's variable. It may have any type until CheckState has seen it: a parameter for int64 would refuse others
/// as a fault of the plugin.
using Generator = sdk::VariableBuffer<void>;

int64_t* StateOf(const Generator& variable) { return reinterpret_cast<int64_t*>(variable.offset()); }

struct ReadAndSkip {
  int32_t Prepare(Prep& prep) { return CheckState(prep); }
  int32_t Run(sdk::Env& env, Generator variable, Host<const int32_t> algorithm, Host<const uint64_t> delta,
              View<int64_t> old) const {
    if (const int32_t code = CheckAlgorithm(env.error(), algorithm[0]); code != WEIR_OK) return code;
    int64_t* const state = StateOf(variable);
    for (int i = 0; i < 3; ++i) old[i] = state[i];
    Advance(state, delta[0]);
    return WEIR_OK;
  }
};

struct Skip {
  int32_t Prepare(Prep& prep) { return CheckState(prep); }
  int32_t Run(sdk::Env& env, Generator variable, Host<const int64_t> algorithm, Host<const int64_t> delta) const {
    if (const int32_t code = CheckAlgorithm(env.error(), algorithm[0]); code != WEIR_OK) return code;
    Advance(StateOf(variable), static_cast<uint64_t>(delta[0]));
    return WEIR_OK;
  }
};

}  // namespace

void AddStatelessRandom(sdk::KernelTable& k) {
  constexpr auto kTypes = sdk::Attr("dtype", kFloating);
  constexpr auto kSmallIndex = sdk::Attr("dtype", kIndex);
  constexpr auto kWide = sdk::Attr("dtype", sdk::Types<int32_t, int64_t, uint32_t, uint64_t>());
  k.Add<Seeded<UniformValues>>("StatelessRandomUniform", kTypes).Class(WEIR_CLASS_RNG, 4);
  k.Add<Seeded<NormalValues>>("StatelessRandomNormal", kTypes).Class(WEIR_CLASS_RNG, 20);
  k.Add<Seeded<TruncatedValues>>("StatelessTruncatedNormal", kTypes).Class(WEIR_CLASS_RNG, 30);
  k.Add<Seeded<FullIntegers>>("StatelessRandomUniformFullInt", kWide).Class(WEIR_CLASS_RNG, 4);
  k.Add<SeededIntegers>("StatelessRandomUniformInt", kSmallIndex).Class(WEIR_CLASS_RNG, 4);
  k.Add<Keyed<UniformValues>>("StatelessRandomUniformV2", kTypes).Class(WEIR_CLASS_RNG, 4);
  k.Add<Keyed<NormalValues>>("StatelessRandomNormalV2", kTypes).Class(WEIR_CLASS_RNG, 20);
  k.Add<Keyed<TruncatedValues>>("StatelessTruncatedNormalV2", kTypes).Class(WEIR_CLASS_RNG, 30);
  k.Add<Keyed<FullIntegers>>("StatelessRandomUniformFullIntV2", kWide).Class(WEIR_CLASS_RNG, 4);
  k.Add<KeyedIntegers>("StatelessRandomUniformIntV2", kWide).Class(WEIR_CLASS_RNG, 4);
  k.Add<KeyedShuffle>("StatelessShuffle").Restrict("T", kPlainSet).Class(WEIR_CLASS_GATHER);
  const auto seeds = sdk::Attr("Tseed", functors::kSeedTypes);
  k.Add<functors::KeyCounter>("StatelessRandomGetKeyCounter", seeds).Class(WEIR_CLASS_RNG);
  k.Add<functors::KeyCounterAlgorithm>("StatelessRandomGetKeyCounterAlg", seeds).Class(WEIR_CLASS_RNG);
  k.Add<functors::DeviceAlgorithm>("StatelessRandomGetAlg").Class(WEIR_CLASS_RNG);
  k.Add<ReadAndSkip>("RngReadAndSkip").Class(WEIR_CLASS_RNG);
  k.Add<Skip>("RngSkip").Class(WEIR_CLASS_RNG);
}

}  // namespace weir::kernels_eigen
