#include "core/builtin/register.h"

#include "core/builtin/families.h"

namespace weir::builtin {

void AddAll(kernel::BuiltinRegistry& kernels) {
  AddCheckpoint(kernels);
  AddSummaries(kernels);
  AddStrings(kernels);
  AddPrints(kernels);
  AddChecks(kernels);
}

}  // namespace weir::builtin
