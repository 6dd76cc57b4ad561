// The entry of compiler_llvm: the table of compiler/1.
#include "sdk/cpp/plugin.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "plugins/compiler_llvm/build.h"
#include "plugins/compiler_llvm/claim.h"
#include "plugins/compiler_llvm/executable.h"
#include "plugins/compiler_llvm/link.h"
#include "plugins/compiler_llvm/plan.h"
#include "sdk/abi/compiler.h"
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

bool IsCancelled(const weir_cancel* cancel) {
  return cancel != nullptr && cancel->cancelled != nullptr && cancel->cancelled(cancel) != 0;
}

void Show(const Claim& claim, void (*emit)(void* ctx, const weir_claim* claim), void* ctx) {
  weir_claim record{};
  record.struct_size = sizeof record;
  record.node_count = static_cast<uint32_t>(claim.nodes.size());
  record.nodes = claim.nodes.data();
  record.predicted_ns = claim.predicted_ns;
  record.compile_ns = claim.compile_ns;
  record.scratch_bytes = claim.scratch_bytes;
  record.reason = sdk::Str(claim.reason);
  emit(ctx, &record);
}

int32_t ClaimIn(const weir_compile_target* target, const weir_region* candidate,
                void (*emit)(void* ctx, const weir_claim* claim), void* ctx, weir_error* error) noexcept {
  return sdk::Guard(error, [&]() -> int32_t {
    std::string why;
    const std::optional<Level> level = LevelOf(*target, &why);
    if (!level) return WEIR_OK;
    for (const Claim& claim : ClaimNodes(*candidate, *level == Level::kV4, target->profile)) Show(claim, emit, ctx);
    return WEIR_OK;
  });
}

int32_t ClaimLoopIn(const weir_compile_target* target, const weir_region* candidate,
                    void (*emit)(void* ctx, const weir_claim* claim), void* ctx, weir_error* error) noexcept {
  return sdk::Guard(error, [&]() -> int32_t {
    std::string why;
    const std::optional<Level> level = LevelOf(*target, &why);
    if (!level) return WEIR_OK;
    if (const std::optional<Claim> claim = ClaimLoop(*candidate, *level == Level::kV4)) Show(*claim, emit, ctx);
    return WEIR_OK;
  });
}

int32_t Compile(const weir_compile_target* target, const weir_region* region, const weir_compile_options* options,
                const weir_cancel* cancel, weir_executable** executable, weir_error* error) noexcept {
  return sdk::Guard(error, [&]() -> int32_t {
    const sdk::Error fail(error);
    std::string why;
    const std::optional<Level> level = LevelOf(*target, &why);
    if (!level) return fail.Unimplemented(why);
    const std::optional<Graph> graph = ReadRegion(*region, &why);
    if (!graph) return fail.Unimplemented(why);
    const std::optional<Program> program = PlanGraph(*graph, &why);
    if (!program) return fail.Unimplemented(why);
    const Backend* backend = LoadBackend(&why);
    if (backend == nullptr) return fail.Unimplemented(why);
    if (IsCancelled(cancel)) return fail.Fail(WEIR_CANCELLED, "cancelled");
    Code code;
    if (!backend->generate(*program, *level, &code, &why)) return fail.Unimplemented(why);
    const uint64_t max_tiles = options == nullptr ? 1 : std::max<uint64_t>(1, options->max_tiles);
    auto made = Executable::Make(Describe(*graph, *program, *level, max_tiles), code, &why);
    if (made == nullptr) return fail.Unimplemented(why);
    *executable = reinterpret_cast<weir_executable*>(made.release());
    return WEIR_OK;
  });
}

const Executable& Of(const weir_executable* executable) { return *reinterpret_cast<const Executable*>(executable); }

int32_t IoSpec(const weir_executable* executable, weir_executable_spec* spec, weir_error*) noexcept {
  Of(executable).FillSpec(spec);
  return WEIR_OK;
}

int32_t Execute(void* state, const weir_reg* regs, const weir_env* env) noexcept {
  static_cast<const Executable*>(state)->Run(regs, env);
  return WEIR_OK;
}

void Destroy(weir_executable* executable) noexcept { delete reinterpret_cast<Executable*>(executable); }

int32_t Serialize(const weir_executable* executable, int32_t (*sink)(void* ctx, const void* data, uint64_t bytes),
                  void* ctx, weir_error* error) noexcept {
  return sdk::Guard(error, [&]() -> int32_t {
    const std::string bytes = Of(executable).Serialize();
    return sink(ctx, bytes.data(), bytes.size());
  });
}

std::span<const uint8_t> SpanOf(const void* data, uint64_t bytes) {
  return {static_cast<const uint8_t*>(data), data == nullptr ? 0 : bytes};
}

int32_t Deserialize(const weir_compile_target* target, const void* data, uint64_t bytes, weir_executable** executable,
                    weir_error* error) noexcept {
  return sdk::Guard(error, [&]() -> int32_t {
    const sdk::Error fail(error);
    std::string why;
    const std::optional<Level> level = LevelOf(*target, &why);
    if (!level) return fail.Unimplemented(why);
    auto made = Executable::Deserialize(SpanOf(data, bytes), *level, &why);
    if (made == nullptr) return fail.Fail(WEIR_DATA_LOSS, why);
    *executable = reinterpret_cast<weir_executable*>(made.release());
    return WEIR_OK;
  });
}

int32_t Compat(const weir_compile_target* target, const void* data, uint64_t bytes) noexcept {
  std::string why;
  const std::optional<Level> level = LevelOf(*target, &why);
  return level ? Executable::Compare(SpanOf(data, bytes), *level) : static_cast<int32_t>(WEIR_COMPAT_INCOMPATIBLE);
}

void Key(const weir_compile_target*, void (*emit)(void* ctx, weir_str text), void* ctx) noexcept {
  emit(ctx, sdk::Str(kBuild));
}

constexpr weir_compiler_api kApi = {sizeof(weir_compiler_api),
                                    0,
                                    &ClaimIn,
                                    &Compile,
                                    &IoSpec,
                                    &Execute,
                                    &Destroy,
                                    &Serialize,
                                    &Deserialize,
                                    &Compat,
                                    &Key,
                                    &ClaimLoopIn};

/// A part of WEIR_PLUGIN: the table of compiler/1.
struct Compiler {
  static constexpr uint32_t kKind = WEIR_KIND_COMPILER;
  static const void* Interface(std::string_view id, std::string_view) {
    return id == WEIR_COMPILER_INTERFACE ? &kApi : nullptr;
  }
};

}  // namespace
}  // namespace weir::compiler_llvm

WEIR_PLUGIN("compiler_llvm", WEIR_LLVM_PLUGIN_VERSION, "weir", "cpu", weir::compiler_llvm::Compiler)
