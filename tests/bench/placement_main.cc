// tools/bench placement: plans beside their lower bounds, exact optima, and the time that placing takes.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/graph/graph_def.h"
#include "core/place/portfolio.h"
#include "core/session/session.h"
#include "tests/bench/place_stage.h"
#include "tests/bench/workloads.h"
#include "tests/unit/place/exact.h"
#include "tests/unit/place/msr.h"
#include "tests/unit/place/random_problem.h"

namespace weir::bench {
namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

double Ms(Clock::time_point begin) { return std::chrono::duration<double, std::milli>(Clock::now() - begin).count(); }

/// A figure with its limit.
class Gates {
 public:
  void Add(const std::string& what, double figure, double limit) {
    const bool met = figure <= limit;
    missed_ += met ? 0 : 1;
    text_ += fmt::format("{:<64}{:>10.3f}  at most {:<8.4g}{}\n", what, figure, limit, met ? "" : "  MISSED");
    json_.push_back({{"figure", what}, {"value", figure}, {"limit", limit}, {"met", met}});
  }
  int missed() const { return missed_; }
  const std::string& text() const { return text_; }
  const Json& json() const { return json_; }

 private:
  int missed_ = 0;
  std::string text_;
  Json json_ = Json::array();
};

/// Every graph below `folder`, with the plan that costsim takes.
void ProfiledGraphs(const std::string& folder, Gates& gates, Json& rows) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().extension() == ".json" && entry.path().string().find("-inputs/") != std::string::npos)
      files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  double logs = 0, worst = 0;
  int fitting = 0;
  fmt::print("{:<58}{:>6}{:>9}{:>9}{:>9}{:>9}{:>7}{:>9}  plan\n", "graph", "nodes", "bound", "single", "tf", "plan",
             "ratio", "ms");
  for (const std::string& file : files) {
    const place::Msr msr(file);
    const place::Problem& problem = msr.problem();
    std::vector<place::Plan> given;
    // TensorFlow takes the first device of the preferred type.
    given.push_back({"tf", place::SingleDevicePlan(problem, 1), {}});
    const auto begin = Clock::now();
    const place::Choice choice = place::ChoosePlan(problem, place::Algorithm::kCostSim, std::move(given));
    const double ms = Ms(begin);
    const place::Simulation& found = choice.plan.simulation;
    const place::Simulation tf = place::Simulate(problem, place::SingleDevicePlan(problem, 1), choice.ranks);
    const double ratio = static_cast<double>(found.makespan_ns) / static_cast<double>(choice.bound_ns);
    double reference = static_cast<double>(choice.best_single_ns);
    if (tf.fits && (reference == 0 || static_cast<double>(tf.makespan_ns) < reference))
      reference = static_cast<double>(tf.makespan_ns);
    if (reference > 0) worst = std::max(worst, static_cast<double>(found.makespan_ns) / reference);
    const bool fits = tf.fits && found.fits;
    if (fits) {
      logs += std::log(ratio);
      ++fitting;
    }
    const std::string name = file.substr(file.find("-inputs/") - std::strlen("throughput"));
    fmt::print("{:<58}{:>6}{:>9.1f}{:>9.1f}{:>9.1f}{:>9.1f}{:>7.3f}{:>9.1f}  {}{}\n", name, problem.tasks(),
               place::Units(choice.bound_ns), place::Units(choice.best_single_ns), place::Units(tf.makespan_ns),
               place::Units(found.makespan_ns), ratio, ms, choice.plan.name,
               fits         ? ""
               : found.fits ? " (one does not hold it)"
                            : " (nothing holds it)");
    rows.push_back({{"graph", name}, {"ratio", ratio}, {"plan", choice.plan.name}, {"fits_one", fits}, {"ms", ms}});
  }
  gates.Add("slowest plan over the faster of single device and TensorFlow", worst, 1);
  gates.Add(fmt::format("geometric mean over the lower bound, {} graphs that one holds", fitting),
            fitting == 0 ? 1 : std::exp(logs / fitting), 1.10);
}

void SmallGraphs(Gates& gates) {
  constexpr int kGraphs = 200;
  double sum = 0, single = 0, worst = 0;
  int exact = 0;
  for (uint32_t seed = 0; seed < kGraphs; ++seed) {
    const place::Problem problem = place::Random(seed, 8, 2, 60, false);
    const auto optimum = static_cast<double>(place::OptimumNs(problem));
    const place::Choice choice = place::ChoosePlan(problem, place::Algorithm::kCostSim, {});
    const double ratio = static_cast<double>(choice.plan.simulation.makespan_ns) / optimum;
    sum += ratio;
    single += static_cast<double>(choice.best_single_ns) / optimum;
    worst = std::max(worst, ratio);
    exact += ratio == 1 ? 1 : 0;
  }
  fmt::print("{} small graphs: mean {:.4f}, worst {:.3f}, optimal {}; best single device {:.3f}\n", kGraphs,
             sum / kGraphs, worst, exact, single / kGraphs);
  gates.Add("200 small graphs, mean over the exact optimum", sum / kGraphs, 1.02);
}

/// Placing a large graph on eight devices beside import and first run of the same graph on one.
Status LargeGraphs(Gates& gates) {
  WEIR_ASSIGN(const std::shared_ptr<session::Runtime> runtime, session::Runtime::Default());
  const auto place_ms = [&](int nodes) -> Result<double> {
    WEIR_ASSIGN(const std::unique_ptr<PlaceStage> stage, PlaceStage::Make(*runtime, nodes, 8));
    std::string error;
    const auto begin = Clock::now();
    if (stage->PlaceOnce(&error)) return Ms(begin);
    return Status(Code::kInternal, error);
  };
  constexpr int kMany = 100'000, kFew = 2000;
  const std::string text = LargeGraphDef(kMany, *runtime->ops);
  const auto begin = Clock::now();
  WEIR_ASSIGN(graph::Definition graph, graph::ParseGraph(text, *runtime->ops));
  const double import = Ms(begin);
  session::SessionOptions options;
  options.placement_log = [](const std::string&) {};
  WEIR_ASSIGN(const auto session, session::Session::Make(runtime, graph, options));
  std::vector<std::string> targets;
  for (graph::NodeId id = 0; id < graph.num_nodes(); ++id) targets.push_back(graph.node(id).name());
  const auto running = Clock::now();
  WEIR_TRY(session->Run({}, {}, targets).status());
  const double first_run = Ms(running);
  WEIR_ASSIGN(const double many, place_ms(kMany));
  WEIR_ASSIGN(double few, place_ms(kFew));
  for (int k = 0; k < 2; ++k) {
    WEIR_ASSIGN(const double again, place_ms(kFew));
    few = std::min(few, again);
  }
  fmt::print(
      "{} nodes: import {:.0f} ms, first run on one device {:.0f} ms, placing over 8 {:.0f} ms; {} nodes {:.1f} ms\n",
      kMany, import, first_run, many, kFew, few);
  gates.Add("placing 100k nodes over 8 devices / import and first run on one", many / (import + first_run), 1.5);
  gates.Add("placing 2k nodes / 100k nodes", few / many, 0.1);
  return Status();
}

int Main(const std::vector<std::string>& arguments) {
  std::string data = std::getenv("WEIR_TEST_DATA") == nullptr ? "" : std::getenv("WEIR_TEST_DATA");
  std::string out;
  bool strict = false;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == "--gates") {
      strict = true;
    } else if (arguments[i] == "--data" && i + 1 < arguments.size()) {
      data = arguments[++i];
    } else {
      out = arguments[i];
    }
  }
  Gates gates;
  Json rows = Json::array();
  if (const std::string folder = data + "/placement/msr"; !data.empty() && std::filesystem::exists(folder)) {
    ProfiledGraphs(folder, gates, rows);
  } else {
    fmt::print("the profiled graphs are left out: name their folder with --data or WEIR_TEST_DATA\n");
  }
  SmallGraphs(gates);
  if (const Status large = LargeGraphs(gates); !large.ok()) {
    fmt::print("large graphs: {}\n", large.ToString());
    return 1;
  }
  fmt::print("\n{}", gates.text());
  if (!out.empty()) {
    std::ofstream(out + "/placement.json") << Json({{"gates", gates.json()}, {"graphs", rows}}).dump(1) << "\n";
  }
  return strict && gates.missed() > 0 ? 1 : 0;
}

}  // namespace
}  // namespace weir::bench

int main(int argc, char** argv) { return weir::bench::Main(std::vector<std::string>(argv + 1, argv + argc)); }
