// Which nodes of a candidate become regions.
#ifndef WEIR_PLUGINS_COMPILER_LLVM_CLAIM_H_
#define WEIR_PLUGINS_COMPILER_LLVM_CLAIM_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sdk/abi/compiler.h"

namespace weir::compiler_llvm {

struct Claim {
  std::vector<uint32_t> nodes;  // ascending
  double predicted_ns = 0;
  double compile_ns = 0;
  uint64_t scratch_bytes = 0;
  std::string reason;
};

/// Disjoint sets, each of which `compile` takes, and which can run in the place of their last nodes.
/// `profile` may be null; times then hold for a processor of 2022.
std::vector<Claim> ClaimNodes(const weir_region& candidate, bool wide_vectors, const weir_profile* profile);

/// The claim of a whole loop; none if there is no code for it.
std::optional<Claim> ClaimLoop(const weir_region& candidate, bool wide_vectors);

}  // namespace weir::compiler_llvm

#endif  // WEIR_PLUGINS_COMPILER_LLVM_CLAIM_H_
