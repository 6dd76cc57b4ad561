// Scopes beyond those of names, devices and control inputs: colocation, attributes, resource containers.
#ifndef WEIR_CORE_CLIENT_SCOPES_H_
#define WEIR_CORE_CLIENT_SCOPES_H_

#include <optional>
#include <source_location>
#include <string>
#include <string_view>
#include <vector>

#include "core/client/graph.h"

namespace weir {

/// What an enclosing ColocateWith means for those inside it.
enum class OuterColocation { kKeep, kIgnore };

/// Operations made while it lives run where `operation` does: they get its colocation groups in `_class`, and its
/// device; outer device scopes do not count for them. Operations that take a reference do so without being asked.
class ColocateWith {
 public:
  [[nodiscard]] explicit ColocateWith(const Dependency& operation, OuterColocation outer = OuterColocation::kKeep,
                                      Graph& graph = Graph::Default());
  /// Beside nothing: outer colocation and device scopes do not count.
  [[nodiscard]] explicit ColocateWith(std::nullopt_t, Graph& graph = Graph::Default());
  ~ColocateWith();
  ColocateWith(const ColocateWith&) = delete;
  ColocateWith& operator=(const ColocateWith&) = delete;

 private:
  Graph& graph_;
  std::vector<DeviceRequest> devices_;
  std::vector<Operation> beside_;
};

/// Operations made while it lives get the attribute, unless they have one of that name. Inner scopes of one name
/// replace outer ones; std::nullopt switches these off. `name` begins with '_', as those of no op do, or belongs to
/// every op made inside.
class AttrScope {
 public:
  [[nodiscard]] AttrScope(std::string name, std::optional<op::AttrValue> value, Graph& graph = Graph::Default());
  ~AttrScope();
  AttrScope(const AttrScope&) = delete;
  AttrScope& operator=(const AttrScope&) = delete;

 private:
  Graph& graph_;
};

/// Operations made while it lives come from that line of the model's code. Of nested ones the outermost counts.
class Origin {
 public:
  [[nodiscard]] explicit Origin(const std::source_location& where, Graph& graph = Graph::Default());
  ~Origin();
  Origin(const Origin&) = delete;
  Origin& operator=(const Origin&) = delete;

 private:
  Graph& graph_;
  const bool outermost_;
};

/// Variables and other stateful operations made while it lives keep their state in the container of that name; the
/// empty name is the default one.
class ContainerScope {
 public:
  [[nodiscard]] explicit ContainerScope(std::string name, Graph& graph = Graph::Default());
  ~ContainerScope();
  ContainerScope(const ContainerScope&) = delete;
  ContainerScope& operator=(const ContainerScope&) = delete;

 private:
  Graph& graph_;
};

}  // namespace weir

#endif  // WEIR_CORE_CLIENT_SCOPES_H_
