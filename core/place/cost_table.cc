#include "core/place/cost_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "core/graph/frames.h"
#include "core/kernel/roofline.h"
#include "core/place/operands.h"

namespace weir::place {
namespace {

using graph::Endpoint;
using graph::StepGraph;
using graph::StepNode;
using kernel::OperandSpec;

// Figures assumed for an undeclared profile: modest, so that missing figures do not attract work.
constexpr double kAssumedLaunchNs = 10'000;  // of a device with its own memory
constexpr double kAssumedLinkNs = 10'000;
constexpr double kAssumedLinkBytesPerNs = 5;
constexpr double kLongestNs = 1e12;
constexpr int64_t kAssumedTrips = 10;
constexpr int64_t kMostRuns = 1'000'000;

bool Masked(uint64_t mask, size_t arg) { return arg < 64 && (mask >> arg & 1) != 0; }

/// Maps each flattened operand to its argument.
std::vector<size_t> ArgOfOperand(const std::vector<int>& counts) {
  std::vector<size_t> args;
  for (size_t arg = 0; arg < counts.size(); ++arg) args.insert(args.end(), PositionOf(counts[arg]), arg);
  return args;
}

/// Bytes of a value, with `unknown_dim` for unknown extents.
int64_t BytesOf(DType type, const PartialShape& shape, int64_t unknown_dim, bool* guessed) {
  double elements = 1;
  if (!shape.has_rank()) {
    elements = static_cast<double>(unknown_dim);
    *guessed = true;
  }
  for (int i = 0; i < shape.rank(); ++i) {
    *guessed = *guessed || shape.dim(i) < 0;
    elements *= static_cast<double>(shape.dim(i) < 0 ? unknown_dim : shape.dim(i));
  }
  const auto size = static_cast<double>(std::max<size_t>(SizeOf(BaseType(type)), 1));
  return static_cast<int64_t>(std::min(elements * size, 1e15));
}

/// At most kLongestNs. `own_memory`: the device is not the host.
double TimeNs(const weir_cost& cost, const weir_profile* profile, DType dtype, bool own_memory) {
  return std::min(kernel::RooflineNs(cost, profile, dtype, own_memory ? kAssumedLaunchNs : 0), kLongestNs);
}

/// The element type that selects the peak rate.
DType MainType(const Operands& operands) {
  if (!operands.outputs.empty()) return operands.outputs[0].dtype;
  return operands.inputs.empty() ? DType::kFloat : operands.inputs[0].dtype;
}

Provenance ProvenanceOf(const Operands& operands, const weir_profile* profile) {
  if (!operands.known || profile == nullptr) return Provenance::kGuess;
  return profile->provenance >= WEIR_PROVENANCE_MEASURED ? Provenance::kCalibrated : Provenance::kAnalytic;
}

/// A key that is equal for bitwise equal profiles.
std::string FiguresOf(const weir_profile* profile) {
  return profile == nullptr ? std::string() : std::string(reinterpret_cast<const char*>(profile), sizeof(*profile));
}

class Builder {
 public:
  Builder(const PlaceOptions& options, const StepGraph& step, const Constraints& constraints, Support& support)
      : options_(options), step_(step), constraints_(constraints), support_(support) {}

  CostTable Run() {
    const auto& all = support_.devices().all();
    used_.assign(all.size(), false);
    for (const Group& group : constraints_.groups) {
      for (const int d : group.candidates) used_[d] = true;
    }
    DescribeDevices();
    table_.task_of.assign(step_.nodes.size(), -1);
    value_of_.resize(step_.nodes.size());
    control_of_.assign(step_.nodes.size(), -1);
    for (const graph::NodeId i : step_.nodes.indices()) {
      if (step_.nodes[i].kind == StepNode::Kind::kOp) {
        AddTask(i);
      } else {
        for (size_t o = 0; o < step_.nodes[i].types.size(); ++o) value_of_[i].push_back(AddHostValue(i, o));
      }
    }
    for (const Endpoint& fetch : step_.fetches) {
      const std::vector<int>& values = value_of_[fetch.node];
      table_.problem->Fetch(values[fetch.index]);
    }
    table_.problem->Seal();
    for (const auto& fault : faults_) table_.faults.push_back(fault);
    return std::move(table_);
  }

 private:
  device::Device& DeviceAt(size_t d) const { return *support_.devices().all()[d]; }
  static bool IsHost(const device::Device& device) { return device.host_memory(); }

  void DescribeDevices() {
    const auto& all = support_.devices().all();
    std::vector<DeviceCost> devices(all.size());
    std::map<std::string, int> space_of_uid;
    std::map<std::tuple<std::string, std::string, bool, std::string>, int> classes;
    profiles_.assign(all.size(), nullptr);
    representative_.assign(all.size(), 0);
    for (size_t d = 0; d < all.size(); ++d) {
      const device::DeviceInfo& info = all[d]->info();
      fingerprints_.push_back(kernel::FingerprintOf(info));
      DeviceCost& cost = devices[d];
      cost.priority = TypePriority(*all[d]);
      if (used_[d]) {
        profiles_[d] = all[d]->profile();
        if (!all[d]->profile_fault().empty()) {
          Fault(*all[d], all[d]->profile_fault(), "it counts as unknown unless it makes the device slow");
        }
      }
      // A device without a class id, or with user-defined figures, is a class of its own.
      const std::string class_id = info.class_id.empty() ? all[d]->name() : info.class_id;
      const auto [known, fresh] = classes.emplace(
          std::tuple(info.platform, class_id, IsHost(*all[d]), FiguresOf(profiles_[d])), static_cast<int>(d));
      cost.device_class = known->second;
      representative_[d] = known->second;
      if (!IsHost(*all[d])) {
        const std::string place = info.uid.empty() ? all[d]->name() : info.plugin + "\n" + info.uid;
        cost.space = space_of_uid.emplace(place, static_cast<int>(space_of_uid.size()) + 1).first->second;
        if (info.memory_bytes != 0)
          cost.capacity_bytes = static_cast<int64_t>(std::min<uint64_t>(info.memory_bytes, kUnlimited));
      }
    }
    const int spaces = static_cast<int>(space_of_uid.size()) + 1;
    table_.problem.emplace(devices, spaces, Links(devices, spaces));
  }

  std::vector<LinkCost> Links(const std::vector<DeviceCost>& devices, int spaces) {
    LinkCost assumed;
    assumed.latency_ns = static_cast<int64_t>(kAssumedLinkNs);
    assumed.ns_per_byte = 1 / kAssumedLinkBytesPerNs;
    assumed.direct = false;
    std::vector<LinkCost> links(PositionOf(spaces * spaces), assumed);
    const auto set = [&](int from, int to, size_t d, uint32_t space, device::Device* peer, uint32_t peer_space) {
      LinkCost& link = links[from * spaces + to];
      link.direct = from == kHostSpace || to == kHostSpace;
      Result<weir_link> declared = DeviceAt(d).Link(space, peer, peer_space);
      if (!declared.ok()) {
        if (declared.status().code() != Code::kUnimplemented)
          Fault(DeviceAt(d), std::string(declared.status().message()));
        return;
      }
      link.direct = link.direct || (declared->flags & 1u) != 0;
      link.latency_ns = std::llround(std::min(kernel::KnownOr(declared->latency_ns, kAssumedLinkNs), kLongestNs));
      const double pageable = kernel::KnownOr(declared->bandwidth_pageable_bytes_per_ns, kAssumedLinkBytesPerNs);
      link.ns_per_byte = 1 / kernel::KnownOr(declared->bandwidth_pinned_bytes_per_ns, pageable);
    };
    for (size_t d = 0; d < devices.size(); ++d) {
      if (devices[d].space == kHostSpace || !used_[d]) continue;
      set(devices[d].space, kHostSpace, d, WEIR_SPACE_DEVICE, nullptr, WEIR_SPACE_HOST);
      set(kHostSpace, devices[d].space, d, WEIR_SPACE_HOST, &DeviceAt(d), WEIR_SPACE_DEVICE);
      for (size_t e = 0; e < devices.size(); ++e) {
        if (devices[e].space == kHostSpace || devices[e].space == devices[d].space || !used_[e]) continue;
        const device::DeviceInfo &one = DeviceAt(d).info(), &other = DeviceAt(e).info();
        if (one.stand_in != other.stand_in || one.elsewhere != other.elsewhere) continue;
        if (one.elsewhere.empty() && one.plugin != other.plugin) continue;
        set(devices[d].space, devices[e].space, d, WEIR_SPACE_DEVICE, &DeviceAt(e), WEIR_SPACE_DEVICE);
      }
    }
    ApplyConfig(devices, spaces, links);
    return links;
  }

  void ApplyConfig(const std::vector<DeviceCost>& devices, int spaces, std::vector<LinkCost>& links) {
    const auto name = [&](size_t d) {
      const device::DeviceName& full = DeviceAt(d).info().name;
      if (!DeviceAt(d).info().elsewhere.empty()) return full.ToString();
      return fmt::format("{}:{}", full.type.value_or(""), full.id.value_or(0));
    };
    const bool any =
        !options_.links.empty() || (options_.measured != nullptr && !options_.measured->transfers().empty());
    for (size_t a = 0; a < devices.size() && any; ++a) {
      for (size_t b = 0; b < devices.size(); ++b) {
        if (devices[a].space == devices[b].space) continue;
        LinkCost& measured = links[devices[a].space * spaces + devices[b].space];
        if (const auto fit =
                options_.measured == nullptr ? std::nullopt : options_.measured->FindLink(name(a) + "->" + name(b))) {
          measured.latency_ns = std::llround(std::min(fit->latency_ns, kLongestNs));
          if (fit->bytes_per_ns > 0) measured.ns_per_byte = 1 / fit->bytes_per_ns;
        }
        const auto said = options_.links.find(name(a) + "->" + name(b));
        if (said == options_.links.end() || devices[a].space == devices[b].space) continue;
        LinkCost& link = links[devices[a].space * spaces + devices[b].space];
        if (said->second.latency_ns > 0) link.latency_ns = std::llround(std::min(said->second.latency_ns, kLongestNs));
        if (said->second.bytes_per_ns > 0) link.ns_per_byte = 1 / said->second.bytes_per_ns;
      }
    }
  }

  void Fault(const device::Device& device, const std::string& what,
             std::string_view consequence = "it counts as unknown") {
    faults_.insert(fmt::format("{} ({}): {}; {}", device.name(), device.info().plugin, what, consequence));
  }

  int AddHostValue(size_t node, size_t output) {
    bool guessed = false;
    Value value;
    value.bytes =
        BytesOf(step_.nodes[node].types[output], step_.nodes[node].shapes[output], options_.unknown_dim, &guessed);
    value.copied_bytes = value.bytes;
    if (step_.nodes[node].kind == StepNode::Kind::kConstant) {
      value.constant = true;
      value.copied_bytes = static_cast<int64_t>(step_.nodes[node].values[output].bytes());
    }
    return table_.problem->AddValue(value);
  }

  void AddTask(graph::NodeId i) {
    const StepNode& node = step_.nodes[i];
    const GroupId group = constraints_.group_of[i];
    const auto& all = support_.devices().all();
    const Operands operands = OperandsOf(step_, node, options_.unknown_dim);
    std::vector<NodeCost> costs(all.size());
    const std::vector<int>& candidates = constraints_.groups[group].candidates;
    uint64_t host_inputs = 0;
    uint64_t host_outputs = 0;
    const std::string key = options_.measured != nullptr && operands.known
                                ? kernel::MeasuredKey(node.source->attrs(), operands.inputs)
                                : "";
    for (const int d : candidates) {
      const auto known = std::find_if(candidates.begin(), candidates.end(), [&](int other) {
        return other < d && representative_[other] == representative_[d];
      });
      costs[d] = known != candidates.end() && *known < d ? costs[*known] : Cost(node, operands, d);
      NodeCost& cost = costs[d];
      if (options_.measured != nullptr && (known == candidates.end() || *known >= d)) {
        Measured(node, key, d, cost);
      }
      if (cost.kernel == nullptr || IsHost(DeviceAt(d))) continue;
      host_inputs |= cost.kernel->record->host_inputs;
      host_outputs |= cost.kernel->record->host_outputs;
    }
    RestoreRefused(candidates, costs);
    // Multiplies the costs in a loop body by the assumed number of iterations.
    const int64_t runs = Runs(node.frame);
    for (NodeCost& cost : costs) {
      if (cost.ns != kImpossible) cost.ns = std::min(cost.ns, static_cast<int64_t>(kLongestNs) / runs) * runs;
    }
    std::vector<int64_t> times;
    for (const NodeCost& cost : costs) times.push_back(cost.ns);
    const int task = table_.problem->AddTask(times, group, ResidentBytes(node), Deferrable(node));
    deferrable_.resize(PositionOf(i) + 1, false);
    deferrable_[i] = Deferrable(node);
    table_.task_of[i] = task;
    table_.node_of.push_back(i);
    table_.costs.AddRow(costs);
    AddUses(node, host_inputs);
    AddValues(i, task, host_outputs);
  }

  /// Assumed runs of a node of the frame in a step.
  int64_t Runs(graph::FrameId frame) const {
    int64_t runs = 1;
    for (; frame > graph::kStepFrame && runs < kMostRuns; frame = step_.ParentOf(frame)) runs *= kAssumedTrips;
    return runs;
  }

  /// Assumed times that the outputs of a node are made in a step: those of Enter and Exit as often as the loop runs.
  int64_t TimesMade(const StepNode& node) const {
    if (node.frame <= graph::kStepFrame) return 1;
    const graph::Flow flow = graph::FlowOf(node);
    const bool edge = flow == graph::Flow::kEnter || flow == graph::Flow::kExit;
    return Runs(edge ? step_.ParentOf(node.frame) : node.frame);
  }

  /// True for a node without inputs, or one run by the core whose inputs all are such nodes (for example a variable
  /// read).
  bool Deferrable(const StepNode& node) const {
    if (!node.inputs.empty() && node.source->op().run_by != op::RunBy::kUniversal) return false;
    const auto defers = [this](graph::NodeId from) { return from >= 0 && deferrable_.Has(from) && deferrable_[from]; };
    return std::all_of(node.inputs.begin(), node.inputs.end(), [&](const Endpoint& e) { return defers(e.node); }) &&
           std::all_of(node.control_inputs.begin(), node.control_inputs.end(), defers);
  }

  void AddUses(const StepNode& node, uint64_t host_inputs) {
    const std::vector<size_t> args =
        host_inputs == 0 ? std::vector<size_t>() : ArgOfOperand(node.source->signature().input_counts);
    const bool on_host = support_.OnHostOnly(*node.source);
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      const Endpoint& input = node.inputs[k];
      if (input.node < 0 || value_of_[input.node].empty()) continue;  // back edge of a loop
      const bool masked = k < args.size() && Masked(host_inputs, args[k]);
      const int value = value_of_[input.node][input.index];
      table_.problem->AddUse({value, masked || on_host || !HasFixedSize(BaseType(step_.TypeOf(input)))});
    }
    for (const graph::NodeId from : node.control_inputs) {
      if (from < 0 || table_.task_of[from] < 0) continue;
      int& control = control_of_[from];
      if (control < 0) control = table_.problem->AddValue({.task = table_.task_of[from]});
      table_.problem->AddUse({control, false});
    }
  }

  void AddValues(graph::NodeId i, TaskId task, uint64_t host_outputs) {
    const StepNode& node = step_.nodes[i];
    const std::vector<size_t> args =
        host_outputs == 0 ? std::vector<size_t>() : ArgOfOperand(node.source->signature().output_counts);
    const bool aliases = node.source->op().run_by == op::RunBy::kUniversal;
    for (size_t o = 0; o < node.types.size(); ++o) {
      bool guessed = false;
      Value value;
      value.task = task;
      value.times = TimesMade(node);
      value.bytes = BytesOf(node.types[o], node.shapes[o], options_.unknown_dim, &guessed);
      // References stay on the device of their state; a reshaped tensor shares its input's memory.
      if (TiesToProducer(node.types[o])) value.bytes = 0;
      value.copied_bytes = value.bytes;
      value.held_bytes = aliases || TiesToProducer(node.types[o]) ? 0 : value.bytes;
      value.host = !HasFixedSize(BaseType(node.types[o])) || (o < args.size() && Masked(host_outputs, args[o]));
      value_of_[i].push_back(table_.problem->AddValue(value));
    }
  }

  /// Bytes of the state that a node creates.
  int64_t ResidentBytes(const StepNode& node) const {
    if (!node.inputs.empty() || node.types.size() != 1 || !TiesToProducer(node.types[0])) return 0;
    const op::AttrView attrs = node.source->attrs();
    const Result<DType> dtype = attrs.Type("dtype");
    const Result<PartialShape> shape = attrs.ShapeAttr("shape");
    bool guessed = false;
    return dtype.ok() && shape.ok() ? BytesOf(*dtype, *shape, options_.unknown_dim, &guessed) : 0;
  }

  NodeCost Cost(const StepNode& node, const Operands& operands, DeviceId d) {
    device::Device& device = DeviceAt(d);
    const weir_profile* profile = profiles_[d];
    NodeCost best;
    const bool of_kernels = node.source->op().run_by == op::RunBy::kKernel;
    const auto kernels = of_kernels ? support_.Kernels(*node.source, d) : std::span<const kernel::KernelEntry* const>();
    if (!of_kernels || (kernels.empty() && support_.OnHostOnly(*node.source))) {
      // Forwarding, copies and host code have no device preference.
      best.ns = 0;
      best.provenance = Provenance::kAnalytic;
      return best;
    }
    if (kernels.empty()) {
      const bool on_host = support_.kernels().FindHost(node.source->op().name) != nullptr;  // else it moves strings
      best.ns = on_host && !IsHost(device) ? RoundTripNs(operands) : 0;
      return best;
    }
    const Result<weir_device*> open = kernel::HandleToAsk(device);
    const weir_node asked{
        node.name(), node.source->attrs(), [&](int i) { return operands.inputs[i].value; }, nullptr, {}};
    for (const kernel::KernelEntry* entry : kernels) {
      if (operands.known && open.ok() &&
          !kernel::Supports(*entry, asked, operands.inputs, operands.outputs, *open).ok()) {
        if (best.kernel != nullptr) continue;
        const weir_cost declared = kernel::DeclaredWork(*entry->record, operands.inputs, operands.outputs);
        best.refused_ns = std::llround(TimeNs(declared, profile, MainType(operands), !IsHost(device)));
        best.provenance = ProvenanceOf(operands, profile);
        continue;
      }
      const double ns = Ask(*entry, asked, operands, open, profile, device);
      const int64_t rounded = std::llround(ns);
      if (best.kernel != nullptr && rounded >= best.ns) continue;
      best.ns = rounded;
      best.kernel = entry;
      best.provenance = ProvenanceOf(operands, profile);
    }
    return best;
  }

  /// Replaces a declared time by the measured one, or scales it as other shapes of the op suggest.
  void Measured(const StepNode& node, const std::string& key, DeviceId d, NodeCost& cost) {
    if (cost.ns == kImpossible || node.source->op().run_by != op::RunBy::kKernel) return;
    const std::string& device = fingerprints_[d];
    const kernel::MeasuredTime* const time = key.empty() ? nullptr : options_.measured->Find(device, key);
    const double gap = options_.measured->GapNs(device);
    if (time != nullptr) {
      cost.ns = std::llround(std::min(time->median_ns + gap, kLongestNs));
      cost.provenance = Provenance::kMeasured;
      cost.samples = time->n;
      return;
    }
    if (!key.empty() && options_.warn_of_outgrown) cost.outgrown = options_.measured->Outgrown(device, key);
    const auto [factor, fresh] = factors_.try_emplace({d, node.source->op().name}, 0);
    if (fresh) factor->second = options_.measured->Factor(device, node.source->op().name);
    if (factor->second <= 0) return;
    cost.ns = std::llround(std::min(static_cast<double>(cost.ns) * factor->second + gap, kLongestNs));
    if (cost.provenance == Provenance::kAnalytic) cost.provenance = Provenance::kCalibrated;
  }

  /// Time of transfers to the host and back.
  static int64_t RoundTripNs(const Operands& operands) {
    double bytes = 0;
    for (const auto* specs : {&operands.inputs, &operands.outputs}) {
      for (const OperandSpec& operand : *specs) {
        bytes += static_cast<double>(operand.shape.elements()) * static_cast<double>(SizeOf(operand.dtype));
      }
    }
    return std::llround(2 * kAssumedLinkNs + bytes / kAssumedLinkBytesPerNs);
  }

  double Ask(const kernel::KernelEntry& entry, const weir_node& node, const Operands& operands,
             const Result<weir_device*>& open, const weir_profile* profile, const device::Device& device) {
    const DType dtype = MainType(operands);
    if (open.ok() && WEIR_HAS(entry.record, estimate)) {
      const Result<weir_cost> cost = kernel::Estimate(entry, node, operands.inputs, operands.outputs, *open, profile);
      if (cost.ok()) return TimeNs(*cost, profile, dtype, !IsHost(device));
      if (cost.status().code() != Code::kUnimplemented) Fault(device, std::string(cost.status().message()));
    }
    const weir_cost declared = kernel::DeclaredWork(*entry.record, operands.inputs, operands.outputs);
    return TimeNs(declared, profile, dtype, !IsHost(device));
  }

  /// A group rejected by all kernels stays possible everywhere, so that the rejection is reported.
  static void RestoreRefused(const std::vector<int>& candidates, std::vector<NodeCost>& costs) {
    const bool some =
        std::any_of(candidates.begin(), candidates.end(), [&](int d) { return costs[d].ns != kImpossible; });
    if (some) return;
    for (const int d : candidates) costs[d].ns = costs[d].refused_ns;
  }

  const PlaceOptions& options_;
  const StepGraph& step_;
  const Constraints& constraints_;
  Support& support_;
  CostTable table_;
  IndexedVector<DeviceId, bool> used_;  // a candidate of some group
  IndexedVector<DeviceId, const weir_profile*> profiles_;
  IndexedVector<DeviceId, DeviceId> representative_;  // the first of its class
  IndexedVector<DeviceId, std::string> fingerprints_;
  std::map<std::pair<DeviceId, std::string>, double> factors_;   // of measured times, by device and op
  IndexedVector<graph::NodeId, std::vector<ValueId>> value_of_;  // by output
  IndexedVector<graph::NodeId, ValueId> control_of_;
  IndexedVector<graph::NodeId, bool> deferrable_;  // of the nodes up to the last task
  std::set<std::string> faults_;
};

}  // namespace

CostTable BuildCostTable(const PlaceOptions& options, const StepGraph& step, const Constraints& constraints,
                         Support& support) {
  return Builder(options, step, constraints, support).Run();
}

int TypePriority(const device::Device& device) {
  constexpr int kRemote = 1000;  // after all of this process
  const std::string& kind = device.info().kind;
  return (kind == "GPU" ? 210 : kind == "CPU" ? 70 : 200) - (device.info().elsewhere.empty() ? 0 : kRemote);
}

}  // namespace weir::place
