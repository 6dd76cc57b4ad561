// Whether the dynamic linker can load a file without dying: its tables, read without running any of the file's code.
#ifndef WEIR_CORE_PLUGIN_LOADABLE_H_
#define WEIR_CORE_PLUGIN_LOADABLE_H_

#include "core/base/status.h"
#include "core/plugin/note.h"

namespace weir::plugin {

/// The dynamic linker believes what a file says of itself, and a damaged one ends the process by a signal.
/// InvalidArgument "damaged ELF file: …" for a shared library whose program headers, dynamic section or tables
/// (strings, symbols, hashes, versions, relocations, functions to call at load) lead out of the file or of the memory
/// that they are for. Damage to code and data is not found; that takes a trial (`plugins.probe`). For files that
/// ReadNote accepts: 64 bits, little-endian. Time and memory are linear in the size of the tables.
Status CheckLoadable(const ByteSource& file);

}  // namespace weir::plugin

#endif  // WEIR_CORE_PLUGIN_LOADABLE_H_
