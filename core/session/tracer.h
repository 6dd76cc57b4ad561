// A trace of many runs in one file, written as they end.
#ifndef WEIR_CORE_SESSION_TRACER_H_
#define WEIR_CORE_SESSION_TRACER_H_

#include <cstdint>
#include <memory>
#include <string>

#include "core/base/status.h"
#include "core/trace/span.h"

namespace weir::session {

/// Which runs are traced, and where to. The first `skip` runs are not. Those after them form cycles: `wait` runs that
/// are not traced, `warmup` runs that are traced and left out, `active` runs that are written.
struct TracerOptions {
  std::string path;
  int64_t skip = 0;
  int64_t wait = 0;
  int64_t warmup = 0;
  int64_t active = 1;
  int64_t repeat = 0;        // cycles; 0 = no limit
  uint64_t limit_bytes = 0;  // of the file; 0 = no limit
};

/// Writes a ChromeTrace (core/trace/span.h) step by step, or with a path that ends in ".pftrace" Perfetto's own format,
/// which is smaller and opens faster. The file is complete after each step, also if the process dies later. A step that
/// would make the file larger than the limit is left out, and no later run is traced. The object "weir" behind the
/// events of a ChromeTrace counts runs. Thread-safe.
class Tracer {
 public:
  /// InvalidArgument for negative numbers and for `active` below one; errors of the file.
  static Result<std::shared_ptr<Tracer>> Open(const TracerOptions& options);
  ~Tracer();
  Tracer(const Tracer&) = delete;
  Tracer& operator=(const Tracer&) = delete;

  enum class Phase { kOff, kWarmup, kActive };
  /// One run, from Begin to End.
  struct Run {
    Phase phase = Phase::kOff;
    int64_t start_us = 0;  // since 1970
    /// The run must record its times.
    bool traced() const { return phase != Phase::kOff; }
  };
  Run Begin();
  /// Ends a run, failed or not. Runs that were traced but not written count as such.
  void End(const Run& run, const trace::StepTrace& step);
  /// Completes the file and returns the first error of writing it. Later runs are not traced.
  Status Close();

  struct Counts {
    int64_t runs = 0;     // begun
    int64_t written = 0;  // to the file
    int64_t dropped = 0;  // that did not fit
  };
  Counts counts() const;

 private:
  class File;
  explicit Tracer(std::unique_ptr<File> file);
  const std::unique_ptr<File> file_;
};

}  // namespace weir::session

#endif  // WEIR_CORE_SESSION_TRACER_H_
