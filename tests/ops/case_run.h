// Runs the op of a case as a node of a graph. Kernels alone: tools/weir/cases/kernel_run.h.
#ifndef WEIR_TESTS_OPS_CASE_RUN_H_
#define WEIR_TESTS_OPS_CASE_RUN_H_

#include <memory>
#include <string>
#include <string_view>

#include "core/base/status.h"
#include "core/session/runtime.h"
#include "tests/ops/case_table.h"
#include "tools/weir/cases/kernel_run.h"

namespace weir::testing {

/// What a node's inputs are in a graph.
enum class GraphMode {
  kKnownShapes,    // fed with shapes that are known; what steers kernels is constant
  kUnknownShapes,  // fed, all of them, with shapes that are not
  kCompiled,       // as the first, and every compiler of the runtime may take the op
};
std::string_view Name(GraphMode mode);

/// Runs the op as a node on the device of that name and compares. Unimplemented where its inputs are variables.
Status RunNode(const OpCase& c, const std::shared_ptr<session::Runtime>& runtime, const std::string& device,
               GraphMode mode);

}  // namespace weir::testing

#endif  // WEIR_TESTS_OPS_CASE_RUN_H_
