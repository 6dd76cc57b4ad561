// The memory layout of a shared library according to its file; used by loadable.cc and elf_tables.cc.
#ifndef WEIR_CORE_PLUGIN_ELF_MEMORY_INTERNAL_H_
#define WEIR_CORE_PLUGIN_ELF_MEMORY_INTERNAL_H_

#include <elf.h>
#include <fmt/format.h>

#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/errors.h"
#include "core/plugin/note.h"

namespace weir::plugin {

template <class... Args>
Status Damaged(fmt::format_string<Args...> text, Args&&... args) {
  return InvalidArgument("damaged ELF file: {}", fmt::format(text, std::forward<Args>(args)...));
}

/// Segments by address, relative to the load address. All overflow checks of addresses and sizes are made here.
class ElfMemory {
 public:
  /// Builds the layout from a file's program headers. Damaged: segments outside the file, overlapping or out of order.
  static Result<ElfMemory> Of(const ByteSource& file, const std::vector<Elf64_Phdr>& programs);

  /// True if [address, address + bytes) lies in one segment with all these PF_* flags. Backed: within the part read
  /// from the file. Mapped: the zero-filled rest is allowed too.
  bool Backed(uint64_t address, uint64_t bytes, uint32_t flags = PF_R) const;
  bool Mapped(uint64_t address, uint64_t bytes, uint32_t flags = PF_R) const;
  /// The addresses of the segment with all these flags that has `address`; empty if there is none.
  std::pair<uint64_t, uint64_t> SegmentOf(uint64_t address, uint32_t flags) const;
  /// One past the last byte.
  uint64_t end() const { return end_; }
  /// File offset of the byte at `address`, which must be backed.
  uint64_t OffsetOf(uint64_t address) const;

  /// Reads the structs of a table. Damaged, naming `what`, if it is not backed.
  template <class T>
  Result<std::vector<T>> Read(uint64_t address, uint64_t bytes, std::string_view what) const {
    if (!Backed(address, bytes)) return Damaged("{} at {:#x} is outside the loaded segments", what, address);
    std::vector<T> table(bytes / sizeof(T));
    WEIR_ASSIGN(const size_t got, file_->ReadAt(OffsetOf(address), std::as_writable_bytes(std::span(table))));
    if (got != table.size() * sizeof(T)) return Damaged("{} is truncated", what);
    return table;
  }

 private:
  explicit ElfMemory(const ByteSource& file) : file_(&file) {}
  const Elf64_Phdr* Find(uint64_t address) const;

  const ByteSource* file_;
  std::vector<Elf64_Phdr> loads_;  // by address
  uint64_t end_ = 0;
};

/// The entries of a dynamic section by tag; includes repeated ones (DT_NEEDED).
class DynamicTags {
 public:
  explicit DynamicTags(std::vector<Elf64_Dyn> entries) : entries_(std::move(entries)) {}
  bool has(int64_t tag) const { return Find(tag) != nullptr; }
  /// 0 if the tag is missing. The last of several, as in the dynamic linker.
  uint64_t operator[](int64_t tag) const { return has(tag) ? Find(tag)->d_un.d_val : 0; }
  const std::vector<Elf64_Dyn>& all() const { return entries_; }

 private:
  const Elf64_Dyn* Find(int64_t tag) const;
  std::vector<Elf64_Dyn> entries_;
};

/// Damaged if a table referenced by the dynamic section points to invalid memory.
Status CheckTables(const ElfMemory& memory, const DynamicTags& tags, bool has_tls);

}  // namespace weir::plugin

#endif  // WEIR_CORE_PLUGIN_ELF_MEMORY_INTERNAL_H_
