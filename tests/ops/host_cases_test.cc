// The tables of op cases on the core's own kernels.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "core/base/errors.h"
#include "core/builtin/register.h"
#include "core/kernel/registry.h"
#include "core/runtime/node_resources.h"
#include "tests/ops/case_table.h"
#include "tools/weir/cases/case_values.h"

namespace weir::testing {
namespace {

const kernel::KernelRegistry& HostKernels() {
  static const kernel::KernelRegistry kernels = [] {
    kernel::KernelRegistry made;
    builtin::AddAll(made);
    return made;
  }();
  return kernels;
}

Status RunHost(const kernel::BuiltinKernel& kernel, const OpCase& c) {
  runtime::NodeResources resources;
  kernel::BuiltinCall call{"case", c.view(), c.inputs, std::vector<Tensor>(c.signature.outputs.size()), &resources};
  const Status status = kernel.fn(call);
  if (c.fails) {
    const bool refused = !status.ok() && status.code() != Code::kInternal;
    if (refused && status.message().find(c.error) != std::string::npos) return {};
    return Internal("'{}' instead of '{}'", status.ToString(), c.error);
  }
  WEIR_TRY(status);
  WEIR_ASSIGN(const std::vector<PartialShape> inferred, InferCase(c));
  for (size_t i = 0; i < c.outputs.size(); ++i) {
    if (!inferred[i].CompatibleWith(call.outputs[i].shape())) {
      return Internal("output {} has shape {}, inferred {}", i, call.outputs[i].shape().ToString(),
                      inferred[i].ToString());
    }
    const Status same = SameCaseValue(call.outputs[i], c.outputs[i], c.tolerance);
    if (!same.ok()) return Internal("output {}: {}", i, same.message());
  }
  return {};
}

TEST(OpCases, EveryHostKernel) {
  std::map<std::string, int> runs;
  for (const OpCase& c : OpCases()) {
    const kernel::KernelEntry* entry = HostKernels().FindHost(c.def->name);
    if (entry == nullptr || !entry->host->fn || c.def->name == "AddN") continue;  // AddN: of variants only
    ++runs[c.def->name];
    const Status status = RunHost(*entry->host, c);
    EXPECT_TRUE(status.ok()) << c.ToString() << ": " << status.ToString();
  }
  for (const char* op : {"AsString",
                         "AudioSummaryV2",
                         "DecodeBase64",
                         "DecodeCSV",
                         "DecodePaddedRaw",
                         "DecodeRaw",
                         "DecodeWav",
                         "EncodeBase64",
                         "EncodeWav",
                         "ParseExample",
                         "ParseExampleV2",
                         "ParseSingleExample",
                         "ParseTensor",
                         "RaggedTensorToTensor",
                         "ReduceJoin",
                         "RegexFullMatch",
                         "RegexReplace",
                         "SerializeTensor",
                         "SparseCross",
                         "SparseCrossV2",
                         "StaticRegexReplace",
                         "StringLength",
                         "StringLower",
                         "StringNGrams",
                         "StringSplit",
                         "StringSplitV2",
                         "StringStrip",
                         "StringToHashBucket",
                         "StringToHashBucketFast",
                         "StringToHashBucketStrong",
                         "StringToNumber",
                         "StringUpper",
                         "Substr",
                         "TensorSummaryV2",
                         "UnicodeDecode",
                         "UnicodeDecodeWithOffsets",
                         "UnicodeEncode",
                         "UnicodeTranscode",
                         "UnsortedSegmentJoin"}) {
    EXPECT_GE(runs[op], 2) << op;
  }
}

}  // namespace
}  // namespace weir::testing
