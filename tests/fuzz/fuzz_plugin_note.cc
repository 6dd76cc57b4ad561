// Any bytes as a plugin file: a note or an error, without running or mapping anything.
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/plugin/note.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  (void)weir::plugin::ReadNote(weir::plugin::MemorySource(bytes));
  weir::plugin::NoteRecords records;
  (void)weir::plugin::ParseNoteSegment(bytes, size % 2 == 0 ? 4 : 8, records);
  return 0;
}
