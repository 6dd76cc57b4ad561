// Checks whether a plugin file is compatible with this process, using only its note.
#ifndef WEIR_CORE_PLUGIN_COMPATIBLE_H_
#define WEIR_CORE_PLUGIN_COMPATIBLE_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/status.h"
#include "core/plugin/note.h"

namespace weir::plugin {

/// The capabilities of the process.
struct HostTraits {
  uint32_t abi_major = WEIR_ABI_MAJOR;
  uint32_t abi_minor = WEIR_ABI_MINOR;
  uint32_t machine = 0;
  uint32_t isa = 0;      // WEIR_ISA_* bits that the process may use
  uint32_t cpu_isa = 0;  // those supported by the CPU and the operating system
  uint32_t sanitizer = WEIR_SANITIZER_NONE;

  /// The traits of this process on this machine, limited to instruction sets up to `isa` (`plugins.isa`; "auto": all).
  static HostTraits Current(std::string_view isa = "auto");
};

/// Checks machine, ABI major, needed minor, must-understand bits, sanitizer, and unknown instruction-set bits.
/// FailedPrecondition states the requirement and the host's value.
Status CheckCompatible(const PluginNote& note, const HostTraits& host);
/// FailedPrecondition states the x86-64 level that the file needs and the level that the process may use.
Status CheckIsa(const PluginNote& note, const HostTraits& host);

/// The WEIR_ISA_* bits up to a named level, "x86-64" to "x86-64-v4"; all bits for any other text.
uint32_t IsaUpTo(std::string_view level);

/// The widest level that a process limited to `isa` may use on this machine: "x86-64" to "x86-64-v4".
std::string IsaText(std::string_view isa);

/// 0 for a baseline build, 2 to 4 for x86-64-v2 to v4.
int IsaLevel(uint32_t isa);

}  // namespace weir::plugin

#endif  // WEIR_CORE_PLUGIN_COMPATIBLE_H_
