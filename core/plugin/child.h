// Runs a program in a separate process, to isolate this process from its failures.
#ifndef WEIR_CORE_PLUGIN_CHILD_H_
#define WEIR_CORE_PLUGIN_CHILD_H_

#include <chrono>
#include <string>
#include <vector>

namespace weir::plugin {

/// The outcome of a child process.
struct ChildEnd {
  bool started = false;
  bool late = false;   // killed because it exceeded the time limit or wrote too much
  int status = 0;      // as returned by waitpid; 0 if the host discards the status of its children
  std::string output;  // the first 256 KiB of standard output
};

/// Runs `arguments`, where the first is the program's absolute path, and waits. `variables` ("NAME=VALUE") precede
/// those of this process; standard error is discarded. Thread-safe; the host may have any number of threads.
ChildEnd RunChild(const std::vector<std::string>& arguments, const std::vector<std::string>& variables,
                  std::chrono::milliseconds limit);

}  // namespace weir::plugin

#endif  // WEIR_CORE_PLUGIN_CHILD_H_
