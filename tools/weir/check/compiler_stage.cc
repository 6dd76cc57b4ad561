// Stage compiler: regions claimed, compiled, run and kept, against their ops one by one.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/errors.h"
#include "core/compile/executable.h"
#include "core/compile/region.h"
#include "core/compile/region_view.h"
#include "core/compile/target.h"
#include "core/kernel/host.h"
#include "core/plugin/compatible.h"
#include "tools/weir/check/recorder.h"
#include "tools/weir/check/stages.h"
#include "tools/weir/check/subject.h"

namespace weir::check {
namespace {

using compile::Executable;
using compile::Region;
using compile::RegionValue;
using compile::RegionView;
using kernel::CallPlugin;
using Claims = std::vector<std::vector<uint32_t>>;

constexpr size_t kRoomBytes = 64;
constexpr std::byte kRoom{0x5a};
constexpr uint64_t kMostTiles = 3;
constexpr double kUnit = 0x1p-23;

/// An op of the trial with its function and the largest slope of that, for values of at most 4.
struct TrialOp {
  const char* name;
  int operands;
  double (*fn)(double x, double y);
  double slope;
};
constexpr TrialOp kTrialOps[] = {
    {"AddV2", 2, [](double x, double y) { return x + y; }, 1},
    {"Tanh", 1, [](double x, double) { return std::tanh(x); }, 1},
    {"Sub", 2, [](double x, double y) { return x - y; }, 1},
    {"Mul", 2, [](double x, double y) { return x * y; }, 64},
    {"Neg", 1, [](double x, double) { return -x; }, 1},
    {"Maximum", 2, [](double x, double y) { return std::max(x, y); }, 1},
    {"Square", 1, [](double x, double) { return x * x; }, 128},
    {"Relu", 1, [](double x, double) { return std::max(x, 0.0); }, 1},
};

/// A region of `ops` ops on floats of one shape, with a scalar; every second value is an output.
Region TrialRegion(const Shape& shape, size_t ops) {
  const RegionValue full{DType::kFloat, shape, Tensor()};
  Region region;
  region.inputs = {full, full, {DType::kFloat, Shape(), Tensor()}};
  for (size_t i = 0; i < ops; ++i) {
    const TrialOp& op = kTrialOps[i % std::size(kTrialOps)];
    const uint32_t last = region.ValueOf(i) - 1;
    const auto other = static_cast<uint32_t>(i % 3);
    std::vector<uint32_t> operands = {i == 0 ? 0 : last};
    if (op.operands == 2) operands.push_back(other);
    region.nodes.push_back({op.name, operands, {{"T", DType::kFloat}}, {}, full, 1000});
    if (i + 1 == ops || i % 2 == 1) region.outputs.push_back(region.ValueOf(i));
  }
  return region;
}

compile::Target TrialTarget() { return {"cpu", plugin::IsaText("auto"), compile::ProcessorText(), std::nullopt}; }

Result<Claims> ClaimsOf(const weir_compiler_api* api, const Region& region) {
  struct Seen {
    Claims claims;
    Status fault;
    size_t nodes = 0;
    static void Emit(void* ctx, const weir_claim* claim) {
      auto& seen = *static_cast<Seen*>(ctx);
      std::vector<uint32_t> nodes(claim->nodes, claim->nodes + claim->node_count);
      const bool ascending = std::ranges::adjacent_find(nodes, std::greater_equal()) == nodes.end();
      if (nodes.empty() || !ascending || nodes.back() >= seen.nodes) {
        seen.fault = InvalidArgument("it claims nodes [{}] of {}, which are not ascending or not there",
                                     fmt::join(nodes, ","), seen.nodes);
      } else if (!(claim->predicted_ns >= 0) || !std::isfinite(claim->predicted_ns)) {
        seen.fault = InvalidArgument("it predicts {} ns", claim->predicted_ns);
      } else {
        seen.claims.push_back(std::move(nodes));
      }
    }
  };
  Seen seen;
  seen.nodes = region.nodes.size();
  const RegionView view(region);
  const compile::Target target = TrialTarget();
  const weir_compile_target at = target.View();
  const auto claim = region.loop ? api->claim_loop : api->claim;
  WEIR_TRY(CallPlugin("claim", [&](weir_error* error) { return claim(&at, view.get(), &Seen::Emit, &seen, error); }));
  WEIR_TRY(seen.fault);
  return std::move(seen.claims);
}

struct TrialCompilation {
  Region region;
  std::shared_ptr<const Executable> executable;
};

Result<std::shared_ptr<const Executable>> CompileRegion(const kernel::CompilerEntry& entry, const Region& region,
                                                        bool cancelled = false) {
  const RegionView view(region);
  const compile::Target target = TrialTarget();
  const weir_compile_target at = target.View();
  weir_compile_options options{sizeof options, 0, kMostTiles};
  weir_cancel cancel{sizeof cancel, 0, [](const weir_cancel* token) { return token->arg != nullptr ? 1 : 0; },
                     cancelled ? &options : nullptr};
  weir_executable* made = nullptr;
  WEIR_TRY(CallPlugin("compile", [&](weir_error* error) {
    return entry.api->compile(&at, view.get(), &options, &cancel, &made, error);
  }));
  return Executable::Take(entry, made, region, kMostTiles);
}

/// Memory of a value between two guards.
struct GuardedValue {
  std::vector<std::byte> memory;
  Shape shape;
  weir_shape view{};

  explicit GuardedValue(const Shape& of)
      : memory(2 * kRoomBytes + static_cast<size_t>(of.elements()) * sizeof(float), kRoom), shape(of) {
    view = kernel::ViewOf(shape);
  }
  float* data() { return reinterpret_cast<float*>(memory.data() + kRoomBytes); }
  size_t count() const { return static_cast<size_t>(shape.elements()); }
  bool Intact() const {
    const auto is_guard = [](std::byte byte) { return byte == kRoom; };
    return std::all_of(memory.begin(), memory.begin() + kRoomBytes, is_guard) &&
           std::all_of(memory.end() - kRoomBytes, memory.end(), is_guard);
  }
  weir_reg Register() { return {reinterpret_cast<uint64_t>(data()), 0, &view, WEIR_FLOAT32, 0}; }
};

/// A run of an executable on the trial's inputs.
class TrialRun {
 public:
  TrialRun(const Region& region, const Executable& executable) : region_(region), executable_(executable) {
    for (size_t i = 0; i < region.inputs.size(); ++i) {
      GuardedValue& input = inputs_.emplace_back(region.inputs[i].shape);
      for (size_t j = 0; j < input.count(); ++j) {
        input.data()[j] = static_cast<float>(std::sin(static_cast<double>(7 * i + j) * 0.7) * 1.5);
      }
    }
    for (const uint32_t output : region.outputs) outputs_.emplace_back(region.value(output).shape);
  }

  /// In as many calls as there are parts. `in_place`: output 0 is written over this input; -1: it is not.
  Status Execute(uint64_t parts, int in_place = -1) {
    const std::vector<GuardedValue> before = inputs_;
    std::vector<std::byte> scratch(executable_.scratch_bytes() + executable_.scratch_alignment() + 2 * kRoomBytes);
    const auto base = reinterpret_cast<uint64_t>(scratch.data()) + kRoomBytes;
    const uint64_t start = (base + executable_.scratch_alignment() - 1) & ~(executable_.scratch_alignment() - 1);
    std::vector<weir_reg> regs;
    for (GuardedValue& input : inputs_) regs.push_back(input.Register());
    for (GuardedValue& output : outputs_) regs.push_back(output.Register());
    if (in_place >= 0) regs[inputs_.size()].data = regs[static_cast<size_t>(in_place)].data;
    if (executable_.scratch_bytes() > 0) regs.push_back({start, 0, nullptr, WEIR_UINT8, 0});
    const uint64_t calls = HostCalls();
    for (uint64_t part = 0; part < parts; ++part) {
      std::ranges::fill(scratch, kRoom);
      weir_env env{};
      env.struct_size = sizeof env;
      env.tile_begin = executable_.tiles() * part / parts;
      env.tile_end = executable_.tiles() * (part + 1) / parts;
      if (const int32_t code = executable_.Run(regs.data(), &env); code != WEIR_OK) {
        return Internal("execute returns {}", code);
      }
      const size_t first = start - reinterpret_cast<uint64_t>(scratch.data());
      for (size_t i = 0; i < scratch.size(); ++i) {
        if ((i < first || i >= first + executable_.scratch_bytes()) && scratch[i] != kRoom) {
          return Internal("it writes beside its {} bytes of scratch memory", executable_.scratch_bytes());
        }
      }
    }
    if (HostCalls() != calls) return Internal("execute calls the host");
    if (in_place >= 0) {
      std::memcpy(outputs_[0].data(), inputs_[static_cast<size_t>(in_place)].data(),
                  outputs_[0].count() * sizeof(float));
      inputs_ = before;
    }
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (inputs_[i].memory != before[i].memory) return Internal("it writes to input {} or beside it", i);
    }
    for (size_t i = 0; i < outputs_.size(); ++i) {
      if (!outputs_[i].Intact()) return Internal("it writes beside output {}", i);
    }
    return Status();
  }

  /// Compares the outputs with the ops in double.
  Status Compare() {
    for (size_t i = 0; i < outputs_[0].count(); ++i) {
      std::vector<std::pair<double, double>> values;  // with the largest error
      for (GuardedValue& input : inputs_) values.emplace_back(input.data()[input.count() == 1 ? 0 : i], 0);
      for (const compile::RegionOp& node : region_.nodes) {
        const auto* const op = std::ranges::find_if(kTrialOps, [&](const TrialOp& of) { return node.op == of.name; });
        const auto& [x, x_error] = values[node.operands.front()];
        const auto& [y, y_error] = values[node.operands.back()];
        const double value = op->fn(x, y);
        const double error = op->slope * (x_error + y_error) + 8 * kUnit * std::max(std::fabs(value), 1.0);
        values.emplace_back(value, error);
      }
      for (size_t j = 0; j < outputs_.size(); ++j) {
        const auto& [wanted, error] = values[region_.outputs[j]];
        const double got = outputs_[j].data()[i];
        if (std::fabs(got - wanted) <= error) continue;
        return Internal("output {} of {} ops has {} at element {}, the ops give {}", j, region_.nodes.size(), got, i,
                        wanted);
      }
    }
    return Status();
  }

  std::vector<std::vector<std::byte>> Bits() const {
    std::vector<std::vector<std::byte>> bits;
    for (const GuardedValue& output : outputs_) bits.push_back(output.memory);
    return bits;
  }

 private:
  const Region& region_;
  const Executable& executable_;
  std::vector<GuardedValue> inputs_, outputs_;
};

std::vector<Region> TrialRegions() {
  std::vector<Region> regions;
  for (const Shape& shape : {Shape::Of({1}), Shape::Of({7}), Shape::Of({5, 33}), Shape::Of({2, 3, 1000})}) {
    for (const size_t ops : {size_t{2}, size_t{5}, size_t{8}}) regions.push_back(TrialRegion(shape, ops));
  }
  return regions;
}

/// What it claims of the trial's regions, compiled.
Result<std::vector<TrialCompilation>> CompileClaims(const kernel::CompilerEntry& entry) {
  std::vector<TrialCompilation> all;
  for (const Region& region : TrialRegions()) {
    WEIR_ASSIGN(const Claims claims, ClaimsOf(entry.api, region));
    for (const std::vector<uint32_t>& nodes : claims) {
      TrialCompilation made{compile::Choose(region, nodes).region, nullptr};
      WEIR_ASSIGN(made.executable, CompileRegion(entry, made.region));
      all.push_back(std::move(made));
    }
  }
  return all;
}

Status CheckClaims(const kernel::CompilerEntry& entry) {
  for (const Region& region : TrialRegions()) {
    WEIR_ASSIGN(const Claims claims, ClaimsOf(entry.api, region));
    WEIR_ASSIGN(const Claims again, ClaimsOf(entry.api, region));
    if (claims != again) return Internal("two calls of claim for one region differ");
    for (const std::vector<uint32_t>& nodes : claims) {
      if (!compile::IsConvex(region, nodes))
        return Internal("it claims [{}], which is not convex", fmt::join(nodes, ","));
    }
  }
  return Status();
}

Status CheckSplits(const TrialCompilation& compiled) {
  TrialRun whole(compiled.region, *compiled.executable);
  WEIR_TRY(whole.Execute(1));
  for (uint64_t parts = 1; parts <= compiled.executable->tiles(); ++parts) {
    TrialRun split(compiled.region, *compiled.executable);
    WEIR_TRY(split.Execute(parts));
    if (split.Bits() != whole.Bits()) {
      return Internal("{} tiles in {} calls give other bits than in one", compiled.executable->tiles(), parts);
    }
  }
  for (const weir_alias& alias : compiled.executable->aliases()) {
    if (alias.output != 0) continue;
    TrialRun in_place(compiled.region, *compiled.executable);
    WEIR_TRY(in_place.Execute(1, static_cast<int>(alias.input)));
    if (in_place.Bits() != whole.Bits()) return Internal("output 0 written over input {} has other bits", alias.input);
  }
  return Status();
}

Result<std::string> SerializedBytes(const kernel::CompilerEntry& entry, const Executable& executable) {
  std::string bytes;
  const auto sink = [](void* ctx, const void* data, uint64_t size) -> int32_t {
    static_cast<std::string*>(ctx)->append(static_cast<const char*>(data), size);
    return WEIR_OK;
  };
  WEIR_TRY(CallPlugin("serialize",
                      [&](weir_error* error) { return entry.api->serialize(executable.get(), sink, &bytes, error); }));
  return bytes;
}

Result<weir_executable*> Restore(const kernel::CompilerEntry& entry, const std::string& bytes) {
  const compile::Target target = TrialTarget();
  const weir_compile_target at = target.View();
  weir_executable* made = nullptr;
  WEIR_TRY(CallPlugin("deserialize", [&](weir_error* error) {
    return entry.api->deserialize(&at, bytes.data(), bytes.size(), &made, error);
  }));
  return made;
}

Status CheckRoundTrip(const kernel::CompilerEntry& entry, const TrialCompilation& compiled) {
  WEIR_ASSIGN(const std::string bytes, SerializedBytes(entry, *compiled.executable));
  const compile::Target target = TrialTarget();
  const weir_compile_target at = target.View();
  if (entry.api->compat(&at, bytes.data(), bytes.size()) != WEIR_COMPAT_SAME) {
    return Internal("compat does not know the bytes of serialize");
  }
  WEIR_ASSIGN(weir_executable* const made, Restore(entry, bytes));
  WEIR_ASSIGN(const std::shared_ptr<const Executable> restored,
              Executable::Take(entry, made, compiled.region, kMostTiles));
  TrialRun first(compiled.region, *compiled.executable), second(compiled.region, *restored);
  WEIR_TRY(first.Execute(1));
  WEIR_TRY(second.Execute(1));
  return first.Bits() == second.Bits() ? Status() : Internal("a deserialized executable gives other bits");
}

/// Shortened bytes are refused. Changed ones may be taken for others, but nothing crashes.
Status CheckDamage(const kernel::CompilerEntry& entry, const TrialCompilation& compiled) {
  WEIR_ASSIGN(const std::string bytes, SerializedBytes(entry, *compiled.executable));
  const compile::Target target = TrialTarget();
  const weir_compile_target at = target.View();
  const size_t step = std::max<size_t>(bytes.size() / 40, 1);
  for (size_t size = 0; size < bytes.size(); size += step) {
    const std::string part = bytes.substr(0, size);
    const bool same = entry.api->compat(&at, part.data(), part.size()) == WEIR_COMPAT_SAME;
    const Result<weir_executable*> made = Restore(entry, part);
    if (!made.ok()) continue;
    if (*made != nullptr) entry.api->destroy(*made);
    return Internal("deserialize takes the first {} of {} bytes{}", size, bytes.size(), same ? ", as does compat" : "");
  }
  for (size_t i = 0; i < bytes.size(); i += step) {
    std::string changed = bytes;
    changed[i] = static_cast<char>(changed[i] ^ 0x55);
    (void)entry.api->compat(&at, changed.data(), changed.size());
    const Result<weir_executable*> made = Restore(entry, changed);
    if (made.ok() && *made != nullptr) entry.api->destroy(*made);
  }
  return Status();
}

Status CheckRefusals(const kernel::CompilerEntry& entry) {
  Region unknown = TrialRegion(Shape::Of({4}), 2);
  unknown.nodes[1].op = "NoSuchOp";
  const auto made = CompileRegion(entry, unknown);
  if (made.ok()) return Internal("it compiles an op that does not exist");
  const auto cancelled = CompileRegion(entry, TrialRegion(Shape::Of({4}), 2), true);
  const Code code = cancelled.status().code();
  if (cancelled.ok() || code == Code::kCancelled || code == Code::kUnimplemented) return Status();
  return cancelled.status().Prepend("a cancelled compilation: ");
}

/// do x = x + step while (x < limit), at most `most` times in a call.
Region TrialLoop(uint64_t most) {
  const RegionValue number{DType::kFloat, Shape(), Tensor()};
  Region region;
  region.inputs = {number, number, number};  // x, limit, step
  region.nodes.push_back({"Less", {0, 1}, {{"T", DType::kFloat}}, {}, {DType::kBool, Shape(), Tensor()}, 1000});
  region.nodes.push_back({"AddV2", {0, 2}, {{"T", DType::kFloat}}, {}, number, 1000});
  region.outputs = {0};
  region.loop = compile::RegionLoop{{4}, 3, most};
  return region;
}

Finding CheckLoops(const kernel::CompilerEntry& entry) {
  if (!kernel::TakesLoops(entry.api)) return Finding::Skip("it is shown no loops");
  constexpr uint64_t kMost = 10;
  const Region region = TrialLoop(kMost);
  WEIR_ASSIGN(const Claims claims, ClaimsOf(entry.api, region));
  if (claims.empty()) return Finding::Skip("it claims nothing of the trial's loop");
  if (claims != Claims{{0, 1}}) return Status(Internal("it does not claim a loop once with all its nodes"));
  WEIR_ASSIGN(const std::shared_ptr<const Executable> executable, CompileRegion(entry, region));
  for (const float limit : {1.0f, 0.5f, 4.0f, 10.0f, 10.5f, 300.0f}) {
    float variables[] = {0, limit, 1}, end = -1, wanted = 0;
    uint64_t made = 0;
    do ++wanted;
    while (wanted < limit && ++made < kMost);
    const weir_shape scalar{};
    std::vector<weir_reg> regs;
    for (float* number : {&variables[0], &variables[1], &variables[2], &end}) {
      regs.push_back({reinterpret_cast<uint64_t>(number), 0, &scalar, WEIR_FLOAT32, 0});
    }
    std::vector<std::byte> scratch(executable->scratch_bytes() + executable->scratch_alignment());
    const uint64_t mask = executable->scratch_alignment() - 1;
    regs.push_back({(reinterpret_cast<uint64_t>(scratch.data()) + mask) & ~mask, 0, nullptr, WEIR_UINT8, 0});
    weir_env env{};
    env.struct_size = sizeof env;
    env.tile_end = executable->tiles();
    if (const int32_t code = executable->Run(regs.data(), &env); code != WEIR_OK) {
      return Status(Internal("execute of a loop returns {}", code));
    }
    if (end != wanted) {
      return Status(
          Internal("a loop from 0 to {}, {} iterations at most, ends at {}, wanted {}", limit, kMost, end, wanted));
    }
  }
  return Status();
}

void TryExecutables(Recorder& recorder, const kernel::CompilerEntry& entry,
                    const std::vector<TrialCompilation>& compiled) {
  const auto each = [&](auto&& check) -> Finding {
    if (compiled.empty()) return Finding::Skip("it claims nothing of the trial's regions");
    for (const TrialCompilation& one : compiled) WEIR_TRY(check(one));
    return Status();
  };
  recorder.Try("WEIR-COMP-03", [&] {
    return each([](const TrialCompilation& one) -> Status {
      TrialRun run(one.region, *one.executable);
      WEIR_TRY(run.Execute(1));
      return run.Compare();
    });
  });
  recorder.Try("WEIR-COMP-04", [&] { return each(CheckSplits); });
  const bool keeps = kernel::Serializes(entry.api);
  recorder.Try("WEIR-COMP-05", [&] {
    if (!keeps) return Finding::Skip("it cannot serialize");
    return each([&](const TrialCompilation& one) { return CheckRoundTrip(entry, one); });
  });
  recorder.Try("WEIR-COMP-06", [&] {
    if (!keeps) return Finding::Skip("it cannot serialize");
    return each([&](const TrialCompilation& one) { return CheckDamage(entry, one); });
  });
}

}  // namespace

std::vector<RuleResult> CompilerStage(const Target& target) {
  return RunInChild("WEIR-COMP-00", target.time_limit_ms, [&](Recorder& recorder) {
    kernel::CompilerEntry entry;
    entry.plugin = "subject";
    bool compiles = false;
    const bool started = recorder.Try("WEIR-COMP-00", [&]() -> Finding {
      WEIR_ASSIGN(const Subject subject, Subject::Start(target));
      entry.api = subject.Interface<weir_compiler_api>(WEIR_COMPILER_INTERFACE);
      if (entry.api == nullptr) return Finding::Skip("it brings no compiler");
      if (!kernel::IsComplete(entry.api))
        return Status(FailedPrecondition("{} lacks functions", WEIR_COMPILER_INTERFACE));
      const bool some = WEIR_HAS(entry.api, serialize) || WEIR_HAS(entry.api, deserialize) ||
                        WEIR_HAS(entry.api, compat) || WEIR_HAS(entry.api, key);
      if (some && !kernel::Serializes(entry.api)) {
        return Status(FailedPrecondition("it has some of serialize, deserialize, compat and key, but not all"));
      }
      compiles = true;
      return Status();
    });
    if (!started || !compiles) return;
    if (!recorder.Try("WEIR-COMP-01", [&] { return CheckClaims(entry); })) return;
    Result<std::vector<TrialCompilation>> compiled = Unknown("not tried");
    if (recorder.Try("WEIR-COMP-02", [&] { return (compiled = CompileClaims(entry)).status(); })) {
      TryExecutables(recorder, entry, *compiled);
    }
    recorder.Try("WEIR-COMP-07", [&] { return CheckRefusals(entry); });
    recorder.Try("WEIR-COMP-08", [&] { return CheckLoops(entry); });
  });
}

}  // namespace weir::check
