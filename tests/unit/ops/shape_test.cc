// Shape functions against the table shapes.txt.
#include <gtest/gtest.h>

#include <set>

#include "core/ops/declare_all.h"
#include "tests/unit/ops/row.h"

namespace weir::ops::test {
namespace {

/// A text in the table's format, on one line.
std::string Escaped(const std::string& text) {
  std::string out;
  for (char c : text) out += c == '\n' ? "\\n" : c == '\t' ? "\\t" : std::string(1, c);
  return out;
}

TEST(Shapes, OutputsAndErrorsAreThoseOfTheTable) {
  for (const Row& row : TableRows(Ops(), "shapes.txt")) {
    const Result<std::vector<PartialShape>> shapes = InferShapes(row);
    std::string got;
    if (shapes.ok()) {
      for (const PartialShape& shape : *shapes) got += (got.empty() ? "" : " ; ") + shape.ToString();
    } else {
      got = Escaped("error " + shapes.status().message());
      EXPECT_EQ(shapes.status().code(), Code::kInvalidArgument) << row.text;
    }
    std::string wanted;
    for (const std::string& part : row.expected) wanted += (wanted.empty() ? "" : " ; ") + part;
    EXPECT_EQ(got, wanted) << row.text;
  }
}

TEST(Shapes, EveryOpHasARowOrACase) {
  std::set<std::string> covered = OpsWithCases();
  for (const Row& row : TableRows(Ops(), "shapes.txt")) covered.insert(row.def->name);
  for (const op::OpDef* def : Ops().All()) {
    EXPECT_TRUE(covered.contains(def->name)) << def->name << " has no row in shapes.txt, and none in tests/ops/cases";
  }
}

}  // namespace
}  // namespace weir::ops::test
