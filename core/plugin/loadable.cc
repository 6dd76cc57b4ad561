#include "core/plugin/loadable.h"

#include <algorithm>
#include <bit>
#include <optional>

#include "core/plugin/elf_memory_internal.h"

namespace weir::plugin {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kMostMemory = uint64_t{1} << 38;        // limit for one library
constexpr uint64_t kMostThreadMemory = uint64_t{1} << 26;  // above this the dynamic linker aborts the process
constexpr uint64_t kMostTags = 4096;

uint64_t PageOf(uint64_t address) { return address / kPage * kPage; }

bool Contains(const Elf64_Phdr& load, uint64_t size, uint64_t address, uint64_t bytes) {
  return address >= load.p_vaddr && address - load.p_vaddr <= size && bytes <= size - (address - load.p_vaddr);
}

/// Checks one loadable segment.
Status CheckLoad(const Elf64_Phdr& load, uint64_t file_size) {
  if (load.p_memsz < load.p_filesz || load.p_memsz > kMostMemory || load.p_vaddr > kMostMemory) {
    return Damaged("a segment at {:#x} has {} bytes of memory for {} of the file", load.p_vaddr, load.p_memsz,
                   load.p_filesz);
  }
  if (load.p_offset > file_size || load.p_filesz > file_size - load.p_offset) {
    return Damaged("a segment lies outside its {} bytes", file_size);
  }
  if (!std::has_single_bit(std::max<uint64_t>(load.p_align, 1)) || load.p_align > kMostMemory ||
      load.p_vaddr % std::max(load.p_align, kPage) != load.p_offset % std::max(load.p_align, kPage)) {
    return Damaged("a segment at {:#x} is aligned to {} bytes but lies at byte {}", load.p_vaddr, load.p_align,
                   load.p_offset);
  }
  if ((load.p_flags & PF_R) == 0) return Damaged("a segment at {:#x} cannot be read", load.p_vaddr);
  return {};
}

/// Checks a part of a segment with its own program header: notes, thread-local data, exception tables.
Status CheckPart(const Elf64_Phdr& part, const ElfMemory& memory) {
  if (part.p_memsz == 0 && part.p_filesz == 0) return {};
  if (!std::has_single_bit(std::max<uint64_t>(part.p_align, 1)) || part.p_filesz > part.p_memsz) {
    return Damaged("program header {:#x} has {} bytes of memory for {} of the file, aligned to {}", part.p_type,
                   part.p_memsz, part.p_filesz, part.p_align);
  }
  const uint64_t backed = part.p_type == PT_TLS ? part.p_filesz : part.p_memsz;  // thread-local data may end in zeros
  const bool only_zeros = part.p_type == PT_TLS && part.p_filesz == 0;  // nothing in the file, so any offset is valid
  if (!only_zeros && (!memory.Backed(part.p_vaddr, backed) || memory.OffsetOf(part.p_vaddr) != part.p_offset)) {
    return Damaged("program header {:#x} points to {:#x}, outside the loaded segments", part.p_type, part.p_vaddr);
  }
  if (part.p_type == PT_TLS && (part.p_memsz > kMostThreadMemory || part.p_align > kMostThreadMemory)) {
    return Damaged("{} bytes of thread-local data, at most {} are loaded", part.p_memsz, kMostThreadMemory);
  }
  return {};
}

/// The dynamic linker reads notes aligned to 8 bytes.
Status CheckNotes(const Elf64_Phdr& notes, const ElfMemory& memory) {
  if (notes.p_align != 8) return {};
  for (uint64_t at = 0; notes.p_memsz - at >= sizeof(Elf64_Nhdr);) {
    WEIR_ASSIGN(const auto note, memory.Read<Elf64_Nhdr>(notes.p_vaddr + at, sizeof(Elf64_Nhdr), "a note"));
    const uint64_t name = (uint64_t{note[0].n_namesz} + 3) / 4 * 4, desc = uint64_t{note[0].n_descsz};
    const uint64_t bytes = (sizeof(Elf64_Nhdr) + name + desc + 7) / 8 * 8;
    if (sizeof(Elf64_Nhdr) + name + desc > notes.p_memsz - at) return Damaged("a note overruns its segment");
    at += std::min(bytes, notes.p_memsz - at);
  }
  return {};
}

/// The dynamic linker write-protects all its pages; the last one may be partly filled by the segment. It ignores the
/// other fields, which linkers fill arbitrarily.
Status CheckRelro(const Elf64_Phdr& relro, const ElfMemory& memory) {
  if (relro.p_vaddr > kMostMemory || relro.p_memsz > kMostMemory) {
    return Damaged("{} bytes of read-only memory at {:#x}", relro.p_memsz, relro.p_vaddr);
  }
  const uint64_t end = PageOf(relro.p_vaddr + relro.p_memsz);  // both below kMostMemory
  if (end <= relro.p_vaddr) return {};
  const uint64_t last_page = std::max(end - kPage, relro.p_vaddr);
  if (memory.Mapped(relro.p_vaddr, last_page + 1 - relro.p_vaddr, PF_R | PF_W)) return {};
  return Damaged("its read-only part at {:#x} exceeds its writable memory", relro.p_vaddr);
}

Result<std::vector<Elf64_Phdr>> ReadPrograms(const ByteSource& file) {
  Elf64_Ehdr header;
  WEIR_ASSIGN(const size_t got, file.ReadAt(0, std::as_writable_bytes(std::span(&header, 1))));
  if (got != sizeof(header)) return Damaged("its header is truncated");
  std::vector<Elf64_Phdr> programs(header.e_phnum);
  const auto bytes = std::as_writable_bytes(std::span(programs));
  WEIR_ASSIGN(const size_t read, file.ReadAt(header.e_phoff, bytes));
  if (read != bytes.size()) return Damaged("its program headers are truncated");
  return programs;
}

/// Reads up to the end mark; the dynamic linker ignores the rest.
Result<DynamicTags> ReadTags(const Elf64_Phdr& dynamic, const ElfMemory& memory) {
  // The dynamic linker writes addresses to a section that is marked writable.
  if ((dynamic.p_flags & PF_W) != 0 && !memory.Mapped(dynamic.p_vaddr, dynamic.p_memsz, PF_R | PF_W)) {
    return Damaged("its dynamic section cannot be written");
  }
  if (dynamic.p_vaddr % alignof(Elf64_Dyn) != 0) return Damaged("its dynamic section is not aligned");
  const uint64_t most = std::min<uint64_t>(dynamic.p_memsz, kMostTags * sizeof(Elf64_Dyn));
  WEIR_ASSIGN(std::vector<Elf64_Dyn> entries, memory.Read<Elf64_Dyn>(dynamic.p_vaddr, most, "its dynamic section"));
  const auto end = std::find_if(entries.begin(), entries.end(), [](const Elf64_Dyn& d) { return d.d_tag == DT_NULL; });
  if (end == entries.end()) return Damaged("its dynamic section has no end mark");
  entries.erase(end, entries.end());
  return DynamicTags(std::move(entries));
}

}  // namespace

Result<ElfMemory> ElfMemory::Of(const ByteSource& file, const std::vector<Elf64_Phdr>& programs) {
  ElfMemory memory(file);
  uint64_t file_end = 0;
  for (const Elf64_Phdr& program : programs) {
    if (program.p_type != PT_LOAD) continue;
    WEIR_TRY(CheckLoad(program, file.size()));
    if (PageOf(program.p_vaddr) < memory.end_ || program.p_offset < file_end) {
      return Damaged("segments overlap at {:#x}", program.p_vaddr);
    }
    file_end = program.p_offset + program.p_filesz;
    memory.end_ = program.p_vaddr + program.p_memsz;
    memory.loads_.push_back(program);
  }
  if (memory.loads_.empty()) return Damaged("no segment is loaded");
  if (memory.end_ > kMostMemory) return Damaged("{} bytes of memory", memory.end_);
  return memory;
}

const Elf64_Phdr* ElfMemory::Find(uint64_t address) const {
  const auto after = std::upper_bound(loads_.begin(), loads_.end(), address,
                                      [](uint64_t at, const Elf64_Phdr& load) { return at < load.p_vaddr; });
  return after == loads_.begin() ? nullptr : &*std::prev(after);
}

bool ElfMemory::Backed(uint64_t address, uint64_t bytes, uint32_t flags) const {
  const Elf64_Phdr* load = Find(address);
  return load != nullptr && (load->p_flags & flags) == flags && Contains(*load, load->p_filesz, address, bytes);
}

bool ElfMemory::Mapped(uint64_t address, uint64_t bytes, uint32_t flags) const {
  const Elf64_Phdr* load = Find(address);
  return load != nullptr && (load->p_flags & flags) == flags && Contains(*load, load->p_memsz, address, bytes);
}

std::pair<uint64_t, uint64_t> ElfMemory::SegmentOf(uint64_t address, uint32_t flags) const {
  const Elf64_Phdr* load = Find(address);
  if (load == nullptr || (load->p_flags & flags) != flags) return {};
  return {load->p_vaddr, load->p_vaddr + load->p_memsz};
}

uint64_t ElfMemory::OffsetOf(uint64_t address) const {
  const Elf64_Phdr* load = Find(address);
  return load->p_offset + (address - load->p_vaddr);
}

const Elf64_Dyn* DynamicTags::Find(int64_t tag) const {
  const auto last = std::find_if(entries_.rbegin(), entries_.rend(), [&](const auto& d) { return d.d_tag == tag; });
  return last == entries_.rend() ? nullptr : &*last;
}

Status CheckLoadable(const ByteSource& file) {
  WEIR_ASSIGN(const std::vector<Elf64_Phdr> programs, ReadPrograms(file));
  WEIR_ASSIGN(const ElfMemory memory, ElfMemory::Of(file, programs));
  std::optional<Elf64_Phdr> dynamic, tls;
  for (const Elf64_Phdr& program : programs) {
    switch (program.p_type) {
      case PT_DYNAMIC:
        if (dynamic) return Damaged("two dynamic sections");
        dynamic = program;
        WEIR_TRY(CheckPart(program, memory));
        break;
      case PT_TLS:
        if (tls) return Damaged("two sections of thread-local data");
        tls = program;
        WEIR_TRY(CheckPart(program, memory));
        break;
      case PT_GNU_RELRO:
        WEIR_TRY(CheckRelro(program, memory));
        break;
      case PT_NOTE:
      case PT_GNU_PROPERTY:
        WEIR_TRY(CheckPart(program, memory));
        WEIR_TRY(CheckNotes(program, memory));
        break;
      case PT_PHDR:
      case PT_GNU_EH_FRAME:
        WEIR_TRY(CheckPart(program, memory));
        break;
      default:
        break;
    }
  }
  if (!dynamic || dynamic->p_memsz == 0) return Damaged("no dynamic section");
  WEIR_ASSIGN(const DynamicTags tags, ReadTags(*dynamic, memory));
  return CheckTables(memory, tags, tls.has_value());
}

}  // namespace weir::plugin
