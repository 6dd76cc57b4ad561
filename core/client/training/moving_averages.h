// Running means: of variables that train, and of values over steps.
#ifndef WEIR_CORE_CLIENT_TRAINING_MOVING_AVERAGES_H_
#define WEIR_CORE_CLIENT_TRAINING_MOVING_AVERAGES_H_

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/client/variables/variable.h"

namespace weir {

struct MovingAverageOptions {
  std::optional<Operand> num_updates = {};  // the decay is at most (1 + num_updates) / (10 + num_updates)
  std::string name = "ExponentialMovingAverage";
};

/// shadow -= (1 - decay) * (shadow - value), for each variable a shadow variable `v/ExponentialMovingAverage` that
/// begins with the variable's initial value. Single-threaded.
class ExponentialMovingAverage {
 public:
  explicit ExponentialMovingAverage(const Operand& decay, MovingAverageOptions options = {});

  /// The operation that updates the averages of these (empty: all trainable) variables; a second call adds others.
  /// InvalidArgument for a variable that is averaged already, or of another type than half, float or double.
  Operation Apply(const std::vector<Variable>& variables = {}, Where where = Where::current());
  /// The shadow variable; does not exist before Apply.
  Variable Average(const Variable& variable) const;
  /// "v/ExponentialMovingAverage".
  std::string AverageName(const Variable& variable) const;
  /// For a Saver: the averages under the names of averaged variables, which restores them into the variables, and all
  /// other variables under their own.
  std::map<std::string, Variable> VariablesToRestore(Graph& graph = Graph::Default()) const;

 private:
  Operand decay_;
  MovingAverageOptions options_;
  std::map<std::string, Variable> averages_;  // by the name of the variable's op
};

namespace metrics {

/// A metric: its value so far, and the operation that adds the present values and returns the new one.
struct Metric {
  Output value = {};
  Output update_op = {};
};
/// The weighted mean over all updates: local variables `mean/total`, `mean/count`; 0 before the first update.
Metric Mean(const Operand& values, const std::optional<Operand>& weights = {}, std::string_view name = {},
            Where where = Where::current());

}  // namespace metrics
}  // namespace weir

#endif  // WEIR_CORE_CLIENT_TRAINING_MOVING_AVERAGES_H_
