#include "core/client/training/learning_rate_decay.h"

#include <numbers>

#include "core/base/errors.h"
#include "core/client/control_flow/control_flow.h"
#include "core/client/graph/attribute_scopes.h"
#include "core/client/graph/scopes.h"
#include "core/client/ops/array_ops.h"
#include "core/client/ops/build_op.h"

namespace weir {
namespace {

/// A learning rate inside its name scope, and numbers of its type. Statements follow the order of TensorFlow's nodes.
class Decay {
 public:
  Decay(const std::vector<Operand>& operands, std::string_view name, const Where& where)
      : graph_(GraphOf(operands)), in_(graph_), origin_(where, graph_), scope_(name, graph_), where_(where) {
    rate_ = operands[0].In(graph_, DType::kInvalid, "initial_learning_rate");
  }

  const Output& rate() const { return rate_; }
  std::string path() const { return scope_.path(); }

  /// `x` in the rate's type. A literal becomes `Cast/x` of its own type first.
  Output Fit(const Operand& x) const {
    const DType dtype = BaseType(rate_.dtype());
    if (!x.is_literal()) return Cast(x, dtype, "Cast", where_);
    const NameScope scope("Cast", graph_);
    const Output value = x.In(graph_, DType::kInvalid, "x");
    if (BaseType(value.dtype()) == dtype) return value;
    return BuildOp("Cast", {value}, {{"DstT", dtype}}, scope.path(), where_).output(0);
  }

  Output CosineOf(const Output& fraction) const {
    const Output pi = Operand(std::numbers::pi).In(graph_, BaseType(rate_.dtype()), "Const");
    return Cos_(pi * fraction);
  }

 private:
  static constexpr UnaryOp Cos_{"Cos"};

  Graph& graph_;
  const AsDefault in_;
  const Origin origin_;
  const NameScope scope_;
  Where where_;
  Output rate_;
};

std::string_view NameOr(std::string_view name, std::string_view fallback) { return name.empty() ? fallback : name; }

Output Fall(const Output& fraction, bool staircase) { return staircase ? Floor(fraction) : fraction; }

/// How many periods of growing length have begun, and the fraction of the present one.
List<Output> Geometric(const Output& fraction, const Output& t_mul) {
  const Output shrink = 1.0 - t_mul;
  const Output passed = fraction * shrink;
  const Output inner = 1.0 - passed;
  const Output numerator = Log(inner);
  const Output begun = Floor(numerator / Log(t_mul));
  const Output power = Pow(t_mul, begun, "pow");
  const Output above = 1.0 - power;
  const Output sum = above / (1.0 - t_mul);
  const Output rest = fraction - sum;
  return {begun, rest / Pow(t_mul, begun, "pow")};
}

Status CheckPieces(const Output& x, const std::vector<Output>& boundaries, const std::vector<Output>& values) {
  if (boundaries.size() + 1 != values.size()) {
    return InvalidArgument("The length of boundaries should be 1 less than the length of values");
  }
  for (const Output& boundary : boundaries) {
    const DType from = BaseType(boundary.dtype()), to = BaseType(x.dtype());
    if (from == to || (from == DType::kInt32 && to == DType::kInt64)) continue;
    return InvalidArgument("Boundaries (<dtype: '{}'>) must have the same dtype as x (<dtype: '{}'>).", NumpyName(from),
                           NumpyName(to));
  }
  for (const Output& value : values) {
    if (BaseType(value.dtype()) == BaseType(values[0].dtype())) continue;
    return InvalidArgument("Values must have elements all with the same dtype (<dtype: '{}'> vs <dtype: '{}'>).",
                           NumpyName(values[0].dtype()), NumpyName(value.dtype()));
  }
  return Status();
}

}  // namespace

Output ExponentialDecay(const Operand& learning_rate, const Operand& global_step, const Operand& decay_steps,
                        const Operand& decay_rate, const DecayOptions& options, Where where) {
  const Decay decay({learning_rate, global_step, decay_steps, decay_rate}, NameOr(options.name, "ExponentialDecay"),
                    where);
  const Output steps = decay.Fit(decay_steps);
  const Output factor = decay.Fit(decay_rate);
  const Output fraction = decay.Fit(global_step) / steps;
  return Multiply(decay.rate(), Pow(factor, Fall(fraction, options.staircase)), decay.path(), where);
}

Output NaturalExpDecay(const Operand& learning_rate, const Operand& global_step, const Operand& decay_steps,
                       const Operand& decay_rate, const DecayOptions& options, Where where) {
  const AsDefault in(GraphOf({learning_rate, global_step, decay_steps, decay_rate}));
  return ExponentialDecay(learning_rate, global_step, decay_steps, Exp(Negative(decay_rate, {}, where), {}, where),
                          options, where);
}

Output InverseTimeDecay(const Operand& learning_rate, const Operand& global_step, const Operand& decay_steps,
                        const Operand& decay_rate, const DecayOptions& options, Where where) {
  const Decay decay({learning_rate, global_step, decay_steps, decay_rate}, NameOr(options.name, "InverseTimeDecay"),
                    where);
  const Output steps = decay.Fit(decay_steps);
  const Output factor = decay.Fit(decay_rate);
  const Output fraction = decay.Fit(global_step) / steps;
  const Output passed = Fall(fraction, options.staircase);
  const Output one = decay.Fit(Constant(1));
  return Divide(decay.rate(), Add(one, Multiply(factor, passed)), decay.path(), where);
}

Output PiecewiseConstant(const Operand& x, const std::vector<Operand>& boundaries, const std::vector<Operand>& values,
                         std::string_view name, Where where) {
  std::vector<Operand> all = {x};
  all.insert(all.end(), boundaries.begin(), boundaries.end());
  all.insert(all.end(), values.begin(), values.end());
  Graph& graph = GraphOf(all);
  const AsDefault in(graph);
  const Origin origin(where, graph);
  const Output step = x.In(graph);
  std::vector<Output> ends, rates;
  for (const Operand& boundary : boundaries) ends.push_back(boundary.In(graph));
  for (const Operand& value : values) rates.push_back(value.In(graph));
  if (const Status valid = CheckPieces(step, ends, rates); !valid.ok()) {
    (void)graph.Fail(valid.Append(" (" + Format(where) + ")"));
    return Output::Absent(graph);
  }
  if (ends.empty()) return Identity(rates[0], NameOr(name, "PiecewiseConstant"), where);
  for (Output& end : ends) end = Cast(end, BaseType(step.dtype()), "Cast", where);
  const NameScope scope(NameOr(name, "PiecewiseConstant"), graph);
  const auto rate = [&](size_t i) { return [value = rates[i]] { return value; }; };
  std::vector<std::pair<Output, BranchFn>> pieces;
  pieces.emplace_back(LessEqual(step, ends.front()), rate(0));
  pieces.emplace_back(Greater(step, ends.back()), rate(ends.size()));
  for (size_t i = 0; i + 1 < ends.size(); ++i) {
    const Output above = Greater(step, ends[i]);
    pieces.emplace_back(above & LessEqual(step, ends[i + 1]), rate(i + 1));
  }
  return Case(pieces, rate(0), {.exclusive = true}, where);
}

Output PolynomialDecay(const Operand& learning_rate, const Operand& global_step, const Operand& decay_steps,
                       const PolynomialDecayOptions& options, Where where) {
  const Decay decay({learning_rate, global_step, decay_steps, options.end_learning_rate, options.power},
                    NameOr(options.name, "PolynomialDecay"), where);
  const Output end = decay.Fit(options.end_learning_rate);
  const Output power = decay.Fit(options.power);
  Output step = decay.Fit(global_step);
  Output steps = decay.Fit(decay_steps);
  if (options.cycle) {
    const Output first = Equal(step, 0);
    const Output periods = Ceil(step / (decay_steps.is_literal() ? decay_steps : Operand(steps)));
    steps = Multiply(steps, SelectV2(first, 1.0, periods));
  } else {
    step = Minimum(step, steps);
  }
  const Output fraction = step / steps;
  const Output range = decay.rate() - end;
  const Output left = 1.0 - fraction;
  return Add(Multiply(range, Pow(left, power)), end, decay.path(), where);
}

Output CosineDecay(const Operand& learning_rate, const Operand& global_step, const Operand& decay_steps, double alpha,
                   std::string_view name, Where where) {
  const Decay decay({learning_rate, global_step, decay_steps}, NameOr(name, "CosineDecay"), where);
  const Output steps = decay.Fit(decay_steps);
  const Output step = Minimum(decay.Fit(global_step), steps);
  const Output cosine = decay.CosineOf(step / steps);
  const Output raised = 1.0 + cosine;
  const Output half = 0.5 * raised;
  const Output above = (1.0 - alpha) * half;
  return Multiply(decay.rate(), above + alpha, {}, where);
}

Output CosineDecayRestarts(const Operand& learning_rate, const Operand& global_step, const Operand& first_decay_steps,
                           const CosineRestartOptions& options, Where where) {
  const Decay decay({learning_rate, global_step, first_decay_steps, options.alpha, options.t_mul, options.m_mul},
                    NameOr(options.name, "SGDRDecay"), where);
  const Output first = decay.Fit(first_decay_steps);
  const Output alpha = decay.Fit(options.alpha);
  const Output t_mul = decay.Fit(options.t_mul);
  const Output m_mul = decay.Fit(options.m_mul);
  const Output fraction = decay.Fit(global_step) / first;
  const BranchListFn equal_periods = [&]() -> List<Output> {
    const Output begun = Floor(fraction);
    return {begun, fraction - begun};
  };
  const BranchListFn growing_periods = [&]() -> List<Output> { return Geometric(fraction, t_mul); };
  const List<Output> period = Cond(Equal(t_mul, 1.0), equal_periods, growing_periods, "cond", where);
  const Output scale = 0.5 * Pow(m_mul, period[0], "pow");
  const Output cosine = decay.CosineOf(period[1]);
  const Output raised = 1.0 + cosine;
  const Output half = scale * raised;
  const Output above = (1.0 - alpha) * half;
  return Multiply(decay.rate(), above + alpha, decay.path(), where);
}

Output LinearCosineDecay(const Operand& learning_rate, const Operand& global_step, const Operand& decay_steps,
                         const LinearCosineOptions& options, Where where) {
  const Decay decay({learning_rate, global_step, decay_steps, options.num_periods, options.alpha, options.beta},
                    NameOr(options.name, "LinearCosineDecay"), where);
  const Output steps = decay.Fit(decay_steps);
  const Output periods = decay.Fit(options.num_periods);
  const Output alpha = decay.Fit(options.alpha);
  const Output beta = decay.Fit(options.beta);
  const Output step = Minimum(decay.Fit(global_step), steps);
  const Output left = steps - step;
  const Output linear = left / steps;
  const Output passed = step / steps;
  const Output twice = 2.0 * periods;
  const Output cosine = decay.CosineOf(twice * passed);
  const Output raised = 1.0 + cosine;
  const Output half = 0.5 * raised;
  const Output height = alpha + linear;
  return Multiply(decay.rate(), height * half + beta, decay.path(), where);
}

}  // namespace weir
