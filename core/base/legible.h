// Texts of files, graphs and plugins as a terminal may see them.
#ifndef WEIR_CORE_BASE_LEGIBLE_H_
#define WEIR_CORE_BASE_LEGIBLE_H_

#include <string>
#include <string_view>

namespace weir {

/// Control characters but those of `kept` become question marks, and so does each byte that is part of no UTF-8
/// character.
std::string Legible(std::string_view text, std::string_view kept = "\n\t");
/// The same for what belongs on one line: line ends and tabs become question marks, too.
std::string LegibleLine(std::string_view text);

/// Writes Legible(text) to standard error in one piece, so that lines of several threads stay whole. Errors are
/// ignored.
void WarnOnStderr(std::string_view text);

}  // namespace weir

#endif  // WEIR_CORE_BASE_LEGIBLE_H_
