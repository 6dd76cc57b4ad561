// The memory that a shared library will be mapped to, as its file says it; for loadable.cc and elf_tables.cc.
#ifndef WEIR_CORE_PLUGIN_ELF_MEMORY_INTERNAL_H_
#define WEIR_CORE_PLUGIN_ELF_MEMORY_INTERNAL_H_

#include <elf.h>
#include <fmt/format.h>

#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "core/plugin/note.h"

namespace weir::plugin {

template <class... Args>
Status Damaged(fmt::format_string<Args...> text, Args&&... args) {
  return InvalidArgument("damaged ELF file: {}", fmt::format(text, std::forward<Args>(args)...));
}

/// Segments by address, relative to where the library is mapped. Sums of addresses and sizes are checked here only.
class ElfMemory {
 public:
  /// Takes the program headers of a file. Damaged: segments that lie outside the file, overlap, or are out of order.
  static Result<ElfMemory> Of(const ByteSource& file, const std::vector<Elf64_Phdr>& programs);

  /// True when [address, address + bytes) lies in one segment with all these PF_* flags; in its part that comes from
  /// the file, or also in what follows it and is zero at first.
  bool Backed(uint64_t address, uint64_t bytes, uint32_t flags = PF_R) const;
  bool Mapped(uint64_t address, uint64_t bytes, uint32_t flags = PF_R) const;
  /// One past the last byte.
  uint64_t end() const { return end_; }
  /// Where the file has the byte at `address`, which is backed.
  uint64_t OffsetOf(uint64_t address) const;

  /// The structs of a table that is backed. Damaged naming `what` for one that is not.
  template <class T>
  Result<std::vector<T>> Read(uint64_t address, uint64_t bytes, std::string_view what) const {
    if (!Backed(address, bytes)) return Damaged("{} at {:#x} lies outside what is loaded", what, address);
    std::vector<T> table(bytes / sizeof(T));
    WEIR_ASSIGN(const size_t got, file_->ReadAt(OffsetOf(address), std::as_writable_bytes(std::span(table))));
    if (got != table.size() * sizeof(T)) return Damaged("{} is cut off", what);
    return table;
  }

 private:
  explicit ElfMemory(const ByteSource& file) : file_(&file) {}
  const Elf64_Phdr* Find(uint64_t address) const;

  const ByteSource* file_;
  std::vector<Elf64_Phdr> loads_;  // by address
  uint64_t end_ = 0;
};

/// The tags of a dynamic section by their number; of those that may come more than once (DT_NEEDED) all.
class DynamicTags {
 public:
  explicit DynamicTags(std::vector<Elf64_Dyn> entries) : entries_(std::move(entries)) {}
  bool has(int64_t tag) const { return Find(tag) != nullptr; }
  /// 0 without the tag. Of several the last, as the dynamic linker takes it.
  uint64_t operator[](int64_t tag) const { return has(tag) ? Find(tag)->d_un.d_val : 0; }
  const std::vector<Elf64_Dyn>& all() const { return entries_; }

 private:
  const Elf64_Dyn* Find(int64_t tag) const;
  std::vector<Elf64_Dyn> entries_;
};

/// Damaged: tables of the dynamic section that lead anywhere but where they should.
Status CheckTables(const ElfMemory& memory, const DynamicTags& tags, bool has_tls);

}  // namespace weir::plugin

#endif  // WEIR_CORE_PLUGIN_ELF_MEMORY_INTERNAL_H_
