// Candidate samplers: classes drawn for losses over very many classes.
#include "core/op/shape_context.h"
#include "core/ops/families.h"
#include "core/ops/shape_algebra.h"

namespace weir::ops {
namespace {

using op::Category;
using op::OpBuilder;
using op::OpRegistry;
using op::ShapeContext;

/// [num_sampled] classes, the expected counts [batch, num_true] of the true ones and [num_sampled] of those.
Status SamplerShape(ShapeContext& c) {
  WEIR_ASSIGN(const int64_t num_true, c.attrs().Int("num_true"));
  WEIR_ASSIGN(const int64_t num_sampled, c.attrs().Int("num_sampled"));
  WEIR_ASSIGN(const PartialShape classes, c.WithRank(0, 2));
  const int64_t counts[] = {classes.dim(0), num_true};
  WEIR_ASSIGN(PartialShape true_counts, PartialShape::Make(counts));
  c.set_output(0, VectorOf(num_sampled));
  c.set_output(1, std::move(true_counts));
  c.set_output(2, VectorOf(num_sampled));
  return Status();
}

Status HitsShape(ShapeContext& c) {
  WEIR_ASSIGN(const int64_t num_true, c.attrs().Int("num_true"));
  WEIR_ASSIGN(const PartialShape classes, c.WithRank(0, 2));
  if (num_true >= 0) WEIR_TRY(ExpectDim(classes.dim(1), num_true));
  WEIR_TRY(c.WithRank(1, 1).status());
  for (int i = 0; i < 3; ++i) c.set_output(i, VectorOf(-1));
  return Status();
}

OpBuilder Sampler(OpRegistry& ops, std::string_view name) { return ops.Declare(name).Is(Category::kRandom); }

void DeclareFormulaSamplers(OpRegistry& ops) {
  Sampler(ops, "UniformCandidateSampler")
      .In("true_classes: int64")
      .Out("sampled_candidates: int64")
      .Out("true_expected_count: float")
      .Out("sampled_expected_count: float")
      .Attr("num_sampled: int >= 1")
      .Attr("num_true: int >= 1")
      .Attr("range_max: int >= 1")
      .Attr("seed: int = 0")
      .Attr("seed2: int = 0")
      .Attr("unique: bool")
      .Stateful()
      .Shape(SamplerShape)
      .NoGradient("its inputs are class numbers, which carry no gradient")
      .Doc("Classes uniform in [0, range_max), and the expected number of each class in such a sample.");
  Sampler(ops, "LogUniformCandidateSampler")
      .In("true_classes: int64")
      .Out("sampled_candidates: int64")
      .Out("true_expected_count: float")
      .Out("sampled_expected_count: float")
      .Attr("num_sampled: int >= 1")
      .Attr("num_true: int >= 1")
      .Attr("range_max: int >= 1")
      .Attr("seed: int = 0")
      .Attr("seed2: int = 0")
      .Attr("unique: bool")
      .Stateful()
      .Shape(SamplerShape)
      .NoGradient("its inputs are class numbers, which carry no gradient")
      .Doc("Classes in [0, range_max) with the probabilities log((c + 2) / (c + 1)) / log(range_max + 1).");
}

void DeclareLearnedSamplers(OpRegistry& ops) {
  Sampler(ops, "LearnedUnigramCandidateSampler")
      .In("true_classes: int64")
      .Out("sampled_candidates: int64")
      .Out("true_expected_count: float")
      .Out("sampled_expected_count: float")
      .Attr("num_sampled: int >= 1")
      .Attr("num_true: int >= 1")
      .Attr("range_max: int >= 1")
      .Attr("seed: int = 0")
      .Attr("seed2: int = 0")
      .Attr("unique: bool")
      .Stateful()
      .Shape(SamplerShape)
      .NoGradient("its inputs are class numbers, which carry no gradient")
      .Doc("Classes in [0, range_max) with probabilities learned from true_classes of earlier calls: 1 + their count.");
  Sampler(ops, "ThreadUnsafeUnigramCandidateSampler")
      .In("true_classes: int64")
      .Out("sampled_candidates: int64")
      .Out("true_expected_count: float")
      .Out("sampled_expected_count: float")
      .Attr("num_sampled: int >= 1")
      .Attr("num_true: int >= 1")
      .Attr("range_max: int >= 1")
      .Attr("seed: int = 0")
      .Attr("seed2: int = 0")
      .Attr("unique: bool")
      .Stateful()
      .Shape(SamplerShape)
      .NoGradient("its inputs are class numbers, which carry no gradient")
      .Doc("Classes in [0, range_max) with probabilities learned from true_classes of earlier calls: 1 + their count.");
}

void DeclareListedSamplers(OpRegistry& ops) {
  Sampler(ops, "FixedUnigramCandidateSampler")
      .In("true_classes: int64")
      .Out("sampled_candidates: int64")
      .Out("true_expected_count: float")
      .Out("sampled_expected_count: float")
      .Attr("distortion: float = 1")
      .Attr("num_reserved_ids: int = 0")
      .Attr("num_sampled: int >= 1")
      .Attr("num_shards: int >= 1 = 1")
      .Attr("num_true: int >= 1")
      .Attr("range_max: int >= 1")
      .Attr("seed: int = 0")
      .Attr("seed2: int = 0")
      .Attr("shard: int >= 0 = 0")
      .Attr("unigrams: list(float) = []")
      .Attr("unique: bool")
      .Attr("vocab_file: string = ''")
      .Stateful()
      .Shape(SamplerShape)
      .NoGradient("its inputs are class numbers, which carry no gradient")
      .Doc(
          "Classes in [0, range_max) with the probabilities of `unigrams` or of the last column of `vocab_file`, each "
          "to the power of `distortion`.");
  Sampler(ops, "AllCandidateSampler")
      .In("true_classes: int64")
      .Out("sampled_candidates: int64")
      .Out("true_expected_count: float")
      .Out("sampled_expected_count: float")
      .Attr("num_sampled: int >= 1")
      .Attr("num_true: int >= 1")
      .Attr("seed: int = 0")
      .Attr("seed2: int = 0")
      .Attr("unique: bool")
      .Stateful()
      .Shape(SamplerShape)
      .NoGradient("its inputs are class numbers, which carry no gradient")
      .Doc("All classes 0 … num_sampled - 1.");
  Sampler(ops, "ComputeAccidentalHits")
      .In("true_classes: int64")
      .In("sampled_candidates: int64")
      .Out("indices: int32")
      .Out("ids: int64")
      .Out("weights: float")
      .Attr("num_true: int")
      .Attr("seed: int = 0")
      .Attr("seed2: int = 0")
      .Shape(HitsShape)
      .NoGradient("its inputs are class numbers, which carry no gradient")
      .Doc(
          "Places where a sampled class is a true one: rows of true_classes, positions in sampled_candidates, and "
          "weights that are the least float.");
}

}  // namespace

void DeclareSamplers(OpRegistry& ops) {
  DeclareFormulaSamplers(ops);
  DeclareLearnedSamplers(ops);
  DeclareListedSamplers(ops);
}

}  // namespace weir::ops
