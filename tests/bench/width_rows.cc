// B05: steps of many chains of ops, by a default session, compared with one thread and with separate processes.
#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/client/ops/ops.h"
#include "tests/bench/open.h"
#include "tests/bench/rows.h"

namespace weir::bench {
namespace {

constexpr int kLength = 16;
constexpr int kWarm = 40;  // runs, after which the session has compared tiers
constexpr int kWidthRounds = 9;

enum class Kind { kAdd, kProduct, kReduction };

session::SessionOptions Threads(int threads) {
  session::SessionOptions options = Unfolded();
  options.inter_op_parallelism_threads = options.intra_op_parallelism_threads = threads;
  return options;
}

/// `chains` chains of 16 links over a vector of `floats`, or a matrix of as many, from one feed to one sum.
Result<Program> Wide(const std::shared_ptr<session::Runtime>& runtime, int chains, int64_t floats, Kind kind,
                     const session::SessionOptions& options) {
  Graph graph;
  const AsDefault in(graph);
  const auto side = static_cast<int64_t>(std::sqrt(static_cast<double>(floats)));
  const Shape shape = kind == Kind::kProduct ? Shape::Of({side, side}) : Shape::Of({floats});
  const Output x = weir::Placeholder(DType::kFloat, PartialShape(shape), "x");
  std::vector<Operand> sums;
  for (int c = 0; c < chains; ++c) {
    Output y = x;
    for (int i = 0; i < kLength; ++i) {
      y = kind == Kind::kAdd       ? y + static_cast<float>(c * kLength + i)
          : kind == Kind::kProduct ? MatMul(y, x)
                                   : y - ReduceSum(y);
    }
    sums.emplace_back(ReduceSum(y));
  }
  const Output total = AddN(sums);
  WEIR_ASSIGN(Program program, Open(runtime, graph, {{x.name()}, {total.name()}, {}}, options));
  WEIR_ASSIGN(Tensor value, Tensor::Make(DType::kFloat, shape));
  std::fill_n(value.mutable_as<float>().begin(), value.elements(), 0.01f);
  program.feeds = {value};
  return program;
}

/// The number of runs for a round of about 20 ms.
int RunsFor(double ns) { return std::clamp(static_cast<int>(20e6 / ns), 3, 2000); }

struct Case {
  int chains;
  int64_t floats;
  Kind kind;
};

/// The median over rounds of the time with `asked` threads, relative to one thread; negative with an error.
double Ratio(const std::shared_ptr<session::Runtime>& runtime, const Case& c, int asked, std::string* error) {
  Result<Program> one = Wide(runtime, c.chains, c.floats, c.kind, Threads(1));
  Result<Program> many = Wide(runtime, c.chains, c.floats, c.kind, Threads(asked));
  if (!one.ok() || !many.ok()) {
    *error = (one.ok() ? many.status() : one.status()).ToString();
    return -1;
  }
  const double ns = one->RunNs(kWarm, error);
  if (ns < 0 || many->RunNs(kWarm, error) < 0) return -1;
  std::vector<double> ratios;
  for (int round = 0; round < kWidthRounds; ++round) {
    const double alone = one->RunNs(RunsFor(ns), error);
    ratios.push_back(many->RunNs(RunsFor(ns), error) / alone);
    if (ratios.back() < 0) return -1;
  }
  return Median(ratios);
}

/// The worst of several cases.
void AddRatioRow(const std::shared_ptr<session::Runtime>& runtime, const std::string& what,
                 const std::vector<Case>& cases, double gate, std::vector<Row>* rows) {
  Row row{"B05", what, "x", 0, 0, "one thread", 1, gate, {}};
  for (const Case& c : cases) {
    const double ratio = Ratio(runtime, c, 0, &row.error);
    if (row.failed()) break;
    row.measured = std::max(row.measured, ratio);
    row.fastest = row.fastest == 0 ? ratio : std::min(row.fastest, ratio);
  }
  rows->push_back(row);
}

/// Wall time in ns of `processes` concurrent processes, each with `runs` steps on one thread.
double ProcessesNs(const std::string& self, const std::string& mode, int processes, int runs) {
  return TimeNs([&] {
    std::vector<std::thread> waiting;
    for (int p = 0; p < processes; ++p) {
      waiting.emplace_back([&] { (void)RunProgram({self, mode, std::to_string(runs)}); });
    }
    for (std::thread& thread : waiting) thread.join();
  });
}

constexpr Case kLarge = {64, 65536, Kind::kAdd};

/// The gain of a default session from two cores, as a share of the gain of two processes.
void AddGainRow(const std::shared_ptr<session::Runtime>& runtime, const std::string& self, const std::string& mode,
                std::vector<Row>* rows) {
  constexpr int kRuns = 60, kGainRounds = 5;
  Row row{"B05", "64 chains of 65,536 floats: gain of two processes over that of a default session",
          "x",   0,
          0,     "as much",
          1,     1 / 0.85,
          {}};
  Result<Program> one = Wide(runtime, kLarge.chains, kLarge.floats, kLarge.kind, Threads(1));
  Result<Program> many = Wide(runtime, kLarge.chains, kLarge.floats, kLarge.kind, Threads(0));
  if (!one.ok() || !many.ok()) {
    row.error = (one.ok() ? many.status() : one.status()).ToString();
    rows->push_back(row);
    return;
  }
  (void)one->RunNs(kWarm, &row.error);
  (void)many->RunNs(kWarm, &row.error);
  std::vector<double> ratios;
  for (int round = 0; round < kGainRounds && !row.failed(); ++round) {
    const double start = ProcessesNs(self, mode, 1, 0), both_start = ProcessesNs(self, mode, 2, 0);
    const double alone = ProcessesNs(self, mode, 1, kRuns) - start;
    const double both = ProcessesNs(self, mode, 2, kRuns) - both_start;
    const double own = one->RunNs(kRuns, &row.error) / many->RunNs(kRuns, &row.error);
    ratios.push_back(2 * alone / both / own);
  }
  row.measured = row.failed() ? 0 : Median(ratios);
  row.fastest = row.failed() ? 0 : *std::min_element(ratios.begin(), ratios.end());
  rows->push_back(row);
}

/// Two threads on one core compared with one thread, in a separate process that may use one core only.
void AddOneCoreRow(const std::string& self, const std::string& mode, std::vector<Row>* rows) {
  Row row{"B05", "64 chains of 256 and 1,024 floats, two threads allowed on one core", "x", 0, 0, "one thread", 1, 1.2,
          {}};
  std::FILE* const answer = popen(fmt::format("'{}' {}", self, mode).c_str(), "r");
  if (answer == nullptr || std::fscanf(answer, "%lf", &row.measured) != 1) row.error = "no answer of " + mode;
  if (answer != nullptr) (void)pclose(answer);
  row.fastest = row.measured;
  rows->push_back(row);
}

}  // namespace

int RunWide(int runs) {
  const Result<std::shared_ptr<session::Runtime>> runtime = session::Runtime::Default();
  if (!runtime.ok()) return 1;
  Result<Program> wide = Wide(*runtime, kLarge.chains, kLarge.floats, kLarge.kind, Threads(1));
  std::string error;
  return wide.ok() && wide->RunNs(1, &error) >= 0 && (runs == 0 || wide->RunNs(runs, &error) >= 0) ? 0 : 1;
}

int RunOnOneCore() {
  cpu_set_t all, one;
  CPU_ZERO(&one);
  if (sched_getaffinity(0, sizeof(all), &all) != 0) return 1;
  for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++cpu) {
    if (CPU_ISSET(cpu, &all)) CPU_SET(cpu, &one);
  }
  if (sched_setaffinity(0, sizeof(one), &one) != 0) return 1;
  const Result<std::shared_ptr<session::Runtime>> runtime = session::Runtime::Default();
  if (!runtime.ok()) return 1;
  double worst = 0;
  std::string error;
  for (const int64_t floats : {256, 1024})
    worst = std::max(worst, Ratio(*runtime, {64, floats, Kind::kAdd}, 2, &error));
  if (error.empty()) std::printf("%f\n", worst);
  return error.empty() ? 0 : 1;
}

void AddWidthRows(const std::shared_ptr<session::Runtime>& runtime, const std::string& self, const WidthModes& modes,
                  std::vector<Row>* rows) {
  for (const int64_t floats : {256, 1024, 16384, 65536}) {
    AddRatioRow(runtime, fmt::format("64 chains of 16 adds of {} floats, default session", floats),
                {{64, floats, Kind::kAdd}}, 1.02, rows);
  }
  AddRatioRow(runtime, "1, 4 and 16 chains of 16 adds of 256 to 65,536 floats, default session, the worst",
              {{1, 1024, Kind::kAdd},
               {1, 65536, Kind::kAdd},
               {4, 256, Kind::kAdd},
               {4, 16384, Kind::kAdd},
               {4, 65536, Kind::kAdd},
               {16, 1024, Kind::kAdd},
               {16, 65536, Kind::kAdd}},
              1.02, rows);
  AddRatioRow(runtime, "64 chains of 16 products and reductions of 1,024 to 65,536 floats, default session, the worst",
              {{64, 1024, Kind::kProduct},
               {16, 16384, Kind::kProduct},
               {4, 65536, Kind::kProduct},
               {64, 1024, Kind::kReduction},
               {64, 16384, Kind::kReduction},
               {4, 65536, Kind::kReduction}},
              1.02, rows);
  AddOneCoreRow(self, modes.one_core, rows);
  AddGainRow(runtime, self, modes.wide, rows);
}

}  // namespace weir::bench
