#include "plugins/compiler_llvm/link.h"

#include <cstring>

#include "plugins/compiler_llvm/build.h"
#include "sdk/cpp/late_part.h"

namespace weir::compiler_llvm {
namespace {

struct Loaded {
  const Backend* backend = nullptr;
  std::string why;
};

Loaded Load() {
  const sdk::LatePart part = sdk::LoadLatePart(reinterpret_cast<const void*>(&LoadBackend),
                                               "compiler_llvm/backend.so", WEIR_LLVM_BACKEND_SYMBOL);
  if (part.symbol == nullptr) return {nullptr, part.why};
  const Backend* const backend = reinterpret_cast<BackendFn>(part.symbol)();
  if (std::strcmp(backend->build, kBuild) != 0) {
    return {nullptr, std::string("compiler_llvm/backend.so is not of this build: wanted ") + kBuild};
  }
  return {backend, ""};
}

}  // namespace

const Backend* LoadBackend(std::string* why) {
  static const Loaded loaded = Load();
  *why = loaded.why;
  return loaded.backend;
}

}  // namespace weir::compiler_llvm
