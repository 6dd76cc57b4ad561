// The part of the plugin that needs the libraries of PNG, JPEG and GIF, lib/weir/kernels_image/codecs.so.
#ifndef WEIR_PLUGINS_KERNELS_IMAGE_CODECS_H_
#define WEIR_PLUGINS_KERNELS_IMAGE_CODECS_H_

#include <cstdint>

#include "plugins/kernels_image/image.h"
#include "sdk/cpp/status.h"

namespace weir::kernels_image {

/// Loads the part, once in a process. Unimplemented with the reason if it cannot be used; else the functions of image.h
/// may be called. Thread-safe.
int32_t LoadCodecs(const sdk::Error& error);

/// The functions of image.h that need a library.
struct Codecs {
  decltype(&DecodePng) decode_png;
  decltype(&DecodeJpeg) decode_jpeg;
  decltype(&DecodeGif) decode_gif;
  decltype(&CountGifFrames) count_gif_frames;
  decltype(&ReadJpegExtents) read_jpeg_extents;
  decltype(&EncodePng) encode_png;
  decltype(&EncodeJpeg) encode_jpeg;
};
using CodecsFn = const Codecs* (*)();

}  // namespace weir::kernels_image

// To be raised with each change of Codecs or of image.h.
#define WEIR_IMAGE_CODECS_SYMBOL "weir_image_codecs_1"

#endif  // WEIR_PLUGINS_KERNELS_IMAGE_CODECS_H_
