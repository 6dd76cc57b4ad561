// The entry of compiler_nvrtc: the table of compiler/1.
#include "sdk/cpp/plugin.h"

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "plugins/compiler_nvrtc/claim.h"
#include "plugins/compiler_nvrtc/executable.h"
#include "plugins/compiler_nvrtc/libraries.h"
#include "plugins/compiler_nvrtc/prelude.h"
#include "plugins/compiler_nvrtc/source.h"
#include "sdk/cpp/compiler.h"

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

int32_t MakeFrom(Description description, std::unique_ptr<Executable>* made, const sdk::Error& fail) {
  std::string why;
  std::unique_ptr<LoadedKernel> kernel = LoadedKernel::Load(description.ptx, kEntry, &why);
  if (kernel == nullptr) return fail.Unimplemented(why);
  *made = std::make_unique<Executable>(std::move(description), std::move(kernel));
  return WEIR_OK;
}

/// See sdk/cpp/compiler.h.
struct CardCompiler {
  using Executable = compiler_nvrtc::Executable;

  static int32_t Claim(const weir_compile_target& target, const weir_region& candidate, const sdk::ClaimSink& sink) {
    std::string why;
    if (!Serves(target, &why)) return WEIR_OK;
    for (const compiler_nvrtc::Claim& claim : ClaimNodes(candidate, target.profile)) {
      sink.Propose(claim.nodes, {.predicted_ns = claim.predicted_ns, .compile_ns = kCompileNs, .reason = claim.reason});
    }
    return WEIR_OK;
  }
  static int32_t Compile(const sdk::CompileCall& call, std::unique_ptr<Executable>* made) {
    std::string why, ptx;
    if (!Serves(call.target, &why)) return call.error.Unimplemented(why);
    const std::optional<std::string> source = SourceOf(call.region, kEntry, &why);
    if (!source) return call.error.Unimplemented(why);
    if (!CompileToPtx(std::string(kDevicePrelude) + kPrelude + *source, &ptx, &why)) {
      return call.error.Unimplemented(why);
    }
    if (call.Cancelled()) return call.error.Fail(WEIR_CANCELLED, "cancelled");
    return MakeFrom(Description::Of(call.region, std::move(ptx)), made, call.error);
  }
  static std::string Key(const weir_compile_target&) { return BuildText(); }
  static int32_t Compare(const weir_compile_target& target, std::span<const uint8_t> bytes) {
    std::string why;
    return Serves(target, &why) ? Description::Compare(bytes) : static_cast<int32_t>(WEIR_COMPAT_INCOMPATIBLE);
  }
  static int32_t Load(const weir_compile_target& target, std::span<const uint8_t> bytes, const sdk::Error& error,
                      std::unique_ptr<Executable>* made) {
    std::string why;
    Description description;
    if (!Serves(target, &why)) return error.Unimplemented(why);
    if (!Description::FromBytes(bytes, &description, &why)) return error.Fail(WEIR_DATA_LOSS, why);
    return MakeFrom(std::move(description), made, error);
  }
};

}  // namespace
}  // namespace weir::compiler_nvrtc

WEIR_PLUGIN("compiler_nvrtc", "0.1.0", "weir", "cuda/13", weir::sdk::Compiler<weir::compiler_nvrtc::CardCompiler>)
