// Replicas that train in step: their gradients are averaged before they are applied.
#ifndef WEIR_CORE_CLIENT_TRAINING_SYNC_REPLICAS_H_
#define WEIR_CORE_CLIENT_TRAINING_SYNC_REPLICAS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/client/containers/accumulator.h"
#include "core/client/training/monitored_session.h"
#include "core/client/training/moving_averages.h"
#include "core/client/training/optimizer.h"
#include "core/client/training/queue_runner.h"

namespace weir {

struct SyncReplicasOptions {
  int replicas_to_aggregate = 1;                                     // gradients for one update
  int total_num_replicas = 0;                                        // more than those: backup workers; 0 = as many
  std::shared_ptr<ExponentialMovingAverage> variable_averages = {};  // updated after each update, if there are some
  std::vector<Variable> variables_to_average = {};
  std::string name = "sync_replicas";
};

/// Wraps an optimizer. Each replica adds its gradients to accumulators and waits for a token; the chief's queue runner
/// applies the mean once there are `replicas_to_aggregate`, counts the global step and gives a token to each replica.
/// Gradients of an earlier step than the token's are dropped. Names are TensorFlow's: `sync_rep_local_step`,
/// `sync_token_q`, `sync_replicas/…`.
class SyncReplicasOptimizer {
 public:
  /// `optimizer` must outlive this one.
  SyncReplicasOptimizer(Optimizer& optimizer, SyncReplicasOptions options);

  Result<std::vector<GradientAndVariable>> ComputeGradients(const Output& loss,
                                                            const std::vector<Variable>& variables = {},
                                                            Where where = Where::current());
  /// Returns the step of a replica: it ends once its token is there. InvalidArgument "Must supply at least one
  /// variable", "Global step is required to check staleness".
  Result<Operation> ApplyGradients(const std::vector<GradientAndVariable>& pairs, const MinimizeOptions& options = {},
                                   Where where = Where::current());
  /// Both. After an error, which is the graph's, the operation does not exist.
  Operation Minimize(const Output& loss, const MinimizeOptions& options = {}, Where where = Where::current());

  Variable GetSlot(const Variable& variable, std::string_view slot) const { return optimizer_.GetSlot(variable, slot); }
  std::vector<std::string> SlotNames() const { return optimizer_.SlotNames(); }
  const std::vector<Variable>& variables() const { return optimizer_.variables(); }

  /// Of the chief. FailedPrecondition "Should be called after apply_gradients()."
  Result<QueueRunner> GetChiefQueueRunner() const;
  /// Fills the token queue, so that the first steps can run; -1: `replicas_to_aggregate` tokens. FailedPrecondition
  /// "get_init_tokens_op() should be called after apply_gradients()."; InvalidArgument "Too few tokens to finish the
  /// first step: 1 (given) vs 3 (needed)".
  Result<Operation> GetInitTokensOp(int num_tokens = -1, Where where = Where::current()) const;
  /// Runs of every new session: by the chief `chief_init_op`, else `local_step_init_op`.
  const Operation& chief_init_op() const { return chief_init_op_; }
  const Operation& local_step_init_op() const { return local_step_init_op_; }
  const Output& ready_for_local_init_op() const { return ready_for_local_init_op_; }

  /// For a MonitoredSession: initializes the local step, and for the chief fills the queue and starts its runner.
  std::shared_ptr<SessionRunHook> MakeSessionRunHook(bool is_chief, int num_tokens = -1) const;

 private:
  struct Gathered {
    std::vector<Operation> applied;  // the gradients of this replica
    std::vector<GradientAndVariable> means;
    std::vector<std::pair<std::shared_ptr<ConditionalAccumulatorBase>, std::string>> accumulators;  // and devices
  };
  Gathered Accumulate(const std::vector<GradientAndVariable>& pairs, Graph& graph, const Where& where) const;
  Operation AddTokens(const Output& step, int64_t count, const Where& where) const;

  Optimizer& optimizer_;
  const SyncReplicasOptions options_;
  const int total_;
  Variable local_step_, global_step_;
  std::shared_ptr<FIFOQueue> tokens_;
  std::shared_ptr<QueueRunner> runner_;
  Operation chief_init_op_, local_step_init_op_;
  Output ready_for_local_init_op_;
};

}  // namespace weir

#endif  // WEIR_CORE_CLIENT_TRAINING_SYNC_REPLICAS_H_
