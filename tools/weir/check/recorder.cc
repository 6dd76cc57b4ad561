#include "tools/weir/check/recorder.h"

#include <fmt/format.h>

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <optional>

namespace weir::check {
namespace {

int captured_output = -1;

std::string Escape(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\\') {
      escaped += "\\\\";
    } else if (c == '\n') {
      escaped += "\\n";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

std::string Unescape(std::string_view text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 1 < text.size()) {
      plain += text[++i] == 'n' ? '\n' : '\\';
    } else {
      plain += text[i];
    }
  }
  return plain;
}

void WriteAll(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    text.remove_prefix(static_cast<size_t>(written));
  }
}

// The parent's state from parsing a child's lines.
struct Transcript {
  std::vector<RuleResult> results;
  std::string open_rule;  // announced, not ended
  std::string tried;      // noted since then

  void Line(std::string_view line) {
    if (line.size() < 3) return;
    const std::string_view rest = line.substr(2);
    if (line[0] == 'B') {
      open_rule = rest;
      tried.clear();
      return;
    }
    if (line[0] == 'N') {
      tried = Unescape(rest);
      return;
    }
    const size_t space = rest.find(' ');
    RuleResult result;
    result.id = rest.substr(0, space);
    const char verdict = rest[space + 1];
    result.verdict = verdict == 'P'   ? Verdict::kPass
                     : verdict == 'F' ? Verdict::kFail
                     : verdict == 'W' ? Verdict::kWarn
                                      : Verdict::kSkip;
    result.message = Unescape(rest.substr(space + 3));
    results.push_back(std::move(result));
    open_rule.clear();
  }
};

// Reads lines until the pipe ends; false if none came for the time limit.
bool ReadLines(int fd, std::chrono::milliseconds limit, Transcript& transcript) {
  std::string buffer;
  auto deadline = std::chrono::steady_clock::now() + limit;
  while (true) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return false;
    pollfd waiting{fd, POLLIN, 0};
    if (poll(&waiting, 1, static_cast<int>(left.count())) <= 0) continue;
    char chunk[4096];
    const ssize_t got = read(fd, chunk, sizeof(chunk));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return true;
    deadline = std::chrono::steady_clock::now() + limit;
    buffer.append(chunk, static_cast<size_t>(got));
    for (size_t end = buffer.find('\n'); end != std::string::npos; end = buffer.find('\n')) {
      transcript.Line(std::string_view(buffer).substr(0, end));
      buffer.erase(0, end + 1);
    }
  }
}

[[noreturn]] void RunChild(int fd, int output, const std::function<void(Recorder&)>& body) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  captured_output = output;
  Recorder recorder(fd);
  body(recorder);
  std::fflush(nullptr);
  _exit(0);
}

// A sanitizer's summary if there is one, or the last line.
std::string LastWords(int output) {
  char text[2048];
  const off_t size = lseek(output, 0, SEEK_END);
  const off_t from = size > static_cast<off_t>(sizeof(text)) ? size - static_cast<off_t>(sizeof(text)) : 0;
  const ssize_t got = pread(output, text, sizeof(text), from);
  std::string_view tail(text, got > 0 ? static_cast<size_t>(got) : 0);
  while (!tail.empty() && tail.back() == '\n') tail.remove_suffix(1);
  const size_t summary = tail.rfind("SUMMARY: ");
  if (summary == std::string_view::npos) return std::string(tail.substr(tail.rfind('\n') + 1));
  return std::string(tail.substr(summary, tail.find('\n', summary) - summary));
}

}  // namespace

void Recorder::Begin(std::string_view id) { WriteAll(fd_, fmt::format("B {}\n", id)); }

void Recorder::Note(std::string_view what) { WriteAll(fd_, fmt::format("N {}\n", Escape(what))); }

bool Recorder::End(std::string_view id, const Finding& finding) {
  const char verdict = finding.verdict == Verdict::kPass   ? 'P'
                       : finding.verdict == Verdict::kFail ? 'F'
                       : finding.verdict == Verdict::kWarn ? 'W'
                                                           : 'S';
  WriteAll(fd_, fmt::format("E {} {} {}\n", id, verdict, Escape(finding.message)));
  return finding.verdict != Verdict::kFail;
}

int CapturedOutput() { return captured_output; }

std::vector<RuleResult> RunInChild(std::string_view first_rule, int time_limit_ms,
                                   const std::function<void(Recorder&)>& body) {
  const auto failed = [&](std::string message) {
    return std::vector<RuleResult>{{std::string(first_rule), Verdict::kFail, std::move(message)}};
  };
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return failed(fmt::format("no pipe: {}", std::strerror(errno)));
  const int output = memfd_create("weir-check-output", MFD_CLOEXEC);
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    RunChild(ends[1], output, body);
  }
  close(ends[1]);
  Transcript transcript;
  transcript.open_rule = first_rule;
  std::optional<std::string> end;
  if (child < 0) {
    end = fmt::format("cannot fork: {}", std::strerror(errno));
  } else {
    if (!ReadLines(ends[0], std::chrono::milliseconds(time_limit_ms), transcript)) {
      kill(child, SIGKILL);
      end = fmt::format("it did not end within {} ms", time_limit_ms);
    }
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (!end && WIFSIGNALED(status)) end = fmt::format("it crashed: {}", strsignal(WTERMSIG(status)));
    if (!end && WIFEXITED(status) && WEXITSTATUS(status) != 0)
      end = fmt::format("it exited with {}", WEXITSTATUS(status));
    if (!end && !transcript.open_rule.empty() && transcript.open_rule != first_rule)
      end = "it ended before reporting a result";
  }
  if (end) {
    if (!transcript.tried.empty()) *end += " in " + transcript.tried;
    const std::string last_words = output >= 0 ? LastWords(output) : std::string();
    if (!last_words.empty()) *end += fmt::format(" (\"{}\")", last_words);
    const std::string& rule = transcript.open_rule.empty() ? std::string(first_rule) : transcript.open_rule;
    transcript.results.push_back({rule, Verdict::kFail, std::move(*end)});
  }
  close(ends[0]);
  if (output >= 0) close(output);
  return std::move(transcript.results);
}

}  // namespace weir::check
