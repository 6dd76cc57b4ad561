// The record of a traced step, and its JSON form for trace viewers.
#ifndef WEIR_CORE_TRACE_SPAN_H_
#define WEIR_CORE_TRACE_SPAN_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace weir::trace {

/// A statically known output of an op.
struct SpanOutput {
  int slot = 0;
  int dtype = 0;  // TensorFlow's number
  std::vector<int64_t> dims;
  uint64_t bytes = 0;
  std::string memory = {};  // the device that has it, or the host's; empty = the span's device
};

/// One execution of an op.
struct Span {
  std::string node;
  std::string op;
  std::string device;    // full name; empty = the host
  int64_t start_ns = 0;  // since the start of the step
  int64_t end_ns = 0;
  int thread = 0;      // 0 = the caller's thread, others in order of appearance
  uint64_t bytes = 0;  // of all outputs below
  std::vector<SpanOutput> outputs;
  std::vector<std::string> inputs = {};      // nodes of the same step whose values it read
  std::string kernel = {};                   // the kernel set that ran it; empty = none did
  std::string layout = {};                   // its attribute data_format, such as NHWC; empty = the op has none
  std::vector<std::string> fused_from = {};  // nodes of the graph that it stands for, if it is none of them
  bool on_device = false;                    // the times are those of its work on a stream, not of enqueueing it
};

/// A step's spans in order of their ends.
struct StepTrace {
  int64_t step_id = 0;
  int64_t start_us = 0;  // since 1970
  int64_t total_ns = 0;
  std::vector<Span> spans;
};

/// Steps in the format of chrome://tracing and Perfetto, with TensorFlow's processes: "DEVICE Compute" has a row per
/// thread, a complete event ("ph": "X") per span, and flows ("s", "t") to the spans that read its values; "DEVICE
/// Tensors" has an object per value ("N", "O", "D") from its span to the end of the last reader; "Allocators" has one
/// counter of their bytes per memory ("C"). Spans of one row lie within each other or apart: one that overlaps with
/// others, such as an op that waited, has another row. Times in microseconds. Source: "Trace Event Format", the
/// Chromium project.
std::string ChromeTrace(std::span<const StepTrace> steps);

}  // namespace weir::trace

#endif  // WEIR_CORE_TRACE_SPAN_H_
