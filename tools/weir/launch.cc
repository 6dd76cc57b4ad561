#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/base/errors.h"
#include "core/base/legible.h"
#include "core/cluster/cluster_spec.h"
#include "core/cluster/launch.h"
#include "tools/weir/cluster_commands.h"

namespace weir::cli {
namespace {

constexpr int kInheritedSocket = 3;  // the first descriptor of LISTEN_FDS
constexpr char kServers[] = "ps";    // the job that does not end by itself
constexpr int kCannotRun = 127;
constexpr int kMostTasks = 1024;

int end_pipe[2] = {-1, -1};

/// A listening socket of 127.0.0.1 at a free port.
struct OpenPort {
  int socket = -1;
  int port = 0;
};

Result<OpenPort> OpenFreePort() {
  OpenPort open;
  open.socket = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in at = {};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(at);
  if (open.socket < 0 || bind(open.socket, reinterpret_cast<sockaddr*>(&at), size) != 0 ||
      listen(open.socket, SOMAXCONN) != 0 || getsockname(open.socket, reinterpret_cast<sockaddr*>(&at), &size) != 0) {
    return Unavailable("no free port of 127.0.0.1: {}", std::strerror(errno));
  }
  open.port = ntohs(at.sin_port);
  return open;
}

struct ProcessTask {
  cluster::TaskName name;
  OpenPort port;
  pid_t child = -1;
  int outputs[2] = {-1, -1};  // standard output and error
  std::string lines[2];       // the unfinished line of each
  bool ended = false;
};

/// The addresses of each job, in order.
std::map<std::string, std::vector<std::string>> AddressesOf(const std::vector<ProcessTask>& tasks) {
  std::map<std::string, std::vector<std::string>> jobs;
  for (const ProcessTask& task : tasks) jobs[task.name.job].push_back(fmt::format("127.0.0.1:{}", task.port.port));
  return jobs;
}

std::string Replaced(std::string text, const std::string& what, const std::string& by) {
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size())) {
    text.replace(at, what.size(), by);
  }
  return text;
}

std::vector<std::string> WordsFor(const ProcessTask& task, const std::vector<std::string>& command,
                                  const std::map<std::string, std::vector<std::string>>& jobs) {
  std::vector<std::string> words;
  for (std::string word : command) {
    word = Replaced(std::move(word), "{job}", task.name.job);
    word = Replaced(std::move(word), "{task}", std::to_string(task.name.index));
    for (const auto& [job, addresses] : jobs) {
      word = Replaced(std::move(word), "{hosts:" + job + "}", fmt::format("{}", fmt::join(addresses, ",")));
    }
    words.push_back(std::move(word));
  }
  return words;
}

/// The signals that end the cluster wait while it lives, and come afterwards.
class HeldSignals {
 public:
  HeldSignals() {
    sigset_t both;
    sigemptyset(&both);
    for (const int number : {SIGTERM, SIGINT}) sigaddset(&both, number);
    sigprocmask(SIG_BLOCK, &both, &before_);
  }
  ~HeldSignals() { LetGo(); }
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;
  void LetGo() const { sigprocmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

/// In the child. A signal that came since the fork is held, so that it ends the child and not only wakes the handler
/// of the parent that the child began with.
[[noreturn]] void Become(const ProcessTask& task, std::vector<std::string> words, const std::string& tf_config,
                         pid_t parent, const int (&outputs)[2], const HeldSignals& held) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(kCannotRun);
  for (const int number : {SIGTERM, SIGINT}) signal(number, SIG_DFL);
  held.LetGo();
  const int socket = fcntl(task.port.socket, F_DUPFD, kInheritedSocket + 1);
  dup2(outputs[0], STDOUT_FILENO);
  dup2(outputs[1], STDERR_FILENO);
  dup2(socket, kInheritedSocket);  // without close-on-exec
  close(socket);
  setenv("TF_CONFIG", tf_config.c_str(), 1);
  setenv("LISTEN_FDS", "1", 1);
  setenv("LISTEN_PID", std::to_string(getpid()).c_str(), 1);
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  execvp(argv[0], argv.data());
  fmt::print(stderr, "weir: {} cannot be run: {}\n", argv[0], std::strerror(errno));
  std::fflush(stderr);
  _exit(kCannotRun);
}

/// The tasks of a cluster as child processes.
class TaskProcesses {
 public:
  explicit TaskProcesses(std::vector<ProcessTask> tasks) : tasks_(std::move(tasks)) {}
  ~TaskProcesses() {
    for (ProcessTask& task : tasks_) {
      if (task.child > 0 && !task.ended) {
        kill(task.child, SIGKILL);
        waitpid(task.child, nullptr, 0);
      }
      for (const int file : {task.port.socket, task.outputs[0], task.outputs[1]}) {
        if (file >= 0) close(file);
      }
    }
  }
  TaskProcesses(const TaskProcesses&) = delete;
  TaskProcesses& operator=(const TaskProcesses&) = delete;

  Status Start(const std::vector<std::string>& command) {
    const auto jobs = AddressesOf(tasks_);
    for (ProcessTask& task : tasks_) WEIR_TRY(StartOne(task, WordsFor(task, command, jobs), jobs));
    for (ProcessTask& task : tasks_) close(std::exchange(task.port.socket, -1));
    return Status();
  }

  /// Forwards lines until all have ended; returns the exit status.
  int Wait() {
    while (std::ranges::any_of(tasks_, [](const ProcessTask& task) { return !task.ended; })) {
      std::vector<pollfd> files = {{end_pipe[0], POLLIN, 0}};
      std::vector<std::pair<ProcessTask*, int>> of = {{nullptr, 0}};
      for (ProcessTask& task : tasks_) {
        for (const int i : {0, 1}) {
          if (task.outputs[i] < 0) continue;
          files.push_back({task.outputs[i], POLLIN, 0});
          of.emplace_back(&task, i);
        }
      }
      if (poll(files.data(), files.size(), -1) < 0) continue;
      if (files[0].revents != 0) EndBySignal();
      for (size_t i = 1; i < files.size(); ++i) {
        if (files[i].revents != 0) Forward(*of[i].first, of[i].second);
      }
    }
    return exit_status_;
  }

 private:
  static Status StartOne(ProcessTask& task, std::vector<std::string> words,
                         const std::map<std::string, std::vector<std::string>>& jobs) {
    const nlohmann::json config = {{"cluster", jobs},
                                   {"task", {{"type", task.name.job}, {"index", task.name.index}}}};
    const std::string tf_config = config.dump();
    int out[2], error[2];
    if (pipe2(out, O_CLOEXEC) != 0 || pipe2(error, O_CLOEXEC) != 0) {
      return Unavailable("no pipe for {}: {}", task.name.ToString(), std::strerror(errno));
    }
    const pid_t parent = getpid();
    const HeldSignals held;
    task.child = fork();
    const int why = errno;
    if (task.child == 0) Become(task, std::move(words), tf_config, parent, {out[1], error[1]}, held);
    close(out[1]);
    close(error[1]);
    task.outputs[0] = out[0];
    task.outputs[1] = error[0];
    if (task.child > 0) return Status();
    return Unavailable("no process for {}: {}", task.name.ToString(), std::strerror(why));
  }

  void Forward(ProcessTask& task, int which) {
    char bytes[16384];
    const ssize_t got = read(task.outputs[which], bytes, sizeof(bytes));
    if (got < 0 && errno == EINTR) return;
    std::string& line = task.lines[which];
    if (got > 0) line.append(bytes, static_cast<size_t>(got));
    if (got <= 0 && !line.empty()) line += '\n';
    std::FILE* const to = which == 0 ? stdout : stderr;
    size_t begin = 0;
    for (size_t end = line.find('\n'); end != std::string::npos; end = line.find('\n', begin)) {
      fmt::print(to, "[{} {}] {}\n", task.name.job, task.name.index, Legible(line.substr(begin, end - begin)));
      begin = end + 1;
    }
    line.erase(0, begin);
    std::fflush(to);
    if (got > 0) return;
    close(std::exchange(task.outputs[which], -1));
    if (task.outputs[0] < 0 && task.outputs[1] < 0) End(task);
  }

  void End(ProcessTask& task) {
    int status = 0;
    if (waitpid(task.child, &status, 0) != task.child) status = 0;
    task.ended = true;
    const int code = WIFSIGNALED(status) ? kSignalled + WTERMSIG(status) : WEXITSTATUS(status);
    if (code != 0 && !ending_) {
      const std::string name = task.name.ToString();
      WarnOnStderr(fmt::format("weir: {} ended with status {}; the others are told to end\n", name, code));
      exit_status_ = code;
      TellAll();
    }
    const bool others = std::ranges::any_of(
        tasks_, [](const ProcessTask& other) { return !other.ended && other.name.job != kServers; });
    if (!others) TellAll();
  }

  void EndBySignal() {
    char number = 0;
    if (read(end_pipe[0], &number, 1) != 1) return;
    if (exit_status_ == 0) exit_status_ = kSignalled + number;
    TellAll();
  }

  void TellAll() {
    ending_ = true;
    for (const ProcessTask& task : tasks_) {
      if (!task.ended && task.child > 0) kill(task.child, SIGTERM);
    }
  }

  std::vector<ProcessTask> tasks_;
  int exit_status_ = 0;
  bool ending_ = false;
};

Status CatchSignals() {
  if (pipe2(end_pipe, O_CLOEXEC | O_NONBLOCK) != 0) return Unavailable("no pipe: {}", std::strerror(errno));
  struct sigaction action = {};
  action.sa_handler = [](int number) {
    const char byte = static_cast<char>(number);
    [[maybe_unused]] const ssize_t written = write(end_pipe[1], &byte, 1);
  };
  for (const int number : {SIGTERM, SIGINT}) sigaction(number, &action, nullptr);
  return Status();
}

}  // namespace

Status LaunchCluster(const LaunchOptions& options, const Console& console, int& exit_status) {
  if (!options.print.empty()) {
    WEIR_ASSIGN(const std::string text, LauncherText(options.print, options));
    console.Print(text);
    return Status();
  }
  WEIR_ASSIGN(const cluster::Roles roles, cluster::Roles::Parse(options.jobs));
  const int size = roles.size().value_or(0);
  if (size < 1 || size > kMostTasks) {
    return InvalidArgument("--jobs '{}': wanted 1 to {} tasks with a number for each job", options.jobs, kMostTasks);
  }
  WEIR_ASSIGN(const std::vector<cluster::TaskName> names, roles.TasksOf(size));
  std::vector<ProcessTask> tasks;
  for (const cluster::TaskName& name : names) {
    ProcessTask task;
    task.name = name;
    WEIR_ASSIGN(task.port, OpenFreePort());
    tasks.push_back(std::move(task));
  }
  WEIR_TRY(CatchSignals());
  std::vector<std::string> command = options.command;
  if (command.empty()) {
    std::error_code error;
    command = {std::filesystem::read_symlink("/proc/self/exe", error).string(), "serve"};
  }
  TaskProcesses processes(std::move(tasks));
  WEIR_TRY(processes.Start(command));
  exit_status = processes.Wait();
  return Status();
}

}  // namespace weir::cli
