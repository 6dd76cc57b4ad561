// Whether a plugin file fits this process, judged by its note alone.
#ifndef WEIR_CORE_PLUGIN_COMPATIBLE_H_
#define WEIR_CORE_PLUGIN_COMPATIBLE_H_

#include <cstdint>

#include "core/base/status.h"
#include "core/plugin/note.h"

namespace weir::plugin {

/// What the process can run.
struct HostTraits {
  uint32_t abi_major = WEIR_ABI_MAJOR;
  uint32_t abi_minor = WEIR_ABI_MINOR;
  uint32_t machine = 0;
  uint32_t isa = 0;  // WEIR_ISA_* bits that the CPU and the operating system have
  uint32_t sanitizer = WEIR_SANITIZER_NONE;

  /// This process on this machine.
  static HostTraits Current();
};

/// FailedPrecondition saying what the file needs and what the host has: machine, ABI major, needed minor,
/// must-understand bits, sanitizer, instruction set.
Status CheckCompatible(const PluginNote& note, const HostTraits& host);

/// 0 for a plain build, 2 to 4 for x86-64-v2 to v4.
int IsaLevel(uint32_t isa);

}  // namespace weir::plugin

#endif  // WEIR_CORE_PLUGIN_COMPATIBLE_H_
