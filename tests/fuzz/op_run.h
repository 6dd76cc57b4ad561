// Runs a case of the op fuzzer as a user would: import, session, whole steps.
#ifndef WEIR_TESTS_FUZZ_OP_RUN_H_
#define WEIR_TESTS_FUZZ_OP_RUN_H_

#include <memory>
#include <string>

#include "core/base/status.h"
#include "core/session/runtime.h"
#include "tests/fuzz/op_cases.h"

namespace weir::fuzz {

struct Outcome {
  Code code = Code::kOk;
  std::string message;  // of an error
  std::string fault;    // a fetched type or shape that the graph does not declare; empty = none
};

/// The CPU with 64 MiB and the kernel sets of this build. Reads no configuration of the user's.
Result<std::shared_ptr<session::Runtime>> LoadRuntime();

/// Ends within seconds whatever the case is. Reads every byte of what was fetched, and compares type and shape with
/// what the graph declares.
Outcome RunCase(const std::shared_ptr<session::Runtime>& runtime, const Case& made);

}  // namespace weir::fuzz

#endif  // WEIR_TESTS_FUZZ_OP_RUN_H_
