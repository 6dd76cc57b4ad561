#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/bench/gemm_graphs.h"
#include "tests/bench/rows.h"

extern char** environ;

namespace weir::bench {
namespace {

constexpr int kThreads = 4;

/// Futex calls of `strace -f -c -e trace=futex SELF MODE RUNS`; -1 and an error on failure.
int64_t FutexCalls(const std::string& self, const std::string& mode, int runs, std::string* error) {
  const std::string file = (std::filesystem::temp_directory_path() / fmt::format("weir_bench.{}", getpid())).string();
  const int status =
      RunProgram({"strace", "-f", "-c", "-e", "trace=futex", "-o", file, self, mode, std::to_string(runs)});
  std::ifstream table(file);
  int64_t calls = 0;
  for (std::string line; std::getline(table, line);) {
    double share = 0, seconds = 0, each = 0;
    std::istringstream columns(line);
    if (line.ends_with(" futex")) columns >> share >> seconds >> each >> calls;
  }
  std::filesystem::remove(file);
  if (status == 0) return calls;
  *error = fmt::format("strace -f {} {} {} ended with {}", self, mode, runs, status);
  return -1;
}

}  // namespace

int RunProgram(std::vector<std::string> arguments) {
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  pid_t child = 0;
  int status = -1;
  if (posix_spawnp(&child, pointers[0], nullptr, nullptr, pointers.data(), environ) != 0) return -1;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int RunConcurrently(int runs) {
  const Result<std::shared_ptr<session::Runtime>> runtime = session::Runtime::Default();
  if (!runtime.ok()) return 1;
  Result<Program> mlp = FrozenMlp(*runtime, 1);
  if (!mlp.ok()) return 1;
  std::atomic<int> ready{0};
  std::atomic<bool> failed{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      std::string error;
      failed = failed || mlp->RunNs(1, &error) < 0;
      ++ready;
      while (ready < kThreads) std::this_thread::yield();
      if (runs > 0) failed = failed || mlp->RunNs(runs, &error) < 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  return failed ? 1 : 0;
}

void AddConcurrencyRow(const std::string& self, const std::string& mode, std::vector<Row>* rows) {
  constexpr int kRuns = 2500;
  Row row{"B06", "futex calls of 10,000 Runs of the frozen MLP, batch 1, on 4 threads over one session",
          "",    0,
          0,     "the same program without them",
          0,     10,
          {}};
  const int64_t before = FutexCalls(self, mode, 0, &row.error);
  const int64_t after = row.error.empty() ? FutexCalls(self, mode, kRuns, &row.error) : 0;
  row.limit = static_cast<double>(before);
  row.measured = row.fastest = static_cast<double>(std::max<int64_t>(0, after - before));
  rows->push_back(row);
}

}  // namespace weir::bench
