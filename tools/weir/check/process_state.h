// Process state that a library could change.
#ifndef WEIR_TOOLS_WEIR_CHECK_PROCESS_STATE_H_
#define WEIR_TOOLS_WEIR_CHECK_PROCESS_STATE_H_

#include <map>
#include <string>
#include <vector>

#include "core/base/status.h"

namespace weir::check {

struct ProcessState {
  std::vector<std::string> environment;
  std::string folder;
  std::vector<const void*> signal_handlers;
  int rounding = 0;
  int exception_mask = 0;
  std::map<int, std::string> files;  // open descriptors and their targets
  int threads = 0;

  static ProcessState Now();
};

/// FailedPrecondition naming the differences in environment, folder, signal handlers or floating-point mode.
Status SameSurroundings(const ProcessState& before, const ProcessState& after);
/// FailedPrecondition naming new descriptors, or a greater number of threads.
Status SameActivity(const ProcessState& before, const ProcessState& after);

/// The number of other threads of this process that run code of the library at `path`: its instructions are called from
/// somewhere on their stacks. 0 if the system does not tell where the stacks are.
int ThreadsIn(const std::string& path);

}  // namespace weir::check

#endif  // WEIR_TOOLS_WEIR_CHECK_PROCESS_STATE_H_
