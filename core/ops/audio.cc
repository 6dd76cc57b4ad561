// Sound: WAV files, spectrograms, mel-frequency cepstral coefficients.
#include <bit>

#include "core/op/grad_context.h"
#include "core/op/shape_context.h"
#include "core/ops/families.h"
#include "core/ops/shape_algebra.h"

namespace weir::ops {
namespace {

using op::Category;
using op::kUndefinedGradient;
using op::OpBuilder;
using op::OpRegistry;
using op::ShapeContext;

/// -1, any number, is kept; other negative numbers are errors.
Result<int64_t> Desired(const ShapeContext& c, std::string_view attr, std::string_view what) {
  WEIR_ASSIGN(const int64_t count, c.attrs().Int(attr));
  if (count < -1) return InvalidArgument("{} must be non-negative, got {}", what, count);
  return count;
}

/// [samples, channels] and the sample rate.
Status DecodeWavShape(ShapeContext& c) {
  WEIR_TRY(c.WithRank(0, 0).status());
  WEIR_ASSIGN(const int64_t channels, Desired(c, "desired_channels", "channels"));
  WEIR_ASSIGN(const int64_t samples, Desired(c, "desired_samples", "samples"));
  const int64_t extents[] = {samples, channels};
  WEIR_ASSIGN(PartialShape audio, PartialShape::Make(extents));
  c.set_output(0, std::move(audio));
  c.set_output(1, PartialShape::OfRank(0));
  return Status();
}

Status EncodeWavShape(ShapeContext& c) {
  WEIR_TRY(c.WithRank(0, 2).status());
  WEIR_TRY(c.WithRank(1, 0).status());
  c.set_output(0, PartialShape::OfRank(0));
  return Status();
}

/// input [samples, channels] -> [channels, frames, frequencies].
Status SpectrogramShape(ShapeContext& c) {
  WEIR_ASSIGN(const PartialShape input, c.WithRank(0, 2));
  WEIR_ASSIGN(const int64_t window, c.attrs().Int("window_size"));
  WEIR_ASSIGN(const int64_t stride, c.attrs().Int("stride"));
  if (window < 2) return InvalidArgument("window size must be > 1, got {}", window);
  if (stride < 1) return InvalidArgument("stride must be strictly positive, got {}", stride);
  if (window > int64_t{1} << 30) return InvalidArgument("window_size must be at most 2^30, got {}", window);
  const int64_t samples = input.dim(0);
  const int64_t frames = samples < 0 ? -1 : samples < window ? 0 : 1 + (samples - window) / stride;
  const auto frequencies = static_cast<int64_t>(1 + std::bit_ceil(static_cast<uint64_t>(window)) / 2);
  const int64_t extents[] = {input.dim(1), frames, frequencies};
  WEIR_ASSIGN(PartialShape shape, PartialShape::Make(extents));
  c.set_output(0, std::move(shape));
  return Status();
}

/// spectrogram [channels, frames, frequencies] -> [channels, frames, coefficients].
Status MfccShape(ShapeContext& c) {
  WEIR_ASSIGN(const PartialShape input, c.WithRank(0, 3));
  WEIR_TRY(c.WithRank(1, 0).status());
  WEIR_ASSIGN(const int64_t coefficients, c.attrs().Int("dct_coefficient_count"));
  if (coefficients < 1) return InvalidArgument("dct_coefficient_count must be positive, got {}", coefficients);
  const int64_t extents[] = {input.dim(0), input.dim(1), coefficients};
  WEIR_ASSIGN(PartialShape shape, PartialShape::Make(extents));
  c.set_output(0, std::move(shape));
  return Status();
}

OpBuilder Sound(OpRegistry& ops, std::string_view name) { return ops.Declare(name).Is(Category::kMath); }

}  // namespace

void DeclareAudio(OpRegistry& ops) {
  Sound(ops, "DecodeWav")
      .In("contents: string")
      .Out("audio: float")
      .Out("sample_rate: int32")
      .Attr("desired_channels: int = -1")
      .Attr("desired_samples: int = -1")
      .Shape(DecodeWavShape)
      .NoGradient(kUndefinedGradient)
      .Doc("The samples [samples, channels] of a 16-bit PCM WAV file as floats in [-1, 1), and its sample rate.");
  Sound(ops, "EncodeWav")
      .In("audio: float")
      .In("sample_rate: int32")
      .Out("contents: string")
      .Shape(EncodeWavShape)
      .NoGradient(kUndefinedGradient)
      .Doc("A 16-bit PCM WAV file of samples [samples, channels] in [-1, 1].");
  Sound(ops, "AudioSpectrogram")
      .In("input: float")
      .Out("spectrogram: float")
      .Attr("magnitude_squared: bool = false")
      .Attr("stride: int")
      .Attr("window_size: int")
      .Shape(SpectrogramShape)
      .NoGradient(kUndefinedGradient)
      .Doc(
          "Magnitudes of the Fourier transforms of windows (Hann) that move along [samples, channels] by `stride`: "
          "[channels, frames, frequencies].");
  Sound(ops, "Mfcc")
      .In("spectrogram: float")
      .In("sample_rate: int32")
      .Out("output: float")
      .Attr("dct_coefficient_count: int = 13")
      .Attr("filterbank_channel_count: int = 40")
      .Attr("lower_frequency_limit: float = 20")
      .Attr("upper_frequency_limit: float = 4000")
      .Shape(MfccShape)
      .NoGradient(kUndefinedGradient)
      .Doc(
          "Mel-frequency cepstral coefficients of a spectrogram of squared magnitudes: [channels, frames, "
          "coefficients].");
}

}  // namespace weir::ops
