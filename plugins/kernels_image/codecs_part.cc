#include "plugins/kernels_image/codecs.h"

extern "C" __attribute__((visibility("default"))) const weir::kernels_image::Codecs* weir_image_codecs_1() {
  using namespace weir::kernels_image;
  static constexpr Codecs kCodecs = {&DecodePng,       &DecodeJpeg, &DecodeGif, &CountGifFrames,
                                     &ReadJpegExtents, &EncodePng,  &EncodeJpeg};
  return &kCodecs;
}
