// Upper and lower case of letters.
#ifndef WEIR_CORE_BUILTIN_LETTERS_H_
#define WEIR_CORE_BUILTIN_LETTERS_H_

#include <string>
#include <string_view>

namespace weir::builtin {

enum class Case { kLower, kUpper };

/// UTF-8 text by Unicode's full mappings, of no particular language. Malformed sequences become U+FFFD.
std::string OtherCase(std::string_view text, Case wanted);
/// Changes ASCII letters only.
std::string OtherAsciiCase(std::string_view text, Case wanted);

}  // namespace weir::builtin

#endif  // WEIR_CORE_BUILTIN_LETTERS_H_
