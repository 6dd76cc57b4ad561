// Embeddings and the sampled losses of large vocabularies, under TensorFlow's names.
#ifndef WEIR_CORE_CLIENT_OPS_EMBEDDING_OPS_H_
#define WEIR_CORE_CLIENT_OPS_EMBEDDING_OPS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "core/client/ops/ops.h"
#include "core/client/variables/variable.h"

namespace weir {

/// Which shard has a row: kMod: row i is row i / n of shard i % n. kDiv: shards hold contiguous rows, and the first
/// size % n of them one row more.
enum class PartitionStrategy { kMod, kDiv };
struct EmbeddingOptions {
  PartitionStrategy partition_strategy = PartitionStrategy::kMod;
  std::optional<Operand> max_norm = {};  // longer rows are scaled to this norm
  std::string_view name = "embedding_lookup";
};

/// Rows of a table at `ids` (int32 or int64, any shape): [ids…, row…]. Gradients are rows, not the whole table.
Output EmbeddingLookup(const Operand& params, const Operand& ids, const EmbeddingOptions& options = {},
                       Where where = Where::current());
/// Of a table in shards, or the parts of a partitioned variable.
Output EmbeddingLookup(const std::vector<Operand>& params, const Operand& ids, const EmbeddingOptions& options = {},
                       Where where = Where::current());
Output EmbeddingLookup(const Variable& params, const Operand& ids, const EmbeddingOptions& options = {},
                       Where where = Where::current());

/// `t` scaled so that its norm over `axes` is at most clip_norm.
Output ClipByNorm(const Operand& t, const Operand& clip_norm, const std::optional<Axes>& axes = {},
                  std::string_view name = "clip_by_norm", Where where = Where::current());

/// Classes drawn from a distribution, and how often each is expected among them.
struct SampledCandidates {
  Output sampled;           // int64 [num_sampled]
  Output true_expected;     // float [batch, num_true]
  Output sampled_expected;  // float [num_sampled]
};
struct SamplerOptions {
  bool unique = true;  // no class twice
  int64_t seed = -1;
  std::string_view name = {};
};
/// true_classes: int64 [batch, num_true]. P(class) = log((class + 2) / (class + 1)) / log(range_max + 1): for classes
/// in the order of falling frequency.
SampledCandidates LogUniformCandidateSampler(const Operand& true_classes, int64_t num_true, int64_t num_sampled,
                                             int64_t range_max, const SamplerOptions& options = {},
                                             Where where = Where::current());
SampledCandidates UniformCandidateSampler(const Operand& true_classes, int64_t num_true, int64_t num_sampled,
                                          int64_t range_max, const SamplerOptions& options = {},
                                          Where where = Where::current());

struct SampledLossOptions {
  int64_t num_true = 1;                                  // true classes of each example
  std::optional<SampledCandidates> sampled_values = {};  // empty = LogUniformCandidateSampler
  bool remove_accidental_hits = false;                   // sampled classes that are true ones do not count
  PartitionStrategy partition_strategy = PartitionStrategy::kMod;
  int64_t seed = -1;
  std::string_view name = {};
};

/// Noise-contrastive loss of each example: [batch]. weights: [num_classes, dim] or its shards, biases: [num_classes],
/// labels: int64 [batch, num_true], inputs: [batch, dim]. Source: Gutmann and Hyvärinen 2010.
Output NceLoss(const std::vector<Operand>& weights, const Operand& biases, const Operand& labels, const Operand& inputs,
               int64_t num_sampled, int64_t num_classes, const SampledLossOptions& options = {},
               Where where = Where::current());
/// Softmax cross entropy over the true and the sampled classes. Source: Jean et al. 2014, section 3.
Output SampledSoftmaxLoss(const std::vector<Operand>& weights, const Operand& biases, const Operand& labels,
                          const Operand& inputs, int64_t num_sampled, int64_t num_classes,
                          const SampledLossOptions& options = {}, Where where = Where::current());

using LossFunction = std::function<Output(const Output& labels, const Output& logits)>;
struct SequenceLossOptions {
  bool average_across_timesteps = true;
  LossFunction softmax_loss_function = {};  // empty = SparseSoftmaxCrossEntropyWithLogits
  std::string_view name = "sequence_loss_by_example";
};
/// The weighted log-perplexity of each example: [batch]. For each time step logits: [batch, classes], targets: int
/// [batch], weights: float [batch].
Output SequenceLossByExample(const std::vector<Operand>& logits, const std::vector<Operand>& targets,
                             const std::vector<Operand>& weights, const SequenceLossOptions& options = {},
                             Where where = Where::current());

}  // namespace weir

#endif  // WEIR_CORE_CLIENT_OPS_EMBEDDING_OPS_H_
