// GIF files, by giflib. Frames are read line by line, since its own reader takes memory for extents that it does not
// check.
#include <gif_lib.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "plugins/kernels_image/image.h"

namespace weir::kernels_image {
namespace {

int TakeGifBytes(GifFileType* gif, GifByteType* to, int size) {
  auto* rest = static_cast<std::string_view*>(gif->UserData);
  const size_t taken = std::min(rest->size(), static_cast<size_t>(size));
  if (taken > 0) std::memcpy(to, rest->data(), taken);
  rest->remove_prefix(taken);
  return static_cast<int>(taken);
}

struct GifCloser {
  void operator()(GifFileType* gif) const { DGifCloseFile(gif, nullptr); }
};

/// A frame as it is stored: numbers of colours.
struct GifFrame {
  int64_t left = 0, top = 0, width = 0, height = 0;
  int transparent = -1;
  std::vector<GifColorType> colours;
  std::vector<GifPixelType> numbers;
};

class GifReader {
 public:
  explicit GifReader(std::string_view bytes) : rest_(bytes) {
    int error = 0;
    gif_.reset(DGifOpen(&rest_, TakeGifBytes, &error));
  }

  /// Reads whole frames. As in TensorFlow, what follows damage is left out if there is a frame before it.
  std::string Read();
  const std::vector<GifFrame>& frames() const { return frames_; }

 private:
  std::string ReadRecords();
  std::string ReadFrame();
  std::string ReadExtension();

  std::string_view rest_;
  std::unique_ptr<GifFileType, GifCloser> gif_;
  int64_t stored_ = 0;  // pixels of all frames
  int transparent_ = -1;
  std::vector<GifFrame> frames_;
};

std::string GifReader::ReadExtension() {
  int code = 0;
  GifByteType* block = nullptr;
  if (DGifGetExtension(gif_.get(), &code, &block) == GIF_ERROR) return "an extension is damaged";
  if (code == GRAPHICS_EXT_FUNC_CODE && block != nullptr) {
    GraphicsControlBlock control;
    if (DGifExtensionToGCB(block[0], block + 1, &control) == GIF_OK) transparent_ = control.TransparentColor;
  }
  while (block != nullptr) {
    if (DGifGetExtensionNext(gif_.get(), &block) == GIF_ERROR) return "an extension is damaged";
  }
  return {};
}

std::string GifReader::ReadFrame() {
  if (DGifGetImageDesc(gif_.get()) == GIF_ERROR) return "a frame is damaged";
  const GifImageDesc& stored = gif_->Image;
  const ColorMapObject* colours = stored.ColorMap != nullptr ? stored.ColorMap : gif_->SColorMap;
  if (colours == nullptr) return "missing color map for frame " + std::to_string(frames_.size());
  GifFrame frame{stored.Left, stored.Top, stored.Width, stored.Height, transparent_, {}, {}};
  transparent_ = -1;
  if (frame.width <= 0 || frame.height <= 0) return "a frame has no pixels";
  stored_ += frame.width * frame.height;
  if (stored_ > kMostSamples) return "the frames are too large";
  frame.colours.assign(colours->Colors, colours->Colors + colours->ColorCount);
  frame.numbers.resize(static_cast<size_t>(frame.width * frame.height));
  constexpr int kFirst[] = {0, 4, 2, 1}, kStep[] = {8, 8, 4, 2};
  const bool interlaced = stored.Interlace;
  for (int pass = 0; pass < (interlaced ? 4 : 1); ++pass) {
    for (int64_t row = interlaced ? kFirst[pass] : 0; row < frame.height; row += interlaced ? kStep[pass] : 1) {
      GifPixelType* line = frame.numbers.data() + row * frame.width;
      if (DGifGetLine(gif_.get(), line, static_cast<int>(frame.width)) == GIF_ERROR) {
        return "the pixels of a frame are cut short";
      }
    }
  }
  frames_.push_back(std::move(frame));
  return {};
}

std::string GifReader::ReadRecords() {
  for (;;) {
    GifRecordType type = UNDEFINED_RECORD_TYPE;
    if (DGifGetRecordType(gif_.get(), &type) == GIF_ERROR) return "a record is damaged";
    if (type == TERMINATE_RECORD_TYPE) return {};
    std::string fault;
    if (type == EXTENSION_RECORD_TYPE) fault = ReadExtension();
    if (type == IMAGE_DESC_RECORD_TYPE) fault = ReadFrame();
    if (!fault.empty()) return fault;
  }
}

std::string GifReader::Read() {
  if (!gif_) return "failed to open gif file";
  const std::string fault = ReadRecords();
  if (!frames_.empty()) return {};
  return "failed to slurp gif file: " + (fault.empty() ? "No Image Descriptor detected" : fault);
}

/// Draws a frame over `to`, which holds the one before.
std::string Draw(const GifFrame& frame, const Pixels& pixels, uint8_t* to) {
  for (int64_t row = 0; row < frame.height; ++row) {
    for (int64_t column = 0; column < frame.width; ++column) {
      const int64_t y = frame.top + row, x = frame.left + column;
      const int number = frame.numbers[static_cast<size_t>(row * frame.width + column)];
      if (y >= pixels.height || x >= pixels.width || number == frame.transparent) continue;
      if (number >= static_cast<int>(frame.colours.size())) {
        return "found color index " + std::to_string(number) + " outside of color map range " +
               std::to_string(frame.colours.size());
      }
      const GifColorType& colour = frame.colours[static_cast<size_t>(number)];
      uint8_t* pixel = to + (y * pixels.width + x) * 3;
      pixel[0] = colour.Red;
      pixel[1] = colour.Green;
      pixel[2] = colour.Blue;
    }
  }
  return {};
}

}  // namespace

std::string DecodeGif(std::string_view bytes, bool one_only, const MakePixels& make) {
  GifReader reader(bytes);
  if (std::string fault = reader.Read(); !fault.empty()) return fault;
  const std::vector<GifFrame>& frames = reader.frames();
  Pixels pixels{static_cast<int64_t>(frames.size()), 0, 0, 3, false};
  for (const GifFrame& frame : frames) {
    pixels.height = std::max(pixels.height, frame.height);
    pixels.width = std::max(pixels.width, frame.width);
  }
  if (!FitsLimit(pixels)) return "the frames are too large";
  if (one_only) pixels.frames = 1;
  auto* to = static_cast<uint8_t*>(make(pixels));
  if (to == nullptr) return "no memory for the pixels";
  const int64_t size = pixels.height * pixels.width * 3;
  for (int64_t i = 0; i < pixels.frames; ++i, to += size) {
    if (i == 0) std::fill_n(to, size, uint8_t{0});
    if (i > 0) std::copy_n(to - size, size, to);
    if (std::string fault = Draw(frames[static_cast<size_t>(i)], pixels, to); !fault.empty()) return fault;
  }
  return {};
}

int CountGifFrames(std::string_view bytes) {
  GifReader reader(bytes);
  return reader.Read().empty() ? static_cast<int>(reader.frames().size()) : 0;
}

}  // namespace weir::kernels_image
