#include "core/client/training/running_mean.h"

#include "core/base/errors.h"
#include "core/client/graph/scopes.h"
#include "core/client/ops/array_ops.h"
#include "core/client/ops/build_op.h"
#include "core/client/ops/ops.h"
#include "core/client/training/metric_variable_internal.h"
#include "core/client/variables/variable_scope.h"

namespace weir::metrics {

RunningMean::RunningMean(std::string_view name, Where where) {
  const VariableScope variables(std::nullopt, name.empty() ? "mean" : name);
  total_ = MetricVariable("total", where);
  count_ = MetricVariable("count", where);
}

Operation RunningMean::UpdateState(const Operand& values, const std::optional<Operand>& sample_weight,
                                   Where where) const {
  Graph& graph = GraphOf(Operand(total_));
  const AsDefault in(graph);
  const NameScope scope("update_state", graph);
  Output present = Cast(values.In(graph, values.is_literal() ? DType::kFloat : DType::kInvalid), DType::kFloat);
  Output number;
  if (sample_weight) {
    const Output weight = Cast(sample_weight->In(graph, sample_weight->is_literal() ? DType::kFloat : DType::kInvalid),
                               DType::kFloat);
    if (!weight.shape().has_rank() || !present.shape().has_rank()) {
      (void)graph.Fail(InvalidArgument("values and weights of a mean must have known ranks, got {} and {} ({})",
                                       present.shape().ToTupleString(), weight.shape().ToTupleString(), Format(where)));
      return Operation::Absent(graph);
    }
    while (present.shape().rank() > weight.shape().rank()) present = ReduceMean(present, {-1});
    const Output each = weight * OnesLike(present);
    present = present * each;
    number = ReduceSum(each);
  } else {
    number = Cast(SizeOf(present), DType::kFloat);
  }
  return Group({total_.AssignAdd(ReduceSum(present), where), count_.AssignAdd(number, where)});
}

Output RunningMean::Result(Where where) const {
  return BuildOp("DivNoNan", {total_, count_}, {}, "result", where).output(0);
}

Operation RunningMean::ResetStates(Where where) const {
  return Group({total_.Assign(0.0, where), count_.Assign(0.0, where)});
}

}  // namespace weir::metrics
