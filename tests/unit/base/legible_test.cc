#include "core/base/legible.h"

#include <gtest/gtest.h>

namespace weir {
namespace {

TEST(Legible, ControlCharactersAndStrayBytesBecomeQuestionMarks) {
  struct Row {
    std::string_view text, lines, line;
  };
  using namespace std::string_view_literals;
  const Row rows[] = {
      {"plain", "plain", "plain"},
      {"", "", ""},
      {"a\tb\nc", "a\tb\nc", "a?b?c"},
      {"\x1b[31mred\x1b[0m", "?[31mred?[0m", "?[31mred?[0m"},
      {"a\rb\x7f\x08", "a?b??", "a?b??"},
      {"a\0b"sv, "a?b", "a?b"},
      {"\xff\xfe", "??", "??"},
      {"gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x99\x82", "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x99\x82",
       "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x99\x82"},
      {"\xc2\x9b"
       "31m",
       "?31m", "?31m"},          // U+009B also begins a control sequence
      {"\xc0\x9b", "??", "??"},  // overlong encoding
      {"\xe0\x80\x9b", "???", "???"},
      {"\xed\xa0\x80", "???", "???"},        // half a surrogate pair
      {"\xf4\x90\x80\x80", "????", "????"},  // beyond Unicode
      {"cut \xe2\x82", "cut ??", "cut ??"},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(Legible(row.text), row.lines);
    EXPECT_EQ(LegibleLine(row.text), row.line);
  }
  EXPECT_EQ(Legible("10 %\r20 %\n", "\r"), "10 %\r20 %?");
}

}  // namespace
}  // namespace weir
