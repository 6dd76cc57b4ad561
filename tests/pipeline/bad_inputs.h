// Bad graphs, feeds and names with their expected errors, for the session and for the command line.
#ifndef WEIR_TESTS_PIPELINE_BAD_INPUTS_H_
#define WEIR_TESTS_PIPELINE_BAD_INPUTS_H_

#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "core/tensor/tensor.h"
#include "tests/support/text_graph.h"

namespace weir::testing {

/// A run and its expected error. Code::kOk: no error, and the fetch is empty.
struct BadInput {
  std::string name;   // of the test
  std::string graph;  // GraphDef text
  Code code = Code::kInvalidArgument;
  std::string node;               // node named by the status; empty = none
  std::vector<std::string> said;  // parts of the message
  std::vector<std::string> fetches = {"y"};
  std::vector<std::pair<std::string, Tensor>> feeds = {};
  std::vector<std::string> targets = {};
};

inline void PrintTo(const BadInput& input, std::ostream* out) { *out << input.name; }

/// Node "a", a constant of two floats.
inline const std::string kTwo = ConstText("a", "DT_FLOAT", {2}, "float_val: 1 float_val: 2");

/// Faults of the graph itself, found by import.
std::vector<BadInput> BadGraphs();
/// Faults of feeds, fetches and computed values.
std::vector<BadInput> BadRuns();

/// The rows of the acceptance list.
std::vector<BadInput> NumberedInputs();

}  // namespace weir::testing

#endif  // WEIR_TESTS_PIPELINE_BAD_INPUTS_H_
