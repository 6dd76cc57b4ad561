// The families of builtin kernels, one file each.
#ifndef WEIR_CORE_BUILTIN_FAMILIES_H_
#define WEIR_CORE_BUILTIN_FAMILIES_H_

#include "core/kernel/builtin.h"

namespace weir::builtin {

/// SaveV2, RestoreV2, MergeV2Checkpoints, ShardedFilename, ShardedFilespec.
void AddCheckpoint(kernel::BuiltinRegistry& kernels);
/// ScalarSummary, HistogramSummary, MergeSummary.
void AddSummaries(kernel::BuiltinRegistry& kernels);
/// StringJoin, StaticRegexFullMatch.
void AddStrings(kernel::BuiltinRegistry& kernels);
/// Print, PrintV2, StringFormat.
void AddPrints(kernel::BuiltinRegistry& kernels);
/// Assert.
void AddChecks(kernel::BuiltinRegistry& kernels);

}  // namespace weir::builtin

#endif  // WEIR_CORE_BUILTIN_FAMILIES_H_
