// tools/bench: figures, each with a limit probed in the same round.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "core/graph/graph_def.h"
#include "tests/bench/limit_loops.h"
#include "tests/bench/measure.h"
#include "tests/bench/place_stage.h"
#include "tests/bench/rows.h"
#include "tests/bench/workloads.h"

namespace weir::bench {
namespace {

constexpr char kConcurrent[] = "--child-concurrent";
constexpr char kWide[] = "--child-wide";
constexpr char kOneCore[] = "--child-one-core";
constexpr char kFirstResult[] = "--child-first-result";
constexpr char kNothing[] = "--child-nothing";

/// Implements `--child-first-result`: loads plugins, graph and session, and runs one prediction.
int FirstResult() {
  Result<std::shared_ptr<session::Runtime>> runtime = session::Runtime::Default();
  if (!runtime.ok()) return 1;
  Result<Program> digits = Digits(*runtime, false);
  if (!digits.ok()) return 1;
  std::string error;
  return digits->RunNs(1, &error) < 0 ? 1 : 0;
}

/// B12.
void AddControlFlowRows(int rounds, const std::shared_ptr<session::Runtime>& runtime, std::vector<Row>* rows) {
  constexpr int kIterations = 10000;
  struct Case {
    const char* what;
    Result<Program> program;
    int items;  // iterations or conds of one run
    int calls;  // calls per item in the limit probe
    double gate;
    double goal;
  };
  Case cases[] = {
      {"while_loop of 10,000 iterations, scalar body, per iteration", Loop(runtime, kIterations, LoopBody::kScalar),
       kIterations, 3, 150, 50},
      {"while_loop of 10,000 iterations, body of 10 ops, per iteration", Loop(runtime, kIterations, LoopBody::kTenOps),
       kIterations, 12, 0, 0},
      {"while_loop of 100 in one of 100, scalar body, per inner iteration", NestedLoop(runtime, 100, 100), kIterations,
       3, 0, 50},
      {"chain of 200 conds, per cond", CondChain(runtime, 200), 200, 3, 150, 60},
  };
  AddVectorLoopRow(runtime, rows);
  for (Case& c : cases) {
    Row row{"B12", c.what, "ns", 0, 0, "its calls, indirect", 0, c.gate, {}, c.goal};
    const int runs = 20 * kIterations / c.items;
    MeasureRuns(
        rounds, c.program, [&](Program& p, std::string* e) { return p.RunNs(runs, e) / c.items; },
        [&] { return IndirectCallNs(runs * c.items * c.calls) * c.calls; }, &row);
    rows->push_back(row);
  }
}

constexpr int kRounds = 9;

void AddTapeRows(const std::shared_ptr<session::Runtime>& runtime, std::vector<Row>& rows) {
  {
    Row row{"B02", "empty kernel in a chain of 10,000, per executed instruction", "ns", 0, 0, "indirect call", 0, 3, {},
            2};
    Result<Program> chain = Chain(runtime, "Neg", DType::kInt8, 10000);
    MeasureRuns(
        kRounds, chain, [](Program& p, std::string* e) { return p.RunNs(50, e) / 10000; },
        [] { return IndirectCallNs(10000 * 50); }, &row);
    rows.push_back(row);
  }
  {
    Row row{
        "B03", "chain of 1,000 scalar adds, unfolded, per op", "ns", 0, 0, "indirect call and add in memory", 0, 10, {},
        10};
    Result<Program> chain = Chain(runtime, "AddV2", DType::kFloat, 1000);
    MeasureRuns(
        kRounds, chain, [](Program& p, std::string* e) { return p.RunNs(500, e) / 1000; },
        [] { return IndirectAddNs(1000 * 500); }, &row);
    rows.push_back(row);
  }
  for (const bool by_name : {false, true}) {
    Row row{
        "B01", by_name ? "Run with one feed and one fetch, by name" : "Run with one feed and one fetch, by callable",
        "ns",  0,
        0,     "indirect call",
        0,     by_name ? 1000.0 : 200.0,
        {},    by_name ? 200.0 : 90.0};
    Result<Program> chain = Chain(runtime, "Neg", DType::kFloat, 1);
    MeasureRuns(
        kRounds, chain,
        [by_name](Program& p, std::string* e) { return by_name ? p.RunByNameNs(20000, e) : p.RunNs(20000, e); },
        [] { return IndirectCallNs(100000); }, &row);
    rows.push_back(row);
  }
}

/// B01 and B04: the cost of a run and of each fed and fetched value, without computation.
void AddFetchRows(const std::shared_ptr<session::Runtime>& runtime, std::vector<Row>& rows) {
  struct Case {
    const char* id;
    const char* what;
    int count;
    int64_t bytes;
    double gate;
    double goal;
  };
  constexpr Case kCases[] = {
      {"B01", "Run of an op that does nothing, by callable", 0, 4, 200, 60},
      {"B04", "4 bytes fed and fetched, by callable", 1, 4, 200, 90},
      {"B04", "8 times 4 bytes fed and fetched, by callable", 8, 4, 600, 300},
      {"B04", "1 MiB fed and fetched, by callable", 1, 1 << 20, 200, 90},
      {"B04", "8 times 1 MiB fed and fetched, by callable", 8, 1 << 20, 600, 500},
  };
  for (const Case& c : kCases) {
    Row row{c.id, c.what, "ns", 0, 0, "indirect call", 0, c.gate, {}, c.goal};
    Result<Program> program = Identities(runtime, c.count, c.bytes);
    MeasureRuns(
        kRounds, program, [](Program& p, std::string* e) { return p.RunNs(20000, e); },
        [] { return IndirectCallNs(100000); }, &row);
    rows.push_back(row);
  }
}

void AddGraphRows(const std::shared_ptr<session::Runtime>& runtime, std::vector<Row>& rows) {
  {
    Row row{"B17", "import of a GraphDef of 100,000 nodes from memory",
            "ms",  0,
            0,     "index of 100,000 names, two finds each",
            0,     300,
            {},    300};
    const std::string bytes = LargeGraphDef(100000, *runtime->ops);
    Measure(
        5,
        [&] {
          Status status;
          const double ns = TimeNs([&] { status = graph::ParseGraph(bytes, *runtime->ops).status(); });
          if (!status.ok()) row.error = status.ToString();
          return status.ok() ? ns / 1e6 : -1;
        },
        [] { return NameIndexNs(100000) / 1e6; }, &row);
    rows.push_back(row);
  }
  AddFirstRunRow(runtime, &rows);
  {
    Row row{"B17", "place stage alone, 100,000 nodes over a CPU and three accelerators, by costs",
            "ms",  0,
            0,     "index of 100,000 names, two finds each",
            0,     3000,
            {}};
    Result<std::unique_ptr<PlaceStage>> stage = PlaceStage::Make(*runtime, 100000);
    if (stage.ok()) {
      Measure(
          3, [&] { return (*stage)->PlaceNs(&row.error) / 1e6; }, [] { return NameIndexNs(100000) / 1e6; }, &row);
    } else {
      row.error = stage.status().ToString();
    }
    rows.push_back(row);
  }
}

void AddProgramRows(const std::shared_ptr<session::Runtime>& runtime, const std::string& self, std::vector<Row>& rows) {
  {
    Row row{"B18", "process start to first result of the digits network",
            "ms",  0,
            0,     "process that does nothing",
            0,     25,
            {},    8};
    Measure(
        kRounds, [&] { return StartProcessNs(self, kFirstResult) / 1e6; },
        [&] { return StartProcessNs(self, kNothing) / 1e6; }, &row);
    rows.push_back(row);
  }
  {
    Row row{
        "digits", "training step of the digits network, batch 32", "us", 0, 0, "the arithmetic of its products", 0, 0,
        {}};
    Result<Program> digits = Digits(runtime, true);
    MeasureRuns(
        kRounds, digits, [](Program& p, std::string* e) { return p.RunNs(2000, e) / 1e3; },
        [] { return DigitsProductsNs(2000) / 1e3; }, &row);
    rows.push_back(row);
  }
}

/// `only`: prefixes of row numbers; empty means all rows.
std::vector<Row> QuickRows(const std::shared_ptr<session::Runtime>& runtime, const std::string& self,
                           const std::vector<std::string>& only) {
  struct Group {
    std::vector<std::string> ids;
    std::function<void(std::vector<Row>&)> add;
  };
  const Group groups[] = {
      {{"B01", "B02", "B03"}, [&](std::vector<Row>& rows) { AddTapeRows(runtime, rows); }},
      {{"B01", "B04"}, [&](std::vector<Row>& rows) { AddFetchRows(runtime, rows); }},
      {{"B12"}, [&](std::vector<Row>& rows) { AddControlFlowRows(kRounds, runtime, &rows); }},
      {{"frame"}, [&](std::vector<Row>& rows) { AddFrameRows(runtime, &rows); }},
      {{"launch"}, [&](std::vector<Row>& rows) { AddLaunchRows(&rows); }},
      {{"B17"}, [&](std::vector<Row>& rows) { AddGraphRows(runtime, rows); }},
      {{"B18", "digits"}, [&](std::vector<Row>& rows) { AddProgramRows(runtime, self, rows); }},
      {{"B04", "B20"}, [&](std::vector<Row>& rows) { AddMemoryRows(runtime, &rows); }},
      {{"B06"}, [&](std::vector<Row>& rows) { AddConcurrencyRow(self, kConcurrent, &rows); }},
      {{"B05"},
       [&](std::vector<Row>& rows) {
         AddWidthRows(runtime, self, {kWide, kOneCore}, &rows);
       }},
  };
  std::vector<Row> rows;
  for (const Group& group : groups) {
    const auto asked = [&](const std::string& id) { return std::ranges::find(only, id) != only.end(); };
    if (only.empty() || std::ranges::any_of(group.ids, asked)) group.add(rows);
  }
  return rows;
}

constexpr char kUsage[] =
    "usage: weir_bench [--quick] [--gates] [--only ROW]... [--isa baseline|avx2|avx512] [folder for results.json and\n"
    "                  results.md]\n"
    "  --only   measures the groups of rows that have this number, as B01\n"
    "  --gates  exit status 1 when a gate is missed\n"
    "  --isa    vectors of the limits, by default the widest that there are\n";

struct Options {
  bool gates = false;
  std::vector<std::string> only;
  std::string folder;
};

/// No value for invalid arguments.
std::optional<Options> Parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--gates") {
      options.gates = true;
    } else if (argument == "--only" && i + 1 < argc) {
      options.only.emplace_back(argv[++i]);
    } else if (argument == "--isa" && i + 1 < argc && SetLimitIsa(argv[i + 1])) {
      ++i;
    } else if (argument != "--quick" && (argument.starts_with("-") || !options.folder.empty())) {
      return std::nullopt;
    } else if (argument != "--quick") {
      options.folder = argument;
    }
  }
  return options;
}

int Main(int argc, char** argv) {
  const std::string_view mode = argc > 1 ? argv[1] : "";
  if (mode == kNothing) return 0;
  if (mode == kFirstResult) return FirstResult();
  if (mode == kWide && argc > 2) return RunWide(std::atoi(argv[2]));
  if (mode == kOneCore) return RunOnOneCore();
  if (mode == kConcurrent && argc > 2) return RunConcurrently(std::atoi(argv[2]));
  const std::optional<Options> asked = Parse(argc, argv);
  if (!asked) {
    std::fputs(kUsage, stderr);
    return 2;
  }
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  plugin::LoadOptions options;
  options.folders = plugin::SearchPath();
  options.folders.push_back(
      (std::filesystem::path(self).parent_path() / "../lib/weir/bench").lexically_normal().string());
  const Result<std::shared_ptr<session::Runtime>> runtime = session::Runtime::Load(options);
  if (!runtime.ok()) {
    std::fprintf(stderr, "weir: %s\n", runtime.status().ToString().c_str());
    return 1;
  }
  const std::vector<Row> rows = QuickRows(*runtime, self, asked->only);
  const std::string table = Markdown(rows);
  std::fputs(table.c_str(), stdout);
  if (!asked->folder.empty()) {
    std::ofstream(asked->folder + "/results.md") << table;
    std::ofstream(asked->folder + "/results.json") << JsonText(rows);
  }
  std::vector<std::string> missed;
  for (const Row& row : rows) {
    if (row.missed())
      missed.push_back(fmt::format("{} {}: {:.4g} of {:.6g} {}", row.id, row.what, row.measured, row.gate, row.unit));
  }
  const bool failed = std::any_of(rows.begin(), rows.end(), [](const Row& row) { return row.failed(); });
  return failed ? 1 : asked->gates ? TellMissed(missed) : 0;
}

}  // namespace
}  // namespace weir::bench

int main(int argc, char** argv) { return weir::bench::Main(argc, argv); }
