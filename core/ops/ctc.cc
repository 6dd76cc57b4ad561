// Connectionist temporal classification: the loss of a labelling without alignment, and decoders.
#include "core/op/grad_context.h"
#include "core/op/shape_context.h"
#include "core/ops/families.h"
#include "core/ops/shape_algebra.h"

namespace weir::ops {
namespace {

using op::Category;
using op::Grad;
using op::GradContext;
using op::MergeDim;
using op::OpBuilder;
using op::OpRegistry;
using op::ShapeContext;
using op::Value;

/// inputs [time, batch, classes]; labels as a sparse [batch, length]; sequence_length [batch].
Status CtcLossShape(ShapeContext& c) {
  WEIR_ASSIGN(PartialShape inputs, c.WithRank(0, 3));
  WEIR_ASSIGN(const PartialShape indices, c.WithRank(1, 2));
  WEIR_ASSIGN(const PartialShape values, c.WithRank(2, 1));
  WEIR_ASSIGN(const PartialShape lengths, c.WithRank(3, 1));
  WEIR_TRY(MergeDim(indices.dim(0), values.dim(0)).status());
  WEIR_ASSIGN(const int64_t batch, MergeDim(inputs.dim(1), lengths.dim(0)));
  c.set_output(0, VectorOf(batch));
  c.set_output(1, Replaced(std::move(inputs), 1, batch));
  return Status();
}

/// The loss carries the gradient by the inputs; the second output is that gradient, and carries none.
std::vector<Grad> CtcLossGradient(GradContext& g) {
  const Value rows = g.Apply("ExpandDims", {g.Dy(0), g.ConstInt(-1)});
  return {g.Mul(g.Y(1), rows), Grad::None(), Grad::None(), Grad::None()};
}

/// The labels of each path as a sparse tensor, and the log probabilities [batch, paths].
Status CtcDecoderShape(ShapeContext& c) {
  WEIR_ASSIGN(const PartialShape inputs, c.WithRank(0, 3));
  WEIR_ASSIGN(const PartialShape lengths, c.WithRank(1, 1));
  WEIR_ASSIGN(const int64_t batch, MergeDim(inputs.dim(1), lengths.dim(0)));
  const int paths = (c.num_outputs() - 1) / 3;
  for (int i = 0; i < paths; ++i) {
    c.set_output(i, PartialShape::Of({-1, 2}));
    c.set_output(paths + i, VectorOf(-1));
    c.set_output(2 * paths + i, VectorOf(2));
  }
  c.set_output(3 * paths, PartialShape::Of({batch, paths}));
  return Status();
}

OpBuilder Labelling(OpRegistry& ops, std::string_view name) { return ops.Declare(name).Is(Category::kNeural); }

}  // namespace

void DeclareCtc(OpRegistry& ops) {
  Labelling(ops, "CTCLoss")
      .In("inputs: T")
      .In("labels_indices: int64")
      .In("labels_values: int32")
      .In("sequence_length: int32")
      .Out("loss: T")
      .Out("gradient: T")
      .Attr("ctc_merge_repeated: bool = true")
      .Attr("ignore_longer_outputs_than_inputs: bool = false")
      .Attr("preprocess_collapse_repeated: bool = false")
      .Attr("T: {float, double} = DT_FLOAT")
      .Shape(CtcLossShape)
      .Grad(CtcLossGradient)
      .Doc(
          "The negative log probability of each labelling summed over all alignments, and its gradient by inputs "
          "[time, batch, classes], which are logits; the last class is the blank.");
  Labelling(ops, "CTCGreedyDecoder")
      .In("inputs: T")
      .In("sequence_length: int32")
      .Out("decoded_indices: int64")
      .Out("decoded_values: int64")
      .Out("decoded_shape: int64")
      .Out("log_probability: T")
      .Attr("blank_index: int = -1")
      .Attr("merge_repeated: bool = false")
      .Attr("T: {float, double} = DT_FLOAT")
      .Shape(CtcDecoderShape)
      .NoGradient("TensorFlow passes none through decoding")
      .Doc("The most probable class of each step without blanks, and the negated sum of its logits.");
  Labelling(ops, "CTCBeamSearchDecoder")
      .In("inputs: T")
      .In("sequence_length: int32")
      .Out("decoded_indices: top_paths * int64")
      .Out("decoded_values: top_paths * int64")
      .Out("decoded_shape: top_paths * int64")
      .Out("log_probability: T")
      .Attr("beam_width: int >= 1")
      .Attr("merge_repeated: bool = true")
      .Attr("top_paths: int >= 1")
      .Attr("T: {float, double} = DT_FLOAT")
      .Shape(CtcDecoderShape)
      .NoGradient("TensorFlow passes none through decoding")
      .Doc(
          "The top_paths most probable labellings that a beam search of the given width finds, and their log "
          "probabilities.");
}

}  // namespace weir::ops
