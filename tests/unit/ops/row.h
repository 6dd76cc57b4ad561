// Lines of the tables in this folder: a node of an op and the expected results.
//
//   Op attr=value … : input ; input … -> expected ; expected …
//
// An input is a shape ("[2,?]", "<unknown>"), integers whose value is known ("=[1,0]", "=-1", "=[[1,2],[0,1]]"), a
// vector whose elements are known in part ("~[2,?]"), or the handle of a variable of some shape, whose type is known or
// not ("handle int32 [2,3]", "handle [2,3]"). Type attributes that a line leaves out are float where the op allows it,
// int32 for known values; counts follow from the inputs. A '#' starts a comment line.
#ifndef WEIR_TESTS_UNIT_OPS_ROW_H_
#define WEIR_TESTS_UNIT_OPS_ROW_H_

#include <set>
#include <string>
#include <vector>

#include "core/op/attrs.h"
#include "core/op/registry.h"
#include "core/op/shape_context.h"

namespace weir::ops::test {

struct Input {
  PartialShape shape;
  Tensor value;                // valid if known
  PartialShape partial_value;  // of "~"
  op::HeldValue held;          // of "handle"
};

struct Row {
  std::string text;
  const op::OpDef* def = nullptr;
  op::AttrList attrs;  // complete except for defaults
  std::vector<Input> inputs;
  op::Signature signature;
  std::vector<std::string> expected;
};

/// The catalogue; a fault in it fails the current test.
const op::OpRegistry& Ops();

/// InvalidArgument quoting the line if its syntax is wrong or the catalogue lacks its op.
Result<Row> ParseRow(const op::OpRegistry& ops, const std::string& line);

/// The lines of a table of this folder and of its part about arrays ("array_" + file), without comments and empty
/// lines; empty if there is no such file.
std::vector<std::string> TableLines(const std::string& file);

/// The ops with a row in tests/ops/cases, where the results' shapes are compared with those inferred.
std::set<std::string> OpsWithCases();

/// The rows of a table; a line that cannot be parsed fails the current test.
std::vector<Row> TableRows(const op::OpRegistry& ops, const std::string& file);

/// Output shapes from the op's shape function.
Result<std::vector<PartialShape>> InferShapes(const Row& row);

/// "a", "b" of "a ; b", trimmed.
std::vector<std::string> Split(const std::string& text, const std::string& separator);

}  // namespace weir::ops::test

#endif  // WEIR_TESTS_UNIT_OPS_ROW_H_
