// WAV files of 16-bit PCM samples.
#include "core/builtin/wav.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/builtin/families.h"
#include "core/builtin/operands.h"

namespace weir::builtin {
namespace {

constexpr float kScale = 32768;

/// The samples of a file, a view into its bytes, and their form.
struct Sound {
  int64_t channels = 0, samples = 0;  // samples of each channel
  uint32_t rate = 0;
  std::string_view data;  // little-endian, channel by channel for each sample

  float At(int64_t sample, int64_t channel) const {
    const auto at = static_cast<size_t>(sample * channels + channel) * 2;
    const auto low = static_cast<unsigned char>(data[at]), high = static_cast<unsigned char>(data[at + 1]);
    return static_cast<float>(static_cast<int16_t>(low | high << 8)) / kScale;
  }
};

/// Reads the parts of a RIFF file in order.
class RiffReader {
 public:
  explicit RiffReader(std::string_view bytes) : bytes_(bytes) {}

  bool ended() const { return at_ >= bytes_.size(); }
  Result<std::string_view> Take(uint64_t count) {
    if (at_ > bytes_.size() || count > bytes_.size() - at_) {
      return InvalidArgument("Data too short when trying to read string");
    }
    const std::string_view taken = bytes_.substr(at_, count);
    at_ += count;
    return taken;
  }
  /// A little-endian number.
  Result<uint32_t> Number(uint64_t bytes) {
    WEIR_ASSIGN(const std::string_view taken, Take(bytes));
    uint32_t value = 0;
    for (size_t i = 0; i < taken.size(); ++i) value |= uint32_t{static_cast<unsigned char>(taken[i])} << (8 * i);
    return value;
  }
  Status Expect(std::string_view text) {
    WEIR_ASSIGN(const std::string_view found, Take(text.size()));
    if (found == text) return Status();
    return InvalidArgument("Header mismatch: Expected {} but found {}", text, found);
  }
  /// May lead beyond the end.
  void Skip(uint64_t count) { at_ += count; }

 private:
  std::string_view bytes_;
  uint64_t at_ = 0;
};

/// Chunks before the format that are passed over.
bool IsKnownChunk(std::string_view id) {
  constexpr std::string_view kKnown[] = {"JUNK", "bext", "iXML", "qlty", "mext", "levl", "link", "axml"};
  return std::ranges::find(kKnown, id) != std::end(kKnown);
}

Status ReadFormat(RiffReader& in, Sound* sound) {
  WEIR_ASSIGN(const uint32_t size, in.Number(4));
  if (size != 16 && size != 18) {
    return InvalidArgument("Bad format chunk size for WAV: Expected 16 or 18, but got{}", size);
  }
  WEIR_ASSIGN(const uint32_t format, in.Number(2));
  if (format != 1) return InvalidArgument("Bad audio format for WAV: Expected 1 (PCM), but got{}", format);
  WEIR_ASSIGN(const uint32_t channels, in.Number(2));
  if (channels < 1) {
    return InvalidArgument("Bad number of channels for WAV: Expected at least 1, but got {}", channels);
  }
  WEIR_ASSIGN(sound->rate, in.Number(4));
  WEIR_ASSIGN(const uint32_t bytes_per_second, in.Number(4));
  WEIR_ASSIGN(const uint32_t bytes_per_sample, in.Number(2));
  WEIR_ASSIGN(const uint32_t bits, in.Number(2));
  if (bits != 16) return InvalidArgument("Can only read 16-bit WAV files, but received {}", bits);
  const uint32_t expected = (bits * channels + 7) / 8;
  if (bytes_per_sample != expected) {
    return InvalidArgument("Bad bytes per sample in WAV header: Expected {} but got {}", expected, bytes_per_sample);
  }
  if (bytes_per_second != bytes_per_sample * sound->rate) {
    return InvalidArgument(
        "Bad bytes per second in WAV header: Expected {} but got {} (sample_rate={}, bytes_per_sample={})",
        bytes_per_sample * sound->rate, bytes_per_second, sound->rate, bytes_per_sample);
  }
  if (size == 18) WEIR_TRY(in.Take(2).status());
  sound->channels = channels;
  return Status();
}

Result<Sound> ReadWav(std::string_view bytes) {
  Sound sound;
  RiffReader in(bytes);
  WEIR_TRY(in.Expect("RIFF"));
  WEIR_TRY(in.Take(4).status());
  WEIR_TRY(in.Expect("WAVE"));
  for (;;) {
    WEIR_ASSIGN(const std::string_view id, in.Take(4));
    if (id == "fmt ") break;
    if (!IsKnownChunk(id)) return InvalidArgument("Unexpected field {}", id);
    WEIR_ASSIGN(const uint32_t size, in.Number(4));
    WEIR_TRY(in.Take(size).status());
  }
  WEIR_TRY(ReadFormat(in, &sound));
  bool found = false;
  while (!in.ended()) {
    WEIR_ASSIGN(const std::string_view id, in.Take(4));
    WEIR_ASSIGN(const uint32_t size, in.Number(4));
    constexpr int32_t kLargest = std::numeric_limits<int32_t>::max();
    if (size > static_cast<uint32_t>(kLargest)) {
      return InvalidArgument("WAV data chunk '{}' is too large: {} bytes, but the limit is {}", id, size, kLargest);
    }
    if (id != "data") {
      in.Skip(size);
      continue;
    }
    if (found) return InvalidArgument("More than one data chunk found in WAV");
    found = true;
    sound.samples = size / (2 * sound.channels);
    WEIR_ASSIGN(sound.data, in.Take(static_cast<uint64_t>(sound.samples * sound.channels * 2)));
  }
  if (!found) return InvalidArgument("No data chunk found in WAV");
  return sound;
}

Status DecodeWav(kernel::BuiltinCall& call) {
  WEIR_TRY(CheckCounts(call, 1, 2));
  WEIR_ASSIGN(const std::span<const std::string> contents, Elements<std::string>(call, 0, "contents"));
  if (call.inputs[0].shape().rank() != 0) {
    return InvalidArgument("contents must be scalar, got shape {}", call.inputs[0].shape().ToString());
  }
  WEIR_ASSIGN(int64_t channels, call.attrs.Int("desired_channels"));
  WEIR_ASSIGN(int64_t samples, call.attrs.Int("desired_samples"));
  WEIR_ASSIGN(const Sound sound, ReadWav(contents[0]));
  if (channels == -1) channels = sound.channels;
  if (samples == -1) samples = sound.samples;
  const int64_t dims[] = {samples, channels};
  WEIR_ASSIGN(Shape shape, Shape::Make(dims));
  WEIR_ASSIGN(Tensor audio, Tensor::Make(DType::kFloat, std::move(shape)));
  const std::span<float> out = audio.mutable_as<float>();
  // Channels that the file lacks repeat its last one; samples that it lacks are silent.
  for (size_t i = 0; i < out.size(); ++i) {
    const int64_t sample = static_cast<int64_t>(i) / channels, channel = static_cast<int64_t>(i) % channels;
    out[i] = sample < sound.samples ? sound.At(sample, std::min(channel, sound.channels - 1)) : 0;
  }
  call.outputs[0] = std::move(audio);
  call.outputs[1] = Tensor::Scalar<int32_t>(static_cast<int32_t>(sound.rate));
  return Status();
}

void AppendNumber(uint64_t value, int bytes, std::string* text) {
  for (int i = 0; i < bytes; ++i) *text += static_cast<char>(value >> (8 * i) & 255);
}

}  // namespace

Result<std::string> WavFile(std::span<const float> audio, int64_t channels, uint64_t hertz) {
  const uint64_t bytes = audio.size() * 2;
  if (bytes > std::numeric_limits<uint32_t>::max() - 44) {
    return InvalidArgument("Provided channels and frames cannot be encoded as a WAV.");
  }
  const auto width = static_cast<uint64_t>(channels) * 2;
  std::string wav = "RIFF";
  AppendNumber(36 + bytes, 4, &wav);
  wav += "WAVEfmt ";
  AppendNumber(16, 4, &wav);
  AppendNumber(1, 2, &wav);
  AppendNumber(static_cast<uint64_t>(channels), 2, &wav);
  AppendNumber(hertz, 4, &wav);
  AppendNumber(hertz * width, 4, &wav);
  AppendNumber(width, 2, &wav);
  AppendNumber(16, 2, &wav);
  wav += "data";
  AppendNumber(bytes, 4, &wav);
  for (const float sample : audio) {
    const float scaled = std::isnan(sample) ? 0 : std::clamp(std::round(sample * kScale), -kScale, kScale - 1);
    AppendNumber(static_cast<uint64_t>(static_cast<int64_t>(scaled)), 2, &wav);
  }
  return wav;
}

namespace {

Status EncodeWav(kernel::BuiltinCall& call) {
  WEIR_TRY(CheckCounts(call, 2, 1));
  WEIR_ASSIGN(const std::span<const float> audio, Elements<float>(call, 0, "audio"));
  WEIR_ASSIGN(const std::span<const int32_t> rate, Elements<int32_t>(call, 1, "sample_rate"));
  const Shape &shape = call.inputs[0].shape(), &rate_shape = call.inputs[1].shape();
  if (shape.rank() != 2) return InvalidArgument("audio must be 2-dimensional{}", shape.ToString());
  if (rate_shape.rank() != 0) return InvalidArgument("sample_rate must be a scalar: {}", rate_shape.ToString());
  if (rate[0] <= 0) {
    return InvalidArgument("sample_rate must be in (0, 2^32), got: {}",
                           static_cast<uint64_t>(static_cast<int64_t>(rate[0])));
  }
  const int64_t channels = shape.dim(1);
  if (channels < 1 || channels > 0x7fff) {
    return InvalidArgument("num_channels must be in (0, 2^15), got: {}", channels);
  }
  WEIR_ASSIGN(const std::string wav, WavFile(audio, channels, static_cast<uint64_t>(rate[0])));
  call.outputs[0] = Tensor::String(wav);
  return Status();
}

}  // namespace

void AddWav(kernel::KernelRegistry& kernels) {
  kernels.AddHost("DecodeWav", DecodeWav);
  kernels.AddHost("EncodeWav", EncodeWav);
}

}  // namespace weir::builtin
