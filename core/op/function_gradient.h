// Gradients of calls: functions that gradients add to the graph, and the operands of SymbolicGradient.
#ifndef WEIR_CORE_OP_FUNCTION_GRADIENT_H_
#define WEIR_CORE_OP_FUNCTION_GRADIENT_H_

#include <string>
#include <string_view>
#include <vector>

#include "core/op/grad_context.h"

namespace weir::op {

/// A function to add to a library. Its arguments are named "a0", "a1", …, its results "r0", "r1", …. Inputs of nodes
/// and `returns` name values as in function bodies: "a0", "node:output:0".
struct FunctionSpec {
  struct Node {
    std::string name;
    std::string op;
    std::vector<std::string> inputs;
    AttrList attrs = {};  // all attributes: none is deduced
  };
  std::string name;  // gets the suffix "_k" if another function has this name
  std::vector<DType> arguments;
  std::vector<DType> results;
  std::vector<Node> nodes;
  std::vector<std::string> returns;  // one per result
};

/// A call with this attribute set to true computes results only: stateful nodes on which no result depends are omitted.
/// Gradients use it to recompute the values of a body.
inline constexpr std::string_view kValuesOnly = "_values_only";

/// Operands of SymbolicGradient for a node that passes its inputs from `first` on to a function. Inputs: these inputs,
/// then one gradient per output. Outputs: one gradient per input.
struct SymbolicGradient {
  std::vector<Value> inputs;
  std::vector<DType> input_types;
  std::vector<DType> output_types;

  /// Attributes of the SymbolicGradient node for function `f`.
  AttrList Attrs(FuncRef f) const;
};
SymbolicGradient SymbolicGradientOf(GradContext& g, int first);

/// False for types without a gradient: bool, string, and handles of anything but a known variable.
bool TakesGradient(const GradContext& g, Value v);

/// The gradients of a node whose outputs are the results of `function` on its inputs.
std::vector<Grad> GradientOfCall(GradContext& g, FuncRef function);

}  // namespace weir::op

#endif  // WEIR_CORE_OP_FUNCTION_GRADIENT_H_
