#include "core/client/ops/ops.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "core/base/errors.h"
#include "core/client/graph/graph_internal.h"
#include "core/client/graph/scopes.h"
#include "core/client/ops/build_op.h"

namespace weir {

Output Constant(const Literal& value, DType dtype, std::string_view name, Where where) {
  return Operand(value, where).In(Graph::Default(), dtype, name.empty() ? "Const" : name);
}

namespace {

/// As TensorFlow does it: without elements to give, a constant has zeros, and one without elements takes any values.
Result<Tensor> Filled(const Literal& literal, const Shape& shape, DType dtype) {
  if (shape.valid() && shape.elements() == 0)
    return Tensor::Make(dtype == DType::kInvalid ? DType::kFloat : dtype, shape);
  WEIR_ASSIGN(const Tensor values, literal.As(dtype));
  WEIR_ASSIGN(Tensor filled, Tensor::Make(values.dtype(), shape));
  const int64_t given = values.elements(), wanted = filled.elements();
  if (given > wanted) {
    return InvalidArgument("Too many elements provided. Needed at most {}, but received {}", wanted, given);
  }
  if (values.dtype() == DType::kString) {
    const auto from = values.as<std::string>();
    const auto to = filled.mutable_as<std::string>();
    for (size_t i = 0; given > 0 && i < to.size(); ++i) to[i] = from[std::min(i, from.size() - 1)];
    return filled;
  }
  const size_t size = SizeOf(values.dtype());
  std::memset(filled.mutable_raw(), 0, filled.bytes());
  for (int64_t i = 0; given > 0 && i < wanted; ++i) {
    const auto from = static_cast<size_t>(std::min(i, given - 1));
    std::memcpy(filled.mutable_raw() + static_cast<size_t>(i) * size, values.raw() + from * size, size);
  }
  return filled;
}

}  // namespace

Output Constant(const Literal& value, const Shape& shape, DType dtype, std::string_view name, Where where) {
  const Result<Tensor> filled = Filled(value, shape, dtype);
  if (filled.ok()) return Constant(*filled, filled->dtype(), name, where);
  (void)Graph::Default().Fail(filled.status().Append(" (" + Format(where) + ")"));
  return Output::Absent(Graph::Default());
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
    if (IsSpoiled(input.operation())) return input.operation();
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
