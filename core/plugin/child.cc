#include "core/plugin/child.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

namespace weir::plugin {
namespace {

constexpr size_t kMostText = 256 * 1024;

/// Appends the child's output from `fd` to `text`. False if it exceeds the time limit or the size limit.
bool ReadWithin(int fd, std::chrono::milliseconds limit, std::string& text) {
  const auto until = std::chrono::steady_clock::now() + limit;
  char part[4096];
  while (text.size() < kMostText) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    pollfd ready = {fd, POLLIN, 0};
    const int polled = left.count() > 0 ? poll(&ready, 1, static_cast<int>(left.count())) : 0;
    if (polled < 0 && errno == EINTR) continue;
    if (polled <= 0) return false;
    const ssize_t got = read(fd, part, sizeof(part));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return true;
    text.append(part, static_cast<size_t>(got));
  }
  return false;
}

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  return pointers;
}

}  // namespace

ChildEnd RunChild(const std::vector<std::string>& arguments, const std::vector<std::string>& variables,
                  std::chrono::milliseconds limit) {
  ChildEnd end;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return end;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  std::vector<std::string> words = arguments, extra = variables;
  std::vector<char*> argument = Pointers(words), environment = Pointers(extra);
  argument.push_back(nullptr);
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    environment.push_back(*variable);
  }
  environment.push_back(nullptr);
  pid_t child = 0;
  end.started = posix_spawn(&child, words[0].c_str(), &actions, nullptr, argument.data(), environment.data()) == 0;
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (end.started) {
    end.late = !ReadWithin(ends[0], limit, end.output);
    if (end.late) kill(child, SIGKILL);
    while (waitpid(child, &end.status, 0) < 0 && errno == EINTR) {
    }
  }
  close(ends[0]);
  return end;
}

}  // namespace weir::plugin
