#include "core/client/ops.h"

#include <map>
#include <utility>

namespace weir {

Output Constant(const Literal& value, DType dtype, std::string_view name, Where where) {
  return Operand(value, where).In(Graph::Default(), dtype, name.empty() ? "Const" : name);
}

Output Placeholder(DType dtype, const PartialShape& shape, std::string_view name, Where where) {
  OperationSpec spec;
  spec.op = "Placeholder";
  spec.attrs = {{"dtype", dtype}, {"shape", shape}};
  spec.name = name;
  spec.where = where;
  return Graph::Default().Add(spec).output(0);
}

Output Placeholder(DType dtype, std::initializer_list<int64_t> shape, std::string_view name, Where where) {
  return Placeholder(dtype, PartialShape::Of(shape), name, where);
}

Output PlaceholderWithDefault(const Operand& input, const PartialShape& shape, std::string_view name, Where where) {
  return BuildOp("PlaceholderWithDefault", {input}, {{"shape", shape}}, name, where).output(0);
}

namespace {

Operation NoOpAfter(Graph& graph, std::vector<Operation> inputs, std::string_view name, const Where& where) {
  OperationSpec spec;
  spec.op = "NoOp";
  spec.name = name;
  spec.where = where;
  spec.control_inputs = std::move(inputs);
  return graph.Add(spec);
}

}  // namespace

Output CheckNumerics(const Operand& tensor, std::string_view message, std::string_view name, Where where) {
  return BuildOp("CheckNumerics", {tensor}, {{"message", std::string(message)}}, name.empty() ? "CheckNumerics" : name,
                 where)
      .output(0);
}

Operation NoOp(std::string_view name, Where where) { return NoOpAfter(Graph::Default(), {}, name, where); }

Operation Group(const std::vector<Groupable>& inputs, std::string_view name, Where where) {
  Graph& graph =
      inputs.empty() || inputs[0].operation().graph() == nullptr ? Graph::Default() : *inputs[0].operation().graph();
  std::map<std::string, std::vector<Operation>> by_device;
  for (const Groupable& input : inputs) {
    if (!input.operation().exists()) {
      (void)graph.Fail(InvalidArgument("Expected tf.group() expected Tensor objects not 'None' ({})", Format(where)));
      return Operation::Absent(graph);
    }
    if (input.operation().graph() != &graph) {
      (void)graph.Fail(InvalidArgument("{} must be from the same graph as {}. ({})", input.operation().ToString(),
                                       inputs[0].operation().ToString(), Format(where)));
      return Operation::Absent(graph);
    }
    by_device[input.operation().device()].push_back(input.operation());
  }
  const NameScope scope(name.empty() ? "group_deps" : name, graph);
  const std::string path = scope.path();
  if (by_device.size() == 1) {
    auto& [device, operations] = *by_device.begin();
    const DeviceScope on(device, graph);
    return NoOpAfter(graph, std::move(operations), path, where);
  }
  std::vector<Operation> all;
  for (auto& [device, operations] : by_device) {
    const DeviceScope on(device, graph);
    all.push_back(NoOpAfter(graph, std::move(operations), "NoOp", where));
  }
  return NoOpAfter(graph, std::move(all), path, where);
}

}  // namespace weir
