// Symbolic differentiation.
#ifndef WEIR_CORE_CLIENT_GRADIENTS_GRADIENTS_H_
#define WEIR_CORE_CLIENT_GRADIENTS_GRADIENTS_H_

#include <initializer_list>
#include <source_location>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/base/status.h"
#include "core/client/graph/graph.h"
#include "core/client/variables/variable.h"

namespace weir {

/// A gradient: a value, rows of one (IndexedSlices), or none.
struct Gradient {
  Output values = {};
  Output indices = {};      // exists for IndexedSlices: int32 or int64 [n], rows may repeat
  Output dense_shape = {};  // of IndexedSlices; may not exist
  /// Of none: where the path from y to x breaks, "at 'ArgMax' (ArgMax): its answer is discrete".
  std::string why_none = {};

  bool exists() const { return values.exists(); }
  bool sparse() const { return indices.exists(); }
};

enum class Unconnected { kNone, kZero };

struct GradientsOptions {
  std::vector<Output> grad_ys = {};         // empty = ones like ys
  std::vector<Output> stop_gradients = {};  // treated as constants
  std::string_view name = "gradients";
  Unconnected unconnected = Unconnected::kNone;
  /// No gradient of a node's inputs is used before all of them are there, as TensorFlow's optimisers want it.
  bool gate = false;
};

/// The ys or xs of gradients: `{y, v}`, one of them, or a vector. A variable as y is its value, as x all its reads.
class Differentiated {
 public:
  using Value = std::variant<Output, Variable>;
  Differentiated(std::initializer_list<Value> values) : values_(values) {}
  Differentiated(Output value) : values_{value} {}                                                // NOLINT
  Differentiated(const Variable& value) : values_{value} {}                                       // NOLINT
  Differentiated(const std::vector<Output>& values) : values_(values.begin(), values.end()) {}    // NOLINT
  Differentiated(const std::vector<Variable>& values) : values_(values.begin(), values.end()) {}  // NOLINT
  std::vector<Output> Values(std::source_location where) const;
  std::vector<Output> Sources() const;

 private:
  std::vector<Value> values_;
};

/// d(sum of ys)/dx for every x, as nodes below the name scope "gradients". One entry per x, none without a path from x
/// (Gradient::why_none). Integers have gradients as reals do, unlike TensorFlow 2. Errors, also in Graph::status:
/// InvalidArgument without xs or ys; NotFound `No gradient defined for operation 'n' (op type: For)`; errors of
/// gradient functions, with the node. Source: TensorFlow white paper (2015), section 4.1.
Result<List<Gradient>> Gradients(const Differentiated& ys, const Differentiated& xs,
                                 const GradientsOptions& options = {}, Where where = Where::current());

}  // namespace weir

#endif  // WEIR_CORE_CLIENT_GRADIENTS_GRADIENTS_H_
