#include "core/fuse/compiled_internal.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/fuse/candidates_internal.h"

namespace weir::fuse {
namespace {

using compile::Proposal;
using graph::Endpoint;
using graph::NodeId;
using graph::StepGraph;
using graph::StepNode;

constexpr double kRuns = 1000, kIterations = 100;  // of a plan, and of a loop, that are expected
constexpr double kUnknownCompileNs = 20e6, kLeastCompileNs = 100e3;
constexpr double kInstructionNs = 1;      // of the plan, for each op, beside the kernel's time and launch
constexpr double kIterationNs = 12;       // of the plan, for the condition and the jump of a loop
constexpr double kVariableNs = 4;         // of the plan, for the next value of a loop's variable
constexpr double kLoopCallNs = 250e3;     // of a loop between two questions whether the step goes on
constexpr double kTileNs = 250e3;         // work that is worth a thread
constexpr double kTiledNs = 2 * kTileNs;  // a call that is cut

std::string Duration(double ns) {
  return ns < 1e3   ? fmt::format("{:.0f} ns", ns)
         : ns < 1e6 ? fmt::format("{:.1f} us", ns / 1e3)
                    : fmt::format("{:.1f} ms", ns / 1e6);
}

class RegionChooser {
 public:
  RegionChooser(const Scene& scene, std::vector<Replacement>& chosen)
      : scene_(scene), options_(scene.options.compile), chosen_(chosen) {}

  void Choose(const Candidate& candidate) {
    if (!options_.always && TotalNs(candidate) * RunsOf(candidate.nodes.back()) < kLeastCompileNs) {
      return Tell(candidate, {}, "not compiled: too little work to repay any compilation");
    }
    device::Device& device = *scene_.options.devices->all()[PositionOf(candidate.device)];
    const compile::Target target = options_.compilers->TargetFor(device.info().platform, device.profile());
    std::vector<std::string> notes;
    std::vector<Proposal> proposals = Proposals(candidate, target, notes);
    std::ranges::stable_sort(
        proposals, [&](const Proposal& a, const Proposal& b) { return GainOf(candidate, a) > GainOf(candidate, b); });
    std::vector<bool> taken(candidate.nodes.size(), false);
    if (proposals.empty()) Tell(candidate, {}, "not compiled: no compiler wants it");
    for (const Proposal& proposal : proposals) {
      const auto is_taken = [&](uint32_t node) { return taken[node]; };
      if (std::ranges::any_of(proposal.nodes, is_taken)) continue;
      if (Take(candidate, proposal, target, notes)) {
        for (const uint32_t node : proposal.nodes) taken[node] = true;
      }
    }
    if (options_.notes != nullptr) options_.notes->insert(options_.notes->end(), notes.begin(), notes.end());
  }

 private:
  /// Equal regions are claimed once.
  const std::vector<Proposal>& Proposals(const Candidate& candidate, const compile::Target& target,
                                         std::vector<std::string>& notes) {
    const std::string key = target.platform + "\n" + compile::ToString(candidate.region);
    const auto known = claimed_.find(key);
    if (known != claimed_.end()) return known->second;
    return claimed_.emplace(key, options_.compilers->Claim(target, candidate.region, options_.limits.time, notes))
        .first->second;
  }

  static double TotalNs(const Candidate& candidate) {
    std::vector<uint32_t> all(candidate.nodes.size());
    std::iota(all.begin(), all.end(), 0u);
    return compile::KernelNanoseconds(candidate.region, all) + kInstructionNs * static_cast<double>(all.size());
  }
  /// Of a loop, an iteration.
  static double InterpretedNs(const Candidate& candidate, const Proposal& proposal) {
    const double ns = compile::KernelNanoseconds(candidate.region, proposal.nodes) +
                      kInstructionNs * static_cast<double>(proposal.nodes.size());
    if (!candidate.region.loop) return ns;
    return ns + kIterationNs + kVariableNs * static_cast<double>(candidate.region.loop->next.size());
  }
  static double GainOf(const Candidate& candidate, const Proposal& proposal) {
    return InterpretedNs(candidate, proposal) - kInstructionNs - proposal.predicted_ns;
  }

  double RunsOf(NodeId node) const {
    double runs = kRuns;
    for (graph::FrameId frame = scene_.step.node(node).frame; frame > graph::kStepFrame;
         frame = scene_.step.ParentOf(frame))
      runs *= kIterations;
    return runs;
  }

  /// "region y: Mul m, Tanh y: WHAT".
  void Tell(const Candidate& candidate, const std::vector<uint32_t>& nodes, std::string_view what) const {
    if (options_.report == nullptr) return;
    std::string names;
    NodeId last = candidate.nodes.back();
    const auto add = [&](size_t node) {
      last = candidate.nodes[node];
      names += fmt::format("{}{} {}", names.empty() ? "" : ", ", candidate.region.nodes[node].op,
                           scene_.step.node(last).name());
    };
    for (const uint32_t node : nodes) add(node);
    for (size_t node = 0; nodes.empty() && node < candidate.nodes.size(); ++node) add(node);
    options_.report->push_back(fmt::format("{} {} ({}): {}", candidate.region.loop ? "loop" : "region",
                                           scene_.step.node(last).name(), names, what));
  }

  /// The first user of a value inside the candidate that would come before the region, which runs in the place of its
  /// last node; -1 if there is none.
  static int UserBefore(const Candidate& candidate, const std::vector<uint32_t>& nodes) {
    std::vector<bool> member(candidate.nodes.size(), false);
    for (const uint32_t node : nodes) member[node] = true;
    for (uint32_t user = 0; user < nodes.back(); ++user) {
      if (member[user]) continue;
      for (const uint32_t operand : candidate.region.nodes[user].operands) {
        const auto inputs = static_cast<uint32_t>(candidate.region.inputs.size());
        if (operand >= inputs && member[operand - inputs]) return static_cast<int>(user);
      }
    }
    return -1;
  }

  /// Why the proposal is not compiled; empty if it is worth trying.
  std::string Objection(const Candidate& candidate, const Proposal& proposal) const {
    if (proposal.nodes.size() < 2 && !options_.always) return "one op alone has its kernel";
    if (!compile::IsConvex(candidate.region, proposal.nodes)) return "the set is not convex";
    if (const int user = UserBefore(candidate, proposal.nodes); user >= 0) {
      return fmt::format("'{}' needs a value of it before its last op",
                         scene_.step.node(candidate.nodes[PositionOf(user)]).name());
    }
    if (options_.always) return {};
    const double gain = GainOf(candidate, proposal), runs = RunsOf(candidate.nodes[proposal.nodes.back()]);
    const double cost = std::isfinite(proposal.compile_ns) ? std::max(proposal.compile_ns, 0.0) : kUnknownCompileNs;
    if (gain <= 0) {
      return fmt::format("it is expected to take {} instead of {}", Duration(proposal.predicted_ns),
                         Duration(InterpretedNs(candidate, proposal)));
    }
    if (gain * runs <= cost) {
      return fmt::format("a gain of {} in each of {:.0f} runs does not repay {}", Duration(gain), runs, Duration(cost));
    }
    return {};
  }

  /// What is compiled: of a loop all, with as many iterations in a call as take kLoopCallNs.
  static compile::Part PartOf(const Candidate& candidate, const Proposal& proposal) {
    if (!candidate.region.loop) return compile::Choose(candidate.region, proposal.nodes);
    compile::Part part{candidate.region, std::vector<uint32_t>(candidate.region.inputs.size())};
    std::iota(part.inputs.begin(), part.inputs.end(), 0u);
    const double iterations = kLoopCallNs / std::max(proposal.predicted_ns, 1.0);
    part.region.loop->most_iterations = static_cast<uint64_t>(std::max(iterations, 16.0));
    return part;
  }

  bool Take(const Candidate& candidate, const Proposal& proposal, const compile::Target& target,
            std::vector<std::string>& notes) {
    const std::string& name = options_.compilers->name(proposal.compiler);
    const std::string because = proposal.reason.empty() ? "" : "; " + proposal.reason;
    if (const std::string why = Objection(candidate, proposal); !why.empty()) {
      Tell(candidate, proposal.nodes, fmt::format("not compiled by {}: {}{}", name, why, because));
      return false;
    }
    const compile::Part part = PartOf(candidate, proposal);
    compile::CompileLimits limits = options_.limits;
    limits.max_tiles = candidate.region.loop || proposal.predicted_ns < kTiledNs
                           ? 1
                           : std::min(limits.max_tiles, static_cast<uint64_t>(proposal.predicted_ns / kTileNs));
    limits.max_tiles = std::max<uint64_t>(limits.max_tiles, 1);
    Result<compile::Compilers::Compiled> compiled =
        options_.compilers->Compile(proposal.compiler, target, part.region, limits, notes);
    if (!compiled.ok()) {
      Tell(candidate, proposal.nodes, fmt::format("not compiled by {}: {}", name, compiled.status().message()));
      return false;
    }
    Tell(candidate, proposal.nodes,
         fmt::format("compiled by {}: {} instead of {}{}", name, Duration(proposal.predicted_ns),
                     Duration(InterpretedNs(candidate, proposal)), because));
    Add(candidate, proposal, part, name, std::move(*compiled));
    return true;
  }

  void Add(const Candidate& candidate, const Proposal& proposal, const compile::Part& part, const std::string& compiler,
           compile::Compilers::Compiled compiled) {
    const auto inputs = static_cast<uint32_t>(candidate.region.inputs.size());
    Replacement made;
    for (const uint32_t node : proposal.nodes) made.nodes.push_back(candidate.nodes[node]);
    for (const uint32_t value : part.inputs) {
      made.inputs.push_back(value < inputs ? candidate.inputs[value] : Endpoint{candidate.nodes[value - inputs], 0});
    }
    std::vector<DType> in;
    for (const compile::RegionValue& input : part.region.inputs) in.push_back(input.dtype);
    for (const uint32_t output : part.region.outputs) {
      if (!part.region.loop) made.outputs.push_back(made.nodes[output - part.region.inputs.size()]);
      made.types.push_back(part.region.value(output).dtype);
      made.shapes.emplace_back(part.region.value(output).shape);
    }
    std::vector<std::string> ops;
    std::vector<int64_t> operands;
    for (const compile::RegionOp& node : part.region.nodes) {
      ops.push_back(node.op);
      operands.insert(operands.end(), node.operands.begin(), node.operands.end());
    }
    made.attrs = {{"Tin", std::move(in)},
                  {"Tout", made.types},
                  {"shapes", made.shapes},
                  {"ops", std::move(ops)},
                  {"operands", std::move(operands)},
                  {"compiler", compiler},
                  {"executable", compiled.key}};
    if (const std::optional<compile::RegionLoop>& loop = part.region.loop) {
      std::vector<int64_t> values = {loop->condition};
      values.insert(values.end(), loop->next.begin(), loop->next.end());
      made.attrs.emplace_back("loop", std::move(values));
    }
    options_.executables->emplace(std::move(compiled.key), std::move(compiled.executable));
    chosen_.push_back(std::move(made));
  }

  const Scene& scene_;
  const CompileOptions& options_;
  std::vector<Replacement>& chosen_;
  std::map<std::string, std::vector<Proposal>> claimed_;  // by platform and region
};

/// The last node becomes the region.
Status ReplaceRegion(const Replacement& found, const op::OpDef& result, StepGraph& step, graph::Rewriter& rewriter) {
  const std::span<const NodeId> others = std::span(found.nodes).first(found.nodes.size() - 1);
  WEIR_TRY(rewriter.StandFor(found.nodes.back(), others, result, found.attrs));
  StepNode& root = step.nodes[found.nodes.back()];
  root.inputs = found.inputs;
  root.types = found.types;
  root.shapes = found.shapes;
  return Status();
}

}  // namespace

std::optional<Replacement> CompileLoop(const Scene& scene, const Candidate& loop) {
  std::vector<Replacement> chosen;
  RegionChooser(scene, chosen).Choose(loop);
  return chosen.empty() ? std::nullopt : std::optional<Replacement>(std::move(chosen[0]));
}

Status ReplaceCompiled(const Scene& scene, const op::OpDef& result, StepGraph& step, graph::Rewriter& rewriter) {
  std::vector<Replacement> chosen;
  RegionChooser chooser(scene, chosen);
  for (const Candidate& candidate : CandidateFinder(scene).Find()) chooser.Choose(candidate);
  if (chosen.empty()) return Status();
  std::ranges::sort(chosen, {}, [](const Replacement& replacement) { return replacement.nodes.back(); });
  std::vector<NodeId> erased;
  for (const Replacement& replacement : chosen) {
    erased.insert(erased.end(), replacement.nodes.begin(), replacement.nodes.end() - 1);
  }
  std::ranges::sort(erased);  // an edge past several of them is followed from the first one on
  for (const NodeId id : erased) rewriter.Erase(id);
  std::map<NodeId, Endpoint> moved;  // outputs of replaced nodes
  for (const Replacement& replacement : chosen) {
    WEIR_TRY(ReplaceRegion(replacement, result, step, rewriter));
    for (size_t i = 0; i < replacement.outputs.size(); ++i) {
      moved[replacement.outputs[i]] = {replacement.nodes.back(), static_cast<int>(i)};
    }
  }
  const auto redirect = [&](Endpoint& value) {
    const auto to = moved.find(value.node);
    if (to != moved.end() && value.index == 0) value = to->second;
  };
  for (StepNode& node : step.nodes) {
    for (Endpoint& input : node.inputs) redirect(input);
  }
  for (Endpoint& fetch : step.fetches) redirect(fetch);
  return Status();
}

}  // namespace weir::fuse
