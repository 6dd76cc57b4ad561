#include "core/client/training/queue_runner.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>
#include <utility>

#include "core/base/errors.h"
#include "core/proto/parse.h"
#include "core/runtime/cancellation.h"
#include "core/session/reports.h"
#include "weir/proto/meta_graph.pb.h"

namespace weir {

struct QueueRunner::Shared {
  std::mutex mutex;
  std::vector<Status> errors;
};

/// One call of CreateThreads.
struct QueueRunner::Round {
  Session& session;
  QueueRunnerOptions options;
  std::shared_ptr<Shared> shared;
  runtime::Cancellation cancellation;
  std::atomic<int> running{0};

  Round(Session& in, QueueRunnerOptions with, std::shared_ptr<Shared> errors)
      : session(in), options(std::move(with)), shared(std::move(errors)) {}

  Status Enqueue(const Operation& op) {
    session::RunOptions run;
    run.cancellation = &cancellation;
    return session.Run(op, {}, run, nullptr).status();
  }

  void Fill(const Operation& op, const Coordinator* coordinator) {
    Status status;
    while (status.ok() && !(coordinator != nullptr && coordinator->ShouldStop())) status = Enqueue(op);
    const bool ended = std::ranges::find(options.queue_closed_codes, status.code()) != options.queue_closed_codes.end();
    const bool last = --running == 0;
    if (ended) {
      // An error of closing is that of a queue which is closed already.
      if (last) (void)session.Run(options.close_op);
    } else if (!status.ok() && coordinator != nullptr) {
      coordinator->RequestStop(status);
    } else if (!status.ok()) {
      const std::lock_guard lock(shared->mutex);
      shared->errors.push_back(status);
    }
  }

  /// Ends what waits once the coordinator stops.
  void CloseOnStop(const Coordinator& coordinator) {
    coordinator.WaitForStop();
    (void)session.Run(options.cancel_op);
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(options.cancel_after_secs);
    while (running > 0 && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    if (running > 0) cancellation.Cancel(Cancelled("the queue runner stops"));
  }
};

QueueRunner::QueueRunner() : shared_(std::make_shared<Shared>()) {}

QueueRunner::QueueRunner(const QueueBase& queue, std::vector<Operation> enqueue_ops, const QueueRunnerOptions& options,
                         Where where)
    : name_(queue.name()),
      enqueue_ops_(std::move(enqueue_ops)),
      options_(options),
      shared_(std::make_shared<Shared>()) {
  if (enqueue_ops_.empty()) {
    Graph& graph = Graph::Default();
    (void)graph.Fail(InvalidArgument("Must provide enqueue_ops. ({})", Format(where)));
    return;
  }
  if (!options_.close_op.exists()) options_.close_op = queue.Close(false, {}, where);
  if (!options_.cancel_op.exists()) options_.cancel_op = queue.Close(true, {}, where);
}

Result<QueueRunner> QueueRunner::FromProto(std::string_view def, Graph& graph, const std::string& prefix) {
  tf::QueueRunnerDef message;
  if (!message.ParseFromArray(def.data(), static_cast<int>(std::min<size_t>(def.size(), 1 << 20)))) {
    return DataLoss("{} bytes are no QueueRunnerDef", def.size());
  }
  const auto named = [&](const std::string& name) {
    return graph.OperationByName(prefix.empty() ? name : prefix + "/" + name);
  };
  QueueRunner runner;
  runner.name_ = prefix.empty() ? message.queue_name() : prefix + "/" + message.queue_name();
  for (const std::string& name : message.enqueue_op_name()) {
    WEIR_ASSIGN(const Operation op, named(name));
    runner.enqueue_ops_.push_back(op);
  }
  WEIR_ASSIGN(runner.options_.close_op, named(message.close_op_name()));
  WEIR_ASSIGN(runner.options_.cancel_op, named(message.cancel_op_name()));
  if (message.queue_closed_exception_types_size() > 0) runner.options_.queue_closed_codes.clear();
  for (const int code : message.queue_closed_exception_types()) {
    runner.options_.queue_closed_codes.push_back(static_cast<Code>(code));
  }
  return runner;
}

std::string QueueRunner::ToProto() const {
  tf::QueueRunnerDef message;
  message.set_queue_name(name_);
  for (const Operation& op : enqueue_ops_) message.add_enqueue_op_name(op.name());
  message.set_close_op_name(options_.close_op.name());
  message.set_cancel_op_name(options_.cancel_op.name());
  for (const Code code : options_.queue_closed_codes) message.add_queue_closed_exception_types(static_cast<int>(code));
  return message.SerializeAsString();
}

std::vector<ThreadPtr> QueueRunner::CreateThreads(Session& session, const Coordinator* coordinator, bool start) const {
  const auto round = std::make_shared<Round>(session, options_, shared_);
  round->running = static_cast<int>(enqueue_ops_.size());
  const std::string prefix = "QueueRunnerThread-" + name_ + "-";
  std::vector<ThreadPtr> threads;
  // The threads keep a copy of the coordinator.
  const std::shared_ptr<const Coordinator> kept =
      coordinator == nullptr ? nullptr : std::make_shared<const Coordinator>(*coordinator);
  for (const Operation& op : enqueue_ops_) {
    threads.push_back(
        std::make_shared<CoordinatedThread>(prefix + op.name(), [round, op, kept] { round->Fill(op, kept.get()); }));
  }
  if (coordinator != nullptr) {
    threads.push_back(
        std::make_shared<CoordinatedThread>(prefix + "close_on_stop", [round, kept] { round->CloseOnStop(*kept); }));
  }
  for (const ThreadPtr& thread : threads) {
    if (coordinator != nullptr) coordinator->RegisterThread(thread);
    if (start) thread->Start();
  }
  return threads;
}

std::vector<Status> QueueRunner::errors_raised() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->errors;
}

void AddQueueRunner(const QueueRunner& runner, const std::string& collection, Graph& graph) {
  graph.AddToCollection(collection, runner.ToProto());
}

Result<std::vector<QueueRunner>> QueueRunnersIn(Graph& graph, const std::string& collection) {
  std::vector<QueueRunner> runners;
  for (const CollectionEntry& entry : graph.GetCollection(collection)) {
    WEIR_ASSIGN(QueueRunner runner, QueueRunner::FromProto(entry.text, graph));
    runners.push_back(std::move(runner));
  }
  return runners;
}

Result<std::vector<ThreadPtr>> StartQueueRunners(const StartOptions& options) {
  Session* const session = options.session != nullptr ? options.session : Session::Default();
  if (session == nullptr) {
    return InvalidArgument(
        "Cannot start queue runners: No default session is registered. Use `with sess.as_default()` or pass an "
        "explicit session to tf.start_queue_runners(sess=sess)");
  }
  WEIR_ASSIGN(const std::vector<QueueRunner> runners, QueueRunnersIn(session->graph(), options.collection));
  std::vector<ThreadPtr> threads;
  for (const QueueRunner& runner : runners) {
    const std::vector<ThreadPtr> made = runner.CreateThreads(*session, options.coordinator, options.start);
    threads.insert(threads.end(), made.begin(), made.end());
  }
  return threads;
}

}  // namespace weir
