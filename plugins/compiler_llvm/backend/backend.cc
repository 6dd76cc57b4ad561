#include "plugins/compiler_llvm/backend/backend.h"

#include <llvm-c/Analysis.h>
#include <llvm-c/Core.h>
#include <llvm-c/ErrorHandling.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>

#include <csetjmp>
#include <cstring>
#include <mutex>

#include "plugins/compiler_llvm/backend/nest.h"
#include "plugins/compiler_llvm/backend/object.h"
#include "plugins/compiler_llvm/build.h"

namespace weir::compiler_llvm {
namespace {

constexpr const char* kTriple = "x86_64-unknown-linux-gnu";
constexpr const char* kFunction = "region";

// LLVM reports what it considers a fatal error by a handler and then aborts the process. The handler leaves it instead;
// LLVM is not called again after that, since its state is unknown.
thread_local std::jmp_buf* t_leave = nullptr;
std::mutex g_broken_mutex;
bool g_broken = false;

void Fatal(const char*) {
  if (t_leave == nullptr) return;
  {
    const std::lock_guard lock(g_broken_mutex);
    g_broken = true;
  }
  std::longjmp(*t_leave, 1);
}

bool IsBroken() {
  const std::lock_guard lock(g_broken_mutex);
  return g_broken;
}

LLVMTargetRef Target() {
  static const LLVMTargetRef target = [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInstallFatalErrorHandler(&Fatal);
    LLVMTargetRef found = nullptr;
    char* message = nullptr;
    if (LLVMGetTargetFromTriple(kTriple, &found, &message) != 0) {
      LLVMDisposeMessage(message);
      return LLVMTargetRef{};
    }
    return found;
  }();
  return target;
}

/// What LLVM makes for one program.
class Unit {
 public:
  Unit() = default;
  Unit(const Unit&) = delete;
  Unit& operator=(const Unit&) = delete;
  ~Unit() {
    if (buffer_ != nullptr) LLVMDisposeMemoryBuffer(buffer_);
    if (builder_ != nullptr) LLVMDisposeBuilder(builder_);
    if (module_ != nullptr) LLVMDisposeModule(module_);
    if (context_ != nullptr) LLVMContextDispose(context_);
    if (machine_ != nullptr) LLVMDisposeTargetMachine(machine_);
  }

  bool Build(const Program& program, Level level, std::string* why) {
    const char* cpu = level == Level::kV4 ? "x86-64-v4" : "x86-64-v3";
    machine_ =
        LLVMCreateTargetMachine(Target(), kTriple, cpu, "", LLVMCodeGenLevelDefault, LLVMRelocPIC, LLVMCodeModelSmall);
    if (machine_ == nullptr) return Refuse("has no target machine", why);
    context_ = LLVMContextCreate();
    module_ = LLVMModuleCreateWithNameInContext("region", context_);
    builder_ = LLVMCreateBuilderInContext(context_);
    LLVMSetTarget(module_, kTriple);
    LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(machine_);
    LLVMSetModuleDataLayout(module_, layout);
    LLVMDisposeTargetData(layout);
    Ir ir(context_, module_, builder_);
    ir.has_scalef = level == Level::kV4;
    EmitNest(ir, program, level, kFunction);
    char* message = nullptr;
    if (LLVMVerifyModule(module_, LLVMReturnStatusAction, &message) != 0) {
      *why = std::string("the region's IR is not valid: ") + (message == nullptr ? "" : message);
      LLVMDisposeMessage(message);
      return false;
    }
    LLVMDisposeMessage(message);
    return true;
  }

  bool Assemble(LLVMCodeGenFileType type, std::string* why) {
    char* message = nullptr;
    if (LLVMTargetMachineEmitToMemoryBuffer(machine_, module_, type, &message, &buffer_) == 0) return true;
    *why = std::string("LLVM: ") + (message == nullptr ? "" : message);
    LLVMDisposeMessage(message);
    return false;
  }

  std::span<const uint8_t> Result() const {
    return {reinterpret_cast<const uint8_t*>(LLVMGetBufferStart(buffer_)), LLVMGetBufferSize(buffer_)};
  }

 private:
  static bool Refuse(const char* text, std::string* why) {
    *why = std::string("LLVM ") + text;
    return false;
  }

  LLVMContextRef context_ = nullptr;
  LLVMModuleRef module_ = nullptr;
  LLVMBuilderRef builder_ = nullptr;
  LLVMTargetMachineRef machine_ = nullptr;
  LLVMMemoryBufferRef buffer_ = nullptr;
};

bool GenerateIn(Unit* unit, const Program& program, Level level, Code* code, std::string* why) {
  return unit->Build(program, level, why) && unit->Assemble(LLVMObjectFile, why) &&
         LayOut(unit->Result(), kFunction, code, why);
}

bool AssemblyIn(Unit* unit, const Program& program, Level level, std::string* text) {
  if (!unit->Build(program, level, text) || !unit->Assemble(LLVMAssemblyFile, text)) return false;
  const std::span<const uint8_t> result = unit->Result();
  text->assign(reinterpret_cast<const char*>(result.data()), result.size());
  return true;
}

/// Calls work(unit), which a fatal error of LLVM leaves; the unit's memory is lost then.
template <class Work>
bool Guarded(const Work& work, std::string* why) {
  if (IsBroken()) {
    *why = "LLVM failed before";
    return false;
  }
  if (Target() == nullptr) {
    *why = "LLVM has no code for x86-64";
    return false;
  }
  std::jmp_buf leave;
  auto* const unit = new Unit;
  if (setjmp(leave) != 0) {
    t_leave = nullptr;
    *why = "LLVM failed";
    return false;
  }
  t_leave = &leave;
  const bool done = work(unit);
  t_leave = nullptr;
  delete unit;
  return done;
}

bool Generate(const Program& program, Level level, Code* code, std::string* why) {
  return Guarded([&](Unit* unit) { return GenerateIn(unit, program, level, code, why); }, why);
}

bool Assembly(const Program& program, Level level, std::string* text) {
  return Guarded([&](Unit* unit) { return AssemblyIn(unit, program, level, text); }, text);
}

constexpr Backend kBackend = {kBuild, &Generate, &Assembly};

}  // namespace
}  // namespace weir::compiler_llvm

extern "C" __attribute__((visibility("default"))) const weir::compiler_llvm::Backend* weir_llvm_backend_2() {
  return &weir::compiler_llvm::kBackend;
}
