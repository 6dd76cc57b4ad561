// The backend: machine code for a loop nest, by LLVM. It is a shared library of its own, which the plugin loads when it
// compiles for the first time, so that a process that compiles nothing does not load LLVM.
#ifndef WEIR_PLUGINS_COMPILER_LLVM_BACKEND_BACKEND_H_
#define WEIR_PLUGINS_COMPILER_LLVM_BACKEND_BACKEND_H_

#include <cstdint>
#include <string>
#include <vector>

#include "plugins/compiler_llvm/program.h"

namespace weir::compiler_llvm {

/// Code that runs at any address: instructions and the constants that they read.
struct Code {
  std::vector<uint8_t> bytes;
  uint64_t entry = 0;  // offset of a CodeFn
};

/// Runs the units [begin, end). `regs` is the array of weir_reg of a prepared kernel, `scratch` has the program's
/// scratch_bytes, aligned to 64 bytes.
using CodeFn = void (*)(const void* regs, int64_t begin, int64_t end, char* scratch);

enum class Level : uint8_t { kV3, kV4 };  // x86-64-v3, x86-64-v4

/// Changes whenever Program or the functions below do: plugin and backend must be of one build.
#define WEIR_LLVM_BACKEND_SYMBOL "weir_llvm_backend_2"

struct Backend {
  const char* build;  // of the plugin's sources
  /// False with a reason. Any thread.
  bool (*generate)(const Program& program, Level level, Code* code, std::string* why);
  /// The code as text, to be read by people; false with a reason in `text`.
  bool (*assembly)(const Program& program, Level level, std::string* text);
};
using BackendFn = const Backend* (*)();

}  // namespace weir::compiler_llvm

#endif  // WEIR_PLUGINS_COMPILER_LLVM_BACKEND_BACKEND_H_
