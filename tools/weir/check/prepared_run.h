// Calls of a prepared kernel on guarded host memory.
#ifndef WEIR_TOOLS_WEIR_CHECK_PREPARED_RUN_H_
#define WEIR_TOOLS_WEIR_CHECK_PREPARED_RUN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/kernel/prepared.h"
#include "tools/weir/check/kernel_trial.h"

namespace weir::check {

/// Host memory between two guards that nobody may write.
class Guarded {
 public:
  Guarded(uint64_t bytes, uint8_t fill, uint64_t alignment = 64);
  uint8_t* data() { return storage_.data() + lead_; }
  const uint8_t* data() const { return storage_.data() + lead_; }
  uint64_t bytes() const { return bytes_; }
  /// The guards are as they were made.
  bool intact() const;

 private:
  std::vector<uint8_t> storage_;
  uint64_t lead_;
  uint64_t bytes_;
};

/// How one call is made.
struct RunOptions {
  uint8_t output_fill = 0xa5;            // what outputs hold before the call
  const weir_alias* in_place = nullptr;  // an alias that is used
};

/// What a call left behind.
struct RunResult {
  Status status;                              // of fn
  std::vector<std::vector<uint8_t>> outputs;  // payload of each
  std::string overrun;                        // what was written outside its bounds; empty = nothing
  std::string changed_input;                  // an input that is not what it was; empty = none
  bool scratch_overrun = false;
  uint64_t host_calls = 0;
};

/// Calls fn once with fresh copies of the trial's inputs. MUST aliases are honoured.
RunResult RunPrepared(const kernel::PreparedKernel& kernel, const KernelTrial& trial, const RunOptions& options);

}  // namespace weir::check

#endif  // WEIR_TOOLS_WEIR_CHECK_PREPARED_RUN_H_
