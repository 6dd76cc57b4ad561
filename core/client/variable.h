// Variables: tensors that outlive a run.
#ifndef WEIR_CORE_CLIENT_VARIABLE_H_
#define WEIR_CORE_CLIENT_VARIABLE_H_

#include <functional>
#include <initializer_list>
#include <iosfwd>
#include <memory>
#include <optional>
#include <source_location>
#include <string>
#include <string_view>
#include <vector>

#include "core/client/initializers.h"
#include "core/client/operand.h"

namespace weir {

/// Projects a variable's new value after an update of an optimiser that knows of constraints.
using VariableConstraint = std::function<Output(const Output& value)>;

/// Which part of a larger variable one is; checkpoints know it by the name of the whole.
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

/// The nodes of a variable that is in a graph already.
struct VariableNodes {
  Output handle = {};
  Output value = {};
  Output initial_value = {};
  Operation initializer = {};
  bool trainable = true;
  std::optional<SaveSlice> slice = {};
};

/// A reference or resource variable with the nodes that TensorFlow makes for it: `v/initial_value` (or
/// `v/Initializer/…`), `v`, `v/Assign`, `v/read`. Cheap to copy; refers to its graph. A partitioned variable has parts
/// instead of nodes, and stands for their concatenation; what a custom getter returns may be a mere value. No control
/// dependencies count for what is made here. One that could not be made does not exist: what its functions make does
/// not either, and is an error of the graph.
class Variable {
 public:
  Variable() = default;
  /// Adds the variable with an initial value from which it takes type and shape, to its collections.
  explicit Variable(const Operand& initial_value, const VariableOptions& options = {},
                    std::source_location where = std::source_location::current());
  /// `Variable v({{1.0, 2.0}})`: the same. The parameter pack, which stays empty, keeps `Variable v{1.0}` a scalar.
  template <class... None>
  requires(sizeof...(None) == 0) explicit Variable(std::initializer_list<Literal> rows, None...)
      : Variable(Operand(rows)) {}
  /// With `v/Initializer/…` from an initializer, as GetVariable makes it; one that is a value has type and shape from
  /// there. Without rank, the shape is the initial value's. The name is taken below the current name scope.
  Variable(const Initializer& initializer, const PartialShape& shape, DType dtype, const VariableOptions& options,
           Graph& graph = Graph::Default(), std::source_location where = std::source_location::current());

  /// One that came with a file; in no collection.
  static Variable FromNodes(const VariableNodes& nodes);
  /// A value in the place of a variable, for custom getters.
  static Variable FromValue(const Output& value);
  /// The whole of parts that are slices of it, in order; `partitions`: their number along each axis.
  static Variable FromParts(std::string name, const Shape& shape, std::vector<Variable> parts,
                            std::vector<int64_t> partitions);

  bool exists() const { return value_.exists() || is_partitioned(); }
  Graph* graph() const { return is_partitioned() ? parts()[0].graph() : value_.graph(); }
  /// The graph that what is made of it goes to: its own, or the default one.
  Graph& Home() const;
  /// The reference (type float_ref) or the resource handle.
  const Output& handle() const { return handle_; }
  /// What the variable stands for in expressions: `v/read`; of a resource variable a new read, which sees what control
  /// inputs, conds and loops that are open now have done to it, unless a caching device has its value; of a partitioned
  /// one a new concatenation of its parts.
  Output value(std::source_location where = std::source_location::current()) const;
  /// value(): a variable stands where a value is wanted, such as what a branch of a Cond returns.
  operator Output() const { return value(); }  // NOLINT(google-explicit-constructor)
  /// As Output's, of value().
  Output operator[](const Index& index) const;
  Output operator[](std::initializer_list<Index> indices) const;
  /// The read that was made with it, which is fetched, fed and saved: `v/read`, `v/Read/ReadVariableOp`, or what a
  /// caching device has. None of a partitioned one.
  const Output& snapshot() const { return value_; }
  /// Whether value() is a new read each time.
  bool is_read_anew() const { return is_resource_ && value_.op().type() == "ReadVariableOp"; }
  const Output& initial_value() const { return initial_value_; }
  /// `v/Assign`.
  const Operation& initializer() const { return initializer_; }
  Operation op() const { return handle_.op(); }
  /// "v:0"; of a partitioned one "v".
  std::string name() const;
  DType dtype() const { return dtype_; }
  PartialShape shape() const { return shape_; }
  bool trainable() const { return trainable_; }
  bool is_resource() const { return is_resource_; }
  const VariableConstraint& constraint() const;
  /// Set when it is a part of a partitioned variable.
  const std::optional<SaveSlice>& slice() const;
  bool is_partitioned() const { return !parts().empty(); }
  const std::vector<Variable>& parts() const;
  /// Number of parts along each axis.
  const std::vector<int64_t>& partitions() const;

  /// A read of its own, after the control inputs that are open now: nodes `read` or `Read/ReadVariableOp`.
  Output ReadValue(std::source_location where = std::source_location::current()) const;
  /// Its value once it has one, its initial value before: what the initial values of other variables may use, whichever
  /// is initialised first. A cond.
  Output InitializedValue(std::source_location where = std::source_location::current()) const;
  /// Whether it has a value: a bool scalar.
  Output IsInitialized(std::string_view name = {}, std::source_location where = std::source_location::current()) const;

  /// Nodes `Assign`, `AssignAdd`, `AssignSub`, of a partitioned one for each part: running the result gives the new
  /// value.
  Output Assign(const Operand& value, std::source_location where = std::source_location::current()) const;
  Output AssignAdd(const Operand& value, std::source_location where = std::source_location::current()) const;
  Output AssignSub(const Operand& value, std::source_location where = std::source_location::current()) const;

  /// The value behind a handle once `change` has run; none when there is no `change`.
  Output ReadAfter(const Operation& change, std::source_location where = std::source_location::current()) const;

  /// `<tf.Variable 'w:0' shape=() dtype=float32_ref>`.
  std::string ToString() const;

 private:
  friend class VariableBuilder;
  /// The op on a reference, or its form for handles.
  Output Change(const std::string& op, const Operand& value, std::source_location where) const;
  Output ChangeParts(const std::string& op, const Operand& value, std::source_location where) const;
  int cut_axis() const;
  Output handle_, value_, initial_value_;
  Operation initializer_;
  DType dtype_ = DType::kInvalid;
  PartialShape shape_;
  bool trainable_ = false;
  bool is_resource_ = false;
  struct Rest;  // what few variables have
  std::shared_ptr<const Rest> rest_;
};
/// As ToString.
std::ostream& operator<<(std::ostream& out, const Variable& variable);

/// Would compare with a new read of the variable, and never hold.
bool operator==(const Output& value, const Variable& variable) = delete;

/// A new read of the resource variable behind a handle, in the current scopes but for those of devices and colocation:
/// it is where the variable is.
Output ReadHandle(const Output& handle, DType dtype, std::source_location where);

/// One operation `init` (a Group) that runs the initializer of every variable of the collection.
Operation GlobalVariablesInitializer(Graph& graph = Graph::Default(),
                                     std::source_location where = std::source_location::current());
Operation LocalVariablesInitializer(Graph& graph = Graph::Default(),
                                    std::source_location where = std::source_location::current());
Operation VariablesInitializer(const std::vector<Variable>& variables, std::string_view name = "init",
                               std::source_location where = std::source_location::current());
/// A partitioned one as its parts.
std::vector<Variable> Flattened(const std::vector<Variable>& variables);
std::vector<Variable> GlobalVariables(Graph& graph = Graph::Default());
std::vector<Variable> LocalVariables(Graph& graph = Graph::Default());
std::vector<Variable> TrainableVariables(Graph& graph = Graph::Default());
/// The variables of a collection, in order; with a scope, those whose names it lets through (Graph::GetCollection).
std::vector<Variable> VariablesIn(const std::string& key, CollectionScope scope = {}, Graph& graph = Graph::Default());
/// A string vector with the names of the variables (default: global, then local ones) that have no value yet.
Output ReportUninitializedVariables(std::vector<Variable> variables = {}, Graph& graph = Graph::Default(),
                                    std::source_location where = std::source_location::current());

}  // namespace weir

#endif  // WEIR_CORE_CLIENT_VARIABLE_H_
