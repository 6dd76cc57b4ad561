// Refinement, coarsening, bounds, and plans from outside.
#include <gtest/gtest.h>

#include <numeric>

#include "core/place/list_schedule.h"
#include "core/place/refine.h"
#include "tests/unit/place/cost_fixture.h"
#include "tests/unit/place/exact.h"
#include "tests/unit/place/random_problem.h"

namespace weir::place {
namespace {

Refined StartOn(const Problem& problem, int d, const std::vector<int64_t>& ranks) {
  Refined start;
  start.device_of = SingleDevicePlan(problem, d);
  start.simulation = Simulate(problem, start.device_of, ranks);
  return start;
}

TEST(RefineTest, F293_NeverWorseThanTheStartAndOftenBetter) {
  int better = 0;
  for (uint32_t seed = 0; seed < 20; ++seed) {
    const Problem problem = Random(seed, 60, 3, 100, true);
    const std::vector<int64_t> ranks = UpwardRanks(problem);
    const int64_t before = StartOn(problem, 0, ranks).simulation.makespan_ns;
    const Refined refined = Refine(problem, ranks, StartOn(problem, 0, ranks), {.iterations = 500});
    EXPECT_EQ(refined.simulation.makespan_ns, Simulate(problem, refined.device_of, ranks).makespan_ns);
    EXPECT_LE(refined.simulation.makespan_ns, before) << "seed " << seed;
    better += refined.simulation.makespan_ns < before ? 1 : 0;
    EXPECT_EQ(Refine(problem, ranks, StartOn(problem, 0, ranks), {.iterations = 500}).device_of, refined.device_of);
    EXPECT_EQ(Refine(problem, ranks, StartOn(problem, 0, ranks), {.iterations = 0}).simulation.makespan_ns, before);
  }
  EXPECT_EQ(better, 20);
}

TEST(RefineTest, F293_FewAssignmentsAreAllTried) {
  for (uint32_t seed = 0; seed < 10; ++seed) {
    const Problem problem = Random(seed, 6, 2, 60, true);
    const std::vector<int64_t> ranks = UpwardRanks(problem);
    int64_t least = kImpossible;
    std::vector<int> device_of(6, 0);
    for (int code = 0; code < 729; ++code) {
      for (int t = 0, rest = code; t < 6; ++t, rest /= 3) device_of[static_cast<size_t>(t)] = rest % 3;
      least = std::min(least, Simulate(problem, device_of, ranks).makespan_ns);
    }
    EXPECT_EQ(Refine(problem, ranks, StartOn(problem, 0, ranks), {.iterations = 2000}).simulation.makespan_ns, least)
        << "seed " << seed;
  }
}

TEST(RefineTest, F293_MeanOf200SmallGraphsIsNearTheOptimum) {
  double sum = 0;
  constexpr int kGraphs = 200;
  for (uint32_t seed = 0; seed < kGraphs; ++seed) {
    const Problem problem = Random(seed, 7, 2, 60, false);
    const Choice choice = ChoosePlan(problem, Algorithm::kCostSim, {});
    const auto optimum = static_cast<double>(OptimumNs(problem));
    EXPECT_GE(optimum, static_cast<double>(choice.bound_ns)) << "seed " << seed << ": the bound is none";
    sum += static_cast<double>(choice.plan.simulation.makespan_ns) / optimum;
  }
  EXPECT_LE(sum / kGraphs, 1.02);
}

TEST(RefineTest, F293_CoarseningKeepsFewGroupsAloneAndJoinsChainsOfMany) {
  const Problem problem = Random(3, 300, 2, 100, true);
  std::vector<int> alone(300);
  std::iota(alone.begin(), alone.end(), 0);
  EXPECT_EQ(Clusters(problem, 300), alone);
  const std::vector<int> coarse = Clusters(problem, 100);
  const int clusters = 1 + *std::max_element(coarse.begin(), coarse.end());
  EXPECT_LE(clusters, 100);
  EXPECT_GT(clusters, 4);
}

TEST(BoundTest, F293_TheLoadOfAllDevicesIsABound) {
  const std::vector<DeviceCost> devices = {{.space = 0}, {.space = 1, .device_class = 1}};
  Problem problem(devices, 2, std::vector<LinkCost>(4, {.ns_per_byte = 1}));
  const int64_t times[] = {30, 10};
  for (int t = 0; t < 40; ++t) problem.AddTask(times, t);  // independent: at best 10 on the slow device, 30 on the fast
  problem.Seal();
  EXPECT_EQ(PathBoundNs(problem), 10);
  EXPECT_LE(LowerBoundNs(problem), 300);
  EXPECT_GE(LowerBoundNs(problem), 290);
  const Choice choice = ChoosePlan(problem, Algorithm::kCostSim, {});
  EXPECT_EQ(choice.plan.simulation.makespan_ns, 300);
}

TEST(ListScheduleTest, OptimisticCostsOfTheHandMadeChain) {
  const std::vector<DeviceCost> devices = {{.space = 0}, {.space = 1, .device_class = 1}};
  Problem problem(devices, 2, std::vector<LinkCost>(4, {.ns_per_byte = 1}));
  const int64_t first[] = {10, 10}, second[] = {50, 5};
  problem.AddTask(first, 0);
  const int value = problem.AddValue({.task = 0, .bytes = 20});
  problem.AddTask(second, 1);
  problem.AddUse({value});
  problem.Seal();
  // From device 0 over the link to device 1: 20 + 5; from device 1: 5.
  const TaskTable costs = OptimisticCosts(problem);
  EXPECT_EQ(costs.elements(), (std::vector<int64_t>{25, 5, 0, 0}));
}

/// A model with a variable, its reader and its update.
std::vector<testing::NodeLine> Model(int64_t size) {
  const op::AttrList variable = {{"dtype", DType::kFloat}, {"shape", PartialShape::Of({size, size})}};
  return {kX,
          {"v", "VariableV2", {}, variable},
          {"init", "Assign", {"v", "x"}, kFloat},
          {"read", "Identity", {"v"}, kFloat},
          {"m", "MatMul", {"read", "x"}, kFloat},
          {"n", "MatMul", {"m", "read"}, kFloat},
          {"up", "Assign", {"v", "n"}, kFloat}};
}

TEST_F(CostTest, F292_VariablesAndTheirUpdatesGoWithTheirReadersByCost) {
  const auto big = Explained(Model(1024), {"up"}, 1024);
  ASSERT_TRUE(big.ok()) << big.status().ToString();
  for (const char* node : {"v", "read", "m", "n", "up"}) EXPECT_EQ(DeviceOf(*big, node), "GPU:0") << ToText(*big);
  const auto small = Explained(Model(4), {"up"}, 4);
  ASSERT_TRUE(small.ok()) << small.status().ToString();
  for (const char* node : {"v", "read", "m", "n", "up"}) EXPECT_EQ(DeviceOf(*small, node), "CPU:0") << ToText(*small);
}

TEST_F(CostTest, F292_AnIdleSlowDeviceChangesNothing) {
  // A launch there takes 5.5 hours, so state that went by device type would make a step of hours out of microseconds.
  slots[1].declared = slots[2].declared = {.flops_per_ns = 10'000, .launch_ns = 2e13};
  for (const Algorithm algorithm : {Algorithm::kCostSim, Algorithm::kSingle}) {
    PlaceOptions options;
    options.algorithm = algorithm;
    const auto placed = Explained(Model(1024), {"up"}, 1024, options);
    ASSERT_TRUE(placed.ok()) << placed.status().ToString();
    for (const NodeReport& node : placed->nodes) EXPECT_NE(node.device.find("CPU:0"), std::string::npos) << node.name;
    EXPECT_LE(static_cast<double>(placed->makespan_ns), 1.03 * static_cast<double>(placed->best_single_ns));
    EXPECT_LT(placed->makespan_ns, 1'000'000'000);
  }
}

TEST_F(CostTest, F292_NoPlanIsPredictedSlowerThanTheBestSingleDevice) {
  for (const double launch : {1e-9, 1.0, 1e3, 1e6, 1e9}) {
    for (const double flops : {1e-9, 1.0, 1e4, 1e9}) {
      for (const double link : {1e-9, 1.0, 1e9}) {
        slots[1].declared = {.flops_per_ns = flops, .launch_ns = launch, .link_bytes_per_ns = link};
        slots[2].declared = {.flops_per_ns = 10 * flops, .launch_ns = launch, .link_bytes_per_ns = link};
        const auto placed = Explained(Model(64), {"up"}, 64);
        ASSERT_TRUE(placed.ok()) << placed.status().ToString();
        EXPECT_LE(placed->makespan_ns, placed->best_single_ns) << launch << " " << flops << " " << link;
        EXPECT_GE(placed->makespan_ns, placed->bound_ns);
      }
    }
  }
}

TEST_F(CostTest, F293_TheSummaryPrintsTheGapToTheBound) {
  const auto placed = Explained(Model(1024), {"up"}, 1024);
  ASSERT_TRUE(placed.ok()) << placed.status().ToString();
  EXPECT_GT(placed->bound_ns, 0);
  EXPECT_NE(placed->summary.find(", bound "), std::string::npos) << placed->summary;
  EXPECT_TRUE(placed->summary.find(", gap at most ") != std::string::npos ||
              placed->summary.find(", optimal)") != std::string::npos)
      << placed->summary;
}

TEST_F(CostTest, F306_APlanFromOutsideCompetesOrDecides) {
  const std::vector<testing::NodeLine> nodes = {
      kX, {"m", "MatMul", {"x", "x"}, kFloat}, {"n", "MatMul", {"m", "m"}, kFloat}};
  PlaceOptions worse;
  worse.candidate = {{"m", "/device:GPU:1"}, {"n", "/device:GPU:0"}};
  const auto competes = Explained(nodes, {"n"}, 1024, worse);
  ASSERT_TRUE(competes.ok()) << competes.status().ToString();
  const auto file = std::find_if(competes->tried.begin(), competes->tried.end(),
                                 [](const Tried& tried) { return tried.name == "file"; });
  ASSERT_NE(file, competes->tried.end());
  EXPECT_GT(file->makespan_ns, competes->makespan_ns) << "it crosses between devices";
  EXPECT_EQ(DeviceOf(*competes, "m"), DeviceOf(*competes, "n"));
  PlaceOptions decides;
  decides.plan = worse.candidate;
  const auto decided = Explained(nodes, {"n"}, 1024, decides);
  ASSERT_TRUE(decided.ok()) << decided.status().ToString();
  EXPECT_EQ(DeviceOf(*decided, "m") + " " + DeviceOf(*decided, "n"), "GPU:1 GPU:0");
  worse.candidate["m"] = "/device:GPU:one";
  EXPECT_EQ(Explained(nodes, {"n"}, 1024, worse).status().code(), Code::kInvalidArgument);
}

TEST_F(CostTest, F306_AnAliasIsTheFirstDeviceThatCanRunTheNode) {
  PlaceOptions options;
  options.aliases["FAST"] = {"/device:NPU:0", "/device:GPU:1", "/device:CPU:0"};
  options.allow_soft_placement = false;
  const auto placed = Explained(
      {kX, {"m", "MatMul", {"x", "x"}, kFloat, "/device:FAST:0"}, {"l", "Log", {"m"}, kFloat, "/device:fast:0"}}, {"l"},
      4, options);
  ASSERT_TRUE(placed.ok()) << placed.status().ToString();
  EXPECT_EQ(DeviceOf(*placed, "m"), "GPU:1") << "there is no NPU";
  EXPECT_EQ(DeviceOf(*placed, "l"), "CPU:0") << "the GPU has no Log";
  options.aliases["FAST"] = {"/device:NPU:0"};
  const auto refused = Explained({kX, {"m", "MatMul", {"x", "x"}, kFloat, "/device:FAST:0"}}, {"m"}, 4, options);
  EXPECT_NE(refused.status().message().find("was explicitly assigned to /device:NPU:0"), std::string::npos)
      << refused.status().ToString();
}

TEST_F(CostTest, APlanHasNoMoreDevicesThanAllowed) {
  const std::vector<testing::NodeLine> nodes = {
      kX, {"a", "MatMul", {"x", "x"}, kFloat}, {"b0", "Neg", {"x"}, kFloat}, {"b", "MatMul", {"b0", "b0"}, kFloat}};
  slots[1].declared.flops_per_ns = slots[2].declared.flops_per_ns = 1000;
  PlaceOptions options;
  const auto all = Explained(nodes, {"a", "b"}, 1024, options);
  ASSERT_TRUE(all.ok());
  EXPECT_NE(DeviceOf(*all, "a"), DeviceOf(*all, "b")) << ToText(*all);
  options.max_devices = 1;
  const auto one = Explained(nodes, {"a", "b"}, 1024, options);
  ASSERT_TRUE(one.ok());
  EXPECT_EQ(DeviceOf(*one, "a"), DeviceOf(*one, "b")) << ToText(*one);
  EXPECT_EQ(DeviceOf(*one, "b0"), DeviceOf(*one, "b")) << ToText(*one);
}

TEST_F(CostTest, F298_MeasuredTimesReplaceDeclaredOnes) {
  const std::vector<testing::NodeLine> nodes = {kX, {"m", "MatMul", {"x", "x"}, kFloat}};
  const auto declared = Explained(nodes, {"m"}, 1024);
  ASSERT_TRUE(declared.ok());
  ASSERT_EQ(DeviceOf(*declared, "m"), "GPU:0") << ToText(*declared);
  auto measured = std::make_shared<kernel::MeasuredCosts>();
  const op::AttrList attrs = {{"T", DType::kFloat}};
  const kernel::OperandSpec matrix{.dtype = DType::kFloat, .shape = Shape::Of({1024, 1024})};
  const kernel::OperandSpec operands[] = {matrix, matrix};
  const std::string key = kernel::MeasuredKey(op::AttrView(*ops()->Find("MatMul"), attrs), operands);
  EXPECT_TRUE(key.starts_with("MatMul float[1024,1024] float[1024,1024] transpose_a=false")) << key;
  const std::string gpu = kernel::FingerprintOf(devices_.all()[1]->info());
  PlaceOptions options;
  options.measured = measured;
  for (int k = 0; k < 3; ++k) measured->Add(gpu, key, 9e9, 214748);
  const auto slow = Explained(nodes, {"m"}, 1024, options);
  ASSERT_TRUE(slow.ok());
  const NodeReport& node = Node(*slow, "m");
  EXPECT_EQ(DeviceOf(*slow, "m"), "CPU:0") << ToText(*slow) << "\nkeys have " << key;
  EXPECT_EQ(node.candidates[1].provenance, Provenance::kMeasured);
  EXPECT_EQ(node.candidates[1].samples, 3);
  EXPECT_EQ(node.candidates[1].exec_ns, 9'000'000'000);
  EXPECT_NE(ToText(*slow).find("measured(n=3)"), std::string::npos) << ToText(*slow);
  // Another shape of the op is scaled by the same factor.
  const auto other = Explained(nodes, {"m"}, 512, options);
  ASSERT_TRUE(other.ok());
  EXPECT_EQ(Node(*other, "m").candidates[1].provenance, Provenance::kCalibrated);
  EXPECT_GT(Node(*other, "m").candidates[1].exec_ns, 1'000'000'000);
}

TEST_F(CostTest, F298_LargerOperandsThanTheRecordedOnesAreWarnedOf) {
  const std::vector<testing::NodeLine> nodes = {kX, {"m", "MatMul", {"x", "x"}, kFloat}, {"l", "Log", {"m"}, kFloat}};
  const op::AttrList attrs = {{"T", DType::kFloat}};
  const kernel::OperandSpec matrix{.dtype = DType::kFloat, .shape = Shape::Of({1024, 1024})};
  const kernel::OperandSpec operands[] = {matrix, matrix};
  const std::string key = kernel::MeasuredKey(op::AttrView(*ops()->Find("MatMul"), attrs), operands);
  auto measured = std::make_shared<kernel::MeasuredCosts>();
  for (int k = 0; k < 3; ++k) measured->Add(kernel::FingerprintOf(devices_.all()[1]->info()), key, 1000, 214748);
  PlaceOptions options;
  options.measured = measured;
  for (const int64_t rows : {512, 1024}) {
    const auto within = Explained(nodes, {"l"}, rows, options);
    ASSERT_TRUE(within.ok()) << within.status().ToString();
    EXPECT_EQ(within->warnings, std::vector<std::string>()) << rows;
  }
  const auto larger = Explained(nodes, {"l"}, 2048, options);
  ASSERT_TRUE(larger.ok()) << larger.status().ToString();
  ASSERT_EQ(DeviceOf(*larger, "m"), "GPU:0") << ToText(*larger);
  ASSERT_EQ(larger->warnings.size(), 1u) << ToText(*larger);
  EXPECT_TRUE(
      larger->warnings[0].starts_with("1 node has larger operands than the recorded runs had [MatMul 1]: 'm' is "
                                      "MatMul float[2048,2048] float[2048,2048] "))
      << larger->warnings[0];
  EXPECT_NE(larger->warnings[0].find("measured up to " + key), std::string::npos) << larger->warnings[0];
  options.warn_of_outgrown = false;
  EXPECT_EQ(Explained(nodes, {"l"}, 2048, options)->warnings, std::vector<std::string>());
}

/// A loop over MatMul, Neg and, with `odd`, one Log, which only the CPU has.
std::vector<testing::NodeLine> Loop(bool odd) {
  const op::AttrList enter = {{"T", DType::kFloat}, {"frame_name", std::string("while/ctx")}};
  const op::AttrList two = {{"T", DType::kFloat}, {"N", int64_t{2}}};
  std::vector<testing::NodeLine> nodes = {
      kX,
      testing::Const("go", Tensor::Scalar(true)),
      {"enter", "Enter", {"x"}, enter},
      {"go_in",
       "Enter",
       {"go"},
       {{"T", DType::kBool}, {"frame_name", std::string("while/ctx")}, {"is_constant", true}}},
      {"merge", "Merge", {"enter", "next"}, two},
      {"cond", "LoopCond", {"go_in"}, {}},
      {"switch", "Switch", {"merge", "cond"}, kFloat}};
  std::string last = "switch:1";
  for (int k = 0; k < 6; ++k) {
    nodes.push_back({"m" + std::to_string(k), "MatMul", {last, last}, kFloat});
    last = "m" + std::to_string(k);
  }
  if (odd) {
    nodes.push_back({"odd", "Log", {last}, kFloat});
    last = "odd";
  }
  nodes.push_back({"next", "NextIteration", {last}, kFloat});
  nodes.push_back({"exit", "Exit", {"switch"}, kFloat});
  return nodes;
}

TEST_F(CostTest, F100_ALoopIsSplitWhereOneOpLacksAKernel) {
  const auto whole = Explained(Loop(false), {"exit"}, 1024);
  ASSERT_TRUE(whole.ok()) << whole.status().ToString();
  for (int k = 0; k < 6; ++k) EXPECT_EQ(DeviceOf(*whole, "m" + std::to_string(k)), "GPU:0") << ToText(*whole);
  EXPECT_TRUE(whole->warnings.empty());
  const auto split = Explained(Loop(true), {"exit"}, 1024);
  ASSERT_TRUE(split.ok()) << split.status().ToString();
  for (int k = 0; k < 6; ++k) EXPECT_EQ(DeviceOf(*split, "m" + std::to_string(k)), "GPU:0") << ToText(*split);
  EXPECT_EQ(DeviceOf(*split, "odd"), "CPU:0");
  ASSERT_EQ(split->warnings.size(), 1u);
  EXPECT_EQ(split->warnings[0],
            "the loop 'while/ctx' runs on GPU:0, but its Log 'odd' on CPU:0: there is no kernel for it on GPU:0");
  // Two transfers in each of the assumed ten iterations, the fed x and the result.
  EXPECT_GE(split->transfers, 20);
  const auto small = Explained(Loop(true), {"exit"}, 4);
  ASSERT_TRUE(small.ok()) << small.status().ToString();
  EXPECT_EQ(DeviceOf(*small, "m0") + " " + DeviceOf(*small, "odd"), "CPU:0 CPU:0") << ToText(*small);
  EXPECT_TRUE(small->warnings.empty()) << "nothing to tell: the loop is where its op is";
}

}  // namespace
}  // namespace weir::place
