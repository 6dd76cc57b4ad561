// What commands print: lines and tables for people, one JSON object for programs.
#ifndef WEIR_TOOLS_WEIR_CONSOLE_H_
#define WEIR_TOOLS_WEIR_CONSOLE_H_

#include <string>
#include <string_view>
#include <vector>

namespace weir::cli {

enum class Paint { kNone, kGood, kBad, kFaint };

/// Text with a meaning that a terminal shows as a colour.
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

/// Standard output as commands see it. Single-threaded.
class Console {
 public:
  /// With `json` nothing is printed for people. Colours only on a terminal, and not with NO_COLOR.
  explicit Console(bool json);

  bool json() const { return json_; }
  // Whatever the texts hold, no control character but line ends and tabs comes out.
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

/// A message on one line: a line break with the blanks around it becomes one blank. Control characters stay.
std::string OnOneLine(const std::string& text);

}  // namespace weir::cli

#endif  // WEIR_TOOLS_WEIR_CONSOLE_H_
