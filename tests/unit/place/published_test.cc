// Published and measured schedules: the worked example of the HEFT paper, and the profiled graphs of "Efficient
// Algorithms for Device Placement of DNN Graph Operators" (NeurIPS 2020).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "core/place/list_schedule.h"
#include "core/place/portfolio.h"
#include "core/place/simulate.h"
#include "tests/support/test_data.h"
#include "tests/unit/place/exact.h"
#include "tests/unit/place/msr.h"

namespace weir::place {
namespace {

using Json = nlohmann::json;

Json Read(const std::string& file) { return Json::parse(std::ifstream(testing::TestData() + "/placement/" + file)); }

/// Ten tasks on three processors; a transfer takes its edge's cost between any two processors and never waits.
Problem Topcuoglu(const Json& data) {
  const int devices = static_cast<int>(data["devices"].size());
  std::vector<DeviceCost> costs;
  for (int d = 0; d < devices; ++d) costs.push_back({.space = d});
  Problem problem(costs, devices,
                  std::vector<LinkCost>(9, {.latency_ns = 0, .ns_per_byte = 1, .direct = true, .queues = false}));
  std::map<int, std::vector<int>> inputs;  // values by the consuming task
  for (int t = 0; t < static_cast<int>(data["exec"].size()); ++t) {
    std::vector<int64_t> times;
    for (const double time : data["exec"][static_cast<size_t>(t)]) times.push_back(Ns(time));
    problem.AddTask(times, t);
    for (const int v : inputs[t]) problem.AddUse({v});
    for (const Json& edge : data["edges"]) {
      if (edge[0] == t) inputs[edge[1]].push_back(problem.AddValue({.task = t, .bytes = Ns(edge[2])}));
    }
  }
  problem.Seal();
  return problem;
}

class TopcuogluTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (testing::TestData().empty()) GTEST_SKIP() << "WEIR_TEST_DATA is not set";
    data_ = Read("topcuoglu10.json");
    problem_.emplace(Topcuoglu(data_));
  }
  Json data_;
  std::optional<Problem> problem_;
};

TEST_F(TopcuogluTest, UpwardRanksAreThePublishedOnes) {
  const std::vector<int64_t> ranks = UpwardRanks(*problem_);
  for (size_t t = 0; t < ranks.size(); ++t) {
    EXPECT_NEAR(Units(ranks[t]), data_["expected"]["rank_u"][t].get<double>(), 0.001) << "task " << t;
  }
}

TEST_F(TopcuogluTest, HeftGivesThePublishedSchedule) {
  ListOptions options;
  options.reserve_links = false;
  const Schedule schedule = ListSchedule(*problem_, options, UpwardRanks(*problem_));
  const Json& heft = data_["expected"]["heft"];
  EXPECT_EQ(Units(schedule.makespan_ns), heft["makespan"].get<double>());
  for (size_t t = 0; t < schedule.device_of.size(); ++t) {
    EXPECT_EQ(schedule.device_of[t], heft["device"][t].get<int>()) << "task " << t;
    EXPECT_EQ(Units(schedule.start_ns[t]), heft["start"][t].get<double>()) << "task " << t;
    EXPECT_EQ(Units(schedule.finish_ns[t]), heft["finish"][t].get<double>()) << "task " << t;
  }
}

TEST_F(TopcuogluTest, DispatchedByRankHeftsPlanTakesAsLong) {
  const std::vector<int> device_of = data_["expected"]["heft"]["device"].get<std::vector<int>>();
  EXPECT_EQ(Units(Simulate(*problem_, device_of, UpwardRanks(*problem_)).makespan_ns), 80);
}

TEST_F(TopcuogluTest, F293_TheOptimumIs73) {
  EXPECT_EQ(Units(OptimumNs(*problem_)), data_["expected"]["optimum"]["makespan"].get<double>());
}

/// What a row of the table says, in the data's unit. Generators are deferred whatever they cost, as CostTable says. The
/// table's deferral starts them beside their consumers; `before` is what the portfolio's gives, which differs where a
/// generator takes time, and there gives the plans that the text beside the table calls the best starts.
struct MsrRow {
  const char* file;
  double path_bound, all_cpu, one_accelerator;
  bool fits_one;
  double white_paper, heft, deferred, before;
};

class MsrTest : public ::testing::TestWithParam<MsrRow> {
 protected:
  void SetUp() override {
    if (testing::TestData().empty()) GTEST_SKIP() << "WEIR_TEST_DATA is not set";
  }
};

/// The table has three or four digits.
void ExpectPrinted(int64_t ns, double printed, const char* what) {
  EXPECT_NEAR(Units(ns) / printed, 1, 0.0016) << what << ": " << Units(ns) << ", the table has " << printed;
}

TEST_P(MsrTest, F292_TableOfMeasuredPlacements) {
  const MsrRow& row = GetParam();
  const Msr msr(testing::TestData() + "/placement/msr/throughput-inputs/" + row.file + ".json");
  const Problem& problem = msr.problem();
  const std::vector<int64_t> ranks = UpwardRanks(problem);
  ExpectPrinted(PathBoundNs(problem), row.path_bound, "path bound");
  ExpectPrinted(Simulate(problem, SingleDevicePlan(problem, 0), ranks).makespan_ns, row.all_cpu, "all CPU");
  const Simulation one = Simulate(problem, SingleDevicePlan(problem, 1), ranks);
  ExpectPrinted(one.makespan_ns, row.one_accelerator, "one accelerator");
  EXPECT_EQ(one.fits, row.fits_one);
  ExpectPrinted(ChoosePlan(problem, Algorithm::kWhitePaper, {}).plan.simulation.makespan_ns, row.white_paper,
                "white paper");
  ListOptions heft;
  heft.reserve_links = false;
  heft.deferral = ListOptions::Deferral::kNone;
  const Simulation plain = Simulate(problem, ListSchedule(problem, heft, ranks).device_of, ranks);
  ExpectPrinted(plain.makespan_ns, row.heft, "HEFT");
  heft.deferral = ListOptions::Deferral::kBeside;
  const Simulation deferred = Simulate(problem, ListSchedule(problem, heft, ranks).device_of, ranks);
  ExpectPrinted(deferred.makespan_ns, row.deferred, "HEFT with deferred generators");
  EXPECT_TRUE(deferred.fits);
  heft.deferral = ListOptions::Deferral::kBefore;
  const Simulation before = Simulate(problem, ListSchedule(problem, heft, ranks).device_of, ranks);
  ExpectPrinted(before.makespan_ns, row.before, "HEFT with generators before their consumers");
  EXPECT_TRUE(before.fits);
}

TEST_P(MsrTest, F292_GuardIsNeverWorseThanTheBaselines) {
  const MsrRow& row = GetParam();
  const Msr msr(testing::TestData() + "/placement/msr/throughput-inputs/" + row.file + ".json");
  const Choice choice = ChoosePlan(msr.problem(), Algorithm::kCostSim, {});
  EXPECT_TRUE(choice.plan.simulation.fits);
  EXPECT_LE(choice.plan.simulation.makespan_ns, choice.best_single_ns);
  EXPECT_GE(choice.plan.simulation.makespan_ns, PathBoundNs(msr.problem()));
  for (const Tried& tried : choice.tried) {
    if (!tried.fits) continue;
    EXPECT_LE(choice.plan.simulation.makespan_ns, tried.makespan_ns) << tried.name;
  }
  RecordProperty("plan", choice.plan.name);
  RecordProperty("makespan", std::to_string(Units(choice.plan.simulation.makespan_ns)));
  EXPECT_EQ(ChoosePlan(msr.problem(), Algorithm::kCostSim, {}).plan.device_of, choice.plan.device_of);
}

const MsrRow kRows[] = {
    {"OperatorGraphs/bert_l-3_inference", 47.8, 1135, 49.35, true, 911, 912, 64.0, 64.0},
    {"OperatorGraphs/bert_l-3_training", 113.4, 2829, 123.0, true, 2150, 2153, 154, 154},
    {"OperatorGraphs/bert_l-12_inference", 609, 14780, 642.8, true, 5218, 5258, 723, 723},
    {"OperatorGraphs/bert_L-12_training", 1333, 43510, 1892, false, 11730, 11810, 2620, 2620},
    {"OperatorGraphs/resnet50_training", 592, 15750, 684.9, true, 13080, 13080, 684.9, 684.9},
    {"LayerGraphs/bert24_training", 125.4, 2178, 217.8, true, 163.4, 131.3, 131.3, 131.3},
    {"LayerGraphs/gnmt_training", 337.4, 5205, 520.5, true, 398.8, 419.2, 419.2, 419.2},
    {"LayerGraphs/inceptionv3_training", 238.2, 7107, 710.7, false, 323.8, 390.7, 293.1, 258.2},
    {"LayerGraphs/resnet50_training", 232.8, 4624, 462.4, false, 322.6, 358.4, 278.4, 257.9},
};

INSTANTIATE_TEST_SUITE_P(Table, MsrTest, ::testing::ValuesIn(kRows), [](const auto& info) {
  std::string name = info.param.file;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
  return name;
});

}  // namespace
}  // namespace weir::place
