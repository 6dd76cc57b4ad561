// The entry of compiler_nvrtc: the table of compiler/1.
#include "sdk/cpp/plugin.h"

#include <string_view>

#include "plugins/compiler_nvrtc/claim.h"
#include "plugins/compiler_nvrtc/executable.h"
#include "plugins/compiler_nvrtc/libraries.h"
#include "plugins/compiler_nvrtc/prelude.h"
#include "plugins/compiler_nvrtc/source.h"
#include "sdk/abi/compiler.h"
#include "sdk/cpp/status.h"

namespace weir::compiler_nvrtc {
namespace {

constexpr std::string_view kPlatform = "cuda/13";
constexpr double kCompileNs = 60e6;

/// Whether the target is a card of the plugin `cuda` and its driver is there.
bool Serves(const weir_compile_target& target, std::string* why) {
  if (sdk::ToView(target.platform) == kPlatform) return HasDriver(why);
  *why = "no code for platform '" + std::string(sdk::ToView(target.platform)) + "'";
  return false;
}

int32_t ClaimIn(const weir_compile_target* target, const weir_region* candidate,
                void (*emit)(void* ctx, const weir_claim* claim), void* ctx, weir_error* error) noexcept {
  return sdk::Guard(error, [&]() -> int32_t {
    std::string why;
    if (!Serves(*target, &why)) return WEIR_OK;
    for (const Claim& claim : ClaimNodes(*candidate, target->profile)) {
      weir_claim record{};
      record.struct_size = sizeof record;
      record.node_count = static_cast<uint32_t>(claim.nodes.size());
      record.nodes = claim.nodes.data();
      record.predicted_ns = claim.predicted_ns;
      record.compile_ns = kCompileNs;
      record.reason = sdk::Str(claim.reason);
      emit(ctx, &record);
    }
    return WEIR_OK;
  });
}

int32_t MakeFrom(Description description, weir_executable** executable, const sdk::Error& fail) {
  std::string why;
  std::unique_ptr<LoadedKernel> kernel = LoadedKernel::Load(description.ptx, kEntry, &why);
  if (kernel == nullptr) return fail.Unimplemented(why);
  auto made = std::make_unique<Executable>(std::move(description), std::move(kernel));
  *executable = reinterpret_cast<weir_executable*>(made.release());
  return WEIR_OK;
}

int32_t Compile(const weir_compile_target* target, const weir_region* region, const weir_compile_options*,
                const weir_cancel* cancel, weir_executable** executable, weir_error* error) noexcept {
  return sdk::Guard(error, [&]() -> int32_t {
    const sdk::Error fail(error);
    std::string why, ptx;
    if (!Serves(*target, &why)) return fail.Unimplemented(why);
    const std::optional<std::string> source = SourceOf(*region, kEntry, &why);
    if (!source) return fail.Unimplemented(why);
    if (!CompileToPtx(std::string(kDevicePrelude) + kPrelude + *source, &ptx, &why)) return fail.Unimplemented(why);
    if (cancel != nullptr && cancel->cancelled != nullptr && cancel->cancelled(cancel) != 0) {
      return fail.Fail(WEIR_CANCELLED, "cancelled");
    }
    return MakeFrom(Description::Of(*region, std::move(ptx)), executable, fail);
  });
}

const Executable& Of(const weir_executable* executable) { return *reinterpret_cast<const Executable*>(executable); }

int32_t IoSpec(const weir_executable* executable, weir_executable_spec* spec, weir_error*) noexcept {
  Of(executable).FillSpec(spec);
  return WEIR_OK;
}

int32_t Execute(void* state, const weir_reg* regs, const weir_env* env) noexcept {
  return static_cast<const Executable*>(state)->Run(regs, env);
}

void Destroy(weir_executable* executable) noexcept { delete reinterpret_cast<Executable*>(executable); }

int32_t Serialize(const weir_executable* executable, int32_t (*sink)(void* ctx, const void* data, uint64_t bytes),
                  void* ctx, weir_error* error) noexcept {
  return sdk::Guard(error, [&]() -> int32_t {
    const std::string bytes = Of(executable).description().ToBytes();
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
    Description description;
    if (!Serves(*target, &why)) return fail.Unimplemented(why);
    if (!Description::FromBytes(SpanOf(data, bytes), &description, &why)) return fail.Fail(WEIR_DATA_LOSS, why);
    return MakeFrom(std::move(description), executable, fail);
  });
}

int32_t Compat(const weir_compile_target* target, const void* data, uint64_t bytes) noexcept {
  int32_t compat = WEIR_COMPAT_INCOMPATIBLE;
  (void)sdk::Guard(nullptr, [&]() -> int32_t {
    std::string why;
    if (Serves(*target, &why)) compat = Description::Compare(SpanOf(data, bytes));
    return WEIR_OK;
  });
  return compat;
}

void Key(const weir_compile_target*, void (*emit)(void* ctx, weir_str text), void* ctx) noexcept {
  (void)sdk::Guard(nullptr, [&]() -> int32_t {
    emit(ctx, sdk::Str(BuildText()));
    return WEIR_OK;
  });
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
                                    nullptr};

/// A part of WEIR_PLUGIN: the table of compiler/1.
struct Compiler {
  static constexpr uint32_t kKind = WEIR_KIND_COMPILER;
  static const void* Interface(std::string_view id, std::string_view) {
    return id == WEIR_COMPILER_INTERFACE ? &kApi : nullptr;
  }
};

}  // namespace
}  // namespace weir::compiler_nvrtc

WEIR_PLUGIN("compiler_nvrtc", "0.1.0", "weir", "cuda/13", weir::compiler_nvrtc::Compiler)
