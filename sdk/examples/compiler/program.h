// A region as instructions over blocks of floats.
#ifndef WEIR_SDK_EXAMPLES_COMPILER_PROGRAM_H_
#define WEIR_SDK_EXAMPLES_COMPILER_PROGRAM_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sdk/abi/compiler.h"

namespace toy {

enum class Code : uint8_t { kAdd, kSub, kMul, kMaximum, kMinimum, kNeg, kAbs, kSquare, kRelu, kSqrt, kExp, kTanh };

/// The code of a TensorFlow op with one or two operands; none if this compiler does not know it.
std::optional<Code> CodeOf(std::string_view op);
int OperandsOf(Code code);
/// Expected time per element.
double NanosecondsOf(Code code);

/// Operands are values: inputs first, then results of earlier instructions.
struct Instruction {
  Code code = Code::kAdd;
  uint32_t operands[2] = {0, 0};
};

/// All values have `dims`, but for inputs of one element.
struct Program {
  static constexpr int64_t kBlock = 1024;  // elements

  std::vector<int64_t> dims;
  std::vector<std::vector<int64_t>> input_dims;
  std::vector<Instruction> instructions;
  std::vector<uint32_t> outputs;  // numbers of values, ascending
  uint64_t tiles = 1;

  int64_t Elements() const;
  int64_t Blocks() const { return (Elements() + kBlock - 1) / kBlock; }
  /// Of one tile: a block for each instruction, and two for scalars.
  uint64_t ScratchBytes() const { return (instructions.size() + 2) * kBlock * sizeof(float); }
  bool IsScalar(size_t input) const { return input_dims[input] != dims; }

  /// Runs the tiles [begin, end). `regs`: inputs, outputs, scratch memory.
  void Run(const weir_reg* regs, uint64_t begin, uint64_t end) const;

  std::string ToBytes() const;
  /// None for bytes that are no program: every number is checked.
  static std::optional<Program> FromBytes(std::string_view bytes);

 private:
  void RunBlock(const weir_reg* regs, int64_t block) const;
  bool IsValid() const;
};

}  // namespace toy

#endif  // WEIR_SDK_EXAMPLES_COMPILER_PROGRAM_H_
