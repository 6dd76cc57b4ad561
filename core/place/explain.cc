#include "core/place/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "core/place/outgrown.h"

namespace weir::place {
namespace {

using graph::StepNode;

/// "GPU:0"
std::string ShortName(const device::Device& device) {
  const device::DeviceName& name = device.info().name;
  const std::string own = fmt::format("{}:{}", name.type.value_or("?"), name.id.value_or(0));
  if (device.info().elsewhere.empty()) return own;
  return fmt::format("/job:{}/task:{}/{}", name.job.value_or(""), name.task.value_or(0), own);
}

/// "GPU:0" for a device in the process of `first`, else with its task: "/job:ps/replica:0/task:1/GPU:0".
std::string NameBeside(const std::string& device, const std::string& first) {
  constexpr std::string_view kMark = "device:";
  const size_t mark = device.rfind(kMark);
  if (mark == std::string::npos) return device;
  const std::string own = device.substr(mark + kMark.size());
  return device.compare(0, mark, first, 0, mark) == 0 ? own : device.substr(0, mark) + own;
}

/// "940 ns", "31 us", "8.4 ms".
std::string TimeText(int64_t ns) {
  if (ns < 0) return "-";
  if (ns < 1000) return fmt::format("{} ns", ns);
  const double us = static_cast<double>(ns) / 1e3;
  if (us < 1000) return fmt::format("{:.3g} us", us);
  if (us < 1e6) return fmt::format("{:.3g} ms", us / 1e3);
  return fmt::format("{:.4g} s", us / 1e6);
}

std::string BytesText(int64_t bytes) {
  constexpr std::array<const char*, 4> kUnits = {"B", "KB", "MB", "GB"};
  auto size = static_cast<double>(bytes);
  size_t unit = 0;
  while (size >= 1000 && unit + 1 < kUnits.size()) {
    size /= 1000;
    ++unit;
  }
  return fmt::format("{:.3g} {}", size, kUnits[unit]);
}

uint64_t Fnv(uint64_t hash, std::string_view text) {
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return (hash ^ 0xff) * 0x100000001b3;
}

class Explainer {
 public:
  explicit Explainer(const Findings& f) : f_(f) {}

  Explanation Run() {
    out_.warnings = f_.constraints.notes;
    if (f_.table != nullptr) {
      for (const std::string& fault : f_.table->faults) out_.warnings.push_back("plugin fault: " + fault);
    }
    out_.hash = 0xcbf29ce484222325;
    out_.placed.reserve(f_.step.nodes.size());
    const bool all = f_.options.explain == PlaceOptions::Explain::kAll;
    Counted* last = nullptr;  // neighbours in a graph are often alike
    for (size_t i = 0; i < f_.step.nodes.size(); ++i) {
      if (f_.constraints.group_of[i] < 0) continue;
      const std::string_view name = f_.step.nodes[i].name(), device = DeviceAt(DeviceOf(i)).name();
      const Alike alike{DeviceOf(i), f_.step.nodes[i].source->op().name, ReasonOf(i)};
      if (last == nullptr || last->first != alike) last = &*reasons_.try_emplace(alike, 0).first;
      ++last->second;
      out_.placed.push_back({std::string(name), std::get<1>(alike), device, std::get<2>(alike)});
      if (!all) continue;
      out_.hash = Fnv(Fnv(out_.hash, name), device);
      out_.nodes.push_back(Report(i));
    }
    for (const auto& [alike, count] : reasons_) count_of_[std::get<0>(alike)] += count;
    WarnOfLostRequests();
    WarnOfSplitLoops();
    if (std::string larger = LargerThanMeasured(f_); !larger.empty()) out_.warnings.push_back(std::move(larger));
    if (f_.choice != nullptr) {
      const Simulation& simulation = f_.choice->plan.simulation;
      out_.tried = f_.choice->tried;
      out_.winner = f_.choice->plan.name;
      out_.makespan_ns = simulation.makespan_ns;
      out_.bound_ns = f_.choice->bound_ns;
      out_.best_single_ns = f_.choice->best_single_ns;
      out_.transfers = simulation.transfers;
      out_.transferred_bytes = simulation.transferred_bytes;
      if (f_.options.explain == PlaceOptions::Explain::kAll) {
        out_.memory = Memory();
        AddCourse();
      }
      if (!simulation.fits) out_.warnings.push_back("no plan fits the memory of the devices" + Overflow());
    }
    out_.summary = Summary();
    return std::move(out_);
  }

 private:
  const device::Device& DeviceAt(int d) const { return *f_.support.devices().all()[d]; }
  DeviceId DeviceOf(graph::NodeId i) const { return f_.placement.device_of[i]; }
  const Group& GroupOf(graph::NodeId i) const { return f_.constraints.groups[f_.constraints.group_of[i]]; }

  Reason ReasonOf(size_t i) const {
    const Group& group = GroupOf(i);
    if (group.fixed >= 0) return Reason::kState;
    if (group.rule != SoftRule::kNone) return Reason::kSoft;
    if (group.asked >= 0 && group.requested.type) return Reason::kRequested;
    if (f_.support.devices().all().size() == 1) return Reason::kOnlyDevice;
    if (group.settled) return Reason::kCost;
    if (group.candidates.size() == 1) return LacksKernels(group) ? Reason::kNoKernel : Reason::kRule;
    if (!f_.by_cost) return Reason::kRule;
    const auto tight = [&](const Tried& tried) {
      return !tried.fits && tried.makespan_ns < f_.choice->plan.simulation.makespan_ns;
    };
    const bool memory = std::any_of(f_.choice->tried.begin(), f_.choice->tried.end(), tight);
    return memory ? Reason::kMemory : Reason::kCost;
  }

  bool LacksKernels(const Group& group) const {
    for (size_t d = 0; d < f_.support.devices().all().size(); ++d) {
      if (!f_.support.Has(group.mask, static_cast<int>(d))) return true;
    }
    return false;
  }

  NodeReport Report(size_t i) {
    const StepNode& node = f_.step.nodes[i];
    const Group& group = GroupOf(i);
    NodeReport report;
    report.name = std::string(node.name());
    report.op = node.source->op().name;
    report.operands = OperandText(node);
    report.device = DeviceAt(DeviceOf(i)).name();
    report.requested = group.asked < 0 ? "" : group.requested.ToString();
    report.group = f_.constraints.group_of[i];
    report.group_size = static_cast<int>(group.members.size());
    report.reason = ReasonOf(i);
    if (group.rule != SoftRule::kNone) {
      report.note = fmt::format("requested '{}' -> soft: {}; {}", report.requested, WhySoft(group), Name(group.rule));
    }
    const int task = f_.table->task_of[i];
    for (const graph::Endpoint& input : node.inputs) {
      if (input.node < 0) continue;
      std::string name(f_.step.node(input.node).name());
      if (std::find(report.inputs.begin(), report.inputs.end(), name) == report.inputs.end())
        report.inputs.push_back(std::move(name));
    }
    report.start_ns = f_.choice->plan.simulation.start_ns[task];
    report.finish_ns = f_.choice->plan.simulation.finish_ns[task];
    report.bytes = f_.table->problem->resident_bytes(task);
    for (const int v : f_.table->problem->values_of(task)) report.bytes += f_.table->problem->value(v).held_bytes;
    for (size_t d = 0; d < f_.support.devices().all().size(); ++d) {
      report.candidates.push_back(Candidate(i, static_cast<int>(d)));
    }
    return report;
  }

  std::string WhySoft(const Group& group) const {
    if (!group.refused.empty()) return group.refused.begin()->second;
    return f_.support.devices().Matching(group.requested).empty() ? "no such device" : "no kernels there";
  }

  std::vector<DeviceMemory> Memory() const {
    const Problem& problem = *f_.table->problem;
    std::vector<DeviceMemory> memory;
    for (int d = 0; d < problem.device_count(); ++d) {
      const uint64_t capacity = DeviceAt(d).info().memory_bytes;
      memory.push_back({DeviceAt(d).name(), capacity == 0 ? -1 : static_cast<int64_t>(capacity), 0, 0,
                        f_.choice->plan.simulation.peak_bytes[d]});
    }
    std::set<std::pair<int, int>> constants;  // each with a device that uses it
    for (int task = 0; task < problem.tasks(); ++task) {
      const DeviceId d = DeviceOf(f_.table->node_of[task]);
      DeviceMemory& there = memory[d];
      there.state_bytes += problem.resident_bytes(task);
      there.value_bytes -= problem.resident_bytes(task);
      for (const Use& use : problem.uses(task)) {
        const Value& value = problem.value(use.value);
        const bool copied = problem.Copies(value, 0, use.host, d);
        const bool shared = problem.device(d).space == kHostSpace;
        if (!value.constant || !(copied || shared) || !constants.emplace(use.value, d).second) continue;
        there.constant_bytes += value.copied_bytes;
        if (copied) there.value_bytes -= value.copied_bytes;
      }
    }
    return memory;
  }

  /// Simulates the plan once more, for its transfers and its memory over time.
  void AddCourse() {
    const Problem& problem = *f_.table->problem;
    Course course;
    (void)Simulate(problem, f_.choice->plan.device_of, f_.choice->ranks, &course);
    IndexedVector<SpaceId, std::string> space_names(PositionOf(problem.spaces()));
    for (int d = problem.device_count() - 1; d >= 0; --d) {
      space_names[problem.device(d).space] = ShortName(DeviceAt(d));
    }
    for (const Course::Transfer& transfer : course.transfers) {
      const Value& value = problem.value(transfer.value);
      const std::string node =
          value.task < 0 ? std::string() : std::string(f_.step.nodes[f_.table->node_of[value.task]].name());
      out_.course.push_back({node, space_names[transfer.from], space_names[transfer.to], value.bytes, transfer.start_ns,
                             transfer.finish_ns});
    }
    for (const Course::Memory& point : course.memory) {
      out_.memory_course.push_back({point.device, point.time_ns, point.bytes});
    }
  }

  std::string OperandText(const StepNode& node) const {
    std::string text;
    for (const graph::Endpoint& input : node.inputs) {
      if (input.node < 0) continue;
      text += fmt::format("{}{} {}", text.empty() ? "" : " x ", Name(BaseType(f_.step.TypeOf(input))),
                          f_.step.ShapeOf(input).ToString());
    }
    for (size_t i = 0; i < node.types.size(); ++i) {
      text += fmt::format("{}{} {}",
                          i != 0         ? ", "
                          : text.empty() ? "-> "
                                         : " -> ",
                          Name(BaseType(node.types[i])), node.shapes[i].ToString());
    }
    return text;
  }

  CandidateReport Candidate(size_t i, int d) {
    const Group& group = GroupOf(i);
    const device::Device& device = DeviceAt(d);
    CandidateReport report;
    report.device = device.name();
    report.chosen = DeviceOf(i) == d;
    report.possible = std::binary_search(group.candidates.begin(), group.candidates.end(), d);
    if (!report.possible) {
      report.verdict = WhyNot(i, d);
      return report;
    }
    const int task = f_.table->task_of[i];
    const NodeCost& cost = f_.table->At(task, d);
    report.kernel = cost.kernel == nullptr ? "" : cost.kernel->plugin;
    report.provenance = cost.provenance;
    report.samples = cost.samples;
    report.exec_ns = cost.ns == kImpossible ? -1 : cost.ns;
    Arrivals(task, d, report);
    if (report.chosen) {
      const Simulation& simulation = f_.choice->plan.simulation;
      report.link_wait_ns = simulation.link_wait_ns[task];
      report.queue_ns = simulation.start_ns[task] - simulation.ready_ns[task];
      report.finish_ns = simulation.finish_ns[task];
      report.verdict = fmt::format(
          "chosen ({})", ReasonOf(i) == Reason::kCost ? f_.choice->plan.name : std::string(Name(ReasonOf(i))));
    } else {
      report.verdict = Difference(task, d, report);
    }
    return report;
  }

  /// The finish time of the task on device `d` with the rest of the plan unchanged, and the longest transfer of its
  /// inputs.
  void Arrivals(int task, int d, CandidateReport& report) {
    const Problem& problem = *f_.table->problem;
    int64_t ready = 0;
    report.inputs_ns = 0;
    farthest_ = -1;
    for (const Use& use : problem.uses(task)) {
      const Value& value = problem.value(use.value);
      const int source = problem.SourceSpace(value, value.task < 0 ? 0 : f_.choice->plan.device_of[value.task]);
      const int target = problem.TargetSpace(use.host, d);
      const int64_t way = value.constant ? 0 : problem.WayNs(source, target, value);
      const int64_t made = value.task < 0 ? 0 : f_.choice->plan.simulation.finish_ns[value.task];
      ready = std::max(ready, made + way);
      if (way > report.inputs_ns) {
        report.inputs_ns = way;
        farthest_ = value.task;
      }
    }
    if (report.exec_ns >= 0) report.finish_ns = ready + report.exec_ns;
  }

  std::string Difference(int task, int d, const CandidateReport& report) const {
    const Problem& problem = *f_.table->problem;
    if (report.exec_ns < 0) return "every kernel refuses the node";
    const int chosen = f_.choice->plan.device_of[task];
    const int64_t by = report.finish_ns - f_.choice->plan.simulation.finish_ns[task];
    const NodeCost& best = f_.table->At(task, chosen);
    std::string text =
        by < 0 ? fmt::format("{} sooner for this node alone", TimeText(-by)) : fmt::format("+{}", TimeText(by));
    if (report.inputs_ns >= report.exec_ns - best.ns && report.inputs_ns > 0 && farthest_ >= 0) {
      const graph::NodeId node = f_.table->node_of[farthest_];
      text += fmt::format(": input {} lives on {}", f_.step.nodes[node].name(), ShortName(DeviceAt(DeviceOf(node))));
    } else if (report.exec_ns > best.ns) {
      text += fmt::format(": takes {} longer", TimeText(report.exec_ns - best.ns));
    } else if (const int64_t way = problem.FetchNs(task, d); way > problem.FetchNs(task, chosen)) {
      text += fmt::format(": its fetched value takes {} to the host", TimeText(way));
    }
    return text;
  }

  /// The reason why the device is not a candidate.
  std::string WhyNot(size_t i, int d) const {
    const Group& group = GroupOf(i);
    const device::Device& device = DeviceAt(d);
    const StepNode& node = f_.step.nodes[i];
    if (!f_.support.Has(f_.support.Of(*node.source), d)) return fmt::format("no kernel for {}", TypesText(node));
    if (const auto refused = group.refused.find(d); refused != group.refused.end()) return refused->second;
    if (!f_.support.Has(group.mask, d)) {
      for (const int member : group.members) {
        const StepNode& other = f_.step.nodes[member];
        if (f_.support.Has(f_.support.Of(*other.source), d)) continue;
        return fmt::format("colocated with {}, which has no kernel there", other.name());
      }
    }
    if (group.fixed >= 0) return fmt::format("its state lives on {}", ShortName(DeviceAt(group.fixed)));
    if (!device::Matches(group.requested, device.info().name)) {
      return fmt::format("'{}' was requested", group.requested.ToString());
    }
    if ((device.info().flags & WEIR_DEVICE_OPT_IN) != 0) return "used only when named";
    if (group.settled) return "its state is used faster elsewhere, over all steps of the graph";
    return "state goes by device type";
  }

  static std::string TypesText(const StepNode& node) {
    std::string text;
    for (const op::AttrDef& attr : node.source->op().attrs) {
      const op::AttrValue* value = attr.type == "type" ? node.source->attrs().Find(attr.name) : nullptr;
      if (value != nullptr) text += fmt::format("{}{}={}", text.empty() ? "" : ", ", attr.name, value->ToString());
    }
    return text.empty() ? node.source->op().name : text;
  }

  void WarnOfLostRequests() {
    std::map<std::pair<std::string, int>, std::map<std::string, int>> lost;  // (request, device), op -> nodes
    for (const Group& group : f_.constraints.groups) {
      if (group.rule != SoftRule::kTypeDropped) continue;
      for (const int i : group.members) {
        const auto node = static_cast<size_t>(i);
        ++lost[{group.requested.ToString(), DeviceOf(node)}][f_.step.nodes[node].source->op().name];
      }
    }
    for (const auto& [where, ops] : lost) {
      std::string list;
      int nodes = 0;
      for (const auto& [op, count] : ops) {
        list += fmt::format("{}{} {}", list.empty() ? "" : ", ", op, count);
        nodes += count;
      }
      std::string text = fmt::format("{} {} ask{} for {} and run{} on {} [{}]", nodes, nodes == 1 ? "node" : "nodes",
                                     nodes == 1 ? "s" : "", where.first, nodes == 1 ? "s" : "",
                                     ShortName(DeviceAt(where.second)), list);
      for (const std::string& plugin : f_.options.absent_plugins) text += fmt::format("; not loaded: {}", plugin);
      out_.warnings.push_back(std::move(text));
    }
  }

  void WarnOfSplitLoops() {
    for (const LoopSplit& split : f_.constraints.splits) {
      const DeviceId loop_device = DeviceOf(split.loop), device = DeviceOf(split.node);
      if (loop_device == device) continue;
      const StepNode& odd = f_.step.nodes[split.node];
      out_.warnings.push_back(fmt::format("the loop '{}' runs on {}, but its {} '{}' on {}: there is no kernel {}",
                                          f_.step.frames[OutermostFrame(f_.step, odd)].name,
                                          ShortName(DeviceAt(loop_device)), odd.source->op().name, odd.name(),
                                          ShortName(DeviceAt(device)),
                                          f_.support.Has(f_.support.Of(*odd.source), loop_device)
                                              ? "for a node that it shares a device with"
                                              : fmt::format("for it on {}", ShortName(DeviceAt(loop_device)))));
    }
  }

  /// Memory overflow of the chosen plan: ": GPU:0 would hold 67.1 MB of 41.9 MB; the largest state: w 30 MB".
  std::string Overflow() const {
    const Problem& problem = *f_.table->problem;
    std::string text;
    for (int d = 0; d < problem.device_count(); ++d) {
      const int64_t peak = f_.choice->plan.simulation.peak_bytes[d];
      if (peak <= problem.device(d).capacity_bytes) continue;
      text += fmt::format("{} {} would hold {} of {}", text.empty() ? ":" : ",", ShortName(DeviceAt(d)),
                          BytesText(peak), BytesText(problem.device(d).capacity_bytes));
    }
    std::vector<std::pair<int64_t, int>> groups;
    for (int g = 0; g < problem.groups(); ++g) groups.emplace_back(-problem.group_bytes(g), g);
    std::sort(groups.begin(), groups.end());
    for (size_t k = 0; k < groups.size() && k < 3 && groups[k].first != 0; ++k) {
      const Group& group = f_.constraints.groups[groups[k].second];
      text += fmt::format("{} {} {}", k == 0 ? "; the largest state:" : ",",
                          f_.step.nodes[group.members.front()].name(), BytesText(-groups[k].first));
    }
    return text;
  }

  std::string Summary() const {
    int nodes = 0;
    int most = -1;
    for (const auto& [device, count] : count_of_) {
      nodes += count;
      if (most < 0 || count > count_of_.at(most)) most = device;
    }
    if (nodes == 0) return "placed 0 nodes: the step computes nothing";
    std::string text = fmt::format("placed {} {}:", nodes, nodes == 1 ? "node" : "nodes");
    std::vector<std::pair<int, int>> devices(count_of_.begin(), count_of_.end());
    std::stable_sort(devices.begin(), devices.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
    for (size_t k = 0; k < devices.size(); ++k) {
      const auto& [device, count] = devices[k];
      text += fmt::format("{} {} {}", k == 0 ? "" : ",", ShortName(DeviceAt(device)), count);
      if (k == 0) text += fmt::format(" ({:.1f} %)", 100.0 * count / std::max(nodes, 1));
      text += OpList(device, k == 0 ? Listed::kFallenBack : Listed::kAll);
    }
    if (f_.choice == nullptr) return text;
    text += fmt::format("; {} {} {}; predicted {}/step", out_.transfers, out_.transfers == 1 ? "transfer" : "transfers",
                        BytesText(out_.transferred_bytes), TimeText(out_.makespan_ns));
    if (f_.choice->best_single_ns > 0) {
      text += fmt::format(" (best single device {}, bound {}{})", TimeText(f_.choice->best_single_ns),
                          TimeText(out_.bound_ns), GapText());
    } else if (out_.bound_ns > 0) {
      text += fmt::format(" (no single device holds it, bound {}{})", TimeText(out_.bound_ns), GapText());
    }
    text += SlowestText();
    int guessed = 0;
    for (size_t t = 0; t < f_.table->node_of.size(); ++t) {
      if (f_.table->At(static_cast<int>(t), f_.choice->plan.device_of[t]).provenance == Provenance::kGuess) ++guessed;
    }
    if (guessed != 0) text += fmt::format("; {} {} guessed cost", guessed, guessed == 1 ? "node has" : "nodes have");
    return text;
  }

  /// "; the step waits for GPU:1, busy for 4 ms (GPU:0 1 ms)" if devices of one kind, such as towers, share the work.
  std::string SlowestText() const {
    const Simulation& simulation = f_.choice->plan.simulation;
    std::map<int, int64_t> busy;
    for (size_t t = 0; t < f_.table->node_of.size(); ++t) {
      busy[f_.choice->plan.device_of[t]] += simulation.finish_ns[t] - simulation.start_ns[t];
    }
    const auto slowest =
        std::max_element(busy.begin(), busy.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    if (slowest == busy.end()) return "";
    std::string others;
    for (const auto& [device, ns] : busy) {
      if (device == slowest->first || DeviceAt(device).info().kind != DeviceAt(slowest->first).info().kind) continue;
      others += fmt::format("{}{} {}", others.empty() ? "" : ", ", ShortName(DeviceAt(device)), TimeText(ns));
    }
    if (others.empty()) return "";
    return fmt::format("; the step waits for {}, busy for {} ({})", ShortName(DeviceAt(slowest->first)),
                       TimeText(slowest->second), others);
  }

  /// ", gap at most 11 %": of the plan to the best one possible.
  std::string GapText() const {
    if (out_.bound_ns <= 0 || out_.makespan_ns <= out_.bound_ns) return ", optimal";
    const double gap = static_cast<double>(out_.makespan_ns) / static_cast<double>(out_.bound_ns) - 1;
    return fmt::format(", gap at most {:.{}f} %", 100 * gap, gap < 0.1 ? 1 : 0);
  }

  /// kFallenBack: ops that are here because no other device has a kernel, or not the one that they ask for.
  enum class Listed : uint8_t { kAll, kFallenBack };

  /// " [Print 2, no kernel; Shape 20, cost]"; empty if there are none.
  std::string OpList(int device, Listed listed) const {
    constexpr size_t kShown = 6;
    std::vector<std::pair<int, std::string>> entries;
    for (const auto& [key, count] : reasons_) {
      const auto& [at, op, reason] = key;
      if (at != device) continue;
      if (listed == Listed::kFallenBack && reason != Reason::kNoKernel && reason != Reason::kSoft) continue;
      entries.emplace_back(-count, fmt::format("{} {}, {}", op, count, Name(reason)));
    }
    if (entries.empty()) return "";
    std::sort(entries.begin(), entries.end());
    std::string text;
    for (size_t k = 0; k < entries.size() && k < kShown; ++k) text += (text.empty() ? "" : "; ") + entries[k].second;
    if (entries.size() > kShown) text += "; ...";
    return " [" + text + "]";
  }

  using Alike = std::tuple<int, std::string_view, Reason>;  // device, op, reason
  using Counted = std::pair<const Alike, int>;

  const Findings& f_;
  Explanation out_;
  std::map<int, int> count_of_;   // nodes by device
  std::map<Alike, int> reasons_;  // nodes
  int farthest_ = -1;             // the task whose value has the longest transfer to the current device
};

}  // namespace

std::string_view Name(SoftRule rule) {
  switch (rule) {
    case SoftRule::kNone:
      return "kept";
    case SoftRule::kIdDropped:
      return "id dropped";
    case SoftRule::kTypeDropped:
      return "type and id dropped";
  }
  return "";
}

std::string_view Name(Provenance provenance) {
  switch (provenance) {
    case Provenance::kAnalytic:
      return "analytic";
    case Provenance::kCalibrated:
      return "calibrated";
    case Provenance::kGuess:
      return "guess";
    case Provenance::kMeasured:
      return "measured";
  }
  return "";
}

std::string_view Name(Reason reason) {
  switch (reason) {
    case Reason::kOnlyDevice:
      return "only device";
    case Reason::kRequested:
      return "requested";
    case Reason::kSoft:
      return "soft placement";
    case Reason::kState:
      return "its state is there";
    case Reason::kNoKernel:
      return "no kernel elsewhere";
    case Reason::kCost:
      return "cost";
    case Reason::kMemory:
      return "memory";
    case Reason::kRule:
      return "rule";
  }
  return "";
}

Explanation Explain(const Findings& findings) { return Explainer(findings).Run(); }

std::string ToText(const Explanation& explanation) {
  const std::string plan = explanation.winner.empty() ? "" : "plan " + explanation.winner + ", ";
  std::string text = fmt::format("{}\n{}hash {:016x}\n", explanation.summary, plan, explanation.hash);
  for (const std::string& warning : explanation.warnings) text += "warning: " + warning + "\n";
  for (const NodeReport& node : explanation.nodes) {
    text +=
        fmt::format("{}  {}{}{}  group {} ({} {})  -> {}\n", node.name, node.op, node.operands.empty() ? "" : " ",
                    node.operands, node.group, node.group_size, node.group_size == 1 ? "node" : "nodes", node.device);
    text += fmt::format("  {:<10}{:<22}{:<11}{:<11}{:<9}{:<11}{}\n", "device", "exec", "inputs", "link-wait", "queue",
                        "finish", "verdict");
    for (const CandidateReport& candidate : node.candidates) {
      const std::string samples = candidate.samples > 0 ? fmt::format("(n={})", candidate.samples) : "";
      const std::string exec = candidate.exec_ns < 0 ? "-"
                                                     : fmt::format("{} {}{}", TimeText(candidate.exec_ns),
                                                                   Name(candidate.provenance), samples);
      text += fmt::format("  {:<9} {:<22}{:<11}{:<11}{:<9}{:<11}{}\n",
                          NameBeside(candidate.device, node.candidates.front().device), exec,
                          TimeText(candidate.inputs_ns), TimeText(candidate.link_wait_ns), TimeText(candidate.queue_ns),
                          TimeText(candidate.finish_ns), candidate.verdict);
    }
    if (!node.note.empty()) text += "  " + node.note + "\n";
  }
  for (const WrittenNode& node : explanation.written) {
    if (!node.runs) text += fmt::format("{}  {}  not run by the step  -> {}\n", node.name, node.op, node.device);
  }
  return text;
}

}  // namespace weir::place
