// Cells of recurrent networks, under the names of TensorFlow 1.x's tf.nn.rnn_cell: one time step each.
#ifndef WEIR_CORE_CLIENT_RNN_RNN_CELL_H_
#define WEIR_CORE_CLIENT_RNN_RNN_CELL_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/client/ops/ops.h"
#include "core/client/training/layers.h"
#include "core/client/variables/variable_scope.h"

namespace weir {

/// What a cell makes of one time step.
struct CellStep {
  Output output;       // [batch, output_size]
  List<Output> state;  // next state
};

/// Base of cells. A state is a list of tensors [batch, n], one for each of state_sizes(): of an LSTM c and h, of
/// several layers those of the first layer, then those of the next. A cell makes its variables when it is first built
/// or called, in the current variable scope and below the cell's name, and keeps them: later calls share them. For
/// building one graph; single-threaded.
class RnnCell {
 public:
  virtual ~RnnCell() = default;
  RnnCell(const RnnCell&) = delete;
  RnnCell& operator=(const RnnCell&) = delete;

  /// One step. inputs: [batch, features], features known. After an error the values do not exist.
  CellStep operator()(const Operand& inputs, const List<Output>& state, Where where = Where::current());
  /// Makes the variables for inputs of `features` in `graph`, unless that was done.
  void Build(int64_t features, DType dtype, Graph& graph = Graph::Default(), Where where = Where::current());

  virtual std::vector<int64_t> state_sizes() const = 0;
  virtual int64_t output_size() const = 0;
  /// Zeros for a batch, below the scope `<class>ZeroState`. batch_size: a number or an int32 scalar.
  List<Output> ZeroState(const Operand& batch_size, DType dtype, Where where = Where::current()) const;
  const std::string& name() const { return name_; }

 protected:
  /// `class_name`: TensorFlow's, which names the zero state. `name`: of the variables' scope; empty = none of its own.
  RnnCell(std::string class_name, std::string name) : class_name_(std::move(class_name)), name_(std::move(name)) {}

  /// Makes the variables in the current variable scope.
  virtual void MakeVariables(int64_t features, DType dtype, Where where) = 0;
  /// One step, in the cell's name scope.
  virtual CellStep Step(const Output& inputs, const List<Output>& state, Where where) = 0;
  virtual List<Output> Zeros(const Operand& batch_size, DType dtype, Where where) const;

  /// [features, units] with the scope's default initializer, [units] filled with `value`.
  static Variable Kernel(std::string_view name, int64_t features, int64_t units, DType dtype, Where where);
  static Variable Bias(std::string_view name, int64_t units, double value, DType dtype, Where where);

 private:
  std::string class_name_, name_;
  bool built_ = false;
  std::string scope_;  // name scope of the first call, which later ones enter again
};

/// output = state = activation([inputs, state] · kernel + bias). Scope: `basic_rnn_cell`.
class BasicRNNCell : public RnnCell {
 public:
  explicit BasicRNNCell(int64_t num_units, Activation activation = Tanh, std::string name = "basic_rnn_cell");
  std::vector<int64_t> state_sizes() const override { return {units_}; }
  int64_t output_size() const override { return units_; }

 protected:
  void MakeVariables(int64_t features, DType dtype, Where where) override;
  CellStep Step(const Output& inputs, const List<Output>& state, Where where) override;

 private:
  int64_t units_;
  Activation activation_;
  Variable kernel_, bias_;
};

/// Gated recurrent unit, whose reset gate acts before the product. Variables: `gates/kernel`, `gates/bias` (ones),
/// `candidate/kernel`, `candidate/bias`. Scope: `gru_cell`. Source: Cho et al. 2014.
class GRUCell : public RnnCell {
 public:
  explicit GRUCell(int64_t num_units, Activation activation = Tanh, std::string name = "gru_cell");
  std::vector<int64_t> state_sizes() const override { return {units_}; }
  int64_t output_size() const override { return units_; }

 protected:
  void MakeVariables(int64_t features, DType dtype, Where where) override;
  CellStep Step(const Output& inputs, const List<Output>& state, Where where) override;

 private:
  int64_t units_;
  Activation activation_;
  Variable gates_kernel_, gates_bias_, candidate_kernel_, candidate_bias_;
};

/// Long short-term memory without peepholes; gates in the order i, j, f, o. State: c, h. Variables: `kernel`
/// [features + units, 4 * units], `bias`. Scope: `basic_lstm_cell`. Source: Zaremba et al. 2014.
class BasicLSTMCell : public RnnCell {
 public:
  explicit BasicLSTMCell(int64_t num_units, double forget_bias = 1.0, Activation activation = Tanh,
                         std::string name = "basic_lstm_cell");
  std::vector<int64_t> state_sizes() const override { return {units_, units_}; }
  int64_t output_size() const override { return units_; }

 protected:
  void MakeVariables(int64_t features, DType dtype, Where where) override;
  CellStep Step(const Output& inputs, const List<Output>& state, Where where) override;

 private:
  int64_t units_;
  double forget_bias_;
  Activation activation_;
  Variable kernel_, bias_;
};

struct LSTMCellOptions {
  bool use_peepholes = false;            // gates see c: variables w_f_diag, w_i_diag, w_o_diag
  std::optional<double> cell_clip = {};  // c stays within ± this
  int64_t num_proj = 0;                  // extent of h and of the output; 0 = num_units, without a projection
  std::optional<double> proj_clip = {};  // projected h stays within ± this
  double forget_bias = 1.0;
  Activation activation = Tanh;
  std::string name = "lstm_cell";
};
/// Long short-term memory with peepholes, clipping and projection. State: c [batch, num_units], h [batch, num_proj].
/// Source: Sak, Senior and Beaufays 2014.
class LSTMCell : public RnnCell {
 public:
  explicit LSTMCell(int64_t num_units, const LSTMCellOptions& options = {});
  std::vector<int64_t> state_sizes() const override { return {units_, output_size()}; }
  int64_t output_size() const override { return options_.num_proj > 0 ? options_.num_proj : units_; }

 protected:
  void MakeVariables(int64_t features, DType dtype, Where where) override;
  CellStep Step(const Output& inputs, const List<Output>& state, Where where) override;

 private:
  int64_t units_;
  LSTMCellOptions options_;
  Variable kernel_, bias_, w_f_diag_, w_i_diag_, w_o_diag_, projection_;
};

/// Cells on top of each other: the output of one is the input of the next. Scope: `multi_rnn_cell/cell_<i>`.
class MultiRNNCell : public RnnCell {
 public:
  explicit MultiRNNCell(std::vector<std::shared_ptr<RnnCell>> cells);
  std::vector<int64_t> state_sizes() const override;
  int64_t output_size() const override;

 protected:
  void MakeVariables(int64_t features, DType dtype, Where where) override;
  CellStep Step(const Output& inputs, const List<Output>& state, Where where) override;
  List<Output> Zeros(const Operand& batch_size, DType dtype, Where where) const override;

 private:
  std::vector<std::shared_ptr<RnnCell>> cells_;
};

/// Base of cells that change what goes into another cell or comes out of it; without a scope of their own.
class CellWrapper : public RnnCell {
 public:
  std::vector<int64_t> state_sizes() const override { return cell_->state_sizes(); }
  int64_t output_size() const override { return cell_->output_size(); }

 protected:
  CellWrapper(std::string class_name, std::shared_ptr<RnnCell> cell)
      : RnnCell(std::move(class_name), ""), cell_(std::move(cell)) {}
  void MakeVariables(int64_t features, DType dtype, Where where) override;
  List<Output> Zeros(const Operand& batch_size, DType dtype, Where where) const override;
  RnnCell& cell() { return *cell_; }

 private:
  std::shared_ptr<RnnCell> cell_;
};

struct DropoutWrapperOptions {
  Operand input_keep_prob = 1.0;  // as keep_prob of Dropout
  Operand output_keep_prob = 1.0;
  Operand state_keep_prob = 1.0;  // of all of the state but the c of an LSTM
  int64_t seed = -1;
};
/// Dropout of a cell's inputs, outputs and state. Source: Zaremba et al. 2014.
class DropoutWrapper : public CellWrapper {
 public:
  explicit DropoutWrapper(std::shared_ptr<RnnCell> cell, const DropoutWrapperOptions& options = {});

 protected:
  CellStep Step(const Output& inputs, const List<Output>& state, Where where) override;

 private:
  DropoutWrapperOptions options_;
};

/// Adds the inputs to the outputs, which are of one shape.
class ResidualWrapper : public CellWrapper {
 public:
  explicit ResidualWrapper(std::shared_ptr<RnnCell> cell);

 protected:
  CellStep Step(const Output& inputs, const List<Output>& state, Where where) override;
};

}  // namespace weir

#endif  // WEIR_CORE_CLIENT_RNN_RNN_CELL_H_
