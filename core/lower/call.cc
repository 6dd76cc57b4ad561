// Lowering of calls to the nodes of their bodies.
#include <algorithm>
#include <utility>

#include "core/base/errors.h"
#include "core/device/device_name.h"
#include "core/graph/frames.h"
#include "core/lower/body_gradient_internal.h"
#include "core/lower/lowerer_internal.h"
#include "core/op/function_gradient.h"

namespace weir::lower {

Result<op::FuncRef> FunctionAttr(const op::AttrView& attrs, std::string_view name) {
  const op::AttrValue* value = attrs.Find(name);
  const op::FuncRef* function = value == nullptr ? nullptr : value->get<op::FuncRef>();
  if (function == nullptr) return InvalidArgument("{} is missing attr: {}", attrs.def().name, name);
  return *function;
}

Result<std::vector<op::FuncRef>> FunctionsAttr(const op::AttrView& attrs, std::string_view name) {
  const op::AttrValue* value = attrs.Find(name);
  const auto* functions = value == nullptr ? nullptr : value->get<std::vector<op::FuncRef>>();
  if (functions == nullptr) return InvalidArgument("{} is missing attr: {}", attrs.def().name, name);
  return *functions;
}

Result<const FunctionBody*> Lowerer::Body(const Call& call, const op::FuncRef& function,
                                          std::span<const DType> arguments, std::span<const DType> results) {
  WEIR_ASSIGN(const FunctionBody* const body, bodies_.Get(function));
  const op::Signature& has = body->signature;
  if (arguments.size() != has.inputs.size()) {
    return InvalidArgument("Node inputs do not match function arguments: inputs={} arguments={} of function '{}'",
                           arguments.size(), has.inputs.size(), function.name);
  }
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (BaseType(arguments[i]) == has.inputs[i]) continue;
    return InvalidArgument("Expects arg[{}] to be {} but {} is provided; in a call of function '{}'", i,
                           Name(has.inputs[i]), Name(arguments[i]), function.name);
  }
  if (results.size() != has.outputs.size()) {
    return InvalidArgument("Node outputs do not match function returns: outputs={} returns={} of function '{}'",
                           results.size(), has.outputs.size(), function.name);
  }
  for (size_t i = 0; i < results.size(); ++i) {
    if (results[i] == has.outputs[i]) continue;
    return InvalidArgument("Output {} of type {} does not match declared output type {}; in a call of function '{}'", i,
                           Name(has.outputs[i]), Name(results[i]), function.name);
  }
  const op::AttrValue* const values_only = call.attrs().Find(op::kValuesOnly);
  if (values_only == nullptr || values_only->get<bool>() == nullptr || !*values_only->get<bool>()) return body;
  std::unique_ptr<const FunctionBody>& values = values_bodies_[body];
  if (values == nullptr) {
    WEIR_ASSIGN(values, ValuesBody(*body));
  }
  return values.get();
}

Result<Inlined> Lowerer::Inline(const Call& call, const FunctionBody& body, const std::string& name,
                                const std::vector<Endpoint>& arguments, NodeId anchor) {
  Scope scope{.from = body.graph,
              .prefix = name + "/",
              .device = call.device,
              .function = body.function->signature.name,
              .origin = call.node.origin(),
              .anchor = anchor,
              .depth = call.scope.depth + 1};
  scope.images.reserve(PositionOf(body.graph.num_nodes()));
  for (const Endpoint& argument : arguments) scope.images.push_back({.node = argument.node, .outputs = {argument}});
  const auto first = static_cast<NodeId>(arguments.size());
  for (NodeId id = first; id < body.graph.num_nodes(); ++id) WEIR_TRY(Lower(scope, body.graph.node(id)));
  WEIR_TRY(CloseLoops(scope, first));

  Inlined inlined;
  for (const Endpoint& result : body.results) {
    inlined.results.push_back(scope.images[result.node].At(result.index));
  }
  std::vector<NodeId> effects = std::move(scope.effects);
  if (!body.control_results.empty()) {
    effects.clear();
    for (const NodeId id : body.control_results) effects.push_back(scope.images[id].node);
  }
  inlined.has_effects = !effects.empty();
  if (effects.empty()) effects = {anchor};
  WEIR_ASSIGN(inlined.done, Join(call, name + "/_effects", std::move(effects)));
  return inlined;
}

Result<Image> Lowerer::LowerCallOf(const Call& call, const op::FuncRef& function) {
  const op::Signature& types = call.node.signature();
  WEIR_ASSIGN(const FunctionBody* const body, Body(call, function, types.inputs, types.outputs));
  return LowerCallTo(call, *body);
}

Result<Image> Lowerer::LowerCallTo(const Call& call, const FunctionBody& body) {
  // A control edge from a Switch does not carry the liveness of its outputs.
  std::vector<NodeId> inputs = call.controls;
  for (const Endpoint& input : call.inputs) {
    if (graph::FlowOf(lowered_.node(input.node)) != graph::Flow::kSwitch) {
      inputs.push_back(input.node);
      continue;
    }
    WEIR_ASSIGN(const Endpoint taken, AddIdentity(call, call.name + "/_taken", input));
    inputs.push_back(taken.node);
  }
  WEIR_ASSIGN(const NodeId anchor, Join(call, call.name + "/_inputs", std::move(inputs)));
  WEIR_ASSIGN(const Inlined inlined, Inline(call, body, call.name, call.inputs, anchor));
  std::vector<Endpoint> outputs;
  for (size_t i = 0; i < inlined.results.size(); ++i) {
    const bool waits = inlined.has_effects || !call.node.control_inputs().empty() || !body.result_of_arguments[i];
    WEIR_ASSIGN(outputs.emplace_back(),
                AddIdentity(call, ResultName(call, i), inlined.results[i], {waits ? inlined.done : kNone}));
  }
  return WithDone(call, std::move(outputs), {inlined.done}, inlined.has_effects);
}

Result<Image> Lowerer::LowerCall(const Call& call) {
  WEIR_ASSIGN(const op::FuncRef function, FunctionAttr(call.attrs(), "f"));
  return LowerCallOf(call, function);
}

Result<Image> Lowerer::LowerCallByName(const Call& call) {
  return LowerCallOf(call, {call.node.op().name, std::make_shared<const op::AttrList>(call.attrs().explicit_values())});
}

Result<Image> Lowerer::LowerSymbolicGradient(const Call& call) {
  WEIR_ASSIGN(const op::FuncRef function, FunctionAttr(call.attrs(), "f"));
  const std::string_view gradient = source_.functions().GradientOf(function.name);
  if (!gradient.empty()) return LowerCallOf(call, {std::string(gradient), function.attrs});
  WEIR_ASSIGN(const FunctionBody* const body, bodies_.Get(function));
  std::vector<PartialShape> shapes;
  for (const Endpoint& input : call.inputs) shapes.push_back(lowered_.ShapeOf(input));
  const op::Signature& types = call.node.signature();
  const GradientTypes given{.inputs = types.inputs, .input_shapes = shapes, .results = types.outputs};
  WEIR_ASSIGN(const std::unique_ptr<const FunctionBody> gradient_body, GradientBody(*body, given, bodies_));
  return LowerCallTo(call, *gradient_body);
}

Result<Image> Lowerer::LowerRemoteCall(const Call& call) {
  WEIR_ASSIGN(const op::FuncRef function, FunctionAttr(call.attrs(), "f"));
  return Unimplemented(
      "Function '{}' is to run where the target of a RemoteCall says, but other workers cannot be "
      "reached yet. Call it by StatefulPartitionedCall in the process that has the data",
      function.name);
}

Result<Image> Lowerer::LowerDeviceIndex(const Call& call) {
  WEIR_ASSIGN(const std::vector<std::string> types, call.attrs().Strings("device_names"));
  const Result<device::DeviceName> device = device::ParseDeviceName(call.device);
  const std::string type = device.ok() && device->type ? *device->type : "CPU";
  const auto index = static_cast<int32_t>(std::ranges::find(types, type) - types.begin());
  WEIR_ASSIGN(const Endpoint value, AddConst(call, call.name, Tensor::Scalar<int32_t>(index)));
  return Image{.node = value.node};
}

}  // namespace weir::lower
