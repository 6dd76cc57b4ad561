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

/// Memory between two guards that nobody may write: the host's, or a device's with the same here.
class Guarded {
 public:
  /// Filled with `fill`, here. `device` outlives it; null = the host's.
  static Result<Guarded> Make(device::Device* device, uint64_t bytes, uint8_t fill, uint64_t alignment = 64);
  uint8_t* data() { return storage_.data() + lead_; }
  const uint8_t* data() const { return storage_.data() + lead_; }
  uint64_t bytes() const { return bytes_; }
  /// Where the kernel finds it.
  weir_reg Register(const weir_shape* shape, DType dtype) const;
  /// Copies all of it to the device, or back.
  Status Send();
  Status Fetch();
  /// The guards are as they were made.
  bool intact() const;

 private:
  Guarded() = default;
  weir_buf Here();

  device::Device* device_ = nullptr;
  std::shared_ptr<Buffer> there_;  // on the device
  std::vector<uint8_t> storage_;
  uint64_t lead_ = 0;
  uint64_t bytes_ = 0;
};

/// How one call is made.
struct RunOptions {
  uint8_t output_fill = 0xa5;            // what outputs hold before the call
  const weir_alias* in_place = nullptr;  // an alias that is used
};

/// What a call left behind.
struct RunResult {
  Status status;                              // of fn, or of the copies around it
  std::vector<std::vector<uint8_t>> outputs;  // payload of each
  std::string overrun;                        // what was written outside its bounds; empty = nothing
  std::string changed_input;                  // an input that is not what it was; empty = none
  bool scratch_overrun = false;
  uint64_t host_calls = 0;
};

/// Calls fn once with fresh copies of the trial's inputs, on a stream of its own where the device has streams. MUST
/// aliases are honoured. `device` is the one that the kernel was prepared for.
RunResult RunPrepared(const kernel::PreparedKernel& kernel, const KernelTrial& trial, device::Device& device,
                      const RunOptions& options);

}  // namespace weir::check

#endif  // WEIR_TOOLS_WEIR_CHECK_PREPARED_RUN_H_
