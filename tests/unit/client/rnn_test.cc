// Recurrent cells and networks. Values, names and texts are TensorFlow's.
#include "core/client/rnn/rnn.h"

#include <gtest/gtest.h>

#include "tests/unit/client/fresh.h"

namespace weir {
namespace {

using namespace test;

std::vector<std::string> VariableNames() {
  std::vector<std::string> names;
  for (const Variable& variable : GlobalVariables()) names.push_back(variable.op().name());
  return names;
}

/// 0, 0.1, … as [2, 3, 4].
Output Inputs() {
  std::vector<float> values;
  for (int i = 0; i < 24; ++i) values.push_back(static_cast<float>(i) / 10);
  return Identity(Constant(values, Shape::Of({2, 3, 4})), "x");
}

VariableScopeOptions TenthKernels() {
  VariableScopeOptions options;
  options.initializer = ConstantInitializer(0.1);
  return options;
}

/// The first unit of each output of two examples of three steps, and the first unit of each state.
struct Sequence {
  std::vector<double> outputs;
  std::vector<double> state;
};

Sequence SequenceOf(Session& session, const Output& outputs, const List<Output>& state) {
  Initialize(session);
  Sequence sequence;
  const std::vector<double> all = Values(session, outputs);
  for (size_t i = 0; i < all.size(); i += 2) sequence.outputs.push_back(all[i]);
  for (const Output& part : state) {
    const std::vector<double> values = Values(session, part);
    for (size_t i = 0; i < values.size(); i += 2) sequence.state.push_back(values[i]);
  }
  return sequence;
}

template <class Cell>
Sequence Dynamic(const std::optional<Operand>& lengths, bool time_major = false) {
  Fresh f;
  const VariableScope kernels("all", TenthKernels());
  Cell cell(2);
  RnnOptions options;
  options.sequence_length = lengths;
  options.dtype = DType::kFloat;
  options.time_major = time_major;
  const Output x = time_major ? Transpose(Inputs(), {1, 0, 2}) : Inputs();
  RnnResult result = DynamicRnn(cell, x, options);
  EXPECT_TRUE(f.graph.status().ok()) << f.error();
  if (time_major) result.outputs = Transpose(result.outputs, {1, 0, 2});
  Session session(f.graph);
  return SequenceOf(session, result.outputs, result.state);
}

template <class Cell>
Sequence Static(const std::optional<Operand>& lengths) {
  Fresh f;
  const VariableScope kernels("all", TenthKernels());
  Cell cell(2);
  RnnOptions options;
  options.sequence_length = lengths;
  options.dtype = DType::kFloat;
  const List<Output> steps = Unstack(Inputs(), 1);
  const StaticRnnResult result = StaticRnn(cell, {steps.begin(), steps.end()}, options);
  EXPECT_TRUE(f.graph.status().ok()) << f.error();
  Session session(f.graph);
  return SequenceOf(session, Stack({result.outputs.begin(), result.outputs.end()}, 1), result.state);
}

void ExpectSteps(const std::vector<double>& got, const std::vector<double>& wanted) {
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], wanted[i], 2e-6) << "element " << i;
}

const Operand kLengths = Operand(Tensor::Vector<int32_t>({1, 3}));

TEST(Rnn, F387_lengths_end_sequences) {
  const Sequence plain = Dynamic<BasicRNNCell>(kLengths);
  ExpectSteps(plain.outputs, {.0599281, 0, 0, .4929879, .6632521, .7584902});
  ExpectSteps(plain.state, {.0599281, .7584902});
  const Sequence lstm = Dynamic<BasicLSTMCell>(kLengths);
  ExpectSteps(lstm.outputs, {.0158891, 0, 0, .1906678, .4045014, .5839231});
  ExpectSteps(lstm.state, {.0308627, 1.1323276, .0158891, .5839231});
  const Sequence gru = Dynamic<GRUCell>(kLengths);
  ExpectSteps(gru.outputs, {.0154201, 0, 0, .0870297, .1671844, .2383352});
  const Sequence full = Dynamic<BasicRNNCell>(std::nullopt);
  ExpectSteps({full.outputs.begin(), full.outputs.begin() + 3}, {.0599281, .2279117, .4016228});
}

TEST(Rnn, F387_static_and_time_major_networks_give_the_same) {
  const Sequence wanted = Dynamic<BasicLSTMCell>(kLengths);
  const Sequence listed = Static<BasicLSTMCell>(kLengths), turned = Dynamic<BasicLSTMCell>(kLengths, true);
  ExpectSteps(listed.outputs, wanted.outputs);
  ExpectSteps(listed.state, wanted.state);
  ExpectSteps(turned.outputs, wanted.outputs);
  ExpectSteps(turned.state, wanted.state);
  ExpectSteps(Static<GRUCell>(std::nullopt).outputs, Dynamic<GRUCell>(std::nullopt).outputs);
}

TEST(Rnn, F387_odd_lengths) {
  const Sequence none = Dynamic<BasicRNNCell>(Operand(Tensor::Vector<int32_t>({0, 0})));
  ExpectSteps(none.outputs, {0, 0, 0, 0, 0, 0});
  ExpectSteps(none.state, {0, 0});
  ExpectSteps(Dynamic<BasicRNNCell>(Operand(Tensor::Vector<int64_t>({7, 9}))).outputs,
              Dynamic<BasicRNNCell>(std::nullopt).outputs);
}

TEST(Rnn, F386_names_of_variables_and_results) {
  Fresh f;
  BasicLSTMCell cell(5);
  RnnOptions options;
  options.dtype = DType::kFloat;
  const RnnResult result = DynamicRnn(cell, Placeholder(DType::kFloat, {2, 3, 4}, "x"), options);
  EXPECT_EQ(VariableNames(), (std::vector<std::string>{"rnn/basic_lstm_cell/kernel", "rnn/basic_lstm_cell/bias"}));
  EXPECT_EQ(GlobalVariables()[0].shape().ToTupleString(), "(9, 20)");
  EXPECT_EQ(GlobalVariables()[1].shape().ToTupleString(), "(20,)");
  EXPECT_EQ(result.outputs.name(), "rnn/transpose_1:0");
  EXPECT_EQ(result.outputs.shape().ToTupleString(), "(2, 3, 5)");
  EXPECT_EQ(result.state[0].name(), "rnn/while/Exit_3:0");
  EXPECT_EQ(result.state[1].name(), "rnn/while/Exit_4:0");
}

template <class Cell>
std::vector<std::string> NamesOf(Cell&& cell, bool dynamic) {
  Fresh f;
  RnnOptions options;
  options.dtype = DType::kFloat;
  const Output x = Placeholder(DType::kFloat, {2, 3, 4}, "x");
  if (dynamic) {
    DynamicRnn(cell, x, options);
  } else {
    const List<Output> steps = Unstack(x, 1);
    StaticRnn(cell, {steps.begin(), steps.end()}, options);
  }
  EXPECT_TRUE(f.graph.status().ok()) << f.error();
  std::vector<std::string> names;
  for (const Variable& variable : GlobalVariables()) {
    names.push_back(variable.op().name() + " " + variable.shape().ToTupleString());
  }
  return names;
}

TEST(Rnn, F172_F386_variables_of_each_cell) {
  for (const bool dynamic : {true, false}) {
    EXPECT_EQ(NamesOf(BasicRNNCell(5), dynamic),
              (std::vector<std::string>{"rnn/basic_rnn_cell/kernel (9, 5)", "rnn/basic_rnn_cell/bias (5,)"}));
    EXPECT_EQ(NamesOf(GRUCell(5), dynamic),
              (std::vector<std::string>{"rnn/gru_cell/gates/kernel (9, 10)", "rnn/gru_cell/gates/bias (10,)",
                                        "rnn/gru_cell/candidate/kernel (9, 5)", "rnn/gru_cell/candidate/bias (5,)"}));
    EXPECT_EQ(NamesOf(BasicLSTMCell(5), dynamic),
              (std::vector<std::string>{"rnn/basic_lstm_cell/kernel (9, 20)", "rnn/basic_lstm_cell/bias (20,)"}));
    EXPECT_EQ(NamesOf(LSTMCell(5, {.use_peepholes = true, .num_proj = 2}), dynamic),
              (std::vector<std::string>{"rnn/lstm_cell/kernel (6, 20)", "rnn/lstm_cell/bias (20,)",
                                        "rnn/lstm_cell/w_f_diag (5,)", "rnn/lstm_cell/w_i_diag (5,)",
                                        "rnn/lstm_cell/w_o_diag (5,)", "rnn/lstm_cell/projection/kernel (5, 2)"}));
  }
}

TEST(Rnn, F386_cells_on_top_of_each_other_and_wrappers) {
  const auto gru = [] { return std::make_shared<GRUCell>(4); };
  const std::vector<std::string> names =
      NamesOf(MultiRNNCell({gru(), std::make_shared<ResidualWrapper>(std::make_shared<DropoutWrapper>(
                                       gru(), DropoutWrapperOptions{.input_keep_prob = 0.5}))}),
              true);
  ASSERT_EQ(names.size(), 8u);
  EXPECT_EQ(names[0], "rnn/multi_rnn_cell/cell_0/gru_cell/gates/kernel (8, 8)");
  EXPECT_EQ(names[4], "rnn/multi_rnn_cell/cell_1/gru_cell/gates/kernel (8, 8)");
}

TEST(Rnn, F386_a_scope_takes_the_place_of_rnn) {
  Fresh f;
  GRUCell cell(5);
  RnnOptions options;
  options.dtype = DType::kFloat;
  options.scope = "my";
  DynamicRnn(cell, Placeholder(DType::kFloat, {2, 3, 4}, "x"), options);
  EXPECT_EQ(VariableNames()[0], "my/gru_cell/gates/kernel");
}

TEST(Rnn, F386_bidirectional_networks) {
  Fresh f;
  const VariableScope kernels("all", TenthKernels());
  BasicRNNCell forward(2), backward(2);
  BidirectionalOptions options;
  options.dtype = DType::kFloat;
  options.sequence_length = kLengths;
  const BidirectionalResult result = BidirectionalDynamicRnn(forward, backward, Inputs(), options);
  ASSERT_TRUE(f.graph.status().ok()) << f.error();
  EXPECT_EQ(VariableNames()[0], "all/bidirectional_rnn/fw/basic_rnn_cell/kernel");
  EXPECT_EQ(VariableNames()[2], "all/bidirectional_rnn/bw/basic_rnn_cell/kernel");
  Session session(f.graph);
  ExpectSteps(SequenceOf(session, result.forward.outputs, {}).outputs, {.0599281, 0, 0, .4929879, .6632521, .7584902});
  ExpectSteps(SequenceOf(session, result.backward.outputs, {}).outputs,
              {0.059928104281425476, 0.0, 0.0, 0.5896193981170654, 0.6854124665260315, 0.6962576508522034});
}

TEST(Rnn, F387_names_of_zero_states) {
  Fresh f;
  const List<Output> lstm = BasicLSTMCell(2).ZeroState(3, DType::kFloat);
  EXPECT_EQ(lstm[0].op().name(), "BasicLSTMCellZeroState/zeros");
  EXPECT_EQ(lstm[1].op().name(), "BasicLSTMCellZeroState/zeros_1");
  EXPECT_EQ(GRUCell(2).ZeroState(3, DType::kFloat)[0].op().name(), "GRUCellZeroState/zeros");
  const MultiRNNCell two({std::make_shared<GRUCell>(2), std::make_shared<GRUCell>(2)});
  const List<Output> both = two.ZeroState(3, DType::kFloat);
  EXPECT_EQ(both[0].op().name(), "MultiRNNCellZeroState/GRUCellZeroState/zeros");
  EXPECT_EQ(both[1].op().name(), "MultiRNNCellZeroState/GRUCellZeroState_1/zeros");
  EXPECT_EQ(both[0].shape().ToTupleString(), "(3, 2)");
}

TEST(Rnn, F172_cells_are_called_in_loops_of_ones_own) {
  Fresh f;
  const VariableScope kernels("all", TenthKernels());
  BasicLSTMCell cell(2);
  List<Output> state = cell.ZeroState(2, DType::kFloat);
  const List<Output> steps = Unstack(Inputs(), 1);
  Output last;
  for (const Output& step : steps) {
    CellStep next = cell(step, state);
    last = next.output;
    state = next.state;
  }
  ASSERT_TRUE(f.graph.status().ok()) << f.error();
  EXPECT_EQ(VariableNames(), (std::vector<std::string>{"all/basic_lstm_cell/kernel", "all/basic_lstm_cell/bias"}));
  Session session(f.graph);
  Initialize(session);
  EXPECT_NEAR(Values(session, last)[2], .5839231, 2e-6);
}

TEST(Rnn, F172_peepholes_projections_and_clipping) {
  Fresh f;
  const VariableScope kernels("all", TenthKernels());
  LSTMCell cell(2, {.use_peepholes = true, .cell_clip = 0.3, .num_proj = 2, .proj_clip = 0.036});
  RnnOptions options;
  options.dtype = DType::kFloat;
  const RnnResult result = DynamicRnn(cell, Inputs(), options);
  Session session(f.graph);
  const Sequence sequence = SequenceOf(session, result.outputs, result.state);
  ExpectSteps(sequence.outputs, {0.003182578133419156, 0.016029750928282738, 0.0350656732916832, 0.035999998450279236,
                                 0.035999998450279236, 0.035999998450279236});
}

TEST(Rnn, F165_dropout_around_a_cell) {
  const auto outputs = [](const DropoutWrapperOptions& options) {
    Fresh f;
    const VariableScope kernels("all", TenthKernels());
    DropoutWrapper cell(std::make_shared<BasicRNNCell>(2), options);
    RnnOptions run;
    run.dtype = DType::kFloat;
    const RnnResult result = DynamicRnn(cell, Inputs(), run);
    EXPECT_TRUE(f.graph.status().ok()) << f.error();
    Session session(f.graph);
    Initialize(session);
    return Values(session, result.outputs);
  };
  const std::vector<double> bare = outputs({});
  EXPECT_NEAR(bare[0], .0599281, 1e-6);
  const std::vector<double> dropped = outputs({.output_keep_prob = 0.5, .seed = 1});
  int kept = 0;
  for (size_t i = 0; i < bare.size(); ++i) {
    if (dropped[i] == 0) continue;
    EXPECT_NEAR(dropped[i], 2 * bare[i], 1e-6);  // the state is that of the bare cell
    ++kept;
  }
  EXPECT_GT(kept, 0);
  EXPECT_LT(kept, 12);
  EXPECT_NE(outputs({.input_keep_prob = 0.5, .seed = 1}), bare);
  EXPECT_NE(outputs({.state_keep_prob = 0.5, .seed = 1}), bare);
}

TEST(Rnn, F387_wrong_arguments_are_errors) {
  const auto error = [](auto build) {
    Fresh f;
    build();
    return f.graph.status();
  };
  EXPECT_TRUE(Fails(error([] {
                      BasicRNNCell cell(2);
                      DynamicRnn(cell, Inputs());
                    }),
                    Code::kInvalidArgument, "If there is no initial_state, you must give a dtype."));
  EXPECT_TRUE(Fails(error([] {
                      BasicRNNCell cell(2);
                      StaticRnn(cell, {});
                    }),
                    Code::kInvalidArgument, "inputs must not be empty"));
  EXPECT_TRUE(Fails(error([] {
                      BasicRNNCell cell(2);
                      DynamicRnn(cell, Placeholder(DType::kFloat, PartialShape()), {.dtype = DType::kFloat});
                    }),
                    Code::kInvalidArgument, "Input size (depth of inputs) must be accessible via shape inference"));
  EXPECT_TRUE(Fails(error([] {
                      BasicLSTMCell(2)(Constant({{1.0}}), {Constant({{1.0, 2.0}})});
                    }),
                    Code::kInvalidArgument, "BasicLSTMCell has a state of 2 tensors, got 1"));
}

TEST(Rnn, F172_networks_learn) {
  Fresh f;
  SetRandomSeed(1, f.graph);
  BasicLSTMCell cell(8);
  RnnOptions options;
  options.dtype = DType::kFloat;
  const Output x = RandomUniform({16, 5, 2}, 0, 1, {.seed = 3});
  const Output target = ReduceSum(x[{kEllipsis, Span{}, 0}], 1);
  const RnnResult result = DynamicRnn(cell, x, options);
  const Output loss = ReduceMean(Square(Dense(result.state[1], 1)[{kEllipsis, 0}] - target));
  const Operation train = AdamOptimizer(0.02).Minimize(loss);
  ASSERT_TRUE(f.graph.status().ok()) << f.error();
  Session session(f.graph);
  Initialize(session);
  const double before = Value(session, loss);
  for (int step = 0; step < 100; ++step) ASSERT_TRUE(Succeeds(session.Run(train)));
  EXPECT_LT(Value(session, loss), 0.3 * before);
}

}  // namespace
}  // namespace weir
