// Symbolic differentiation.
#ifndef WEIR_CORE_CLIENT_GRADIENTS_H_
#define WEIR_CORE_CLIENT_GRADIENTS_H_

#include <source_location>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/client/graph.h"

namespace weir {

/// A gradient: a value, rows of one (IndexedSlices), or none.
struct Gradient {
  Output values;
  Output indices;      // exists for IndexedSlices: int32 or int64 [n], rows may repeat
  Output dense_shape;  // of IndexedSlices; may not exist

  bool exists() const { return values.exists(); }
  bool sparse() const { return indices.exists(); }
};

enum class Unconnected { kNone, kZero };

struct GradientsOptions {
  std::vector<Output> grad_ys;         // empty = ones like ys
  std::vector<Output> stop_gradients;  // treated as constants
  std::string_view name = "gradients";
  Unconnected unconnected = Unconnected::kNone;
  /// No gradient of a node's inputs is used before all of them are there, as TensorFlow's optimisers want it.
  bool gate = false;
};

/// d(sum of ys)/dx for every x, as nodes of the graph below the name scope "gradients". One entry per x, none where x
/// has no influence. The handle of a variable stands for all reads of it. Integers have gradients as reals do,
/// where TensorFlow 2 gives none; `(*gradients)[i]` of an error is none, too. Errors name the node without gradient and
/// the reason; they also go to Graph::status. Source: TensorFlow white paper (2015), section 4.1.
Result<List<Gradient>> Gradients(const std::vector<Output>& ys, const std::vector<Output>& xs,
                                 const GradientsOptions& options = {},
                                 std::source_location where = std::source_location::current());

}  // namespace weir

#endif  // WEIR_CORE_CLIENT_GRADIENTS_H_
