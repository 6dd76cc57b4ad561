// Loops over the slices of tensors along their first axis, and over ranges of numbers.
#ifndef WEIR_CORE_CLIENT_CONTROL_FLOW_ELEMENTWISE_LOOPS_H_
#define WEIR_CORE_CLIENT_CONTROL_FLOW_ELEMENTWISE_LOOPS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "core/client/control_flow/control_flow.h"

namespace weir {

struct MapOptions {
  std::vector<DType> dtype = {};  // of the results of fn; empty = those of elems
  int64_t parallel_iterations = 10;
  bool back_prop = true;
  bool swap_memory = false;
  bool infer_shape = true;  // false: results of fn may be of different shapes
  std::string_view name = "map";
};
using MapFunction = std::function<Output(const Output& element)>;
using MapListFunction = std::function<List<Output>(const List<Output>& elements)>;

/// fn of each slice of `elems` along the first axis, stacked: [n, fn's shape…]. Source: TensorFlow's map_fn, whose
/// nodes these are: `map/while/…`, `map/TensorArrayStack/TensorArrayGatherV3`.
Output MapFn(const MapFunction& fn, const Operand& elems, const MapOptions& options = {},
             Where where = Where::current());
/// The same for slices of several tensors at a time, all of one first extent.
List<Output> MapFn(const MapListFunction& fn, const std::vector<Operand>& elems, const MapOptions& options = {},
                   Where where = Where::current());

struct FoldOptions {
  std::optional<Operand> initializer = {};  // empty = the first slice
  int64_t parallel_iterations = 10;
  bool back_prop = true;
  bool swap_memory = false;
  bool infer_shape = true;  // of Scan: all results are of one shape
  bool reverse = false;     // of Scan: from the last slice to the first
  std::string_view name = {};
};
/// What was made of the slices before and the next one.
using FoldFunction = std::function<Output(const Output& accumulated, const Output& element)>;

/// fn(… fn(fn(initializer, elems[0]), elems[1]) …, elems[n - 1]).
Output FoldL(const FoldFunction& fn, const Operand& elems, const FoldOptions& options = {},
             Where where = Where::current());
/// The same from the last slice to the first.
Output FoldR(const FoldFunction& fn, const Operand& elems, const FoldOptions& options = {},
             Where where = Where::current());
/// All values that FoldL goes through, one for each slice and where that slice is: [n, fn's shape…].
Output Scan(const FoldFunction& fn, const Operand& elems, const FoldOptions& options = {},
            Where where = Where::current());

/// What a loop over numbers makes of its variables.
using RangeBodyFn = std::function<LoopVars(const Output& i, const LoopVars& vars)>;
/// `for i in range(start, limit, delta)` as a WhileLoop: the variables after the last number. `start`, `limit` and
/// `delta` are scalars of one integer or real type; a delta of 0 is an InvalidArgument of the run.
LoopVars ForRange(const Operand& start, const Operand& limit, const Operand& delta, const RangeBodyFn& body,
                  const std::vector<Operand>& vars, const WhileOptions& options = {}, Where where = Where::current());
/// From 0 by 1.
LoopVars ForRange(const Operand& limit, const RangeBodyFn& body, const std::vector<Operand>& vars,
                  const WhileOptions& options = {}, Where where = Where::current());

}  // namespace weir

#endif  // WEIR_CORE_CLIENT_CONTROL_FLOW_ELEMENTWISE_LOOPS_H_
