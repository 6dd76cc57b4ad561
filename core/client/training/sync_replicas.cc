#include "core/client/training/sync_replicas.h"

#include <algorithm>
#include <optional>

#include "core/base/errors.h"
#include "core/client/graph/attribute_scopes.h"
#include "core/client/graph/graph_internal.h"
#include "core/client/graph/scopes.h"
#include "core/client/ops/build_op.h"
#include "core/client/ops/ops.h"

namespace weir {
namespace {

Output ZeroStep(DType dtype) {
  return Constant(dtype == DType::kInt32 ? Tensor::Scalar<int32_t>(0) : Tensor::Scalar<int64_t>(0));
}

/// What the hook needs of its optimizer.
class SyncReplicasHook : public SessionRunHook {
 public:
  SyncReplicasHook(SyncReplicasOptimizer optimizer, bool is_chief, int num_tokens)
      : optimizer_(std::move(optimizer)), is_chief_(is_chief), num_tokens_(num_tokens) {}

  Status Begin(Graph&) override {
    if (!optimizer_.local_step_init_op().exists()) {
      return FailedPrecondition("SyncReplicasOptimizer.apply_gradient should be called before using the hook.");
    }
    init_ = is_chief_ ? optimizer_.chief_init_op() : optimizer_.local_step_init_op();
    if (!is_chief_ || runner_) return Status();
    WEIR_ASSIGN(runner_, optimizer_.GetChiefQueueRunner());
    WEIR_ASSIGN(tokens_, optimizer_.GetInitTokensOp(num_tokens_));
    return Status();
  }

  Status AfterCreateSession(Session& session, const Coordinator& coordinator) override {
    const char* const text = "Model is not ready for SyncReplicasOptimizer local init.";
    WEIR_ASSIGN(const Readiness ready, ReadyToRun(optimizer_.ready_for_local_init_op(), session, text));
    if (!ready.ready) {
      return FailedPrecondition(
          "Init operations did not make model ready for SyncReplicasOptimizer local_init. Init op: {}, error: {}",
          init_.name(), ready.why);
    }
    WEIR_TRY(session.Run(init_).status());
    if (!is_chief_) return Status();
    WEIR_TRY(session.Run(tokens_).status());
    runner_->CreateThreads(session, &coordinator);
    return Status();
  }

 private:
  const SyncReplicasOptimizer optimizer_;
  const bool is_chief_;
  const int num_tokens_;
  Operation init_, tokens_;
  std::optional<QueueRunner> runner_;
};

}  // namespace

SyncReplicasOptimizer::SyncReplicasOptimizer(Optimizer& optimizer, SyncReplicasOptions options)
    : optimizer_(optimizer),
      options_(std::move(options)),
      total_(options_.total_num_replicas > 0 ? options_.total_num_replicas : options_.replicas_to_aggregate) {}

Result<std::vector<GradientAndVariable>> SyncReplicasOptimizer::ComputeGradients(const Output& loss,
                                                                                 const std::vector<Variable>& variables,
                                                                                 Where where) {
  return optimizer_.ComputeGradients(loss, variables, where);
}

SyncReplicasOptimizer::Gathered SyncReplicasOptimizer::Accumulate(const std::vector<GradientAndVariable>& pairs,
                                                                  Graph& graph, const Where& where) const {
  Gathered gathered;
  for (const auto& [gradient, variable] : pairs) {
    const std::string device = variable.op().device();
    const DeviceScope there(device, graph);
    if (!gradient.exists()) {
      gathered.means.emplace_back(gradient, variable);
      continue;
    }
    AccumulatorOptions options;
    options.shared_name = variable.name() + "/grad_accum";
    const DType dtype = BaseType(gradient.values.dtype());
    if (gradient.sparse()) {
      options.shape = PartialShape(Shape());
      const SparseConditionalAccumulator accumulator(dtype, options, where);
      gathered.applied.push_back(accumulator.ApplyIndexedSlicesGrad(gradient, local_step_, {}, where));
      Gradient mean = accumulator.TakeIndexedSlicesGrad(options_.replicas_to_aggregate, {}, where);
      gathered.means.emplace_back(std::move(mean), variable);
      gathered.accumulators.emplace_back(std::make_shared<SparseConditionalAccumulator>(accumulator), device);
    } else {
      options.shape = variable.shape();
      const ConditionalAccumulator accumulator(dtype, options, where);
      gathered.applied.push_back(accumulator.ApplyGrad(gradient.values, local_step_, {}, where));
      Gradient mean;
      mean.values = accumulator.TakeGrad(options_.replicas_to_aggregate, {}, where);
      gathered.means.emplace_back(std::move(mean), variable);
      gathered.accumulators.emplace_back(std::make_shared<ConditionalAccumulator>(accumulator), device);
    }
  }
  return gathered;
}

Operation SyncReplicasOptimizer::AddTokens(const Output& step, int64_t count, const Where& where) const {
  const Output tokens = Fill(Tensor::Vector<int32_t>({static_cast<int32_t>(count)}), step, "Fill", where);
  return tokens_->EnqueueMany(tokens, {}, where);
}

Result<Operation> SyncReplicasOptimizer::ApplyGradients(const std::vector<GradientAndVariable>& pairs,
                                                        const MinimizeOptions& options, Where where) {
  if (pairs.empty()) return InvalidArgument("Must supply at least one variable ({})", Format(where));
  Graph& graph = pairs[0].second.Home();
  if (!options.global_step.exists()) {
    return Internals(graph).Tell(InvalidArgument("Global step is required to check staleness ({})", Format(where)));
  }
  if (options_.replicas_to_aggregate < 1) {
    return Internals(graph).Tell(InvalidArgument("replicas_to_aggregate must be positive, got {} ({})",
                                                 options_.replicas_to_aggregate, Format(where)));
  }
  const AsDefault in(graph);
  global_step_ = options.global_step;
  {
    // In the task of the replica, wherever variables go otherwise.
    const ColocateWith beside(NoOp("NoOp", where), OuterColocation::kKeep, graph);
    local_step_ = Variable(ZeroStep(global_step_.dtype()),
                           {.name = "sync_rep_local_step",
                            .trainable = false,
                            .collections = {keys::kLocalVariables},
                            .use_resource = global_step_.is_resource()},
                           where);
  }
  local_step_init_op_ = local_step_.Assign(global_step_, where).op();
  ready_for_local_init_op_ = ReportUninitializedVariables(GlobalVariables(graph), graph, where);
  const std::string device = global_step_.op().device();
  const NameScope scope(options_.name, graph);
  const std::string path = scope.path();
  const Gathered gathered = Accumulate(pairs, graph, where);
  Operation train, sync;
  {
    const DeviceScope there(device, graph);
    const NameScope root("", graph);
    WEIR_ASSIGN(const Operation update,
                optimizer_.ApplyGradients(gathered.means, {.global_step = global_step_, .name = options.name}, where));
    tokens_ = std::make_shared<FIFOQueue>(
        -1, std::vector<DType>{global_step_.dtype()},
        FIFOQueueOptions{.shapes = {PartialShape(Shape())}, .shared_name = "sync_token_q", .name = "sync_token_q"},
        where);
    Output token;
    {
      const ControlDependencies after(gathered.applied, graph);
      token = tokens_->Dequeue({}, where)[0];
    }
    train = local_step_.Assign(token, where).op();
    {
      // A read of its own: that of the variable may come before the update, and its tokens would be stale.
      const ControlDependencies after({update}, graph);
      sync = AddTokens(global_step_.ReadValue(where), std::max(total_, options_.replicas_to_aggregate), where);
    }
    if (options_.variable_averages) {
      const ControlDependencies after({sync}, graph);
      sync = options_.variable_averages->Apply(options_.variables_to_average, where);
    }
    runner_ = std::make_shared<QueueRunner>(*tokens_, std::vector<Operation>{sync}, QueueRunnerOptions(), where);
  }
  std::vector<Groupable> init = {local_step_init_op_};
  for (const auto& [accumulator, on] : gathered.accumulators) {
    const DeviceScope there(on, graph);
    init.emplace_back(accumulator->SetGlobalStep(global_step_, "SetGlobalStep", where));
  }
  chief_init_op_ = Group(init, "group_deps", where);
  WEIR_TRY(graph.status());
  return train;
}

Operation SyncReplicasOptimizer::Minimize(const Output& loss, const MinimizeOptions& options, Where where) {
  const Result<std::vector<GradientAndVariable>> pairs = ComputeGradients(loss, options.variables, where);
  if (!pairs.ok()) return Operation();
  const Result<Operation> train = ApplyGradients(*pairs, options, where);
  return train.ok() ? *train : Operation();
}

Result<QueueRunner> SyncReplicasOptimizer::GetChiefQueueRunner() const {
  if (!runner_) return FailedPrecondition("Should be called after apply_gradients().");
  return *runner_;
}

Result<Operation> SyncReplicasOptimizer::GetInitTokensOp(int num_tokens, Where where) const {
  if (!runner_) return FailedPrecondition("get_init_tokens_op() should be called after apply_gradients().");
  const int needed = options_.replicas_to_aggregate - total_;
  if (num_tokens == -1) {
    num_tokens = options_.replicas_to_aggregate;
  } else if (num_tokens < needed) {
    return InvalidArgument("Too few tokens to finish the first step: {} (given) vs {} (needed)", num_tokens, needed);
  }
  Graph& graph = global_step_.Home();
  const AsDefault in(graph);
  if (num_tokens <= 0) return NoOp("no_init_tokens", where);
  const DeviceScope there(global_step_.op().device(), graph);
  const NameScope root("", graph);
  const Operation fill = AddTokens(global_step_, num_tokens, where);
  WEIR_TRY(graph.status());
  return fill;
}

std::shared_ptr<SessionRunHook> SyncReplicasOptimizer::MakeSessionRunHook(bool is_chief, int num_tokens) const {
  return std::make_shared<SyncReplicasHook>(*this, is_chief, num_tokens);
}

}  // namespace weir
