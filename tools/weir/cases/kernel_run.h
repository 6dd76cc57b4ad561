// Runs op cases on one kernel, in every form that it has.
#ifndef WEIR_TOOLS_WEIR_CASES_KERNEL_RUN_H_
#define WEIR_TOOLS_WEIR_CASES_KERNEL_RUN_H_

#include <functional>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/device/device.h"
#include "core/device/stream.h"
#include "core/kernel/registry.h"
#include "tools/weir/cases/case_table.h"

namespace weir::cases {

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

/// What the kernel gives for the case, on the host: its outputs, by the prepared form where it has one.
Result<std::vector<Tensor>> KernelOutputs(const kernel::KernelEntry& entry, const OpCase& c, device::Device& device);

/// Gives a host value to a device: the copy is complete in the order of the stream. The value lives until the stream's
/// work is done.
using Sender = std::function<Result<Tensor>(const Tensor& value, device::Device& device, device::Stream& stream)>;

/// Calls one state of the kernel on several streams of the device, without waiting between the calls, and compares all
/// results. The inputs of each call are sent on another stream if there are several, and ordered by an event. The mode
/// is kPrepared or kDynamic. Unimplemented as above, for a device without streams, and for several calls of a STATEFUL
/// kernel.
Status RunKernelOnStreams(const kernel::KernelEntry& entry, const OpCase& c, device::Device& device, CallMode mode,
                          int streams, const Sender& send);

/// Nanoseconds of one call, by the clock and of processors that this process used.
struct CallTime {
  double wall_ns = 0, cpu_ns = 0;
};
/// The least of `rounds` rounds of at least 200 us, or fewer of slow calls, in prepared form. Unimplemented as above.
Result<CallTime> TimeCalls(const kernel::KernelEntry& entry, const OpCase& c, device::Device& device, int rounds);
/// By the clock, of 12 rounds.
Result<double> TimeKernel(const kernel::KernelEntry& entry, const OpCase& c, device::Device& device);

/// Nanoseconds of one call by the kernel's estimate, or its declared work, and the device's profile. Unimplemented as
/// above; other errors are the estimate's.
Result<double> DeclaredTime(const kernel::KernelEntry& entry, const OpCase& c, device::Device& device);

/// Output i of a case that is compared; that of a reference is kept until the next case. Not thread-safe.
Result<Tensor> WantedOutput(const OpCase& c, size_t i, const Shape& shape);

}  // namespace weir::cases

#endif  // WEIR_TOOLS_WEIR_CASES_KERNEL_RUN_H_
