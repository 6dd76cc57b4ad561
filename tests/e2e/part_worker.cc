// part_worker: runs parts of steps in a process of its own. It takes jobs from file descriptor 3 (part_wire.h) until
// that is closed: a part as a GraphDef, its feeds, and the values that other parts send.
#include <cstdio>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/errors.h"
#include "core/graph/graph_def.h"
#include "core/graph/part.h"
#include "core/runtime/rendezvous.h"
#include "core/session/session.h"
#include "core/tensor/tensor_proto.h"
#include "tests/e2e/part_wire.h"

namespace weir::testing {
namespace {

constexpr int kFile = 3;
constexpr int kDevices = 3;
constexpr int64_t kLimitMs = 120000;

/// Serializes the frames of all threads.
Status Tell(const Frame& frame) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  return WriteFrame(kFile, frame);
}

/// Sends to the other processes; receives what they sent.
class RemoteRendezvous final : public runtime::Rendezvous {
 public:
  Status Send(std::string_view key, runtime::Message message) override {
    Frame frame{FrameKind::kMessage, std::string(key), {}};
    if (!message.dead) {
      WEIR_ASSIGN(frame.data, SerializeTensorProto(message.value));
    }
    return Tell(frame);
  }
  void RecvAsync(std::string_view key, Received received) override { arrived_.RecvAsync(key, std::move(received)); }
  void Abort(const Status& status) override {
    (void)Tell({FrameKind::kAbort, status.ToString(), {}});
    arrived_.Abort(status);
  }

  Status Arrive(const Frame& frame) {
    if (frame.data.empty()) return arrived_.Send(frame.name, {Tensor(), true});
    WEIR_ASSIGN(Tensor value, ParseTensorProto(frame.data));
    return arrived_.Send(frame.name, {std::move(value), false});
  }
  void ArriveAbort(const std::string& text) { arrived_.Abort(Aborted("another part failed: {}", text)); }

 private:
  runtime::LocalRendezvous arrived_;
};

class Job {
 public:
  Job(std::shared_ptr<session::Runtime> runtime, std::string graph_def)
      : runtime_(std::move(runtime)), graph_def_(std::move(graph_def)) {}
  ~Job() {
    if (thread_.joinable()) thread_.join();
  }
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  Status Feed(const Frame& frame) {
    WEIR_ASSIGN(Tensor value, ParseTensorProto(frame.data));
    feeds_.push_back(std::move(value));
    return Status();
  }
  void Start() {
    thread_ = std::thread([this] {
      const Status end = Run();
      if (!end.ok()) rendezvous_.Abort(end);
      (void)Tell({FrameKind::kEnd, end.ok() ? std::string() : end.ToString(), {}});
    });
  }
  RemoteRendezvous& rendezvous() { return rendezvous_; }

 private:
  Status Run() {
    WEIR_ASSIGN(const graph::Definition graph,
                graph::ParseGraph(graph_def_, *runtime_->ops, {.allow_internal_names = true}));
    WEIR_ASSIGN(const graph::PartRequest request, graph::RequestOfPart(graph));
    std::vector<session::Feed> feeds;
    for (size_t i = 0; i < request.feeds.size(); ++i) {
      const auto position = static_cast<size_t>(request.feeds[i]);
      if (position >= feeds_.size()) return InvalidArgument("no feed {}", position);
      feeds.emplace_back(graph::FullEndpointName(graph, request.request.feeds[i].endpoint), feeds_[position]);
    }
    std::vector<std::string> fetches, targets;
    for (const graph::Endpoint& fetch : request.request.fetches) {
      fetches.push_back(graph::FullEndpointName(graph, fetch));
    }
    for (const graph::NodeId target : request.request.targets) targets.push_back(graph.node(target).name());
    session::SessionOptions options;
    options.placement_log = [](const std::string&) {};
    WEIR_ASSIGN(const std::unique_ptr<session::Session> session, session::Session::Make(runtime_, graph, options));
    session::RunOptions run;
    run.rendezvous = &rendezvous_;
    run.timeout_in_ms = kLimitMs;
    WEIR_ASSIGN(const std::vector<Tensor> values, session->Run(feeds, fetches, targets, run));
    for (size_t i = 0; i < values.size(); ++i) {
      WEIR_ASSIGN(std::string bytes, SerializeTensorProto(values[i]));
      WEIR_TRY(Tell({FrameKind::kFetch, std::to_string(request.fetches[i]), std::move(bytes)}));
    }
    return Status();
  }

  const std::shared_ptr<session::Runtime> runtime_;
  const std::string graph_def_;
  std::vector<Tensor> feeds_;
  RemoteRendezvous rendezvous_;
  std::thread thread_;
};

/// Ends with the reason for which no more jobs come.
Status Serve() {
  config::Config config;
  config.device_count["CPU"] = kDevices;
  WEIR_ASSIGN(const std::shared_ptr<session::Runtime> runtime, session::Runtime::For(config));
  std::unique_ptr<Job> job;
  while (true) {
    WEIR_ASSIGN(Frame frame, ReadFrame(kFile));
    if (frame.kind == FrameKind::kGraph) {
      job = nullptr;  // waits for its end
      job = std::make_unique<Job>(runtime, std::move(frame.data));
    } else if (job == nullptr) {
      continue;  // a message between other parts
    } else if (frame.kind == FrameKind::kFeed) {
      WEIR_TRY(job->Feed(frame));
    } else if (frame.kind == FrameKind::kRun) {
      job->Start();
    } else if (frame.kind == FrameKind::kMessage) {
      (void)job->rendezvous().Arrive(frame);  // refused after an abort
    } else if (frame.kind == FrameKind::kAbort) {
      job->rendezvous().ArriveAbort(frame.name);
    }
  }
}

}  // namespace
}  // namespace weir::testing

int main() {
  const weir::Status end = weir::testing::Serve();
  if (end.code() == weir::Code::kUnavailable) return 0;
  std::fprintf(stderr, "part_worker: %s\n", end.ToString().c_str());
  return 1;
}
