#include "core/client/layers.h"

#include <string>

namespace weir {
namespace {

/// The first of name, name_1, … that no layer of the graph has.
std::string FreeLayerName(Graph& graph, const std::string& name) {
  const auto taken = [&](const std::string& candidate) {
    const auto found = graph.variables().lower_bound(candidate + "/");
    return found != graph.variables().end() && found->first.starts_with(candidate + "/");
  };
  std::string free = name;
  for (int k = 1; taken(free); ++k) free = name + "_" + std::to_string(k);
  return free;
}

}  // namespace

Output Dense(const Operand& x, int units, const Activation& activation, std::string_view name,
             const DenseOptions& options, Where where) {
  const Output input = x.In(Graph::Default());
  if (!input.exists()) return Output();
  Graph& graph = *input.graph();
  const AsDefault in(graph);
  const PartialShape shape = input.shape();
  const int64_t features = shape.rank() > 0 ? shape.dim(shape.rank() - 1) : -1;
  if (features < 0 || units <= 0) {
    (void)graph.Fail(
        InvalidArgument("The last dimension of the inputs to `Dense` should be defined, and units positive; "
                        "got shape {} and {} units ({})",
                        shape.ToTupleString(), units, Format(where)));
    return Output();
  }
  const std::string layer = FreeLayerName(graph, std::string(name.empty() ? "dense" : name));
  const NameScope scope(layer, graph);
  const DType dtype = BaseType(input.dtype());
  const Variable kernel = GetVariable(layer + "/kernel", Shape::Of({features, units}), dtype,
                                      options.kernel_initializer, options.trainable, where);
  const Initializer zeros = options.bias_initializer ? options.bias_initializer : ZerosInitializer();
  const Variable bias = options.use_bias
                            ? GetVariable(layer + "/bias", Shape::Of({units}), dtype, zeros, options.trainable, where)
                            : Variable();
  if (!kernel.exists()) return Output();
  Output y = MatMul(input, kernel, {}, where);
  if (options.use_bias) y = BiasAdd(y, bias, "BiasAdd", where);
  return activation ? activation(Operand(y, where), {}, where) : y;
}

}  // namespace weir
