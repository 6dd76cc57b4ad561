#include "core/client/training/ready_session.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <thread>

#include "core/base/errors.h"

namespace weir {
namespace {

using Clock = std::chrono::steady_clock;

double Since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }
void Pause(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

std::string NameOrNone(const Operation& operation) { return operation.exists() ? operation.name() : "None"; }

/// Until a task of the cluster is there, its sessions cannot be made or run.
bool MayComeYet(const Status& status) { return status.code() == Code::kUnavailable || status.code() == Code::kAborted; }

}  // namespace

Result<Readiness> ReadyToRun(const Output& ready_op, Session& session, std::string_view text) {
  if (!ready_op.exists()) return Readiness();
  const Result<Fetched> fetched = session.Run(ready_op);
  if (!fetched.ok()) {
    const Status& why = fetched.status();
    if (why.code() != Code::kFailedPrecondition) return why;
    if (why.message().find("uninitialized") != std::string::npos) return Readiness{false, why.message()};
    std::fprintf(stderr, "weir: %s : error [%s]\n", std::string(text).c_str(), why.message().c_str());
    return why;
  }
  const Tensor& names = fetched->tensor();
  if (names.dtype() != DType::kString || names.elements() == 0) return Readiness();
  return Readiness{false, fmt::format("Variables not initialized: {}", fmt::join(names.as<std::string>(), ", "))};
}

SessionManager::SessionManager(SessionManagerOptions options, Graph& graph)
    : options_(std::move(options)), graph_(&graph) {
  if (options_.ready_for_local_init_op.exists() && !options_.local_init_op.exists()) {
    status_ = InvalidArgument(
        "If you pass a ready_for_local_init_op you must also pass a local_init_op , ready_for_local_init_op [{}]",
        options_.ready_for_local_init_op.ToString());
  }
}

Result<std::unique_ptr<Session>> SessionManager::Open(const SessionMaker& make) const {
  WEIR_TRY(status_);
  std::unique_ptr<Session> session = make ? make(*graph_) : std::make_unique<Session>(*graph_);
  if (!session) return FailedPrecondition("no session was made");
  WEIR_TRY(session->status());
  return session;
}

Result<bool> SessionManager::Restore(Session& session, const PrepareOptions& options) const {
  if (!options.checkpoint_dir.empty() && !options.checkpoint_path.empty()) {
    return InvalidArgument("Can not provide both checkpoint_dir and checkpoint_filename_with_path.");
  }
  if (!options.saver || (options.checkpoint_dir.empty() && options.checkpoint_path.empty())) return false;
  Saver saver = *options.saver;
  if (!options.checkpoint_path.empty()) {
    WEIR_TRY(saver.Restore(session, options.checkpoint_path));
    return true;
  }
  const Clock::time_point start = Clock::now();
  while (true) {
    const bool listed = !LatestCheckpoint(options.checkpoint_dir).empty();
    const Result<std::string> restored = saver.RestoreLatest(session, options.checkpoint_dir);
    if (restored.ok()) return true;
    if (listed || restored.status().code() != Code::kNotFound) return restored.status();
    if (!options.wait_for_checkpoint || Since(start) >= options.max_wait_secs) return false;
    Pause(options_.recovery_wait_secs);
  }
}

Result<Readiness> SessionManager::RunLocalInit(Session& session) const {
  if (!options_.local_init_op.exists()) return Readiness();
  WEIR_ASSIGN(const Readiness ready,
              ReadyToRun(options_.ready_for_local_init_op, session, "Model not ready for local init"));
  if (!ready.ready) return ready;
  WEIR_TRY(session.Run(options_.local_init_op, options_.local_init_feeds).status());
  return ready;
}

Result<std::unique_ptr<Session>> SessionManager::PrepareSession(const PrepareOptions& options) const {
  WEIR_ASSIGN(std::unique_ptr<Session> session, Open(options.make));
  WEIR_ASSIGN(const bool restored, Restore(*session, options));
  const std::string init_fn = options.init_fn ? "given" : "None";
  if (!restored) {
    if (!options.init_op.exists() && !options.init_fn && !options_.local_init_op.exists()) {
      return FailedPrecondition("Model is not initialized and no init_op or init_fn or local_init_op was given");
    }
    if (options.init_op.exists()) WEIR_TRY(session->Run(options.init_op, options.init_feeds).status());
    if (options.init_fn) WEIR_TRY(options.init_fn(*session));
  }
  WEIR_ASSIGN(const Readiness local, RunLocalInit(*session));
  if (!local.ready) {
    return FailedPrecondition(
        "Init operations did not make model ready for local_init.  Init op: {}, init fn: {}, error: {}",
        NameOrNone(options.init_op), init_fn, local.why);
  }
  WEIR_ASSIGN(const Readiness ready, ReadyToRun(options_.ready_op, *session, "Model not ready"));
  if (ready.ready) return session;
  return FailedPrecondition(
      "Init operations did not make model ready.  Init op: {}, init fn: {}, local_init_op: {}, error: {}",
      NameOrNone(options.init_op), init_fn, NameOrNone(options_.local_init_op), ready.why);
}

Result<std::pair<std::unique_ptr<Session>, bool>> SessionManager::RecoverSession(const PrepareOptions& options) const {
  WEIR_ASSIGN(std::unique_ptr<Session> session, Open(options.make));
  WEIR_ASSIGN(const bool restored, Restore(*session, options));
  WEIR_ASSIGN(const Readiness local, RunLocalInit(*session));
  bool usable = restored && local.ready;
  if (usable) {
    WEIR_ASSIGN(const Readiness ready, ReadyToRun(options_.ready_op, *session, "Model not ready"));
    usable = ready.ready;
  }
  return std::pair<std::unique_ptr<Session>, bool>(std::move(session), usable);
}

Result<std::unique_ptr<Session>> SessionManager::WaitForSession(const SessionMaker& make,
                                                                std::optional<double> max_wait_secs) const {
  WEIR_TRY(status_);
  const Clock::time_point start = Clock::now();
  while (true) {
    const auto attempt = [&]() -> Result<std::unique_ptr<Session>> {
      WEIR_ASSIGN(std::unique_ptr<Session> session, Open(make));
      WEIR_ASSIGN(const Readiness local, RunLocalInit(*session));
      if (!local.ready) return std::unique_ptr<Session>();
      WEIR_ASSIGN(const Readiness ready, ReadyToRun(options_.ready_op, *session, "Model not ready"));
      return ready.ready ? std::move(session) : std::unique_ptr<Session>();
    };
    Result<std::unique_ptr<Session>> session = attempt();
    if (session.ok() && *session != nullptr) return session;
    if (!session.ok() && !MayComeYet(session.status())) return session;
    if (max_wait_secs && Since(start) + options_.recovery_wait_secs > *max_wait_secs) {
      return DeadlineExceeded("Session was not ready after waiting {} secs.", static_cast<int64_t>(*max_wait_secs))
          .Append(session.ok() ? "" : " Last error: " + session.status().ToString());
    }
    Pause(options_.recovery_wait_secs);
  }
}

}  // namespace weir
