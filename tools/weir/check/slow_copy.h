// Inputs that arrive late: copies behind a chain of slow ones on the same stream.
#ifndef WEIR_TOOLS_WEIR_CHECK_SLOW_COPY_H_
#define WEIR_TOOLS_WEIR_CHECK_SLOW_COPY_H_

#include <memory>
#include <vector>

#include "core/base/status.h"
#include "core/device/device.h"
#include "core/device/stream.h"
#include "core/tensor/tensor.h"
#include "tools/weir/cases/kernel_run.h"

namespace weir::check {

/// Keeps a stream of a device busy for a while before each group of inputs. Until they arrive, the memory of the inputs
/// holds zeros. Outlives the streams' work.
class SlowCopies {
 public:
  /// `device` has streams and outlives the object; `chain_ns`: how long a stream is busy on an idle machine.
  static Result<std::unique_ptr<SlowCopies>> Make(device::Device& device, double chain_ns);
  /// For one call of a kernel on at most kMostStreams streams: the first input on each waits for a chain.
  static constexpr int kMostStreams = 4;
  cases::Sender Sender();

 private:
  explicit SlowCopies(device::Device& device) : device_(device) {}
  Status Chain(device::Stream& stream, const Tensor& to, int length);
  Status Measure(double chain_ns);

  device::Device& device_;
  Tensor from_;             // in the device's memory
  std::vector<Tensor> to_;  // the same, one for each stream of a call
  int length_ = 1;
};

}  // namespace weir::check

#endif  // WEIR_TOOLS_WEIR_CHECK_SLOW_COPY_H_
