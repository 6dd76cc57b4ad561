// The families of builtin kernels, one file each.
#ifndef WEIR_CORE_BUILTIN_FAMILIES_H_
#define WEIR_CORE_BUILTIN_FAMILIES_H_

#include "core/kernel/registry.h"

namespace weir::builtin {

/// SaveV2, RestoreV2, MergeV2Checkpoints, ShardedFilename, ShardedFilespec.
void AddCheckpoint(kernel::KernelRegistry& kernels);
/// Save, SaveSlices, Restore, RestoreSlice.
void AddLegacyCheckpoint(kernel::KernelRegistry& kernels);
/// ReadFile, WriteFile, MatchingFiles.
void AddFileContents(kernel::KernelRegistry& kernels);
/// ParseExample, ParseExampleV2, ParseSingleExample and the like.
void AddParseExample(kernel::KernelRegistry& kernels);
/// SparseCross, BoostedTreesBucketize, StringNGrams.
void AddFeatures(kernel::KernelRegistry& kernels);
/// RaggedTensorToTensor.
void AddRaggedTensors(kernel::KernelRegistry& kernels);
/// AudioSummary, AudioSummaryV2, TensorSummary, TensorSummaryV2.
void AddMediaSummaries(kernel::KernelRegistry& kernels);
/// ScalarSummary, HistogramSummary, MergeSummary.
void AddSummaries(kernel::KernelRegistry& kernels);
/// StringJoin, StaticRegexFullMatch.
void AddStrings(kernel::KernelRegistry& kernels);
/// SerializeSparse, DeserializeSparse and the like.
void AddSparseMessages(kernel::KernelRegistry& kernels);
/// StringLength, Substr, StringStrip, StringLower, StringUpper.
void AddStringParts(kernel::KernelRegistry& kernels);
/// StringSplit, StringSplitV2, ReduceJoin, UnsortedSegmentJoin.
void AddStringJoins(kernel::KernelRegistry& kernels);
/// RegexReplace, StaticRegexReplace, RegexFullMatch, StringToHashBucketFast and the like.
void AddStringPatterns(kernel::KernelRegistry& kernels);
/// AsString, StringToNumber, Timestamp.
void AddNumerals(kernel::KernelRegistry& kernels);
/// DecodeRaw, DecodePaddedRaw, EncodeBase64, DecodeBase64, ParseTensor, SerializeTensor.
void AddRawBytes(kernel::KernelRegistry& kernels);
/// DecodeCSV.
void AddCsv(kernel::KernelRegistry& kernels);
/// UnicodeTranscode, UnicodeDecode, UnicodeDecodeWithOffsets, UnicodeEncode.
void AddUnicode(kernel::KernelRegistry& kernels);
/// DecodeWav, EncodeWav.
void AddWav(kernel::KernelRegistry& kernels);
/// Print, PrintV2, StringFormat.
void AddPrints(kernel::KernelRegistry& kernels);
/// DestroyResourceOp.
void AddResources(kernel::KernelRegistry& kernels);
/// StackV2, StackPushV2, StackPopV2, StackCloseV2.
void AddStacks(kernel::KernelRegistry& kernels);
/// EmptyTensorList, TensorListPushBack and the like; AddN and ZerosLike of variants.
void AddTensorLists(kernel::KernelRegistry& kernels);
/// OptionalFromValue, OptionalNone, OptionalHasValue, OptionalGetValue.
void AddOptionals(kernel::KernelRegistry& kernels);
/// HashTableV2, LookupTableFindV2 and the like.
void AddTables(kernel::KernelRegistry& kernels);
/// FIFOQueueV2, QueueDequeueV2 and the like, and those on references.
void AddQueues(kernel::KernelRegistry& kernels);
/// TextLineReaderV2, ReaderReadV2 and the like.
void AddReaders(kernel::KernelRegistry& kernels);
/// Barrier, BarrierInsertMany and the like.
void AddBarriers(kernel::KernelRegistry& kernels);
/// Stage, MapStage, OrderedMapStage and the like.
void AddStagingAreas(kernel::KernelRegistry& kernels);
/// ConditionalAccumulator, AccumulatorTakeGradient and the like.
void AddAccumulators(kernel::KernelRegistry& kernels);
/// TensorArrayV3 and the ops on it.
void AddTensorArrays(kernel::KernelRegistry& kernels);
/// Assert, CheckNumerics.
void AddChecks(kernel::KernelRegistry& kernels);
/// ToBool, FakeParam.
void AddFunctional(kernel::KernelRegistry& kernels);

}  // namespace weir::builtin

#endif  // WEIR_CORE_BUILTIN_FAMILIES_H_
