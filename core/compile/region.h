// Regions: connected sets of ops with known shapes, as compilers see them.
#ifndef WEIR_CORE_COMPILE_REGION_H_
#define WEIR_CORE_COMPILE_REGION_H_

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/op/attr_value.h"
#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"
#include "core/tensor/tensor.h"

namespace weir::compile {

struct RegionValue {
  DType dtype = DType::kInvalid;
  Shape shape;
  Tensor constant;  // inputs only: the elements of a small constant, in host memory; else not valid
};

/// An op with one result. Operands are numbers of values: input i is i, the result of node j is the number of inputs
/// plus j.
struct RegionOp {
  std::string op;
  std::vector<uint32_t> operands;
  op::AttrList attrs;         // int, float, bool, string and type, sorted by name
  std::vector<int64_t> axes;  // of a reduction: the last ones of its operand, ascending
  RegionValue result;
  double kernel_ns = std::numeric_limits<double>::quiet_NaN();  // declared time of its kernel
};

/// What makes a region a loop (weir_region_loop). The variables are its first inputs, and its outputs.
struct RegionLoop {
  std::vector<uint32_t> next;  // by variable: the number of its next value
  uint32_t condition = 0;      // number of a value
  uint64_t most_iterations = 1;
};

struct Region {
  std::vector<RegionValue> inputs;
  std::vector<RegionOp> nodes;    // in topological order
  std::vector<uint32_t> outputs;  // numbers of values, ascending
  bool deterministic = false;
  std::optional<RegionLoop> loop;  // none: the nodes are computed once

  uint32_t ValueOf(size_t node) const { return static_cast<uint32_t>(inputs.size() + node); }
  const RegionValue& value(uint32_t number) const {
    return number < inputs.size() ? inputs[number] : nodes[number - inputs.size()].result;
  }
};

/// Everything on which the code depends, a line per value: "i0 float [2,3]", "n1 Tanh(n0) T=DT_FLOAT -> float [2,3]".
std::string ToString(const Region& region);

/// True if no path between two of the nodes leads through another node. `chosen`: numbers of nodes, ascending.
bool IsConvex(const Region& region, std::span<const uint32_t> chosen);

/// A part of a region.
struct Part {
  Region region;
  std::vector<uint32_t> inputs;  // by input of the part: the number of the value in the whole
};

/// The region of some of the nodes, whose outputs are the values that are outputs of the whole or that its other nodes
/// use. `chosen`: numbers of nodes, ascending.
Part Choose(const Region& whole, std::span<const uint32_t> chosen);

/// The declared time of the nodes' kernels; unknown times count as 0.
double KernelNanoseconds(const Region& region, std::span<const uint32_t> chosen);

}  // namespace weir::compile

#endif  // WEIR_CORE_COMPILE_REGION_H_
