// Makes text from files, graphs and plugins safe to print on a terminal.
#ifndef WEIR_CORE_BASE_LEGIBLE_H_
#define WEIR_CORE_BASE_LEGIBLE_H_

#include <string>
#include <string_view>

namespace weir {

/// Replaces control characters other than those in `kept`, and bytes that are not part of a UTF-8 character, by
/// question marks.
std::string Legible(std::string_view text, std::string_view kept = "\n\t");
/// As Legible, for a single line: line ends and tabs are replaced too.
std::string LegibleLine(std::string_view text);

/// Writes Legible(text) to standard error in one write, so that lines of different threads do not mix. Errors are
/// ignored.
void WarnOnStderr(std::string_view text);

}  // namespace weir

#endif  // WEIR_CORE_BASE_LEGIBLE_H_
