#include "tools/weir/check/process_state.h"

#include <fenv.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>

#include "core/base/errors.h"

namespace weir::check {
namespace {

namespace fs = std::filesystem;

std::map<int, std::string> OpenFiles() {
  std::map<int, std::string> files;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator("/proc/self/fd", error)) {
    std::error_code gone;
    const std::string target = fs::read_symlink(entry.path(), gone).string();
    // The iterator's own descriptor refers to the folder it lists.
    if (!gone && target.find("/fd") == std::string::npos) files[std::atoi(entry.path().filename().c_str())] = target;
  }
  return files;
}

int CountThreads() {
  int count = 0;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator("/proc/self/task", error)) {
    static_cast<void>(entry);
    ++count;
  }
  return count;
}

}  // namespace

ProcessState ProcessState::Now() {
  ProcessState state;
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable)
    state.environment.emplace_back(*variable);
  std::sort(state.environment.begin(), state.environment.end());
  std::error_code error;
  state.folder = fs::current_path(error).string();
  for (int number = 1; number < 32; ++number) {
    struct sigaction action {};
    sigaction(number, nullptr, &action);
    state.signal_handlers.push_back(reinterpret_cast<const void*>(action.sa_handler));
  }
  state.rounding = fegetround();
  state.exception_mask = fegetexcept();
  state.files = OpenFiles();
  state.threads = CountThreads();
  return state;
}

Status SameSurroundings(const ProcessState& before, const ProcessState& after) {
  if (before.environment != after.environment) {
    std::vector<std::string> changed;
    std::set_symmetric_difference(before.environment.begin(), before.environment.end(), after.environment.begin(),
                                  after.environment.end(), std::back_inserter(changed));
    return FailedPrecondition("the environment changed: {}", changed.front());
  }
  if (before.folder != after.folder) return FailedPrecondition("the working folder changed to {}", after.folder);
  for (size_t i = 0; i < before.signal_handlers.size(); ++i) {
    if (before.signal_handlers[i] == after.signal_handlers[i]) continue;
    return FailedPrecondition("the handler of signal {} changed", i + 1);
  }
  if (before.rounding != after.rounding || before.exception_mask != after.exception_mask) {
    return FailedPrecondition("the floating-point mode changed");
  }
  return {};
}

Status SameActivity(const ProcessState& before, const ProcessState& after) {
  for (const auto& [number, target] : after.files) {
    if (!before.files.contains(number)) return FailedPrecondition("descriptor {} is open: {}", number, target);
  }
  if (after.threads > before.threads) {
    return FailedPrecondition("{} threads run, {} did before", after.threads, before.threads);
  }
  return {};
}

}  // namespace weir::check
