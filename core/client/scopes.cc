#include "core/client/scopes.h"

#include <utility>

namespace weir {

ColocateWith::ColocateWith(const Dependency& operation, OuterColocation outer, Graph& graph)
    : graph_(graph), devices_(std::exchange(graph.device_stack(), {})), beside_(graph.colocation_stack()) {
  if (outer == OuterColocation::kIgnore) graph.colocation_stack().clear();
  if (!operation.operation().exists() || operation.operation().graph() != &graph) {
    (void)graph.Fail(
        InvalidArgument("cannot colocate with {}: it is no operation of this graph", operation.operation().ToString()));
    return;
  }
  graph.colocation_stack().push_back(operation.operation());
}

ColocateWith::ColocateWith(std::nullopt_t, Graph& graph)
    : graph_(graph),
      devices_(std::exchange(graph.device_stack(), {})),
      beside_(std::exchange(graph.colocation_stack(), {})) {}

ColocateWith::~ColocateWith() {
  graph_.device_stack() = std::move(devices_);
  graph_.colocation_stack() = std::move(beside_);
}

AttrScope::AttrScope(std::string name, std::optional<op::AttrValue> value, Graph& graph) : graph_(graph) {
  graph.attr_stack().emplace_back(std::move(name), std::move(value));
}

AttrScope::~AttrScope() {
  if (!graph_.attr_stack().empty()) graph_.attr_stack().pop_back();
}

Origin::Origin(const std::source_location& where, Graph& graph) : graph_(graph), outermost_(!graph.origin()) {
  if (outermost_) graph.origin() = where;
}

Origin::~Origin() {
  if (outermost_) graph_.origin().reset();
}

ContainerScope::ContainerScope(std::string name, Graph& graph) : graph_(graph) {
  graph.container_stack().push_back(std::move(name));
}

ContainerScope::~ContainerScope() {
  if (!graph_.container_stack().empty()) graph_.container_stack().pop_back();
}

}  // namespace weir
