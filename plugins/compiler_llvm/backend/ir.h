// Building LLVM's IR for scalars and vectors alike.
#ifndef WEIR_PLUGINS_COMPILER_LLVM_BACKEND_IR_H_
#define WEIR_PLUGINS_COMPILER_LLVM_BACKEND_IR_H_

#include <llvm-c/Core.h>

#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <vector>

namespace weir::compiler_llvm {

using V = LLVMValueRef;

/// Functions take and give values of `lanes` elements: vectors, or scalars if lanes is 1.
class Ir {
 public:
  Ir(LLVMContextRef context, LLVMModuleRef module, LLVMBuilderRef builder);

  LLVMContextRef context;
  LLVMModuleRef module;
  LLVMBuilderRef b;
  unsigned lanes = 1;
  bool has_scalef = false;  // vectors of 512 bits may use AVX-512's multiplication by powers of two
  LLVMTypeRef i1, i8, i16, i32, i64, half, f32, f64;

  LLVMTypeRef Wide(LLVMTypeRef element) const { return lanes == 1 ? element : LLVMVectorType(element, lanes); }
  static LLVMTypeRef ElementOf(V value);
  static bool IsReal(V value);
  static bool IsDouble(V value);
  LLVMTypeRef Pointer(LLVMTypeRef to) const { return LLVMPointerType(to, 0); }

  V Splat(V scalar);
  /// Of the type of `like`.
  V Real(V like, double value) { return RealOf(ElementOf(like), value); }
  V Int(V like, uint64_t value) { return IntOf(ElementOf(like), value); }
  V RealOf(LLVMTypeRef element, double value) { return SplatConstant(LLVMConstReal(element, value)); }
  V IntOf(LLVMTypeRef element, uint64_t value) { return SplatConstant(LLVMConstInt(element, value, 0)); }
  V Index(int64_t value) const { return LLVMConstInt(i64, static_cast<uint64_t>(value), 0); }

  // Real and integer arithmetic; integers wrap.
  V Add(V x, V y) { return IsReal(x) ? LLVMBuildFAdd(b, x, y, "") : LLVMBuildAdd(b, x, y, ""); }
  V Sub(V x, V y) { return IsReal(x) ? LLVMBuildFSub(b, x, y, "") : LLVMBuildSub(b, x, y, ""); }
  V Mul(V x, V y) { return IsReal(x) ? LLVMBuildFMul(b, x, y, "") : LLVMBuildMul(b, x, y, ""); }
  V Div(V x, V y) { return LLVMBuildFDiv(b, x, y, ""); }
  V Neg(V x) { return IsReal(x) ? LLVMBuildFNeg(b, x, "") : LLVMBuildNeg(b, x, ""); }
  V And(V x, V y) { return LLVMBuildAnd(b, x, y, ""); }
  V Or(V x, V y) { return LLVMBuildOr(b, x, y, ""); }
  V Xor(V x, V y) { return LLVMBuildXor(b, x, y, ""); }
  V Shl(V x, V y) { return LLVMBuildShl(b, x, y, ""); }
  V LShr(V x, V y) { return LLVMBuildLShr(b, x, y, ""); }
  V Fma(V x, V y, V z) { return Call("llvm.fma", {x, y, z}); }
  V Sqrt(V x) { return Call("llvm.sqrt", {x}); }
  V Fabs(V x) { return Call("llvm.fabs", {x}); }
  V CopySign(V size, V sign) { return Call("llvm.copysign", {size, sign}); }
  V FCmp(LLVMRealPredicate predicate, V x, V y) { return LLVMBuildFCmp(b, predicate, x, y, ""); }
  V ICmp(LLVMIntPredicate predicate, V x, V y) { return LLVMBuildICmp(b, predicate, x, y, ""); }
  V Select(V condition, V yes, V no) { return LLVMBuildSelect(b, condition, yes, no, ""); }
  /// An intrinsic that is overloaded by the type of its first operand.
  V Call(std::string_view name, std::initializer_list<V> operands);
  V CallOf(std::string_view name, std::initializer_list<LLVMTypeRef> types, std::initializer_list<V> operands);
  V Cast(LLVMOpcode op, V x, LLVMTypeRef element) { return LLVMBuildCast(b, op, x, Wide(element), ""); }
  V Bits(V real) { return Cast(LLVMBitCast, real, IsDouble(real) ? i64 : i32); }
  V FromBits(V bits) { return Cast(LLVMBitCast, bits, ElementOf(bits) == i64 ? f64 : f32); }

  /// The address `offset` bytes behind `base`.
  V At(V base, V offset);
  V Load(LLVMTypeRef type, V address, unsigned alignment);
  void Store(V value, V address, unsigned alignment);

 private:
  V SplatConstant(V scalar);
};

}  // namespace weir::compiler_llvm

#endif  // WEIR_PLUGINS_COMPILER_LLVM_BACKEND_IR_H_
