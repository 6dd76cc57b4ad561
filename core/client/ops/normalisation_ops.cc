// Dropout and normalisation.
#include <string>

#include "core/base/errors.h"
#include "core/client/graph/attribute_scopes.h"
#include "core/client/graph/graph_internal.h"
#include "core/client/graph/scopes.h"
#include "core/client/ops/array_ops.h"
#include "core/client/ops/build_op.h"
#include "core/client/ops/nn_ops.h"
#include "core/tensor/number.h"

namespace weir {
namespace {

/// Evenly from [0, 1).
Output EvenNoise(const Operand& extents, DType dtype, int64_t seed, Graph& graph) {
  const NameScope scope("random_uniform", graph);
  const Output shape = extents.In(graph, DType::kInvalid, "shape");
  const SeedPair seeds = OpSeeds(graph, seed);
  return BuildOp("RandomUniform", {shape}, {{"dtype", dtype}, {"seed", seeds.seed}, {"seed2", seeds.seed2}}).output(0);
}

/// The number that a literal is; `otherwise` for a text or a list.
double NumberOr(const Tensor& literal, double otherwise) {
  if (!literal.valid() || literal.elements() != 1 || literal.dtype() == DType::kString) return otherwise;
  return ElementAsDouble(literal, 0);
}

/// InvalidArgument unless `x` can be scaled and a literal `keep_prob` is a probability.
Status CheckDropout(const Output& x, const Operand& keep_prob) {
  if (!IsFloating(BaseType(x.dtype()))) {
    return InvalidArgument(
        "`x.dtype` must be a floating point tensor as `x` will be scaled. Received: x_dtype=<dtype: '{}'>",
        NumpyName(BaseType(x.dtype())));
  }
  if (!keep_prob.is_literal()) return Status();
  const double keep = NumberOr(keep_prob.literal().tensor, -1);
  if (keep > 0 && keep <= 1) return Status();
  return InvalidArgument("keep_prob must be a scalar tensor or a float in the range (0, 1], got {}", keep);
}

}  // namespace

Output Dropout(const Operand& x, const Operand& keep_prob, const DropoutOptions& options, Where where) {
  Graph& graph = GraphOf({x, keep_prob});
  const AsDefault in(graph);
  const Output value = x.In(graph);
  if (IsSpoiled(value)) return value;
  if (const Status valid = CheckDropout(value, keep_prob); !valid.ok()) {
    (void)graph.Fail(valid.Append(" (" + Format(where) + ")"));
    return Output::Absent(graph);
  }
  const DType dtype = BaseType(value.dtype());
  const bool literal = keep_prob.is_literal();
  const double keep = literal ? NumberOr(keep_prob.literal().tensor, 1) : 0;
  if (literal && keep == 1) return value;
  const Origin origin(where, graph);
  const Operand rate = literal ? Operand(1 - keep) : Operand(1.0 - keep_prob);
  const NameScope scope(options.name.empty() ? "dropout" : options.name, graph);
  Output scaled;
  if (literal) {
    scaled = Multiply(value, Operand(1 / keep).In(graph, dtype));
  } else {
    scaled = BuildOp("RealDiv", {value, Subtract(Operand(1.0).In(graph, dtype), rate)}).output(0);
  }
  const Operand extents = options.noise_shape ? *options.noise_shape : Operand(ShapeOf(value));
  const Output kept = GreaterEqual(EvenNoise(extents, dtype, options.seed, graph), rate);
  return SelectV2(kept, scaled, Operand(0.0).In(graph, dtype));
}

Output LocalResponseNormalization(const Operand& input, const LrnOptions& options, Where where) {
  return BuildOp("LRN", {input},
                 {{"depth_radius", options.depth_radius},
                  {"bias", static_cast<float>(options.bias)},
                  {"alpha", static_cast<float>(options.alpha)},
                  {"beta", static_cast<float>(options.beta)}},
                 options.name, where)
      .output(0);
}

MeanAndVariance Moments(const Operand& x, const std::vector<int>& axes, bool keepdims, std::string_view name,
                        Where where) {
  Graph& graph = GraphOf(x);
  const AsDefault in(graph);
  const Origin origin(where, graph);
  const NameScope scope(name.empty() ? "moments" : name, graph);
  const Output value = x.In(graph);
  const DType dtype = BaseType(value.dtype());
  const bool narrow = dtype == DType::kHalf || dtype == DType::kBfloat16;  // sums need more bits
  const Output wide = narrow ? Cast(value, DType::kFloat) : value;
  Output mean = ReduceMean(wide, axes, {.keepdims = true, .name = "mean"});
  const Output deviation = SquaredDifference(wide, StopGradient(mean));
  Output variance = ReduceMean(deviation, axes, {.keepdims = true, .name = "variance"});
  if (!keepdims) {
    const std::vector<int64_t> squeezed(axes.begin(), axes.end());
    mean = Squeeze(mean, squeezed);
    variance = Squeeze(variance, squeezed);
  }
  return narrow ? MeanAndVariance{Cast(mean, dtype), Cast(variance, dtype)} : MeanAndVariance{mean, variance};
}

Output BatchNormalization(const Operand& x, const Operand& mean, const Operand& variance, const Operand& offset,
                          const Operand& scale, const Operand& variance_epsilon, std::string_view name, Where where) {
  Graph& graph = GraphOf({x, mean, variance, offset, scale, variance_epsilon});
  const AsDefault in(graph);
  const Origin origin(where, graph);
  const NameScope scope(name.empty() ? "batchnorm" : name, graph);
  Output factor = Rsqrt(variance + variance_epsilon);
  if (scale.exists()) factor = Multiply(factor, scale, "mul");
  const Output scaled = Multiply(x, factor, "mul");
  Output shift;
  if (offset.exists()) {
    shift = Subtract(offset, Multiply(mean, factor, "mul"), "sub");
  } else {
    shift = Multiply(Negative(mean), factor, "mul");
  }
  return Add(scaled, shift, "add");
}

FusedBatchNormValues FusedBatchNorm(const Operand& x, const Operand& scale, const Operand& offset,
                                    const FusedBatchNormOptions& options, Where where) {
  Graph& graph = GraphOf({x, scale, offset});
  const AsDefault in(graph);
  const auto statistic = [&](const Operand& given) -> Operand {
    return given.exists() ? given : Operand(Constant(std::vector<float>(), DType::kFloat, "Const", where));
  };
  const Operand mean = statistic(options.mean), variance = statistic(options.variance);
  const Operation norm = BuildOp("FusedBatchNormV3", {x, scale, offset, mean, variance},
                                 {{"epsilon", static_cast<float>(options.epsilon)},
                                  {"data_format", std::string(options.data_format)},
                                  {"is_training", options.is_training}},
                                 options.name.empty() ? "FusedBatchNorm" : options.name, where);
  const List<Output> outputs = OutputsOr(norm, 3);
  return {outputs[0], outputs[1], outputs[2]};
}

Output L2Normalize(const Operand& x, const Axes& axes, const Operand& epsilon, std::string_view name, Where where) {
  Graph& graph = GraphOf(x);
  const AsDefault in(graph);
  const Origin origin(where, graph);
  const NameScope scope(name.empty() ? "l2_normalize" : name, graph);
  const Output value = x.In(graph);
  const Output sum = ReduceSum(Square(value), axes, {.keepdims = true});
  return Multiply(value, Rsqrt(Maximum(sum, epsilon)), scope.path());
}

}  // namespace weir
