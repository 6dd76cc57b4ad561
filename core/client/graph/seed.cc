#include <limits>

#include "core/client/graph/attribute_scopes.h"
#include "core/client/graph/graph_internal.h"
#include "core/client/graph/scopes.h"

namespace weir {
namespace {

constexpr int64_t kDefaultGraphSeed = 87654321;

}  // namespace

SeedPair OpSeeds(const Graph& graph, int64_t op_seed) {
  if (graph.random_seed < 0 && op_seed < 0) return {};
  SeedPair seeds;
  seeds.seed = graph.random_seed < 0 ? kDefaultGraphSeed : graph.random_seed;
  seeds.seed2 = op_seed < 0 ? Internals(graph).definition.num_nodes() : op_seed;
  // (0, 0) would mean "no seed".
  if (seeds.seed == 0 && seeds.seed2 == 0) seeds.seed2 = std::numeric_limits<int32_t>::max();
  return seeds;
}

void SetRandomSeed(int64_t seed, Graph& graph) { graph.random_seed = seed; }

}  // namespace weir
