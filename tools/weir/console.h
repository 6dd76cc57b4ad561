// Output of commands: lines and tables for users, one JSON object for programs.
#ifndef WEIR_TOOLS_WEIR_CONSOLE_H_
#define WEIR_TOOLS_WEIR_CONSOLE_H_

#include <string>
#include <string_view>
#include <vector>

namespace weir::cli {

enum class Paint { kNone, kGood, kBad, kFaint };

/// Text with a meaning, shown as a colour on a terminal.
struct Cell {
  Cell(std::string t, Paint p = Paint::kNone) : text(std::move(t)), paint(p) {}  // NOLINT(google-explicit-constructor)
  Cell(const char* t) : text(t) {}                                               // NOLINT(google-explicit-constructor)

  std::string text;
  Paint paint = Paint::kNone;
};

/// Rows under headings; columns are as wide as their widest cell.
class Table {
 public:
  explicit Table(std::vector<Cell> headings) { rows_.push_back(std::move(headings)); }
  void Add(std::vector<Cell> row) { rows_.push_back(std::move(row)); }
  const std::vector<std::vector<Cell>>& rows() const { return rows_; }

 private:
  std::vector<std::vector<Cell>> rows_;
};

/// Standard output of commands. Single-threaded.
class Console {
 public:
  /// With `json`, Print and tables print nothing. Colours appear only on a terminal, and not with NO_COLOR.
  explicit Console(bool json);

  bool json() const { return json_; }
  // Prints no control characters of the texts except line ends and tabs.
  void Print(std::string_view line) const;
  void Print(const Table& table) const;

 private:
  void Write(std::string_view line) const;
  std::string Painted(std::string_view text, Paint paint) const;

  bool json_;
  bool color_;
};

/// "640 B", "1.5 GiB".
std::string BytesText(double bytes);

/// A message on one line: a line break and the blanks around it become one blank. Control characters stay.
std::string OnOneLine(const std::string& text);

}  // namespace weir::cli

#endif  // WEIR_TOOLS_WEIR_CONSOLE_H_
