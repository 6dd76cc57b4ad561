#include "core/client/graph/attribute_scopes.h"

#include <utility>

#include "core/base/errors.h"
#include "core/client/graph/graph_internal.h"

namespace weir {

ColocateWith::ColocateWith(const Dependency& operation, OuterColocation outer, Graph& graph)
    : graph_(graph),
      devices_(std::exchange(Internals(graph).device_stack, {})),
      beside_(Internals(graph).colocation_stack) {
  if (outer == OuterColocation::kIgnore) Internals(graph).colocation_stack.clear();
  if (IsSpoiled(operation.operation())) return;
  if (!operation.operation().exists() || operation.operation().graph() != &graph) {
    (void)graph.Fail(
        InvalidArgument("cannot colocate with {}: it is no operation of this graph", operation.operation().ToString()));
    return;
  }
  Internals(graph).colocation_stack.push_back(operation.operation());
}

ColocateWith::ColocateWith(std::nullopt_t, Graph& graph)
    : graph_(graph),
      devices_(std::exchange(Internals(graph).device_stack, {})),
      beside_(std::exchange(Internals(graph).colocation_stack, {})) {}

ColocateWith::~ColocateWith() {
  Internals(graph_).device_stack = std::move(devices_);
  Internals(graph_).colocation_stack = std::move(beside_);
}

AttrScope::AttrScope(std::string name, std::optional<op::AttrValue> value, Graph& graph) : graph_(graph) {
  Internals(graph).attr_stack.emplace_back(std::move(name), std::move(value));
}

AttrScope::~AttrScope() {
  if (!Internals(graph_).attr_stack.empty()) Internals(graph_).attr_stack.pop_back();
}

Origin::Origin(const std::source_location& where, Graph& graph) : graph_(graph), outermost_(!Internals(graph).origin) {
  if (outermost_) Internals(graph).origin = where;
}

Origin::~Origin() {
  if (outermost_) Internals(graph_).origin.reset();
}

ContainerScope::ContainerScope(std::string name, Graph& graph) : graph_(graph) {
  Internals(graph).container_stack.push_back(std::move(name));
}

ContainerScope::~ContainerScope() {
  if (!Internals(graph_).container_stack.empty()) Internals(graph_).container_stack.pop_back();
}

}  // namespace weir
