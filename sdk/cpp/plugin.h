// The entry point of a plugin: one line in one source file. The example has the device of device.h, the kernel of
// kernel.h and a driver that starts and stops with the plugin.
//
// ```cpp
// struct ToyDriver {
//   static int32_t Start(const Options&, const Error&);  // in `init`; a code other than WEIR_OK refuses the plugin
//   static void Stop();                                  // in `shutdown`, if Start succeeded
// };
// WEIR_PLUGIN("toy", "1.0.0", "Example Ltd", "toy/1", ToyDriver, Devices<ToyDevice>, Kernels<AddClip>)
// ```
//
// Arguments: name, version, vendor, the platforms that the kernels serve ("a;b", empty without kernels), then the
// parts: Devices<Class> (device.h), Kernels<void (*)(KernelTable&)> (kernel.h), or any type. A part may have
//   - `kKind` and `static const void* Interface(std::string_view id, std::string_view targets)`
//   - `static int32_t Start(const Options&, const Error&)` and, if needed, `static void Stop()`
//   - `static std::span<const weir_option_spec* const> Options()`, if it has options. Start gets the values of all
//     options of the plugin; a string option `isa` gets the value of the key plugins.isa
// Parts start in order and stop in reverse order. If a part fails to start, the parts before it are stopped.
#ifndef WEIR_SDK_CPP_PLUGIN_H_
#define WEIR_SDK_CPP_PLUGIN_H_

#include <span>
#include <string_view>
#include <vector>

#include "sdk/abi/plugin.h"
#include "sdk/cpp/kernel.h"
#include "sdk/cpp/options.h"

namespace weir::sdk {

/// "kernels/1" from functions that register kernels.
template <void (*... kAdd)(KernelTable&)>
struct Kernels {
  static constexpr uint32_t kKind = WEIR_KIND_KERNELS;
  static const void* Interface(std::string_view id, std::string_view targets) {
    if (id != WEIR_KERNELS_INTERFACE) return nullptr;
    static KernelTable table(targets);
    static const weir_kernels_api* const api = (kAdd(table), ..., table.Finish());
    return api;
  }
};

namespace internal {

constexpr uint32_t Isa() {
  uint32_t isa = 0;
#if defined(__x86_64__) && defined(__SSE4_2__)
  isa |= WEIR_ISA_X86_64_V2;
#endif
#if defined(__x86_64__) && defined(__AVX2__) && defined(__FMA__)
  isa |= WEIR_ISA_X86_64_V3;
#endif
#if defined(__x86_64__) && defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VL__)
  isa |= WEIR_ISA_X86_64_V4;
#endif
  return isa;
}

constexpr uint32_t Machine() {
#if defined(__aarch64__)
  return WEIR_MACHINE_AARCH64;
#else
  return WEIR_MACHINE_X86_64;
#endif
}

constexpr uint32_t Sanitizer() {
#if defined(WEIR_SANITIZER_KIND)
  return WEIR_SANITIZER_KIND;
#elif defined(__SANITIZE_ADDRESS__)
  return WEIR_SANITIZER_ADDRESS;
#elif defined(__SANITIZE_THREAD__)
  return WEIR_SANITIZER_THREAD;
#else
  return WEIR_SANITIZER_NONE;
#endif
}

template <size_t n>
constexpr void CopyText(char (&to)[n], std::string_view from) {
  for (size_t i = 0; i + 1 < n && i < from.size(); ++i) to[i] = from[i];
}

constexpr weir_note Note(std::string_view name, std::string_view version, std::string_view vendor,
                         std::string_view targets, uint32_t kinds) {
  weir_note note{};
  note.name_size = sizeof WEIR_NOTE_OWNER;
  note.desc_size = sizeof(weir_note_desc);
  note.type = WEIR_NOTE_DESCRIPTION;
  CopyText(note.owner, WEIR_NOTE_OWNER);
  CopyText(note.desc.magic, WEIR_NOTE_MAGIC);
  note.desc.record_format = 1;
  note.desc.abi_major = WEIR_ABI_MAJOR;
  note.desc.built_minor = WEIR_ABI_MINOR;
  note.desc.needs_minor = 0;
  note.desc.kinds = kinds;
  note.desc.machine = Machine();
  note.desc.isa = Isa();
  note.desc.sanitizer = Sanitizer();
  CopyText(note.desc.name, name);
  CopyText(note.desc.version, version);
  CopyText(note.desc.vendor, vendor);
  CopyText(note.desc.targets, targets);
  return note;
}

template <class Part>
const void* InterfaceOf(std::string_view id, std::string_view targets) {
  if constexpr (requires { Part::Interface(id, targets); }) return Part::Interface(id, targets);
  return nullptr;
}

template <class Part>
constexpr uint32_t KindOf() {
  if constexpr (requires { Part::kKind; }) return Part::kKind;
  return 0;
}

/// The plugin's table and functions. `Traits` has the texts, `Parts` are the arguments of WEIR_PLUGIN.
template <class Traits, class... Parts>
struct Entry {
  static const void* GetInterface(weir_str id) noexcept {
    const void* found = nullptr;
    (void)Guard(nullptr, [&] {
      (void)((found = InterfaceOf<Parts>(ToView(id), Traits::kTargets), found != nullptr) || ...);
      return WEIR_OK;
    });
    return found;
  }
  static int32_t Init(const weir_host* host, const weir_opt* options, uint64_t count, weir_error* error) noexcept {
    if (host == nullptr) return Error(error).InvalidArgument("the host table is missing");
    if (HostTable() != nullptr) return Error(error).Fail(WEIR_FAILED_PRECONDITION, "init was called before");
    HostTable() = host;
    const int32_t code = Guard(error, [&] { return StartAll(Options(options, count), Error(error)); });
    if (code != WEIR_OK) Shutdown();
    return code;
  }
  static void Shutdown() noexcept {
    (void)Guard(nullptr, [] {
      while (!Stops().empty()) {
        void (*const stop)() = Stops().back();
        Stops().pop_back();
        stop();
      }
      return WEIR_OK;
    });
  }

  /// Stop functions of the started parts, in the order of their start. Never destroyed: the host may call Shutdown at
  /// exit, after the destructors of this file's objects.
  static std::vector<void (*)()>& Stops() {
    static auto* const stops = new std::vector<void (*)()>;
    return *stops;
  }
  static int32_t StartAll(const Options& options, const Error& error) {
    int32_t code = WEIR_OK;
    const auto start = [&]<class Part>(Part*) {
      if constexpr (requires { Part::Start(options, error); }) {
        code = Part::Start(options, error);
        if constexpr (requires { Part::Stop(); }) {
          if (code == WEIR_OK) Stops().push_back(&Part::Stop);
        }
      }
      return code == WEIR_OK;
    };
    (void)(start(static_cast<Parts*>(nullptr)) && ...);
    return code;
  }

  static const weir_plugin* Query(uint32_t host_major) noexcept {
    if (host_major != WEIR_ABI_MAJOR) return nullptr;
    static const std::vector<const weir_option_spec*> options = [] {
      std::vector<const weir_option_spec*> all;
      const auto collect = [&]<class Part>(Part*) {
        if constexpr (requires { Part::Options(); }) {
          for (const weir_option_spec* spec : Part::Options()) all.push_back(spec);
        }
      };
      (collect(static_cast<Parts*>(nullptr)), ...);
      return all;
    }();
    static const weir_plugin plugin = {
        sizeof(weir_plugin), WEIR_ABI_MINOR, 0,     Str(Traits::kName), Str(Traits::kVersion),
        options.data(),      options.size(), &Init, &Shutdown,          &GetInterface};
    return &plugin;
  }
};

template <class... Parts>
inline constexpr uint32_t kKindsOf = (KindOf<Parts>() | ... | 0u);

}  // namespace internal
}  // namespace weir::sdk

#if defined(__has_attribute)
#if __has_attribute(retain)
#define WEIR_RETAIN , retain
#endif
#endif
#ifndef WEIR_RETAIN
#define WEIR_RETAIN
#endif

// Keeps clang's red zones out of the note section.
#if defined(__clang__)
#define WEIR_PLAIN_LAYOUT __attribute__((no_sanitize("address")))
#else
#define WEIR_PLAIN_LAYOUT
#endif

/// See the top of this file. Use at namespace scope, once per plugin, in a source file.
#define WEIR_PLUGIN(name, version, vendor, targets, ...)                                                         \
  namespace {                                                                                                    \
  struct WeirPluginTraits {                                                                                      \
    static constexpr std::string_view kName = name;                                                              \
    static constexpr std::string_view kVersion = version;                                                        \
    static constexpr std::string_view kTargets = targets;                                                        \
  };                                                                                                             \
  static_assert(sizeof(name) <= 32 && sizeof(version) <= 16 && sizeof(vendor) <= 32 && sizeof(targets) <= 64,    \
                "texts of the plugin's note are too long");                                                      \
  WEIR_PLAIN_LAYOUT __attribute__((section(WEIR_NOTE_SECTION), used WEIR_RETAIN,                                 \
                                   aligned(4))) constinit const weir_note weir_note_record =                     \
      weir::sdk::internal::Note(name, version, vendor, targets, weir::sdk::internal::kKindsOf<__VA_ARGS__>);     \
  }                                                                                                              \
  extern "C" __attribute__((visibility("default"))) const weir_plugin* weir_plugin_query_v1(uint32_t host_major, \
                                                                                            uint32_t) {          \
    return weir::sdk::internal::Entry<WeirPluginTraits, __VA_ARGS__>::Query(host_major);                         \
  }

#endif  // WEIR_SDK_CPP_PLUGIN_H_
