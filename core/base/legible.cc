#include "core/base/legible.h"

#include <cstddef>
#include <cstdint>
#include <cstdio>

namespace weir {
namespace {

struct Character {
  size_t bytes = 1;
  bool valid = false;
  uint32_t code = 0;
};

/// The first UTF-8 character of `text`, which must not be empty.
Character First(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint32_t>(static_cast<unsigned char>(text[i])); };
  const uint32_t lead = byte(0);
  if (lead < 0x80) return {1, true, lead};
  const size_t bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < bytes) return {};
  uint32_t code = lead & (0x7fu >> bytes);
  for (size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3f);
  }
  constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  if (code < kLeast[bytes] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return {};
  return {bytes, true, code};
}

}  // namespace

std::string Legible(std::string_view text, std::string_view kept) {
  std::string clean;
  clean.reserve(text.size());
  while (!text.empty()) {
    const Character next = First(text);
    const bool control = next.code < 0x20 || (next.code >= 0x7f && next.code < 0xa0);
    if (next.valid && (!control || kept.find(text[0]) != std::string_view::npos)) {
      clean += text.substr(0, next.bytes);
    } else {
      clean += '?';
    }
    text.remove_prefix(next.bytes);
  }
  return clean;
}

std::string LegibleLine(std::string_view text) { return Legible(text, ""); }

void WarnOnStderr(std::string_view text) {
  const std::string clean = Legible(text);
  static_cast<void>(std::fwrite(clean.data(), 1, clean.size(), stderr));
}

}  // namespace weir
