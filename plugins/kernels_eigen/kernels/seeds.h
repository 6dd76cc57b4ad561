// The generator that follows from the seed of a stateless random op.
#ifndef WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_SEEDS_H_
#define WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_SEEDS_H_

#include "plugins/kernels_eigen/kernels/philox.h"
#include "sdk/cpp/kernel.h"

namespace weir::kernels_eigen {

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

/// The seed mixed by one block of the generator itself, so that every bit of it matters.
inline Philox FromSeed(const SeedWords& seed) {
  constexpr uint64_t kMixer = uint64_t{0x02461e29} << 32 | 0x3ec8f720;
  const Philox mixer{kMixer, SeedWord(seed, 1), SeedWord(seed, 0)};
  uint32_t words[Philox::kWords];
  mixer.Blocks<1>(0, words);
  return {words[0] | uint64_t{words[1]} << 32, words[2] | uint64_t{words[3]} << 32, 0};
}

}  // namespace weir::kernels_eigen

#endif  // WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_SEEDS_H_
