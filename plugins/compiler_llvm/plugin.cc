// The entry of compiler_llvm: the table of compiler/1.
#include "sdk/cpp/plugin.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "plugins/compiler_llvm/build.h"
#include "plugins/compiler_llvm/claim.h"
#include "plugins/compiler_llvm/executable.h"
#include "plugins/compiler_llvm/link.h"
#include "plugins/compiler_llvm/plan.h"
#include "sdk/cpp/compiler.h"
#include "sdk/cpp/cpu.h"
#include "sdk/cpp/isa.h"

namespace weir::compiler_llvm {
namespace {

constexpr int64_t kGrain = 32 * 1024;  // elements below which a call is not split

/// The level of the target's code: as far as the target allows and this processor can. Nothing below x86-64-v3, for
/// which kernels_eigen has no kernels either.
std::optional<Level> LevelOf(const weir_compile_target& target, std::string* why) {
  const std::string_view platform = sdk::ToView(target.platform), isa = sdk::ToView(target.isa);
  if (platform != "cpu") {
    *why = "no code for platform '" + std::string(platform) + "'";
    return std::nullopt;
  }
  const sdk::Isa limit = isa == "x86-64-v4"   ? sdk::Isa::kV4
                         : isa == "x86-64-v3" ? sdk::Isa::kV3
                         : isa.empty()        ? sdk::Isa::kAuto
                                              : sdk::Isa::kBaseline;
  const sdk::Isa level = sdk::ThisCpu().Below(limit);
  if (level != sdk::Isa::kV3 && level != sdk::Isa::kV4) {
    *why = "no code below x86-64-v3";
    return std::nullopt;
  }
  return level == sdk::Isa::kV4 ? Level::kV4 : Level::kV3;
}

Described DescribedOf(const weir_region_value& value) {
  return {value.dtype, {value.shape.dims, value.shape.dims + value.shape.rank}};
}

Description Describe(const Graph& graph, const Program& program, Level level, uint64_t max_tiles) {
  Description description;
  description.level = level;
  for (const weir_region_value* input : graph.inputs) description.inputs.push_back(DescribedOf(*input));
  for (const uint32_t output : graph.outputs) description.outputs.push_back(DescribedOf(graph.Value(output)));
  // An element is written after the input's element at the same place was read for the last time.
  for (uint32_t i = 0; i < program.inputs.size(); ++i) {
    const Access& input = program.inputs[i].access;
    for (uint32_t o = 0; o < program.outputs.size(); ++o) {
      const Access& output = program.outputs[o].access;
      if (!program.inputs[i].constant && input.column && output.column && input.steps == output.steps &&
          sdk::SizeOf(input.dtype) == sdk::SizeOf(output.dtype)) {
        description.aliases.push_back({i, o, WEIR_ALIAS_MAY, 0});
      }
    }
  }
  description.scratch_bytes = program.scratch_bytes;
  description.units = static_cast<uint64_t>(program.units);
  const auto wanted = static_cast<uint64_t>(VisitsOf(program) / kGrain);
  description.tiles = std::max<uint64_t>(1, std::min({wanted, description.units, max_tiles, uint64_t{1} << 16}));
  return description;
}

void Propose(const Claim& claim, const sdk::ClaimSink& sink) {
  sink.Propose(claim.nodes, {claim.predicted_ns, claim.compile_ns, claim.scratch_bytes, claim.reason});
}

/// See sdk/cpp/compiler.h.
struct CpuCompiler {
  using Executable = compiler_llvm::Executable;

  static int32_t Claim(const weir_compile_target& target, const weir_region& candidate, const sdk::ClaimSink& sink) {
    std::string why;
    const std::optional<Level> level = LevelOf(target, &why);
    if (!level) return WEIR_OK;
    for (const auto& claim : ClaimNodes(candidate, *level == Level::kV4, target.profile)) Propose(claim, sink);
    return WEIR_OK;
  }
  static int32_t ClaimLoop(const weir_compile_target& target, const weir_region& candidate,
                           const sdk::ClaimSink& sink) {
    std::string why;
    const std::optional<Level> level = LevelOf(target, &why);
    if (!level) return WEIR_OK;
    if (const auto claim = compiler_llvm::ClaimLoop(candidate, *level == Level::kV4)) Propose(*claim, sink);
    return WEIR_OK;
  }
  static int32_t Compile(const sdk::CompileCall& call, std::unique_ptr<Executable>* made) {
    const sdk::Error& fail = call.error;
    std::string why;
    const std::optional<Level> level = LevelOf(call.target, &why);
    if (!level) return fail.Unimplemented(why);
    const std::optional<Graph> graph = ReadRegion(call.region, &why);
    if (!graph) return fail.Unimplemented(why);
    const std::optional<Program> program = PlanGraph(*graph, &why);
    if (!program) return fail.Unimplemented(why);
    const Backend* backend = LoadBackend(&why);
    if (backend == nullptr) return fail.Unimplemented(why);
    if (call.Cancelled()) return fail.Fail(WEIR_CANCELLED, "cancelled");
    Code code;
    if (!backend->generate(*program, *level, &code, &why)) return fail.Unimplemented(why);
    const uint64_t max_tiles = call.options == nullptr ? 1 : std::max<uint64_t>(1, call.options->max_tiles);
    *made = Executable::Make(Describe(*graph, *program, *level, max_tiles), code, &why);
    return *made != nullptr ? WEIR_OK : fail.Unimplemented(why);
  }
  static std::string Key(const weir_compile_target&) { return std::string(kBuild); }
  static int32_t Compare(const weir_compile_target& target, std::span<const uint8_t> bytes) {
    std::string why;
    const std::optional<Level> level = LevelOf(target, &why);
    return level ? Executable::Compare(bytes, *level) : static_cast<int32_t>(WEIR_COMPAT_INCOMPATIBLE);
  }
  static int32_t Load(const weir_compile_target& target, std::span<const uint8_t> bytes, const sdk::Error& error,
                      std::unique_ptr<Executable>* made) {
    std::string why;
    const std::optional<Level> level = LevelOf(target, &why);
    if (!level) return error.Unimplemented(why);
    *made = Executable::Deserialize(bytes, *level, &why);
    return *made != nullptr ? WEIR_OK : error.Fail(WEIR_DATA_LOSS, why);
  }
};

}  // namespace
}  // namespace weir::compiler_llvm

WEIR_PLUGIN("compiler_llvm", WEIR_LLVM_PLUGIN_VERSION, "weir", "cpu",
            weir::sdk::Compiler<weir::compiler_llvm::CpuCompiler>)
