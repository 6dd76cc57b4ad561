// The table of compiler/1 over a class, which WEIR_PLUGIN takes as `Compiler<Fuser>`:
//
// ```cpp
// struct FusedCode {  // an executable; Run is called by several threads at once
//   void FillSpec(weir_executable_spec* spec) const;
//   int32_t Run(const weir_reg* regs, const weir_env* env) const;  // or void
//   std::string Serialize() const;                                 // if the compiler has Key
// };
// struct Fuser {
//   using Executable = FusedCode;
//   static int32_t Claim(const weir_compile_target& target, const weir_region& candidate, const ClaimSink& sink) {
//     static constexpr uint32_t kBoth[] = {0, 1};
//     if (ToView(target.platform) == "cpu" && candidate.node_count == 2) sink.Propose(kBoth, {.predicted_ns = 200});
//     return WEIR_OK;
//   }
//   static int32_t Compile(const CompileCall& call, std::unique_ptr<FusedCode>* made);
//   static int32_t ClaimLoop(const weir_compile_target&, const weir_region&, const ClaimSink&);  // default: no loops
//   // With all of these, executables are kept between processes; default: none is.
//   static std::string Key(const weir_compile_target&);
//   static int32_t Compare(const weir_compile_target&, std::span<const uint8_t> bytes);  // WEIR_COMPAT_*
//   static int32_t Load(const weir_compile_target&, std::span<const uint8_t> bytes, const Error&,
//                       std::unique_ptr<FusedCode>* made);
// };
// ```
//
// The functions are static and may throw: an exception becomes an error. Run must not throw. Executables are destroyed
// by delete.
#ifndef WEIR_SDK_CPP_COMPILER_H_
#define WEIR_SDK_CPP_COMPILER_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "sdk/abi/compiler.h"
#include "sdk/abi/plugin.h"
#include "sdk/cpp/status.h"

namespace weir::sdk {

/// What is said of a proposal beside its nodes. Times are in nanoseconds; `reason` may be empty.
struct ClaimFacts {
  double predicted_ns = 0;  // of one execution on one thread; of a loop, of an iteration
  double compile_ns = 0;
  uint64_t scratch_bytes = 0;
  std::string_view reason = {};
};

/// Where a compiler puts its proposals. Lives for the call.
class ClaimSink {
 public:
  ClaimSink(void (*emit)(void* ctx, const weir_claim* claim), void* ctx) : emit_(emit), ctx_(ctx) {}
  /// `nodes`: numbers of nodes, ascending. They and the facts are borrowed for the call.
  void Propose(std::span<const uint32_t> nodes, const ClaimFacts& facts) const {
    weir_claim record{};
    record.struct_size = sizeof record;
    record.node_count = static_cast<uint32_t>(nodes.size());
    record.nodes = nodes.data();
    record.predicted_ns = facts.predicted_ns;
    record.compile_ns = facts.compile_ns;
    record.scratch_bytes = facts.scratch_bytes;
    record.reason = Str(facts.reason);
    emit_(ctx_, &record);
  }

 private:
  void (*emit_)(void* ctx, const weir_claim* claim);
  void* ctx_;
};

/// The arguments of a compilation, borrowed for the call.
struct CompileCall {
  const weir_compile_target& target;
  const weir_region& region;
  const weir_compile_options* options;  // may be null
  const weir_cancel* cancel;            // may be null
  const Error& error;

  bool Cancelled() const { return cancel != nullptr && cancel->cancelled != nullptr && cancel->cancelled(cancel) != 0; }
};

/// A part of WEIR_PLUGIN: the table of compiler/1 over class C.
template <class C>
struct Compiler {
  static constexpr uint32_t kKind = WEIR_KIND_COMPILER;
  static const void* Interface(std::string_view id, std::string_view) {
    return id == WEIR_COMPILER_INTERFACE ? &kTable : nullptr;
  }

 private:
  using Executable = typename C::Executable;
  static constexpr bool kHasLoops = requires { &C::ClaimLoop; };
  static constexpr bool kKeeps = requires { &C::Key; };

  static Executable& Of(weir_executable* executable) { return *reinterpret_cast<Executable*>(executable); }
  static const Executable& Of(const weir_executable* executable) {
    return *reinterpret_cast<const Executable*>(executable);
  }
  static std::span<const uint8_t> SpanOf(const void* data, uint64_t bytes) {
    return {static_cast<const uint8_t*>(data), data == nullptr ? 0 : static_cast<size_t>(bytes)};
  }
  static int32_t Give(int32_t code, std::unique_ptr<Executable> made, weir_executable** executable) {
    if (code == WEIR_OK) *executable = reinterpret_cast<weir_executable*>(made.release());
    return code;
  }

  static int32_t Claim(const weir_compile_target* target, const weir_region* candidate,
                       void (*emit)(void* ctx, const weir_claim* claim), void* ctx, weir_error* error) noexcept {
    return Guard(error, [&]() -> int32_t { return C::Claim(*target, *candidate, ClaimSink(emit, ctx)); });
  }
  static int32_t ClaimLoop(const weir_compile_target* target, const weir_region* candidate,
                           void (*emit)(void* ctx, const weir_claim* claim), void* ctx, weir_error* error) noexcept {
    return Guard(error, [&]() -> int32_t {
      if constexpr (kHasLoops) return C::ClaimLoop(*target, *candidate, ClaimSink(emit, ctx));
      return WEIR_OK;
    });
  }
  static int32_t Compile(const weir_compile_target* target, const weir_region* region,
                         const weir_compile_options* options, const weir_cancel* cancel, weir_executable** executable,
                         weir_error* error) noexcept {
    return Guard(error, [&]() -> int32_t {
      const Error fail(error);
      std::unique_ptr<Executable> made;
      const int32_t code = C::Compile(CompileCall{*target, *region, options, cancel, fail}, &made);
      return Give(code, std::move(made), executable);
    });
  }
  static int32_t IoSpec(const weir_executable* executable, weir_executable_spec* spec, weir_error*) noexcept {
    Of(executable).FillSpec(spec);
    return WEIR_OK;
  }
  static int32_t Execute(void* state, const weir_reg* regs, const weir_env* env) noexcept {
    const auto& executable = *static_cast<const Executable*>(state);
    if constexpr (std::is_void_v<decltype(executable.Run(regs, env))>) {
      executable.Run(regs, env);
      return WEIR_OK;
    } else {
      return executable.Run(regs, env);
    }
  }
  static void Destroy(weir_executable* executable) noexcept { delete &Of(executable); }

  static int32_t Serialize(const weir_executable* executable,
                           int32_t (*sink)(void* ctx, const void* data, uint64_t bytes), void* ctx,
                           weir_error* error) noexcept {
    return Guard(error, [&]() -> int32_t {
      if constexpr (kKeeps) {
        const std::string bytes = Of(executable).Serialize();
        return sink(ctx, bytes.data(), bytes.size());
      }
      return WEIR_UNIMPLEMENTED;
    });
  }
  static int32_t Deserialize(const weir_compile_target* target, const void* data, uint64_t bytes,
                             weir_executable** executable, weir_error* error) noexcept {
    return Guard(error, [&]() -> int32_t {
      if constexpr (kKeeps) {
        const Error fail(error);
        std::unique_ptr<Executable> made;
        const int32_t code = C::Load(*target, SpanOf(data, bytes), fail, &made);
        return Give(code, std::move(made), executable);
      }
      return WEIR_UNIMPLEMENTED;
    });
  }
  static int32_t Compat(const weir_compile_target* target, const void* data, uint64_t bytes) noexcept {
    int32_t compat = WEIR_COMPAT_INCOMPATIBLE;
    (void)Guard(nullptr, [&]() -> int32_t {
      if constexpr (kKeeps) compat = C::Compare(*target, SpanOf(data, bytes));
      return WEIR_OK;
    });
    return compat;
  }
  static void Key(const weir_compile_target* target, void (*emit)(void* ctx, weir_str text), void* ctx) noexcept {
    (void)Guard(nullptr, [&]() -> int32_t {
      if constexpr (kKeeps) {
        const std::string text = C::Key(*target);
        emit(ctx, Str(text));
      }
      return WEIR_OK;
    });
  }

  static constexpr weir_compiler_api kTable = {sizeof(weir_compiler_api),
                                               0,
                                               &Claim,
                                               &Compile,
                                               &IoSpec,
                                               &Execute,
                                               &Destroy,
                                               kKeeps ? &Serialize : nullptr,
                                               kKeeps ? &Deserialize : nullptr,
                                               kKeeps ? &Compat : nullptr,
                                               kKeeps ? &Key : nullptr,
                                               kHasLoops ? &ClaimLoop : nullptr};
};

}  // namespace weir::sdk

#endif  // WEIR_SDK_CPP_COMPILER_H_
