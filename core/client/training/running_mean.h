// A mean that steps update, read and reset.
#ifndef WEIR_CORE_CLIENT_TRAINING_RUNNING_MEAN_H_
#define WEIR_CORE_CLIENT_TRAINING_RUNNING_MEAN_H_

#include <optional>
#include <string_view>

#include "core/client/ops/operand.h"
#include "core/client/variables/variable.h"

namespace weir::metrics {

/// The weighted mean of all values since its state was reset, as Keras's metric Mean: local variables `mean/total` and
/// `mean/count` (float), which the initializer of local variables or ResetStates sets to 0.
class RunningMean {
 public:
  explicit RunningMean(std::string_view name = "mean", Where where = Where::current());

  /// The step that adds `values` (any shape). `sample_weight` of a lower rank weighs the means over the last axes; it
  /// is broadcast otherwise.
  Operation UpdateState(const Operand& values, const std::optional<Operand>& sample_weight = {},
                        Where where = Where::current()) const;
  /// Float scalar; 0 before the first update.
  Output Result(Where where = Where::current()) const;
  Operation ResetStates(Where where = Where::current()) const;

  const Variable& total() const { return total_; }
  const Variable& count() const { return count_; }

 private:
  Variable total_, count_;
};

}  // namespace weir::metrics

#endif  // WEIR_CORE_CLIENT_TRAINING_RUNNING_MEAN_H_
