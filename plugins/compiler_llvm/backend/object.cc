#include "plugins/compiler_llvm/backend/object.h"

#include <elf.h>

#include <cstring>

namespace weir::compiler_llvm {
namespace {

constexpr uint64_t kMaxCode = 16 << 20;

class Layout {
 public:
  Layout(std::span<const uint8_t> object, Code* code, std::string* why) : object_(object), code_(code), why_(why) {}

  bool Run(const char* entry) { return ReadSections() && Place() && Relocate() && FindEntry(entry); }

 private:
  bool Refuse(const char* text) {
    *why_ = std::string("the object file of LLVM ") + text;
    return false;
  }
  template <class T>
  bool Read(uint64_t offset, T* to) const {
    if (offset > object_.size() || sizeof(T) > object_.size() - offset) return false;
    std::memcpy(to, object_.data() + offset, sizeof(T));
    return true;
  }
  bool Holds(uint64_t offset, uint64_t bytes) const {
    return offset <= object_.size() && bytes <= object_.size() - offset;
  }

  bool ReadSections() {
    Elf64_Ehdr header;
    if (!Read(0, &header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_machine != EM_X86_64 ||
        header.e_shentsize != sizeof(Elf64_Shdr)) {
      return Refuse("is no ELF file for x86-64");
    }
    sections_.resize(header.e_shnum);
    for (size_t i = 0; i < sections_.size(); ++i) {
      if (!Read(header.e_shoff + i * sizeof(Elf64_Shdr), &sections_[i])) return Refuse("ends within its sections");
      const Elf64_Shdr& s = sections_[i];
      if (s.sh_type != SHT_NOBITS && !Holds(s.sh_offset, s.sh_size)) return Refuse("ends within a section");
    }
    return true;
  }

  bool Place() {
    places_.assign(sections_.size(), kNowhere);
    for (const bool executable : {true, false}) {
      for (size_t i = 0; i < sections_.size(); ++i) {
        const Elf64_Shdr& s = sections_[i];
        if (s.sh_type != SHT_PROGBITS || (s.sh_flags & SHF_ALLOC) == 0 || s.sh_size == 0) continue;
        if (((s.sh_flags & SHF_EXECINSTR) != 0) != executable) continue;
        if ((s.sh_flags & SHF_WRITE) != 0) return Refuse("has writable data");
        const uint64_t align = s.sh_addralign == 0 ? 1 : s.sh_addralign;
        if (align > 4096 || s.sh_size > kMaxCode) return Refuse("has a section that is too large");
        const uint64_t at = (code_->bytes.size() + align - 1) / align * align;
        if (at + s.sh_size > kMaxCode) return Refuse("is too large");
        code_->bytes.resize(at + s.sh_size);
        std::memcpy(code_->bytes.data() + at, object_.data() + s.sh_offset, s.sh_size);
        places_[i] = at;
      }
    }
    return true;
  }

  bool Relocate() {
    for (const Elf64_Shdr& s : sections_) {
      if (s.sh_type != SHT_RELA || s.sh_info >= sections_.size() || places_[s.sh_info] == kNowhere) continue;
      if (s.sh_link >= sections_.size()) return Refuse("has a broken table of relocations");
      for (uint64_t at = 0; at + sizeof(Elf64_Rela) <= s.sh_size; at += sizeof(Elf64_Rela)) {
        Elf64_Rela r;
        if (!Read(s.sh_offset + at, &r) || !Apply(r, sections_[s.sh_link], sections_[s.sh_info], places_[s.sh_info])) {
          if (why_->empty()) return Refuse("has a broken relocation");
          return false;
        }
      }
    }
    return true;
  }

  bool Apply(const Elf64_Rela& r, const Elf64_Shdr& symbols, const Elf64_Shdr& section, uint64_t place) {
    const uint64_t type = ELF64_R_TYPE(r.r_info);
    if (type != R_X86_64_PC32 && type != R_X86_64_PLT32) return Refuse("has a relocation of another kind");
    Elf64_Sym symbol;
    const uint64_t index = ELF64_R_SYM(r.r_info);
    if (index >= symbols.sh_size / sizeof(Elf64_Sym)) return false;
    if (!Read(symbols.sh_offset + index * sizeof(Elf64_Sym), &symbol)) return false;
    if (symbol.st_shndx >= sections_.size() || places_[symbol.st_shndx] == kNowhere) {
      return Refuse("calls a function of another library");
    }
    if (r.r_offset > section.sh_size || section.sh_size - r.r_offset < 4) return false;
    const uint64_t at = place + r.r_offset;
    const uint64_t value = places_[symbol.st_shndx] + symbol.st_value + static_cast<uint64_t>(r.r_addend) - at;
    const auto low = static_cast<uint32_t>(value);
    std::memcpy(code_->bytes.data() + at, &low, sizeof low);
    return true;
  }

  bool FindEntry(const char* entry) {
    for (const Elf64_Shdr& s : sections_) {
      if (s.sh_type != SHT_SYMTAB || s.sh_link >= sections_.size()) continue;
      const Elf64_Shdr& names = sections_[s.sh_link];
      for (uint64_t at = 0; at + sizeof(Elf64_Sym) <= s.sh_size; at += sizeof(Elf64_Sym)) {
        Elf64_Sym symbol;
        if (!Read(s.sh_offset + at, &symbol) || symbol.st_name >= names.sh_size) continue;
        const auto* name = reinterpret_cast<const char*>(object_.data()) + names.sh_offset + symbol.st_name;
        if (strnlen(name, names.sh_size - symbol.st_name) != std::strlen(entry)) continue;
        if (std::memcmp(name, entry, std::strlen(entry)) != 0 || symbol.st_shndx >= sections_.size()) continue;
        if (places_[symbol.st_shndx] == kNowhere) continue;
        code_->entry = places_[symbol.st_shndx] + symbol.st_value;
        return code_->entry < code_->bytes.size() || Refuse("has a broken symbol");
      }
    }
    return Refuse("lacks the region's function");
  }

  static constexpr uint64_t kNowhere = ~uint64_t{0};

  std::span<const uint8_t> object_;
  Code* code_;
  std::string* why_;
  std::vector<Elf64_Shdr> sections_;
  std::vector<uint64_t> places_;  // of each section in the code
};

}  // namespace

bool LayOut(std::span<const uint8_t> object, const char* entry, Code* code, std::string* why) {
  *code = Code();
  why->clear();
  return Layout(object, code, why).Run(entry);
}

}  // namespace weir::compiler_llvm
