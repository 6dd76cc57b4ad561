#include "plugins/compiler_nvrtc/claim.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "plugins/compiler_nvrtc/source.h"
#include "sdk/cpp/types.h"

namespace weir::compiler_nvrtc {
namespace {

constexpr double kLaunchNs = 5000, kBytesPerNs = 1000;  // of a card of 2020

class Claimer {
 public:
  Claimer(const weir_region& candidate, const weir_profile* profile)
      : region_(candidate), taken_(candidate.node_count, false), is_output_(candidate.node_count, false) {
    if (profile != nullptr && profile->launch_ns > 0) launch_ns_ = profile->launch_ns;
    if (profile != nullptr && profile->bandwidth_bytes_per_ns > 0) bytes_per_ns_ = profile->bandwidth_bytes_per_ns;
    for (uint32_t k = 0; k < candidate.output_count; ++k) {
      if (IsNode(candidate.outputs[k])) is_output_[NodeOf(candidate.outputs[k])] = true;
    }
  }

  std::vector<Claim> Take() {
    std::vector<Claim> claims;
    for (uint32_t last = region_.node_count; last-- > 0;) {
      std::string why;
      const weir_shape& dims = region_.nodes[last]->result.shape;
      if (taken_[last] || !ElementsOf(dims) || !FitsKernel(region_, *region_.nodes[last], dims, &why)) continue;
      Claim claim = Grow(last, dims);
      if (claim.nodes.size() < 2) continue;
      for (const uint32_t node : claim.nodes) taken_[node] = true;
      claim.predicted_ns = PredictedNs(claim.nodes);
      claims.push_back(std::move(claim));
    }
    return claims;
  }

 private:
  bool IsNode(uint32_t value) const { return value >= region_.input_count; }
  uint32_t NodeOf(uint32_t value) const { return value - region_.input_count; }

  /// The set that ends with `last`. From it on downwards, a node joins if a member needs it, it fits, and no node that
  /// was left out needs it: a path through such a node would leave the set and come back.
  Claim Grow(uint32_t last, const weir_shape& dims) const {
    Claim claim;
    std::vector<bool> needed(last + 1, false), closed(last + 1, false);
    needed[last] = true;
    for (uint32_t n = last + 1; n-- > 0;) {
      if (!needed[n] && !closed[n]) continue;
      const weir_region_node& node = *region_.nodes[n];
      std::string why;
      const bool joins = needed[n] && !closed[n] && !taken_[n] && claim.nodes.size() < kMostNodes &&
                         FitsKernel(region_, node, dims, &why);
      if (joins) claim.nodes.push_back(n);
      if (!joins && needed[n] && claim.reason.empty()) claim.reason = why;
      for (uint32_t k = 0; k < node.operand_count; ++k) {
        if (IsNode(node.operands[k])) (joins ? needed : closed)[NodeOf(node.operands[k])] = true;
      }
    }
    std::reverse(claim.nodes.begin(), claim.nodes.end());
    while (claim.nodes.size() > 1 && Reads(claim.nodes).size() + claim.nodes.size() > kMostPointers) {
      claim.nodes.erase(claim.nodes.begin());  // what only later members need stays convex
    }
    return claim;
  }

  /// Values from outside that the set reads.
  std::set<uint32_t> Reads(const std::vector<uint32_t>& set) const {
    std::set<uint32_t> values;
    for (const uint32_t n : set) {
      const weir_region_node& node = *region_.nodes[n];
      for (uint32_t k = 0; k < node.operand_count; ++k) {
        const uint32_t value = node.operands[k];
        if (!IsNode(value) || !std::binary_search(set.begin(), set.end(), NodeOf(value))) values.insert(value);
      }
    }
    return values;
  }

  double BytesOf(const weir_region_value& value) const {
    return static_cast<double>(ElementsOf(value.shape).value_or(0)) * sdk::SizeOf(value.dtype);
  }
  /// A launch, and what it reads and writes.
  double PredictedNs(const std::vector<uint32_t>& set) const {
    double bytes = 0;
    for (const uint32_t value : Reads(set)) bytes += BytesOf(ValueOf(region_, value));
    for (const uint32_t n : set) {
      if (is_output_[n] || n == set.back()) bytes += BytesOf(region_.nodes[n]->result);
    }
    return launch_ns_ + bytes / bytes_per_ns_;
  }

  const weir_region& region_;
  std::vector<bool> taken_, is_output_;
  double launch_ns_ = kLaunchNs, bytes_per_ns_ = kBytesPerNs;
};

}  // namespace

std::vector<Claim> ClaimNodes(const weir_region& candidate, const weir_profile* profile) {
  if (candidate.loop != nullptr) return {};
  return Claimer(candidate, profile).Take();
}

}  // namespace weir::compiler_nvrtc
