#include "core/builtin/utf.h"

#include <algorithm>
#include <utility>

namespace weir::builtin {
namespace {

unsigned ByteAt(std::string_view text, size_t i) { return static_cast<unsigned char>(text[i]); }

/// Two bytes as a number.
unsigned UnitAt(std::string_view text, size_t i, bool little) {
  const unsigned a = ByteAt(text, i), b = ByteAt(text, i + 1);
  return little ? b << 8 | a : a << 8 | b;
}

bool IsLead(unsigned unit) { return unit >= 0xd800 && unit < 0xdc00; }
bool IsTrail(unsigned unit) { return unit >= 0xdc00 && unit < 0xe000; }

}  // namespace

std::optional<Encoding> EncodingOf(std::string_view name) {
  std::string plain;
  for (const char c : name) {
    if (c != '-' && c != '_' && c != ' ') plain += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  }
  static constexpr std::pair<std::string_view, Encoding> kNames[] = {
      {"utf8", Encoding::kUtf8},       {"utf16", Encoding::kUtf16},   {"utf16be", Encoding::kUtf16Be},
      {"utf16le", Encoding::kUtf16Le}, {"utf32", Encoding::kUtf32},   {"utf32be", Encoding::kUtf32Be},
      {"utf32le", Encoding::kUtf32Le}, {"usascii", Encoding::kAscii}, {"ascii", Encoding::kAscii},
      {"iso88591", Encoding::kLatin1}, {"latin1", Encoding::kLatin1}};
  for (const auto& [known, encoding] : kNames) {
    if (plain == known) return encoding;
  }
  return std::nullopt;
}

CodePoints::CodePoints(std::string_view text, Encoding encoding) : text_(text), encoding_(encoding) {
  using std::literals::operator""sv;
  const auto take = [&](std::string_view mark) {
    const bool there = text_.substr(at_).starts_with(mark);
    if (there) at_ += mark.size();
    return there;
  };
  if (encoding == Encoding::kUtf16) {
    encoding_ = take("\xff\xfe"sv) ? Encoding::kUtf16Le : Encoding::kUtf16Be;
    if (encoding_ == Encoding::kUtf16Be) take("\xfe\xff"sv);
  } else if (encoding == Encoding::kUtf32) {
    encoding_ = take("\xff\xfe\0\0"sv) ? Encoding::kUtf32Le : Encoding::kUtf32Be;
    if (encoding_ == Encoding::kUtf32Be) take("\0\0\xfe\xff"sv);
  }
}

std::optional<CodePoint> CodePoints::Next() {
  if (at_ >= text_.size()) return std::nullopt;
  CodePoint read;
  switch (encoding_) {
    case Encoding::kUtf8:
      read = Utf8();
      break;
    case Encoding::kUtf16:
    case Encoding::kUtf16Be:
    case Encoding::kUtf16Le:
      read = Utf16();
      break;
    case Encoding::kUtf32:
    case Encoding::kUtf32Be:
    case Encoding::kUtf32Le:
      read = Utf32();
      break;
    case Encoding::kAscii:
    case Encoding::kLatin1: {
      const unsigned byte = ByteAt(text_, at_);
      read = {byte, encoding_ == Encoding::kLatin1 || byte < 0x80, 0, 1};
      break;
    }
  }
  read.begin = at_;
  at_ += read.bytes;
  return read;
}

CodePoint CodePoints::Utf8() const {
  const unsigned first = ByteAt(text_, at_);
  if (first < 0x80) return {first, true, 0, 1};
  const size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4) return {0, false, 0, 1};
  char32_t value = first & (0x7fu >> length);
  for (size_t i = 1; i < length; ++i) {
    if (at_ + i >= text_.size()) return {0, false, 0, i};
    const unsigned byte = ByteAt(text_, at_ + i);
    // The second byte is limited further: no overlong forms, surrogates, or numbers beyond 0x10ffff.
    const unsigned low = i > 1 ? 0x80u : first == 0xe0 ? 0xa0u : first == 0xf0 ? 0x90u : 0x80u;
    const unsigned high = i > 1 ? 0xbfu : first == 0xed ? 0x9fu : first == 0xf4 ? 0x8fu : 0xbfu;
    if (byte < low || byte > high) return {0, false, 0, i};
    value = value << 6 | (byte & 0x3fu);
  }
  return {value, true, 0, length};
}

CodePoint CodePoints::Utf16() const {
  const bool little = encoding_ == Encoding::kUtf16Le;
  const size_t left = text_.size() - at_;
  if (left < 2) return {0, false, 0, left};
  const unsigned unit = UnitAt(text_, at_, little);
  if (IsTrail(unit)) return {0, false, 0, 2};
  if (!IsLead(unit)) return {unit, true, 0, 2};
  if (left < 4) return {0, false, 0, left};
  const unsigned second = UnitAt(text_, at_ + 2, little);
  if (!IsTrail(second)) return {0, false, 0, 2};
  return {0x10000 + ((unit - 0xd800) << 10) + (second - 0xdc00), true, 0, 4};
}

CodePoint CodePoints::Utf32() const {
  const size_t left = text_.size() - at_;
  if (left < 4) return {0, false, 0, left};
  const bool little = encoding_ == Encoding::kUtf32Le;
  const char32_t a = UnitAt(text_, at_, little), b = UnitAt(text_, at_ + 2, little);
  const char32_t value = little ? b << 16 | a : a << 16 | b;
  return {value, IsScalarValue(value), 0, 4};
}

bool IsScalarValue(char32_t c) { return c < 0xd800 || (c >= 0xe000 && c <= 0x10ffff); }

void Append(char32_t c, Encoding encoding, std::string* text) {
  const auto put = [text](char32_t byte) { *text += static_cast<char>(byte & 0xffu); };
  const auto unit = [&put](char32_t pair) {
    put(pair >> 8);
    put(pair);
  };
  if (encoding == Encoding::kUtf32Be) {
    unit(c >> 16);
    unit(c);
  } else if (encoding == Encoding::kUtf16Be) {
    if (c < 0x10000) return unit(c);
    unit(0xd800 + ((c - 0x10000) >> 10));
    unit(0xdc00 + ((c - 0x10000) & 0x3ffu));
  } else if (c < 0x80) {
    put(c);
  } else {
    const int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    put((more == 1 ? 0xc0u : more == 2 ? 0xe0u : 0xf0u) | c >> (6 * more));
    for (int i = more - 1; i >= 0; --i) put(0x80u | (c >> (6 * i) & 0x3fu));
  }
}

}  // namespace weir::builtin
