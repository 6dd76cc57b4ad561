// The program `weir-probe FILE LIMIT_MS [KEY=VALUE …] -- [NAME=VALUE …]`: tries a plugin file for the loader, which
// reads the result from standard output (core/plugin/probe.h). KEY is a configuration key, NAME an environment
// variable.
#include <fcntl.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "core/config/sources.h"
#include "core/ops/declare_all.h"
#include "core/plugin/probe.h"

namespace {

int answer_to = -1;
bool tried = false;

void Answer(std::string_view text) {
  if (write(answer_to, text.data(), text.size()) < 0) _exit(1);
}

// Registered before the plugin's own functions, so it runs after them.
void AtExit() {
  if (!tried) _exit(1);
  Answer("survived\n");
  _exit(0);
}

}  // namespace

int main(int argc, char** argv) {
  using namespace weir;
  int limit_ms = 0;
  if (argc < 3 || std::from_chars(argv[2], argv[2] + std::strlen(argv[2]), limit_ms).ec != std::errc()) return 2;
  // The plugin may write to standard output, but not to the loader.
  answer_to = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
  const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (answer_to < 0 || nowhere < 0 || dup2(nowhere, STDOUT_FILENO) < 0 || std::atexit(AtExit) != 0) return 2;
  config::Sources sources;
  int i = 3;
  for (; i < argc && std::string_view(argv[i]) != "--"; ++i) sources.sets.emplace_back(argv[i]);
  for (++i; i < argc; ++i) {
    const std::string_view text = argv[i];
    const size_t equals = text.find('=');
    if (equals == std::string_view::npos) return 2;
    sources.environment.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  const Result<config::Loaded> loaded = config::Load(sources);
  const Result<const op::OpRegistry*> ops = ops::Catalogue();
  if (loaded.ok() && ops.ok()) {  // otherwise the loader finds the fault too
    const Status outcome = plugin::TryFile(argv[1], loaded->config, **ops, std::chrono::milliseconds(limit_ms));
    if (outcome.code() == Code::kDeadlineExceeded) {
      Answer("hung\n");
      _exit(0);
    }
  }
  tried = true;
  return 0;
}
