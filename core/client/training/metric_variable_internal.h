// The variables that running metrics keep.
#ifndef WEIR_CORE_CLIENT_TRAINING_METRIC_VARIABLE_INTERNAL_H_
#define WEIR_CORE_CLIENT_TRAINING_METRIC_VARIABLE_INTERNAL_H_

#include <string_view>

#include "core/client/graph/scopes.h"
#include "core/client/variables/initializers.h"
#include "core/client/variables/variable_scope.h"

namespace weir::metrics {

/// A float scalar that begins with 0, is not trained, and belongs to the local and the metric variables.
inline Variable MetricVariable(std::string_view name, const Where& where) {
  VariableArgs args;
  args.shape = Shape();
  args.dtype = DType::kFloat;
  args.initializer = ZerosInitializer();
  args.trainable = false;
  args.collections = {keys::kLocalVariables, keys::kMetricVariables};
  return GetVariable(name, args, where);
}

}  // namespace weir::metrics

#endif  // WEIR_CORE_CLIENT_TRAINING_METRIC_VARIABLE_INTERNAL_H_
