// Mapping between the operands of a node and the arguments of its op.
#ifndef WEIR_CORE_KERNEL_OPERAND_ARGS_H_
#define WEIR_CORE_KERNEL_OPERAND_ARGS_H_

#include <cstdint>
#include <vector>

namespace weir::kernel {

/// The argument of each flattened operand; argument i has `counts[i]` operands.
inline std::vector<int> ArgOfOperand(const std::vector<int>& counts) {
  std::vector<int> args;
  for (size_t arg = 0; arg < counts.size(); ++arg)
    args.insert(args.end(), static_cast<size_t>(counts[arg]), static_cast<int>(arg));
  return args;
}

/// Bit `arg` of a mask over arguments; arguments from 64 on have no bit.
inline bool Masked(uint64_t mask, int arg) { return arg < 64 && (mask >> arg & 1) != 0; }

}  // namespace weir::kernel

#endif  // WEIR_CORE_KERNEL_OPERAND_ARGS_H_
