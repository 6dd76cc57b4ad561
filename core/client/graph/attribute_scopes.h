// Scopes of attributes of operations: colocation, any attribute, origin, container. Seeds of ops.
#ifndef WEIR_CORE_CLIENT_GRAPH_ATTRIBUTE_SCOPES_H_
#define WEIR_CORE_CLIENT_GRAPH_ATTRIBUTE_SCOPES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/client/graph/scopes.h"

namespace weir {

/// What an enclosing ColocateWith means for those inside it.
enum class OuterColocation { kKeep, kIgnore };

/// Operations made while it lives run where `operation` does: they get its colocation groups in `_class`, and its
/// device; outer device scopes do not count for them. Operations that take a reference do so without being asked.
class ColocateWith : Scope {
 public:
  [[nodiscard]] explicit ColocateWith(const Dependency& operation, OuterColocation outer = OuterColocation::kKeep,
                                      Graph& graph = Graph::Default());
  /// Beside nothing: outer colocation and device scopes do not count.
  [[nodiscard]] explicit ColocateWith(std::nullopt_t, Graph& graph = Graph::Default());
  ~ColocateWith();

 private:
  Graph& graph_;
  std::vector<DeviceRequest> devices_;
  std::vector<Operation> beside_;
};

/// Operations made while it lives get the attribute, unless they have one of that name. Inner scopes of one name
/// replace outer ones; std::nullopt switches these off. `name` begins with '_', as those of no op do, or belongs to
/// every op made inside.
class AttrScope : Scope {
 public:
  [[nodiscard]] AttrScope(std::string name, std::optional<op::AttrValue> value, Graph& graph = Graph::Default());
  ~AttrScope();

 private:
  Graph& graph_;
};

/// Operations made while it lives come from that line of the model's code. Of nested ones the outermost counts.
class Origin : Scope {
 public:
  [[nodiscard]] explicit Origin(const std::source_location& where, Graph& graph = Graph::Default());
  ~Origin();

 private:
  Graph& graph_;
  const bool outermost_;
};

/// Variables and other stateful operations made while it lives keep their state in the container of that name; the
/// empty name is the default one.
class ContainerScope : Scope {
 public:
  [[nodiscard]] explicit ContainerScope(std::string name, Graph& graph = Graph::Default());
  ~ContainerScope();

 private:
  Graph& graph_;
};

/// Attributes seed and seed2 of a random op; both 0 = nondeterministic.
struct SeedPair {
  int64_t seed = 0;
  int64_t seed2 = 0;
};

/// `op_seed` < 0: the op has none, and then takes the number of operations that the graph has so far.
SeedPair OpSeeds(const Graph& graph, int64_t op_seed);

}  // namespace weir

#endif  // WEIR_CORE_CLIENT_GRAPH_ATTRIBUTE_SCOPES_H_
