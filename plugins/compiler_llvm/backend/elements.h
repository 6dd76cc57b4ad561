// Elements of tensors in registers, and the ops on them. half and bfloat16 are held as floats that they can represent;
// bool is i1.
#ifndef WEIR_PLUGINS_COMPILER_LLVM_BACKEND_ELEMENTS_H_
#define WEIR_PLUGINS_COMPILER_LLVM_BACKEND_ELEMENTS_H_

#include <vector>

#include "plugins/compiler_llvm/backend/ir.h"
#include "plugins/compiler_llvm/program.h"

namespace weir::compiler_llvm {

/// The type of an element in memory (half and bfloat16: i16, bool: i8) and in a register.
LLVMTypeRef StoredType(const Ir& ir, uint32_t dtype);
LLVMTypeRef HeldType(const Ir& ir, uint32_t dtype);
V FromStored(Ir& ir, uint32_t dtype, V stored);
V ToStored(Ir& ir, uint32_t dtype, V held);

/// A known element, from the low bytes of `bits`.
V Constant(Ir& ir, uint32_t dtype, uint64_t bits);

/// Rounds a float to the nearest element of half or bfloat16; other types unchanged.
V Rounded(Ir& ir, uint32_t dtype, V value);

/// The op of kernels_eigen on one element of each operand. `from` is the operands' element type; of kSelect the
/// result's. `divisor` is the known divisor of an integer division, sign-extended.
V Element(Ir& ir, const Node& node, uint32_t from, const std::vector<V>& operands, int64_t divisor);

// Reductions. A lane combines elements of a block, the total combines blocks.
uint32_t LaneDtype(Op op, uint32_t dtype);
uint32_t TotalDtype(Op op, uint32_t dtype);
/// What an element is to a lane.
V ToLane(Ir& ir, Op op, uint32_t dtype, V value);
V LaneToTotal(Ir& ir, Op op, uint32_t dtype, V lane);
/// Combines to `x` when it is combined with x.
V LaneStart(Ir& ir, Op op, uint32_t dtype);
/// The result of no elements.
V TotalStart(Ir& ir, Op op, uint32_t dtype);
V Combine(Ir& ir, Op op, uint32_t dtype, V total, V next);
/// The element for a total of `count` elements.
V Give(Ir& ir, Op op, uint32_t dtype, V total, int64_t count);

}  // namespace weir::compiler_llvm

#endif  // WEIR_PLUGINS_COMPILER_LLVM_BACKEND_ELEMENTS_H_
