// Messages between a test and the processes that run the parts of a step.
#ifndef WEIR_TESTS_E2E_PART_WIRE_H_
#define WEIR_TESTS_E2E_PART_WIRE_H_

#include <string>

#include "core/base/status.h"
#include "core/tensor/tensor.h"

namespace weir::testing {

/// To a worker: kGraph starts a job, kFeed gives a fed tensor, kRun starts the step. From a worker: kFetch gives a
/// fetched tensor, kEnd ends the job with an error text or none. kMessage (from one part to another) and kAbort go both
/// ways.
enum class FrameKind : char {
  kGraph = 'G',
  kFeed = 'F',
  kRun = 'R',
  kFetch = 'V',
  kEnd = 'E',
  kMessage = 'M',
  kAbort = 'A'
};

struct Frame {
  FrameKind kind = FrameKind::kEnd;
  std::string name;  // position of a feed or fetch, key of a message, text of an error
  std::string data;  // GraphDef, or TensorProto; empty for a dead value
};

/// Blocks until the frame is written or read. Unavailable if the other process closed its end.
Status WriteFrame(int file, const Frame& frame);
Result<Frame> ReadFrame(int file);

}  // namespace weir::testing

#endif  // WEIR_TESTS_E2E_PART_WIRE_H_
