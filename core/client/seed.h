// Seeds of random ops from the graph's seed and the op's own, as TensorFlow derives them.
#ifndef WEIR_CORE_CLIENT_SEED_H_
#define WEIR_CORE_CLIENT_SEED_H_

#include <cstdint>

#include "core/client/graph.h"

namespace weir {

/// Attributes seed and seed2 of a random op; both 0 = nondeterministic.
struct SeedPair {
  int64_t seed = 0;
  int64_t seed2 = 0;
};

/// `op_seed` < 0: the op has none, and then takes the number of operations that the graph has so far.
SeedPair OpSeeds(const Graph& graph, int64_t op_seed);

/// Sets the seed of the default graph.
void SetRandomSeed(int64_t seed, Graph& graph = Graph::Default());

}  // namespace weir

#endif  // WEIR_CORE_CLIENT_SEED_H_
