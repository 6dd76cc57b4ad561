// Which nodes of a candidate become kernels.
#ifndef WEIR_PLUGINS_COMPILER_NVRTC_CLAIM_H_
#define WEIR_PLUGINS_COMPILER_NVRTC_CLAIM_H_

#include <cstdint>
#include <string>
#include <vector>

#include "sdk/abi/compiler.h"

namespace weir::compiler_nvrtc {

struct Claim {
  std::vector<uint32_t> nodes;  // ascending; at least two
  double predicted_ns = 0;
  std::string reason;
};

/// Disjoint convex sets of nodes with results of one shape, each of which SourceOf takes. A set grows from its last
/// node to those that it needs. `profile` may be null; times then hold for a card of 2020.
std::vector<Claim> ClaimNodes(const weir_region& candidate, const weir_profile* profile);

}  // namespace weir::compiler_nvrtc

#endif  // WEIR_PLUGINS_COMPILER_NVRTC_CLAIM_H_
