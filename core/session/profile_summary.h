// Where the time of traced runs went.
#ifndef WEIR_CORE_SESSION_PROFILE_SUMMARY_H_
#define WEIR_CORE_SESSION_PROFILE_SUMMARY_H_

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/trace/span.h"

namespace weir::session {

/// What the spans of a line have in common.
enum class SummaryBy : uint8_t { kOp, kDevice, kOpAndDevice, kKernel, kNode };
/// "op", "device", "op,device", "kernel" or "node". InvalidArgument for other texts.
Result<SummaryBy> SummaryByFrom(std::string_view text);
std::string_view Name(SummaryBy by);

/// The spans of one key together. `op`, `device` and `node` are those of the last span.
struct SummaryLine {
  std::string op;
  std::string device;  // full name; empty = the host
  std::string node;
  std::set<std::string> kernels;     // files of kernel sets
  std::set<std::string> dtypes;      // of outputs, TensorFlow's names
  std::set<std::string> layouts;     // values of data_format
  std::set<std::string> fused_from;  // nodes of the graph for which a fused node stands
  int64_t calls = 0;
  double total_us = 0;
  double max_us = 0;
  double share = 0;  // of the times of all spans
  uint64_t output_bytes = 0;
};

/// Lines in order of falling total time.
struct ProfileSummary {
  SummaryBy by = SummaryBy::kOpAndDevice;
  int64_t steps = 0;
  double total_us = 0;  // of all spans
  std::vector<SummaryLine> lines;
};

ProfileSummary Summarize(std::span<const trace::StepTrace> steps, SummaryBy by);
/// The same of a ChromeTrace (core/trace/span.h), as Tracer and `weir run --trace` write it. InvalidArgument for a text
/// that is no trace; `what` names it in errors.
Result<ProfileSummary> SummarizeChromeTrace(std::string_view json, SummaryBy by, std::string_view what);
/// The object that `weir profile summary --json` prints.
std::string ToJson(const ProfileSummary& summary);

}  // namespace weir::session

#endif  // WEIR_CORE_SESSION_PROFILE_SUMMARY_H_
