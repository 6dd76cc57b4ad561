// Blocks of recurrent networks: cells and whole layers as one op.
#include "core/op/grad_context.h"
#include "core/op/shape_context.h"
#include "core/ops/families.h"
#include "core/ops/shape_algebra.h"

namespace weir::ops {
namespace {

using op::Category;
using op::Grad;
using op::GradContext;
using op::kUndefinedGradient;
using op::MergeDim;
using op::OpBuilder;
using op::OpRegistry;
using op::ShapeContext;
using op::Value;

Status SetAll(ShapeContext& c, const PartialShape& shape) {
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, shape);
  return Status();
}

/// x [batch, inputs], cs_prev [batch, cells]; every output is [batch, cells].
Status LstmCellShape(ShapeContext& c) {
  WEIR_ASSIGN(const PartialShape x, c.WithRank(0, 2));
  WEIR_ASSIGN(const PartialShape cell, c.WithRank(1, 2));
  return SetAll(c, PartialShape::Of({x.dim(0), cell.dim(1)}));
}

Status LstmCellGradShape(ShapeContext& c) {
  WEIR_ASSIGN(const PartialShape x, c.WithRank(0, 2));
  WEIR_ASSIGN(const PartialShape cell, c.WithRank(1, 2));
  WEIR_ASSIGN(const PartialShape w, c.WithRank(3, 2));
  WEIR_TRY(SetAll(c, VectorOf(cell.dim(1))));
  c.set_output(0, PartialShape::Of({x.dim(0), cell.dim(1)}));
  c.set_output(1, PartialShape::Of({x.dim(0), w.dim(1)}));
  return Status();
}

Status GruCellShape(ShapeContext& c) {
  WEIR_ASSIGN(const PartialShape x, c.WithRank(0, 2));
  WEIR_ASSIGN(const PartialShape h, c.WithRank(1, 2));
  return SetAll(c, PartialShape::Of({x.dim(0), h.dim(1)}));
}

Status GruCellGradShape(ShapeContext& c) {
  WEIR_ASSIGN(const PartialShape x, c.WithRank(0, 2));
  WEIR_ASSIGN(const PartialShape h, c.WithRank(1, 2));
  WEIR_ASSIGN(const PartialShape w, c.WithRank(2, 2));
  c.set_output(0, x);
  c.set_output(1, PartialShape::Of({x.dim(0), h.dim(1)}));
  c.set_output(2, PartialShape::Of({x.dim(0), h.dim(1)}));
  c.set_output(3, PartialShape::Of({x.dim(0), w.dim(1)}));
  return Status();
}

/// x [time, batch, inputs], b [4 cells]; every output is [time, batch, cells].
Status LstmShape(ShapeContext& c) {
  WEIR_ASSIGN(const PartialShape x, c.WithRank(1, 3));
  WEIR_ASSIGN(const PartialShape b, c.WithRank(8, 1));
  WEIR_ASSIGN(const int64_t cells, DivideDims(b.dim(0), 4));
  return SetAll(c, PartialShape::Of({x.dim(0), x.dim(1), cells}));
}

/// Each gradient has the shape of its input: x, cs_prev, h_prev, w, three peepholes, b.
Status LstmGradShape(ShapeContext& c) {
  constexpr int kRanks[] = {3, 2, 2, 2, 1, 1, 1, 1};
  for (int i = 0; i < 8; ++i) {
    WEIR_ASSIGN(PartialShape shape, c.WithRank(i + 1, kRanks[i]));
    c.set_output(i, std::move(shape));
  }
  return Status();
}

Result<std::vector<Grad>> BlockLstmGradient(GradContext& g) {
  WEIR_ASSIGN(const bool peepholes, g.attrs().Bool("use_peephole"));
  std::vector<Value> inputs;
  for (int i = 0; i < 9; ++i) inputs.push_back(g.X(i));
  for (int i = 0; i < 7; ++i) inputs.push_back(g.Y(i));
  inputs.push_back(g.Dy(1));
  inputs.push_back(g.Dy(6));
  const bool second = g.attrs().def().name == "BlockLSTMV2";
  const std::vector<Value> made =
      g.ApplyAll(second ? "BlockLSTMGradV2" : "BlockLSTMGrad", inputs, {{"use_peephole", peepholes}});
  std::vector<Grad> grads(9);
  for (size_t i = 0; i < made.size() && i < 8; ++i) grads[i + 1] = made[i];
  return grads;
}

Status ReverseSequenceShape(ShapeContext& c) {
  WEIR_ASSIGN(const int64_t seq_dim, c.attrs().Int("seq_dim"));
  WEIR_ASSIGN(const int64_t batch_dim, c.attrs().Int("batch_dim"));
  const PartialShape& input = c.input(0);
  WEIR_ASSIGN(const PartialShape lengths, c.WithRank(1, 1));
  if (!input.has_rank()) return Status();
  if (batch_dim < 0 || batch_dim >= input.rank()) {
    return InvalidArgument("batch_dim must be < input rank: {} vs. {}", batch_dim, input.rank());
  }
  if (seq_dim < 0 || seq_dim >= input.rank()) {
    return InvalidArgument("seq_dim must be < input rank: {} vs. {}", seq_dim, input.rank());
  }
  const auto axis = static_cast<int>(batch_dim);
  WEIR_ASSIGN(const int64_t batch, MergeDim(input.dim(axis), lengths.dim(0)));
  c.set_output(0, Replaced(input, axis, batch));
  return Status();
}

Result<std::vector<Grad>> ReverseSequenceGradient(GradContext& g) {
  WEIR_ASSIGN(const int64_t seq_dim, g.attrs().Int("seq_dim"));
  WEIR_ASSIGN(const int64_t batch_dim, g.attrs().Int("batch_dim"));
  const Value reversed =
      g.Apply("ReverseSequence", {g.Dy(0), g.X(1)}, {{"seq_dim", seq_dim}, {"batch_dim", batch_dim}});
  return std::vector<Grad>{reversed, Grad::None()};
}

OpBuilder Recurrent(OpRegistry& ops, std::string_view name) { return ops.Declare(name).Is(Category::kNeural); }

void DeclareCells(OpRegistry& ops) {
  Recurrent(ops, "LSTMBlockCell")
      .In("x: T")
      .In("cs_prev: T")
      .In("h_prev: T")
      .In("w: T")
      .In("wci: T")
      .In("wcf: T")
      .In("wco: T")
      .In("b: T")
      .Out("i: T")
      .Out("cs: T")
      .Out("f: T")
      .Out("o: T")
      .Out("ci: T")
      .Out("co: T")
      .Out("h: T")
      .Attr("cell_clip: float = 3")
      .Attr("forget_bias: float = 1")
      .Attr("use_peephole: bool = false")
      .Attr("T: {half, float}")
      .Shape(LstmCellShape)
      .NoGradient(kUndefinedGradient)
      .Doc(
          "One step of an LSTM: input gate, cell, forget gate, output gate, cell input, tanh of the cell, output. The "
          "gates of [x, h_prev] w + b lie in the order i, ci, f, o; forget_bias is added to f; a positive cell_clip "
          "bounds the cell.");
  Recurrent(ops, "LSTMBlockCellGrad")
      .In("x: T")
      .In("cs_prev: T")
      .In("h_prev: T")
      .In("w: T")
      .In("wci: T")
      .In("wcf: T")
      .In("wco: T")
      .In("b: T")
      .In("i: T")
      .In("cs: T")
      .In("f: T")
      .In("o: T")
      .In("ci: T")
      .In("co: T")
      .In("cs_grad: T")
      .In("h_grad: T")
      .Out("cs_prev_grad: T")
      .Out("dicfo: T")
      .Out("wci_grad: T")
      .Out("wcf_grad: T")
      .Out("wco_grad: T")
      .Attr("use_peephole: bool")
      .Attr("T: {half, float}")
      .Shape(LstmCellGradShape)
      .NoGradient(kUndefinedGradient)
      .Doc("Gradients of LSTMBlockCell by the cell before, by the gates and by the peepholes.");
}

void DeclareGruCells(OpRegistry& ops) {
  Recurrent(ops, "GRUBlockCell")
      .In("x: T")
      .In("h_prev: T")
      .In("w_ru: T")
      .In("w_c: T")
      .In("b_ru: T")
      .In("b_c: T")
      .Out("r: T")
      .Out("u: T")
      .Out("c: T")
      .Out("h: T")
      .Attr("T: {float}")
      .Shape(GruCellShape)
      .NoGradient(kUndefinedGradient)
      .Doc("One step of a GRU: reset gate, update gate, candidate, output u h_prev + (1 - u) c.");
  Recurrent(ops, "GRUBlockCellGrad")
      .In("x: T")
      .In("h_prev: T")
      .In("w_ru: T")
      .In("w_c: T")
      .In("b_ru: T")
      .In("b_c: T")
      .In("r: T")
      .In("u: T")
      .In("c: T")
      .In("d_h: T")
      .Out("d_x: T")
      .Out("d_h_prev: T")
      .Out("d_c_bar: T")
      .Out("d_r_bar_u_bar: T")
      .Attr("T: {float}")
      .Shape(GruCellGradShape)
      .NoGradient(kUndefinedGradient)
      .Doc("Gradients of GRUBlockCell by x, by h_prev, by the candidate and by the gates before their activations.");
}

void DeclareLayers(OpRegistry& ops) {
  Recurrent(ops, "BlockLSTM")
      .In("seq_len_max: int64")
      .In("x: T")
      .In("cs_prev: T")
      .In("h_prev: T")
      .In("w: T")
      .In("wci: T")
      .In("wcf: T")
      .In("wco: T")
      .In("b: T")
      .Out("i: T")
      .Out("cs: T")
      .Out("f: T")
      .Out("o: T")
      .Out("ci: T")
      .Out("co: T")
      .Out("h: T")
      .Attr("cell_clip: float = 3")
      .Attr("forget_bias: float = 1")
      .Attr("use_peephole: bool = false")
      .Attr("T: {half, float}")
      .Shape(LstmShape)
      .Grad(BlockLstmGradient)
      .Doc("LSTMBlockCell over time: x [time, batch, inputs]; steps from seq_len_max on give zeros.");
  Recurrent(ops, "BlockLSTMGrad")
      .In("seq_len_max: int64")
      .In("x: T")
      .In("cs_prev: T")
      .In("h_prev: T")
      .In("w: T")
      .In("wci: T")
      .In("wcf: T")
      .In("wco: T")
      .In("b: T")
      .In("i: T")
      .In("cs: T")
      .In("f: T")
      .In("o: T")
      .In("ci: T")
      .In("co: T")
      .In("h: T")
      .In("cs_grad: T")
      .In("h_grad: T")
      .Out("x_grad: T")
      .Out("cs_prev_grad: T")
      .Out("h_prev_grad: T")
      .Out("w_grad: T")
      .Out("wci_grad: T")
      .Out("wcf_grad: T")
      .Out("wco_grad: T")
      .Out("b_grad: T")
      .Attr("use_peephole: bool")
      .Attr("T: {half, float}")
      .Shape(LstmGradShape)
      .NoGradient(kUndefinedGradient)
      .Doc("Gradients of BlockLSTM by x, the state before, weights, peepholes and biases.");
}

void DeclareSecondLayers(OpRegistry& ops) {
  Recurrent(ops, "BlockLSTMV2")
      .In("seq_len_max: int64")
      .In("x: T")
      .In("cs_prev: T")
      .In("h_prev: T")
      .In("w: T")
      .In("wci: T")
      .In("wcf: T")
      .In("wco: T")
      .In("b: T")
      .Out("i: T")
      .Out("cs: T")
      .Out("f: T")
      .Out("o: T")
      .Out("ci: T")
      .Out("co: T")
      .Out("h: T")
      .Attr("cell_clip: float = 0")
      .Attr("use_peephole: bool = false")
      .Attr("T: {half, float}")
      .Shape(LstmShape)
      .Grad(BlockLstmGradient)
      .Doc("BlockLSTM whose gates lie in the order i, f, ci, o, without a bias of the forget gate.");
  Recurrent(ops, "BlockLSTMGradV2")
      .In("seq_len_max: int64")
      .In("x: T")
      .In("cs_prev: T")
      .In("h_prev: T")
      .In("w: T")
      .In("wci: T")
      .In("wcf: T")
      .In("wco: T")
      .In("b: T")
      .In("i: T")
      .In("cs: T")
      .In("f: T")
      .In("o: T")
      .In("ci: T")
      .In("co: T")
      .In("h: T")
      .In("cs_grad: T")
      .In("h_grad: T")
      .Out("x_grad: T")
      .Out("cs_prev_grad: T")
      .Out("h_prev_grad: T")
      .Out("w_grad: T")
      .Out("wci_grad: T")
      .Out("wcf_grad: T")
      .Out("wco_grad: T")
      .Out("b_grad: T")
      .Attr("use_peephole: bool")
      .Attr("T: {half, float}")
      .Shape(LstmGradShape)
      .NoGradient(kUndefinedGradient)
      .Doc("Gradients of BlockLSTMV2 by x, the state before, weights, peepholes and biases.");
}

void DeclareReverse(OpRegistry& ops) {
  Recurrent(ops, "ReverseSequence")
      .In("input: T")
      .In("seq_lengths: Tlen")
      .Out("output: T")
      .Attr("batch_dim: int = 0")
      .Attr("seq_dim: int")
      .Attr("Tlen: {int32, int64} = DT_INT64")
      .Attr("T: type")
      .MovesElements()
      .Shape(ReverseSequenceShape)
      .Grad(ReverseSequenceGradient)
      .Doc(
          "The input with the first seq_lengths[b] elements along seq_dim reversed, for each index b along batch_dim.");
}

}  // namespace

void DeclareRecurrent(OpRegistry& ops) {
  DeclareCells(ops);
  DeclareGruCells(ops);
  DeclareLayers(ops);
  DeclareSecondLayers(ops);
  DeclareReverse(ops);
}

}  // namespace weir::ops
