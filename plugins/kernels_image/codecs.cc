#include "plugins/kernels_image/codecs.h"

#include "sdk/cpp/late_part.h"

namespace weir::kernels_image {
namespace {

const sdk::LatePart& LoadedCodecs() {
  static const sdk::LatePart part = sdk::LoadLatePart(reinterpret_cast<const void*>(&LoadCodecs),
                                                      "kernels_image/codecs.so", WEIR_IMAGE_CODECS_SYMBOL);
  return part;
}

const Codecs& Loaded() {
  static const Codecs* const codecs = reinterpret_cast<CodecsFn>(LoadedCodecs().symbol)();
  return *codecs;
}

}  // namespace

int32_t LoadCodecs(const sdk::Error& error) {
  const sdk::LatePart& part = LoadedCodecs();
  return part.symbol != nullptr ? int32_t{WEIR_OK} : error.Unimplemented("image files: ", part.why);
}

std::string DecodePng(std::string_view bytes, const DecodeForm& form, const MakePixels& make) {
  return Loaded().decode_png(bytes, form, make);
}
std::string DecodeJpeg(std::string_view bytes, const DecodeForm& form, const MakePixels& make) {
  return Loaded().decode_jpeg(bytes, form, make);
}
std::string DecodeGif(std::string_view bytes, bool one_only, const MakePixels& make) {
  return Loaded().decode_gif(bytes, one_only, make);
}
int CountGifFrames(std::string_view bytes) { return Loaded().count_gif_frames(bytes); }
std::string ReadJpegExtents(std::string_view bytes, Pixels* pixels) {
  return Loaded().read_jpeg_extents(bytes, pixels);
}
std::string EncodePng(const void* samples, const Pixels& pixels, int compression, std::string* file) {
  return Loaded().encode_png(samples, pixels, compression, file);
}
std::string EncodeJpeg(const uint8_t* samples, const Pixels& pixels, const JpegForm& form, std::string* file) {
  return Loaded().encode_jpeg(samples, pixels, form, file);
}

}  // namespace weir::kernels_image
