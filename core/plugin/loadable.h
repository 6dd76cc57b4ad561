// Checks that the dynamic linker can load a file without crashing, without running its code.
#ifndef WEIR_CORE_PLUGIN_LOADABLE_H_
#define WEIR_CORE_PLUGIN_LOADABLE_H_

#include "core/base/status.h"
#include "core/plugin/note.h"

namespace weir::plugin {

/// The dynamic linker trusts the contents of a file, so a damaged one kills the process by a signal. InvalidArgument
/// "damaged ELF file: …" for a shared library whose program headers, dynamic section or tables (strings, symbols,
/// hashes, versions, relocations, functions called on load) point outside the file or the valid memory. Does not detect
/// damaged code and data; `plugins.probe` does. For files accepted by ReadNote: 64 bits, little-endian. Time and memory
/// are linear in the size of the tables.
Status CheckLoadable(const ByteSource& file);

}  // namespace weir::plugin

#endif  // WEIR_CORE_PLUGIN_LOADABLE_H_
