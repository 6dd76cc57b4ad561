#include "plugins/compiler_llvm/claim.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "plugins/compiler_llvm/plan.h"
#include "sdk/cpp/status.h"
#include "sdk/cpp/types.h"

namespace weir::compiler_llvm {
namespace {

constexpr uint32_t kMostCandidates = 4096;  // nodes that are looked at
constexpr size_t kMostMembers = 128;        // of a set

// Declared, not measured: results of `claim` must not depend on the moment. An addition of 16 floats takes half a
// cycle in registers of 512 bits.
constexpr double kNsPerAdd = 0.012;     // of a float
constexpr double kNsPerByte = 0.015;    // in the caches, if the profile does not tell
constexpr double kNsPerFarByte = 0.06;  // beyond them
constexpr double kFarBytes = 16 << 20;
constexpr double kNsPerUnit = 6;  // a row
constexpr double kNsPerCall = 15;
constexpr double kCompileNs = 2.5e6, kCompileNsPerNode = 3e5;
constexpr double kScalarNs = 0.4;     // a scalar's addition
constexpr double kIterationNs = 0.6;  // of a loop, beside its nodes
constexpr double kCompileNsPerScalar = 3e4;

class Claimer {
 public:
  Claimer(const weir_region& candidate, bool wide_vectors, const weir_profile* profile)
      : whole_(candidate), wide_(wide_vectors), profile_(profile) {}

  std::vector<Claim> Run() {
    if (whole_.node_count > kMostCandidates || whole_.nodes == nullptr) return {};
    ReadNodes();
    FindUses();
    group_.assign(members_.size(), kNone);
    for (uint32_t n = 0; n < members_.size(); ++n) {
      if (members_[n].rule != nullptr) Join(n, false);
    }
    std::vector<std::vector<uint32_t>> sets = groups_;
    std::vector<Claim> claims;
    for (std::vector<uint32_t>& set : sets) Finish(set, &claims);
    return claims;
  }

 private:
  static constexpr uint32_t kNone = ~uint32_t{0};

  struct Member {
    const weir_region_node* node = nullptr;
    const OpRule* rule = nullptr;  // null: the node stays a kernel
  };

  const weir_region_value* ValueAt(uint32_t value) const {
    return value < whole_.input_count ? whole_.inputs[value] : &whole_.nodes[value - whole_.input_count]->result;
  }

  void ReadNodes() {
    for (uint32_t n = 0; n < whole_.node_count; ++n) {
      Member member{whole_.nodes[n], nullptr};
      const OpRule* rule = FindOp(sdk::ToView(member.node->op));
      bool fits = rule != nullptr && IsPlainValue(member.node->result) && member.node->operand_count <= kMaxAccesses;
      std::vector<const weir_region_value*> operands;
      for (uint32_t k = 0; fits && k < member.node->operand_count; ++k) {
        const uint32_t operand = member.node->operands[k];
        fits = operand < whole_.input_count + n && IsPlainValue(*ValueAt(operand));
        if (fits) operands.push_back(ValueAt(operand));
      }
      std::string why;
      if (fits && FitsRule(*rule, *member.node, operands.data(), &why)) member.rule = rule;
      members_.push_back(member);
    }
  }

  void FindUses() {
    users_.resize(members_.size());
    is_output_.assign(members_.size(), false);
    for (uint32_t n = 0; n < members_.size(); ++n) {
      const weir_region_node& node = *members_[n].node;
      for (uint32_t k = 0; k < node.operand_count; ++k) {
        if (node.operands[k] >= whole_.input_count && node.operands[k] - whole_.input_count < n) {
          users_[node.operands[k] - whole_.input_count].push_back(n);
        }
      }
    }
    for (uint32_t i = 0; i < whole_.output_count; ++i) {
      const uint32_t value = whole_.outputs[i];
      if (value >= whole_.input_count && value - whole_.input_count < members_.size()) {
        is_output_[value - whole_.input_count] = true;
      }
    }
  }

  /// Joins node n with the sets of its operands where the result is a nest; else it begins a set.
  void Join(uint32_t n, bool strict) {
    std::vector<uint32_t> neighbours;
    const weir_region_node& node = *members_[n].node;
    for (uint32_t k = 0; k < node.operand_count; ++k) {
      if (node.operands[k] < whole_.input_count) continue;
      const uint32_t group = group_[node.operands[k] - whole_.input_count];
      if (group != kNone && std::find(neighbours.begin(), neighbours.end(), group) == neighbours.end()) {
        neighbours.push_back(group);
      }
    }
    std::stable_sort(neighbours.begin(), neighbours.end(),
                     [&](uint32_t a, uint32_t b) { return groups_[a].size() > groups_[b].size(); });
    std::vector<uint32_t> set = {n};
    std::vector<uint32_t> joined;
    for (const uint32_t group : neighbours) {
      std::vector<uint32_t> more = set;
      more.insert(more.end(), groups_[group].begin(), groups_[group].end());
      std::sort(more.begin(), more.end());
      if (more.size() > kMostMembers || !RunsAtItsEnd(more)) continue;
      std::string why;
      const Graph graph = GraphOf(more);
      if (graph.inputs.size() > kMaxAccesses || graph.outputs.size() > kMaxAccesses) continue;
      if (!PlanNest(graph, strict ? Outputs::kChecked : Outputs::kAny, &why)) continue;
      set = std::move(more);
      joined.push_back(group);
    }
    for (const uint32_t group : joined) groups_[group].clear();
    for (const uint32_t member : set) group_[member] = static_cast<uint32_t>(groups_.size());
    groups_.push_back(std::move(set));
  }

  /// No other node needs a value of the set before the set's last node, in whose place the region can run then. Such a
  /// set is convex. `set` is ascending.
  bool RunsAtItsEnd(const std::vector<uint32_t>& set) const {
    return std::all_of(set.begin(), set.end(), [&](uint32_t member) {
      return std::all_of(users_[member].begin(), users_[member].end(), [&](uint32_t user) {
        return user > set.back() || std::binary_search(set.begin(), set.end(), user);
      });
    });
  }

  Graph GraphOf(const std::vector<uint32_t>& set) const {
    Graph graph;
    std::map<uint32_t, uint32_t> numbers;  // of the candidate's values
    const auto in_set = [&](uint32_t n) { return std::binary_search(set.begin(), set.end(), n); };
    for (const uint32_t n : set) {
      const weir_region_node& node = *members_[n].node;
      for (uint32_t k = 0; k < node.operand_count; ++k) {
        const uint32_t operand = node.operands[k];
        if (operand >= whole_.input_count && in_set(operand - whole_.input_count)) continue;
        if (numbers.emplace(operand, static_cast<uint32_t>(graph.inputs.size())).second) {
          graph.inputs.push_back(ValueAt(operand));
        }
      }
    }
    for (const uint32_t n : set) {
      Graph::Member member{members_[n].node, members_[n].rule, {}};
      for (uint32_t k = 0; k < member.node->operand_count; ++k) {
        member.operands.push_back(numbers.at(member.node->operands[k]));
      }
      const auto value = static_cast<uint32_t>(graph.inputs.size() + graph.nodes.size());
      numbers.emplace(whole_.input_count + n, value);
      graph.nodes.push_back(std::move(member));
      const bool used = std::any_of(users_[n].begin(), users_[n].end(), [&](uint32_t user) { return !in_set(user); });
      if (is_output_[n] || used) graph.outputs.push_back(value);
    }
    return graph;
  }

  /// Emits the set, or the sets that are left of it when every join is checked with its outputs.
  void Finish(const std::vector<uint32_t>& set, std::vector<Claim>* claims) {
    if (set.empty()) return;
    std::vector<uint32_t> left = set;
    const std::vector<uint32_t> heads = TakeHeads(&left);
    (void)Emit(heads, claims);
    if (Emit(left, claims)) return;
    groups_.clear();
    std::fill(group_.begin(), group_.end(), kNone);
    for (const uint32_t n : left) Join(n, true);
    const std::vector<std::vector<uint32_t>> parts = groups_;
    for (const std::vector<uint32_t>& part : parts) (void)Emit(part, claims);
  }

  /// A nest computes values that vary along its columns only once per row: expensive ones, and what they are made of,
  /// are taken out of the set.
  std::vector<uint32_t> TakeHeads(std::vector<uint32_t>* set) const {
    std::string why;
    const Graph graph = GraphOf(*set);
    const std::optional<Program> program = PlanNest(graph, Outputs::kAny, &why);
    if (!program || VisitsOf(*program) < 4 * program->columns) return {};
    const size_t inputs = graph.inputs.size();
    std::vector<bool> leaves(set->size(), false);
    for (size_t i = set->size(); i-- > 0;) {
      const Place& place = program->nodes[i].place;
      if (place.column && !place.row && graph.nodes[i].rule->cost >= 4) leaves[i] = true;
      if (!leaves[i]) continue;
      if (place.row || place.stage > 0) return {};
      for (const uint32_t operand : graph.nodes[i].operands) {
        if (operand >= inputs) leaves[operand - inputs] = true;
      }
    }
    std::vector<uint32_t> heads, left;
    for (size_t i = 0; i < set->size(); ++i) (leaves[i] ? heads : left).push_back((*set)[i]);
    *set = std::move(left);
    return heads;
  }

  bool Emit(const std::vector<uint32_t>& set, std::vector<Claim>* claims) const {
    if (set.empty()) return true;
    const Graph graph = GraphOf(set);
    if (graph.inputs.size() > kMaxAccesses || graph.outputs.size() > kMaxAccesses || !RunsAtItsEnd(set)) return false;
    Claim claim;
    const std::optional<Program> program = PlanNest(graph, Outputs::kChecked, &claim.reason);
    if (!program) return false;
    claim.nodes = set;
    claim.scratch_bytes = program->scratch_bytes;
    claim.compile_ns = kCompileNs + kCompileNsPerNode * static_cast<double>(set.size());
    claim.predicted_ns = Predict(graph, *program);
    claim.reason = std::to_string(set.size()) + " ops in a loop over " + std::to_string(program->units) + " x " +
                   std::to_string(program->chunk) + " elements";
    claims->push_back(std::move(claim));
    return true;
  }

  double Predict(const Graph& graph, const Program& program) const {
    const auto visits = static_cast<double>(VisitsOf(program));
    const double rows = visits / static_cast<double>(program.columns);
    double work = 0;
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
      const double width = std::max(1.0, sdk::SizeOf(program.nodes[i].dtype) / 4.0);
      const Place& place = program.nodes[i].place;
      work += graph.nodes[i].rule->cost *
              (place.column ? visits * kNsPerAdd * width * (wide_ ? 1 : 1.8) : (place.row ? rows : 1) * kScalarNs);
    }
    double bytes = 0;
    const auto add = [&](uint32_t value) {
      double n = sdk::SizeOf(graph.Value(value).dtype);
      for (uint32_t d = 0; d < graph.Value(value).shape.rank; ++d) {
        n *= static_cast<double>(graph.Value(value).shape.dims[d]);
      }
      bytes += n;
    };
    for (uint32_t i = 0; i < graph.inputs.size(); ++i) add(i);
    for (const uint32_t output : graph.outputs) add(output);
    return kNsPerCall + kNsPerUnit * static_cast<double>(program.units) + std::max(work, NsToMove(bytes));
  }

  /// With the profile's rates, so that the prediction compares with the declared times of kernels.
  double NsToMove(double bytes) const {
    const auto known = [](double figure, double otherwise) {
      return std::isfinite(figure) && figure > 0 ? figure : otherwise;
    };
    if (profile_ == nullptr) return bytes * (bytes > kFarBytes ? kNsPerFarByte : kNsPerByte);
    const bool far = bytes > known(profile_->cache_bytes, kFarBytes);
    const double rate = far ? known(profile_->bandwidth_bytes_per_ns, 1 / kNsPerFarByte)
                            : known(profile_->cache_bandwidth_bytes_per_ns, 1 / kNsPerByte);
    return bytes / (rate * known(profile_->memory_efficiency[WEIR_CLASS_ELEMENTWISE], 1));
  }

  const weir_region& whole_;
  const bool wide_;
  const weir_profile* const profile_;
  std::vector<Member> members_;
  std::vector<std::vector<uint32_t>> users_, groups_;
  std::vector<uint32_t> group_;
  std::vector<bool> is_output_;
};

}  // namespace

std::optional<Claim> ClaimLoop(const weir_region& candidate, bool wide_vectors) {
  Claim claim;
  const std::optional<Graph> graph = ReadRegion(candidate, &claim.reason);
  if (!graph || !graph->loop) return std::nullopt;
  const std::optional<Program> program = PlanLoop(*graph, &claim.reason);
  if (!program) return std::nullopt;
  // Each vector of columns runs all iterations, with the scalars.
  const int64_t vectors = (program->columns + program->lanes - 1) / program->lanes;
  double scalars = kIterationNs, columns = 0;
  for (uint32_t n = 0; n < candidate.node_count; ++n) {
    claim.nodes.push_back(n);
    const double cost = graph->nodes[n].rule->cost, width = std::max(1.0, sdk::SizeOf(program->nodes[n].dtype) / 4.0);
    if (program->nodes[n].place.column) {
      columns += cost * width * kNsPerAdd * (wide_vectors ? 1 : 1.8) * program->lanes;
    } else {
      scalars += cost * kScalarNs;
    }
  }
  claim.predicted_ns = static_cast<double>(vectors) * std::max(scalars, columns);
  claim.compile_ns = kCompileNs + kCompileNsPerScalar * candidate.node_count;
  claim.reason = std::to_string(candidate.node_count) + " ops of an iteration in registers";
  return claim;
}

std::vector<Claim> ClaimNodes(const weir_region& candidate, bool wide_vectors, const weir_profile* profile) {
  return Claimer(candidate, wide_vectors, profile).Run();
}

}  // namespace weir::compiler_llvm
