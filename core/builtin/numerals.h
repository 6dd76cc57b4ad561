// Numbers in text.
#ifndef WEIR_CORE_BUILTIN_NUMERALS_H_
#define WEIR_CORE_BUILTIN_NUMERALS_H_

#include <cstdint>
#include <string_view>

namespace weir::builtin {

/// False unless the whole text is a number that fits, with blanks around it or without. Integers are decimals. Floating
/// numbers may also be "inf", "nan" or hexadecimal integers; out of range they become infinite or 0.
bool ReadNumber(std::string_view text, float* value);
bool ReadNumber(std::string_view text, double* value);
bool ReadNumber(std::string_view text, int32_t* value);
bool ReadNumber(std::string_view text, int64_t* value);
bool ReadNumber(std::string_view text, uint32_t* value);
bool ReadNumber(std::string_view text, uint64_t* value);

}  // namespace weir::builtin

#endif  // WEIR_CORE_BUILTIN_NUMERALS_H_
