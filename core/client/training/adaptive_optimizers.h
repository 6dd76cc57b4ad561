// Optimisers beyond descent, momentum and Adam, under TensorFlow's names. Each update is one op, dense or of some rows.
#ifndef WEIR_CORE_CLIENT_TRAINING_ADAPTIVE_OPTIMIZERS_H_
#define WEIR_CORE_CLIENT_TRAINING_ADAPTIVE_OPTIMIZERS_H_

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "core/client/training/optimizer.h"
#include "core/client/variables/variable_scope.h"

namespace weir {

/// The update of one variable as an op: `Apply<op>`, `SparseApply<op>` and their forms for resources. Its inputs are
/// the variable, its slots, then scalars and the gradient.
struct UpdateRule {
  struct Slot {
    std::string name = {};              // "rms"
    Initializer initial = {};           // empty = zeros
    std::optional<double> filled = {};  // begins with this number instead, as a constant outside of the slot's scope
    std::string variable = {};          // empty = the optimiser's name
  };
  struct Scalar {
    std::string name = {};  // of its constant
    Operand value = 0.0;
  };
  std::string op = {};
  std::vector<Slot> slots = {};      // in the order in which they are made
  std::vector<size_t> order = {};    // in which the op takes them; empty = as made
  std::vector<Scalar> scalars = {};  // in the order of the op
  bool gradient_first = false;       // the gradient comes before the scalars
  Status valid = {};                 // of the arguments; an error is the graph's when the updates are built
};

/// Base of the optimisers that are an UpdateRule.
class RuleOptimizer : public Optimizer {
 public:
  std::vector<std::string> SlotNames() const override;

 protected:
  RuleOptimizer(std::string name, UpdateRule rule) : Optimizer(std::move(name)), rule_(std::move(rule)) {}
  void CreateSlots(const std::vector<Variable>& variables) override;
  void Prepare(Graph& graph, DType dtype) override;
  Operation ApplyDense(const Variable& variable, const Output& gradient) override;
  Result<Operation> ApplySparse(const Variable& variable, const Gradient& gradient) override;
  /// The values of the rule's scalars, in the scope of the train op and of type `dtype` if they are literals.
  virtual std::vector<Output> MakeScalars(Graph& graph, DType dtype);
  /// Further inputs after the scalars, made in the scope of the update.
  virtual std::vector<Operand> LastInputs(const Variable& variable) const;
  const UpdateRule& rule() const { return rule_; }

 private:
  Operation Apply(std::string_view prefix, const Variable& variable, const std::vector<Operand>& gradient) const;

  UpdateRule rule_;
  std::vector<Output> scalars_;
};

/// accumulator += gradient²; var -= learning_rate * gradient / sqrt(accumulator). Slot: "accumulator", which begins at
/// `initial_accumulator_value` > 0. Source: Duchi, Hazan and Singer 2011.
class AdagradOptimizer : public RuleOptimizer {
 public:
  explicit AdagradOptimizer(const Operand& learning_rate, double initial_accumulator_value = 0.1,
                            std::string name = "Adagrad");
};

struct RMSPropOptions {
  Operand decay = 0.9;
  Operand momentum = 0.0;
  Operand epsilon = 1e-10;
  bool centered = false;  // divides by the root of the variance: slot "mg" holds the mean gradient
  std::string name = "RMSProp";
};
/// rms = decay * rms + (1 - decay) * gradient²; momentum = momentum * slot + learning_rate * gradient /
/// sqrt(rms + epsilon); var -= slot. Slots: "rms" (begins at 1), "momentum". Source: Tieleman and Hinton 2012.
class RMSPropOptimizer : public RuleOptimizer {
 public:
  explicit RMSPropOptimizer(const Operand& learning_rate, const RMSPropOptions& options = {});
};

/// Slots: "accum" (mean of squared gradients), "accum_update" (of squared updates). Source: Zeiler 2012.
class AdadeltaOptimizer : public RuleOptimizer {
 public:
  explicit AdadeltaOptimizer(const Operand& learning_rate = 0.001, const Operand& rho = 0.95,
                             const Operand& epsilon = 1e-8, std::string name = "Adadelta");
};

struct FtrlOptions {
  double learning_rate_power = -0.5;
  double initial_accumulator_value = 0.1;
  double l1_regularization_strength = 0;
  double l2_regularization_strength = 0;
  double l2_shrinkage_regularization_strength = 0;  // > 0: the penalty also enters the gradient (FtrlV2)
  double beta = 0;
  std::string name = "Ftrl";
  std::string accum_name = {};   // of the slot's variable; empty = `name`
  std::string linear_name = {};  // likewise
};
/// Follow the regularised leader. Slots: "accum", "linear". Source: McMahan et al. 2013.
class FtrlOptimizer : public RuleOptimizer {
 public:
  explicit FtrlOptimizer(const Operand& learning_rate, const FtrlOptions& options = {});

 protected:
  std::vector<Output> MakeScalars(Graph& graph, DType dtype) override;

 private:
  Operand learning_rate_;
  FtrlOptions options_;
};

/// Descent followed by the proximal step of l1 and l2. Source: Duchi and Singer 2009.
class ProximalGradientDescentOptimizer : public RuleOptimizer {
 public:
  explicit ProximalGradientDescentOptimizer(const Operand& learning_rate,
                                            const Operand& l1_regularization_strength = 0.0,
                                            const Operand& l2_regularization_strength = 0.0,
                                            std::string name = "ProximalGradientDescent");
};

/// Adagrad followed by the proximal step of l1 and l2. Slot: "accumulator".
class ProximalAdagradOptimizer : public RuleOptimizer {
 public:
  explicit ProximalAdagradOptimizer(const Operand& learning_rate, double initial_accumulator_value = 0.1,
                                    const Operand& l1_regularization_strength = 0.0,
                                    const Operand& l2_regularization_strength = 0.0,
                                    std::string name = "ProximalAdagrad");
};

struct AdagradDAOptions {
  double initial_gradient_squared_accumulator_value = 0.1;
  double l1_regularization_strength = 0;
  double l2_regularization_strength = 0;
  std::string name = "AdagradDA";
};
/// Adagrad by dual averaging: keeps sums of gradients and of their squares (slots "gradient_accumulator",
/// "gradient_squared_accumulator") and `global_step`. Source: Duchi, Hazan and Singer 2011.
class AdagradDAOptimizer : public RuleOptimizer {
 public:
  AdagradDAOptimizer(const Operand& learning_rate, const Variable& global_step, const AdagradDAOptions& options = {});

 protected:
  std::vector<Output> MakeScalars(Graph& graph, DType dtype) override;
  std::vector<Operand> LastInputs(const Variable& variable) const override;

 private:
  Variable global_step_;
  AdagradDAOptions options_;
  Output next_step_;
};

}  // namespace weir

#endif  // WEIR_CORE_CLIENT_TRAINING_ADAPTIVE_OPTIMIZERS_H_
