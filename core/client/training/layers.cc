#include "core/client/training/layers.h"

#include <memory>
#include <optional>

#include "core/base/errors.h"
#include "core/client/graph/graph_internal.h"
#include "core/client/graph/scopes.h"
#include "core/client/ops/build_op.h"
#include "core/client/training/optimizer.h"

namespace weir {
namespace {

/// The scope of a layer: of a name made unique, or of a layer that is there.
std::unique_ptr<VariableScope> OpenLayer(std::string_view name, std::optional<Reuse> reuse, Graph& graph) {
  VariableScopeOptions options;
  options.reuse = reuse;
  if (reuse.value_or(Reuse::kNo) != Reuse::kNo) return std::make_unique<VariableScope>(name, options, graph);
  return std::make_unique<VariableScope>(std::nullopt, name, options, graph);
}

}  // namespace

Output Dense(const Operand& x, int units, const Activation& activation, std::string_view name,
             const DenseOptions& options, Where where) {
  const Output input = x.In(GraphOf(x));
  if (IsSpoiled(input)) return input;
  if (!input.exists()) {
    (void)GraphOf(input).Fail(InvalidArgument("None values not supported. ({})", Format(where)));
    return input;
  }
  Graph& graph = *input.graph();
  const AsDefault in(graph);
  const PartialShape shape = input.shape();
  const int64_t features = shape.rank() > 0 ? shape.dim(shape.rank() - 1) : -1;
  if (features < 0 || units <= 0) {
    (void)graph.Fail(
        InvalidArgument("The last dimension of the inputs to `Dense` should be defined, and units positive; "
                        "got shape {} and {} units ({})",
                        shape.ToTupleString(), units, Format(where)));
    return Output::Absent(graph);
  }
  const std::unique_ptr<VariableScope> layer = OpenLayer(name.empty() ? "dense" : name, options.reuse, graph);
  VariableArgs weights;
  weights.shape = Shape::Of({features, units});
  weights.dtype = BaseType(input.dtype());
  weights.initializer = options.kernel_initializer;
  weights.regularizer = options.kernel_regularizer;
  weights.trainable = options.trainable;
  const Variable kernel = GetVariable("kernel", weights, where);
  Variable bias;
  if (options.use_bias) {
    weights.shape = Shape::Of({units});
    weights.initializer = options.bias_initializer ? options.bias_initializer : ZerosInitializer();
    weights.regularizer = options.bias_regularizer;
    bias = GetVariable("bias", weights, where);
  }
  if (!kernel.exists()) return Output::Absent(graph);
  Output y = MatMul(input, kernel, {}, where);
  if (options.use_bias) y = BiasAdd(y, bias, "BiasAdd", where);
  return activation ? activation(Operand(y, where), {}, where) : y;
}

}  // namespace weir
