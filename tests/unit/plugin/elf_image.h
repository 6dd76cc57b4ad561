// Small ELF files in memory, for the tests and seeds of the note scanner.
#ifndef WEIR_TESTS_UNIT_PLUGIN_ELF_IMAGE_H_
#define WEIR_TESTS_UNIT_PLUGIN_ELF_IMAGE_H_

#include <elf.h>

#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sdk/abi/plugin.h"

namespace weir::plugin {

/// Bytes of one note record, padded to `pad`.
inline std::string NoteRecord(std::string_view owner_with_nul, uint32_t type, std::string_view desc, size_t pad = 4) {
  const uint32_t header[3] = {static_cast<uint32_t>(owner_with_nul.size()), static_cast<uint32_t>(desc.size()), type};
  std::string record(reinterpret_cast<const char*>(header), sizeof(header));
  record += owner_with_nul;
  while (record.size() % pad != 0) record += '\0';
  record += desc;
  while (record.size() % pad != 0) record += '\0';
  return record;
}

inline constexpr std::string_view kOwner("weir\0", 5);

/// A description that fits this ABI.
inline weir_note_desc GoodDesc() {
  weir_note_desc desc{};
  std::memcpy(desc.magic, WEIR_NOTE_MAGIC, sizeof(WEIR_NOTE_MAGIC));
  desc.record_format = 1;
  desc.abi_major = WEIR_ABI_MAJOR;
  desc.built_minor = 3;
  desc.needs_minor = 1;
  desc.kinds = WEIR_KIND_KERNELS;
  desc.machine = WEIR_MACHINE_X86_64;
  std::strcpy(desc.name, "toy");
  std::strcpy(desc.version, "1.2.3");
  std::strcpy(desc.vendor, "Example Ltd");
  std::strcpy(desc.targets, "cuda/12;;cuda/13;");
  return desc;
}

inline std::string DescBytes(const weir_note_desc& desc) {
  return {reinterpret_cast<const char*>(&desc), sizeof(desc)};
}
inline std::string UseRecord(uint32_t minor) {
  return NoteRecord(kOwner, WEIR_NOTE_USES_MINOR, {reinterpret_cast<const char*>(&minor), sizeof(minor)});
}

/// A segment of the image.
struct Segment {
  std::string bytes;
  uint32_t type = PT_NOTE;
  uint64_t alignment = 4;
};

/// A shared library that consists of its header, program headers and segments.
inline std::string ElfImage(const std::vector<Segment>& segments) {
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = ET_DYN;
  header.e_machine = EM_X86_64;
  header.e_version = EV_CURRENT;
  header.e_phoff = sizeof(header);
  header.e_phentsize = sizeof(Elf64_Phdr);
  header.e_phnum = static_cast<uint16_t>(segments.size());
  std::string image(reinterpret_cast<const char*>(&header), sizeof(header));
  uint64_t at = sizeof(header) + segments.size() * sizeof(Elf64_Phdr);
  for (const Segment& segment : segments) {
    Elf64_Phdr program{};
    program.p_type = segment.type;
    program.p_offset = at;
    program.p_filesz = program.p_memsz = segment.bytes.size();
    program.p_align = segment.alignment;
    image.append(reinterpret_cast<const char*>(&program), sizeof(program));
    at += segment.bytes.size();
  }
  for (const Segment& segment : segments) image += segment.bytes;
  return image;
}

inline std::span<const std::byte> AsBytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

}  // namespace weir::plugin

#endif  // WEIR_TESTS_UNIT_PLUGIN_ELF_IMAGE_H_
