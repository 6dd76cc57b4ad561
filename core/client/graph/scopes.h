// Scopes of graphs: the default graph, names, control inputs, devices. The seed of a graph.
#ifndef WEIR_CORE_CLIENT_GRAPH_SCOPES_H_
#define WEIR_CORE_CLIENT_GRAPH_SCOPES_H_

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <ranges>
#include <source_location>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/client/graph/graph.h"

namespace weir {

/// Returns the device of an operation, in place of that of inner scopes (`operation.device()`).
using DeviceFunction = std::function<std::string(const Operation& operation)>;

/// The device of a scope: a full or partial name, a function, or (std::nullopt) no outer scopes.
struct DeviceRequest {
  std::string name;
  DeviceFunction function;
  bool clears = false;

  DeviceRequest() = default;
  DeviceRequest(std::nullopt_t) : clears(true) {}                 // NOLINT(google-explicit-constructor)
  DeviceRequest(const char* device) : name(OrEmpty(device)) {}    // NOLINT(google-explicit-constructor)
  DeviceRequest(std::string device) : name(std::move(device)) {}  // NOLINT(google-explicit-constructor)
  DeviceRequest(std::string_view device) : name(device) {}        // NOLINT(google-explicit-constructor)
  template <class F>
  requires std::is_invocable_r_v<std::string, F&, const Operation&> DeviceRequest(F f)  // NOLINT
      : function(std::move(f)) {}

  bool empty() const { return name.empty() && !function && !clears; }
};

/// Base of the scopes, which end with the variables that hold them.
class Scope {
 public:
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 protected:
  Scope() = default;
  ~Scope() = default;
};

/// Whether default graphs and sessions of a thread must end in reverse order.
enum class Nesting { kEnforced, kFree };

/// Makes a graph the default of this thread while it lives. They end in reverse order, else the graph gets the error
/// "Nesting violated for default stack of Graph objects".
class AsDefault : Scope {
 public:
  [[nodiscard]] explicit AsDefault(Graph& graph, Nesting nesting = Nesting::kEnforced);
  ~AsDefault();

 private:
  Graph& graph_;
  const Nesting nesting_;
};

/// Names of operations made while it lives begin with the scope's path.
class NameScope : Scope {
 public:
  [[nodiscard]] explicit NameScope(std::string_view name, Graph& graph = Graph::Default());
  ~NameScope();
  const std::string& path() const { return path_; }
  /// False for an invalid name, which is an error of the graph.
  bool opened() const { return opened_; }

 private:
  Graph& graph_;
  bool opened_ = true;
  std::string path_;
};

/// A control input: an operation, or that of a value or a variable (`^v`).
class Dependency {
 public:
  Dependency(Operation operation) : operation_(operation) {}  // NOLINT(google-explicit-constructor)
  Dependency(Output value) : operation_(value.op()) {}        // NOLINT(google-explicit-constructor)
  Dependency(const Variable& variable);                       // NOLINT(google-explicit-constructor)
  const Operation& operation() const { return operation_; }

 private:
  Operation operation_;
};

/// Operations made while it lives run after `inputs`, directly or through their own inputs. std::nullopt suspends the
/// outer ones.
class ControlDependencies : Scope {
 public:
  [[nodiscard]] explicit ControlDependencies(std::vector<Dependency> inputs, Graph& graph = Graph::Default());
  [[nodiscard]] explicit ControlDependencies(std::nullopt_t, Graph& graph = Graph::Default());
  template <std::ranges::input_range R>
  requires std::convertible_to<std::ranges::range_reference_t<R>, Dependency>
  [[nodiscard]] explicit ControlDependencies(const R& inputs, Graph& graph = Graph::Default())
      : ControlDependencies(std::vector<Dependency>(std::ranges::begin(inputs), std::ranges::end(inputs)), graph) {}
  ~ControlDependencies();

 private:
  struct Outside;  // what std::nullopt puts aside
  Graph& graph_;
  std::unique_ptr<Outside> outside_;
};

/// Operations made while it lives request `device`, completed by outer scopes. Functions run innermost first.
class DeviceScope : Scope {
 public:
  [[nodiscard]] explicit DeviceScope(DeviceRequest device, Graph& graph = Graph::Default());
  ~DeviceScope();

 private:
  Graph& graph_;
};

/// Sets the seed of the default graph.
void SetRandomSeed(int64_t seed, Graph& graph = Graph::Default());

}  // namespace weir

#endif  // WEIR_CORE_CLIENT_GRAPH_SCOPES_H_
