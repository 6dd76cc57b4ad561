// Training: optimisers, which turn gradients into updates of variables under TensorFlow's names; layers; losses; the
// step.
#ifndef WEIR_CORE_CLIENT_TRAINING_OPTIMIZER_H_
#define WEIR_CORE_CLIENT_TRAINING_OPTIMIZER_H_

#include <map>
#include <source_location>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/client/gradients/gradients.h"
#include "core/client/ops/ops.h"
#include "core/client/variables/variable.h"

namespace weir {

/// A gradient (which may not exist) and its variable.
using GradientAndVariable = std::pair<Gradient, Variable>;

struct MinimizeOptions {
  Variable global_step = {};             // incremented after the updates, when it exists
  std::vector<Variable> variables = {};  // empty = the trainable ones of the graph
  std::string name = {};                 // of the train op; empty = the optimiser's
};

/// Base of the optimisers, for building one graph. Single-threaded. Learning rates and the like are numbers, which
/// become constants ("Adam/learning_rate"), or scalars of the graph; each update casts them to its variable's type.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  /// Pairs in the order of the variables, also without gradient. InvalidArgument for a loss that is not floating
  /// ("Invalid type …") and "No variables to optimize."
  Result<std::vector<GradientAndVariable>> ComputeGradients(const Output& loss,
                                                            const std::vector<Variable>& variables = {},
                                                            Where where = Where::current());

  /// Adds the updates for pairs with a gradient; returns the operation that runs them all, a NoOp or the global step's
  /// AssignAdd. InvalidArgument "No gradients provided for any variable …", "No variables provided."
  Result<Operation> ApplyGradients(const std::vector<GradientAndVariable>& pairs, const MinimizeOptions& options = {},
                                   Where where = Where::current());

  /// ComputeGradients, then ApplyGradients. After an error, which is the graph's, the operation does not exist.
  Operation Minimize(const Output& loss, const MinimizeOptions& options = {}, Where where = Where::current());

  /// Slot of a variable ("momentum", "m", "v"); does not exist before ApplyGradients.
  Variable GetSlot(const Variable& variable, std::string_view slot) const;
  virtual std::vector<std::string> SlotNames() const { return {}; }
  /// Number of updates (`Adam/iter`, an int64 scalar) by ApplyGradients called after the first call of this.
  Variable Iterations(std::source_location where = std::source_location::current());
  /// Its own variables, by name.
  const std::vector<Variable>& variables() const { return variables_; }

 protected:
  explicit Optimizer(std::string name) : name_(std::move(name)) {}

  /// Makes slots and other variables, and constants inside the scope of the train op.
  virtual void CreateSlots(const std::vector<Variable>& variables) { (void)variables; }
  virtual void Prepare(Graph& graph, DType dtype) = 0;
  virtual Operation ApplyDense(const Variable& variable, const Output& gradient) = 0;
  /// Rows `indices` (which may repeat) of the variable.
  virtual Result<Operation> ApplySparse(const Variable& variable, const Gradient& gradient);
  /// Operations after all updates.
  virtual std::vector<Operation> Finish(const std::vector<Operation>& updates) { return updates; }

  /// The gradient with the rows of each index summed, so that no index repeats.
  static Gradient WithoutRepeats(const Gradient& gradient);
  /// `v/Name` (`v/Name_1` …) in the current variable scope, beside the variable and of its type and shape, not
  /// trainable. `initial`: empty = zeros. The slot of a part is a part of a whole slot.
  Variable MakeSlot(const Variable& variable, std::string_view slot, std::string_view name, const Initializer& initial);
  /// In the current name scope and beside a variable, whose type it has.
  Variable ScalarVariable(std::string_view name, const Operand& initial, const Variable& beside);
  /// `scalar` in the type of the variable that it is about to update; `name`: of the cast, where there is one.
  static Operand Fitted(const Operand& scalar, const Variable& variable, std::string_view name = "Cast");
  const std::string& name() const { return name_; }

 private:
  void Keep(const Variable& variable);
  /// Adds one to `step` after what runs before; the operation that does so.
  static Operation Count(const Variable& step, std::string_view name, const std::source_location& where);
  Result<std::vector<Operation>> AddUpdates(const std::vector<GradientAndVariable>& pairs, Graph& graph);

  std::string name_;
  std::map<std::pair<std::string, std::string>, Variable> slots_;  // (variable name, slot name)
  std::vector<Variable> variables_;
  Variable iterations_;
};

/// var -= learning_rate * gradient.
class GradientDescentOptimizer : public Optimizer {
 public:
  explicit GradientDescentOptimizer(Operand learning_rate, std::string name = "GradientDescent");

 protected:
  void Prepare(Graph& graph, DType dtype) override;
  Operation ApplyDense(const Variable& variable, const Output& gradient) override;
  Result<Operation> ApplySparse(const Variable& variable, const Gradient& gradient) override;

 private:
  Operand learning_rate_;
  Output rate_;
};

/// accumulator = momentum * accumulator + gradient; var -= learning_rate * accumulator, or with Nesterov's look-ahead
/// var -= learning_rate * (gradient + momentum * accumulator). Source: Sutskever et al. 2013.
class MomentumOptimizer : public Optimizer {
 public:
  MomentumOptimizer(Operand learning_rate, Operand momentum, bool use_nesterov = false, std::string name = "Momentum");
  std::vector<std::string> SlotNames() const override { return {"momentum"}; }

 protected:
  void CreateSlots(const std::vector<Variable>& variables) override;
  void Prepare(Graph& graph, DType dtype) override;
  Operation ApplyDense(const Variable& variable, const Output& gradient) override;
  Result<Operation> ApplySparse(const Variable& variable, const Gradient& gradient) override;

 private:
  Operand learning_rate_, momentum_;
  bool use_nesterov_;
  Output rate_, momentum_value_;
};

/// Adam. Source: Kingma and Ba 2015, section 2 (the efficient form with epsilon outside the corrected root).
class AdamOptimizer : public Optimizer {
 public:
  explicit AdamOptimizer(Operand learning_rate = 0.001, Operand beta1 = 0.9, Operand beta2 = 0.999,
                         Operand epsilon = 1e-8, std::string name = "Adam");
  std::vector<std::string> SlotNames() const override { return {"m", "v"}; }

 protected:
  void CreateSlots(const std::vector<Variable>& variables) override;
  void Prepare(Graph& graph, DType dtype) override;
  Operation ApplyDense(const Variable& variable, const Output& gradient) override;
  Result<Operation> ApplySparse(const Variable& variable, const Gradient& gradient) override;
  std::vector<Operation> Finish(const std::vector<Operation>& updates) override;

 private:
  Operand learning_rate_, beta1_, beta2_, epsilon_;
  Variable beta1_power_, beta2_power_;
  Output rate_, beta1_value_, beta2_value_, epsilon_value_;
};

/// The variable of the collection `global_step`, else the one of that name; may not exist. InvalidArgument if it is no
/// integer scalar.
Variable GetGlobalStep(Graph& graph = Graph::Default(), Where where = Where::current());
/// `global_step`: an int64 scalar 0, not trainable. AlreadyExists `"global_step" already exists.`
Variable CreateGlobalStep(Graph& graph = Graph::Default(), Where where = Where::current());
/// The one that is there, else a new one.
Variable GetOrCreateGlobalStep(Graph& graph = Graph::Default(), Where where = Where::current());

}  // namespace weir

#endif  // WEIR_CORE_CLIENT_TRAINING_OPTIMIZER_H_
