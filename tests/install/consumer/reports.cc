// What a session tells about its runs, with <weir/weir.h> alone: prints the size of each report, or what went wrong.
#include <weir/weir.h>

#include <cstdio>

namespace {

weir::Status Report() {
  weir::Graph graph;
  const weir::AsDefault in(graph);
  const weir::Variable v({1.0f, 2.0f}, {.name = "v"});
  const weir::Output y = v + 1.0f;
  weir::Session session(graph);
  WEIR_TRY(session.Run(v.initializer()).status());
  WEIR_ASSIGN(const weir::session::RunOptions options, weir::session::ParseRunOptions("trace_level: FULL_TRACE"));
  weir::session::RunReport report;
  WEIR_TRY(session.Run(y, {}, options, &report).status());
  WEIR_ASSIGN(const std::string metadata, weir::session::RunMetadata(graph.definition(), report));
  const std::string timeline = weir::trace::ChromeTrace({&report.trace, 1});
  const weir::session::MemoryReport memory = session.core()->ReportMemory();
  const std::vector<std::string> fetches = {y.name()};
  WEIR_ASSIGN(const weir::place::Explanation why, session.core()->ExplainPlacement({}, fetches, {}));
  std::printf("%zu %zu %zu %zu\n", metadata.size(), timeline.size(), weir::session::ToText(memory).size(),
              weir::place::ToText(why).size());
  return {};
}

}  // namespace

int main() {
  const weir::Status status = Report();
  if (!status.ok()) std::printf("%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
