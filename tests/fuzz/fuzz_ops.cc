// The op fuzzer: random ops of the catalogue with random operands, run as whole steps on the kernels of this build. Any
// status but INTERNAL is accepted. A crash, a hang, too much memory, INTERNAL, or a value whose type or shape differs
// from the graph's declaration is a finding: its case is written to a file, and a new process continues with the next
// case.
#include <fcntl.h>
#include <fmt/format.h>
#include <getopt.h>
#include <google/protobuf/stubs/logging.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "core/ops/declare_all.h"
#include "tests/fuzz/op_cases.h"
#include "tests/fuzz/op_run.h"

// Sanitizers call these for their default options, which the environment may override.
extern "C" const char* __asan_default_options() {
  return "allocator_may_return_null=1:max_allocation_size_mb=80:intercept_tls_get_addr=0:handle_abort=1:"
         "detect_stack_use_after_return=0:quarantine_size_mb=64";
}
extern "C" const char* __ubsan_default_options() { return "print_stacktrace=1:halt_on_error=1"; }
extern "C" const char* __lsan_default_suppressions() { return "leak:libprotobuf.so\n"; }

namespace weir::fuzz {
namespace {

constexpr size_t kMostOps = 1024;
constexpr int kMostFindings = 200;
/// Fetched tensors are not device memory, so the address space is limited too.
constexpr rlim_t kAddressSpace = rlim_t{3} << 30;
constexpr uint64_t kNone = ~uint64_t{0};

struct Arguments {
  uint64_t seed = 1;
  uint64_t first = 0;
  uint64_t cases = 20000;
  int64_t seconds = 1 << 30;
  int64_t hang_s = 20;
  int64_t memory_mib = 2048;
  int jobs = 1;
  uint64_t only = kNone;
  std::string out = ".";
};

struct OpCount {
  std::atomic<uint32_t> cases, ok, internal;
};

/// Shared by the processes, so that workers' counts survive them.
struct Board {
  std::array<std::atomic<uint64_t>, 32> number;    // by job: the running case, or kNone
  std::array<std::atomic<int64_t>, 32> started_s;  // start time of the case
  std::atomic<uint64_t> done;
  std::array<std::atomic<uint64_t>, 32> codes;
  std::array<OpCount, kMostOps> ops;
};

int64_t NowS() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(now).count();
}

int64_t PeakMiB() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss / 1024;
}

std::shared_ptr<session::Runtime> RuntimeOrExit() {
  google::protobuf::SetLogHandler(nullptr);  // it would report every text that is not UTF-8
  Result<std::shared_ptr<session::Runtime>> runtime = LoadRuntime();
  if (runtime.ok()) return *runtime;
  std::fprintf(stderr, "%s\n", runtime.status().ToString().c_str());
  std::exit(2);
}

/// Runs and describes a single case.
int RunOne(const Arguments& arguments) {
  const std::shared_ptr<session::Runtime> runtime = RuntimeOrExit();
  const Case made = CaseMaker(*runtime->ops, runtime->plugins->kernels()).Make(arguments.seed, arguments.only);
  fmt::print("{}\n", Describe(made));
  std::fflush(stdout);
  const Outcome outcome = RunCase(runtime, made);
  fmt::print("{}\n", outcome.fault.empty() ? outcome.code == Code::kOk ? "OK" : outcome.message : outcome.fault);
  return outcome.fault.empty() ? 0 : 1;
}

/// Truncates a worker's own log file when it has grown large.
void TrimLog() {
  if (lseek(STDERR_FILENO, 0, SEEK_CUR) < (1 << 20)) return;
  if (ftruncate(STDERR_FILENO, 0) == 0) lseek(STDERR_FILENO, 0, SEEK_SET);
}

void Count(const Case& made, const Outcome& outcome, Board& board) {
  board.codes[static_cast<size_t>(outcome.code) % board.codes.size()]++;
  for (const int op : made.ops) {
    OpCount& count = board.ops[static_cast<size_t>(op)];
    ++count.cases;
    if (outcome.code == Code::kOk) ++count.ok;
    if (outcome.code == Code::kInternal) ++count.internal;
  }
  if (outcome.code == Code::kInternal) std::fprintf(stderr, "internal: %s\n", outcome.message.c_str());
}

/// Runs every `jobs`th case from `from` on; ends the process at the first finding.
[[noreturn]] void Work(const Arguments& arguments, int job, uint64_t from, int64_t until_s, Board& board) {
  const rlimit address_space{kAddressSpace, kAddressSpace};
  if (WEIR_SANITIZER_KIND == 0) setrlimit(RLIMIT_AS, &address_space);  // sanitizers have their own limit
  const std::shared_ptr<session::Runtime> runtime = RuntimeOrExit();
  const CaseMaker maker(*runtime->ops, runtime->plugins->kernels());
  const auto at = static_cast<size_t>(job);
  for (uint64_t number = from; number < arguments.first + arguments.cases && NowS() < until_s;
       number += static_cast<uint64_t>(arguments.jobs)) {
    TrimLog();
    board.started_s[at] = NowS();
    board.number[at] = number;
    const Case made = maker.Make(arguments.seed, number);
    const Outcome outcome = RunCase(runtime, made);
    Count(made, outcome, board);
    if (!outcome.fault.empty()) {
      std::fprintf(stderr, "wrong result: %s\n", outcome.fault.c_str());
      _exit(3);
    }
    if (PeakMiB() > arguments.memory_mib) {
      std::fprintf(stderr, "memory: the peak is %lld MiB after this case\n", static_cast<long long>(PeakMiB()));
      _exit(3);
    }
    ++board.done;
  }
  board.number[at] = kNone;
  std::exit(0);  // lets the leak checker run
}

/// Starts and watches the worker processes.
class Supervisor {
 public:
  Supervisor(const Arguments& arguments, std::string folder)
      : arguments_(arguments), folder_(std::move(folder)), until_s_(NowS() + arguments.seconds) {}

  int Run() {
    void* const memory = mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return 2;
    board_ = new (memory) Board();
    const int64_t begin = NowS();
    workers_.assign(static_cast<size_t>(arguments_.jobs), -1);
    for (int job = 0; job < arguments_.jobs; ++job) Start(job, arguments_.first + static_cast<uint64_t>(job));
    while (Running()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      for (int job = 0; job < arguments_.jobs; ++job) Look(job);
    }
    Report(NowS() - begin);
    return findings_ == 0 && board_->done > 0 ? 0 : 1;
  }

 private:
  bool Running() const {
    for (const pid_t pid : workers_) {
      if (pid > 0) return true;
    }
    return false;
  }
  std::string LogOf(int job) const { return fmt::format("{}/log.{}", folder_, job); }

  void Start(int job, uint64_t from) {
    board_->number[static_cast<size_t>(job)] = kNone;
    std::fflush(nullptr);
    const pid_t pid = fork();
    if (pid == 0) {
      const int log = open(LogOf(job).c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600);
      if (log < 0 || dup2(log, STDOUT_FILENO) < 0 || dup2(log, STDERR_FILENO) < 0) _exit(2);
      const std::string work = fmt::format("{}/work.{}", folder_, job);
      std::filesystem::create_directories(work);
      if (chdir(work.c_str()) != 0) _exit(2);
      Work(arguments_, job, from, until_s_, *board_);
    }
    workers_[static_cast<size_t>(job)] = pid;
  }

  void Look(int job) {
    pid_t& pid = workers_[static_cast<size_t>(job)];
    if (pid <= 0) return;
    const uint64_t number = board_->number[static_cast<size_t>(job)];
    int status = 0;
    if (waitpid(pid, &status, WNOHANG) == 0) {
      if (number == kNone || NowS() - board_->started_s[static_cast<size_t>(job)] <= arguments_.hang_s) return;
      kill(pid, SIGABRT);  // the sanitizer prints the stack
      std::this_thread::sleep_for(std::chrono::seconds(5));
      kill(pid, SIGKILL);
      waitpid(pid, &status, 0);
      fmt::print("case {}: no answer after {} s\n", number, arguments_.hang_s);
    }
    pid = -1;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
    ++findings_;
    Tell(job, number, status);
    if (number == kNone || findings_ >= kMostFindings) return;
    Start(job, number + static_cast<uint64_t>(arguments_.jobs));
  }

  void Tell(int job, uint64_t number, int status) {
    std::ifstream log(LogOf(job));
    std::string text((std::istreambuf_iterator<char>(log)), std::istreambuf_iterator<char>());
    const size_t error = text.find("ERROR: ");
    const size_t runtime = text.find("runtime error: ");
    const size_t from = std::min(error, runtime) == std::string::npos
                            ? text.size() - std::min<size_t>(text.size(), 3000)
                            : text.rfind('\n', std::min(error, runtime)) + 1;
    const std::string how = WIFSIGNALED(status) ? fmt::format("signal {}", WTERMSIG(status))
                                                : fmt::format("exit status {}", WEXITSTATUS(status));
    fmt::print("{}\n", text.substr(from, 5000));
    if (number == kNone) {
      fmt::print("a worker ended with {} outside a case\n", how);
      return;
    }
    const std::string file = fmt::format("{}/ops-{}-{}.pbtxt", arguments_.out, arguments_.seed, number);
    fmt::print("FINDING: case {} of seed {} ended with {}; again with --seed {} --case {}; see {}\n\n", number,
               arguments_.seed, how, arguments_.seed, number, file);
    std::fflush(nullptr);
    const pid_t pid = fork();  // this process has loaded no plugins
    if (pid == 0) {
      const std::shared_ptr<session::Runtime> loaded = RuntimeOrExit();
      std::ofstream(file) << Describe(
          CaseMaker(*loaded->ops, loaded->plugins->kernels()).Make(arguments_.seed, number));
      _exit(0);
    }
    if (pid > 0) waitpid(pid, &status, 0);
  }

  void Report(int64_t seconds) {
    std::string codes;
    for (size_t code = 0; code < board_->codes.size(); ++code) {
      if (board_->codes[code] == 0) continue;
      codes += fmt::format(", {} {}", board_->codes[code].load(), CodeName(static_cast<Code>(code)));
    }
    const auto ops = ops::Catalogue();
    const std::vector<const op::OpDef*> all = ops.ok() ? (*ops)->All() : std::vector<const op::OpDef*>();
    std::string never, internal;
    size_t ran = 0;
    for (size_t i = 0; i < all.size(); ++i) {
      if (board_->ops[i].ok > 0) ++ran;
      else never += " " + all[i]->name;
      if (board_->ops[i].internal > 0) internal += fmt::format(" {} {}", all[i]->name, board_->ops[i].internal.load());
    }
    fmt::print("ops that were in a case without an error: {} of {}{}{}\n", ran, all.size(),
               never.empty() ? "" : ", not", never);
    if (!internal.empty()) fmt::print("ops in cases with INTERNAL:{}\n", internal);
    fmt::print("fuzz_ops: {} cases of seed {} clean in {} s, {} findings{}\n", board_->done.load(), arguments_.seed,
               seconds, findings_, codes);
  }

  const Arguments& arguments_;
  std::string folder_;  // for files written by cases
  int64_t until_s_;
  Board* board_ = nullptr;
  std::vector<pid_t> workers_;
  int findings_ = 0;
};

constexpr std::string_view kUsage =
    "usage: fuzz_ops [--cases N] [--seconds T] [--seed S] [--first K] [--jobs J] [--out FOLDER] [--hang S] [--memory "
    "MiB]\n"
    "       fuzz_ops --seed S --case K    shows and runs one case in this process\n";

bool Parse(int argc, char** argv, Arguments& arguments) {
  const std::array<option, 11> options = {{{"cases", required_argument, nullptr, 'n'},
                                           {"seconds", required_argument, nullptr, 't'},
                                           {"seed", required_argument, nullptr, 's'},
                                           {"first", required_argument, nullptr, 'f'},
                                           {"jobs", required_argument, nullptr, 'j'},
                                           {"out", required_argument, nullptr, 'o'},
                                           {"hang", required_argument, nullptr, 'h'},
                                           {"memory", required_argument, nullptr, 'm'},
                                           {"case", required_argument, nullptr, 'c'},
                                           {nullptr, 0, nullptr, 0}}};
  for (int c = 0; (c = getopt_long(argc, argv, "", options.data(), nullptr)) != -1;) {
    if (c == '?') return false;
    const std::string text = optarg;
    const uint64_t number = std::strtoull(text.c_str(), nullptr, 10);
    if (c == 'n') arguments.cases = number;
    if (c == 't') arguments.seconds = static_cast<int64_t>(number);
    if (c == 's') arguments.seed = number;
    if (c == 'f') arguments.first = number;
    if (c == 'j') arguments.jobs = static_cast<int>(std::clamp<uint64_t>(number, 1, 32));
    if (c == 'o') arguments.out = std::filesystem::absolute(text).string();
    if (c == 'h') arguments.hang_s = static_cast<int64_t>(number);
    if (c == 'm') arguments.memory_mib = static_cast<int64_t>(number);
    if (c == 'c') arguments.only = number;
  }
  return optind == argc;
}

int Main(int argc, char** argv) {
  Arguments arguments;
  if (!Parse(argc, argv, arguments)) {
    std::fputs(kUsage.data(), stderr);
    return 2;
  }
  std::string folder = (std::filesystem::temp_directory_path() / "weir_fuzz_ops.XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return 2;
  arguments.out = std::filesystem::absolute(arguments.out).string();
  int result = 2;
  if (arguments.only != kNone) {
    if (chdir(folder.c_str()) == 0) result = RunOne(arguments);
  } else {
    result = Supervisor(arguments, folder).Run();
  }
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  return result;
}

}  // namespace
}  // namespace weir::fuzz

int main(int argc, char** argv) { return weir::fuzz::Main(argc, argv); }
