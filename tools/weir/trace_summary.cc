// `weir profile summary`: where the time of traced runs went.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/base/errors.h"
#include "core/io/files.h"
#include "core/session/profile_summary.h"
#include "tools/weir/commands.h"

namespace weir::cli {
namespace {

using session::SummaryBy;
using session::SummaryLine;

constexpr uint64_t kMaxTraceBytes = uint64_t{1} << 30;

std::string KeyText(const SummaryLine& line, SummaryBy by) {
  switch (by) {
    case SummaryBy::kOp:
      return line.op;
    case SummaryBy::kDevice:
      return line.device;
    case SummaryBy::kKernel:
      return line.kernels.empty() ? "none" : *line.kernels.begin();
    case SummaryBy::kNode:
      return fmt::format("{} ({})", line.node, line.op);
    case SummaryBy::kOpAndDevice:
      return fmt::format("{} on {}", line.op, line.device);
  }
  return {};
}

}  // namespace

Status SummarizeProfile(const ProfileOptions& options, const Console& console, Json& report) {
  WEIR_ASSIGN(const std::string text, io::ReadFile(options.files.front(), kMaxTraceBytes));
  return SummarizeTrace(text, options.by, "'" + options.files.front() + "'", console, report);
}

Status SummarizeTrace(const std::string& trace, const std::string& by, const std::string& what, const Console& console,
                      Json& report) {
  WEIR_ASSIGN(const SummaryBy key, session::SummaryByFrom(by));
  WEIR_ASSIGN(const session::ProfileSummary summary, session::SummarizeChromeTrace(trace, key, what));
  if (summary.lines.empty()) return InvalidArgument("{} has no spans of ops", what);
  report.update(Json::parse(session::ToJson(summary)));
  Table table({by, "calls", "total us", "mean us", "max us", "%", "output", "kernels", "layout", "fused from"});
  for (const SummaryLine& line : summary.lines) {
    table.Add({KeyText(line, key), std::to_string(line.calls), fmt::format("{:.1f}", line.total_us),
               fmt::format("{:.1f}", line.total_us / static_cast<double>(line.calls)),
               fmt::format("{:.1f}", line.max_us), fmt::format("{:.1f}", 100 * line.share),
               BytesText(static_cast<double>(line.output_bytes)), fmt::format("{}", fmt::join(line.kernels, ", ")),
               fmt::format("{}", fmt::join(line.layouts, ", ")),
               key == SummaryBy::kNode ? fmt::format("{}", fmt::join(line.fused_from, ", ")) : ""});
  }
  console.Print(table);
  console.Print(
      fmt::format("{:.1f} us in {} {}", summary.total_us, summary.steps, summary.steps == 1 ? "step" : "steps"));
  return Status();
}

}  // namespace weir::cli
