// The exports, imports and loader flags of an ELF shared library.
#ifndef WEIR_TOOLS_WEIR_CHECK_ELF_FILE_H_
#define WEIR_TOOLS_WEIR_CHECK_ELF_FILE_H_

#include <string>
#include <vector>

#include "core/base/status.h"

namespace weir::check {

struct ElfFile {
  std::vector<std::string> exports;  // defined, visible dynamic symbols
  std::vector<std::string> unique;   // those of them that are GNU_UNIQUE
  std::vector<std::string> imports;  // undefined dynamic symbols
  std::vector<std::string> needed;
  std::vector<std::string> run_paths;
  bool text_relocations = false;
  bool executable_stack = false;
  bool relro = false;
  bool bind_now = false;

  /// Reads a 64-bit little-endian file. DataLoss if its tables are missing or lie outside the file.
  static Result<ElfFile> Read(const std::string& path);
};

}  // namespace weir::check

#endif  // WEIR_TOOLS_WEIR_CHECK_ELF_FILE_H_
