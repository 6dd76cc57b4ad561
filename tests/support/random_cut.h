// Random placements for tests of partitioned steps.
#ifndef WEIR_TESTS_SUPPORT_RANDOM_CUT_H_
#define WEIR_TESTS_SUPPORT_RANDOM_CUT_H_

#include <random>
#include <span>
#include <string>

#include "core/graph/definition.h"

namespace weir::testing {

/// Requests a random device for every node. Nodes that refer to one variable get the same one.
void PlaceAtRandom(std::span<const std::string> devices, std::mt19937& random, graph::Definition& graph);

}  // namespace weir::testing

#endif  // WEIR_TESTS_SUPPORT_RANDOM_CUT_H_
