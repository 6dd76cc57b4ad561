// Whether a plugin file fits this process, judged by its note alone.
#ifndef WEIR_CORE_PLUGIN_COMPATIBLE_H_
#define WEIR_CORE_PLUGIN_COMPATIBLE_H_

#include <cstdint>
#include <string_view>

#include "core/base/status.h"
#include "core/plugin/note.h"

namespace weir::plugin {

/// What the process can run.
struct HostTraits {
  uint32_t abi_major = WEIR_ABI_MAJOR;
  uint32_t abi_minor = WEIR_ABI_MINOR;
  uint32_t machine = 0;
  uint32_t isa = 0;      // WEIR_ISA_* bits that the process may use
  uint32_t cpu_isa = 0;  // those that the CPU and the operating system have
  uint32_t sanitizer = WEIR_SANITIZER_NONE;

  /// This process on this machine, which may use instruction sets up to `isa` (`plugins.isa`; "auto": all).
  static HostTraits Current(std::string_view isa = "auto");
};

/// FailedPrecondition saying what the file needs and what the host has: machine, ABI major, needed minor,
/// must-understand bits, sanitizer, bits of instruction sets that nobody knows.
Status CheckCompatible(const PluginNote& note, const HostTraits& host);
/// FailedPrecondition saying which level of x86-64 the file needs and which the process may use.
Status CheckIsa(const PluginNote& note, const HostTraits& host);

/// The WEIR_ISA_* bits up to a level that a user names, "x86-64" to "x86-64-v4"; all of them for any other text.
uint32_t IsaUpTo(std::string_view level);

/// 0 for a plain build, 2 to 4 for x86-64-v2 to v4.
int IsaLevel(uint32_t isa);

}  // namespace weir::plugin

#endif  // WEIR_CORE_PLUGIN_COMPATIBLE_H_
