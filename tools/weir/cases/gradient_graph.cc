#include "tools/weir/cases/gradient_graph.h"

#include "core/base/errors.h"
#include "core/client/gradients/gradients.h"
#include "core/client/ops/build_op.h"

namespace weir::cases {

Result<std::vector<Output>> AddGradients(const OpCase& row, Graph& graph, Feeds* feeds) {
  const AsDefault in(graph);
  std::vector<Output> inputs, xs;
  for (size_t i = 0; i < row.inputs.size(); ++i) {
    const Tensor& input = row.inputs[i];
    if (!row.DifferentiatedBy(i)) {
      inputs.push_back(Operand(Literal(input)).In(graph));
      continue;
    }
    OperationSpec spec;
    spec.op = "Placeholder";
    spec.attrs = {{"dtype", input.dtype()}, {"shape", PartialShape(input.shape())}};
    inputs.push_back(graph.Add(spec).output(0));
    feeds->emplace_back(inputs.back(), Literal(input));
    xs.push_back(inputs.back());
  }
  OperationSpec spec;
  spec.op = row.def->name;
  spec.inputs = inputs;
  spec.attrs = row.attrs;
  std::vector<Output> fetches = {graph.Add(spec).output(row.output)};
  WEIR_TRY(graph.status());
  WEIR_ASSIGN(const std::vector<Gradient> gradients, Gradients({fetches[0]}, xs));
  for (const Gradient& gradient : gradients) {
    if (gradient.exists()) fetches.push_back(gradient.values);
  }
  WEIR_TRY(graph.status());
  return fetches;
}

}  // namespace weir::cases
