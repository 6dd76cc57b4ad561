// Op builders under TensorFlow's names. Each adds nodes to the graph of its arguments (literals: to the default graph)
// below the current name scope, and returns the value. A bad argument gives an Output that does not exist;
// Graph::status then says why, with file and line of the call. `name`: empty = the op's.
#ifndef WEIR_CORE_CLIENT_OPS_H_
#define WEIR_CORE_CLIENT_OPS_H_

#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "core/client/array_ops.h"   // IWYU pragma: export
#include "core/client/math_ops.h"    // IWYU pragma: export
#include "core/client/nn_ops.h"      // IWYU pragma: export
#include "core/client/random_ops.h"  // IWYU pragma: export

namespace weir {

/// A value that is part of the graph. `dtype`: kInvalid = the literal's own type (integers int32, reals float).
Output Constant(const Literal& value, DType dtype = DType::kInvalid, std::string_view name = "Const",
                Where where = Where::current());

/// A value that every run must feed. `shape`: what fed values must fit; unknown rank takes any.
Output Placeholder(DType dtype, const PartialShape& shape = {}, std::string_view name = "Placeholder",
                   Where where = Where::current());
/// With the shape as a list: {-1, 4}, extents of -1 being unknown, or {} for a scalar.
Output Placeholder(DType dtype, std::initializer_list<int64_t> shape, std::string_view name = "Placeholder",
                   Where where = Where::current());

/// A value that a run may feed; `input` otherwise. `input` must fit `shape`.
Output PlaceholderWithDefault(const Operand& input, const PartialShape& shape,
                              std::string_view name = "PlaceholderWithDefault", Where where = Where::current());

/// The same values under a name of their own.
inline constexpr UnaryOp Identity{"Identity"};
/// The same values; gradients do not pass.
inline constexpr UnaryOp StopGradient{"StopGradient"};

/// The same values; ends the run with InvalidArgument "`message` : Tensor had NaN values" when one is not finite.
Output CheckNumerics(const Operand& tensor, std::string_view message, std::string_view name = "CheckNumerics",
                     Where where = Where::current());

/// Does nothing, after its control inputs.
Operation NoOp(std::string_view name = "NoOp", Where where = Where::current());

/// What Group waits for: operations, or the operations of values.
class Groupable {
 public:
  Groupable(Operation operation) : operation_(operation) {}  // NOLINT(google-explicit-constructor)
  Groupable(Output output) : operation_(output.op()) {}      // NOLINT(google-explicit-constructor)
  const Operation& operation() const { return operation_; }

 private:
  Operation operation_;
};

/// A NoOp that runs after all of `inputs`, on the device that they ask for. When they ask for several, one NoOp per
/// device runs between.
Operation Group(const std::vector<Groupable>& inputs, std::string_view name = "group_deps",
                Where where = Where::current());

}  // namespace weir

#endif  // WEIR_CORE_CLIENT_OPS_H_
