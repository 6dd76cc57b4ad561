// Runs op cases: each kernel alone in every form that it has, and the op as a node of a graph.
#ifndef WEIR_TESTS_OPS_CASE_RUN_H_
#define WEIR_TESTS_OPS_CASE_RUN_H_

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/device/device.h"
#include "core/kernel/registry.h"
#include "core/session/runtime.h"
#include "tests/ops/case_table.h"

namespace weir::testing {

/// How a kernel is called.
enum class CallMode {
  kPrepared,   // what steers it is known when it is prepared, all else comes with the call
  kConstants,  // all inputs are known when it is prepared
  kInPlace,    // every alias that it allows is used, one in each call
  kTiled,      // in as many calls as it has tiles
  kDynamic,    // its other form
};
inline constexpr CallMode kCallModes[] = {CallMode::kPrepared, CallMode::kConstants, CallMode::kInPlace,
                                          CallMode::kTiled, CallMode::kDynamic};
std::string_view Name(CallMode mode);

/// Calls the kernel, on a stream where the device has streams, and compares. Unimplemented: it declines the case or has
/// no such mode. `device` outlives the call.
Status RunKernel(const kernel::KernelEntry& entry, const OpCase& c, device::Device& device, CallMode mode);

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

/// Nanoseconds of one call in prepared form, the least of several rounds. Unimplemented as above.
Result<double> TimeKernel(const kernel::KernelEntry& entry, const OpCase& c, device::Device& device);

}  // namespace weir::testing

#endif  // WEIR_TESTS_OPS_CASE_RUN_H_
