// BMP files without compression, and what files begin with.
#include <algorithm>
#include <cstring>

#include "plugins/kernels_image/image.h"

namespace weir::kernels_image {
namespace {

int64_t NumberAt(std::string_view bytes, size_t at, size_t size) {
  uint32_t value = 0;
  for (size_t i = 0; i < size; ++i) value |= uint32_t{static_cast<unsigned char>(bytes[at + i])} << (8 * i);
  return size == 4 ? static_cast<int32_t>(value) : static_cast<int64_t>(value);
}

/// A pixel of 1 (grey), 3 or 4 channels as one of `given` channels; what has no alpha is opaque. Files have blue, green
/// and red in this order.
void WritePixel(const uint8_t* from, int64_t stored, uint8_t* to, int64_t given) {
  if (given == 1) {
    *to = *from;
    return;
  }
  for (int64_t c = 0; c < 3; ++c) to[c] = from[stored == 1 ? 0 : 2 - c];
  if (given == 4) to[3] = stored == 4 ? from[3] : 255;
}

}  // namespace

FileKind KindOf(std::string_view bytes) {
  if (bytes.starts_with("\xff\xd8\xff")) return FileKind::kJpeg;
  if (bytes.starts_with(std::string_view("\x89PNG\r\n\x1a\n", 8))) return FileKind::kPng;
  if (bytes.starts_with("GIF8")) return FileKind::kGif;
  if (bytes.starts_with("BM")) return FileKind::kBmp;
  return FileKind::kUnknown;
}

std::string DecodeBmp(std::string_view bytes, int channels, const MakePixels& make) {
  const auto too_short = [&](uint64_t wanted) {
    return "Incomplete bmp content, requires at least " + std::to_string(wanted) + " bytes to find the header size, " +
           "width, height, and bpp, got " + std::to_string(bytes.size()) + " bytes";
  };
  if (bytes.size() < 32) return too_short(32);
  const int64_t start = NumberAt(bytes, 10, 4), width = NumberAt(bytes, 18, 4), rows = NumberAt(bytes, 22, 4);
  const int64_t bits = NumberAt(bytes, 28, 2);
  const int64_t stored = bits / 8, given = channels == 0 ? stored : channels;
  if (bits != 8 && bits != 24 && bits != 32)
    return "Number of channels inherent in the image must be 1, 3 or 4, was " + std::to_string(stored);
  if (width <= 0) return "Width must be positive";
  if (rows == 0) return "Height must be nonzero";
  const Pixels pixels{1, rows < 0 ? -rows : rows, width, given, false};
  if (!FitsLimit(pixels)) return "Total possible pixel bytes must be less than 2^30";
  const int64_t row_bytes = (bits * width + 31) / 32 * 4;
  if (start < 26) return "the header is damaged";
  const auto size = static_cast<int64_t>(bytes.size());
  // The last row needs no padding.
  if (start > size || row_bytes * (pixels.height - 1) + stored * width > size - start) {
    return "Input size should match (header_size + row_size * abs_height) but they differ by " +
           std::to_string(size - start - row_bytes * pixels.height);
  }
  auto* to = static_cast<uint8_t*>(make(pixels));
  if (to == nullptr) return "no memory for the pixels";
  for (int64_t y = 0; y < pixels.height; ++y) {
    const int64_t line = rows < 0 ? y : pixels.height - 1 - y;
    const auto* from = reinterpret_cast<const uint8_t*>(bytes.data()) + start + line * row_bytes;
    for (int64_t x = 0; x < width; ++x, from += stored, to += given) WritePixel(from, stored, to, given);
  }
  return {};
}

}  // namespace weir::kernels_image
