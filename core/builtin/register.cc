#include "core/builtin/register.h"

#include "core/builtin/families.h"

namespace weir::builtin {

void AddAll(kernel::KernelRegistry& kernels) {
  AddCheckpoint(kernels);
  AddLegacyCheckpoint(kernels);
  AddFileContents(kernels);
  AddParseExample(kernels);
  AddFeatures(kernels);
  AddRaggedTensors(kernels);
  AddMediaSummaries(kernels);
  AddSummaries(kernels);
  AddStrings(kernels);
  AddSparseMessages(kernels);
  AddStringParts(kernels);
  AddStringJoins(kernels);
  AddStringPatterns(kernels);
  AddNumerals(kernels);
  AddRawBytes(kernels);
  AddCsv(kernels);
  AddUnicode(kernels);
  AddWav(kernels);
  AddPrints(kernels);
  AddResources(kernels);
  AddStacks(kernels);
  AddTensorArrays(kernels);
  AddTensorLists(kernels);
  AddOptionals(kernels);
  AddTables(kernels);
  AddQueues(kernels);
  AddReaders(kernels);
  AddBarriers(kernels);
  AddStagingAreas(kernels);
  AddAccumulators(kernels);
  AddChecks(kernels);
  AddFunctional(kernels);
}

}  // namespace weir::builtin
