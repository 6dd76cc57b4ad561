#include "core/session/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <numeric>
#include <shared_mutex>
#include <unordered_map>

#include "core/base/errors.h"
#include "core/optimize/folded_filters.h"
#include "core/optimize/optimize.h"
#include "core/place/place.h"
#include "core/place/requests.h"
#include "core/runtime/compute_pool.h"
#include "core/session/compile.h"
#include "core/session/device_report.h"
#include "core/session/explain.h"
#include "core/session/memory_report.h"
#include "core/session/options.h"
#include "core/session/partial_run.h"
#include "core/session/placement_log.h"
#include "core/session/plan_file.h"
#include "core/session/profiles.h"
#include "core/session/replacing.h"
#include "core/session/resolve.h"
#include "core/session/signature.h"
#include "core/session/signature_key.h"

namespace weir::session {
namespace {

constexpr size_t kMostPartialRuns = 1024;

/// 0: the number of CPUs of the process; -1: only the caller's thread.
int ThreadsFor(int asked) {
  constexpr int kMost = 4096;
  if (asked == 0) return runtime::ComputePool::Get().parallelism();
  return std::clamp(asked, 1, kMost);
}

/// Several tiles per thread, so that one slow thread does not delay the op.
uint64_t MaxTiles(int threads) { return threads == 1 ? 1 : 4 * static_cast<uint64_t>(threads); }

}  // namespace

class Session::Impl final : public device::MemoryKeeper {
 public:
  /// `shares_resources`: those of the options outlive the session.
  Impl(std::shared_ptr<Runtime> runtime, const graph::Definition& graph, SessionOptions options, bool shares_resources,
       UsedProfile profile, std::unique_ptr<PlacementLog> log)
      : runtime_(std::move(runtime)),
        source_(graph),
        lowering_(graph),
        options_(std::move(options)),
        shares_resources_(shares_resources),
        calibration_(std::move(profile.calibration)),
        resources_(options_.resources),
        node_resources_(options_.node_resources),
        log_(std::move(log)),
        measured_(std::move(profile.measured)) {
    if (!resources_) resources_ = std::make_shared<runtime::ResourceScope>();
    if (!node_resources_) node_resources_ = std::make_shared<runtime::NodeResources>();
    inter_op_ = ThreadsFor(std::max(options_.inter_op_parallelism_threads, -1));
    intra_op_ = ThreadsFor(std::max(options_.intra_op_parallelism_threads, 0));
  }

  Result<std::shared_ptr<Signature>> Find(std::span<const Feed> feeds, std::span<const std::string> fetches,
                                          std::span<const std::string> targets,
                                          Signature::Ops ops = Signature::Ops::kAsConfigured) {
    const std::string key = KeyOf(feeds, fetches, targets, ops);
    {
      const std::shared_lock<std::shared_mutex> lock(mutex_);
      if (const auto found = by_key_.find(key); found != by_key_.end()) return found->second;
    }
    std::vector<std::string> feed_names;
    for (const Feed& feed : feeds) feed_names.push_back(feed.first);
    WEIR_ASSIGN(std::unique_ptr<Signature> made, MakeSignature(Asking::kRun, feed_names, fetches, targets, ops));
    const std::unique_lock<std::shared_mutex> lock(mutex_);
    return by_key_.emplace(key, std::move(made)).first->second;
  }

  Result<std::unique_ptr<Signature>> MakeSignature(Asking asking, std::span<const std::string> feeds,
                                                   std::span<const std::string> fetches,
                                                   std::span<const std::string> targets,
                                                   Signature::Ops ops = Signature::Ops::kAsConfigured) {
    WEIR_TRY(LookAtNewNodes());
    WEIR_ASSIGN(const ResolvedNames names, Resolve(source_, asking, feeds, fetches, targets));
    return std::make_unique<Signature>(Lowered(names), ops);
  }

  Status RunSignature(Signature& signature, std::span<const Tensor> feeds, std::vector<Tensor>* fetches,
                      const RunOptions& options, RunReport* report, bool apart = false) {
    if (report != nullptr) *report = {};
    std::shared_lock<std::shared_mutex> running;
    if (options_.replace_moves_state) [[unlikely]]
      running = std::shared_lock(moving_);
    if (closed()) return Cancelled("Session has been closed.");
    if (options.inter_op_thread_pool > 0 || options.inter_op_thread_pool < -1) {
      return InvalidArgument("Invalid inter_op_thread_pool: {}", options.inter_op_thread_pool);
    }
    WEIR_ASSIGN(const Signature::Pin plan, Specialise(signature, feeds));
    if (report != nullptr) Describe(plan->program, options, report);
    if (report != nullptr && options.output_partition_graphs) {
      WEIR_ASSIGN(const graph::StepRequest request, RequestFor(signature.names(), feeds));
      WEIR_ASSIGN(report->partition_graphs, PartitionGraphs(Context(), graph(), request));
    }
    execute::StepArgs step;
    step.step_id = NextStepId();
    step.cancellation = &cancellation_;
    step.grace = std::chrono::milliseconds(options_.cancel_limit_ms);
    step.owner = &self_;
    step.inter_op = options.inter_op_thread_pool < 0 ? 1 : inter_op_;
    step.intra_op = intra_op_;
    step.check_numerics = options.check_numerics;
    step.apart = apart && options.trace && report != nullptr;
    step.rendezvous = options.rendezvous;
    trace::StepTrace* trace = options.trace && report != nullptr ? &report->trace : nullptr;
    const int64_t limit = options.timeout_in_ms > 0 ? options.timeout_in_ms : options_.operation_timeout_in_ms;
    if (plan->replacing) [[unlikely]] {
      Replacing& replacing = *plan->replacing;
      const int64_t run = replacing.Begin();
      trace::StepTrace own;
      if (trace == nullptr && replacing.Measures(run)) trace = &own;
      WEIR_TRY(RunWatched(plan->program, feeds, fetches, step, trace, limit, options.cancellation));
      if (running.owns_lock()) running.unlock();
      if (trace == &own && replacing.Add(run, own)) Replace(signature, feeds, *plan, run);
      return Status();
    }
    if (limit > 0 || options.cancellation != nullptr) [[unlikely]] {
      return RunWatched(plan->program, feeds, fetches, step, trace, limit, options.cancellation);
    }
    return RunProgram(plan->program, feeds, fetches, step, trace);
  }

  CallableTable& callables() { return callables_; }

  /// The pipeline request of a run; Cancelled once the session is closed.
  Result<graph::StepRequest> RequestFor(std::span<const Feed> feeds, std::span<const std::string> fetches,
                                        std::span<const std::string> targets) {
    if (closed()) return Cancelled("Session has been closed.");
    WEIR_ASSIGN(const std::shared_ptr<Signature> signature, Find(feeds, fetches, targets));
    return RequestFor(signature->names(), ValuesOf(feeds));
  }

  Result<place::Explanation> Explain(std::span<const Feed> feeds, std::span<const std::string> fetches,
                                     std::span<const std::string> targets) {
    WEIR_ASSIGN(const graph::StepRequest request, RequestFor(feeds, fetches, targets));
    return session::ExplainPlacement(Context(), graph(), request);
  }

  Result<StepMeter> Meter(std::span<const Feed> feeds, std::span<const std::string> fetches,
                          std::span<const std::string> targets) {
    WEIR_ASSIGN(const graph::StepRequest request, RequestFor(feeds, fetches, targets));
    return StepMeter::Make(Context(), graph(), request);
  }

  Result<std::string> ExplainStage(Stage stage, std::span<const Feed> feeds, std::span<const std::string> fetches,
                                   std::span<const std::string> targets) {
    WEIR_ASSIGN(const graph::StepRequest request, RequestFor(feeds, fetches, targets));
    return StageText(Context(), graph(), request, stage);
  }

  const PlacementLog& log() const { return *log_; }

  MemoryReport ReportMemory() {
    MemoryReport report = MakeMemoryReport(runtime_->plugins->devices());
    ForEachPlan([&](const Signature& signature, const Specialisation& made) {
      for (const auto& [plan, instances] : made.program.held()) {
        report.AddPlan(plan, instances, graph(), signature.names());
      }
    });
    report.AddVariables(*resources_);
    return report;
  }

  bool GiveBack() override {
    bool any = false;
    ForEachPlan([&any](const Signature&, const Specialisation& made) { any |= made.program.DropIdle(); });
    return any;
  }

  /// Adds the memory report to an out-of-memory error; tasks add their own.
  Status WithHolders(Status status) {
    if (status.ok() || in_tasks()) return status;
    return OutOfMemory(status) ? status.Append(ToText(ReportMemory())) : status;
  }

  Result<std::string> PRunSetup(std::span<const std::string> feeds, std::span<const std::string> fetches,
                                std::span<const std::string> targets) {
    WEIR_TRY(LookAtNewNodes());
    WEIR_ASSIGN(const ResolvedNames names, Resolve(source_, Asking::kRun, feeds, fetches, targets));
    const std::lock_guard<std::mutex> lock(partial_mutex_);
    if (partial_runs_.size() >= kMostPartialRuns) {
      return ResourceExhausted("{} partial runs have begun and not ended; feed and fetch all that their setup names",
                               partial_runs_.size());
    }
    std::string handle = HandleOf(source_, names, partial_count_++);
    partial_runs_[handle] = std::make_shared<PartialRun>(graph(), Lowered(names));
    return handle;
  }

  Result<std::vector<Tensor>> PRun(const std::string& handle, std::span<const Feed> feeds,
                                   std::span<const std::string> fetches, const RunOptions& options) {
    std::shared_ptr<PartialRun> run;
    {
      const std::lock_guard<std::mutex> lock(partial_mutex_);
      if (const auto found = partial_runs_.find(handle); found != partial_runs_.end()) run = found->second;
    }
    if (!run) return InvalidArgument("Must run 'setup' before performing partial runs!");
    const std::lock_guard<std::mutex> lock(run->mutex);
    WEIR_ASSIGN(const PartialRun::Part part, run->Next(feeds, fetches));
    std::vector<Tensor> computed;
    Status status;
    if (!part.names.fetches.empty() || !part.names.targets.empty()) {
      status = RunSignature(*OfPart(part.names), part.feeds, &computed, options, nullptr);
    }
    status = WithHolders(status);
    Result<std::vector<Tensor>> fetched =
        status.ok() ? run->Finish(part, std::move(computed)) : Result<std::vector<Tensor>>(std::move(status));
    if (!fetched.ok() || run->complete()) ForgetPartialRun(handle);
    return fetched;
  }

  /// Resources of runs in progress are freed with the last of them.
  void Close() {
    cancellation_.Cancel(Cancelled("Step was cancelled by an explicit call to `Session::Close()`."));
    {
      const std::lock_guard<std::mutex> lock(partial_mutex_);
      partial_runs_.clear();
    }
    std::unordered_map<std::string, std::shared_ptr<Signature>> gone;
    {
      const std::unique_lock<std::shared_mutex> lock(mutex_);
      gone.swap(by_key_);
    }
    callables_.DropPlans();
    if (!shares_resources_) resources_->Clear();
  }
  bool closed() const { return cancellation_.cancelled(); }
  bool in_tasks() const { return options_.tasks && options_.tasks->own_parts() == Tasks::OwnParts::kRegistered; }

  /// Registers the session for Reset and removes dead ones.
  static void Opened(const std::shared_ptr<Impl>& impl) {
    impl->self_ = impl;
    const std::lock_guard<std::mutex> lock(open_mutex);
    std::erase_if(open, [](const std::weak_ptr<Impl>& other) { return other.expired(); });
    open.push_back(impl);
  }
  static void ResetAll(const std::vector<std::string>& containers) {
    std::vector<std::weak_ptr<Impl>> all;
    {
      const std::lock_guard<std::mutex> lock(open_mutex);
      all.swap(open);
    }
    for (const std::weak_ptr<Impl>& other : all) {
      const std::shared_ptr<Impl> impl = other.lock();
      if (!impl) continue;
      impl->Close();
      for (const std::string& container : containers) impl->resources_->Clear(container);
    }
  }
  const Runtime& runtime() const { return *runtime_; }
  const std::shared_ptr<runtime::ResourceScope>& resources() const { return resources_; }

 private:
  /// As in TensorFlow, which places the whole graph, an invalid device name is an error of every run, even if the run
  /// does not need the node or folds it. A node that may reshape a variable invalidates all plans. Each node is checked
  /// once, before the first run after its addition.
  Status LookAtNewNodes() {
    const std::lock_guard<std::mutex> lock(new_nodes_mutex_);
    lowering_.Update();
    for (; nodes_seen_ < graph().num_nodes(); ++nodes_seen_) {
      const graph::Node& node = graph().node(nodes_seen_);
      if (optimize::MayReshape(node)) shapes_version_.fetch_add(1, std::memory_order_relaxed);
      if (node.device().empty() || node.device() == last_device_) continue;
      WEIR_TRY(place::ParseRequest(node.device(), node).status());
      last_device_ = node.device();
    }
    return Status();
  }

  /// The graph that steps are made from.
  const graph::Definition& graph() const { return lowering_.graph(); }

  /// Maps names of the user's graph to that graph.
  ResolvedNames Lowered(const ResolvedNames& names) const {
    ResolvedNames lowered;
    for (const graph::Endpoint& feed : names.feeds) lowered.feeds.push_back(lowering_.Of(feed));
    for (const graph::Endpoint& fetch : names.fetches) lowered.fetches.push_back(lowering_.Of(fetch));
    for (const graph::NodeId target : names.targets) lowered.targets.push_back(lowering_.Of(target));
    return lowered;
  }

  void ForEachPlan(const PlanVisitor& visit) {
    {
      const std::shared_lock<std::shared_mutex> lock(mutex_);
      for (const auto& [key, signature] : by_key_) signature->ForEach(visit);
    }
    callables_.ForEach(visit);
  }

  std::shared_ptr<Signature> OfPart(const ResolvedNames& names) {
    const std::unique_lock<std::shared_mutex> lock(mutex_);
    std::shared_ptr<Signature>& signature = by_key_[KeyOf(names)];
    if (!signature) signature = std::make_shared<Signature>(names);
    return signature;
  }

  void ForgetPartialRun(const std::string& handle) {
    const std::lock_guard<std::mutex> lock(partial_mutex_);
    partial_runs_.erase(handle);
  }

  Result<Signature::Pin> Specialise(Signature& signature, std::span<const Tensor> feeds) {
    const ResolvedNames& names = signature.names();
    if (feeds.size() != names.feeds.size()) {
      return InvalidArgument("{} feeds were given, the signature has {}", feeds.size(), names.feeds.size());
    }
    const uint64_t version = shapes_version_.load(std::memory_order_relaxed);
    if (Signature::Pin found = signature.Find(feeds, version)) return found;
    const std::lock_guard<std::mutex> compiling(signature.compiling);
    if (Signature::Pin found = signature.Find(feeds, version)) return found;  // made while this thread waited
    WEIR_ASSIGN(graph::StepRequest request, RequestFor(names, feeds));
    const auto exact_plans = static_cast<size_t>(std::max(options_.exact_plans, 0));
    std::unique_ptr<Specialisation> made = signature.Wanted(feeds, version, exact_plans);
    for (size_t i = 0; i < made->any_shape.size(); ++i) request.feeds[i].shape = made->any_shape[i];
    SessionOptions all_run = options_;
    all_run.constant_folding = all_run.fusion = false;
    const CompileContext context = Context(signature.ops() == Signature::Ops::kAllRun ? all_run : options_);
    place::Explanation explanation;
    WEIR_ASSIGN(made->program, Compile(context, graph(), request, &explanation));
    if (options_.replace_period > 0 && runtime_->plugins->devices().all().size() > 1) {
      WEIR_ASSIGN(made->replacing, Replacing::Make(context, graph(), request, options_.replace_period));
    }
    log_->Add(made->program, std::move(explanation), runtime_->plugins->devices().all().size());
    return signature.Add(std::move(made));
  }

  /// Places a measured step again. Failures leave it as it is.
  void Replace(Signature& signature, std::span<const Tensor> feeds, const Specialisation& old, int64_t run) {
    const std::unique_lock<std::mutex> compiling(signature.compiling, std::try_to_lock);
    if (!compiling.owns_lock()) return;
    auto measured = std::make_shared<kernel::MeasuredCosts>();
    StepMeasurement took;
    std::map<std::string, std::string> devices;
    {
      const std::lock_guard<std::mutex> lock(old.replacing->mutex);
      const CompileContext now = Context();
      if (now.measured != nullptr) *measured = *now.measured;
      measured->Merge(old.replacing->meter.Costs(*runtime_));
      took = old.replacing->meter.Medians();
      devices = old.replacing->meter.devices();
    }
    {
      const std::lock_guard<std::mutex> lock(measured_mutex_);
      measured_ = measured;
    }
    Result<graph::StepRequest> request = RequestFor(signature.names(), feeds);
    if (!request.ok()) return;
    for (size_t i = 0; i < old.any_shape.size(); ++i) request->feeds[i].shape = old.any_shape[i];
    const CompileContext context = Context();
    const auto found = PlaceAgain(context, graph(), *request, devices, options_.min_gain, options_.replace_moves_state);
    log_->Note(ReplaceText(run, took, found));
    if (!found.ok() || !*found) return;
    std::unique_lock<std::shared_mutex> alone(moving_, std::defer_lock);
    if (!(*found)->moves.empty()) {
      if (!alone.try_lock()) return;  // at a later time
      if (!MoveState(context, graph(), (*found)->moves).ok()) return;
      const std::shared_lock<std::shared_mutex> lock(mutex_);
      for (const auto& [key, each] : by_key_) each->DropPlans();
      callables_.DropPlans();
      return;
    }
    auto made = std::make_unique<Specialisation>();
    std::tie(made->types, made->shapes, made->any_shape) = std::tie(old.types, old.shapes, old.any_shape);
    std::tie(made->shapes_version, made->replacing) = std::tie(old.shapes_version, old.replacing);
    place::Explanation explanation;
    Result<Program> program = Compile(context, graph(), *request, &explanation);
    if (!program.ok()) return;
    made->program = std::move(*program);
    log_->Add(made->program, std::move(explanation), runtime_->plugins->devices().all().size());
    signature.Replace(std::move(made));
  }

  CompileContext Context() { return Context(options_); }
  CompileContext Context(const SessionOptions& options) {
    const std::lock_guard<std::mutex> lock(measured_mutex_);
    return {
        *runtime_,      options,    *resources_, *node_resources_, inter_op_, MaxTiles(intra_op_), calibration_.get(),
        &state_places_, &lowering_, {},          measured_, &folded_filters_};
  }

  Result<graph::StepRequest> RequestFor(const ResolvedNames& names, std::span<const Tensor> feeds) const {
    graph::StepRequest request;
    request.fetches = names.fetches;
    request.targets = names.targets;
    request.done = names.done;
    for (size_t i = 0; i < feeds.size(); ++i) {
      WEIR_TRY(CheckFeed(graph(), names.feeds[i], feeds[i]));
      request.feeds.push_back({names.feeds[i], feeds[i].dtype(), PartialShape(feeds[i].shape())});
    }
    return request;
  }

  /// `trace` may be null.
  static Status RunProgram(const Program& program, std::span<const Tensor> feeds, std::vector<Tensor>* fetches,
                           const execute::StepArgs& step, trace::StepTrace* trace) {
    return trace == nullptr ? program.Run(feeds, fetches, step) : program.RunTraced(feeds, fetches, step, trace);
  }

  /// As RunProgram, for a step that may also be cancelled by its time limit (0 for none) or by its caller.
  [[gnu::noinline]] static Status RunWatched(const Program& program, std::span<const Tensor> feeds,
                                             std::vector<Tensor>* fetches, execute::StepArgs step,
                                             trace::StepTrace* trace, int64_t limit_ms, runtime::Cancellation* caller) {
    runtime::Cancellation own(step.cancellation);
    runtime::CancelCallback with_caller;
    step.cancellation = &own;
    step.watched = true;
    if (limit_ms > 0) {
      own.CancelAt(runtime::Cancellation::Clock::now() + std::chrono::milliseconds(limit_ms),
                   DeadlineExceeded("Timed out waiting for notification: the step took longer than timeout_in_ms"));
    }
    if (caller != nullptr) {
      const auto end = [&own, caller] { own.Cancel(caller->status()); };
      if (!with_caller.Register(*caller, end)) end();
    }
    return RunProgram(program, feeds, fetches, step, trace);
  }

  static void Describe(const Program& program, const RunOptions& options, RunReport* report) {
    for (const plan::ExecutionPlan* const each : program.plans()) {
      const plan::ExecutionPlan& plan = *each;
      for (const int device : plan.placement.device_of) {
        if (device >= 0) ++report->placement[plan.placement.devices[static_cast<size_t>(device)]];
      }
      report->instructions += static_cast<int>(plan.instructions.size());
      report->arena_bytes += std::accumulate(plan.arena_bytes.begin(), plan.arena_bytes.end(), uint64_t{0});
      report->live_bytes += std::accumulate(plan.live_bytes.begin(), plan.live_bytes.end(), uint64_t{0});
      if (!options.collect_nodes) continue;
      for (const plan::PlacedNode& node : plan.placed_nodes) report->executed_nodes.emplace_back(node.name);
    }
  }

  std::weak_ptr<const void> self_;
  std::shared_ptr<Runtime> runtime_;
  const graph::Definition& source_;
  lower::Lowering lowering_;  // grows under new_nodes_mutex_ while no run is in progress
  const SessionOptions options_;
  const bool shares_resources_;
  const std::shared_ptr<const kernel::Calibration> calibration_;
  std::shared_ptr<runtime::ResourceScope> resources_;
  std::shared_ptr<runtime::NodeResources> node_resources_;  // must outlive the plans, whose kernels refer to it
  StatePlaces state_places_;
  optimize::FoldedFilters folded_filters_;
  const std::unique_ptr<PlacementLog> log_;
  std::mutex new_nodes_mutex_;  // protects the two below
  graph::NodeId nodes_seen_ = 0;
  std::string last_device_;                  // last valid device name
  std::atomic<uint64_t> shapes_version_{0};  // number of nodes seen that may reshape a variable
  runtime::Cancellation cancellation_;       // cancels all steps when the session is closed
  int inter_op_ = 1;
  int intra_op_ = 1;
  inline static std::mutex open_mutex;  // protects the next
  inline static std::vector<std::weak_ptr<Impl>> open;
  mutable std::shared_mutex mutex_;  // protects the maps below
  std::unordered_map<std::string, std::shared_ptr<Signature>> by_key_;
  CallableTable callables_;
  std::shared_mutex moving_;                               // held by runs if state may move, and by who moves it
  std::mutex measured_mutex_;                              // protects the next
  std::shared_ptr<const kernel::MeasuredCosts> measured_;  // may be null
  std::mutex partial_mutex_;                               // protects the two below
  std::map<std::string, std::shared_ptr<PartialRun>> partial_runs_;
  size_t partial_count_ = 0;
};

Session::Session(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
Session::~Session() = default;

Result<std::unique_ptr<Session>> Session::Make(std::shared_ptr<Runtime> runtime, const graph::Definition& graph,
                                               SessionOptions options) {
  if (!AddressesFit()) {
    return Unimplemented("sessions need memory with addresses of {} bits: run without memory tagging", kAddressBits);
  }
  if (runtime->plugins->devices().all().empty()) {
    std::string folders;
    for (const std::string& folder : runtime->plugins->folders()) folders += (folders.empty() ? "" : ", ") + folder;
    return FailedPrecondition(
        "no plugin brought a device; searched {}; put a device plugin such as cpu.so there, or see "
        "`weir plugins --why`",
        folders.empty() ? "no folder" : folders);
  }
  WEIR_ASSIGN(UsedProfile profile, ProfileOf(options, *runtime));
  WEIR_TRY(UsePlanFile(options));
  if (options.bfloat16_transfers) options.cut_between_devices = true;
  if (options.tasks != nullptr) LeaveToTasks(options);
  const bool shares = options.resources != nullptr;
  WEIR_TRY(UseRemoteDevices(*runtime, options));
  WEIR_ASSIGN(std::unique_ptr<PlacementLog> log, PlacementLog::Open(options));
  auto impl = std::make_shared<Impl>(std::move(runtime), graph, std::move(options), shares, std::move(profile),
                                     std::move(log));
  for (const auto& device : impl->runtime().plugins->devices().all()) device->AddKeeper(impl);
  Impl::Opened(impl);
  return std::unique_ptr<Session>(new Session(std::move(impl)));
}

Result<std::vector<Tensor>> Session::Run(std::span<const Feed> feeds, std::span<const std::string> fetches,
                                         std::span<const std::string> targets, const RunOptions& options,
                                         RunReport* report) {
  if (impl_->closed()) return Cancelled("Session has been closed.");
  const Signature::Ops ops = options.check_numerics ? Signature::Ops::kAllRun : Signature::Ops::kAsConfigured;
  WEIR_ASSIGN(const std::shared_ptr<Signature> signature, impl_->Find(feeds, fetches, targets, ops));
  std::vector<Tensor> fetched;
  WEIR_TRY(impl_->WithHolders(impl_->RunSignature(*signature, ValuesOf(feeds), &fetched, options, report)));
  return fetched;
}

Result<CallableHandle> Session::MakeCallable(const CallableOptions& options) {
  if (impl_->closed()) return Cancelled("Session has been closed.");
  WEIR_ASSIGN(std::unique_ptr<Signature> signature,
              impl_->MakeSignature(Asking::kCallable, options.feeds, options.fetches, options.targets));
  return impl_->callables().Add(std::move(signature));
}

Status Session::RunCallable(CallableHandle handle, std::span<const Tensor> feeds, std::vector<Tensor>* fetches,
                            const RunOptions& options, RunReport* report) {
  const PinnedSlot<Signature>::Pin signature = impl_->callables().Find(handle);
  if (!signature) return InvalidArgument("No such callable handle: {}", handle);
  return impl_->WithHolders(impl_->RunSignature(*signature, feeds, fetches, options, report));
}

Status Session::ReleaseCallable(CallableHandle handle) {
  return impl_->callables().Remove(handle) ? Status() : InvalidArgument("No such callable handle: {}", handle);
}

Result<std::string> Session::PRunSetup(std::span<const std::string> feeds, std::span<const std::string> fetches,
                                       std::span<const std::string> targets) {
  if (impl_->closed()) return Cancelled("Session has been closed.");
  return impl_->PRunSetup(feeds, fetches, targets);
}

Result<std::vector<Tensor>> Session::PRun(const std::string& handle, std::span<const Feed> feeds,
                                          std::span<const std::string> fetches, const RunOptions& options) {
  if (impl_->closed()) return Cancelled("Session has been closed.");
  return impl_->PRun(handle, feeds, fetches, options);
}

Status Session::Close() {
  impl_->Close();
  return Status();
}

Status Session::Reset(const std::string& target, const std::vector<std::string>& containers) {
  if (!target.empty() && target != "local") {
    return Unimplemented("sessions of '{}' cannot be reset: only those of this process (target '')", target);
  }
  Impl::ResetAll(containers.empty() ? std::vector<std::string>{runtime::kDefaultContainer} : containers);
  return Status();
}

Result<place::Explanation> Session::ExplainPlacement(std::span<const Feed> feeds, std::span<const std::string> fetches,
                                                     std::span<const std::string> targets) {
  return impl_->Explain(feeds, fetches, targets);
}

Result<std::string> Session::ExplainStage(Stage stage, std::span<const Feed> feeds,
                                          std::span<const std::string> fetches, std::span<const std::string> targets) {
  return impl_->ExplainStage(stage, feeds, fetches, targets);
}

Placement Session::ReportPlacement() const { return impl_->log().placement(); }

std::vector<DeviceAttributes> Session::ListDevices() const { return session::ListDevices(impl_->runtime()); }

MemoryReport Session::ReportMemory() const { return impl_->ReportMemory(); }

DeviceReport Session::ReportDevices() const { return MakeDeviceReport(impl_->runtime(), impl_->log().UsedDevices()); }

Result<StepMeasurement> Session::MeasureStep(std::span<const Feed> feeds, std::span<const std::string> fetches,
                                             std::span<const std::string> targets, int runs) {
  if (impl_->in_tasks()) return Unimplemented("steps of a cluster are not measured by a session");
  WEIR_ASSIGN(StepMeter meter, impl_->Meter(feeds, fetches, targets));
  const auto run = [&](trace::StepTrace* trace) -> Status {
    RunReport report;
    std::vector<Tensor> fetched;
    const RunOptions options{.trace = trace != nullptr};
    WEIR_ASSIGN(const std::shared_ptr<Signature> signature, impl_->Find(feeds, fetches, targets));
    WEIR_TRY(impl_->RunSignature(*signature, ValuesOf(feeds), &fetched, options, &report, options.trace));
    if (trace != nullptr) *trace = std::move(report.trace);
    return {};
  };
  return MeasureRuns(std::move(meter), impl_->runtime(), runs, run);
}

const std::shared_ptr<runtime::ResourceScope>& Session::resources() const { return impl_->resources(); }

}  // namespace weir::session
