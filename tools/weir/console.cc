#include "tools/weir/console.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "core/base/legible.h"

namespace weir::cli {
namespace {

bool WantsColor() {
  const char* no_color = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  const bool capable = term != nullptr && std::string_view(term) != "dumb";
  return isatty(STDOUT_FILENO) == 1 && (no_color == nullptr || no_color[0] == '\0') && capable;
}

}  // namespace

Console::Console(bool json) : json_(json), color_(!json && WantsColor()) {}

void Console::Print(std::string_view line) const { Write(Legible(line)); }

void Console::Write(std::string_view line) const {
  if (json_) return;
  std::fwrite(line.data(), 1, line.size(), stdout);
  std::fputc('\n', stdout);
}

std::string Console::Painted(std::string_view text, Paint paint) const {
  if (!color_ || paint == Paint::kNone) return std::string(text);
  const std::string_view code = paint == Paint::kGood ? "32" : paint == Paint::kBad ? "31" : "2";
  return fmt::format("\x1b[{}m{}\x1b[0m", code, text);
}

void Console::Print(const Table& table) const {
  std::vector<std::vector<std::string>> rows;
  std::vector<size_t> widths;
  for (const auto& row : table.rows()) {
    widths.resize(std::max(widths.size(), row.size()));
    std::vector<std::string>& texts = rows.emplace_back();
    for (size_t i = 0; i < row.size(); ++i) {
      texts.push_back(LegibleLine(row[i].text));
      widths[i] = std::max(widths[i], texts[i].size());
    }
  }
  for (size_t r = 0; r < rows.size(); ++r) {
    std::string line;
    size_t padding = 0;  // blanks to print before the next non-empty cell, so that no line ends in blanks
    for (size_t i = 0; i < rows[r].size(); ++i) {
      if (!rows[r][i].empty()) {
        line.append(padding, ' ');
        line += Painted(rows[r][i], table.rows()[r][i].paint);
        padding = 0;
      }
      padding += widths[i] - rows[r][i].size() + 2;
    }
    Write(line);
  }
}

std::string BytesText(double bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  while (bytes >= 1024 && unit + 1 < std::size(kUnits)) {
    bytes /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{:.0f} B", bytes) : fmt::format("{:.1f} {}", bytes, kUnits[unit]);
}

std::string OnOneLine(const std::string& text) {
  std::string line;
  for (size_t at = 0; at < text.size();) {
    const size_t blanks = std::min(text.find_first_not_of(" \t\r\n", at), text.size());
    if (blanks > at && text.find('\n', at) < blanks) {
      if (blanks < text.size()) line += ' ';
    } else {
      line.append(text, at, blanks - at);
    }
    at = std::min(text.find_first_of(" \t\r\n", blanks), text.size());
    line.append(text, blanks, at - blanks);
  }
  return line;
}

}  // namespace weir::cli
