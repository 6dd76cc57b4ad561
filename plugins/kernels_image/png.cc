// PNG files, by libpng. Its errors jump out of a function of this file that has no objects with destructors.
#include <png.h>

#include <algorithm>
#include <csetjmp>
#include <cstring>
#include <vector>

#include "plugins/kernels_image/image.h"

namespace weir::kernels_image {
namespace {

/// Deflate makes at most this many bytes of one.
constexpr uint64_t kMostExpansion = 1032;
constexpr size_t kMostChunkBytes = size_t{8} << 20;

/// What libpng reports before it jumps.
struct PngFault {
  char text[128] = "";
};

[[noreturn]] void OnPngError(png_structp png, png_const_charp text) {
  auto* fault = static_cast<PngFault*>(png_get_error_ptr(png));
  std::strncpy(fault->text, text, sizeof fault->text - 1);
  png_longjmp(png, 1);
}

void OnPngWarning(png_structp, png_const_charp) {}

class PngReader {
 public:
  explicit PngReader(std::string_view bytes) : rest_(bytes), bytes_(bytes.size()) {
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, &fault_, OnPngError, OnPngWarning);
    if (png_ != nullptr) info_ = png_create_info_struct(png_);
  }
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;
  ~PngReader() { png_destroy_read_struct(&png_, &info_, nullptr); }

  bool ready() const { return info_ != nullptr; }
  std::string Fault() const { return fault_.text; }
  const Pixels& pixels() const { return pixels_; }

  /// Reads the header and plans the conversions. False with a fault.
  bool ReadHeader(const DecodeForm& form) {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    png_set_read_fn(png_, this, [](png_structp png, png_bytep to, size_t size) {
      static_cast<PngReader*>(png_get_io_ptr(png))->Take(png, to, size);
    });
    png_set_user_limits(png_, 0x7fffffff, 0x7fffffff);
    png_set_chunk_malloc_max(png_, kMostChunkBytes);
    png_set_chunk_cache_max(png_, 128);
    png_read_info(png_, info_);
    pixels_.width = png_get_image_width(png_, info_);
    pixels_.height = png_get_image_height(png_, info_);
    if (png_get_rowbytes(png_, info_) > bytes_ * kMostExpansion / static_cast<uint64_t>(pixels_.height) + 1) {
      png_error(png_, "the file is too short for its extents");
    }
    Plan(form);
    return true;
  }

  /// Reads the rows into `to`, which has the memory of pixels().
  bool ReadRows(uint8_t* to) {
    rows_.resize(static_cast<size_t>(pixels_.height));
    for (size_t y = 0; y < rows_.size(); ++y) rows_[y] = to + static_cast<int64_t>(y) * pixels_.row_bytes();
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    png_read_image(png_, rows_.data());
    png_read_end(png_, nullptr);
    return true;
  }
  /// The samples have 8 bits, though 16 are wanted; each row's are in its first half.
  bool widens() const { return widens_; }

 private:
  void Take(png_structp png, png_bytep to, size_t size) {
    if (size > rest_.size()) png_error(png, "the file is cut short");
    std::memcpy(to, rest_.data(), size);
    rest_.remove_prefix(size);
  }

  void Plan(const DecodeForm& form) {
    const int depth = png_get_bit_depth(png_, info_), colour = png_get_color_type(png_, info_);
    const bool transparent = png_get_valid(png_, info_, PNG_INFO_tRNS) != 0;
    const bool has_alpha = (colour & PNG_COLOR_MASK_ALPHA) != 0 || transparent;
    const bool grey = (colour & PNG_COLOR_MASK_COLOR) == 0, palette = colour == PNG_COLOR_TYPE_PALETTE;
    pixels_.channels = form.channels;
    if (form.channels == 0) {
      pixels_.channels = palette ? (transparent ? 4 : 3) : png_get_channels(png_, info_);
    }
    pixels_.wide = form.wide;
    const bool want_grey = pixels_.channels < 3, want_alpha = pixels_.channels % 2 == 0;
    if (palette) png_set_palette_to_rgb(png_);
    if (grey && depth < 8) png_set_expand_gray_1_2_4_to_8(png_);
    if (transparent) png_set_tRNS_to_alpha(png_);
    if (depth == 16 && !form.wide) png_set_strip_16(png_);
    widens_ = form.wide && depth < 16;
    if (form.wide && depth == 16) png_set_swap(png_);
    if (!has_alpha && want_alpha) png_set_add_alpha(png_, depth == 16 && form.wide ? 0xffff : 0xff, PNG_FILLER_AFTER);
    if (has_alpha && !want_alpha) png_set_strip_alpha(png_);
    if (grey && !want_grey) png_set_gray_to_rgb(png_);
    if (!grey && want_grey) png_set_rgb_to_gray(png_, PNG_ERROR_ACTION_NONE, 0.299, 0.587);
    png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);
    const int64_t wanted = pixels_.width * pixels_.channels * (form.wide && !widens_ ? 2 : 1);
    if (static_cast<int64_t>(png_get_rowbytes(png_, info_)) != wanted) png_error(png_, "rows have another size");
  }

  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  PngFault fault_;
  std::string_view rest_;
  uint64_t bytes_ = 0;
  Pixels pixels_;
  bool widens_ = false;
  std::vector<png_bytep> rows_;
};

class PngWriter {
 public:
  explicit PngWriter(std::string* file) : file_(file) {
    png_ = png_create_write_struct(PNG_LIBPNG_VER_STRING, &fault_, OnPngError, OnPngWarning);
    if (png_ != nullptr) info_ = png_create_info_struct(png_);
  }
  PngWriter(const PngWriter&) = delete;
  PngWriter& operator=(const PngWriter&) = delete;
  ~PngWriter() { png_destroy_write_struct(&png_, &info_); }

  bool ready() const { return info_ != nullptr; }
  std::string Fault() const { return fault_.text; }

  bool Write(const uint8_t* samples, const Pixels& pixels, int compression) {
    constexpr int kTypes[] = {PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB, PNG_COLOR_TYPE_RGBA};
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    png_set_write_fn(
        png_, this,
        [](png_structp png, png_bytep from, size_t size) {
          if (!static_cast<PngWriter*>(png_get_io_ptr(png))->Append(from, size)) png_error(png, "out of memory");
        },
        [](png_structp) {});
    png_set_compression_level(png_, compression);
    png_set_IHDR(png_, info_, static_cast<png_uint_32>(pixels.width), static_cast<png_uint_32>(pixels.height),
                 pixels.wide ? 16 : 8, kTypes[pixels.channels - 1], PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
                 PNG_FILTER_TYPE_DEFAULT);
    png_write_info(png_, info_);
    if (pixels.wide) png_set_swap(png_);
    for (int64_t y = 0; y < pixels.height; ++y) png_write_row(png_, samples + y * pixels.row_bytes());
    png_write_end(png_, nullptr);
    return true;
  }

 private:
  /// No exception passes through libpng.
  bool Append(const png_byte* from, size_t size) noexcept {
    try {
      file_->append(reinterpret_cast<const char*>(from), size);
      return true;
    } catch (...) {
      return false;
    }
  }

  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  PngFault fault_;
  std::string* file_;
};

}  // namespace

std::string DecodePng(std::string_view bytes, const DecodeForm& form, const MakePixels& make) {
  PngReader reader(bytes);
  if (!reader.ready()) return "out of memory";
  if (!reader.ReadHeader(form)) return "Invalid PNG. Failed to initialize decoder. " + reader.Fault();
  const Pixels& pixels = reader.pixels();
  if (!FitsLimit(pixels)) {
    return "PNG size too large for int: " + std::to_string(pixels.width) + " by " + std::to_string(pixels.height);
  }
  auto* to = static_cast<uint8_t*>(make(pixels));
  if (to == nullptr) return "no memory for the pixels";
  if (!reader.ReadRows(to)) return reader.Fault();
  if (!reader.widens()) return {};
  const int64_t row = pixels.width * pixels.channels;
  for (int64_t y = 0; y < pixels.height; ++y) {
    uint8_t* line = to + y * pixels.row_bytes();
    for (int64_t x = row - 1; x >= 0; --x) {
      const uint8_t sample = line[x];
      line[2 * x] = line[2 * x + 1] = sample;
    }
  }
  return {};
}

std::string EncodePng(const void* samples, const Pixels& pixels, int compression, std::string* file) {
  PngWriter writer(file);
  if (!writer.ready()) return "out of memory";
  return writer.Write(static_cast<const uint8_t*>(samples), pixels, compression) ? std::string() : writer.Fault();
}

}  // namespace weir::kernels_image
