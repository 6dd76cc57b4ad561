// Variables: tensors that outlive a run.
#ifndef WEIR_CORE_CLIENT_VARIABLE_H_
#define WEIR_CORE_CLIENT_VARIABLE_H_

#include <functional>
#include <optional>
#include <source_location>
#include <string>
#include <string_view>
#include <vector>

#include "core/client/operand.h"

namespace weir {

struct VariableOptions {
  std::string name;  // empty = "Variable"
  bool trainable = true;
  std::vector<std::string> collections;  // empty = {keys::kGlobalVariables}
  DType dtype = DType::kInvalid;         // kInvalid = the initial value's
  bool validate_shape = true;
  bool use_resource = false;  // VarHandleOp instead of VariableV2
};

/// Makes an initial value of a type and shape inside the current name scope (`v/Initializer`).
using Initializer = std::function<Output(Graph& graph, DType dtype, const Shape& shape)>;

/// The nodes of a variable that is in a graph already.
struct VariableNodes {
  Output handle;
  Output value;
  Output initial_value;
  Operation initializer;
  bool trainable = true;
};

/// A reference or resource variable with the nodes that TensorFlow makes for it: `v/initial_value` (or
/// `v/Initializer/…`), `v`, `v/Assign`, `v/read`. Cheap to copy; refers to its graph.
class Variable {
 public:
  Variable() = default;
  /// Adds the variable with an initial value from which it takes type and shape, to its collections.
  explicit Variable(const Operand& initial_value, const VariableOptions& options = {},
                    std::source_location where = std::source_location::current());
  /// With `v/Initializer/…` from an initializer, as GetVariable makes it. The name is taken below the current name
  /// scope.
  Variable(const Initializer& initializer, const Shape& shape, DType dtype, const VariableOptions& options,
           Graph& graph = Graph::Default(), std::source_location where = std::source_location::current());

  /// One that came with a file; in no collection.
  static Variable FromNodes(const VariableNodes& nodes);

  bool exists() const { return handle_.exists(); }
  Graph* graph() const { return handle_.graph(); }
  /// The reference (type float_ref) or the resource handle.
  const Output& handle() const { return handle_; }
  /// `v/read`: what the variable stands for in expressions.
  const Output& value() const { return value_; }
  const Output& initial_value() const { return initial_value_; }
  /// `v/Assign`.
  const Operation& initializer() const { return initializer_; }
  Operation op() const { return handle_.op(); }
  /// "v:0".
  std::string name() const { return handle_.name(); }
  DType dtype() const { return dtype_; }
  PartialShape shape() const { return shape_; }
  bool trainable() const { return trainable_; }
  bool is_resource() const { return is_resource_; }

  /// Nodes `Assign`, `AssignAdd`, `AssignSub`: running the result gives the new value.
  Output Assign(const Operand& value, std::source_location where = std::source_location::current()) const;
  Output AssignAdd(const Operand& value, std::source_location where = std::source_location::current()) const;
  Output AssignSub(const Operand& value, std::source_location where = std::source_location::current()) const;

  /// `<tf.Variable 'w:0' shape=() dtype=float32_ref>`.
  std::string ToString() const;

 private:
  friend class VariableBuilder;
  Output handle_, value_, initial_value_;
  Operation initializer_;
  DType dtype_ = DType::kInvalid;
  PartialShape shape_;
  bool trainable_ = false;
  bool is_resource_ = false;
};

Initializer ZerosInitializer();
Initializer OnesInitializer();
Initializer ConstantInitializer(Literal value);
Initializer RandomUniformInitializer(double minval = -0.05, double maxval = 0.05, int64_t seed = -1);
Initializer RandomNormalInitializer(double mean = 0, double stddev = 0.05, int64_t seed = -1);
Initializer TruncatedNormalInitializer(double mean = 0, double stddev = 0.05, int64_t seed = -1);
/// Uniform in ±sqrt(6 / (fan_in + fan_out)). Source: Glorot and Bengio 2010.
Initializer GlorotUniformInitializer(int64_t seed = -1);

/// A variable by name, unaffected by name scopes; made when there is none of that name, else AlreadyExists with
/// TensorFlow's text ("Variable w already exists, disallowed. …"). No initializer: glorot uniform for floating types,
/// zeros for others.
Variable GetVariable(std::string_view name, const Shape& shape, DType dtype = DType::kFloat,
                     Initializer initializer = nullptr, bool trainable = true,
                     std::source_location where = std::source_location::current());

/// One operation `init` (a NoOp) that runs the initializer of every variable of the collection.
Operation GlobalVariablesInitializer(Graph& graph = Graph::Default());
Operation LocalVariablesInitializer(Graph& graph = Graph::Default());
Operation VariablesInitializer(const std::vector<Variable>& variables, std::string_view name = "init");
std::vector<Variable> GlobalVariables(Graph& graph = Graph::Default());
std::vector<Variable> LocalVariables(Graph& graph = Graph::Default());
std::vector<Variable> TrainableVariables(Graph& graph = Graph::Default());
/// A string vector with the names of the variables (default: global, then local ones) that have no value yet.
Output ReportUninitializedVariables(std::vector<Variable> variables = {}, Graph& graph = Graph::Default());

}  // namespace weir

#endif  // WEIR_CORE_CLIENT_VARIABLE_H_
