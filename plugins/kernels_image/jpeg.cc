// JPEG files, by libjpeg-turbo. Its errors jump out of a function of this file that has no objects with destructors.
#include <cstdio>  // jpeglib.h needs FILE

#include <jpeglib.h>

#include <csetjmp>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "plugins/kernels_image/image.h"

namespace weir::kernels_image {
namespace {

struct JpegFault {
  jpeg_error_mgr base;  // libjpeg's pointer to it is one to this
  std::jmp_buf jump;
  char text[JMSG_LENGTH_MAX] = "";
};

[[noreturn]] void OnJpegError(j_common_ptr info) {
  auto* fault = reinterpret_cast<JpegFault*>(info->err);
  (*info->err->format_message)(info, fault->text);
  std::longjmp(fault->jump, 1);
}

/// A source in memory. Without `recover` it suspends at the end; else it ends the image there.
struct JpegSource {
  jpeg_source_mgr base;
  bool recover = false;
};

const JOCTET kEndOfImage[2] = {0xff, JPEG_EOI};

boolean FillFromNothing(j_decompress_ptr info) {
  auto* source = reinterpret_cast<JpegSource*>(info->src);
  if (!source->recover) return FALSE;
  source->base.next_input_byte = kEndOfImage;
  source->base.bytes_in_buffer = sizeof kEndOfImage;
  return TRUE;
}

void SkipBytes(j_decompress_ptr info, long count) {
  if (count <= 0) return;
  jpeg_source_mgr* source = info->src;
  if (static_cast<size_t>(count) > source->bytes_in_buffer) {
    source->next_input_byte = kEndOfImage;
    source->bytes_in_buffer = sizeof kEndOfImage;
    return;
  }
  source->next_input_byte += count;
  source->bytes_in_buffer -= static_cast<size_t>(count);
}

class JpegReader {
 public:
  JpegReader(std::string_view bytes, bool recover) {
    info_.err = jpeg_std_error(&fault_.base);
    fault_.base.error_exit = OnJpegError;
    fault_.base.output_message = [](j_common_ptr) {};
    source_.recover = recover;
    source_.base.next_input_byte = reinterpret_cast<const JOCTET*>(bytes.data());
    source_.base.bytes_in_buffer = bytes.size();
    source_.base.init_source = [](j_decompress_ptr) {};
    source_.base.fill_input_buffer = FillFromNothing;
    source_.base.skip_input_data = SkipBytes;
    source_.base.resync_to_restart = jpeg_resync_to_restart;
    source_.base.term_source = [](j_decompress_ptr) {};
  }
  JpegReader(const JpegReader&) = delete;
  JpegReader& operator=(const JpegReader&) = delete;
  ~JpegReader() {
    if (made_) jpeg_destroy_decompress(&info_);
  }

  std::string Fault() const { return fault_.text[0] != '\0' ? fault_.text : "the file is cut short"; }

  /// The extents in the header; colours as they are stored.
  bool ReadExtents(Pixels* pixels) {
    if (setjmp(fault_.jump) != 0) return false;
    if (!Open()) return false;
    pixels->height = info_.image_height;
    pixels->width = info_.image_width;
    pixels->channels = info_.num_components;
    return true;
  }

  /// Reads the header and plans the output. False with a fault.
  bool Start(const DecodeForm& form, Pixels* pixels) {
    if (setjmp(fault_.jump) != 0) return false;
    if (!Open()) return false;
    const int channels = form.channels != 0 ? form.channels : info_.num_components < 3 ? info_.num_components : 3;
    const bool four = info_.jpeg_color_space == JCS_CMYK || info_.jpeg_color_space == JCS_YCCK;
    info_.out_color_space = channels == 1 ? JCS_GRAYSCALE : four ? JCS_CMYK : JCS_RGB;
    if (channels != 1 && channels != 3) {
      std::strcpy(fault_.text, "a JPEG image has 1 or 3 channels");
      return false;
    }
    info_.do_fancy_upsampling = form.fancy ? TRUE : FALSE;
    info_.scale_num = 1;
    info_.scale_denom = static_cast<unsigned>(form.ratio);
    info_.dct_method = form.accurate ? JDCT_ISLOW : JDCT_IFAST;
    jpeg_calc_output_dimensions(&info_);
    pixels->height = info_.output_height;
    pixels->width = info_.output_width;
    pixels->channels = channels;
    return true;
  }

  /// Reads the rows that the file has into `to`; `line` has the bytes of a row of four channels. False with a fault.
  bool ReadRows(uint8_t* to, const Pixels& pixels, uint8_t* line) {
    if (setjmp(fault_.jump) != 0) return false;
    if (jpeg_start_decompress(&info_) == FALSE) return false;
    const bool four = info_.out_color_space == JCS_CMYK;
    while (info_.output_scanline < info_.output_height) {
      uint8_t* row = to + static_cast<int64_t>(info_.output_scanline) * pixels.row_bytes();
      JSAMPROW target = four ? line : row;
      if (jpeg_read_scanlines(&info_, &target, 1) == 0) return false;
      if (four) FromCmyk(line, pixels.width, row);
    }
    jpeg_finish_decompress(&info_);
    return true;
  }

 private:
  bool Open() {
    jpeg_create_decompress(&info_);
    made_ = true;
    info_.src = &source_.base;
    return jpeg_read_header(&info_, TRUE) == JPEG_HEADER_OK;
  }

  void FromCmyk(const uint8_t* from, int64_t width, uint8_t* to) const {
    for (int64_t x = 0; x < width; ++x, from += 4, to += 3) {
      const int black = from[3];
      for (int c = 0; c < 3; ++c) {
        to[c] = static_cast<uint8_t>(info_.saw_Adobe_marker ? black * from[c] / 255
                                                            : (255 - black) * (255 - from[c]) / 255);
      }
    }
  }

  jpeg_decompress_struct info_{};
  JpegFault fault_{};
  JpegSource source_{};
  bool made_ = false;
};

class JpegWriter {
 public:
  JpegWriter() {
    info_.err = jpeg_std_error(&fault_.base);
    fault_.base.error_exit = OnJpegError;
    fault_.base.output_message = [](j_common_ptr) {};
  }
  JpegWriter(const JpegWriter&) = delete;
  JpegWriter& operator=(const JpegWriter&) = delete;
  ~JpegWriter() {
    if (made_) jpeg_destroy_compress(&info_);
    std::free(buffer_);
  }

  std::string Fault() const { return fault_.text; }
  std::string_view file() const { return {reinterpret_cast<const char*>(buffer_), size_}; }

  bool Write(const uint8_t* samples, const Pixels& pixels, const JpegForm& form) {
    if (setjmp(fault_.jump) != 0) return false;
    jpeg_create_compress(&info_);
    made_ = true;
    jpeg_mem_dest(&info_, &buffer_, &size_);
    info_.image_width = static_cast<JDIMENSION>(pixels.width);
    info_.image_height = static_cast<JDIMENSION>(pixels.height);
    info_.input_components = static_cast<int>(pixels.channels);
    info_.in_color_space = pixels.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(&info_);
    if (form.optimize) info_.optimize_coding = TRUE;
    info_.density_unit = form.per_centimetre ? 2 : 1;
    info_.X_density = static_cast<UINT16>(form.x_density);
    info_.Y_density = static_cast<UINT16>(form.y_density);
    jpeg_set_quality(&info_, form.quality, TRUE);
    if (form.progressive) jpeg_simple_progression(&info_);
    if (!form.downsample) {
      for (int c = 0; c < info_.num_components; ++c)
        info_.comp_info[c].h_samp_factor = info_.comp_info[c].v_samp_factor = 1;
    }
    jpeg_start_compress(&info_, TRUE);
    if (!form.xmp.empty()) {
      jpeg_write_marker(&info_, JPEG_APP0 + 1, reinterpret_cast<const JOCTET*>(form.xmp.data()),
                        static_cast<unsigned>(form.xmp.size()));
    }
    while (info_.next_scanline < info_.image_height) {
      auto* row = const_cast<JSAMPROW>(samples + static_cast<int64_t>(info_.next_scanline) * pixels.row_bytes());
      jpeg_write_scanlines(&info_, &row, 1);
    }
    jpeg_finish_compress(&info_);
    return true;
  }

 private:
  jpeg_compress_struct info_{};
  JpegFault fault_{};
  bool made_ = false;
  unsigned char* buffer_ = nullptr;
  unsigned long size_ = 0;
};

}  // namespace

std::string ReadJpegExtents(std::string_view bytes, Pixels* pixels) {
  JpegReader reader(bytes, false);
  return reader.ReadExtents(pixels) ? std::string() : reader.Fault();
}

std::string DecodeJpeg(std::string_view bytes, const DecodeForm& form, const MakePixels& make) {
  JpegReader reader(bytes, form.recover);
  Pixels pixels;
  if (!reader.Start(form, &pixels)) return reader.Fault();
  if (!FitsLimit(pixels)) return "Image too large";
  auto* to = static_cast<uint8_t*>(make(pixels));
  if (to == nullptr) return "no memory for the pixels";
  std::memset(to, 0, static_cast<size_t>(pixels.samples()));
  std::vector<uint8_t> line(static_cast<size_t>(pixels.width) * 4);
  return reader.ReadRows(to, pixels, line.data()) ? std::string() : reader.Fault();
}

std::string EncodeJpeg(const uint8_t* samples, const Pixels& pixels, const JpegForm& form, std::string* file) {
  std::string xmp;
  JpegForm written = form;
  if (!form.xmp.empty()) {
    constexpr std::string_view kName("http://ns.adobe.com/xap/1.0/\0", 29);
    if (form.xmp.size() + kName.size() > 65533) return "the XMP metadata have more than 65504 bytes";
    xmp = std::string(kName) + std::string(form.xmp);
    written.xmp = xmp;
  }
  JpegWriter writer;
  if (!writer.Write(samples, pixels, written)) return writer.Fault();
  file->assign(writer.file());
  return {};
}

}  // namespace weir::kernels_image
