#include "tests/e2e/cli_process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

namespace weir::testing {
namespace {

// In the child.
[[noreturn]] void Become(const std::vector<std::string>& words, const std::map<std::string, std::string>& environment) {
  for (const auto& [name, value] : environment) {
    if (value.empty()) {
      unsetenv(name.c_str());
    } else {
      setenv(name.c_str(), value.c_str(), 1);
    }
  }
  std::vector<char*> argv = {const_cast<char*>("weir")};
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  execv(WEIR_COMMAND, argv.data());
  _exit(127);
}

// In the child: nothing to read, both outputs into files.
void Redirect(const std::string& out, const std::string& err) {
  const int in = open("/dev/null", O_RDONLY);
  const int to = open(out.c_str(), O_CREAT | O_WRONLY, 0600);
  const int errors = open(err.c_str(), O_CREAT | O_WRONLY, 0600);
  if (in < 0 || to < 0 || errors < 0 || dup2(in, 0) < 0 || dup2(to, 1) < 0 || dup2(errors, 2) < 0) _exit(126);
}

int StatusOf(pid_t child) {
  int status = 0;
  if (child <= 0 || waitpid(child, &status, 0) != child) return -1;
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace

Ended Weir(const std::vector<std::string>& words, const std::map<std::string, std::string>& environment) {
  const ScratchFolder folder;
  const std::string out = folder / "out";
  const std::string err = folder / "err";
  const pid_t child = fork();
  if (child == 0) {
    Redirect(out, err);
    Become(words, environment);
  }
  Ended ended;
  ended.status = StatusOf(child);
  ended.out = ReadWhole(out);
  ended.err = ReadWhole(err);
  return ended;
}

Ended WeirOnTerminal(const std::vector<std::string>& words, const std::map<std::string, std::string>& environment) {
  int terminal = -1;
  const pid_t child = forkpty(&terminal, nullptr, nullptr, nullptr);
  if (child == 0) Become(words, environment);
  Ended ended;
  if (child < 0) return ended;
  char text[4096];
  // On Linux, reading fails with EIO after the other side has closed.
  for (ssize_t got = read(terminal, text, sizeof(text)); got > 0; got = read(terminal, text, sizeof(text))) {
    ended.out.append(text, static_cast<size_t>(got));
  }
  ended.status = StatusOf(child);
  close(terminal);
  return ended;
}

ScratchFolder::ScratchFolder() {
  std::string name = ::testing::TempDir() + "weir_cli_XXXXXX";
  if (mkdtemp(name.data()) != nullptr) path_ = std::filesystem::canonical(name);
}

ScratchFolder::~ScratchFolder() {
  std::error_code error;
  if (!path_.empty()) std::filesystem::remove_all(path_, error);
}

std::string ScratchFolder::Write(const std::string& name, const std::string& contents) const {
  const std::string path = *this / name;
  std::ofstream(path, std::ios::binary) << contents;
  return path;
}

std::string ReadWhole(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

}  // namespace weir::testing
