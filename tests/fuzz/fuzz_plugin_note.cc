// Fuzzes the note scanner: as a whole file, as one note segment, and as the notes of an intact ELF file.
#include <cstdint>
#include <string>

#include "core/plugin/note.h"
#include "tests/unit/plugin/elf_image.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace weir::plugin;
  if (size == 0) return 0;
  const std::string bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  const uint64_t alignment = (data[0] & 4) != 0 ? 8 : 4;
  switch (data[0] & 3) {
    case 0: {
      static_cast<void>(ReadNote(MemorySource(AsBytes(bytes))).ok());
      break;
    }
    case 1: {
      NoteRecords records;
      static_cast<void>(ParseNoteSegment(AsBytes(bytes), alignment, records).ok());
      break;
    }
    case 2: {
      static_cast<void>(ReadNote(MemorySource(AsBytes(ElfImage({{bytes, PT_NOTE, alignment}})))).ok());
      break;
    }
    default: {
      // A valid note with bytes changed by the input: pairs of position and value.
      std::string image = ElfImage({{NoteRecord(kOwner, WEIR_NOTE_DESCRIPTION, DescBytes(GoodDesc())) + UseRecord(1)}});
      for (size_t i = 0; i + 2 < bytes.size(); i += 3) {
        const size_t at = static_cast<uint8_t>(bytes[i]) * 256u + static_cast<uint8_t>(bytes[i + 1]);
        image[at % image.size()] = bytes[i + 2];
      }
      static_cast<void>(ReadNote(MemorySource(AsBytes(image))).ok());
    }
  }
  return 0;
}
