#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <optional>
#include <utility>

#include "core/base/errors.h"
#include "core/base/legible.h"
#include "core/cluster/inherited.h"
#include "core/cluster/launch.h"
#include "core/cluster/ranks.h"
#include "core/config/document.h"
#include "core/config/settings.h"
#include "core/config/value.h"
#include "core/door/server.h"
#include "core/door/transports.h"
#include "tools/weir/cluster_commands.h"
#include "tools/weir/status_page.h"

namespace weir::cli {
namespace {

constexpr char kTerminationLog[] = "/dev/termination-log";  // of a container; its last lines are shown to users

/// Signals as readable events. From its construction on, all threads have them blocked.
class Signals {
 public:
  Signals() {
    sigset_t set;
    sigemptyset(&set);
    for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGUSR1}) sigaddset(&set, number);
    pthread_sigmask(SIG_BLOCK, &set, nullptr);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is an error of its write
    signals_ = signalfd(-1, &set, SFD_CLOEXEC);
    told_ = eventfd(0, EFD_CLOEXEC);
  }
  ~Signals() {
    close(signals_);
    close(told_);
  }
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  /// Makes Next return 0; from any thread.
  void Tell() const {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = write(told_, &one, sizeof(one));
  }
  /// Waits for a signal or Tell.
  int Next() const {
    for (;;) {
      pollfd files[] = {{told_, POLLIN, 0}, {signals_, POLLIN, 0}};
      if (poll(files, 2, -1) < 0) continue;
      if (files[0].revents != 0) {
        uint64_t count = 0;
        if (read(told_, &count, sizeof(count)) == sizeof(count)) return 0;
      }
      signalfd_siginfo info;
      if (files[1].revents != 0 && read(signals_, &info, sizeof(info)) == sizeof(info)) {
        return static_cast<int>(info.ssi_signo);
      }
    }
  }

 private:
  int signals_ = -1, told_ = -1;
};

Result<config::Config> WholeConfigOf(const config::Sources& sources) {
  WEIR_ASSIGN(const config::Loaded loaded, config::Load(sources));
  for (const std::string& note : loaded.notes) WarnOnStderr("weir: note: " + note + "\n");
  return loaded.settings.Build();
}

/// The tasks of a job whose launcher gives ranks only.
Result<cluster::Ranks> Meet(const cluster::Launch& launch, const cluster::Roles& roles,
                            const config::ClusterConfig& config) {
  if (launch.registry.empty()) {
    return FailedPrecondition("{} gives ranks without addresses: name them with --cluster or cluster.spec",
                              launch.source);
  }
  WEIR_ASSIGN(const auto runtime, session::Runtime::For({}));
  WEIR_ASSIGN(const auto transport, door::TransportOf("weir", *runtime));
  WEIR_ASSIGN(const cluster::LocalEnd self, cluster::EndFrom(config, launch.task, cluster::RandomId()));
  const std::chrono::milliseconds limit(config.creation_limit_ms.value());
  return cluster::MeetRanks(*transport, launch, roles, self, cluster::Clock::now() + limit);
}

/// The cluster and the own task by the configuration, else by the launcher, whose ranks may have to meet.
Status FindTask(const Console& console, cluster::ServerOptions& options, std::optional<cluster::Ranks>& met) {
  const config::ClusterConfig& config = options.config.cluster;
  std::optional<std::string> job;
  std::optional<int> task;
  if (!config.job.value().empty()) job = config.job;
  if (config.task >= 0) task = config.task;
  cluster::Roles roles;
  if (!config.roles.value().empty()) {
    WEIR_ASSIGN(roles, cluster::Roles::Parse(config.roles.value()));
  }
  const bool whole = !config.spec.value().empty() && (job || task);
  std::optional<cluster::Launch> launch;
  if (!whole) {
    WEIR_ASSIGN(launch, cluster::FindLaunch(cluster::EnvironmentOfProcess(), roles));
  }
  if (launch) console.Print("launched by " + launch->ToString());
  if (!config.spec.value().empty()) {
    WEIR_ASSIGN(options.cluster, cluster::ClusterSpec::ParseFlag(config.spec.value()));
    if (launch) {
      job = launch->task.job;
      task = launch->task.index;
    }
    WEIR_ASSIGN(options.task, cluster::OwnTask(options.cluster, job, task));
    return Status();
  }
  if (!launch) {
    // TensorFlow's own server without a cluster is of the job "local", which its clients may name.
    const char* const alone = config.grpc.value().empty() ? "localhost" : "local";
    options.task = {job.value_or(alone), task.value_or(0)};
    return Status();
  }
  options.cluster = launch->cluster;
  if (launch->cluster.empty()) {
    std::fflush(stdout);
    WEIR_ASSIGN(met, Meet(*launch, roles, config));
    options.cluster = met->cluster;
    options.inherited_socket = met->socket;
    console.Print("the ranks are " + options.cluster.ToString());
  }
  options.task = {job.value_or(launch->task.job), task.value_or(launch->task.index)};
  return cluster::OwnTask(options.cluster, options.task.job, options.task.index).status();
}

std::string CountsText(const cluster::ServerView& view) {
  return fmt::format("{}: {} sessions, {} parts of graphs, {} steps, {} parts running{}\n", view.task.ToString(),
                     view.counts.sessions, view.counts.parts, view.counts.steps, view.counts.running,
                     view.draining ? ", draining" : "");
}

std::string MetricsText(const cluster::ServerView& view) {
  const std::string task = fmt::format("{{job=\"{}\",task=\"{}\"}}", view.task.job, view.task.index);
  std::string text;
  const auto add = [&](const char* name, const char* help, auto value) {
    text += fmt::format("# HELP weir_{0} {1}\n# TYPE weir_{0} gauge\nweir_{0}{2} {3}\n", name, help, task, value);
  };
  add("sessions", "Sessions of masters in this task.", view.counts.sessions);
  add("parts", "Registered parts of graphs.", view.counts.parts);
  add("steps", "Steps under way.", view.counts.steps);
  add("parts_running", "Parts that run now.", view.counts.running);
  add("seconds_up", "Time since the start.", view.seconds_up);
  add("draining", "1 while no new steps are taken.", view.draining ? 1 : 0);
  return text;
}

std::string HomeText(const cluster::ServerView& view) {
  std::string rows;
  for (const std::string& device : view.devices) rows += fmt::format("<li>{}</li>\n", device);
  return fmt::format(
      "<!doctype html><title>{0}</title><h1>{0}</h1>\n<p>weir {1} at {2}, up {3} s{4}</p>\n<p>{5}</p>\n"
      "<ul>\n{6}</ul>\n<p><a href=\"/metrics\">metrics</a> <a href=\"/debug/steps\">steps</a></p>\n",
      view.task.ToString(), view.version, view.address, view.seconds_up, view.draining ? ", draining" : "",
      CountsText(view), rows);
}

Page PageOf(const cluster::Server& server, const std::string& path) {
  const cluster::ServerView view = server.View();
  if (path == "/") return {200, "text/html; charset=utf-8", HomeText(view)};
  if (path == "/healthz") return {200, "text/plain", "ok\n"};
  if (path == "/readyz") return view.draining ? Page{503, "text/plain", "draining\n"} : Page{200, "text/plain", "ok\n"};
  if (path == "/metrics") return {200, "text/plain; version=0.0.4", MetricsText(view)};
  if (path == "/debug/steps") return {200, "text/plain", CountsText(view)};
  return {404, "text/plain", "there is /, /healthz, /readyz, /metrics and /debug/steps\n"};
}

/// True for a setting that a running server takes over.
bool HoldsAtOnce(const std::string& key) {
  return key == "cluster.drain_limit_ms" || key == "cluster.token_file" || key.starts_with("cluster.tls_");
}

/// Reads the configuration, the token and the certificates again.
void Reload(const config::Sources& sources, cluster::Server& server, config::Config& current) {
  const Result<config::Config> read = WholeConfigOf(sources);
  if (!read.ok()) {
    WarnOnStderr(fmt::format("weir: the configuration stays as it was: {}\n", OnOneLine(read.status().ToString())));
    return;
  }
  const std::vector<config::Shown> before = config::List(current, config::Show::kAll);
  std::map<std::string, std::string> values;
  for (const config::Shown& shown : before) values[shown.key] = config::ToToml(shown.value);
  for (const config::Shown& shown : config::List(*read, config::Show::kAll)) {
    if (values[shown.key] == config::ToToml(shown.value)) continue;
    WarnOnStderr(fmt::format("weir: {} = {} {}\n", shown.key, config::ToToml(shown.value),
                             HoldsAtOnce(shown.key) ? "holds from now on" : "will hold after a restart"));
  }
  current.cluster.drain_limit_ms = read->cluster.drain_limit_ms;
  if (const Status status = server.Renew(read->cluster); status.ok()) {
    current.cluster.token_file = read->cluster.token_file;
    current.cluster.tls_certificate = read->cluster.tls_certificate;
    current.cluster.tls_key = read->cluster.tls_key;
    current.cluster.tls_authorities = read->cluster.tls_authorities;
  } else {
    WarnOnStderr(fmt::format("weir: the old token and certificates stay: {}\n", OnOneLine(status.ToString())));
  }
  WarnOnStderr("weir: the configuration was read again\n");
}

/// Serves until the end; returns the exit status.
int ServeUntilEnd(cluster::Server& server, const Signals& signals, const ServeOptions& options,
                  config::Config& current) {
  std::future<Status> drained;
  int ended_by = 0;
  for (;;) {
    const int number = signals.Next();
    if (number == SIGUSR1) {
      WarnOnStderr("weir: " + CountsText(server.View()));
    } else if (number == SIGHUP) {
      Reload(options.sources, server, current);
    } else if (number != 0 && ended_by != 0) {
      _exit(kSignalled + number);  // what runs does not end
    } else if (number != 0) {
      ended_by = number;
      const std::chrono::milliseconds limit(current.cluster.drain_limit_ms.value());
      WarnOnStderr(fmt::format("weir: {} drains for up to {} ms; a second signal ends it now\n",
                               server.task().ToString(), limit.count()));
      drained = std::async(std::launch::async, [&server, &signals, limit] {
        const Status status = server.Drain(cluster::Clock::now() + limit);
        signals.Tell();
        return status;
      });
    } else {
      break;  // the job is done, or everything has ended
    }
  }
  const auto limit = cluster::Clock::now() + std::chrono::milliseconds(current.cluster.drain_limit_ms.value());
  const Status status = drained.valid() ? drained.get() : server.Drain(limit);
  if (!status.ok()) WarnOnStderr(fmt::format("weir: {}\n", OnOneLine(status.ToString())));
  server.Stop();
  return ended_by == 0 ? 0 : kSignalled + ended_by;
}

Status LogEnd(const Status& status) {
  std::error_code missing;
  if (!status.ok() && std::filesystem::exists(kTerminationLog, missing)) {
    std::ofstream(kTerminationLog, std::ios::app) << "weir: " << OnOneLine(status.ToString()) << "\n";
  }
  return status;
}

Status ServeTask(const ServeOptions& options, const Console& console, int& exit_status) {
  const auto signals = std::make_shared<const Signals>();  // the thread that tells the end may be late
  cluster::ServerOptions task;
  WEIR_ASSIGN(task.config, WholeConfigOf(options.sources));
  config::Config current = task.config;
  std::optional<cluster::Ranks> met;  // the registry answers late ranks while this one serves
  WEIR_TRY(FindTask(console, task, met));
  if (task.inherited_socket < 0) task.inherited_socket = cluster::TakeInheritedSocket();
  WEIR_ASSIGN(const std::unique_ptr<cluster::Server> server, door::StartServer(std::move(task)));
  std::unique_ptr<StatusPage> page;
  if (!current.cluster.status.value().empty()) {
    WEIR_ASSIGN(page, StatusPage::Listen(current.cluster.status,
                                         [&server](const std::string& path) { return PageOf(*server, path); }));
  }
  server->OnDone([signals] { signals->Tell(); });
  console.Print(fmt::format("serving {} at {}", server->task().ToString(), server->target()));
  if (!server->grpc_target().empty()) console.Print("serving TensorFlow's clients at " + server->grpc_target());
  if (page != nullptr) console.Print("status page at http://" + page->address());
  std::fflush(stdout);
  exit_status = ServeUntilEnd(*server, *signals, options, current);
  return Status();
}

}  // namespace

Status Serve(const ServeOptions& options, const Console& console, int& exit_status) {
  return LogEnd(ServeTask(options, console, exit_status));
}

}  // namespace weir::cli
