#include "core/plugin/missing.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/auxv.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>

#include "core/base/legible.h"

namespace weir::plugin {
namespace {

constexpr size_t kMostText = 256 * 1024;
constexpr size_t kMostNames = 64;

/// The linker that loaded this process; empty where it cannot be told.
std::string LinkerPath() {
  Dl_info info;
  const auto base = reinterpret_cast<void*>(getauxval(AT_BASE));
  const bool known = base != nullptr && dladdr(base, &info) != 0 && info.dli_fname != nullptr;
  return known && info.dli_fname[0] == '/' ? info.dli_fname : "";
}

/// All of the child's output from `fd`, or nothing when it does not end within `limit` or is too much.
std::optional<std::string> ReadWithin(int fd, std::chrono::milliseconds limit) {
  const auto until = std::chrono::steady_clock::now() + limit;
  std::string text;
  char part[4096];
  while (text.size() < kMostText) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    pollfd ready = {fd, POLLIN, 0};
    const int polled = left.count() > 0 ? poll(&ready, 1, static_cast<int>(left.count())) : 0;
    if (polled < 0 && errno == EINTR) continue;
    if (polled <= 0) break;
    const ssize_t got = read(fd, part, sizeof(part));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return text;
    text.append(part, static_cast<size_t>(got));
  }
  return std::nullopt;
}

}  // namespace

std::string WithAllMissing(std::string failure, const std::string& path) {
  constexpr auto kLimit = std::chrono::seconds(2);  // it takes some milliseconds
  if (failure.find("cannot open shared object file") == std::string::npos) return failure;
  const std::vector<std::string> missing = MissingLibraries(path, kLimit);
  if (missing.size() < 2) return failure;
  return fmt::format("{}; all that is missing: {}", failure, fmt::join(missing, ", "));
}

std::vector<std::string> NotFoundIn(std::string_view list) {
  constexpr std::string_view kNotFound = " => not found";
  std::vector<std::string> names;
  while (!list.empty() && names.size() < kMostNames) {
    std::string_view line = list.substr(0, list.find('\n'));
    list.remove_prefix(std::min(line.size() + 1, list.size()));
    if (!line.ends_with(kNotFound)) continue;
    line.remove_suffix(kNotFound.size());
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    std::string name = LegibleLine(line);
    if (!name.empty() && std::find(names.begin(), names.end(), name) == names.end()) names.push_back(std::move(name));
  }
  return names;
}

std::vector<std::string> MissingLibraries(const std::string& path, std::chrono::milliseconds limit) {
  std::string linker = LinkerPath(), file = path, trace = "LD_TRACE_LOADED_OBJECTS=1";
  int ends[2];
  // With other rights than the caller's the linker would not heed the variable.
  if (linker.empty() || getauxval(AT_SECURE) != 0 || pipe2(ends, O_CLOEXEC) != 0) return {};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  char* arguments[] = {linker.data(), file.data(), nullptr};
  std::vector<char*> environment = {trace.data()};
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    environment.push_back(*variable);
  }
  environment.push_back(nullptr);
  pid_t child = 0;
  const bool started = posix_spawn(&child, linker.c_str(), &actions, nullptr, arguments, environment.data()) == 0;
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  std::optional<std::string> list;
  if (started) {
    list = ReadWithin(ends[0], limit);
    if (!list) kill(child, SIGKILL);
    while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  close(ends[0]);
  return NotFoundIn(list.value_or(""));
}

}  // namespace weir::plugin
