// Summaries of sounds and tensors.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/errors.h"
#include "core/builtin/families.h"
#include "core/builtin/operands.h"
#include "core/builtin/wav.h"
#include "core/io/summary.h"

namespace weir::builtin {
namespace {

Status SoundSummary(kernel::BuiltinCall& call, float rate) {
  WEIR_ASSIGN(const std::span<const std::string> tags, Elements<std::string>(call, 0, "tag"));
  WEIR_ASSIGN(const std::span<const float> audio, Elements<float>(call, 1, "tensor"));
  WEIR_ASSIGN(const int64_t most, call.attrs.Int("max_outputs"));
  const Shape &tag_shape = call.inputs[0].shape(), &shape = call.inputs[1].shape();
  if (tag_shape.rank() != 0) return InvalidArgument("Tag must be a scalar, got shape {}", tag_shape.ToString());
  if (shape.rank() != 2 && shape.rank() != 3) {
    return InvalidArgument("Tensor must be 3-D or 2-D, got: {}", shape.ToString());
  }
  if (!(rate > 0)) return InvalidArgument("sample_rate must be > 0, got {}", rate);
  if (!(rate <= 0xffffffffu)) return InvalidArgument("sample_rate must be in (0, 2^32), got: {}", rate);
  const int64_t frames = shape.dim(1), channels = shape.rank() == 2 ? 1 : shape.dim(2);
  const int64_t sounds = std::min(most, shape.dim(0));
  if (sounds > 0 && (channels < 1 || channels > 0x7fff)) {
    return InvalidArgument("num_channels must be in (0, 2^15), got: {}", channels);
  }
  const auto whole_rate = static_cast<uint64_t>(std::max(1L, std::lrint(rate)));
  io::SummaryBuilder summary;
  for (int64_t i = 0; i < sounds; ++i) {
    const auto size = static_cast<size_t>(frames * channels);
    io::SoundFile sound{rate, channels, frames, {}};
    WEIR_ASSIGN(sound.wav,
                WavFile(audio.subspan(static_cast<size_t>(i) * size, size), channels, whole_rate));
    summary.AddAudio(most > 1 ? fmt::format("{}/audio/{}", tags[0], i) : fmt::format("{}/audio", tags[0]),
                     std::move(sound));
  }
  call.outputs[0] = Tensor::String(summary.Serialized());
  return Status();
}

Status AudioSummary(kernel::BuiltinCall& call) {
  WEIR_TRY(CheckCounts(call, 2, 1));
  WEIR_ASSIGN(const float rate, call.attrs.Float("sample_rate"));
  return SoundSummary(call, rate);
}

Status AudioSummaryV2(kernel::BuiltinCall& call) {
  WEIR_TRY(CheckCounts(call, 3, 1));
  WEIR_ASSIGN(const float rate, Scalar<float>(call, 2, "sample_rate"));
  return SoundSummary(call, rate);
}

Status TensorSummary(kernel::BuiltinCall& call) {
  WEIR_TRY(CheckCounts(call, 1, 1));
  WEIR_ASSIGN(const std::string summary, io::TensorSummary(call.node_name, "", call.inputs[0], std::nullopt));
  call.outputs[0] = Tensor::String(summary);
  return Status();
}

Status TensorSummaryV2(kernel::BuiltinCall& call) {
  WEIR_TRY(CheckCounts(call, 3, 1));
  WEIR_ASSIGN(const std::string tag, Scalar<std::string>(call, 0, "tag"));
  WEIR_ASSIGN(const std::string metadata, Scalar<std::string>(call, 2, "serialized_summary_metadata"));
  WEIR_ASSIGN(const std::string summary, io::TensorSummary("", tag, call.inputs[1], std::string_view(metadata)));
  call.outputs[0] = Tensor::String(summary);
  return Status();
}

}  // namespace

void AddMediaSummaries(kernel::KernelRegistry& kernels) {
  kernels.AddHost("AudioSummary", AudioSummary);
  kernels.AddHost("AudioSummaryV2", AudioSummaryV2);
  kernels.AddHost("TensorSummary", TensorSummary);
  kernels.AddHost("TensorSummaryV2", TensorSummaryV2);
}

}  // namespace weir::builtin
