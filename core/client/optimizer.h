// Optimisers: gradients -> updates of variables, with TensorFlow's node names and slots.
#ifndef WEIR_CORE_CLIENT_OPTIMIZER_H_
#define WEIR_CORE_CLIENT_OPTIMIZER_H_

#include <map>
#include <source_location>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/client/gradients.h"
#include "core/client/variable.h"

namespace weir {

/// A gradient (which may not exist) and the variable that it is for.
using GradientAndVariable = std::pair<Gradient, Variable>;

struct MinimizeOptions {
  Variable global_step = {};             // incremented after the updates, when it exists
  std::vector<Variable> variables = {};  // empty = the trainable ones of the graph
  std::string name = {};                 // of the train op; empty = the optimiser's
};

/// Base of the optimisers. Single-threaded, used while building one graph. Learning rates and the like are numbers,
/// which become constants below the train op's scope ("Adam/learning_rate"), or scalars of the graph: a placeholder, a
/// variable, a value that decays with the global step. Each update casts them to its variable's type.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  /// Pairs in the order of the variables; one without gradient stays in. InvalidArgument for a loss that is not
  /// floating ("Invalid type …") and "No variables to optimize."
  Result<std::vector<GradientAndVariable>> ComputeGradients(
      const Output& loss, const std::vector<Variable>& variables = {},
      std::source_location where = std::source_location::current());

  /// Adds the updates for the pairs that have a gradient; returns the operation that runs them all, which is a NoOp, or
  /// the global step's AssignAdd. InvalidArgument "No gradients provided for any variable …" when none has, "No
  /// variables provided." for no pairs.
  Result<Operation> ApplyGradients(const std::vector<GradientAndVariable>& pairs, const MinimizeOptions& options = {},
                                   std::source_location where = std::source_location::current());

  /// ComputeGradients, then ApplyGradients. An error is also the graph's status; the operation does not exist then.
  Operation Minimize(const Output& loss, const MinimizeOptions& options = {},
                     std::source_location where = std::source_location::current());

  /// Slot of a variable ("momentum", "m", "v"); one that does not exist before ApplyGradients or for an unknown name.
  Variable GetSlot(const Variable& variable, std::string_view slot) const;
  virtual std::vector<std::string> SlotNames() const { return {}; }
  /// Variables of the optimiser itself, in order of their names.
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
  /// `v/Name` (`v/Name_1` …) below the current variable scope: zeros like the variable, beside it, not trainable, under
  /// `slot`. The slot of a part is the same part of a whole slot.
  Variable ZerosSlot(const Variable& variable, std::string_view slot, std::string_view name);
  /// In the current name scope and beside a variable, whose type it has.
  Variable ScalarVariable(std::string_view name, const Operand& initial, const Variable& beside);
  /// `scalar` in the type of the variable that it is about to update; `name`: of the cast, where there is one.
  static Operand Fitted(const Operand& scalar, const Variable& variable, std::string_view name = "Cast");
  const std::string& name() const { return name_; }

 private:
  void Keep(const Variable& variable);
  Result<std::vector<Operation>> AddUpdates(const std::vector<GradientAndVariable>& pairs, Graph& graph);

  std::string name_;
  std::map<std::pair<std::string, std::string>, Variable> slots_;  // (variable name, slot name)
  std::vector<Variable> variables_;
};

/// var -= learning_rate * gradient.
class GradientDescentOptimizer : public Optimizer {
 public:
  explicit GradientDescentOptimizer(Operand learning_rate, std::string name = "GradientDescent")
      : Optimizer(std::move(name)), learning_rate_(std::move(learning_rate)) {}

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
  MomentumOptimizer(Operand learning_rate, Operand momentum, bool use_nesterov = false, std::string name = "Momentum")
      : Optimizer(std::move(name)),
        learning_rate_(std::move(learning_rate)),
        momentum_(std::move(momentum)),
        use_nesterov_(use_nesterov) {}
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
                         Operand epsilon = 1e-8, std::string name = "Adam")
      : Optimizer(std::move(name)),
        learning_rate_(std::move(learning_rate)),
        beta1_(std::move(beta1)),
        beta2_(std::move(beta2)),
        epsilon_(std::move(epsilon)) {}
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

}  // namespace weir

#endif  // WEIR_CORE_CLIENT_OPTIMIZER_H_
