// Rows of tests/ops/cases: one call of an op each, with what it has to give. Every test of kernels reads them, and
// `weir check`.
//
//   Op attr=value … : input ; input … -> output ; output … => variable ; … | option …
//
// A type attribute may have several values ("T=float,half") or the name of a set (floats, ints, numbers, reals, moved,
// index), which makes a case of each; types that the op does not take are left out. One that is not given has the
// default, else float where the op takes it; counts follow from the inputs. Inputs, outputs and variables after the
// call are values (case_values.h) of the type that the op's signature says. "ref" is the one output that
// references.h computes, "none" stands for no output, "any" for outputs that only the gradient is about, and
// "error TEXT" for what the kernel has to say in their place ("error[2,3] TEXT" where it also has to be told of which
// shape the outputs would be). Options:
//   grad        a gradient by every input of type double, against finite differences (of the case with T=double); by
//               inputs of type float where the op takes no double
//   grad=0,2    by these inputs only
//   out=1       of this output; 0 when it is left out
//   tol=1e-3    relative error of outputs in place of the type's own; of the types of 64-bit numbers only if it is less
#ifndef WEIR_TOOLS_WEIR_CASES_CASE_TABLE_H_
#define WEIR_TOOLS_WEIR_CASES_CASE_TABLE_H_

#include <set>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/op/attrs.h"
#include "core/op/registry.h"
#include "core/tensor/tensor.h"

namespace weir::cases {

/// One row with its types chosen.
struct OpCase {
  std::string text;  // of the row, with its file
  const op::OpDef* def = nullptr;
  op::AttrList attrs;  // complete but for defaults
  op::Signature signature;
  std::vector<Tensor> inputs;  // of a handle, the value of its variable
  bool by_reference = false;   // `outputs` is empty: the reference says what is wanted
  bool any = false;            // `outputs` is empty: they are not compared
  std::vector<Tensor> outputs;
  std::vector<Tensor> after;  // what the first variables hold then; may be empty
  bool fails = false;         // the kernel refuses it
  std::string error;          // whose message contains this
  PartialShape refused;       // of the outputs of such a call; may be unknown
  double tolerance = 0;       // 0 = the type's own
  bool gradient = false;
  std::vector<size_t> by;  // inputs to differentiate by; empty = all of type double
  int output = 0;          // that is differentiated
  bool first = false;      // of its row

  op::AttrView view() const { return {*def, attrs}; }
  /// The gradient by input i is checked.
  bool DifferentiatedBy(size_t i) const;
  /// That by some input is.
  bool differentiable() const;
  /// The row and the types.
  std::string ToString() const;
};

/// The cases of one line.
Result<std::vector<OpCase>> ParseCases(const op::OpRegistry& ops, const std::string& line);

/// All cases of the files *.txt of a folder, by file name and line; lines that cannot be read become faults. `only`:
/// just those of these ops; null: all. NotFound if the folder cannot be read.
Result<std::vector<OpCase>> ReadCases(const op::OpRegistry& ops, const std::string& folder, std::vector<Status>* faults,
                                      const std::set<std::string>* only = nullptr);

/// Shapes of the outputs by the op's shape function, which sees all values.
Result<std::vector<PartialShape>> InferCase(const OpCase& c);

}  // namespace weir::cases

#endif  // WEIR_TOOLS_WEIR_CASES_CASE_TABLE_H_
