#include "core/client/training/losses.h"

#include "core/base/errors.h"
#include "core/client/graph/scopes.h"
#include "core/client/training/optimizer.h"

namespace weir::losses {
namespace {

std::vector<Output> ValuesIn(const char* key, CollectionScope scope, Graph& graph) {
  std::vector<Output> values;
  for (const CollectionEntry& entry : graph.GetCollection(key, scope)) {
    if (entry.output.exists()) values.push_back(entry.output);
  }
  return values;
}

/// One value keeps its node and gets an Identity of the name.
Output Sum(const std::vector<Output>& values, std::string_view name, const Where& where) {
  if (values.size() == 1) return Identity(values[0], name, where);
  return AddN({values.begin(), values.end()}, name, where);
}

}  // namespace

void AddLoss(const Output& loss) {
  if (loss.exists()) loss.graph()->AddToCollection(keys::kLosses, loss);
}

std::vector<Output> GetLosses(CollectionScope scope, Graph& graph) { return ValuesIn(keys::kLosses, scope, graph); }

std::vector<Output> GetRegularizationLosses(CollectionScope scope, Graph& graph) {
  return ValuesIn(keys::kRegularizationLosses, scope, graph);
}

Output GetRegularizationLoss(CollectionScope scope, std::string_view name, Graph& graph, Where where) {
  const AsDefault in(graph);
  const std::vector<Output> losses = GetRegularizationLosses(scope, graph);
  return losses.empty() ? Constant(0.0f, DType::kFloat, "Const", where) : Sum(losses, name, where);
}

Output GetTotalLoss(Regularization regularization, std::string_view name, CollectionScope scope, Graph& graph,
                    Where where) {
  const AsDefault in(graph);
  std::vector<Output> all = GetLosses(scope, graph);
  if (regularization == Regularization::kAdd) {
    for (const Output& loss : GetRegularizationLosses(scope, graph)) all.push_back(loss);
  }
  if (!all.empty()) return Sum(all, name, where);
  (void)graph.Fail(InvalidArgument(
      "inputs must be a list of at least one Tensor/IndexedSlices with the same dtype and shape ({})", Format(where)));
  return Output();
}

}  // namespace weir::losses
