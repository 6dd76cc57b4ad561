#include "core/session/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <numeric>
#include <shared_mutex>
#include <unordered_map>

#include "core/execute/tape_trace.h"
#include "core/kernel/compute_pool.h"
#include "core/optimize/optimize.h"
#include "core/place/requests.h"
#include "core/session/compile.h"
#include "core/session/memory_report.h"
#include "core/session/partial_run.h"
#include "core/session/placement_log.h"
#include "core/session/resolve.h"
#include "core/session/signature.h"

namespace weir::session {
namespace {

constexpr size_t kMostPartialRuns = 1024;

/// Adds a list in a way that tells it apart from any other, whatever is in its texts.
template <class List, class Text>
void AddTo(std::string& key, const List& list, const Text& text) {
  for (const auto& element : list) {
    const std::string_view name = text(element);
    const auto size = static_cast<uint32_t>(name.size());
    key.append(reinterpret_cast<const char*>(&size), sizeof(size)).append(name);
  }
  key.append(sizeof(uint32_t), '\xff');
}

/// Tells signatures apart.
std::string KeyOf(std::span<const Feed> feeds, std::span<const std::string> fetches,
                  std::span<const std::string> targets, Signature::Ops ops) {
  std::string key(ops == Signature::Ops::kAllRun ? "\a" : "\t");
  const auto same = [](const std::string& name) -> std::string_view { return name; };
  AddTo(key, feeds, [](const Feed& feed) -> std::string_view { return feed.first; });
  AddTo(key, fetches, same);
  AddTo(key, targets, same);
  return key;
}

/// 0: as many as the process has CPUs; -1: the caller's alone.
int ThreadsFor(int asked) {
  constexpr int kMost = 4096;
  if (asked == 0) return kernel::ComputePool::Get().parallelism();
  return std::clamp(asked, 1, kMost);
}

/// Some for each thread, so that a slow one holds nobody up for long.
uint64_t MaxTiles(int threads) { return threads == 1 ? 1 : 4 * static_cast<uint64_t>(threads); }

/// The same for a part of a run; unlike any other key.
std::string KeyOf(const ResolvedNames& part) {
  std::string key = "\b";
  const auto add = [&key](const auto& list, const auto& text) {
    for (const auto& element : list) (key += text(element)) += '\n';
    key += '\t';
  };
  const auto endpoint = [](graph::Endpoint e) { return fmt::format("{}:{}", e.node, e.index); };
  const auto node = [](graph::NodeId id) { return fmt::format("{}", id); };
  add(part.feeds, endpoint);
  add(part.fetches, endpoint);
  add(part.targets, node);
  add(part.done, node);
  return key;
}

/// TensorFlow's: "a:0,b:0->add:0/init/1/;0", each list sorted, the last number counting the session's partial runs.
std::string HandleOf(const graph::Graph& graph, const ResolvedNames& names, size_t count) {
  const auto joined = [](const auto& list, const auto& name) {
    std::vector<std::string> texts;
    for (const auto& element : list) texts.push_back(name(element));
    std::sort(texts.begin(), texts.end());
    texts.erase(std::unique(texts.begin(), texts.end()), texts.end());
    return fmt::format("{}", fmt::join(texts, ","));
  };
  const auto endpoint = [&](graph::Endpoint e) { return graph::FullEndpointName(graph, e); };
  const auto node = [&](graph::NodeId id) { return graph.node(id).name(); };
  return fmt::format("{}->{}/{}/1/;{}", joined(names.feeds, endpoint), joined(names.fetches, endpoint),
                     joined(names.targets, node), count);
}

/// Unique in this process. A thread takes them by the thousand, so that runs on many threads do not meet at one
/// counter.
int64_t NextStepId() {
  constexpr int64_t kTaken = 1000;
  static std::atomic<int64_t> counter{1};
  thread_local int64_t next = 0, end = 0;
  if (next == end) {
    next = counter.fetch_add(kTaken, std::memory_order_relaxed);
    end = next + kTaken;
  }
  return next++;
}

}  // namespace

std::vector<DeviceAttributes> ListDevices(const Runtime& runtime) {
  std::vector<DeviceAttributes> list;
  for (const auto& device : runtime.plugins->devices().all()) {
    list.push_back({device->name(), device->info().kind, device->info().memory_bytes});
  }
  return list;
}

class Session::Impl final : public device::MemoryKeeper {
 public:
  Impl(std::shared_ptr<Runtime> runtime, const graph::Graph& graph, SessionOptions options,
       std::shared_ptr<const kernel::Calibration> calibration, std::unique_ptr<PlacementLog> log)
      : runtime_(std::move(runtime)),
        graph_(graph),
        options_(std::move(options)),
        calibration_(std::move(calibration)),
        resources_(options_.resources),
        log_(std::move(log)) {
    if (!resources_) resources_ = std::make_shared<kernel::ResourceScope>();
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
    WEIR_ASSIGN(ResolvedNames names, Resolve(graph_, asking, feeds, fetches, targets));
    return std::make_unique<Signature>(std::move(names), ops);
  }

  Status RunSignature(Signature& signature, std::span<const Tensor> feeds, std::vector<Tensor>* fetches,
                      const RunOptions& options, RunReport* report) {
    if (report != nullptr) *report = {};
    if (closed_.load(std::memory_order_relaxed)) return Cancelled("Session has been closed.");
    if (options.inter_op_thread_pool > 0 || options.inter_op_thread_pool < -1) {
      return InvalidArgument("Invalid inter_op_thread_pool: {}", options.inter_op_thread_pool);
    }
    WEIR_ASSIGN(const Signature::Pin plan, Specialise(signature, feeds));
    if (report != nullptr) Describe(plan->runner->plan(), options, report);
    if (report != nullptr && options.output_partition_graphs) {
      WEIR_ASSIGN(const graph::StepRequest request, RequestFor(signature.names(), feeds));
      WEIR_ASSIGN(report->partition_graphs, PartitionGraphs(Context(), graph_, request));
    }
    kernel::RunControl control;
    control.closed = &closed_;
    control.cancelled = options.cancelled;
    const int64_t limit = options.timeout_in_ms > 0 ? options.timeout_in_ms : options_.operation_timeout_in_ms;
    if (limit > 0) control.deadline = kernel::RunControl::Clock::now() + std::chrono::milliseconds(limit);
    execute::StepArgs step;
    step.step_id = NextStepId();
    step.control = &control;
    step.inter_op = options.inter_op_thread_pool < 0 ? 1 : inter_op_;
    step.intra_op = intra_op_;
    step.check_numerics = options.check_numerics;
    if (!options.trace || report == nullptr) return plan->runner->Run(feeds, fetches, step);
    execute::TapeTrace trace;
    step.trace = &trace;
    Status status = plan->runner->Run(feeds, fetches, step);
    report->trace = trace.Finish(plan->runner->plan(), step.step_id);
    return status;
  }

  CallableTable& callables() { return callables_; }

  Result<place::Explanation> Explain(std::span<const Feed> feeds, std::span<const std::string> fetches,
                                     std::span<const std::string> targets) {
    if (closed_.load(std::memory_order_relaxed)) return Cancelled("Session has been closed.");
    WEIR_ASSIGN(const std::shared_ptr<Signature> signature, Find(feeds, fetches, targets));
    std::vector<Tensor> values;
    for (const Feed& feed : feeds) values.push_back(feed.second);
    WEIR_ASSIGN(const graph::StepRequest request, RequestFor(signature->names(), values));
    return session::ExplainPlacement(Context(), graph_, request);
  }

  const PlacementLog& log() const { return *log_; }

  MemoryReport ReportMemory() {
    MemoryReport report = MakeMemoryReport(runtime_->plugins->devices());
    ForEachPlan([&](const Signature& signature, const Specialisation& made) {
      report.AddPlan(made.runner->plan(), made.runner->instances(), graph_, signature.names());
    });
    report.AddVariables(*resources_);
    return report;
  }

  bool GiveBack() override {
    bool any = false;
    ForEachPlan([&any](const Signature&, const Specialisation& made) { any |= made.runner->DropIdle(); });
    return any;
  }

  /// Says who holds memory where a run ended for want of it.
  Status WithHolders(Status status) {
    if (status.ok()) return status;
    return OutOfMemory(status) ? status.Append(ToText(ReportMemory())) : status;
  }

  Result<std::string> PRunSetup(std::span<const std::string> feeds, std::span<const std::string> fetches,
                                std::span<const std::string> targets) {
    WEIR_TRY(LookAtNewNodes());
    WEIR_ASSIGN(ResolvedNames names, Resolve(graph_, Asking::kRun, feeds, fetches, targets));
    const std::lock_guard<std::mutex> lock(partial_mutex_);
    if (partial_runs_.size() >= kMostPartialRuns) {
      return ResourceExhausted("{} partial runs have begun and not ended; feed and fetch all that their setup names",
                               partial_runs_.size());
    }
    std::string handle = HandleOf(graph_, names, partial_count_++);
    partial_runs_[handle] = std::make_shared<PartialRun>(graph_, std::move(names));
    return handle;
  }

  Result<std::vector<Tensor>> PRun(const std::string& handle, std::span<const Feed> feeds,
                                   std::span<const std::string> fetches) {
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
      status = RunSignature(*OfPart(part.names), part.feeds, &computed, {}, nullptr);
    }
    status = WithHolders(status);
    Result<std::vector<Tensor>> fetched =
        status.ok() ? run->Finish(part, std::move(computed)) : Result<std::vector<Tensor>>(std::move(status));
    if (!fetched.ok() || run->complete()) ForgetPartialRun(handle);
    return fetched;
  }

  /// What runs still use goes with the last of them.
  void Close() {
    closed_.store(true);
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
    if (!options_.resources) resources_->Clear();
  }
  bool closed() const { return closed_.load(); }

  /// Remembers the session for Reset; forgets those that are gone.
  static void Opened(const std::shared_ptr<Impl>& impl) {
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
  const std::shared_ptr<kernel::ResourceScope>& resources() const { return resources_; }

 private:
  /// As TensorFlow, which places the whole graph: a device name that cannot be read is an error of any run, also where
  /// the run does not need the node or the node is folded away. A node that may give a variable another shape outdates
  /// all plans. Each node is looked at once, before any run of it.
  Status LookAtNewNodes() {
    const std::lock_guard<std::mutex> lock(new_nodes_mutex_);
    for (; nodes_seen_ < graph_.num_nodes(); ++nodes_seen_) {
      const graph::Node& node = graph_.node(nodes_seen_);
      if (optimize::MayReshape(node)) shapes_version_.fetch_add(1, std::memory_order_relaxed);
      if (node.device().empty() || node.device() == last_device_) continue;
      WEIR_TRY(place::ParseRequest(node.device(), node).status());
      last_device_ = node.device();
    }
    return Status();
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
    auto made = std::make_unique<Specialisation>();
    made->shapes_version = version;
    for (const Tensor& feed : feeds) {
      made->types.push_back(feed.dtype());
      made->shapes.push_back(feed.shape());
    }
    WEIR_ASSIGN(const graph::StepRequest request, RequestFor(names, feeds));
    SessionOptions all_run = options_;
    all_run.constant_folding = all_run.fusion = false;
    const CompileContext context = Context(signature.ops() == Signature::Ops::kAllRun ? all_run : options_);
    place::Explanation explanation;
    WEIR_ASSIGN(made->runner, Compile(context, graph_, request, &explanation));
    log_->Add(made->runner->plan(), explanation, runtime_->plugins->devices().all().size());
    return signature.Add(std::move(made));
  }

  CompileContext Context() { return Context(options_); }
  CompileContext Context(const SessionOptions& options) {
    return {*runtime_,          options,       *resources_, node_resources_, inter_op_, MaxTiles(intra_op_),
            calibration_.get(), &state_places_};
  }

  Result<graph::StepRequest> RequestFor(const ResolvedNames& names, std::span<const Tensor> feeds) const {
    graph::StepRequest request;
    request.fetches = names.fetches;
    request.targets = names.targets;
    request.done = names.done;
    for (size_t i = 0; i < feeds.size(); ++i) {
      WEIR_TRY(CheckFeed(graph_, names.feeds[i], feeds[i]));
      request.feeds.push_back({names.feeds[i], feeds[i].dtype(), PartialShape(feeds[i].shape())});
    }
    return request;
  }

  static void Describe(const plan::ExecutionPlan& plan, const RunOptions& options, RunReport* report) {
    for (const int device : plan.placement.device_of) {
      if (device >= 0) ++report->placement[plan.placement.devices[static_cast<size_t>(device)]];
    }
    report->instructions = static_cast<int>(plan.instructions.size());
    report->arena_bytes = std::accumulate(plan.arena_bytes.begin(), plan.arena_bytes.end(), uint64_t{0});
    report->live_bytes = std::accumulate(plan.live_bytes.begin(), plan.live_bytes.end(), uint64_t{0});
    if (!options.collect_nodes) return;
    for (const plan::PlacedNode& node : plan.placed_nodes) report->executed_nodes.emplace_back(node.name);
  }

  std::shared_ptr<Runtime> runtime_;
  const graph::Graph& graph_;
  const SessionOptions options_;
  const std::shared_ptr<const kernel::Calibration> calibration_;
  std::shared_ptr<kernel::ResourceScope> resources_;
  kernel::NodeResources node_resources_;  // outlives the plans, whose kernels refer to it
  StatePlaces state_places_;
  const std::unique_ptr<PlacementLog> log_;
  std::mutex new_nodes_mutex_;  // protects the two below
  graph::NodeId nodes_seen_ = 0;
  std::string last_device_;                  // a good one
  std::atomic<uint64_t> shapes_version_{0};  // counts nodes seen that may give a variable another shape
  std::atomic<bool> closed_{false};
  int inter_op_ = 1;
  int intra_op_ = 1;
  inline static std::mutex open_mutex;  // protects the next
  inline static std::vector<std::weak_ptr<Impl>> open;
  mutable std::shared_mutex mutex_;  // protects the maps below
  std::unordered_map<std::string, std::shared_ptr<Signature>> by_key_;
  CallableTable callables_;
  std::mutex partial_mutex_;  // protects the two below
  std::map<std::string, std::shared_ptr<PartialRun>> partial_runs_;
  size_t partial_count_ = 0;
};

Session::Session(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
Session::~Session() = default;

Result<std::unique_ptr<Session>> Session::Make(std::shared_ptr<Runtime> runtime, const graph::Graph& graph,
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
  std::shared_ptr<const kernel::Calibration> calibration;
  if (!options.profile_file.empty()) {
    WEIR_ASSIGN(calibration, kernel::Calibration::Read(options.profile_file));
  }
  WEIR_ASSIGN(std::unique_ptr<PlacementLog> log, PlacementLog::Open(options));
  auto impl =
      std::make_shared<Impl>(std::move(runtime), graph, std::move(options), std::move(calibration), std::move(log));
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
  std::vector<Tensor> values;
  values.reserve(feeds.size());
  for (const Feed& feed : feeds) values.push_back(feed.second);
  std::vector<Tensor> fetched;
  WEIR_TRY(impl_->WithHolders(impl_->RunSignature(*signature, values, &fetched, options, report)));
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
                                          std::span<const std::string> fetches) {
  if (impl_->closed()) return Cancelled("Session has been closed.");
  return impl_->PRun(handle, feeds, fetches);
}

Status Session::Close() {
  impl_->Close();
  return Status();
}

Status Session::Reset(const std::string& target, const std::vector<std::string>& containers) {
  if (!target.empty() && target != "local") {
    return Unimplemented("sessions of '{}' cannot be reset: only those of this process (target '')", target);
  }
  Impl::ResetAll(containers.empty() ? std::vector<std::string>{kernel::kDefaultContainer} : containers);
  return Status();
}

Result<place::Explanation> Session::ExplainPlacement(std::span<const Feed> feeds, std::span<const std::string> fetches,
                                                     std::span<const std::string> targets) {
  return impl_->Explain(feeds, fetches, targets);
}

Placement Session::ReportPlacement() const { return impl_->log().placement(); }

std::vector<DeviceAttributes> Session::ListDevices() const { return session::ListDevices(impl_->runtime()); }

MemoryReport Session::ReportMemory() const { return impl_->ReportMemory(); }

DeviceReport Session::ReportDevices() const {
  DeviceReport report;
  for (const plugin::FileReport& file : impl_->runtime().plugins->files()) {
    if (file.verdict == plugin::Verdict::kNotAPlugin) continue;
    report.compiled.push_back(file.name);
    if (file.verdict == plugin::Verdict::kLoaded) report.loaded.push_back(file.name);
  }
  for (const DeviceAttributes& device : ListDevices()) report.visible.push_back(device.name);
  report.used = impl_->log().UsedDevices();
  return report;
}

const std::shared_ptr<kernel::ResourceScope>& Session::resources() const { return impl_->resources(); }

}  // namespace weir::session
