#include "core/client/ops/embedding_ops.h"

#include <algorithm>
#include <string>

#include "core/base/errors.h"
#include "core/client/graph/attribute_scopes.h"
#include "core/client/graph/graph_internal.h"
#include "core/client/graph/scopes.h"
#include "core/client/ops/array_extra_ops.h"
#include "core/client/ops/array_ops.h"
#include "core/client/ops/build_op.h"
#include "core/client/ops/nn_ops.h"

namespace weir {
namespace {

/// Rows as long as max_norm at most: over all axes behind those of the ids.
Output Clipped(const Output& rows, const Output& ids, const EmbeddingOptions& options) {
  if (!options.max_norm || !rows.exists()) return rows;
  std::vector<int> axes;
  for (int axis = ids.shape().rank(); axis < rows.shape().rank(); ++axis) axes.push_back(axis);
  return ClipByNorm(rows, *options.max_norm, axes);
}

struct Address {
  Output shard;
  Output row;
};

/// Where the rows `ids` [n] of `shards` are.
Address AddressOf(const std::vector<Operand>& shards, const Output& ids, PartitionStrategy strategy) {
  const auto count = static_cast<int>(shards.size());
  if (strategy == PartitionStrategy::kMod) {
    const Output shard = FloorMod(ids, count, "mod");
    return {shard, FloorDiv(ids, count)};
  }
  std::vector<Operand> heights;
  int64_t total = 0;
  for (const Operand& shard : shards) {
    const int64_t height = shard.shape().rank() > 0 ? shard.shape().dim(0) : -1;
    total = height < 0 || total < 0 ? -1 : total + height;
    if (height < 0) heights.push_back(ShapeOf(shard, DType::kInt32, "Shape", shard.where())[0]);
    if (height >= 0) heights.emplace_back(static_cast<int32_t>(height));
  }
  Output rows;
  if (total >= 0) {
    rows = Operand(total).In(*ids.graph(), BaseType(ids.dtype()));
  } else {
    rows = Cast(ReduceSum(Stack(heights)), BaseType(ids.dtype()));
  }
  const Output least = FloorDiv(rows, count), larger = FloorMod(rows, count, "mod");
  const Output most = least + 1;
  const Output by_most = FloorDiv(ids, most);
  const Output behind = ids - larger;
  const Output shard = Maximum(by_most, FloorDiv(behind, least));
  const Output is_larger = Less(shard, larger);
  const Output in_larger = FloorMod(ids, least + 1, "mod");
  const Output after = ids - larger;
  return {shard, Select(is_larger, in_larger, FloorMod(after, least, "mod"))};
}

List<Output> PartitionOf(const Output& data, const Output& shard, int64_t count) {
  return OutputsOr(BuildOp("DynamicPartition", {data, shard}, {{"num_partitions", count}}), count);
}

Output FromShards(const std::vector<Operand>& shards, const Output& ids, const EmbeddingOptions& options,
                  const std::string& path) {
  const auto count = static_cast<int64_t>(shards.size());
  const Output flat = Reshape(ids, {-1});
  const Output positions = Range(0, SizeOf(flat));
  const Address at = AddressOf(shards, flat, options.partition_strategy);
  const Output shard = Cast(at.shard, DType::kInt32);
  const List<Output> rows = PartitionOf(at.row, shard, count), where = PartitionOf(positions, shard, count);
  std::vector<Operand> inputs(where.begin(), where.end());
  for (size_t i = 0; i < shards.size(); ++i) {
    const ColocateWith beside(shards[i].In(*ids.graph()), OuterColocation::kKeep, *ids.graph());
    inputs.emplace_back(Gather(shards[i], rows[i]));
  }
  const Output stitched = BuildOp("ParallelDynamicStitch", inputs, {{"N", count}}, path).output(0);
  const PartialShape table = shards[0].shape();
  if (!table.has_rank()) return Output::Absent(*ids.graph());
  std::vector<int> inner;
  for (int axis = 1; axis < table.rank(); ++axis) inner.push_back(static_cast<int>(table.dim(axis)));
  const Output row = std::ranges::any_of(inner, [](int extent) { return extent < 0; })
                         ? ShapeOf(shards[0], DType::kInt32)[Span{1}]
                         : Operand(Tensor::Vector<int32_t>({inner.begin(), inner.end()})).In(*ids.graph());
  const Output all = Reshape(stitched, Concat({ShapeOf(ids), row}, 0));
  return Clipped(all, ids, options);
}

/// The classes of each example side by side, the true ones first: logits, and the share of each in the truth.
struct Sampled {
  Output logits;  // [batch, num_true + num_sampled]
  Output labels;
};

/// A shape: `front`, then `extents`.
Output Behind(const Literal& front, const Output& extents) { return Concat({front, extents}, 0); }

/// Sums of the rows of a matrix: its product with ones.
Output SumOfRows(const Output& x) {
  const Output columns = ShapeOf(x)[1];
  const Output ones = Fill(Stack({columns, 1}), Operand(1.0).In(*x.graph(), BaseType(x.dtype())), "ones");
  return Reshape(MatMul(x, ones), {-1});
}

/// Adds a large negative number to the logits of sampled classes that are true ones.
Output WithoutHits(const Output& logits, const Output& labels, const SampledCandidates& sampled, int64_t num_true) {
  const List<Output> hits =
      OutputsOr(BuildOp("ComputeAccidentalHits", {labels, sampled.sampled}, {{"num_true", num_true}}), 3);
  const Output rows = Reshape(hits[0], {-1, 1});
  const Output columns = Reshape(Cast(hits[1], DType::kInt32), {-1, 1});
  const Output places = Concat({rows, columns}, 1, "sparse_indices");
  const Output extents = ShapeOf(logits);
  const Output weights = Cast(hits[2], BaseType(logits.dtype()));
  return logits + SparseToDense(places, extents, weights, 0.0, false);
}

Sampled SampledLogits(const std::vector<Operand>& weights, const Operand& biases, const Operand& all_labels,
                      const Operand& examples, int64_t num_sampled, int64_t num_classes,
                      const SampledLossOptions& options) {
  Graph& graph = GraphOf(weights);
  const Output labels = Cast(all_labels.In(graph, DType::kInt64, "labels"), DType::kInt64);
  const Output inputs = examples.In(graph);
  const Output flat = Reshape(labels, {-1});
  const SampledCandidates candidates =
      options.sampled_values
          ? *options.sampled_values
          : LogUniformCandidateSampler(labels, options.num_true, num_sampled, num_classes, {.seed = options.seed});
  const SampledCandidates fixed = {StopGradient(candidates.sampled), StopGradient(candidates.true_expected),
                                   StopGradient(candidates.sampled_expected)};
  const Output ids = Concat({flat, Cast(fixed.sampled, DType::kInt64)}, 0);
  EmbeddingOptions lookup;
  lookup.partition_strategy = options.partition_strategy;
  const Output all_w = EmbeddingLookup(weights, ids, lookup);
  const Output count = ShapeOf(flat)[0];
  const Output true_w = Slice(all_w, {0, 0}, Stack({count, -1}));
  const Output sampled_w = Slice(all_w, Stack({ShapeOf(flat)[0], 0}), {-1, -1});
  Output sampled = MatMul(inputs, sampled_w, {.transpose_b = true});
  const Output all_b = EmbeddingLookup(biases, ids, lookup);
  const Output true_b = Slice(all_b, {0}, ShapeOf(flat));
  const Output sampled_b = Slice(all_b, ShapeOf(flat), {-1});
  const auto num_true = static_cast<int>(options.num_true);
  const Output width = ShapeOf(true_w)[Span{1, 2}];
  const Output products = Multiply(ExpandDims(inputs, 1), Reshape(true_w, Behind({-1, num_true}, width)));
  const Output dots = Reshape(SumOfRows(Reshape(products, Behind({-1}, width))), {-1, num_true});
  Output truth = dots + Reshape(true_b, {-1, num_true});
  sampled = sampled + sampled_b;
  if (options.remove_accidental_hits) sampled = WithoutHits(sampled, labels, fixed, options.num_true);
  truth = truth - Log(fixed.true_expected);
  sampled = sampled - Log(fixed.sampled_expected);
  const Output share = OnesLike(truth) / static_cast<double>(num_true);
  return {Concat({truth, sampled}, 1), Concat({share, ZerosLike(sampled)}, 1)};
}

SampledCandidates SampledBy(const char* op, const Operand& true_classes, int64_t num_true, int64_t num_sampled,
                            int64_t range_max, const SamplerOptions& options, const Where& where) {
  Graph& graph = GraphOf(true_classes);
  const SeedPair seeds = OpSeeds(graph, options.seed);
  const Operation sampler = BuildOp(op, {true_classes},
                                    {{"num_true", num_true},
                                     {"num_sampled", num_sampled},
                                     {"unique", options.unique},
                                     {"range_max", range_max},
                                     {"seed", seeds.seed},
                                     {"seed2", seeds.seed2}},
                                    options.name, where);
  const List<Output> outputs = OutputsOr(sampler, 3);
  return {outputs[0], outputs[1], outputs[2]};
}

}  // namespace

Output EmbeddingLookup(const std::vector<Operand>& params, const Operand& ids, const EmbeddingOptions& options,
                       Where where) {
  std::vector<Operand> all = params;
  all.push_back(ids);
  Graph& graph = GraphOf(all);
  if (params.empty()) {
    (void)graph.Fail(InvalidArgument("Need at least one param ({})", Format(where)));
    return Output::Absent(graph);
  }
  const AsDefault in(graph);
  const Origin origin(where, graph);
  const NameScope scope(options.name.empty() ? "embedding_lookup" : options.name, graph);
  const Output rows = ids.In(graph, DType::kInvalid, "ids");
  if (params.size() > 1) return FromShards(params, rows, options, scope.path());
  const ColocateWith beside(params[0].In(graph), OuterColocation::kKeep, graph);
  return Identity(Clipped(Gather(params[0], rows, 0, scope.path()), rows, options));
}

Output EmbeddingLookup(const Operand& params, const Operand& ids, const EmbeddingOptions& options, Where where) {
  return EmbeddingLookup(std::vector<Operand>{params}, ids, options, where);
}

Output EmbeddingLookup(const Variable& params, const Operand& ids, const EmbeddingOptions& options, Where where) {
  if (!params.is_partitioned()) return EmbeddingLookup(std::vector<Operand>{params}, ids, options, where);
  return EmbeddingLookup(std::vector<Operand>(params.parts().begin(), params.parts().end()), ids, options, where);
}

Output ClipByNorm(const Operand& t, const Operand& clip_norm, const std::optional<Axes>& axes, std::string_view name,
                  Where where) {
  Graph& graph = GraphOf({t, clip_norm});
  const AsDefault in(graph);
  const Origin origin(where, graph);
  const NameScope scope(name.empty() ? "clip_by_norm" : name, graph);
  const Output values = t.In(graph);
  const Output squares = ReduceSum(values * values, axes.value_or(Axes()), {.keepdims = true});
  const Output positive = squares > 0.0;
  const Output safe = Select(positive, squares, OnesLike(squares));  // the gradient of a root is infinite at 0
  const Output norm = Select(positive, Sqrt(safe), squares);
  const Output scaled = values * clip_norm;
  return Identity(Divide(scaled, Maximum(norm, clip_norm)), scope.path());
}

SampledCandidates LogUniformCandidateSampler(const Operand& true_classes, int64_t num_true, int64_t num_sampled,
                                             int64_t range_max, const SamplerOptions& options, Where where) {
  return SampledBy("LogUniformCandidateSampler", true_classes, num_true, num_sampled, range_max, options, where);
}

SampledCandidates UniformCandidateSampler(const Operand& true_classes, int64_t num_true, int64_t num_sampled,
                                          int64_t range_max, const SamplerOptions& options, Where where) {
  return SampledBy("UniformCandidateSampler", true_classes, num_true, num_sampled, range_max, options, where);
}

Output NceLoss(const std::vector<Operand>& weights, const Operand& biases, const Operand& labels, const Operand& inputs,
               int64_t num_sampled, int64_t num_classes, const SampledLossOptions& options, Where where) {
  std::vector<Operand> all = weights;
  all.insert(all.end(), {biases, labels, inputs});
  Graph& graph = GraphOf(all);
  const AsDefault in(graph);
  const Origin origin(where, graph);
  Sampled sampled;
  {
    const NameScope scope(options.name.empty() ? "nce_loss" : options.name, graph);
    sampled = SampledLogits(weights, biases, labels, inputs, num_sampled, num_classes, options);
  }
  return SumOfRows(SigmoidCrossEntropyWithLogits(sampled.labels, sampled.logits, "sampled_losses"));
}

Output SampledSoftmaxLoss(const std::vector<Operand>& weights, const Operand& biases, const Operand& labels,
                          const Operand& inputs, int64_t num_sampled, int64_t num_classes,
                          const SampledLossOptions& options, Where where) {
  std::vector<Operand> all = weights;
  all.insert(all.end(), {biases, labels, inputs});
  Graph& graph = GraphOf(all);
  const AsDefault in(graph);
  const Origin origin(where, graph);
  Sampled sampled;
  {
    const NameScope scope(options.name.empty() ? "sampled_softmax_loss" : options.name, graph);
    sampled = SampledLogits(weights, biases, labels, inputs, num_sampled, num_classes, options);
    sampled.labels = StopGradient(sampled.labels, "labels_stop_gradient");
  }
  return SoftmaxCrossEntropyWithLogits(sampled.labels, sampled.logits);
}

Output SequenceLossByExample(const std::vector<Operand>& logits, const std::vector<Operand>& targets,
                             const std::vector<Operand>& weights, const SequenceLossOptions& options, Where where) {
  std::vector<Operand> all = logits;
  all.insert(all.end(), targets.begin(), targets.end());
  all.insert(all.end(), weights.begin(), weights.end());
  Graph& graph = GraphOf(all);
  if (logits.empty() || targets.size() != logits.size() || weights.size() != logits.size()) {
    (void)graph.Fail(InvalidArgument("Lengths of logits, weights, and targets must be the same {}, {}, {}. ({})",
                                     logits.size(), weights.size(), targets.size(), Format(where)));
    return Output::Absent(graph);
  }
  const AsDefault in(graph);
  const Origin origin(where, graph);
  const NameScope scope(options.name.empty() ? "sequence_loss_by_example" : options.name, graph);
  std::vector<Operand> losses, shares;
  for (size_t step = 0; step < logits.size(); ++step) {
    const Output scores = logits[step].In(graph);
    const Output classes = Reshape(targets[step], {-1});
    const Output loss = options.softmax_loss_function ? options.softmax_loss_function(classes, scores)
                                                      : SparseSoftmaxCrossEntropyWithLogits(classes, scores);
    const Output weight = weights[step].In(graph, BaseType(scores.dtype()));
    losses.emplace_back(loss * weight);
    shares.emplace_back(weight);
  }
  const Output sum = AddN(losses);
  if (!options.average_across_timesteps) return sum;
  const Output total = AddN(shares) + 1e-12;  // examples without any weight have the loss 0
  return sum / total;
}

}  // namespace weir
