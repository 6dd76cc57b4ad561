// Files of traces, written step by step.
#ifndef WEIR_CORE_TRACE_WRITER_H_
#define WEIR_CORE_TRACE_WRITER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "core/trace/span.h"

namespace weir::trace {

/// Turns steps into pieces of a file: Begin, then the results of Add and Memory in the order of the calls, then End.
/// Keeps what later steps need: a few bytes per row and per value that is counted later.
class TraceWriter {
 public:
  virtual ~TraceWriter() = default;
  virtual std::string Begin() const = 0;
  /// The events of a step, except for those of Memory. Steps come in order of their starts, or of their ends: a step
  /// that begins before others have ended has another lane than these.
  virtual std::string Add(const StepTrace& step) = 0;
  /// The bytes held by device memory, at each change up to `until_us` since 1970, for the steps added so far. Steps
  /// added later have no change up to then.
  virtual std::string Memory(int64_t until_us) = 0;
  /// `summary`: how many runs there were, are written and did not fit.
  struct Summary {
    int64_t runs = 0, written = 0, dropped = 0;
  };
  virtual std::string End(const Summary& summary) const = 0;
};

/// ChromeTrace (span.h). Times are counted from `origin_us`, microseconds since 1970.
std::unique_ptr<TraceWriter> MakeChromeWriter(int64_t origin_us);
/// Perfetto's own format, which is smaller and opens faster: the same processes, rows, flows and counters, without
/// objects for values. Source: protos/perfetto/trace of the Perfetto project.
std::unique_ptr<TraceWriter> MakePerfettoWriter(int64_t origin_us);

}  // namespace weir::trace

#endif  // WEIR_CORE_TRACE_WRITER_H_
