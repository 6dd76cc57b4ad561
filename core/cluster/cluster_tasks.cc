#include "core/cluster/cluster_tasks.h"

#include <algorithm>
#include <utility>

#include "core/base/errors.h"
#include "core/graph/graph_def.h"

namespace weir::cluster {
namespace {

/// The positions come from another process.
Status CheckHandle(const PartHandle& handle, const graph::Part& part, size_t fetches) {
  WEIR_ASSIGN(const graph::PartRequest wanted, graph::RequestOfPart(part.graph));
  if (handle.feeds == wanted.feeds && handle.fetches == wanted.fetches) return Status();
  return Internal("{} registered a part of a step with {} fetches under other feeds and fetches", part.device, fetches);
}

}  // namespace

WorkerSessionSpec SpecFrom(const session::SessionOptions& options) {
  WorkerSessionSpec spec;
  spec.allow_soft_placement = options.allow_soft_placement;
  spec.constant_folding = options.constant_folding;
  spec.common_subexpressions = options.common_subexpressions;
  spec.fusion = options.fusion;
  spec.deterministic = options.deterministic;
  spec.inter_op = options.inter_op_parallelism_threads;
  spec.intra_op = options.intra_op_parallelism_threads;
  return spec;
}

ClusterTasks::ClusterTasks(std::shared_ptr<const Workers> workers, std::chrono::milliseconds limit,
                           std::chrono::milliseconds grace, OwnParts own)
    : workers_(std::move(workers)), limit_(limit), grace_(grace), own_(own) {
  numbers_->session = RandomId();
}

ClusterTasks::~ClusterTasks() {
  for (const auto& worker : opened_) static_cast<void>(worker->DeleteSession(numbers_->session));  // or it is lost
}

Status ClusterTasks::Open(const std::shared_ptr<Worker>& worker, WorkerSessionSpec spec, Clock::time_point deadline) {
  spec.handle = numbers_->session;
  WEIR_TRY(worker->CreateSession(spec, deadline));
  opened_.push_back(worker);
  incarnations_.emplace(worker->task(), spec.incarnation);
  return Status();
}

uint64_t ClusterTasks::IncarnationOf(std::string_view device) const {
  const Result<TaskName> task = TaskOfDevice(device);
  if (!task.ok()) return 0;
  const auto found = incarnations_.find(*task);
  return found == incarnations_.end() ? 0 : found->second;
}

bool ClusterTasks::IsHere(std::string_view device) const {
  const Result<TaskName> task = TaskOfDevice(device);
  if (!task.ok()) return false;
  const Result<std::shared_ptr<Worker>> worker = workers_->Find(*task);
  return worker.ok() && (*worker)->own_devices() != nullptr;
}

Result<std::unique_ptr<session::TaskProgram>> ClusterTasks::Register(std::vector<graph::Part> parts, size_t fetches) {
  const Clock::time_point deadline = Clock::now() + limit_;
  auto program = std::make_unique<RegisteredProgram>(numbers_, fetches, grace_);
  // The own task is last: its part may run on the thread that waits for the others.
  std::stable_partition(parts.begin(), parts.end(), [&](const graph::Part& part) { return !IsHere(part.device); });
  for (const graph::Part& part : parts) {
    WEIR_ASSIGN(const TaskName task, TaskOfDevice(part.device));
    WEIR_ASSIGN(const std::shared_ptr<Worker> worker, workers_->Find(task));
    WEIR_ASSIGN(const std::string graph, graph::ExportGraphDef(part.graph));
    Result<PartHandle> handle = worker->RegisterPart(numbers_->session, graph, deadline);
    if (!handle.ok()) return FromTask(handle.status(), task);
    WEIR_TRY(CheckHandle(*handle, part, fetches));
    RegisteredProgram::Part added{worker, std::move(*handle)};
    for (graph::NodeId id = 0; id < part.graph.num_nodes(); ++id) {
      const graph::Node& node = part.graph.node(id);
      if (!node.origin().empty()) added.origins.emplace(node.name(), node.origin());
    }
    program->Add(std::move(added));
  }
  return std::unique_ptr<session::TaskProgram>(std::move(program));
}

}  // namespace weir::cluster
