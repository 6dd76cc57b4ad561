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
  /// A fetched type or shape that contradicts the graph, or an error that only a defect of weir may cause; empty =
  /// none.
  std::string fault;
};

/// The CPU with 64 MiB and the kernel sets of this build. Reads no user configuration.
Result<std::shared_ptr<session::Runtime>> LoadRuntime();

/// Runs a case; ends within seconds for every case. Reads every byte of the fetched tensors, and compares their types
/// and shapes with the graph's declarations.
Outcome RunCase(const std::shared_ptr<session::Runtime>& runtime, const Case& made);

}  // namespace weir::fuzz

#endif  // WEIR_TESTS_FUZZ_OP_RUN_H_
