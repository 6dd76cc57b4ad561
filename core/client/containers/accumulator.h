// Accumulators of gradients, which replicas fill and one step empties.
#ifndef WEIR_CORE_CLIENT_CONTAINERS_ACCUMULATOR_H_
#define WEIR_CORE_CLIENT_CONTAINERS_ACCUMULATOR_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "core/client/gradients/gradients.h"
#include "core/client/ops/operand.h"

namespace weir {

struct AccumulatorOptions {
  PartialShape shape = {};              // of the gradients
  std::string shared_name = {};         // accumulators of one name are one
  std::string reduction_type = "MEAN";  // or "SUM"
  std::string_view name = {};           // empty = "conditional_accumulator", "sparse_conditional_accumulator"
};

/// What both accumulators can do: gradients of half, float or double, of which one whose local step is behind the
/// accumulator's step is dropped.
class ConditionalAccumulatorBase {
 public:
  const Output& accumulator_ref() const { return handle_; }
  std::string name() const { return handle_.op().name(); }
  DType dtype() const { return dtype_; }
  /// int32 scalar: gradients since the last that were taken.
  Output NumAccumulated(std::string_view name = {}, Where where = Where::current()) const;
  /// `new_global_step`: int64 scalar.
  Operation SetGlobalStep(const Operand& new_global_step, std::string_view name = {},
                          Where where = Where::current()) const;

 protected:
  ConditionalAccumulatorBase(std::string_view op, DType dtype, const AccumulatorOptions& options, const Where& where);
  /// An op of this accumulator; `name`: of the node, empty = the op's.
  Operation Build(std::string_view op, std::vector<Operand> operands, op::AttrList attrs, std::string_view name,
                  const Where& where) const;

  Output handle_;
  DType dtype_;
  PartialShape shape_;
};

/// Of gradients that are one tensor.
class ConditionalAccumulator : public ConditionalAccumulatorBase {
 public:
  explicit ConditionalAccumulator(DType dtype, const AccumulatorOptions& options = {}, Where where = Where::current());
  Operation ApplyGrad(const Operand& grad, const Operand& local_step = 0, std::string_view name = {},
                      Where where = Where::current()) const;
  /// The mean or sum of all gradients, once they are `num_required` (int32 scalar); counts the step.
  Output TakeGrad(const Operand& num_required, std::string_view name = {}, Where where = Where::current()) const;
};

/// Of gradients that are rows: indices in ascending order.
class SparseConditionalAccumulator : public ConditionalAccumulatorBase {
 public:
  explicit SparseConditionalAccumulator(DType dtype, const AccumulatorOptions& options = {},
                                        Where where = Where::current());
  /// Indices of int32 are cast to int64, as is the dense shape, which may not exist.
  Operation ApplyIndexedSlicesGrad(const Gradient& grad, const Operand& local_step = 0, std::string_view name = {},
                                   Where where = Where::current()) const;
  /// Values, indices and shape.
  Gradient TakeIndexedSlicesGrad(const Operand& num_required, std::string_view name = {},
                                 Where where = Where::current()) const;
};

}  // namespace weir

#endif  // WEIR_CORE_CLIENT_CONTAINERS_ACCUMULATOR_H_
