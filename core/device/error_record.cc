#include "core/device/error_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "core/base/legible.h"

namespace weir::device {
void ErrorRecord::Clear() {
  error_ = {};
  error_.struct_size = sizeof(error_);
  error_.message = text_;
  error_.capacity = sizeof(text_);
}

Status ErrorRecord::ToStatus(int32_t code, std::string_view what) const {
  if (code == WEIR_OK) return {};
  const bool known = code > WEIR_OK && code <= WEIR_UNAUTHENTICATED;
  const Code status_code = known ? static_cast<Code>(code) : Code::kUnknown;
  std::string text;
  if (error_.length > sizeof(text_)) {  // the plugin wrote an invalid length, so the end of its text is unknown
    text =
        fmt::format("{} failed with a text of {} bytes where there is room for {}", what, error_.length, sizeof(text_));
  } else {
    text = Legible({text_, static_cast<size_t>(error_.length)});
    if (text.empty()) text = fmt::format("{} failed without a text", what);
  }
  if (status_code == Code::kInternal && !text.starts_with(what)) text = fmt::format("{}: {}", what, text);
  if (!known) text += fmt::format(" (unknown code {})", code);
  if (error_.vendor_code != 0) text += fmt::format(" (vendor code {})", error_.vendor_code);
  return Status(status_code, std::move(text));
}

int32_t Report(weir_error* error, int32_t code, std::string_view text) noexcept {
  if (error == nullptr) return code;
  error->code = code;
  error->length = 0;
  if (error->message == nullptr) return code;
  const size_t size = std::min<size_t>(text.size(), error->capacity);
  std::memcpy(error->message, text.data(), size);
  error->length = size;
  return code;
}

int32_t Report(weir_error* error, const Status& status) noexcept {
  return Report(error, static_cast<int32_t>(status.code()), status.message());
}

}  // namespace weir::device
