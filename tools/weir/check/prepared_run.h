// Calls of a prepared kernel on guarded memory of its device.
#ifndef WEIR_TOOLS_WEIR_CHECK_PREPARED_RUN_H_
#define WEIR_TOOLS_WEIR_CHECK_PREPARED_RUN_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/device/device.h"
#include "core/kernel/prepared.h"
#include "tools/weir/check/kernel_trial.h"

namespace weir::check {

/// Options of one call.
struct RunOptions {
  uint8_t output_fill = 0xa5;            // value of output bytes before the call
  const weir_alias* in_place = nullptr;  // a MAY alias to use; null = none
};

/// The results of a call.
struct RunResult {
  Status status;                              // of fn, or of the copies around it
  std::vector<std::vector<uint8_t>> outputs;  // payload of each
  std::string overrun;                        // memory written out of bounds; empty = none
  std::string changed_input;                  // an input that was modified; empty = none
  bool scratch_overrun = false;
  uint64_t host_calls = 0;
};

/// Calls fn once, by kernel::Launch, with fresh copies of the trial's inputs, on a new stream if the device has
/// streams. The kernel was prepared for `device`.
RunResult RunPrepared(std::shared_ptr<const kernel::PreparedKernel> kernel, const KernelTrial& trial,
                      device::Device& device, const RunOptions& options);

}  // namespace weir::check

#endif  // WEIR_TOOLS_WEIR_CHECK_PREPARED_RUN_H_
