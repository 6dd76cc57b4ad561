// Symbolic differentiation.
#ifndef WEIR_CORE_CLIENT_GRADIENTS_H_
#define WEIR_CORE_CLIENT_GRADIENTS_H_

#include <initializer_list>
#include <source_location>
#include <string_view>
#include <variant>
#include <vector>

#include "core/base/status.h"
#include "core/client/graph.h"
#include "core/client/variable.h"

namespace weir {

/// A gradient: a value, rows of one (IndexedSlices), or none.
struct Gradient {
  Output values = {};
  Output indices = {};      // exists for IndexedSlices: int32 or int64 [n], rows may repeat
  Output dense_shape = {};  // of IndexedSlices; may not exist

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

/// The values that a gradient is of, or for: `{y, v}`, one of them, or a vector. A variable is its value as a y, and as
/// an x all its reads.
class Differentiated {
 public:
  using Value = std::variant<Output, Variable>;
  Differentiated(std::initializer_list<Value> values) : values_(values) {}
  Differentiated(Output value) : values_{value} {}                                                // NOLINT
  Differentiated(const Variable& value) : values_{value} {}                                       // NOLINT
  Differentiated(const std::vector<Output>& values) : values_(values.begin(), values.end()) {}    // NOLINT
  Differentiated(const std::vector<Variable>& values) : values_(values.begin(), values.end()) {}  // NOLINT
  std::vector<Output> Values(std::source_location where) const;
  /// Handles of the variables.
  std::vector<Output> Sources() const;

 private:
  std::vector<Value> values_;
};

/// d(sum of ys)/dx for every x, as nodes of the graph below the name scope "gradients". One entry per x, none where x
/// has no influence. Integers have gradients as reals do, where TensorFlow 2 gives none; `(*gradients)[i]` of an error
/// is none, too. Errors name the node without gradient and the reason; they also go to Graph::status.
/// Source: TensorFlow white paper (2015), section 4.1.
Result<List<Gradient>> Gradients(const Differentiated& ys, const Differentiated& xs,
                                 const GradientsOptions& options = {},
                                 std::source_location where = std::source_location::current());

}  // namespace weir

#endif  // WEIR_CORE_CLIENT_GRADIENTS_H_
