// Variables: tensors that outlive a run; ops that change them.
#ifndef WEIR_CORE_CLIENT_VARIABLES_VARIABLE_H_
#define WEIR_CORE_CLIENT_VARIABLES_VARIABLE_H_

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <iosfwd>
#include <memory>
#include <optional>
#include <source_location>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/client/graph/scopes.h"
#include "core/client/ops/operand.h"

namespace weir {

class Initializer;
class VariableKind;
struct VariableNodes;

/// Projects a variable's new value after an optimiser's update.
using VariableConstraint = std::function<Output(const Output& value)>;

/// A part of a variable that checkpoints store under the name of the whole.
struct SaveSlice {
  std::string full_name = {};
  std::vector<int64_t> full_shape = {};
  std::vector<int64_t> offset = {};
  std::vector<int64_t> shape = {};
  /// "4 2 2,1:0,2": the extents of the whole, then start and length along every axis.
  std::string spec() const;
  bool operator==(const SaveSlice&) const = default;
};

struct VariableOptions {
  std::string name = {};  // empty = "Variable"
  bool trainable = true;
  std::vector<std::string> collections = {keys::kGlobalVariables};
  DType dtype = DType::kInvalid;  // kInvalid = the initial value's
  bool validate_shape = true;
  std::optional<bool> use_resource = {};  // VarHandleOp instead of VariableV2; empty = as the variable scope says
  DeviceRequest caching_device = {};      // where reads are, instead of beside the variable
  VariableConstraint constraint = {};
  std::optional<SaveSlice> slice = {};  // when it is a part of a partitioned variable
};

/// A variable of a graph with the nodes that TensorFlow makes for it: `v/initial_value` (or `v/Initializer/…`), `v`,
/// `v/Assign`, `v/read`. A handle: cheap to copy, refers to its graph. There are four kinds: by reference, by resource
/// handle, partitioned (parts instead of nodes, whose concatenation it is), and mere values from custom getters.
/// Control dependencies do not apply to the nodes made here. A variable that an error prevented does not exist; its
/// functions return values that do not exist and report that error.
class Variable {
 public:
  Variable() = default;
  /// Adds a variable with the type and shape of its initial value to the collections of the options.
  explicit Variable(const Operand& initial_value, const VariableOptions& options = {}, Where where = Where::current());
  /// `Variable v({{1.0, 2.0}})`: the same. The parameter pack, which stays empty, keeps `Variable v{1.0}` a scalar.
  template <class... None>
  requires(sizeof...(None) == 0) explicit Variable(std::initializer_list<Literal> rows, None...)
      : Variable(Operand(rows)) {}
  /// With `v/Initializer/…`, as GetVariable makes it, below the current name scope. An initializer that is a value has
  /// its own type and shape. A `shape` of unknown rank means that of the initial value.
  Variable(const Initializer& initializer, const PartialShape& shape, DType dtype, const VariableOptions& options,
           Graph& graph = Graph::Default(), Where where = Where::current());

  /// A variable of an imported graph (state_ops.h); in no collection.
  static Variable FromNodes(const VariableNodes& nodes);
  /// A value in place of a variable, for custom getters.
  static Variable FromValue(const Output& value);
  /// The whole of `parts`, which are slices of it in order; `partitions`: the number of parts along each axis.
  static Variable FromParts(std::string name, const Shape& shape, std::vector<Variable> parts,
                            std::vector<int64_t> partitions);

  bool exists() const { return snapshot().exists() || is_partitioned(); }
  Graph* graph() const;
  /// Its graph, or the default one.
  Graph& Home() const;
  /// The reference (type float_ref) or the resource handle.
  const Output& handle() const;
  /// Its value in expressions: `v/read`. Of a resource variable without caching device, a new read in the current
  /// control scopes, conds and loops; of a partitioned one, a new concatenation.
  Output value(Where where = Where::current()) const;
  operator Output() const { return value(); }  // NOLINT(google-explicit-constructor)
  Output operator[](const Index& index) const;
  Output operator[](std::initializer_list<Index> indices) const;
  /// The read made with the variable, which is fetched, fed and saved: `v/read`, `v/Read/ReadVariableOp`, or the value
  /// on the caching device. A partitioned variable has none.
  const Output& snapshot() const;
  /// True if value() is a new read each time.
  bool is_read_anew() const;
  const Output& initial_value() const;
  /// `v/Assign`.
  const Operation& initializer() const;
  Operation op() const { return handle().op(); }
  /// "v:0"; of a partitioned variable "v".
  std::string name() const;
  DType dtype() const;
  const PartialShape& shape() const;
  bool trainable() const;
  bool is_resource() const;
  const VariableConstraint& constraint() const;
  /// Set for a part of a partitioned variable.
  const std::optional<SaveSlice>& slice() const;
  bool is_partitioned() const { return !parts().empty(); }
  const std::vector<Variable>& parts() const;
  const std::vector<int64_t>& partitions() const;

  /// A new read after the current control inputs: nodes `read` or `Read/ReadVariableOp`.
  Output ReadValue(Where where = Where::current()) const;
  /// The value, or the initial value while the variable has none (a cond): for initial values of other variables.
  Output InitializedValue(Where where = Where::current()) const;
  /// Whether it has a value: a bool scalar.
  Output IsInitialized(std::string_view name = {}, Where where = Where::current()) const;

  /// Nodes `Assign`, `AssignAdd`, `AssignSub`, for each part of a partitioned variable. The result is the new value.
  Output Assign(const Operand& value, Where where = Where::current()) const;
  Output AssignAdd(const Operand& value, Where where = Where::current()) const;
  Output AssignSub(const Operand& value, Where where = Where::current()) const;

  /// The value behind a resource handle after `change`; does not exist if `change` does not.
  Output ReadAfter(const Operation& change, Where where = Where::current()) const;

  /// `<tf.Variable 'w:0' shape=() dtype=float32_ref>`.
  std::string ToString() const;

 private:
  friend class VariableBuilder;
  explicit Variable(std::shared_ptr<const VariableKind> kind) : kind_(std::move(kind)) {}
  const VariableKind& kind() const;
  std::shared_ptr<const VariableKind> kind_;  // null: it does not exist
};
std::ostream& operator<<(std::ostream& out, const Variable& variable);

/// Would compare with a new read of the variable, and never hold.
bool operator==(const Output& value, const Variable& variable) = delete;

/// A new read of the variable behind a handle, on the device of the variable.
Output ReadHandle(const Output& handle, DType dtype, std::source_location where);

/// One operation `init` (a Group) that runs the initializer of every variable of the collection.
Operation GlobalVariablesInitializer(Graph& graph = Graph::Default(), Where where = Where::current());
Operation LocalVariablesInitializer(Graph& graph = Graph::Default(), Where where = Where::current());
Operation VariablesInitializer(const std::vector<Variable>& variables, std::string_view name = "init",
                               Where where = Where::current());
/// A partitioned one as its parts.
std::vector<Variable> Flattened(const std::vector<Variable>& variables);
std::vector<Variable> GlobalVariables(Graph& graph = Graph::Default());
std::vector<Variable> LocalVariables(Graph& graph = Graph::Default());
std::vector<Variable> TrainableVariables(Graph& graph = Graph::Default());
/// The variables of a collection, in order; with a scope, those whose names it lets through (Graph::GetCollection).
std::vector<Variable> VariablesIn(const std::string& key, CollectionScope scope = {}, Graph& graph = Graph::Default());
/// A string vector with the names of the variables (default: global, then local ones) that have no value yet.
Output ReportUninitializedVariables(std::vector<Variable> variables = {}, Graph& graph = Graph::Default(),
                                    Where where = Where::current());

}  // namespace weir

#endif  // WEIR_CORE_CLIENT_VARIABLES_VARIABLE_H_
