// Clipping of gradients.
#ifndef WEIR_CORE_CLIENT_TRAINING_CLIPPING_H_
#define WEIR_CORE_CLIENT_TRAINING_CLIPPING_H_

#include <string_view>
#include <vector>

#include "core/client/gradients/gradients.h"
#include "core/client/ops/operand.h"

namespace weir {

/// The square root of the sum of the squares of all elements of those that exist, of one floating type. Of rows the
/// values count as they are given, also those of repeated indices.
Output GlobalNorm(const std::vector<Gradient>& gradients, std::string_view name = "global_norm",
                  Where where = Where::current());

struct ClippedGradients {
  std::vector<Gradient> gradients;
  Output norm;  // before clipping
};
/// Scales all by clip_norm / max(norm, clip_norm). A norm that is not finite makes all elements NaN. Those that do not
/// exist stay so. `use_norm`: a norm that is there already.
ClippedGradients ClipByGlobalNorm(const std::vector<Gradient>& gradients, const Operand& clip_norm,
                                  const Output& use_norm = {}, std::string_view name = {},
                                  Where where = Where::current());

}  // namespace weir

#endif  // WEIR_CORE_CLIENT_TRAINING_CLIPPING_H_
