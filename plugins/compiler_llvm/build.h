// What identifies the code generator.
#ifndef WEIR_PLUGINS_COMPILER_LLVM_BUILD_H_
#define WEIR_PLUGINS_COMPILER_LLVM_BUILD_H_

namespace weir::compiler_llvm {

#define WEIR_LLVM_PLUGIN_VERSION "0.1.0"

/// The last number counts changes of the code that is made for a region, and of the form in which it is kept.
inline constexpr char kBuild[] = "compiler_llvm " WEIR_LLVM_PLUGIN_VERSION " code 2, LLVM " WEIR_LLVM_VERSION;

}  // namespace weir::compiler_llvm

#endif  // WEIR_PLUGINS_COMPILER_LLVM_BUILD_H_
