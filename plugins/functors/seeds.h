// The generator that follows from the seed of a stateless random op.
#ifndef WEIR_PLUGINS_FUNCTORS_SEEDS_H_
#define WEIR_PLUGINS_FUNCTORS_SEEDS_H_

#include "plugins/functors/philox.h"
#include "sdk/cpp/kernel.h"

namespace weir::functors {

/// The operand `seed`, two integers of any width.
using SeedWords = sdk::AnyInput;

inline int32_t CheckSeed(const sdk::Prep& prep, uint32_t i) {
  const weir_shape& seed = prep.shape(i);
  if (seed.rank == 1 && seed.dims[0] == 2) return WEIR_OK;
  return prep.error().InvalidArgument("seed must have shape [2], not ", seed);
}

/// Bits of element i: 32-bit numbers keep their value, so that negative ones have high bits.
inline uint64_t SeedWord(const SeedWords& seed, int64_t i) {
  switch (seed.dtype()) {
    case WEIR_INT32:
      return static_cast<uint64_t>(int64_t{static_cast<const int32_t*>(seed.data())[i]});
    case WEIR_UINT32:
      return static_cast<const uint32_t*>(seed.data())[i];
    default:
      return static_cast<const uint64_t*>(seed.data())[i];
  }
}

/// The generator of a seed, which is mixed by one block of the generator itself, so that every bit of it matters.
inline Philox FromSeedWords(uint64_t first, uint64_t second) {
  constexpr uint64_t kMixer = uint64_t{0x02461e29} << 32 | 0x3ec8f720;
  const Philox mixer{kMixer, second, first};
  uint32_t words[Philox::kWords];
  mixer.Blocks<1>(0, words);
  return {words[0] | uint64_t{words[1]} << 32, words[2] | uint64_t{words[3]} << 32, 0};
}
inline Philox FromSeed(const SeedWords& seed) { return FromSeedWords(SeedWord(seed, 0), SeedWord(seed, 1)); }

/// InvalidArgument unless operands 1 to 3 are a key [1], a counter [2] or longer, and an algorithm.
inline int32_t CheckKey(const sdk::Prep& prep) {
  const weir_shape &key = prep.shape(1), &counter = prep.shape(2), &algorithm = prep.shape(3);
  if (algorithm.rank != 0) return prep.error().InvalidArgument("input 3 (0-based) must have shape [], not ", algorithm);
  if (key.rank != 1 || key.dims[0] != 1) {
    return prep.error().InvalidArgument("key must have shape [1], not ", key,
                                        ". (Note that batched keys are not supported yet.)");
  }
  if (counter.rank == 1 && counter.dims[0] >= 2) return WEIR_OK;
  return prep.error().InvalidArgument("counter must be a vector with length at least 2; got shape: ", counter,
                                      ". (Note that batched counters are not supported yet.)");
}

}  // namespace weir::functors

#endif  // WEIR_PLUGINS_FUNCTORS_SEEDS_H_
