// The losses of a graph, as collections.
#ifndef WEIR_CORE_CLIENT_TRAINING_LOSSES_H_
#define WEIR_CORE_CLIENT_TRAINING_LOSSES_H_

#include <string_view>
#include <vector>

#include "core/client/ops/operand.h"

namespace weir {

namespace losses {

/// Adds a scalar to the collection `losses`.
void AddLoss(const Output& loss);
/// The collections `losses` and `regularization_losses`, filtered as Graph::GetCollection does.
std::vector<Output> GetLosses(CollectionScope scope = {}, Graph& graph = Graph::Default());
std::vector<Output> GetRegularizationLosses(CollectionScope scope = {}, Graph& graph = Graph::Default());

/// Sum of the regularization losses in `scope`; a constant 0 when there is none.
Output GetRegularizationLoss(CollectionScope scope = {}, std::string_view name = "total_regularization_loss",
                             Graph& graph = Graph::Default(), Where where = Where::current());

enum class Regularization { kAdd, kLeaveOut };
/// Sum of the losses in `scope`, and of the regularization losses; InvalidArgument "inputs must be a list of at least
/// one Tensor/IndexedSlices with the same dtype and shape" when there is none.
Output GetTotalLoss(Regularization regularization = Regularization::kAdd, std::string_view name = "total_loss",
                    CollectionScope scope = {}, Graph& graph = Graph::Default(), Where where = Where::current());

}  // namespace losses

}  // namespace weir

#endif  // WEIR_CORE_CLIENT_TRAINING_LOSSES_H_
