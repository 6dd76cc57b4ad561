#include "tools/weir/check/elf_file.h"

#include <elf.h>

#include <cstring>
#include <fstream>
#include <span>
#include <string_view>
#include <utility>

#include "core/base/errors.h"

namespace weir::check {
namespace {

// A file in memory; every access is checked.
class Bytes {
 public:
  explicit Bytes(std::string data) : data_(std::move(data)) {}

  template <class T>
  Result<T> At(uint64_t offset) const {
    if (offset > data_.size() || sizeof(T) > data_.size() - offset)
      return DataLoss("the file ends before byte {}", offset + sizeof(T));
    T value;
    std::memcpy(&value, data_.data() + offset, sizeof(T));
    return value;
  }
  template <class T>
  Result<std::vector<T>> Table(uint64_t offset, uint64_t bytes) const {
    if (offset > data_.size() || bytes > data_.size() - offset)
      return DataLoss("a table at byte {} lies outside the file", offset);
    std::vector<T> table(bytes / sizeof(T));
    std::memcpy(table.data(), data_.data() + offset, table.size() * sizeof(T));
    return table;
  }
  // NUL-terminated text inside a string table.
  std::string Text(uint64_t table, uint64_t offset) const {
    if (table >= data_.size() || offset >= data_.size() - table) return {};
    const std::string_view rest = std::string_view(data_).substr(table + offset);
    return std::string(rest.substr(0, rest.find('\0')));
  }

 private:
  std::string data_;
};

void AddSymbols(const Bytes& bytes, std::span<const Elf64_Sym> symbols, uint64_t names, ElfFile& file) {
  for (const Elf64_Sym& symbol : symbols) {
    const unsigned bind = ELF64_ST_BIND(symbol.st_info);
    if (symbol.st_name == 0 || bind == STB_LOCAL) continue;
    std::string name = bytes.Text(names, symbol.st_name);
    if (symbol.st_shndx == SHN_UNDEF) {
      file.imports.push_back(std::move(name));
      continue;
    }
    const unsigned visibility = ELF64_ST_VISIBILITY(symbol.st_other);
    if (visibility != STV_DEFAULT && visibility != STV_PROTECTED) continue;
    if (bind == STB_GNU_UNIQUE) file.unique.push_back(name);
    file.exports.push_back(std::move(name));
  }
}

void AddDynamic(const Bytes& bytes, std::span<const Elf64_Dyn> entries, uint64_t names, ElfFile& file) {
  for (const Elf64_Dyn& entry : entries) {
    if (entry.d_tag == DT_NULL) return;
    if (entry.d_tag == DT_NEEDED) file.needed.push_back(bytes.Text(names, entry.d_un.d_val));
    if (entry.d_tag == DT_RUNPATH || entry.d_tag == DT_RPATH) {
      std::string paths = bytes.Text(names, entry.d_un.d_val);
      for (size_t begin = 0; begin <= paths.size();) {
        const size_t end = std::min(paths.find(':', begin), paths.size());
        file.run_paths.push_back(paths.substr(begin, end - begin));
        begin = end + 1;
      }
    }
    if (entry.d_tag == DT_TEXTREL) file.text_relocations = true;
    if (entry.d_tag == DT_BIND_NOW) file.bind_now = true;
    if (entry.d_tag == DT_FLAGS) {
      file.text_relocations = file.text_relocations || (entry.d_un.d_val & DF_TEXTREL) != 0;
      file.bind_now = file.bind_now || (entry.d_un.d_val & DF_BIND_NOW) != 0;
    }
    if (entry.d_tag == DT_FLAGS_1) file.bind_now = file.bind_now || (entry.d_un.d_val & DF_1_NOW) != 0;
  }
}

}  // namespace

Result<ElfFile> ElfFile::Read(const std::string& path) {
  std::ifstream stream(path, std::ios::binary | std::ios::ate);
  if (!stream) return NotFound("{} cannot be read", path);
  std::string data(static_cast<size_t>(stream.tellg()), '\0');
  stream.seekg(0);
  if (!stream.read(data.data(), static_cast<std::streamsize>(data.size()))) return DataLoss("reading {} failed", path);
  const Bytes bytes(std::move(data));
  WEIR_ASSIGN(const Elf64_Ehdr header, bytes.At<Elf64_Ehdr>(0));
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64) {
    return DataLoss("not a 64-bit ELF file");
  }
  ElfFile file;
  WEIR_ASSIGN(const std::vector<Elf64_Phdr> programs,
              bytes.Table<Elf64_Phdr>(header.e_phoff, uint64_t{header.e_phnum} * sizeof(Elf64_Phdr)));
  file.executable_stack = true;  // the kernel's default without a GNU_STACK header
  for (const Elf64_Phdr& program : programs) {
    if (program.p_type == PT_GNU_STACK) file.executable_stack = (program.p_flags & PF_X) != 0;
    if (program.p_type == PT_GNU_RELRO) file.relro = true;
  }
  WEIR_ASSIGN(const std::vector<Elf64_Shdr> sections,
              bytes.Table<Elf64_Shdr>(header.e_shoff, uint64_t{header.e_shnum} * sizeof(Elf64_Shdr)));
  bool has_symbols = false;
  for (const Elf64_Shdr& section : sections) {
    if ((section.sh_type != SHT_DYNSYM && section.sh_type != SHT_DYNAMIC) || section.sh_link >= sections.size())
      continue;
    const uint64_t names = sections[section.sh_link].sh_offset;
    if (section.sh_type == SHT_DYNSYM) {
      WEIR_ASSIGN(const std::vector<Elf64_Sym> symbols, bytes.Table<Elf64_Sym>(section.sh_offset, section.sh_size));
      AddSymbols(bytes, symbols, names, file);
      has_symbols = true;
    } else {
      WEIR_ASSIGN(const std::vector<Elf64_Dyn> entries, bytes.Table<Elf64_Dyn>(section.sh_offset, section.sh_size));
      AddDynamic(bytes, entries, names, file);
    }
  }
  if (!has_symbols) return DataLoss("the file has no table of dynamic symbols");
  return file;
}

}  // namespace weir::check
