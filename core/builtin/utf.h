// Unicode text as code points, in the encodings that TensorFlow's ops name.
#ifndef WEIR_CORE_BUILTIN_UTF_H_
#define WEIR_CORE_BUILTIN_UTF_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weir::builtin {

/// Byte orders are part of the name; kUtf16 and kUtf32 have a byte order mark, else they are big-endian.
enum class Encoding : uint8_t { kUtf8, kUtf16, kUtf16Be, kUtf16Le, kUtf32, kUtf32Be, kUtf32Le, kAscii, kLatin1 };

/// Stands for text that cannot be read.
inline constexpr char32_t kReplacement = 0xfffd;

/// By any of the usual names, in any case: "UTF-8", "utf8", "UTF-16-BE", "US-ASCII", "ISO-8859-1", "latin1" …
std::optional<Encoding> EncodingOf(std::string_view name);

/// A code point, or what cannot be read as one, and the bytes that it takes.
struct CodePoint {
  char32_t value = 0;
  bool valid = false;
  size_t begin = 0, bytes = 0;
};

/// Reads text from its begin. A malformed sequence ends before the first byte that cannot belong to it.
class CodePoints {
 public:
  CodePoints(std::string_view text, Encoding encoding);
  /// Nothing at the end of the text.
  std::optional<CodePoint> Next();

 private:
  CodePoint Utf8() const;
  CodePoint Utf16() const;
  CodePoint Utf32() const;

  std::string_view text_;
  Encoding encoding_;
  size_t at_ = 0;
};

/// Not a surrogate, and at most 0x10ffff.
bool IsScalarValue(char32_t c);

/// Adds a code point; kUtf8, kUtf16Be or kUtf32Be.
void Append(char32_t c, Encoding encoding, std::string* text);

/// True unless the byte continues a UTF-8 character.
inline bool BeginsCharacter(char c) { return (static_cast<unsigned char>(c) & 0xc0u) != 0x80u; }

}  // namespace weir::builtin

#endif  // WEIR_CORE_BUILTIN_UTF_H_
