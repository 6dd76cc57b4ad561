#include "core/client/rnn/rnn.h"

#include "core/base/errors.h"
#include "core/client/containers/tensor_array.h"
#include "core/client/control_flow/control_flow.h"
#include "core/client/graph/attribute_scopes.h"
#include "core/client/graph/scopes.h"
#include "core/client/ops/array_extra_ops.h"
#include "core/client/ops/array_ops.h"
#include "core/client/ops/build_op.h"

namespace weir {
namespace {

/// With the first two axes exchanged.
Output Turned(const Output& x, const Where& where) {
  const PartialShape shape = x.shape();
  std::vector<int> axes;
  for (int axis = 0; axis < shape.rank(); ++axis) axes.push_back(axis < 2 ? 1 - axis : axis);
  return Transpose(x, axes, "transpose", where);
}

/// An extent: a number where it is known.
Operand ExtentOf(const Output& x, int axis) {
  const int64_t extent = x.shape().dim(axis);
  if (extent >= 0) return Operand(static_cast<int32_t>(extent));
  return ShapeOf(x)[axis];
}

Status CheckInitial(const RnnCell& cell, const List<Output>& initial, DType dtype) {
  if (initial.empty() && dtype == DType::kInvalid) {
    return InvalidArgument("If there is no initial_state, you must give a dtype.");
  }
  if (!initial.empty() && initial.size() != cell.state_sizes().size()) {
    return InvalidArgument("initial_state has {} tensors, wanted {}", initial.size(), cell.state_sizes().size());
  }
  return Status();
}

/// The rows of examples that are at an end keep `before`.
Output Chosen(const Output& ended, const Output& before, const Output& now) {
  return ended.exists() ? Select(ended, before, now) : now;
}

/// A loop over the steps of `steps` [time, batch, features].
class Loop {
 public:
  Loop(RnnCell& cell, const Output& steps, const Output& lengths, const RnnOptions& options, Where where)
      : cell_(cell), steps_(steps), lengths_(lengths), options_(options), where_(where) {}

  RnnResult Run(const List<Output>& initial) {
    const Operand batch = ExtentOf(steps_, 1);
    const Operand time = ExtentOf(steps_, 0);
    if (lengths_.exists()) {
      const Output extents = Stack({batch, Operand(static_cast<int32_t>(cell_.output_size()))}, 0, "stack", where_);
      zeros_ = Fill(extents, Operand(0).In(*steps_.graph(), BaseType(steps_.dtype())), "zeros", where_);
    }
    TensorArrayOptions elements;
    elements.element_shape = PartialShape::Of({steps_.shape().dim(1), cell_.output_size()});
    elements.tensor_array_name = "dynamic_rnn/output_0";
    const TensorArray outputs(BaseType(steps_.dtype()), time, elements, where_);
    TensorArrayOptions given;
    given.tensor_array_name = "dynamic_rnn/input_0";
    const TensorArray inputs = TensorArray(BaseType(steps_.dtype()), time, given, where_).Unstack(steps_, {}, where_);
    const Operand last = Bound(time);
    std::vector<Operand> vars = {Constant(0, DType::kInvalid, "time", where_), outputs.flow()};
    vars.insert(vars.end(), initial.begin(), initial.end());
    const LoopVars after = WhileLoop([&](const LoopVars& v) { return Less(v[0], last); },
                                     [&](const LoopVars& v) { return Body(v, inputs, outputs); }, vars,
                                     {.parallel_iterations = options_.parallel_iterations,
                                      .swap_memory = options_.swap_memory,
                                      .maximum_iterations = time},
                                     where_);
    RnnResult result;
    result.outputs = outputs.WithFlow(after[1]).Stack({}, where_);
    if (result.outputs.exists()) {
      result.outputs.SetShape(PartialShape::Of({steps_.shape().dim(0), steps_.shape().dim(1), cell_.output_size()}));
    }
    for (size_t i = 0; i < initial.size(); ++i) result.state.push_back(after[2 + i]);
    return result;
  }

 private:
  /// Steps behind the longest example are left out; one runs in any case, which gives the outputs their shape.
  Operand Bound(const Operand& time) const {
    if (!lengths_.exists()) return time;
    const Output longest = ReduceMax(lengths_);
    return Minimum(time, Cast(Maximum(1, longest), DType::kInt32));
  }

  LoopVars Body(const LoopVars& v, const TensorArray& inputs, const TensorArray& outputs) {
    const Output x = inputs.Read(v[0], {}, where_);
    if (x.exists()) x.SetShape(PartialShape::Of({steps_.shape().dim(1), steps_.shape().dim(2)}));
    Output ended;
    if (lengths_.exists()) ended = GreaterEqual(Cast(v[0], BaseType(lengths_.dtype())), lengths_);
    List<Output> state;
    for (size_t i = 2; i < v.size(); ++i) state.push_back(v[i]);
    const CellStep step = cell_(x, state, where_);
    const Output output = Chosen(ended, zeros_, step.output);
    LoopVars next;
    List<Output> kept;
    for (size_t i = 0; i < state.size(); ++i) kept.push_back(Chosen(ended, state[i], step.state[i]));
    const Output flow = outputs.WithFlow(v[1]).Write(v[0], output, {}, where_).flow();
    next.push_back(v[0] + 1);
    next.push_back(flow);
    for (const Output& part : kept) next.push_back(part);
    return next;
  }

  RnnCell& cell_;
  const Output steps_, lengths_;
  const RnnOptions& options_;
  Where where_;
  Output zeros_;
};

/// Literals without a type of their own become int32.
Output Lengths(const Operand& lengths, Graph& graph) {
  const bool flexible = lengths.is_literal() && lengths.literal().flexible;
  return lengths.In(graph, flexible ? DType::kInt32 : DType::kInvalid);
}

/// The lengths as a value of the graph; does not exist without any.
Output LengthsIn(Graph& graph, const std::optional<Operand>& lengths) {
  if (!lengths) return Output();
  return Identity(Lengths(*lengths, graph), "sequence_length");
}

List<Output> InitialState(RnnCell& cell, const Operand& batch, const RnnOptions& options, const Where& where) {
  return options.initial_state.empty() ? cell.ZeroState(batch, options.dtype, where) : options.initial_state;
}

RnnResult NoResult(const RnnCell& cell, Graph& graph, const Status& error, const Where& where) {
  (void)graph.Fail(error.Append(" (" + Format(where) + ")"));
  return {Output::Absent(graph), AbsentValues(graph, static_cast<int64_t>(cell.state_sizes().size()))};
}

Status CheckSequence(const Output& inputs) {
  const PartialShape shape = inputs.shape();
  if (shape.rank() == 3 && shape.dim(2) >= 0) return Status();
  return InvalidArgument("Input size (depth of inputs) must be accessible via shape inference, but saw shape {}.",
                         shape.ToTupleString());
}

}  // namespace

RnnResult DynamicRnn(RnnCell& cell, const Operand& inputs, const RnnOptions& options, Where where) {
  Graph& graph = GraphOf(inputs);
  const AsDefault in(graph);
  const Origin origin(where, graph);
  const VariableScope scope(options.scope.empty() ? std::string_view("rnn") : options.scope, {}, graph);
  const Output x = inputs.In(graph);
  if (!x.exists()) {
    return {x, AbsentValues(graph, static_cast<int64_t>(cell.state_sizes().size()))};
  }
  if (const Status valid = CheckSequence(x); !valid.ok()) return NoResult(cell, graph, valid, where);
  if (const Status valid = CheckInitial(cell, options.initial_state, options.dtype); !valid.ok()) {
    return NoResult(cell, graph, valid, where);
  }
  const Output steps = options.time_major ? x : Turned(x, where);
  const Output lengths = LengthsIn(graph, options.sequence_length);
  const List<Output> initial = InitialState(cell, ExtentOf(steps, 1), options, where);
  cell.Build(steps.shape().dim(2), BaseType(steps.dtype()), graph, where);
  RnnResult result = Loop(cell, steps, lengths, options, where).Run(initial);
  if (!options.time_major) result.outputs = Turned(result.outputs, where);
  return result;
}

StaticRnnResult StaticRnn(RnnCell& cell, const std::vector<Operand>& inputs, const RnnOptions& options, Where where) {
  Graph& graph = GraphOf(inputs);
  const AsDefault in(graph);
  const Origin origin(where, graph);
  const auto nothing = [&](const Status& error) -> StaticRnnResult {
    return {AbsentValues(graph, static_cast<int64_t>(inputs.size())), NoResult(cell, graph, error, where).state};
  };
  if (inputs.empty()) return nothing(InvalidArgument("inputs must not be empty"));
  if (const Status valid = CheckInitial(cell, options.initial_state, options.dtype); !valid.ok()) return nothing(valid);
  const VariableScope scope(options.scope.empty() ? std::string_view("rnn") : options.scope, {}, graph);
  const Output first = inputs[0].In(graph);
  if (first.exists() && first.shape().rank() != 2) {
    return nothing(InvalidArgument("inputs must be of shape [batch, features], got {}", first.shape().ToTupleString()));
  }
  const Operand batch = first.exists() ? ExtentOf(first, 0) : Operand(0);
  StaticRnnResult result;
  result.state = InitialState(cell, batch, options, where);
  const Output lengths = LengthsIn(graph, options.sequence_length);
  Output zeros;
  if (lengths.exists()) {
    const Output extents = Stack({batch, Operand(static_cast<int32_t>(cell.output_size()))}, 0, "stack", where);
    zeros = Fill(extents, Operand(0).In(graph, BaseType(first.dtype())), "zeros", where);
  }
  for (size_t time = 0; time < inputs.size(); ++time) {
    Output ended;
    if (lengths.exists()) ended = LessEqual(lengths, static_cast<int64_t>(time));
    const CellStep step = cell(inputs[time], result.state, where);
    result.outputs.push_back(Chosen(ended, zeros, step.output));
    for (size_t i = 0; i < result.state.size(); ++i) {
      result.state[i] = Chosen(ended, result.state[i], step.state[i]);
    }
  }
  return result;
}

BidirectionalResult BidirectionalDynamicRnn(RnnCell& cell_fw, RnnCell& cell_bw, const Operand& inputs,
                                            const BidirectionalOptions& options, Where where) {
  Graph& graph = GraphOf(inputs);
  const AsDefault in(graph);
  const Origin origin(where, graph);
  const VariableScope scope(options.scope.empty() ? std::string_view("bidirectional_rnn") : options.scope, {}, graph);
  const Output x = inputs.In(graph);
  const int time_axis = options.time_major ? 0 : 1, batch_axis = 1 - time_axis;
  const auto reversed = [&](const Output& value) {
    if (!options.sequence_length) return Reverse(value, {time_axis}, "ReverseV2", where);
    return BuildOp("ReverseSequence", {value, Lengths(*options.sequence_length, graph)},
                   {{"seq_dim", static_cast<int64_t>(time_axis)}, {"batch_dim", static_cast<int64_t>(batch_axis)}}, {},
                   where)
        .output(0);
  };
  const auto options_of = [&](const List<Output>& initial, std::string_view name) {
    RnnOptions own;
    own.sequence_length = options.sequence_length;
    own.initial_state = initial;
    own.dtype = options.dtype;
    own.parallel_iterations = options.parallel_iterations;
    own.swap_memory = options.swap_memory;
    own.time_major = options.time_major;
    own.scope = name;
    return own;
  };
  BidirectionalResult result;
  result.forward = DynamicRnn(cell_fw, x, options_of(options.initial_state_fw, "fw"), where);
  result.backward = DynamicRnn(cell_bw, reversed(x), options_of(options.initial_state_bw, "bw"), where);
  result.backward.outputs = reversed(result.backward.outputs);
  return result;
}

}  // namespace weir
