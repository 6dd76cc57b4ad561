#include "core/client/distributed/remote_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "core/base/errors.h"
#include "core/base/legible.h"
#include "core/client/graph/graph_internal.h"
#include "core/client/session/traced_run_internal.h"
#include "core/graph/graph_def.h"
#include "core/proto/parse.h"
#include "core/session/run_metadata.h"
#include "core/tensor/tensor_proto.h"
#include "weir/proto/graph.pb.h"
#include "weir/proto/master.pb.h"
#include "weir/proto/run_metadata.pb.h"

namespace weir {
namespace {

using cluster::Clock;
using std::chrono::milliseconds;

constexpr milliseconds kFirstWait{50}, kLongestWait{2000};
/// What a server has beyond a step's own limit to say how it ended.
constexpr milliseconds kReplyTime{3000};
constexpr milliseconds kCloseLimit{2000};

/// The first node that a text from a server names: "{{node x}}".
std::string NodeIn(const std::string& text) {
  constexpr std::string_view kMark = "{{node ";
  const size_t at = text.find(kMark);
  if (at == std::string::npos) return {};
  const size_t begin = at + kMark.size(), end = text.find("}}", begin);
  return end == std::string::npos ? std::string() : text.substr(begin, end - begin);
}

/// Calls of one server, each a request and a response. Thread-safe.
class MasterCalls {
 public:
  explicit MasterCalls(std::shared_ptr<cluster::MasterService> master) : master_(std::move(master)) {}

  /// Waits for the response. `cancellation` (may be null) cancels the call with its reason.
  template <class Response>
  Result<Response> Call(const char* method, const google::protobuf::Message& request, Clock::time_point deadline,
                        runtime::Cancellation* cancellation = nullptr) const {
    WEIR_ASSIGN(std::string bytes, proto::Serialize(request, method));
    WEIR_ASSIGN(const std::string answer, Send(method, std::move(bytes), deadline, cancellation));
    Response response;
    WEIR_TRY(proto::ParseBinary(answer, method, response));
    return response;
  }

 private:
  Result<std::string> Send(const char* method, std::string request, Clock::time_point deadline,
                           runtime::Cancellation* cancellation) const {
    const auto own = std::make_shared<runtime::Cancellation>();
    runtime::CancelCallback forward;
    if (cancellation != nullptr && !forward.Register(*cancellation, [&] { own->Cancel(cancellation->status()); })) {
      return cancellation->status();
    }
    const auto answered = std::make_shared<std::promise<Result<std::string>>>();
    std::future<Result<std::string>> answer = answered->get_future();
    master_->Call({method, std::move(request), deadline, {}, own},
                  cluster::MasterDone([answered](Result<std::string> r) { answered->set_value(std::move(r)); }));
    if (const runtime::WaitHelp* const help = master_->help()) {
      help->Receive([&answer] { return answer.wait_for(std::chrono::seconds(0)) == std::future_status::ready; });
    }
    return answer.get();
  }

  const std::shared_ptr<cluster::MasterService> master_;
};

tf::RunOptions OptionsFor(const session::RunOptions& options, int64_t timeout_ms) {
  tf::RunOptions message;
  if (options.trace || options.collect_nodes) message.set_trace_level(tf::RunOptions::FULL_TRACE);
  message.set_timeout_in_ms(timeout_ms);
  message.set_inter_op_thread_pool(options.inter_op_thread_pool);
  message.set_output_partition_graphs(options.output_partition_graphs);
  return message;
}

Status CheckRemote(const session::RunOptions& options) {
  if (options.rendezvous != nullptr) return Unimplemented("a run at a server has no rendezvous in this process");
  if (options.check_numerics) return Unimplemented("check_numerics works in sessions of this process only");
  return Status();
}

class RemoteSession final : public SessionInterface {
 public:
  RemoteSession(Graph& graph, std::shared_ptr<cluster::MasterService> master, RemoteOptions options)
      : graph_(graph), calls_(std::move(master)), options_(std::move(options)) {}
  ~RemoteSession() override { static_cast<void>(End(Clock::now() + kCloseLimit)); }  // or the server is gone

  Result<std::vector<Tensor>> Run(std::span<const session::Feed> feeds, Names fetches, Names targets,
                                  const session::RunOptions& options, session::RunReport* report) override {
    const auto run = [&](const session::RunOptions& traced, session::RunReport* written) {
      return Step({}, feeds, fetches, targets, traced, written);
    };
    return RunTraced(tracer_.get(), options, report, run);
  }

  Result<session::CallableHandle> MakeCallable(const session::CallableOptions& options) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    callables_.emplace(++last_callable_, options);
    return last_callable_;
  }
  Status RunCallable(session::CallableHandle handle, std::span<const Tensor> feeds, std::vector<Tensor>* fetches,
                     const session::RunOptions& options, session::RunReport* report) override {
    session::CallableOptions call;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      const auto found = callables_.find(handle);
      if (found == callables_.end()) return InvalidArgument("No such callable handle: {}", handle);
      call = found->second;
    }
    if (feeds.size() != call.feeds.size()) {
      return InvalidArgument("Expected {} feed tensors, but got {}", call.feeds.size(), feeds.size());
    }
    std::vector<session::Feed> named;
    for (size_t i = 0; i < feeds.size(); ++i) named.emplace_back(call.feeds[i], feeds[i]);
    WEIR_ASSIGN(*fetches, Run(named, call.fetches, call.targets, options, report));
    return Status();
  }
  Status ReleaseCallable(session::CallableHandle handle) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (callables_.erase(handle) != 0) return Status();
    return InvalidArgument("No such callable handle: {}", handle);
  }

  Result<std::string> PRunSetup(Names feeds, Names fetches, Names targets) override {
    const Clock::time_point deadline = DeadlineOf(options_.operation_timeout_in_ms);
    WEIR_ASSIGN(const std::string session, SendGraph(deadline));
    tf::PartialRunSetupRequest request;
    request.set_session_handle(session);
    request.mutable_feed()->Add(feeds.begin(), feeds.end());
    request.mutable_fetch()->Add(fetches.begin(), fetches.end());
    request.mutable_target()->Add(targets.begin(), targets.end());
    request.set_request_id(static_cast<int64_t>(cluster::RandomId()));
    auto response = calls_.Call<tf::PartialRunSetupResponse>("PartialRunSetup", request, deadline);
    if (!response.ok()) return WithLine(response.status());
    return response->partial_run_handle();
  }
  Result<std::vector<Tensor>> PRun(const std::string& handle, std::span<const session::Feed> feeds,
                                   Names fetches) override {
    return Step(handle, feeds, fetches, {}, {}, nullptr);
  }

  Status Close() override { return End(DeadlineOf(options_.operation_timeout_in_ms)); }

  std::vector<session::DeviceAttributes> ListDevices() const override {
    std::vector<session::DeviceAttributes> list;
    const Clock::time_point deadline = DeadlineOf(options_.operation_timeout_in_ms);
    const Result<std::string> session = const_cast<RemoteSession*>(this)->SendGraph(deadline);
    if (!session.ok()) return list;
    tf::ListDevicesRequest request;
    request.set_session_handle(*session);
    const auto response = calls_.Call<tf::ListDevicesResponse>("ListDevices", request, deadline);
    if (!response.ok()) return list;
    for (const auto* devices : {&response->local_device(), &response->remote_device()}) {
      for (const tf::DeviceAttributes& device : *devices) {
        list.push_back({device.name(), device.device_type(), static_cast<uint64_t>(device.memory_limit())});
      }
    }
    return list;
  }
  session::DeviceReport ReportDevices() const override {
    session::DeviceReport report;
    for (const session::DeviceAttributes& device : ListDevices()) report.visible.push_back(device.name);
    return report;
  }
  session::Placement ReportPlacement() const override { return {}; }
  Result<std::string> ExplainPlacement(std::span<const session::Feed>, Names, Names) override {
    return Unimplemented("{} does not explain placements; run options with output_partition_graphs show them",
                         options_.target);
  }
  std::string ReportMemory() const override { return options_.target + " reports its memory on its status page\n"; }
  void TraceTo(std::shared_ptr<session::Tracer> tracer) override { tracer_ = std::move(tracer); }

 private:
  static Clock::time_point DeadlineOf(int64_t timeout_ms) {
    return timeout_ms > 0 ? Clock::now() + milliseconds(timeout_ms) : Clock::time_point::max();
  }

  /// With the line of the model that made the node which the text names.
  Status WithLine(const Status& status) const {
    const std::string name = NodeIn(status.message());
    const graph::Node* const node = name.empty() ? nullptr : Internals(graph_).definition.Find(name);
    return node == nullptr ? status : status.WithNode(name, node->origin());
  }

  /// The nodes from `first` on, with all functions.
  Result<std::string> GraphFrom(graph::NodeId first) const {
    WEIR_ASSIGN(std::string whole, graph::ExportGraphDef(Internals(graph_).definition));
    if (first == 0) return whole;
    tf::GraphDef message;
    WEIR_TRY(proto::ParseBinary(whole, "GraphDef", message));
    message.mutable_node()->DeleteSubrange(0, std::min(first, message.node_size()));
    return proto::Serialize(message, "GraphDef");
  }

  /// Gives the server what it lacks of the graph; returns the handle of the session.
  Result<std::string> SendGraph(Clock::time_point deadline) {
    const std::lock_guard<std::mutex> lock(sending_);
    if (closed_) return Cancelled("Session has been closed.");
    const graph::NodeId nodes = Internals(graph_).definition.num_nodes();
    if (!handle_.empty() && nodes == sent_) return handle_;
    WEIR_ASSIGN(std::string graph, GraphFrom(sent_));
    const Status status = handle_.empty() ? Create(std::move(graph), deadline) : Extend(std::move(graph), deadline);
    if (!status.ok()) return WithLine(status);
    sent_ = nodes;
    return handle_;
  }

  Status Extend(std::string graph, Clock::time_point deadline) {
    tf::ExtendSessionRequest request;
    request.set_session_handle(handle_);
    request.set_graph_def(std::move(graph));
    request.set_current_graph_version(version_);
    WEIR_ASSIGN(const auto response, calls_.Call<tf::ExtendSessionResponse>("ExtendSession", request, deadline));
    version_ = response.new_graph_version();
    return Status();
  }

  Status Create(std::string graph, Clock::time_point deadline) {
    tf::CreateSessionRequest request;
    request.set_graph_def(std::move(graph));
    request.set_config(options_.config);
    request.set_target(options_.target);
    if (deadline == Clock::time_point::max()) deadline = Clock::now() + options_.creation_limit;
    Status last;
    for (milliseconds wait = kFirstWait;; wait = std::min(wait * 2, kLongestWait)) {
      const auto response = calls_.Call<tf::CreateSessionResponse>("CreateSession", request, deadline);
      if (response.ok()) {
        handle_ = response->session_handle();
        version_ = response->graph_version();
        return Status();
      }
      if (response.status().code() != Code::kUnavailable) return response.status();
      if (last.message() != response.status().message()) {
        last = response.status();
        WarnOnStderr(fmt::format("weir: the session at {} still waits: {}\n", options_.target, last.message()));
      }
      if (Clock::now() + wait >= deadline) {
        return DeadlineExceeded("the session at {} did not begin in time; the last reason: {}", options_.target,
                                last.message());
      }
      std::this_thread::sleep_for(wait);
      if (closing_) return Cancelled("Session has been closed.");
    }
  }

  Result<std::vector<Tensor>> Step(const std::string& partial, std::span<const session::Feed> feeds, Names fetches,
                                   Names targets, const session::RunOptions& options, session::RunReport* report) {
    WEIR_TRY(CheckRemote(options));
    if (report != nullptr) *report = {};
    const int64_t timeout = options.timeout_in_ms > 0 ? options.timeout_in_ms : options_.operation_timeout_in_ms;
    const Clock::time_point deadline = DeadlineOf(timeout);
    WEIR_ASSIGN(const std::string session, SendGraph(deadline));
    tf::RunStepRequest request;
    request.set_session_handle(session);
    request.set_partial_run_handle(partial);
    request.set_store_errors_in_response_body(true);
    request.set_request_id(static_cast<int64_t>(cluster::RandomId()));
    for (const auto& [name, value] : feeds) {
      tf::NamedTensor& feed = *request.add_feed();
      feed.set_name(name);
      WEIR_ASSIGN(*feed.mutable_tensor(), SerializeTensorProto(value));
    }
    std::vector<std::string> asked(fetches.begin(), fetches.end());
    std::ranges::sort(asked);
    asked.erase(std::unique(asked.begin(), asked.end()), asked.end());
    request.mutable_fetch()->Add(asked.begin(), asked.end());
    request.mutable_target()->Add(targets.begin(), targets.end());
    int64_t left = 0;
    if (timeout > 0) {
      left = std::max<int64_t>(std::chrono::duration_cast<milliseconds>(deadline - Clock::now()).count(), 1);
    }
    WEIR_ASSIGN(*request.mutable_options(), proto::Serialize(OptionsFor(options, left), "RunOptions"));
    const Clock::time_point latest = timeout > 0 ? deadline + kReplyTime : deadline;
    auto response = calls_.Call<tf::RunStepResponse>("RunStep", request, latest, options.cancellation);
    if (!response.ok()) return WithLine(response.status());
    if (report != nullptr && !response->metadata().empty()) {
      WEIR_TRY(session::ReadRunMetadata(response->metadata(), *report));
      if (options.collect_nodes) {
        for (const trace::Span& span : report->trace.spans) report->executed_nodes.push_back(span.node);
      }
      if (!options.trace) report->trace = {};
    }
    if (response->status_code() != 0) {
      return WithLine(Status(static_cast<Code>(response->status_code()), response->status_error_message()));
    }
    return Values(*response, fetches);
  }

  static Result<std::vector<Tensor>> Values(const tf::RunStepResponse& response, Names fetches) {
    std::map<std::string, Tensor> by_name;
    for (const tf::NamedTensor& named : response.tensor()) {
      WEIR_ASSIGN(Tensor value, ParseTensorProto(named.tensor()));
      by_name.emplace(named.name(), std::move(value));
    }
    std::vector<Tensor> values;
    for (const std::string& fetch : fetches) {
      const auto found = by_name.find(fetch);
      if (found == by_name.end()) return Internal("the server did not return '{}'", fetch);
      values.push_back(found->second);
    }
    return values;
  }

  Status End(Clock::time_point deadline) {
    tf::CloseSessionRequest request;
    closing_ = true;
    {
      const std::lock_guard<std::mutex> lock(sending_);
      if (std::exchange(closed_, true) || handle_.empty()) return Status();
      request.set_session_handle(handle_);
    }
    return calls_.Call<tf::CloseSessionResponse>("CloseSession", request, deadline).status();
  }

  Graph& graph_;
  const MasterCalls calls_;
  const RemoteOptions options_;
  std::shared_ptr<session::Tracer> tracer_;  // null: none
  std::atomic<bool> closing_{false};         // ends a wait for the server
  std::mutex sending_;                       // protects the next four; held while the graph is sent
  std::string handle_;                       // empty: no session yet
  int64_t version_ = 0;
  graph::NodeId sent_ = 0;
  bool closed_ = false;
  std::mutex mutex_;  // protects all below
  std::map<session::CallableHandle, session::CallableOptions> callables_;
  session::CallableHandle last_callable_ = 0;
};

}  // namespace

std::unique_ptr<SessionInterface> MakeRemoteSession(Graph& graph, std::shared_ptr<cluster::MasterService> master,
                                                    RemoteOptions options) {
  return std::make_unique<RemoteSession>(graph, std::move(master), std::move(options));
}

}  // namespace weir
