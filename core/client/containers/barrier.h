// Barriers: tuples whose components come one by one under a key.
#ifndef WEIR_CORE_CLIENT_CONTAINERS_BARRIER_H_
#define WEIR_CORE_CLIENT_CONTAINERS_BARRIER_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/client/ops/operand.h"

namespace weir {

struct BarrierOptions {
  std::vector<PartialShape> shapes = {};  // of the components, fully known; steps fail without them
  std::string shared_name = {};           // barriers of one name are one
  std::string_view name = "barrier";
};

/// Tuples that were taken together.
struct BarrierTuples {
  Output indices;       // int64 [n]: in the order in which their keys came first
  Output keys;          // string [n]
  List<Output> values;  // of each component, [n, component…]
};

/// Holds tuples until all their components have come. Nodes are named as TensorFlow's Python names them:
/// `barrier_BarrierInsertMany`. Errors of building are errors of the graph.
class Barrier {
 public:
  explicit Barrier(std::vector<DType> types, const BarrierOptions& options = {}, Where where = Where::current());

  const Output& barrier_ref() const { return handle_; }
  std::string name() const { return handle_.op().name(); }

  /// Gives the tuple of each of `keys` (string vector) its row of `values` as component `component_index`.
  Operation InsertMany(int64_t component_index, const Operand& keys, const Operand& values, std::string_view name = {},
                       Where where = Where::current()) const;
  /// Takes `num_elements` (int32 scalar) whole tuples, once there are as many; with `allow_small_batch`, of a closed
  /// barrier those that are left, if any.
  BarrierTuples TakeMany(const Operand& num_elements, bool allow_small_batch = false, std::string_view name = {},
                         Where where = Where::current()) const;
  /// No new keys are taken; tuples that are not whole can be made so, unless the close cancels.
  Operation Close(bool cancel_pending_enqueues = false, std::string_view name = {},
                  Where where = Where::current()) const;
  Output ReadySize(std::string_view name = {}, Where where = Where::current()) const;
  Output IncompleteSize(std::string_view name = {}, Where where = Where::current()) const;

 private:
  Operation Build(std::string_view op, const std::vector<Operand>& operands, op::AttrList attrs, std::string_view name,
                  const Where& where) const;

  Output handle_;
  std::vector<DType> types_;
  std::vector<PartialShape> shapes_;  // as many as types
};

}  // namespace weir

#endif  // WEIR_CORE_CLIENT_CONTAINERS_BARRIER_H_
