// Ops that write image files, and summaries that contain them.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
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

/// Images in the last three axes of `shape`; `count` is the number of images. The text of what is wrong, or "".
std::string ImagesOf(const weir_shape& shape, bool wide, Pixels* pixels, int64_t* count) {
  *count = 1;
  for (uint32_t i = 0; i + 3 < shape.rank; ++i) *count *= shape.dims[i];
  const int64_t* last = shape.dims + shape.rank - 3;
  *pixels = {1, last[0], last[1], last[2], wide};
  if (!FitsLimit(*pixels)) {
    return "image must have between 1 and 2^29 samples, but has extents " + std::to_string(last[0]) + ", " +
           std::to_string(last[1]) + ", " + std::to_string(last[2]);
  }
  return {};
}

struct EncodePngOp {
  int64_t compression = -1;

  int32_t Prepare(const sdk::Node& node, const sdk::Error& error) {
    if (const int32_t code = LoadCodecs(error); code != WEIR_OK) return code;
    compression = node.Int("compression", -1);
    if (compression >= -1 && compression <= 9) return WEIR_OK;
    return error.InvalidArgument("compression should be in [-1,9], got ", compression);
  }

  template <class T>
  int32_t Compute(Context& ctx) {
    View<const T> image;
    if (const int32_t code = ctx.Input(0, &image); code != WEIR_OK) return code;
    const weir_shape& shape = image.shape();
    if (shape.rank < 3) return ctx.error().InvalidArgument("images must be at least rank 3", shape);
    const int64_t channels = shape.dims[shape.rank - 1];
    if (channels < 1 || channels > 4) {
      return ctx.error().InvalidArgument("image must have 1, 2, 3, or 4 channels, got ", channels);
    }
    Pixels pixels;
    int64_t count = 0;
    if (const std::string fault = ImagesOf(shape, sizeof(T) == 2, &pixels, &count); !fault.empty()) {
      return ctx.error().InvalidArgument(fault);
    }
    std::vector<std::string> files(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) {
      const std::string fault = EncodePng(image.data() + i * pixels.samples(), pixels, static_cast<int>(compression),
                                          &files[static_cast<size_t>(i)]);
      if (!fault.empty()) {
        return ctx.error().Fail(WEIR_INTERNAL, "PNG encoding failed at the following flattened batch indices: ", i,
                                ": ", fault);
      }
    }
    return ctx.OutputTexts(0, {shape.rank - 3, 0, shape.dims}, files);
  }
};

struct EncodeJpegOp {
  JpegForm form;
  std::string format, xmp;

  int32_t Prepare(const sdk::Node& node, const sdk::Error& error) {
    if (const int32_t code = LoadCodecs(error); code != WEIR_OK) return code;
    format = node.String("format");
    xmp = node.String("xmp_metadata");
    form.xmp = xmp;
    form.quality = static_cast<int>(std::clamp<int64_t>(node.Int("quality", 95), -1, 101));
    if (form.quality < 0 || form.quality > 100) {
      return error.InvalidArgument("quality must be in [0,100], got ", node.Int("quality", 95));
    }
    form.progressive = node.Bool("progressive", false);
    form.optimize = node.Bool("optimize_size", false);
    form.downsample = node.Bool("chroma_downsampling", true);
    form.per_centimetre = node.String("density_unit", "in") == "cm";
    for (const bool x : {true, false}) {
      const int64_t density = node.Int(x ? "x_density" : "y_density", 300);
      if (density < 0 || density > 0xffff)
        return error.InvalidArgument("a density must be in [0,65535], got ", density);
      (x ? form.x_density : form.y_density) = static_cast<int>(density);
    }
    return WEIR_OK;
  }

  int32_t Compute(Context& ctx) {
    View<const uint8_t> image;
    if (const int32_t code = ctx.Input(0, &image); code != WEIR_OK) return code;
    const weir_shape& shape = image.shape();
    if (shape.rank != 3) return ctx.error().InvalidArgument("image must be 3-dimensional", shape);
    const int64_t wanted = format == "grayscale" ? 1 : format == "rgb" ? 3 : 0, channels = shape.dims[2];
    if (wanted != 0 && channels != wanted) {
      return ctx.error().InvalidArgument("format ", format, " expects ", wanted, " channels, got ", shape);
    }
    if (channels != 1 && channels != 3) {
      return ctx.error().InvalidArgument("image must have 1 or 3 channels, got ", shape);
    }
    constexpr int64_t kMostExtent = 65500;  // libjpeg's
    Pixels pixels;
    int64_t count = 0;
    std::string fault = ImagesOf(shape, false, &pixels, &count);
    if (fault.empty() && (pixels.height > kMostExtent || pixels.width > kMostExtent)) {
      fault = "image too large for the JPEG format";
    }
    if (!fault.empty()) return ctx.error().InvalidArgument(fault);
    std::vector<std::string> file(1);
    fault = EncodeJpeg(image.data(), pixels, form, &file[0]);
    if (!fault.empty()) return ctx.error().Fail(WEIR_INTERNAL, "JPEG encoding failed: ", fault);
    return ctx.OutputTexts(0, {0, 0, nullptr}, file);
  }
};

void AppendWireNumber(std::string& out, uint64_t value) {
  for (; value >= 128; value >>= 7) out.push_back(static_cast<char>(value | 128));
  out.push_back(static_cast<char>(value));
}
/// A field of numbers.
void AppendWireField(std::string& out, uint32_t field, int64_t value) {
  AppendWireNumber(out, field << 3);
  AppendWireNumber(out, static_cast<uint64_t>(value));
}
/// A field of bytes.
void AppendWireField(std::string& out, uint32_t field, std::string_view bytes) {
  AppendWireNumber(out, field << 3 | 2);
  AppendWireNumber(out, bytes.size());
  out += bytes;
}

/// A Summary message with an image per value.
struct ImageSummary {
  int64_t most = 3;
  std::vector<uint8_t> bad_colour = {255, 0, 0, 255};

  int32_t Prepare(const sdk::Node& node, const sdk::Error& error) {
    if (const int32_t code = LoadCodecs(error); code != WEIR_OK) return code;
    most = node.Int("max_images", 3);
    weir_attr value{};
    value.struct_size = sizeof value;
    if (sdk::HostTable()->attr(node.get(), sdk::Str("bad_color"), &value) != WEIR_OK) return WEIR_OK;
    if (value.type != WEIR_VALUE_TENSOR || value.tensor == nullptr) return WEIR_OK;
    const weir_tensor& colour = *value.tensor;
    if (colour.dtype != WEIR_UINT8) return error.InvalidArgument("bad_color must be uint8, got ", colour.dtype);
    if (colour.rank != 1) return error.InvalidArgument("bad_color must be 1-D, got rank ", colour.rank);
    const auto* samples = static_cast<const uint8_t*>(colour.buf.host);
    bad_colour.assign(samples, samples + colour.dims[0]);
    return WEIR_OK;
  }

  template <class T>
  int32_t Compute(Context& ctx) {
    std::vector<std::string_view> tags;
    weir_shape tag_shape{};
    if (const int32_t code = ctx.Input(0, &tags, &tag_shape); code != WEIR_OK) return code;
    View<const T> images;
    if (const int32_t code = ctx.Input(1, &images); code != WEIR_OK) return code;
    const sdk::Error& error = ctx.error();
    const weir_shape& shape = images.shape();
    if (tag_shape.rank != 0) return error.InvalidArgument("Tags must be a scalar, got shape ", tag_shape);
    if (shape.rank != 4 || (shape.dims[3] != 1 && shape.dims[3] != 3 && shape.dims[3] != 4)) {
      return error.InvalidArgument("Tensor must be 4-D with last dim 1, 3, or 4, not ", shape);
    }
    const Pixels pixels{1, shape.dims[1], shape.dims[2], shape.dims[3], false};
    const int64_t count = std::min(most, shape.dims[0]);
    if (count > 0 && !FitsLimit(pixels)) return error.InvalidArgument("Tensor too large for summary ", shape);
    if (static_cast<int64_t>(bad_colour.size()) < pixels.channels) {
      return error.InvalidArgument("expected depth <= bad_color.size, got depth = ", pixels.channels,
                                   ", bad_color.size = ", bad_colour.size());
    }
    std::string summary;
    for (int64_t i = 0; i < count; ++i) {
      std::string tag = std::string(tags[0]) + "/image";
      if (most > 1) tag += "/" + std::to_string(i);
      const std::vector<uint8_t> samples = Samples(images.data() + i * pixels.samples(), pixels);
      std::string file, image, value;
      if (const std::string fault = EncodePng(samples.data(), pixels, -1, &file); !fault.empty()) {
        return error.Fail(WEIR_INTERNAL, "PNG encoding failed: ", fault);
      }
      AppendWireField(image, 1, pixels.height);
      AppendWireField(image, 2, pixels.width);
      AppendWireField(image, 3, pixels.channels);
      AppendWireField(image, 4, std::string_view(file));
      AppendWireField(value, 1, std::string_view(tag));
      AppendWireField(value, 4, std::string_view(image));
      AppendWireField(summary, 1, std::string_view(value));
    }
    return ctx.OutputTexts(0, {0, 0, nullptr}, std::array<std::string, 1>{summary});
  }

 private:
  static std::vector<uint8_t> Samples(const uint8_t* image, const Pixels& pixels) {
    return {image, image + pixels.samples()};
  }

  /// Numbers from the least to the largest finite one, as 0 to 255, or as 1 to 255 around 128 if some are negative.
  template <class T>
  std::vector<uint8_t> Samples(const T* image, const Pixels& pixels) const {
    using C = sdk::Compute<T>;
    const int64_t places = pixels.height * pixels.width, channels = pixels.channels;
    const auto finite = [&](int64_t place) {
      for (int64_t c = 0; c < channels; ++c) {
        if (!std::isfinite(static_cast<C>(image[place * channels + c]))) return false;
      }
      return true;
    };
    C least = std::numeric_limits<C>::infinity(), largest = -least;
    for (int64_t place = 0; place < places; ++place) {
      if (!finite(place)) continue;
      for (int64_t c = 0; c < channels; ++c) {
        least = std::min(least, static_cast<C>(image[place * channels + c]));
        largest = std::max(largest, static_cast<C>(image[place * channels + c]));
      }
    }
    constexpr C kZero = C(1e-6);
    C scale = 0, offset = 0;
    if (least < 0) {
      const C most_far = std::max(std::abs(least), std::abs(largest));
      scale = most_far < kZero ? 0 : 127 / most_far;
      offset = 128;
    } else {
      scale = largest < kZero ? 0 : 255 / largest;
    }
    const T narrow_scale = T(scale);
    std::vector<uint8_t> samples(static_cast<size_t>(places * channels));
    for (int64_t place = 0; place < places; ++place) {
      const bool good = finite(place);
      for (int64_t c = 0; c < channels; ++c) {
        const int64_t at = place * channels + c;
        const C scaled = C(T(static_cast<C>(image[at]) * C(narrow_scale)));
        samples[static_cast<size_t>(at)] = good ? static_cast<uint8_t>(std::clamp<C>(C(T(scaled + offset)), 0, 255))
                                                : bad_colour[static_cast<size_t>(c)];
      }
    }
    return samples;
  }
};

}  // namespace

void AddEncoders(sdk::KernelTable& k) {
  k.Add<EncodePngOp>("EncodePng", sdk::Types<uint8_t, uint16_t>());
  k.Add<EncodeJpegOp>("EncodeJpeg");
}

void AddImageSummary(sdk::KernelTable& k) {
  k.Add<ImageSummary>("ImageSummary", sdk::Types<uint8_t, float, sdk::half, double>());
}

}  // namespace weir::kernels_image
