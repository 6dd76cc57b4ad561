// Checks of the tables referenced by a shared library's dynamic section.
#include <algorithm>
#include <bit>
#include <map>
#include <utility>

#include "core/plugin/elf_memory_internal.h"

namespace weir::plugin {
namespace {

constexpr uint16_t kVersionBits = 0x7fff;  // of a DT_VERSYM entry; the top bit hides the symbol

/// All tables of one file, checked in order of their dependencies.
class TableCheck {
 public:
  TableCheck(const ElfMemory& memory, const DynamicTags& tags, bool has_tls)
      : memory_(memory), tags_(tags), has_tls_(has_tls) {}

  Status Run() {
    WEIR_TRY(Tags());
    WEIR_TRY(Strings());
    WEIR_TRY(Hashes());
    WEIR_TRY(Symbols());
    WEIR_TRY(NeededVersions());
    WEIR_TRY(OwnVersions());
    WEIR_TRY(VersionsOfSymbols());
    WEIR_TRY(Functions());
    WEIR_TRY(Relocations(DT_RELA, DT_RELASZ, tags_[DT_RELACOUNT]));
    WEIR_TRY(Relocations(DT_JMPREL, DT_PLTRELSZ, 0));
    WEIR_TRY(PackedRelocations());
    return called_.empty() ? Status()
                           : Damaged("it calls {:#x}, an address without a relocation", called_.begin()->first);
  }

 private:
  // Unknown tags and incomplete tag sets are errors, because a damaged tag would hide its table.
  Status Tags() const {
    for (const Elf64_Dyn& entry : tags_.all()) {
      const int64_t tag = entry.d_tag;
      const bool reserved = (tag >= DT_NULL && tag <= kHighestTag) || (tag >= DT_LOOS && tag <= DT_HIPROC);
      if (!reserved || tag == DT_REL || tag == DT_RELSZ || tag == DT_RELENT) {
        return Damaged("the tag {:#x} in its dynamic section", tag);
      }
    }
    constexpr int64_t kTogether[][2] = {{DT_STRTAB, DT_STRSZ},
                                        {DT_SYMTAB, DT_SYMENT},
                                        {DT_RELA, DT_RELASZ},
                                        {DT_RELA, DT_RELAENT},
                                        {DT_JMPREL, DT_PLTRELSZ},
                                        {DT_JMPREL, DT_PLTREL},
                                        {DT_VERNEED, DT_VERNEEDNUM},
                                        {DT_VERDEF, DT_VERDEFNUM},
                                        {DT_INIT_ARRAY, DT_INIT_ARRAYSZ},
                                        {DT_FINI_ARRAY, DT_FINI_ARRAYSZ},
                                        {kPacked, kPackedSize},
                                        {kPacked, kPackedEntry}};
    for (const auto& [table, size] : kTogether) {
      if (tags_.has(table) != tags_.has(size))
        return Damaged("tag {:#x} without tag {:#x}", tags_.has(table) ? table : size, tags_.has(table) ? size : table);
    }
    if (tags_.has(DT_VERSYM) == (tags_.has(DT_VERNEED) || tags_.has(DT_VERDEF))) return {};
    return Damaged("versions of symbols without a list of versions, or the other way round");
  }

  Status Strings() {
    if (!tags_.has(DT_STRTAB) || !tags_.has(DT_SYMTAB)) return Damaged("it has no symbol table or no string table");
    WEIR_ASSIGN(strings_, memory_.Read<char>(tags_[DT_STRTAB], tags_[DT_STRSZ], "the table of names"));
    if (strings_.empty() || strings_.back() != '\0') return Damaged("the table of names is not terminated");
    for (const Elf64_Dyn& entry : tags_.all()) {
      const auto tag = entry.d_tag;
      const bool names = tag == DT_NEEDED || tag == DT_SONAME || tag == DT_RPATH || tag == DT_RUNPATH ||
                         tag == DT_FILTER || tag == DT_AUXILIARY || tag == DT_AUDIT || tag == DT_DEPAUDIT ||
                         tag == DT_CONFIG;
      if (names && entry.d_un.d_val >= strings_.size()) return Damaged("a name lies outside the table of names");
    }
    return {};
  }

  bool IsName(uint64_t offset) const { return offset < strings_.size(); }

  Status Hashes() {
    if (tags_.has(DT_GNU_HASH)) return GnuHash();
    if (tags_.has(DT_HASH)) return SysvHash();
    return Damaged("it has no symbol hash table");
  }

  // Buckets point to chains of hashes, one per symbol from `first` on; the lowest bit marks the end of a chain.
  Status GnuHash() {
    const uint64_t at = tags_[DT_GNU_HASH];
    WEIR_ASSIGN(const std::vector<uint32_t> header, memory_.Read<uint32_t>(at, 16, "the hash table"));
    const uint64_t buckets = header[0], first = header[1], bloom = header[2];
    if (buckets == 0 || !std::has_single_bit(bloom)) return Damaged("the hash table has {} buckets", buckets);
    const uint64_t bucket_at = at + 16 + bloom * 8;
    WEIR_ASSIGN(const std::vector<uint32_t> heads,
                memory_.Read<uint32_t>(bucket_at, buckets * 4, "the hash table's buckets"));
    WEIR_TRY(memory_.Read<uint64_t>(at + 16, bloom * 8, "the hash table's filter").status());
    const uint64_t chain_at = bucket_at + buckets * 4;
    uint32_t last = 0;
    for (const uint32_t head : heads) {
      if (head != 0 && head < first) return Damaged("the hash table points to the invalid symbol {}", head);
      last = std::max(last, head);
    }
    if (last == 0) {  // exports nothing, so the table does not give the number of symbols
      WEIR_ASSIGN(symbol_count_, SymbolsOfRelocations());
      return {};
    }
    // The last chain ends the table. Its length is unknown, so it is read entry by entry.
    for (uint64_t index = last;; ++index) {
      const uint64_t entry = chain_at + (index - first) * 4;
      if (!memory_.Backed(entry, 4)) return Damaged("the hash table has a chain without an end");
      WEIR_ASSIGN(const std::vector<uint32_t> hash, memory_.Read<uint32_t>(entry, 4, "the hash table"));
      if ((hash[0] & 1) != 0) {
        symbol_count_ = index + 1;
        return {};
      }
    }
  }

  Result<uint64_t> SymbolsOfRelocations() const {
    uint64_t count = 1;
    for (const auto& [table, size] : {std::pair{DT_RELA, DT_RELASZ}, {DT_JMPREL, DT_PLTRELSZ}}) {
      WEIR_ASSIGN(const std::vector<Elf64_Rela> all,
                  memory_.Read<Elf64_Rela>(tags_[table], tags_[size], "relocations"));
      for (const Elf64_Rela& relocation : all) count = std::max(count, ELF64_R_SYM(relocation.r_info) + 1);
    }
    return count;
  }

  Status SysvHash() {
    const uint64_t at = tags_[DT_HASH];
    WEIR_ASSIGN(const std::vector<uint32_t> header, memory_.Read<uint32_t>(at, 8, "the hash table"));
    const uint64_t buckets = header[0], count = header[1];
    WEIR_ASSIGN(const std::vector<uint32_t> links,
                memory_.Read<uint32_t>(at + 8, (buckets + count) * 4, "the hash table"));
    if (buckets == 0) return Damaged("the hash table has no buckets");
    if (std::any_of(links.begin(), links.end(), [&](uint32_t link) { return link >= count && link != 0; })) {
      return Damaged("the hash table points to symbols that do not exist");
    }
    // Every symbol is in at most one chain; this also ensures that each chain ends.
    std::vector<bool> seen(count);
    for (uint64_t bucket = 0; bucket < buckets; ++bucket) {
      for (uint32_t symbol = links[bucket]; symbol != 0; symbol = links[buckets + symbol]) {
        if (seen[symbol]) return Damaged("the hash table has a chain without an end");
        seen[symbol] = true;
      }
    }
    symbol_count_ = count;
    return {};
  }

  Status Symbols() {
    if (tags_[DT_SYMENT] != sizeof(Elf64_Sym)) return Damaged("symbols of {} bytes", tags_[DT_SYMENT]);
    WEIR_ASSIGN(symbols_, memory_.Read<Elf64_Sym>(tags_[DT_SYMTAB], symbol_count_ * sizeof(Elf64_Sym), "the symbols"));
    for (const Elf64_Sym& symbol : symbols_) {
      if (!IsName(symbol.st_name)) return Damaged("a symbol's name lies outside the table of names");
      // Hidden and local symbols are never resolved in other libraries.
      const bool elsewhere = ELF64_ST_VISIBILITY(symbol.st_other) == STV_DEFAULT && ELF64_ST_BIND(symbol.st_info) != 0;
      if (symbol.st_shndx == SHN_UNDEF && !elsewhere && &symbol != symbols_.data()) return DamagedSymbol(symbol);
      if (symbol.st_shndx == SHN_UNDEF || symbol.st_shndx == SHN_ABS) continue;
      const auto type = ELF64_ST_TYPE(symbol.st_info);
      if (type == STT_TLS ? !has_tls_ : symbol.st_value > memory_.end()) return DamagedSymbol(symbol);
      const bool called = type == STT_FUNC || type == STT_GNU_IFUNC;
      if (called && !memory_.Backed(symbol.st_value, 1, PF_R | PF_X)) return DamagedSymbol(symbol);
    }
    return {};
  }

  Status DamagedSymbol(const Elf64_Sym& symbol) const {
    return Damaged("symbol '{}' has the invalid address {:#x}", &strings_[symbol.st_name], symbol.st_value);
  }

  // A list of libraries, each with a list of versions. The dynamic linker aborts the process if a library is not among
  // the needed ones.
  Status NeededVersions() {
    if (!tags_.has(DT_VERNEED)) return {};
    for (uint64_t at = tags_[DT_VERNEED];;) {
      WEIR_ASSIGN(const auto need, memory_.Read<Elf64_Verneed>(at, sizeof(Elf64_Verneed), "the needed versions"));
      if (need[0].vn_version != 1 || !IsNeeded(need[0].vn_file))
        return Damaged("versions of a library it does not need");
      uint64_t aux_at = at + need[0].vn_aux;
      for (;;) {
        WEIR_ASSIGN(const auto aux, memory_.Read<Elf64_Vernaux>(aux_at, sizeof(Elf64_Vernaux), "the needed versions"));
        if (!IsName(aux[0].vna_name)) return Damaged("a version's name lies outside the table of names");
        last_version_ = std::max<uint16_t>(last_version_, aux[0].vna_other & kVersionBits);
        if (aux[0].vna_next == 0) break;
        aux_at += aux[0].vna_next;
      }
      if (need[0].vn_next == 0) return {};
      at += need[0].vn_next;
    }
  }

  bool IsNeeded(uint64_t name) const {
    return IsName(name) && std::any_of(tags_.all().begin(), tags_.all().end(), [&](const Elf64_Dyn& entry) {
             return entry.d_tag == DT_NEEDED && std::string_view(&strings_[entry.d_un.d_val]) == &strings_[name];
           });
  }

  Status OwnVersions() {
    if (!tags_.has(DT_VERDEF)) return {};
    for (uint64_t at = tags_[DT_VERDEF];;) {
      WEIR_ASSIGN(const auto own, memory_.Read<Elf64_Verdef>(at, sizeof(Elf64_Verdef), "its own versions"));
      if (own[0].vd_version != 1) return Damaged("a version of format {}", own[0].vd_version);
      WEIR_ASSIGN(const auto aux,
                  memory_.Read<Elf64_Verdaux>(at + own[0].vd_aux, sizeof(Elf64_Verdaux), "its own versions"));
      if (!IsName(aux[0].vda_name)) return Damaged("a version's name lies outside the table of names");
      last_version_ = std::max<uint16_t>(last_version_, own[0].vd_ndx & kVersionBits);
      if (own[0].vd_next == 0) return {};
      at += own[0].vd_next;
    }
  }

  Status VersionsOfSymbols() {
    if (!tags_.has(DT_VERSYM)) return {};
    WEIR_ASSIGN(const std::vector<uint16_t> versions,
                memory_.Read<uint16_t>(tags_[DT_VERSYM], symbol_count_ * 2, "the versions of symbols"));
    for (const uint16_t version : versions) {
      if ((version & kVersionBits) > std::max<uint16_t>(last_version_, 1)) {
        return Damaged("a symbol has version {} of {}", version & kVersionBits, last_version_);
      }
    }
    return {};
  }

  // Functions called when the file is loaded and unloaded.
  Status Functions() {
    for (const int64_t tag : {DT_INIT, DT_FINI}) {
      if (tags_.has(tag) && !IsCode(tags_[tag]))
        return Damaged("its init or fini address {:#x} is not code", tags_[tag]);
    }
    for (const auto& [array, size] : {std::pair{DT_INIT_ARRAY, DT_INIT_ARRAYSZ}, {DT_FINI_ARRAY, DT_FINI_ARRAYSZ}}) {
      if (!tags_.has(array) || tags_[size] == 0) continue;
      const uint64_t at = tags_[array], bytes = tags_[size];
      if (at % 8 != 0 || bytes % 8 != 0 || !memory_.Backed(at, bytes))
        return Damaged("its init or fini array is invalid");
      WEIR_ASSIGN(const std::vector<uint64_t> functions, memory_.Read<uint64_t>(at, bytes, "its functions to call"));
      for (size_t i = 0; i < functions.size(); ++i) called_.emplace(at + i * 8, functions[i]);
    }
    const uint64_t table = tags_[DT_PLTGOT];
    if (tags_.has(DT_PLTGOT) && !memory_.Mapped(table, 24, PF_R | PF_W)) return Damaged("its table of addresses");
    return {};
  }

  bool IsCode(uint64_t address) const { return memory_.Backed(address, 1, PF_R | PF_X); }

  Status Relocations(int64_t table, int64_t size, uint64_t relative) {
    if (!tags_.has(table) || tags_[size] == 0) return {};
    const bool right_kind = table == DT_JMPREL ? tags_[DT_PLTREL] == DT_RELA : tags_[DT_RELAENT] == sizeof(Elf64_Rela);
    if (!right_kind || tags_[size] % sizeof(Elf64_Rela) != 0) return Damaged("relocations of an unknown size");
    const uint64_t count = tags_[size] / sizeof(Elf64_Rela);
    if (!memory_.Backed(tags_[table], tags_[size])) {
      return Damaged("relocations at {:#x} is outside the loaded segments", tags_[table]);
    }
    if (relative > count) return Damaged("{} of {} relocations are relative", relative, count);
    // In pieces: the whole table of a large plugin would take hundreds of fresh pages.
    constexpr uint64_t kPiece = 1024;
    for (uint64_t first = 0; first < count; first += kPiece) {
      const uint64_t at = tags_[table] + first * sizeof(Elf64_Rela);
      const uint64_t bytes = std::min(kPiece, count - first) * sizeof(Elf64_Rela);
      WEIR_ASSIGN(const std::vector<Elf64_Rela> piece, memory_.Read<Elf64_Rela>(at, bytes, "relocations"));
      for (size_t i = 0; i < piece.size(); ++i) {
        WEIR_TRY(CheckRelocation(piece[i]));
        const bool in_order = first + i >= relative || ELF64_R_TYPE(piece[i].r_info) == kRelative;
        if (!in_order) return Damaged("relocations are out of order");
      }
    }
    return {};
  }

  // True if a segment with these flags has all the bytes. Relocations have few segments: the last one comes first.
  bool MayChange(uint64_t at, uint64_t bytes, uint32_t flags) {
    const auto fits = [&] { return at >= changed_.first && at < changed_.second && bytes <= changed_.second - at; };
    if (flags == changed_flags_ && fits()) return true;
    changed_ = memory_.SegmentOf(at, flags);
    changed_flags_ = flags;
    return fits();
  }

  Status CheckRelocation(const Elf64_Rela& relocation) {
    const uint64_t at = relocation.r_offset, symbol = ELF64_R_SYM(relocation.r_info);
    const uint32_t type = ELF64_R_TYPE(relocation.r_info);
    if (type != 0 && !MayChange(at, type == kTlsDescriptor ? 16 : 8, relocated_)) {
      return Damaged("a relocation at {:#x}, which is not writable", at);
    }
    if (symbol >= symbols_.size() && symbol != 0)
      return Damaged("a relocation by symbol {} of {}", symbol, symbols_.size());
    const auto addend = static_cast<uint64_t>(relocation.r_addend);
    if (type == kIndirect && !IsCode(addend)) return Damaged("a relocation by {:#x}, which is not code", addend);
    if (type != kRelative) {
      if (!called_.empty()) called_.erase(at);
      return {};
    }
    if (addend > memory_.end()) return Damaged("a relocation to {:#x}, outside the loaded segments", addend);
    return Called(at, addend);
  }

  // Called for a relocation that stores the address `target` at `at`.
  Status Called(uint64_t at, uint64_t target) {
    if (called_.empty() || called_.erase(at) == 0 || IsCode(target)) return {};
    return Damaged("it calls {:#x}, which is not code", target);
  }

  // An even word is an address; an odd word is a bit mask of the next 63 words.
  Status PackedRelocations() {
    if (!tags_.has(kPacked)) return {};
    if (tags_[kPackedEntry] != 8) return Damaged("relocations of {} bytes", tags_[kPackedEntry]);
    WEIR_ASSIGN(const std::vector<uint64_t> words,
                memory_.Read<uint64_t>(tags_[kPacked], tags_[kPackedSize], "packed relocations"));
    uint64_t next = 0;
    for (const uint64_t word : words) {
      const bool address = (word & 1) == 0;
      if (address) next = word;
      for (int bit = 0; bit < (address ? 1 : 63); ++bit) {
        if (!address && (word >> (bit + 1) & 1) == 0) continue;
        const uint64_t at = next + 8 * static_cast<uint64_t>(bit);
        if (!MayChange(at, 8, PF_R | PF_W)) return Damaged("a relocation at {:#x}, which is not writable", at);
        if (const auto call = called_.find(at); call != called_.end()) WEIR_TRY(Called(at, call->second));
      }
      next += address ? 8 : 63 * 8;
    }
    return {};
  }

#if defined(__aarch64__)
  static constexpr uint32_t kRelative = R_AARCH64_RELATIVE, kIndirect = R_AARCH64_IRELATIVE;
  static constexpr uint32_t kTlsDescriptor = R_AARCH64_TLSDESC;
#else
  static constexpr uint32_t kRelative = R_X86_64_RELATIVE, kIndirect = R_X86_64_IRELATIVE;
  static constexpr uint32_t kTlsDescriptor = R_X86_64_TLSDESC;
#endif
  // DT_RELR and related tags, which older elf.h lack.
  static constexpr int64_t kPacked = 36, kPackedSize = 35, kPackedEntry = 37, kHighestTag = 38;

  const ElfMemory& memory_;
  const DynamicTags& tags_;
  const bool has_tls_;
  // Required flags of memory that relocations change. Cached, because a tag lookup per relocation is too slow.
  const uint32_t relocated_ =
      tags_.has(DT_TEXTREL) || (tags_[DT_FLAGS] & DF_TEXTREL) != 0 ? PF_R : uint32_t{PF_R | PF_W};
  std::pair<uint64_t, uint64_t> changed_;  // the addresses of MayChange's last segment
  uint32_t changed_flags_ = 0;
  std::vector<char> strings_;
  std::vector<Elf64_Sym> symbols_;
  std::map<uint64_t, uint64_t> called_;  // addresses of functions to call, by location; not yet relocated
  uint64_t symbol_count_ = 0;
  uint16_t last_version_ = 0;
};

}  // namespace

Status CheckTables(const ElfMemory& memory, const DynamicTags& tags, bool has_tls) {
  return TableCheck(memory, tags, has_tls).Run();
}

}  // namespace weir::plugin
