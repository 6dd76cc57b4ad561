#include "plugins/compiler_llvm/backend/ir.h"

namespace weir::compiler_llvm {

Ir::Ir(LLVMContextRef in, LLVMModuleRef of, LLVMBuilderRef with)
    : context(in),
      module(of),
      b(with),
      i1(LLVMInt1TypeInContext(in)),
      i8(LLVMInt8TypeInContext(in)),
      i16(LLVMInt16TypeInContext(in)),
      i32(LLVMInt32TypeInContext(in)),
      i64(LLVMInt64TypeInContext(in)),
      half(LLVMHalfTypeInContext(in)),
      f32(LLVMFloatTypeInContext(in)),
      f64(LLVMDoubleTypeInContext(in)) {}

LLVMTypeRef Ir::ElementOf(V value) {
  LLVMTypeRef type = LLVMTypeOf(value);
  return LLVMGetTypeKind(type) == LLVMVectorTypeKind ? LLVMGetElementType(type) : type;
}
bool Ir::IsReal(V value) {
  const LLVMTypeKind kind = LLVMGetTypeKind(ElementOf(value));
  return kind == LLVMFloatTypeKind || kind == LLVMDoubleTypeKind;
}
bool Ir::IsDouble(V value) { return LLVMGetTypeKind(ElementOf(value)) == LLVMDoubleTypeKind; }

V Ir::Splat(V scalar) {
  if (lanes == 1) return scalar;
  if (LLVMIsConstant(scalar) != 0) return SplatConstant(scalar);
  LLVMTypeRef type = Wide(LLVMTypeOf(scalar));
  V first = LLVMBuildInsertElement(b, LLVMGetUndef(type), scalar, LLVMConstInt(i32, 0, 0), "");
  return LLVMBuildShuffleVector(b, first, LLVMGetUndef(type), LLVMConstNull(LLVMVectorType(i32, lanes)), "");
}

V Ir::SplatConstant(V scalar) {
  if (lanes == 1) return scalar;
  std::vector<V> elements(lanes, scalar);
  return LLVMConstVector(elements.data(), lanes);
}

V Ir::Call(std::string_view name, std::initializer_list<V> operands) {
  return CallOf(name, {LLVMTypeOf(*operands.begin())}, operands);
}

V Ir::CallOf(std::string_view name, std::initializer_list<LLVMTypeRef> types, std::initializer_list<V> operands) {
  const unsigned id = LLVMLookupIntrinsicID(name.data(), name.size());
  std::vector<LLVMTypeRef> overloads(types);
  std::vector<V> arguments(operands);
  V function = LLVMGetIntrinsicDeclaration(module, id, overloads.data(), overloads.size());
  LLVMTypeRef type = LLVMIntrinsicGetType(context, id, overloads.data(), overloads.size());
  return LLVMBuildCall2(b, type, function, arguments.data(), static_cast<unsigned>(arguments.size()), "");
}

V Ir::At(V base, V offset) { return LLVMBuildGEP2(b, i8, base, &offset, 1, ""); }

V Ir::Load(LLVMTypeRef type, V address, unsigned alignment) {
  V value = LLVMBuildLoad2(b, type, LLVMBuildBitCast(b, address, Pointer(type), ""), "");
  LLVMSetAlignment(value, alignment);
  return value;
}

void Ir::Store(V value, V address, unsigned alignment) {
  V store = LLVMBuildStore(b, value, LLVMBuildBitCast(b, address, Pointer(LLVMTypeOf(value)), ""));
  LLVMSetAlignment(store, alignment);
}

}  // namespace weir::compiler_llvm
