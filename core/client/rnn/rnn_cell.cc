#include "core/client/rnn/rnn_cell.h"

#include "core/base/errors.h"
#include "core/client/graph/attribute_scopes.h"
#include "core/client/graph/scopes.h"
#include "core/client/ops/array_ops.h"
#include "core/client/ops/build_op.h"
#include "core/client/ops/nn_ops.h"

namespace weir {
namespace {

/// [inputs, state] · kernel + bias.
Output Affine(const Output& inputs, const Output& state, const Variable& kernel, const Variable& bias) {
  const Output both = Concat({inputs, state}, 1, "concat");
  return BiasAdd(MatMul(both, kernel), bias);
}

Output ClipByRange(const Output& x, double bound) {
  const NameScope scope("clip_by_value", *x.graph());
  return Maximum(Minimum(x, bound), -bound, scope.path());
}

/// `x` itself where everything is kept.
Output Kept(const Output& x, const Operand& keep_prob, int64_t seed, const Where& where) {
  DropoutOptions options;
  options.seed = seed;
  return Dropout(x, keep_prob, options, where);
}

}  // namespace

Variable RnnCell::Kernel(std::string_view name, int64_t features, int64_t units, DType dtype, Where where) {
  return GetVariable(name, {.shape = Shape::Of({features, units}), .dtype = dtype}, where);
}

Variable RnnCell::Bias(std::string_view name, int64_t units, double value, DType dtype, Where where) {
  const Initializer initial = value == 0 ? ZerosInitializer() : ConstantInitializer(value, where);
  return GetVariable(name, {.shape = Shape::Of({units}), .dtype = dtype, .initializer = initial}, where);
}

void RnnCell::Build(int64_t features, DType dtype, Graph& graph, Where where) {
  if (built_) return;
  built_ = true;
  const AsDefault in(graph);
  if (name_.empty()) return MakeVariables(features, dtype, where);
  VariableScopeOptions options;
  options.name_scope = NameScopeToo::kNo;
  const VariableScope scope(std::nullopt, name_, options, graph);
  MakeVariables(features, dtype, where);
}

CellStep RnnCell::operator()(const Operand& inputs, const List<Output>& state, Where where) {
  Graph& graph = GraphOf(inputs);
  const AsDefault in(graph);
  const Origin origin(where, graph);
  const Output x = inputs.In(graph);
  const PartialShape shape = x.shape();
  const int64_t features = shape.rank() == 2 ? shape.dim(1) : -1;
  const size_t parts = state_sizes().size();
  CellStep nothing{Output::Absent(graph), AbsentValues(graph, static_cast<int64_t>(parts))};
  if (!x.exists()) return nothing;
  if (features < 0 || state.size() != parts) {
    const Status error =
        features < 0 ? InvalidArgument("Expected inputs.shape[-1] to be known, saw shape: {}", shape.ToTupleString())
                     : InvalidArgument("{} has a state of {} tensors, got {}", class_name_, parts, state.size());
    (void)graph.Fail(error.Append(" (" + Format(where) + ")"));
    return nothing;
  }
  Build(features, BaseType(x.dtype()), graph, where);
  if (name_.empty()) return Step(x, state, where);
  const NameScope scope(scope_.empty() ? name_ : scope_ + "/", graph);
  scope_ = scope.path();
  return Step(x, state, where);
}

List<Output> RnnCell::ZeroState(const Operand& batch_size, DType dtype, Where where) const {
  Graph& graph = GraphOf(batch_size);
  const AsDefault in(graph);
  const NameScope scope(class_name_ + "ZeroState", graph);
  return Zeros(batch_size, dtype, where);
}

List<Output> RnnCell::Zeros(const Operand& batch_size, DType dtype, Where where) const {
  List<Output> state;
  for (const int64_t size : state_sizes()) {
    const Output extents = Stack({batch_size, Operand(static_cast<int32_t>(size))}, 0, "stack", where);
    const Output zero = Operand(0).In(*extents.graph(), dtype);
    state.push_back(Fill(extents, zero, "zeros", where));
  }
  return state;
}

BasicRNNCell::BasicRNNCell(int64_t num_units, Activation activation, std::string name)
    : RnnCell("BasicRNNCell", std::move(name)), units_(num_units), activation_(std::move(activation)) {}

void BasicRNNCell::MakeVariables(int64_t features, DType dtype, Where where) {
  kernel_ = Kernel("kernel", features + units_, units_, dtype, where);
  bias_ = Bias("bias", units_, 0, dtype, where);
}

CellStep BasicRNNCell::Step(const Output& inputs, const List<Output>& state, Where where) {
  const Output output = activation_(Affine(inputs, state[0], kernel_, bias_), {}, where);
  return {output, {output}};
}

GRUCell::GRUCell(int64_t num_units, Activation activation, std::string name)
    : RnnCell("GRUCell", std::move(name)), units_(num_units), activation_(std::move(activation)) {}

void GRUCell::MakeVariables(int64_t features, DType dtype, Where where) {
  gates_kernel_ = Kernel("gates/kernel", features + units_, 2 * units_, dtype, where);
  gates_bias_ = Bias("gates/bias", 2 * units_, 1, dtype, where);
  candidate_kernel_ = Kernel("candidate/kernel", features + units_, units_, dtype, where);
  candidate_bias_ = Bias("candidate/bias", units_, 0, dtype, where);
}

CellStep GRUCell::Step(const Output& inputs, const List<Output>& state, Where where) {
  const Output& h = state[0];
  const Output gates = Sigmoid(Affine(inputs, h, gates_kernel_, gates_bias_));
  const List<Output> halves = Split(gates, 2, 1, "split", where);
  const Output &reset = halves[0], &update = halves[1];
  const Output remembered = reset * h;
  const Output candidate = activation_(Affine(inputs, remembered, candidate_kernel_, candidate_bias_), {}, where);
  const Output old = update * h;
  const Output rest = 1.0 - update;
  const Output next = old + rest * candidate;
  return {next, {next}};
}

BasicLSTMCell::BasicLSTMCell(int64_t num_units, double forget_bias, Activation activation, std::string name)
    : RnnCell("BasicLSTMCell", std::move(name)),
      units_(num_units),
      forget_bias_(forget_bias),
      activation_(std::move(activation)) {}

void BasicLSTMCell::MakeVariables(int64_t features, DType dtype, Where where) {
  kernel_ = Kernel("kernel", features + units_, 4 * units_, dtype, where);
  bias_ = Bias("bias", 4 * units_, 0, dtype, where);
}

CellStep BasicLSTMCell::Step(const Output& inputs, const List<Output>& state, Where where) {
  const Output &c = state[0], &h = state[1];
  const List<Output> gates = Split(Affine(inputs, h, kernel_, bias_), 4, 1, "split", where);
  const Output forget = Sigmoid(Add(gates[2], forget_bias_));
  const Output kept = Multiply(c, forget);
  const Output input = Sigmoid(gates[0]);
  const Output candidate = activation_(gates[1], {}, where);
  const Output next_c = Add(kept, Multiply(input, candidate));
  const Output shown = activation_(next_c, {}, where);
  const Output next_h = Multiply(shown, Sigmoid(gates[3]));
  return {next_h, {next_c, next_h}};
}

LSTMCell::LSTMCell(int64_t num_units, const LSTMCellOptions& options)
    : RnnCell("LSTMCell", options.name), units_(num_units), options_(options) {}

void LSTMCell::MakeVariables(int64_t features, DType dtype, Where where) {
  kernel_ = Kernel("kernel", features + output_size(), 4 * units_, dtype, where);
  bias_ = Bias("bias", 4 * units_, 0, dtype, where);
  if (options_.use_peepholes) {
    const auto diagonal = [&](std::string_view name) {
      return GetVariable(name, {.shape = Shape::Of({units_}), .dtype = dtype}, where);
    };
    w_f_diag_ = diagonal("w_f_diag");
    w_i_diag_ = diagonal("w_i_diag");
    w_o_diag_ = diagonal("w_o_diag");
  }
  if (options_.num_proj > 0) projection_ = Kernel("projection/kernel", units_, options_.num_proj, dtype, where);
}

CellStep LSTMCell::Step(const Output& inputs, const List<Output>& state, Where where) {
  const Output &c = state[0], &h = state[1];
  const bool peeps = options_.use_peepholes;
  const List<Output> gates = Split(Affine(inputs, h, kernel_, bias_), 4, 1, "split", where);
  Output forget = gates[2] + options_.forget_bias;
  if (peeps) forget = forget + w_f_diag_ * c;
  const Output kept = Sigmoid(forget) * c;
  const Output input = Sigmoid(peeps ? gates[0] + w_i_diag_ * c : gates[0]);
  Output next_c = kept + input * options_.activation(gates[1], {}, where);
  if (options_.cell_clip) next_c = ClipByRange(next_c, *options_.cell_clip);
  const Output output = Sigmoid(peeps ? gates[3] + w_o_diag_ * next_c : gates[3]);
  Output next_h = output * options_.activation(next_c, {}, where);
  if (options_.num_proj > 0) {
    next_h = MatMul(next_h, projection_, {}, where);
    if (options_.proj_clip) next_h = ClipByRange(next_h, *options_.proj_clip);
  }
  return {next_h, {next_c, next_h}};
}

MultiRNNCell::MultiRNNCell(std::vector<std::shared_ptr<RnnCell>> cells)
    : RnnCell("MultiRNNCell", "multi_rnn_cell"), cells_(std::move(cells)) {}

std::vector<int64_t> MultiRNNCell::state_sizes() const {
  std::vector<int64_t> sizes;
  for (const auto& cell : cells_) {
    const std::vector<int64_t> own = cell->state_sizes();
    sizes.insert(sizes.end(), own.begin(), own.end());
  }
  return sizes;
}

int64_t MultiRNNCell::output_size() const { return cells_.empty() ? 0 : cells_.back()->output_size(); }

void MultiRNNCell::MakeVariables(int64_t features, DType dtype, Where where) {
  Graph& graph = Graph::Default();
  if (cells_.empty()) {
    (void)graph.Fail(InvalidArgument("Must specify at least one cell for MultiRNNCell. ({})", Format(where)));
  }
  VariableScopeOptions options;
  options.name_scope = NameScopeToo::kNo;
  for (size_t i = 0; i < cells_.size(); ++i) {
    const VariableScope scope("cell_" + std::to_string(i), options, graph);
    cells_[i]->Build(features, dtype, graph, where);
    features = cells_[i]->output_size();
  }
}

CellStep MultiRNNCell::Step(const Output& inputs, const List<Output>& state, Where where) {
  CellStep step{inputs, {}};
  size_t at = 0;
  for (size_t i = 0; i < cells_.size(); ++i) {
    const NameScope scope("cell_" + std::to_string(i), *inputs.graph());
    const size_t parts = cells_[i]->state_sizes().size();
    List<Output> own;
    for (size_t part = 0; part < parts; ++part) own.push_back(state[at++]);
    CellStep next = (*cells_[i])(step.output, own, where);
    step.output = next.output;
    for (const Output& part : next.state) step.state.push_back(part);
  }
  return step;
}

List<Output> MultiRNNCell::Zeros(const Operand& batch_size, DType dtype, Where where) const {
  List<Output> state;
  for (const auto& cell : cells_) {
    for (const Output& part : cell->ZeroState(batch_size, dtype, where)) state.push_back(part);
  }
  return state;
}

void CellWrapper::MakeVariables(int64_t features, DType dtype, Where where) {
  cell_->Build(features, dtype, Graph::Default(), where);
}

List<Output> CellWrapper::Zeros(const Operand& batch_size, DType dtype, Where where) const {
  return cell_->ZeroState(batch_size, dtype, where);
}

DropoutWrapper::DropoutWrapper(std::shared_ptr<RnnCell> cell, const DropoutWrapperOptions& options)
    : CellWrapper("DropoutWrapper", std::move(cell)), options_(options) {}

CellStep DropoutWrapper::Step(const Output& inputs, const List<Output>& state, Where where) {
  const int64_t seed = options_.seed;
  const auto other = [seed](int64_t n) { return seed < 0 ? seed : seed + n; };  // of independent masks
  CellStep step = cell()(Kept(inputs, options_.input_keep_prob, seed, where), state, where);
  const bool lstm = step.state.size() == 2;  // c is a memory over all steps, which dropout would erase
  for (size_t i = lstm ? 1 : 0; i < step.state.size(); ++i) {
    step.state[i] = Kept(step.state[i], options_.state_keep_prob, other(1 + static_cast<int64_t>(i)), where);
  }
  step.output = Kept(step.output, options_.output_keep_prob, other(100), where);
  return step;
}

ResidualWrapper::ResidualWrapper(std::shared_ptr<RnnCell> cell) : CellWrapper("ResidualWrapper", std::move(cell)) {}

CellStep ResidualWrapper::Step(const Output& inputs, const List<Output>& state, Where where) {
  CellStep step = cell()(inputs, state, where);
  step.output = Add(inputs, step.output, "add", where);
  return step;
}

}  // namespace weir
