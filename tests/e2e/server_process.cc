#include "tests/e2e/server_process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace weir::testing {

ServerProcess::ServerProcess(const std::vector<std::string>& words, const Variables& variables) {
  std::vector<char*> argv, all;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  std::vector<std::string> texts;
  for (const auto& [name, value] : variables) texts.push_back(name + "=" + value);
  for (std::string& text : texts) all.push_back(text.data());
  for (char** variable = environ; *variable != nullptr; ++variable) all.push_back(*variable);
  all.push_back(nullptr);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    ADD_FAILURE() << "no pipe";
    return;
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
  // Signals end it, also where the test ignores them, as in the background of a shell.
  sigset_t ending;
  sigemptyset(&ending);
  for (const int number : {SIGHUP, SIGINT, SIGQUIT, SIGTERM}) sigaddset(&ending, number);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setsigdefault(&attributes, &ending);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  const int error = posix_spawn(&pid_, argv[0], &actions, &attributes, argv.data(), all.data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  EXPECT_EQ(error, 0) << words[0];
  if (error != 0) pid_ = -1;
  out_ = fdopen(ends[0], "r");
}

ServerProcess::~ServerProcess() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    Wait();
  }
  if (::testing::Test::HasFailure()) PrintRest();
  if (out_ != nullptr) std::fclose(out_);
}

std::string ServerProcess::ReadPast(const std::string& text) {
  char* line = nullptr;
  size_t room = 0;
  std::string rest;
  bool found = false;
  while (!found && getline(&line, &room, out_) > 0) {
    std::string got = line;
    read_ += got;
    while (!got.empty() && got.back() == '\n') got.pop_back();
    const size_t at = got.find(text);
    found = at != std::string::npos;
    if (found) rest = got.substr(at + text.size());
  }
  free(line);
  EXPECT_TRUE(found) << "no line with '" << text << "' in:\n" << read_;
  return rest;
}

std::string ServerProcess::ReadAll() {
  char bytes[4096];
  while (const size_t got = std::fread(bytes, 1, sizeof(bytes), out_)) read_.append(bytes, got);
  return read_;
}

void ServerProcess::PrintRest() {
  if (out_ == nullptr) return;
  fcntl(fileno(out_), F_SETFL, O_NONBLOCK);  // a child of the process may hold the other end
  std::printf("the process wrote:\n%s", ReadAll().c_str());
}

void ServerProcess::Signal(int number) const { EXPECT_EQ(kill(pid_, number), 0); }

int ServerProcess::Wait() {
  if (pid_ <= 0) return status_;
  int status = 0;
  if (waitpid(pid_, &status, 0) == pid_) {
    status_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }
  pid_ = -1;
  return status_;
}

}  // namespace weir::testing
