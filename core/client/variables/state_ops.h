// Ops on variables beyond plain assignment: updates of rows and slices, counters, assignment with options. The nodes of
// imported variables.
#ifndef WEIR_CORE_CLIENT_VARIABLES_STATE_OPS_H_
#define WEIR_CORE_CLIENT_VARIABLES_STATE_OPS_H_

#include <cstdint>
#include <string_view>

#include "core/client/variables/variable.h"

namespace weir {

/// The nodes of a variable that is in a graph already.
struct VariableNodes {
  Output handle = {};
  Output value = {};
  Output initial_value = {};
  Operation initializer = {};
  bool trainable = true;
  std::optional<SaveSlice> slice = {};
};

/// Changes the variable where `indices` say, by `updates`, in order: of indices that repeat, each counts. Running the
/// result gives the variable's new value. On a handle the node is a `Resource` + op with a read after it.
struct ScatterOp {
  const char* op;

  Output operator()(const Variable& variable, const Operand& indices, const Operand& updates,
                    std::string_view name = {}, Where where = Where::current()) const;
};

// indices: integers of any shape that name rows; updates: indices' shape + a row's, or a scalar for all of them.
inline constexpr ScatterOp ScatterUpdate{"ScatterUpdate"}, ScatterAdd{"ScatterAdd"}, ScatterSub{"ScatterSub"},
    ScatterMul{"ScatterMul"}, ScatterDiv{"ScatterDiv"}, ScatterMin{"ScatterMin"}, ScatterMax{"ScatterMax"};
// indices: [outer…, depth], coordinates of slices; updates: [outer…, the extents that are left].
inline constexpr ScatterOp ScatterNdUpdate{"ScatterNdUpdate"}, ScatterNdAdd{"ScatterNdAdd"},
    ScatterNdSub{"ScatterNdSub"};

/// The value of a scalar int32 or int64 variable, to which one is added; OutOfRange "Reached limit of 2" once it is
/// `limit`.
Output CountUpTo(const Variable& variable, int64_t limit, std::string_view name = {}, Where where = Where::current());

struct AssignOptions {
  /// false: `value` may have any shape. The variable's static shape stays, and what a run reads has the real one.
  bool validate_shape = true;
  std::string_view name = {};
};

/// Variable::Assign with options, which are for reference variables: handles take what fits their declared shape.
Output Assign(const Variable& variable, const Operand& value, const AssignOptions& options = {},
              Where where = Where::current());

}  // namespace weir

#endif  // WEIR_CORE_CLIENT_VARIABLES_STATE_OPS_H_
