// Code in memory, with what it takes and gives, and its form in bytes.
#ifndef WEIR_PLUGINS_COMPILER_LLVM_EXECUTABLE_H_
#define WEIR_PLUGINS_COMPILER_LLVM_EXECUTABLE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "plugins/compiler_llvm/backend/backend.h"
#include "plugins/functors/kept_regions.h"
#include "sdk/abi/compiler.h"

namespace weir::compiler_llvm {

using functors::Described;

/// Everything about an executable but its code.
struct Description {
  Level level = Level::kV3;
  std::vector<Described> inputs, outputs;
  std::vector<weir_alias> aliases;
  uint64_t scratch_bytes = 0;
  uint64_t units = 1;
  uint64_t tiles = 1;
};

/// Executable memory, which no one writes after it is made.
class CodeMemory {
 public:
  /// Null with a reason if the system gives no such memory.
  static std::unique_ptr<CodeMemory> Make(const Code& code, std::string* why);
  ~CodeMemory();
  CodeMemory(const CodeMemory&) = delete;
  CodeMemory& operator=(const CodeMemory&) = delete;

  CodeFn entry() const { return entry_; }
  std::span<const uint8_t> bytes() const { return {static_cast<const uint8_t*>(base_), used_}; }
  uint64_t entry_offset() const { return entry_offset_; }

 private:
  CodeMemory() = default;
  void* base_ = nullptr;
  size_t mapped_ = 0, used_ = 0;
  uint64_t entry_offset_ = 0;
  CodeFn entry_ = nullptr;
};

class Executable {
 public:
  static std::unique_ptr<Executable> Make(Description description, const Code& code, std::string* why);

  void FillSpec(weir_executable_spec* spec) const;
  void Run(const weir_reg* regs, const weir_env* env) const;

  std::string Serialize() const;
  /// Null with a reason for bytes that are damaged or of another build, or that need a higher level than `highest`.
  static std::unique_ptr<Executable> Deserialize(std::span<const uint8_t> bytes, Level highest, std::string* why);
  /// WEIR_COMPAT_*.
  static int32_t Compare(std::span<const uint8_t> bytes, Level level);

 private:
  Executable(Description description, std::unique_ptr<CodeMemory> code);

  const Description description_;
  const std::unique_ptr<CodeMemory> code_;
  std::vector<weir_region_value> values_;  // inputs, then outputs
  std::vector<const weir_region_value*> pointers_;
};

}  // namespace weir::compiler_llvm

#endif  // WEIR_PLUGINS_COMPILER_LLVM_EXECUTABLE_H_
