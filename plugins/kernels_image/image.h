// Image files and their pixels. The bytes of a file are untrusted: extents are checked before memory is taken.
#ifndef WEIR_PLUGINS_KERNELS_IMAGE_IMAGE_H_
#define WEIR_PLUGINS_KERNELS_IMAGE_IMAGE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace weir::kernels_image {

/// Rows of pixels from the top, each of `channels` samples: uint8_t, or uint16_t if `wide`.
struct Pixels {
  int64_t frames = 1, height = 0, width = 0, channels = 0;
  bool wide = false;

  int64_t samples() const { return frames * height * width * channels; }
  int64_t row_bytes() const { return width * channels * (wide ? 2 : 1); }
};

/// TensorFlow's limit of the samples of an image.
inline constexpr int64_t kMostSamples = int64_t{1} << 29;
/// False for extents that are not positive or have more than kMostSamples.
inline bool FitsLimit(const Pixels& pixels) {
  int64_t samples = 1;
  for (const int64_t extent : {pixels.frames, pixels.height, pixels.width, pixels.channels}) {
    if (extent <= 0 || __builtin_mul_overflow(samples, extent, &samples)) return false;
  }
  return samples <= kMostSamples;
}

/// Gives memory for pixels whose extents fit the limit; null ends the decoding.
using MakePixels = std::function<void*(const Pixels&)>;

/// How to decode.
struct DecodeForm {
  int channels = 0;       // 0: those of the image
  bool wide = false;      // PNG only
  int ratio = 1;          // JPEG: the image is made 1/ratio as large
  bool fancy = true;      // JPEG: smooth upsampling of colours
  bool accurate = false;  // JPEG: the slower transform
  bool recover = false;   // JPEG: missing rows are grey
};

enum class FileKind { kUnknown, kPng, kJpeg, kGif, kBmp };
FileKind KindOf(std::string_view bytes);

// Decoders return what is wrong with the file, or "". They call `make` once, with the extents, before they write
// pixels.

std::string DecodePng(std::string_view bytes, const DecodeForm& form, const MakePixels& make);
std::string DecodeJpeg(std::string_view bytes, const DecodeForm& form, const MakePixels& make);
/// `make` is called with all frames, of three channels, or with the first one.
std::string DecodeGif(std::string_view bytes, bool one_only, const MakePixels& make);
/// The number of frames of a GIF file, 0 if it is damaged.
int CountGifFrames(std::string_view bytes);
std::string DecodeBmp(std::string_view bytes, int channels, const MakePixels& make);
/// The extents of a JPEG file, from its header.
std::string ReadJpegExtents(std::string_view bytes, Pixels* pixels);

/// Writes a PNG file; `compression` is zlib's level, -1 the default. Returns "", or what went wrong.
std::string EncodePng(const void* samples, const Pixels& pixels, int compression, std::string* file);

struct JpegForm {
  int quality = 95;
  bool progressive = false, optimize = false, downsample = true, per_centimetre = false;
  int x_density = 300, y_density = 300;
  std::string_view xmp;
};
std::string EncodeJpeg(const uint8_t* samples, const Pixels& pixels, const JpegForm& form, std::string* file);

}  // namespace weir::kernels_image

#endif  // WEIR_PLUGINS_KERNELS_IMAGE_IMAGE_H_
