// Arbitrary bytes as an image file of each kind: the result is an error, or pixels of the extents that were announced
// once and that fit the limit.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "plugins/kernels_image/image.h"

namespace {

using namespace weir::kernels_image;

/// Larger images take too long to fuzz.
constexpr int64_t kMostFuzzed = int64_t{1} << 22;

struct Made {
  int calls = 0;
  std::vector<uint8_t> memory;

  MakePixels Maker() {
    return [this](const Pixels& pixels) -> void* {
      ++calls;
      if (!FitsLimit(pixels)) std::abort();
      if (pixels.samples() > kMostFuzzed) return nullptr;
      memory.assign(static_cast<size_t>(pixels.frames * pixels.height * pixels.row_bytes()), 0);
      return memory.data();
    };
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  DecodeForm form;
  form.channels = data[0] & 3;
  form.wide = (data[0] & 4) != 0;
  form.recover = (data[0] & 8) != 0;
  form.ratio = 1 << (data[0] >> 4 & 3);
  for (const int kind : {0, 1, 2, 3}) {
    Made made;
    DecodeForm own = form;
    if (kind == 1 && own.channels == 2) own.channels = 0;
    const std::string fault = kind == 0   ? DecodePng(bytes, own, made.Maker())
                              : kind == 1 ? DecodeJpeg(bytes, own, made.Maker())
                              : kind == 2 ? DecodeGif(bytes, form.recover, made.Maker())
                                          : DecodeBmp(bytes, 0, made.Maker());
    if (made.calls > 1 || (fault.empty() && made.calls != 1)) std::abort();
  }
  Pixels pixels;
  (void)ReadJpegExtents(bytes, &pixels);
  return 0;
}
