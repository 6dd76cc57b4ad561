// What a traced step did, and when.
#ifndef WEIR_CORE_TRACE_SPAN_H_
#define WEIR_CORE_TRACE_SPAN_H_

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace weir::trace {

/// What an op gave, where that is known before it runs.
struct SpanOutput {
  int slot = 0;
  int dtype = 0;  // TensorFlow's number
  std::vector<int64_t> dims;
  uint64_t bytes = 0;
};

/// One op's turn.
struct Span {
  std::string node;
  std::string op;
  std::string device;    // full name; empty = the host
  int64_t start_ns = 0;  // since the step began
  int64_t end_ns = 0;
  int thread = 0;      // 0 = the caller's, then in order of appearance
  uint64_t bytes = 0;  // of all outputs below
  std::vector<SpanOutput> outputs;
};

/// A step's spans, in the order in which they ended.
struct StepTrace {
  int64_t step_id = 0;
  int64_t start_us = 0;  // since 1970
  int64_t total_ns = 0;
  std::vector<Span> spans;
};

}  // namespace weir::trace

#endif  // WEIR_CORE_TRACE_SPAN_H_
