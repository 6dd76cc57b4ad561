// Ops that read image files.
#include <cstring>
#include <string>
#include <vector>

#include "plugins/kernels_image/codecs.h"
#include "plugins/kernels_image/families.h"
#include "plugins/kernels_image/image.h"
#include "sdk/cpp/kernel.h"

namespace weir::kernels_image {
namespace {

using sdk::Context;
using sdk::View;

/// The bytes of scalar string input `i`.
int32_t OnlyFile(const Context& ctx, uint32_t i, std::string_view* bytes) {
  std::vector<std::string_view> texts;
  weir_shape shape{};
  if (const int32_t code = ctx.Input(i, &texts, &shape); code != WEIR_OK) return code;
  if (shape.rank != 0) return ctx.error().InvalidArgument("contents must be scalar, got shape ", shape);
  *bytes = texts[0];
  return WEIR_OK;
}

enum class DecodeOp { kPng, kJpeg, kGif, kBmp, kImage };

/// What the op says of a file that cannot be decoded.
int32_t Refuse(const Context& ctx, FileKind kind, std::string_view bytes, const std::string& fault) {
  switch (kind) {
    case FileKind::kPng:
      if (fault.starts_with("Invalid PNG")) return ctx.error().InvalidArgument(fault);
      return ctx.error().InvalidArgument("Invalid PNG data, size ", bytes.size(), ": ", fault);
    case FileKind::kJpeg:
      return ctx.error().InvalidArgument("jpeg::Uncompress failed. Invalid JPEG data or crop window. ", fault);
    case FileKind::kGif:
      return ctx.error().InvalidArgument("Invalid GIF data (size ", bytes.size(), "), ", fault);
    default:
      return ctx.error().InvalidArgument(fault);
  }
}

/// Pixels of 8 bits in memory of their own.
struct OwnPixels {
  Pixels pixels;
  std::vector<uint8_t> samples;

  MakePixels Maker() {
    return [this](const Pixels& made) -> void* {
      pixels = made;
      samples.resize(static_cast<size_t>(made.frames * made.height * made.row_bytes()));
      return samples.data();
    };
  }
};

/// Files of any format; the op decides which.
template <DecodeOp kOp>
struct Decode {
  DecodeForm form;
  uint32_t dtype = WEIR_UINT8;
  bool expand = true;

  int32_t Prepare(const sdk::Node& node, const sdk::Error& error) {
    if (const int32_t code = LoadCodecs(error); code != WEIR_OK) return code;
    dtype = node.DType("dtype", WEIR_UINT8);
    expand = node.Bool("expand_animations", true);
    const int64_t channels = node.Int("channels", 0), ratio = node.Int("ratio", 1);
    if (channels != 0 && channels != 1 && channels != 3 && channels != 4) {
      return error.InvalidArgument("`channels` must be 0, 1, 3 or 4 but got ", channels);
    }
    if (kOp == DecodeOp::kBmp && channels == 1) {
      return error.InvalidArgument("`channels` must be 0, 3 or 4 for BMP, but got ", channels);
    }
    if (ratio != 1 && ratio != 2 && ratio != 4 && ratio != 8) {
      return error.InvalidArgument("ratio must be 1, 2, 4, or 8, got ", ratio);
    }
    const std::string_view method = node.String("dct_method");
    if (!method.empty() && method != "INTEGER_FAST" && method != "INTEGER_ACCURATE") {
      return error.InvalidArgument("dct_method must be one of {'', 'INTEGER_FAST', 'INTEGER_ACCURATE'}");
    }
    form.channels = static_cast<int>(channels);
    form.ratio = static_cast<int>(ratio);
    form.fancy = node.Bool("fancy_upscaling", true);
    form.recover = node.Bool("try_recover_truncated", false);
    form.accurate = method == "INTEGER_ACCURATE";
    return WEIR_OK;
  }

  int32_t Compute(Context& ctx) {
    std::string_view bytes;
    if (const int32_t code = OnlyFile(ctx, 0, &bytes); code != WEIR_OK) return code;
    const FileKind kind = KindOf(bytes);
    if (const int32_t code = CheckKind(ctx, kind, bytes); code != WEIR_OK) return code;
    if (kind == FileKind::kPng && dtype != WEIR_UINT8) return DecodeWide(ctx, bytes);
    if (dtype == WEIR_UINT8) {
      int32_t code = WEIR_OK;
      const std::string fault = Run(kind, bytes, [&](const Pixels& pixels) -> void* {
        View<uint8_t> image;
        code = Allocate(ctx, kind, pixels, &image);
        return code == WEIR_OK ? image.data() : nullptr;
      });
      if (code != WEIR_OK) return code;
      return fault.empty() ? WEIR_OK : Refuse(ctx, kind, bytes, fault);
    }
    OwnPixels own;
    const std::string fault = Run(kind, bytes, own.Maker());
    if (!fault.empty()) return Refuse(ctx, kind, bytes, fault);
    return dtype == WEIR_UINT16
               ? Convert<uint16_t>(ctx, kind, own.pixels, own.samples, [](uint8_t x) { return uint16_t(x * 256); })
               : Convert<float>(ctx, kind, own.pixels, own.samples, [](uint8_t x) { return float(x) * (1 / 255.0f); });
  }

 private:
  std::string Run(FileKind kind, std::string_view bytes, const MakePixels& make) const {
    switch (kind) {
      case FileKind::kPng:
        return DecodePng(bytes, form, make);
      case FileKind::kJpeg:
        return DecodeJpeg(bytes, form, make);
      case FileKind::kGif:
        return DecodeGif(bytes, !Animated(kind), make);
      default:
        return DecodeBmp(bytes, form.channels, make);
    }
  }

  /// A GIF gives all frames, with an axis of their own.
  bool Animated(FileKind kind) const {
    return kind == FileKind::kGif && (kOp == DecodeOp::kGif || (kOp == DecodeOp::kImage && expand));
  }

  int32_t CheckKind(const Context& ctx, FileKind kind, std::string_view bytes) const {
    constexpr const char* kNames[] = {"", "PNG", "JPEG", "GIF", "BMP"};
    constexpr const char* kOps[] = {"", "decode_png", "decode_jpeg", "decode_gif", "decode_bmp"};
    constexpr const char* kThese[] = {"DecodePng", "DecodeJpeg", "DecodeGif", "DecodeBmp", "DecodeImage"};
    const sdk::Error& error = ctx.error();
    const auto number = static_cast<size_t>(kind);
    if (bytes.empty()) return error.InvalidArgument("Input is empty.");
    if (kind == FileKind::kUnknown) {
      return error.InvalidArgument("Unknown image file format. One of JPEG, PNG, GIF, BMP required.");
    }
    if (kOp == DecodeOp::kBmp && kind != FileKind::kBmp) {
      return error.InvalidArgument("Trying to decode ", kNames[number], " format using DecodeBmp op. Use `",
                                   kOps[number], "` or `decode_image` instead.");
    }
    if (kind == FileKind::kBmp && kOp != DecodeOp::kBmp && kOp != DecodeOp::kImage) {
      return error.InvalidArgument(
          "Trying to decode BMP format using a wrong op. Use `decode_bmp` or `decode_image` instead. Op used: ",
          kThese[static_cast<size_t>(kOp)]);
    }
    if (kind == FileKind::kGif && form.channels != 0 && form.channels != 3) {
      return error.InvalidArgument("channels must be 0 or 3 for GIF, got ", form.channels);
    }
    if (kind == FileKind::kJpeg && form.channels == 4) {
      return error.InvalidArgument("JPEG does not support 4 channels");
    }
    if (kind == FileKind::kGif && (kOp == DecodeOp::kPng || kOp == DecodeOp::kJpeg)) {
      const int frames = CountGifFrames(bytes);
      if (frames > 1) {
        return error.InvalidArgument("Got ", frames,
                                     " frames, but animated gifs can only be decoded by tf.io.decode_gif or "
                                     "tf.io.decode_image");
      }
    }
    return WEIR_OK;
  }

  template <class T>
  int32_t Allocate(const Context& ctx, FileKind kind, const Pixels& pixels, View<T>* image) const {
    if (kOp == DecodeOp::kGif || Animated(kind)) {
      return ctx.Output(0, {pixels.frames, pixels.height, pixels.width, pixels.channels}, image);
    }
    return ctx.Output(0, {pixels.height, pixels.width, pixels.channels}, image);
  }

  template <class T, class Map>
  int32_t Convert(const Context& ctx, FileKind kind, const Pixels& pixels, const std::vector<uint8_t>& samples,
                  Map&& map) const {
    View<T> image;
    if (const int32_t code = Allocate(ctx, kind, pixels, &image); code != WEIR_OK) return code;
    for (size_t i = 0; i < samples.size(); ++i) image[static_cast<int64_t>(i)] = map(samples[i]);
    return WEIR_OK;
  }

  /// A PNG file with samples of 16 bits, or numbers made of them.
  int32_t DecodeWide(const Context& ctx, std::string_view bytes) const {
    OwnPixels own;
    DecodeForm wide = form;
    wide.wide = true;
    const std::string fault = DecodePng(bytes, wide, own.Maker());
    if (!fault.empty()) return Refuse(ctx, FileKind::kPng, bytes, fault);
    const auto sample = [&](int64_t i) {
      uint16_t value = 0;
      std::memcpy(&value, own.samples.data() + 2 * i, sizeof value);
      return value;
    };
    if (dtype == WEIR_UINT16) {
      View<uint16_t> image;
      if (const int32_t code = Allocate(ctx, FileKind::kPng, own.pixels, &image); code != WEIR_OK) return code;
      for (int64_t i = 0; i < own.pixels.samples(); ++i) image[i] = sample(i);
      return WEIR_OK;
    }
    View<float> image;
    if (const int32_t code = Allocate(ctx, FileKind::kPng, own.pixels, &image); code != WEIR_OK) return code;
    for (int64_t i = 0; i < own.pixels.samples(); ++i) image[i] = static_cast<float>(sample(i)) * (1 / 65535.0f);
    return WEIR_OK;
  }
};

/// A part of a JPEG image.
struct DecodeAndCrop : Decode<DecodeOp::kJpeg> {
  int32_t Compute(Context& ctx) {
    std::string_view bytes;
    if (const int32_t code = OnlyFile(ctx, 0, &bytes); code != WEIR_OK) return code;
    View<const int32_t> window;
    if (const int32_t code = ctx.Input(1, &window); code != WEIR_OK) return code;
    if (window.rank() != 1 || window.dim(0) != 4) {
      return ctx.error().InvalidArgument("crop_window must have four elements ", window.shape());
    }
    OwnPixels own;
    const std::string fault = DecodeJpeg(bytes, form, own.Maker());
    if (!fault.empty()) return Refuse(ctx, FileKind::kJpeg, bytes, fault);
    const int64_t top = window[0], left = window[1], height = window[2], width = window[3];
    if (top < 0 || left < 0 || height <= 0 || width <= 0 || top + height > own.pixels.height ||
        left + width > own.pixels.width) {
      return Refuse(ctx, FileKind::kJpeg, bytes, "the crop window is not inside the image");
    }
    View<uint8_t> image;
    const int64_t channels = own.pixels.channels;
    if (const int32_t code = ctx.Output(0, {height, width, channels}, &image); code != WEIR_OK) return code;
    for (int64_t y = 0; y < height; ++y) {
      const uint8_t* from = own.samples.data() + ((top + y) * own.pixels.width + left) * channels;
      std::memcpy(image.data() + y * width * channels, from, static_cast<size_t>(width * channels));
    }
    return WEIR_OK;
  }
};

struct JpegShape {
  static int32_t Prepare(const sdk::Node&, const sdk::Error& error) { return LoadCodecs(error); }

  template <class T>
  int32_t Compute(Context& ctx) {
    std::string_view bytes;
    if (const int32_t code = OnlyFile(ctx, 0, &bytes); code != WEIR_OK) return code;
    Pixels pixels;
    if (const std::string fault = ReadJpegExtents(bytes, &pixels); !fault.empty()) {
      return ctx.error().InvalidArgument("Invalid JPEG data, size ", bytes.size(), ": ", fault);
    }
    View<T> shape;
    if (const int32_t code = ctx.Output(0, {3}, &shape); code != WEIR_OK) return code;
    shape[0] = static_cast<T>(pixels.height);
    shape[1] = static_cast<T>(pixels.width);
    shape[2] = static_cast<T>(pixels.channels);
    return WEIR_OK;
  }
};

}  // namespace

void AddDecoders(sdk::KernelTable& k) {
  k.Add<Decode<DecodeOp::kPng>>("DecodePng");
  k.Add<Decode<DecodeOp::kJpeg>>("DecodeJpeg");
  k.Add<Decode<DecodeOp::kGif>>("DecodeGif");
  k.Add<Decode<DecodeOp::kBmp>>("DecodeBmp");
  k.Add<Decode<DecodeOp::kImage>>("DecodeImage");
  k.Add<DecodeAndCrop>("DecodeAndCropJpeg");
  k.Add<JpegShape>("ExtractJpegShape", sdk::Attr("output_type", sdk::Types<int32_t, int64_t>()));
}

}  // namespace weir::kernels_image
