// A program run as a process of its own, for what must not happen in this one.
#ifndef WEIR_CORE_PLUGIN_CHILD_H_
#define WEIR_CORE_PLUGIN_CHILD_H_

#include <chrono>
#include <string>
#include <vector>

namespace weir::plugin {

/// How it ended.
struct ChildEnd {
  bool started = false;
  bool late = false;   // it was still running at the limit, or wrote too much, and was killed
  int status = 0;      // as waitpid gives it; 0 also where the host does not keep the status of its children
  std::string output;  // what it wrote to standard output, the first 256 KiB
};

/// Runs `arguments`, of which the first is the program's absolute path, with `variables` ("NAME=VALUE") before those of
/// this process and standard error thrown away, and waits. Thread-safe; the host may have any number of threads.
ChildEnd RunChild(const std::vector<std::string>& arguments, const std::vector<std::string>& variables,
                  std::chrono::milliseconds limit);

}  // namespace weir::plugin

#endif  // WEIR_CORE_PLUGIN_CHILD_H_
