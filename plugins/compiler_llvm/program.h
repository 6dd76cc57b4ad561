// A region as a loop nest: what the planner (plan.h) gives and the backend (backend/) turns into machine code.
//
// The nest has row dimensions and one dimension of columns. A value varies along both, along one of them, or is a
// scalar. A unit of work is a row, or a chunk of a row's columns; units are independent. A reduction combines the
// columns of a row, so the columns of a row are passed over in stages: stage s computes what needs results of
// reductions of stages before s.
#ifndef WEIR_PLUGINS_COMPILER_LLVM_PROGRAM_H_
#define WEIR_PLUGINS_COMPILER_LLVM_PROGRAM_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "plugins/functors/region_ops.h"

namespace weir::compiler_llvm {

using functors::IsReduction;
using functors::Op;

/// Where a value lies in the nest.
struct Place {
  bool column = false;  // it varies along the columns
  bool row = false;     // it varies along a row dimension
  int stage = 0;        // the first stage that can compute it
};

/// An input or output in memory. Its register is its position: inputs first.
struct Access {
  uint32_t dtype = 0;
  bool column = false;
  std::vector<int64_t> steps;  // elements per step of each row dimension
};

struct Input {
  Access access;
  Place place;
  bool constant = false;  // a scalar whose element is known
  uint64_t bits = 0;      // of that element
};

struct Node {
  Op op{};
  uint32_t dtype = 0;              // of the result
  std::vector<uint32_t> operands;  // inputs, then nodes
  double alpha = 0;                // of kLeakyRelu and kLeakyReluGrad
  Place place;
};

struct Output {
  uint32_t value = 0;
  Access access;
};

/// A value that stage `made` keeps in scratch memory for later stages.
struct Stash {
  uint32_t value = 0;
  int made = 0;
  uint64_t offset = 0;
};

/// The nodes are computed again and again (weir_region_loop). There are no rows and one unit. The first inputs are the
/// variables, and so are the outputs. The condition has no columns.
struct Loop {
  std::vector<uint32_t> next;  // by variable: its next value
  uint32_t condition = 0;
  uint64_t most = 1;  // iterations
};

struct Program {
  std::vector<int64_t> rows;  // extents of the row dimensions, outermost first
  int64_t columns = 1;
  int64_t chunk = 1;  // columns of a unit; below `columns` only without reductions
  int64_t units = 1;
  int stages = 1;
  int lanes = 1;  // elements of a vector; 1: there are no columns
  bool reduces = false;
  std::vector<Input> inputs;
  std::vector<Node> nodes;  // in topological order
  std::vector<Output> outputs;
  std::vector<Stash> stashes;
  uint64_t scratch_bytes = 0;
  std::optional<Loop> loop;

  const Place& PlaceOf(uint32_t value) const {
    return value < inputs.size() ? inputs[value].place : nodes[value - inputs.size()].place;
  }
  uint32_t DtypeOf(uint32_t value) const {
    return value < inputs.size() ? inputs[value].access.dtype : nodes[value - inputs.size()].dtype;
  }
};

/// Marks the nodes that the columns of `stage` need for `roots`, down to inputs, values without columns and stashes of
/// earlier stages. `needed` has an entry per value.
void MarkNeeded(const Program& program, int stage, const std::vector<uint32_t>& roots, std::vector<bool>* needed);

/// The values that the columns of `stage` must compute: operands of its reductions, its stashes, and in the last stage
/// the outputs.
std::vector<uint32_t> RootsOf(const Program& program, int stage);

/// The stash of `value` that `stage` loads; null if it computes the value.
const Stash* LoadedStash(const Program& program, uint32_t value, int stage);

}  // namespace weir::compiler_llvm

#endif  // WEIR_PLUGINS_COMPILER_LLVM_PROGRAM_H_
