// Random generators between the ops that use them: as keys and counters, and as the state in a variable.
#ifndef WEIR_PLUGINS_FUNCTORS_GENERATOR_STATE_H_
#define WEIR_PLUGINS_FUNCTORS_GENERATOR_STATE_H_

#include <iterator>

#include "plugins/functors/seeds.h"

namespace weir::functors {

/// Algorithm 2, ThreeFry, has no kernel in TensorFlow either.
inline constexpr int64_t kPhilox = 1, kAnyAlgorithm = 3;

inline int32_t CheckAlgorithm(const sdk::Error& error, int64_t algorithm) {
  if (algorithm == kPhilox || algorithm == kAnyAlgorithm) return WEIR_OK;
  return error.InvalidArgument("Unsupported algorithm id: ", algorithm);
}

inline constexpr sdk::Types<int32_t, int64_t> kSeedTypes;

/// StatelessRandomGetKeyCounter: seed and results are in host memory.
struct KeyCounter {
  int32_t Prepare(sdk::Prep& prep) { return CheckSeed(prep, 0); }
  template <class I>
  void Run(sdk::Host<const I> seed, sdk::View<uint64_t> key, sdk::View<uint64_t> counter) const {
    const Philox generator =
        FromSeedWords(static_cast<uint64_t>(int64_t{seed[0]}), static_cast<uint64_t>(int64_t{seed[1]}));
    key[0] = generator.key;
    counter[0] = generator.origin;
    counter[1] = generator.stream;
  }
};
/// StatelessRandomGetKeyCounterAlg.
struct KeyCounterAlgorithm {
  int32_t Prepare(sdk::Prep& prep) { return CheckSeed(prep, 0); }
  template <class I>
  void Run(sdk::Host<const I> seed, sdk::View<uint64_t> key, sdk::View<uint64_t> counter,
           sdk::View<int32_t> algorithm) const {
    KeyCounter().Run(seed, key, counter);
    algorithm[0] = static_cast<int32_t>(kPhilox);
  }
};
/// StatelessRandomGetAlg.
struct DeviceAlgorithm {
  void Run(sdk::View<int32_t> algorithm) const { algorithm[0] = static_cast<int32_t>(kPhilox); }
};

/// TensorFlow's name of an element type.
inline const char* TypeNameOf(uint32_t dtype) {
  constexpr const char* kNames[] = {"invalid",    "float",  "double",    "int32",   "uint8",   "int16",
                                    "int8",       "string", "complex64", "int64",   "bool",    "qint8",
                                    "quint8",     "qint32", "bfloat16",  "qint16",  "quint16", "uint16",
                                    "complex128", "half",   "resource",  "variant", "uint32",  "uint64"};
  return dtype < std::size(kNames) ? kNames[dtype] : "another type";
}

/// The state [3] of a generator: the counter's lower and upper half, and the key.
inline int32_t CheckState(const sdk::Prep& prep) {
  const weir_shape& state = prep.shape(0);
  if (prep.input(0).dtype != WEIR_INT64) {
    return prep.error().InvalidArgument("dtype of RNG state variable must be int64, not ",
                                        TypeNameOf(prep.input(0).dtype));
  }
  if (state.rank != 1)
    return prep.error().InvalidArgument("RNG state must have one and only one dimension, not ", state.rank);
  if (state.dims[0] < 3) {
    return prep.error().InvalidArgument("For the Philox algorithm, the size of state must be at least 3; got ",
                                        state.dims[0]);
  }
  for (const uint32_t i : {1u, 2u}) {
    if (prep.shape(i).rank == 0) continue;
    return prep.error().InvalidArgument("input ", i, " (0-based) must have shape [], not ", prep.shape(i));
  }
  return WEIR_OK;
}

/// 256 blocks for each of `delta` samples, modulo 2^64.
WEIR_HD inline void Advance(int64_t* state, uint64_t delta) {
  const auto low = static_cast<uint64_t>(state[0]), moved = low + delta * 256;
  state[0] = static_cast<int64_t>(moved);
  state[1] = static_cast<int64_t>(static_cast<uint64_t>(state[1]) + (moved < low ? 1 : 0));
}

}  // namespace weir::functors

#endif  // WEIR_PLUGINS_FUNCTORS_GENERATOR_STATE_H_
