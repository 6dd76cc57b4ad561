// Summary ops: convert values to a serialized Summary, which the client writes to an event file.
#include "core/base/errors.h"
#include "core/builtin/families.h"
#include "core/builtin/operands.h"
#include "core/io/summary.h"
#include "core/tensor/number.h"

namespace weir::builtin {
namespace {

bool IsReal(DType type) { return IsFloating(type) || IsInteger(type); }

Status ScalarSummary(kernel::BuiltinCall& call) {
  WEIR_TRY(CheckCounts(call, 2, 1));
  const Shape& tags_shape = call.inputs[0].shape();
  const Tensor& values = call.inputs[1];
  WEIR_ASSIGN(const std::span<const std::string> tags, Elements<std::string>(call, 0, "tags"));
  if (!(tags_shape == values.shape())) {
    return InvalidArgument("tags and values are not the same shape: {} != {}{}", tags_shape.ToString(),
                           values.shape().ToString(), tags.size() == 1 ? fmt::format(" (tag '{}')", tags[0]) : "");
  }
  if (!IsReal(values.dtype())) return InvalidArgument("values must be of a real type, got {}", Name(values.dtype()));
  io::SummaryBuilder summary;
  for (size_t i = 0; i < tags.size(); ++i) {
    summary.AddScalar(tags[i], static_cast<float>(ElementAsDouble(values, static_cast<int64_t>(i))));
  }
  call.outputs[0] = Tensor::String(summary.Serialized());
  return Status();
}

Status HistogramSummary(kernel::BuiltinCall& call) {
  WEIR_TRY(CheckCounts(call, 2, 1));
  WEIR_ASSIGN(const std::string tag, Scalar<std::string>(call, 0, "tag"));
  const Tensor& values = call.inputs[1];
  if (!IsReal(values.dtype())) return InvalidArgument("values must be of a real type, got {}", Name(values.dtype()));
  WEIR_ASSIGN(const std::string summary, io::HistogramSummary(tag, values, call.node_name));
  call.outputs[0] = Tensor::String(summary);
  return Status();
}

Status MergeSummary(kernel::BuiltinCall& call) {
  WEIR_TRY(CheckCounts(call, 1, 1));
  std::vector<std::string> summaries;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    WEIR_ASSIGN(const std::span<const std::string> input, Elements<std::string>(call, i, "inputs"));
    summaries.insert(summaries.end(), input.begin(), input.end());
  }
  WEIR_ASSIGN(const std::string merged, io::MergeSummaries(summaries));
  call.outputs[0] = Tensor::String(merged);
  return Status();
}

}  // namespace

void AddSummaries(kernel::KernelRegistry& kernels) {
  kernels.AddHost("ScalarSummary", ScalarSummary);
  kernels.AddHost("HistogramSummary", HistogramSummary);
  kernels.AddHost("MergeSummary", MergeSummary);
}

}  // namespace weir::builtin
