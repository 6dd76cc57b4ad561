#include "core/client/containers/accumulator.h"

#include <vector>

#include "core/base/errors.h"
#include "core/client/graph/scopes.h"
#include "core/client/ops/build_op.h"
#include "core/client/ops/ops.h"

namespace weir {
namespace {

Output AsLong(const Output& value) { return value.dtype() == DType::kInt64 ? value : Cast(value, DType::kInt64); }

}  // namespace

ConditionalAccumulatorBase::ConditionalAccumulatorBase(std::string_view op, DType dtype,
                                                       const AccumulatorOptions& options, const Where& where)
    : dtype_(dtype), shape_(options.shape) {
  Graph& graph = Graph::Default();
  if (options.reduction_type != "MEAN" && options.reduction_type != "SUM") {
    (void)graph.Fail(InvalidArgument("Invalid reduction type {}. ({})", options.reduction_type, Format(where)));
    handle_ = Output::Absent(graph);
    return;
  }
  const bool sparse = op == "SparseConditionalAccumulator";
  const std::string_view usual = sparse ? "sparse_conditional_accumulator" : "conditional_accumulator";
  handle_ = BuildOp(op, {},
                    {{"dtype", dtype},
                     {"shape", options.shape},
                     {"shared_name", options.shared_name},
                     {"reduction_type", options.reduction_type}},
                    options.name.empty() ? usual : options.name, where)
                .output(0);
}

Operation ConditionalAccumulatorBase::Build(std::string_view op, std::vector<Operand> operands, op::AttrList attrs,
                                            std::string_view name, const Where& where) const {
  Graph& graph = GraphOf(handle_);
  if (!handle_.exists()) return Operation::Absent(graph);
  const AsDefault in(graph);
  operands.insert(operands.begin(), Operand(handle_, where));
  return BuildOp(op, operands, std::move(attrs), name, where);
}

Output ConditionalAccumulatorBase::NumAccumulated(std::string_view name, Where where) const {
  const bool resource = handle_.dtype() == DType::kResource;
  const std::string node = name.empty() ? this->name() + "_NumAccumulated" : std::string(name);
  const std::string_view op = resource ? "ResourceAccumulatorNumAccumulated" : "AccumulatorNumAccumulated";
  const Operation made = Build(op, {}, {}, node.substr(node.rfind('/') + 1), where);
  return OutputsOr(made, 1)[0];
}

Operation ConditionalAccumulatorBase::SetGlobalStep(const Operand& new_global_step, std::string_view name,
                                                    Where where) const {
  const bool resource = handle_.dtype() == DType::kResource;
  Graph& graph = GraphOf(handle_);
  if (!handle_.exists()) return Operation::Absent(graph);
  const Output step = AsLong(new_global_step.In(graph, new_global_step.is_literal() ? DType::kInt64 : DType::kInvalid));
  return Build(resource ? "ResourceAccumulatorSetGlobalStep" : "AccumulatorSetGlobalStep", {step}, {}, name, where);
}

ConditionalAccumulator::ConditionalAccumulator(DType dtype, const AccumulatorOptions& options, Where where)
    : ConditionalAccumulatorBase("ResourceConditionalAccumulator", dtype, options, where) {}

Operation ConditionalAccumulator::ApplyGrad(const Operand& grad, const Operand& local_step, std::string_view name,
                                            Where where) const {
  if (!shape_.has_rank() || !grad.exists()) {
    return Build("ResourceAccumulatorApplyGradient", {local_step, grad}, {{"dtype", dtype_}}, name, where);
  }
  if (const Result<PartialShape> merged = grad.shape().Merge(shape_); !merged.ok()) {
    Graph& graph = GraphOf(handle_);
    (void)graph.Fail(InvalidArgument("Shapes {} and {} are not compatible ({})", grad.shape().ToTupleString(),
                                     shape_.ToTupleString(), Format(where)));
    return Operation::Absent(graph);
  }
  return Build("ResourceAccumulatorApplyGradient", {local_step, grad}, {{"dtype", dtype_}}, name, where);
}

Output ConditionalAccumulator::TakeGrad(const Operand& num_required, std::string_view name, Where where) const {
  const Output taken =
      OutputsOr(Build("ResourceAccumulatorTakeGradient", {num_required}, {{"dtype", dtype_}}, name, where), 1)[0];
  if (taken.exists()) taken.SetShape(shape_);
  return taken;
}

SparseConditionalAccumulator::SparseConditionalAccumulator(DType dtype, const AccumulatorOptions& options, Where where)
    : ConditionalAccumulatorBase("SparseConditionalAccumulator", dtype, options, where) {}

Operation SparseConditionalAccumulator::ApplyIndexedSlicesGrad(const Gradient& grad, const Operand& local_step,
                                                               std::string_view name, Where where) const {
  Graph& graph = GraphOf(handle_);
  if (!handle_.exists() || !grad.exists()) return Operation::Absent(graph);
  const AsDefault in(graph);
  const Output indices = AsLong(grad.indices);
  const bool known = grad.dense_shape.exists();
  const Operand shape = known ? Operand(AsLong(grad.dense_shape)) : Operand(Tensor::Vector<int64_t>({}));
  return Build("SparseAccumulatorApplyGradient", {local_step, indices, grad.values, shape},
               {{"dtype", dtype_}, {"has_known_shape", known}}, name, where);
}

Gradient SparseConditionalAccumulator::TakeIndexedSlicesGrad(const Operand& num_required, std::string_view name,
                                                             Where where) const {
  const List<Output> taken =
      OutputsOr(Build("SparseAccumulatorTakeGradient", {num_required}, {{"dtype", dtype_}}, name, where), 3);
  Gradient gradient;
  gradient.indices = taken[0];
  gradient.values = taken[1];
  gradient.dense_shape = taken[2];
  return gradient;
}

}  // namespace weir
