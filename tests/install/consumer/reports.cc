// Reports of a session, with the installed headers alone: prints the size of each, or the error.
#include <weir/extra.h>
#include <weir/raw_ops.h>

#include <cstdio>

namespace {

weir::Status Report() {
  weir::Graph graph;
  const weir::AsDefault in(graph);
  const weir::Variable v({1.0f, 2.0f}, {.name = "v"});
  const weir::Output y = weir::raw::AddV2(v, 1.0f);
  weir::Session session(graph);
  WEIR_TRY(session.Run(v.initializer()).status());
  WEIR_ASSIGN(const weir::session::RunOptions options, weir::session::ParseRunOptions("trace_level: FULL_TRACE"));
  weir::session::RunReport report;
  WEIR_TRY(session.Run(y, {}, options, &report).status());
  WEIR_ASSIGN(const std::string metadata, session.RunMetadata(report));
  const std::string timeline = weir::trace::ChromeTrace({&report.trace, 1});
  WEIR_ASSIGN(const std::string why, session.ExplainPlacement(y));
  std::printf("%zu %zu %zu %zu\n", metadata.size(), timeline.size(), session.ReportMemory().size(), why.size());
  return {};
}

}  // namespace

int main() {
  const weir::Status status = Report();
  if (!status.ok()) std::printf("%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
