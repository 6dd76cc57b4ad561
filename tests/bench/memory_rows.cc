#include <unistd.h>

#include <fstream>

#include "core/graph/graph_def.h"
#include "tests/bench/gemm_graphs.h"
#include "tests/bench/rows.h"

namespace weir::bench {
namespace {

constexpr int64_t kMebibyte = 1 << 20;
constexpr int64_t kMebibyteFloats = kMebibyte / static_cast<int64_t>(sizeof(float));

/// Resident bytes of this process.
double ResidentBytes() {
  std::ifstream statm("/proc/self/statm");
  double pages = 0, resident = -1;
  statm >> pages >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE));
}

void AddArenaRows(const std::shared_ptr<session::Runtime>& runtime, std::vector<Row>* rows) {
  struct Case {
    const char* what;
    Result<Program> program;
  };
  Case cases[] = {
      {"training step of the digits network, batch 32", Digits(runtime, true)},
      {"MLP 784-512-512-10, gradient descent, batch 32", MlpStep(runtime, 32, Training::kGradientDescent)},
      {"MLP 784-512-512-10, gradient descent, batch 256", MlpStep(runtime, 256, Training::kGradientDescent)},
      {"MLP 784-512-512-10, Adam, batch 32", MlpStep(runtime, 32, Training::kAdam)},
      {"MLP 784-512-512-10, Adam, batch 256", MlpStep(runtime, 256, Training::kAdam)},
  };
  for (Case& c : cases) {
    Row row{"B20", std::string("arena, ") + c.what, "KiB", 0, 0, "in use at once", 0, 0, {}};
    const Result<session::RunReport> report =
        c.program.ok() ? c.program->Report() : Result<session::RunReport>(c.program.status());
    if (report.ok()) {
      row.measured = row.fastest = static_cast<double>(report->arena_bytes) / 1024;
      row.limit = static_cast<double>(report->live_bytes) / 1024;
      row.gate = row.goal = 1.05 * row.limit;
    } else {
      row.error = report.status().ToString();
    }
    rows->push_back(row);
  }
}

void AddGrowthRow(const std::shared_ptr<session::Runtime>& runtime, std::vector<Row>* rows) {
  Row row{"B20", "process after 1,000,000 runs of the digits step", "KiB", 0, 0, "after 1,000", 0, 0, {}};
  Result<Program> digits = Digits(runtime, true);
  if (!digits.ok()) {
    row.error = digits.status().ToString();
  } else if (digits->RunNs(1000, &row.error) >= 0) {
    row.limit = ResidentBytes() / 1024;
    if (digits->RunNs(999000, &row.error) >= 0) row.measured = row.fastest = ResidentBytes() / 1024;
    row.gate = row.limit + 64;
  }
  rows->push_back(row);
}

}  // namespace

void AddMemoryRows(const std::shared_ptr<session::Runtime>& runtime, std::vector<Row>* rows) {
  AddArenaRows(runtime, rows);
  {
    Row row{"B04", "one op on 1 MiB that is fed, its output fetched", "us", 0, 0, "the op in a loop", 0, 0, {}};
    Result<Program> one = OneOp(runtime, kMebibyte);
    MeasureRuns(
        9, one, [](Program& p, std::string* e) { return p.RunNs(1000, e) / 1e3; },
        [] { return ScaleNs(kMebibyteFloats, 1000, Pass::kOver) / 1e3; }, &row);
    rows->push_back(row);
  }
  AddGrowthRow(runtime, rows);
}

void AddVectorLoopRow(const std::shared_ptr<session::Runtime>& runtime, std::vector<Row>* rows) {
  constexpr int kIterations = 1000;
  Row row{
      "B12", "while_loop of 1,000 iterations over 1 MiB, x * 0.5, per iteration", "us", 0, 0, "the op in a loop", 0, 0,
      {}};
  Result<Program> loop = VectorLoop(runtime, kIterations, kMebibyte);
  MeasureRuns(
      9, loop, [](Program& p, std::string* e) { return p.RunNs(1, e) / 1e3 / kIterations; },
      [] { return ScaleNs(kMebibyteFloats, kIterations, Pass::kInPlace) / 1e3; }, &row);
  rows->push_back(row);
}

void AddFirstRunRow(const std::shared_ptr<session::Runtime>& runtime, std::vector<Row>* rows) {
  constexpr int kNodes = 100000;
  Row row{"B17", "first Run of a graph of 100,000 nodes after import",
          "ms",  0,
          0,     "index of 100,000 names, two finds each",
          0,     1000,
          {},    300};
  const std::string bytes = LargeGraphDef(kNodes, *runtime->ops, true);
  const Result<graph::Definition> graph = graph::ParseGraph(bytes, *runtime->ops);
  std::vector<session::Feed> feeds;
  for (graph::NodeId id = 0; graph.ok() && id < 16; ++id) {
    feeds.emplace_back(graph->node(id).name() + ":0", Tensor::Scalar<float>(1e-30f));
  }
  std::unique_ptr<session::Session> session;
  const auto run = [&]() -> Status {
    WEIR_ASSIGN(session, session::Session::Make(runtime, *graph, {}));
    const std::vector<std::string> fetches = {graph->node(kNodes - 1).name() + ":0"};
    return session->Run(feeds, fetches, {}).status();
  };
  Measure(
      3,
      [&] {
        session.reset();
        Status status = graph.status();
        const double ns = TimeNs([&] {
          if (status.ok()) status = run();
        });
        if (!status.ok()) row.error = status.ToString();
        return status.ok() ? ns / 1e6 : -1;
      },
      [] { return NameIndexNs(kNodes) / 1e6; }, &row);
  rows->push_back(row);
}

void MeasureRuns(int rounds, Result<Program>& program, const std::function<double(Program&, std::string*)>& run,
                 const std::function<double()>& probe, Row* row) {
  if (!program.ok()) {
    row->error = program.status().ToString();
    return;
  }
  if (run(*program, &row->error) < 0) return;  // warms up, compiles the plan
  Measure(
      rounds, [&] { return run(*program, &row->error); }, probe, row);
}

}  // namespace weir::bench
