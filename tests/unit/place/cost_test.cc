// Placement of graphs by declared costs, on devices with made-up plugins.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/config/pins.h"
#include "tests/unit/place/cost_fixture.h"

namespace weir::place {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

const std::vector<testing::NodeLine> kChain = {
    kX, {"m", "MatMul", {"x", "x"}, kFloat}, {"n", "MatMul", {"m", "m"}, kFloat}, {"o", "Neg", {"n"}, kFloat}};

TEST_F(CostTest, F292_BigWorkGoesToTheFastDeviceSmallWorkStays) {
  const auto big = Explained(kChain, {"o"}, 1024);
  ASSERT_TRUE(big.ok()) << big.status().ToString();
  for (const char* node : {"m", "n", "o"}) EXPECT_EQ(DeviceOf(*big, node), "GPU:0") << ToText(*big);
  const auto small = Explained(kChain, {"o"}, 4);
  ASSERT_TRUE(small.ok()) << small.status().ToString();
  for (const char* node : {"m", "n", "o"}) EXPECT_EQ(DeviceOf(*small, node), "CPU:0") << ToText(*small);
}

TEST_F(CostTest, F100_AnOpWithoutKernelThereIsNeverPutOnADevice) {
  slots[1].declared = slots[2].declared = {.flops_per_ns = 1e8, .launch_ns = 0, .link_bytes_per_ns = 1e8};
  for (const Algorithm algorithm : {Algorithm::kCostSim, Algorithm::kWhitePaper, Algorithm::kTf, Algorithm::kSingle}) {
    PlaceOptions options;
    options.algorithm = algorithm;
    const auto placed =
        Explained({kX, {"m", "MatMul", {"x", "x"}, kFloat}, {"l", "Log", {"m"}, kFloat}}, {"l"}, 512, options);
    ASSERT_TRUE(placed.ok()) << placed.status().ToString();
    EXPECT_EQ(DeviceOf(*placed, "m"), "GPU:0") << ToText(*placed);
    EXPECT_EQ(DeviceOf(*placed, "l"), "CPU:0") << ToText(*placed);
    for (const CandidateReport& gpu : {Node(*placed, "l").candidates[1], Node(*placed, "l").candidates[2]}) {
      EXPECT_FALSE(gpu.possible);
      EXPECT_EQ(gpu.exec_ns, -1);
    }
  }
}

TEST_F(CostTest, ANodeThatEveryKernelRefusesCostsItsDeclaredWork) {
  Register("Sqrt", "gpu").supports = [](const weir_prep_args*, weir_error*) -> int32_t { return WEIR_UNIMPLEMENTED; };
  const auto placed = Explained({kX, {"s", "Sqrt", {"x"}, kFloat}}, {"s"}, 4);
  ASSERT_TRUE(placed.ok()) << placed.status().ToString();
  const CandidateReport& gpu = Node(*placed, "s").candidates[1];
  EXPECT_TRUE(gpu.chosen) << ToText(*placed);
  EXPECT_EQ(gpu.provenance, Provenance::kAnalytic);
  EXPECT_GE(gpu.exec_ns, 5000) << "the launch";
  EXPECT_EQ(placed->summary.find("guessed"), std::string::npos) << placed->summary;
}

TEST_F(CostTest, F101_InferredSizesOfInputsAndOutputsAreShownAndCounted) {
  const auto placed = Explained({kX, {"m", "MatMul", {"x", "x"}, kFloat}, {"l", "Log", {"m"}, kFloat}}, {"l"}, 1024);
  ASSERT_TRUE(placed.ok()) << placed.status().ToString();
  EXPECT_EQ(Node(*placed, "m").operands, "float [1024,1024] x float [1024,1024] -> float [1024,1024]");
  EXPECT_EQ(Node(*placed, "l").operands, "float [1024,1024] -> float [1024,1024]");
  ASSERT_EQ(DeviceOf(*placed, "m"), "GPU:0") << ToText(*placed);
  EXPECT_EQ(placed->transferred_bytes, 2 * 4 * 1024 * 1024);  // x there, m back
  EXPECT_NE(ToText(*placed).find("\nm  MatMul float [1024,1024] x float [1024,1024] -> float [1024,1024]  group"),
            std::string::npos)
      << ToText(*placed);
}

TEST_F(CostTest, F102_AMatMulMovesToTheGpuAboveACrossoverSize) {
  // On the CPU 2048 * n * n flops at 10 a nanosecond; on the GPU 5 us and two transfers of 1 us + n * n * 4 / 10 ns.
  int64_t crossover = 0;
  for (const int64_t size : {1, 2, 4, 5, 6, 8, 16, 64, 256, 1024}) {
    const auto placed = Explained({kX, {"m", "MatMul", {"x", "x"}, kFloat}}, {"m"}, size);
    ASSERT_TRUE(placed.ok()) << placed.status().ToString();
    const bool on_gpu = DeviceOf(*placed, "m") == "GPU:0";
    EXPECT_TRUE(on_gpu || DeviceOf(*placed, "m") == "CPU:0") << ToText(*placed);
    EXPECT_TRUE(on_gpu || crossover == 0) << "back on the CPU at " << size;
    if (on_gpu && crossover == 0) crossover = size;
    const CandidateReport& cpu = Node(*placed, "m").candidates[0];
    EXPECT_EQ(cpu.exec_ns, std::llround(3 + 204.8 * static_cast<double>(size * size)));
  }
  EXPECT_GT(crossover, 4);
  EXPECT_LE(crossover, 8);
}

TEST_F(CostTest, F103_ASlowLinkKeepsTheGraphOnOneDevice) {
  const std::vector<testing::NodeLine> nodes = {
      kX, {"l", "Log", {"x"}, kFloat}, {"m", "MatMul", {"l", "l"}, kFloat}, {"o", "Neg", {"m"}, kFloat}};
  const auto fast = Explained(nodes, {"o"}, 1024);
  ASSERT_TRUE(fast.ok()) << fast.status().ToString();
  EXPECT_EQ(DeviceOf(*fast, "m"), "GPU:0") << ToText(*fast);
  EXPECT_GT(fast->transfers, 0);
  for (Slot& slot : slots) slot.declared.link_bytes_per_ns = 1e-3;
  const auto slow = Explained(nodes, {"o"}, 1024);
  ASSERT_TRUE(slow.ok()) << slow.status().ToString();
  for (const char* node : {"l", "m", "o"}) EXPECT_EQ(DeviceOf(*slow, node), "CPU:0") << ToText(*slow);
  EXPECT_EQ(slow->transfers, 0);
  EXPECT_NE(Node(*slow, "m").candidates[1].verdict.find("input l lives on CPU:0"), std::string::npos) << ToText(*slow);
  for (Slot& slot : slots) slot.declared.link_bytes_per_ns = 10;
  PlaceOptions options;  // the configured link counts as well
  options.links["CPU:0->GPU:0"] = options.links["CPU:0->GPU:1"] = {.latency_ns = 0, .bytes_per_ns = 1e-3};
  const auto configured = Explained(nodes, {"o"}, 1024, options);
  ASSERT_TRUE(configured.ok()) << configured.status().ToString();
  EXPECT_EQ(DeviceOf(*configured, "m"), "CPU:0") << ToText(*configured);
}

TEST_F(CostTest, F103_TheWayOfAFetchToTheHostCounts) {
  const auto fast = Explained({kX, {"m", "MatMul", {"x", "x"}, kFloat}}, {"m"}, 1024);
  ASSERT_TRUE(fast.ok()) << fast.status().ToString();
  EXPECT_EQ(DeviceOf(*fast, "m"), "GPU:0") << ToText(*fast);
  EXPECT_EQ(fast->transfers, 2);
  EXPECT_EQ(fast->makespan_ns, 5000 + 214748 + 2 * (1000 + 4 * 1024 * 1024 / 10));
  PlaceOptions options;
  options.links["GPU:0->CPU:0"] = options.links["GPU:1->CPU:0"] = {.latency_ns = 0, .bytes_per_ns = 1e-3};
  for (const Algorithm algorithm : {Algorithm::kCostSim, Algorithm::kWhitePaper, Algorithm::kSingle}) {
    options.algorithm = algorithm;
    const auto slow = Explained({kX, {"m", "MatMul", {"x", "x"}, kFloat}}, {"m"}, 1024, options);
    ASSERT_TRUE(slow.ok()) << slow.status().ToString();
    EXPECT_EQ(DeviceOf(*slow, "m"), "CPU:0") << ToText(*slow);
    EXPECT_TRUE(Node(*slow, "m").candidates[1].verdict.ends_with(": its fetched value takes 4.194 s to the host"))
        << ToText(*slow);
  }
}

TEST_F(CostTest, F317_WhatADeviceReceivesIsPartOfTheEstimate) {
  const auto placed = Explained({kX,
                                 {"a", "Neg", {"x"}, kFloat, "/cpu:0"},
                                 {"b", "Exp", {"x"}, kFloat, "/cpu:0"},
                                 {"c", "MatMul", {"a", "b"}, kFloat, "/device:GPU:0"},
                                 {"d", "Neg", {"c"}, kFloat, "/device:GPU:1"}},
                                {"d"}, 1024);
  ASSERT_TRUE(placed.ok()) << placed.status().ToString();
  constexpr int64_t kMatrix = 4 * 1024 * 1024;
  EXPECT_TRUE(placed->warnings.empty());
  ASSERT_EQ(placed->memory.size(), 3u);
  EXPECT_EQ(placed->memory[1].value_bytes, 3 * kMatrix);  // a and b received, c
  EXPECT_EQ(placed->memory[2].value_bytes, 2 * kMatrix);  // c received, d
  const auto huge = Explained({kX, {"a", "Neg", {"x"}, kFloat, "/device:GPU:0"}}, {"a"}, 1 << 14);
  ASSERT_TRUE(huge.ok()) << huge.status().ToString();
  EXPECT_EQ(huge->warnings, std::vector<std::string>{"no plan fits the memory of the devices: GPU:0 would hold 2.15 GB "
                                                     "of 1.07 GB"});
}

TEST_F(CostTest, FiguresOfOneDeviceOfAClassAreItsOwn) {
  AddDevice("GPU:2", "gpu", '3', 0, {.bandwidth_bytes_per_ns = 0.001});
  AddDevice("GPU:3", "gpu", '2', 0, {.launch_ns = 7e6});
  AddDevice("CPU:1", "cpu", '0', WEIR_DEVICE_UNIFIED_MEMORY, {.peak_flops_per_ns = {{1, 0.5}}});
  slots[3].declared = slots[2].declared;
  const auto placed = Explained({kX, {"n", "Neg", {"x"}, kFloat}}, {"n"}, 100);
  ASSERT_TRUE(placed.ok()) << placed.status().ToString();
  std::vector<int64_t> times;
  for (const CandidateReport& candidate : Node(*placed, "n").candidates) times.push_back(candidate.exec_ns);
  EXPECT_EQ(times,
            (std::vector<int64_t>{3 + 1000, 5000 + 80, 5000 + 80, 5000 + 80'000'000, 7'000'000 + 80, 3 + 20'000}));
}

TEST_F(CostTest, IndependentWorkSpreadsAndEqualDevicesShareIt) {
  const testing::NodeLine a0 = {"a0", "MatMul", {"x", "x"}, kFloat}, b0 = {"b0", "Neg", {"x"}, kFloat};
  const testing::NodeLine a1 = {"a1", "MatMul", {"a0", "a0"}, kFloat}, b1 = {"b1", "MatMul", {"b0", "b0"}, kFloat};
  slots[1].declared.flops_per_ns = slots[2].declared.flops_per_ns = 1000;
  const auto both = Explained({kX, a0, b0, a1, b1}, {"a1", "b1"}, 1024);
  ASSERT_TRUE(both.ok()) << both.status().ToString();
  EXPECT_NE(DeviceOf(*both, "a1"), DeviceOf(*both, "b1")) << ToText(*both);
  EXPECT_LE(both->makespan_ns, both->tried.front().makespan_ns);
}

TEST_F(CostTest, F106_TheTfAlgorithmTakesTheGpuWhereThereIsAKernel) {
  PlaceOptions options;
  options.algorithm = Algorithm::kTf;
  const auto placed = Explained({kX, {"a", "Neg", {"x"}, kFloat}, {"b", "Log", {"a"}, kFloat}}, {"b"}, 2, options);
  ASSERT_TRUE(placed.ok()) << placed.status().ToString();
  EXPECT_EQ(DeviceOf(*placed, "a") + " " + DeviceOf(*placed, "b"), "GPU:0 CPU:0");
  EXPECT_EQ(Node(*placed, "b").reason, Reason::kNoKernel);
}

TEST_F(CostTest, F106_WithoutAGpuTheTfAlgorithmTakesTheCpu) {
  devices_ = device::DeviceSet();
  AddDevice("CPU:0", "cpu", '0', WEIR_DEVICE_UNIFIED_MEMORY);
  PlaceOptions options;
  options.algorithm = Algorithm::kTf;
  const auto placed = Explained(kChain, {"o"}, 1024, options);
  ASSERT_TRUE(placed.ok()) << placed.status().ToString();
  for (const char* node : {"m", "n", "o"}) EXPECT_EQ(DeviceOf(*placed, node), "CPU:0") << ToText(*placed);
}

TEST_F(CostTest, F297_MemoryIsAReason) {
  // x and m take 576 MB each: together more than the 1 GiB of a GPU, to which x must be copied.
  const auto placed = Explained({kX, {"m", "MatMul", {"x", "x"}, kFloat}}, {"m"}, 12000);
  ASSERT_TRUE(placed.ok()) << placed.status().ToString();
  EXPECT_EQ(DeviceOf(*placed, "m"), "CPU:0") << ToText(*placed);
  EXPECT_EQ(Node(*placed, "m").reason, Reason::kMemory) << ToText(*placed);
  EXPECT_NE(ToText(*placed).find(Name(Reason::kMemory)), std::string::npos) << ToText(*placed);
}

TEST_F(CostTest, EveryAlgorithmGivesAPlan) {
  for (const Algorithm algorithm : {Algorithm::kCostSim, Algorithm::kWhitePaper, Algorithm::kTf, Algorithm::kSingle}) {
    PlaceOptions options;
    options.algorithm = algorithm;
    const auto placed = Explained(kChain, {"o"}, 1024, options);
    ASSERT_TRUE(placed.ok()) << placed.status().ToString();
    EXPECT_EQ(placed->nodes.size(), 3u);
  }
}

TEST_F(CostTest, F297_EachNodeSaysWhyItIsWhereItIs) {
  const auto placed = Explained({kX,
                                 {"m", "MatMul", {"x", "x"}, kFloat},
                                 {"l", "Log", {"m"}, kFloat},
                                 {"asked", "Neg", {"x"}, kFloat, "/device:GPU:1"},
                                 {"moved", "Neg", {"x"}, kFloat, "/device:GPU:7"}},
                                {"l", "asked", "moved"}, 1024);
  ASSERT_TRUE(placed.ok()) << placed.status().ToString();
  EXPECT_EQ(Node(*placed, "m").reason, Reason::kCost);
  EXPECT_EQ(Node(*placed, "l").reason, Reason::kNoKernel);
  EXPECT_EQ(Node(*placed, "asked").reason, Reason::kRequested);
  EXPECT_EQ(Node(*placed, "moved").reason, Reason::kSoft);
  EXPECT_EQ(Node(*placed, "moved").note, "requested '/device:GPU:7' -> soft: no such device; id dropped");
  EXPECT_EQ(DeviceOf(*placed, "moved").substr(0, 3), "GPU");  // the device type is kept if possible
  const NodeReport& log = Node(*placed, "l");
  ASSERT_EQ(log.candidates.size(), 3u);
  EXPECT_TRUE(log.candidates[0].chosen);
  EXPECT_EQ(log.candidates[1].verdict, "no kernel for T=DT_FLOAT");
  const NodeReport& matmul = Node(*placed, "m");
  EXPECT_EQ(matmul.candidates[0].provenance, Provenance::kAnalytic);
  EXPECT_EQ(matmul.candidates[0].kernel, "test_cpu");
  EXPECT_EQ(matmul.candidates[0].exec_ns, 214'748'368);
}

TEST_F(CostTest, F294_TheSummaryNamesDevicesReasonsAndPrediction) {
  const auto placed = Explained(
      {kX, {"m", "MatMul", {"x", "x"}, kFloat}, {"n", "MatMul", {"m", "m"}, kFloat}, {"l", "Log", {"n"}, kFloat}},
      {"l"}, 1024);
  ASSERT_TRUE(placed.ok()) << placed.status().ToString();
  EXPECT_TRUE(
      placed->summary.starts_with("placed 3 nodes: GPU:0 2 (66.7 %), CPU:0 1 [Log 1, no kernel elsewhere]; "
                                  "2 transfers 8.39 MB; predicted "))
      << placed->summary;
  EXPECT_NE(placed->summary.find("best single device"), std::string::npos) << placed->summary;
  const auto fallen = Explained({kX,
                                 {"m", "MatMul", {"x", "x"}, kFloat},
                                 {"l", "Log", {"m"}, kFloat},
                                 {"k", "Log", {"l"}, kFloat},
                                 {"n", "Neg", {"k"}, kFloat, "/device:GPU:9"}},
                                {"n"}, 1024);
  ASSERT_TRUE(fallen.ok()) << fallen.status().ToString();
  EXPECT_NE(fallen->summary.find("CPU:0 2 (50.0 %) [Log 2, no kernel elsewhere]"), std::string::npos)
      << fallen->summary;
}

TEST_F(CostTest, F122_UnequalGpusGetUnequalWorkAndTheSlowestIsNamed) {
  std::vector<testing::NodeLine> towers = {kX};
  std::vector<std::string> fetches;
  for (int i = 0; i < 4; ++i) {  // differ, so that they are not computed once for all
    const std::string a = "a" + std::to_string(i), b = "b" + std::to_string(i);
    op::AttrList attrs = kFloat;
    attrs.push_back({"transpose_a", i % 2 == 1});
    attrs.push_back({"transpose_b", i / 2 == 1});
    towers.push_back({a, "MatMul", {"x", "x"}, attrs});
    towers.push_back({b, "MatMul", {a, a}, kFloat});
    fetches.push_back(b);
  }
  const auto on = [](const Explanation& placed, const char* device) {
    return std::count_if(placed.nodes.begin(), placed.nodes.end(), [&](const NodeReport& node) {
      return node.op == "MatMul" && DeviceOf(placed, node.name) == device;
    });
  };
  slots[1].declared.flops_per_ns /= 16;
  slots[2].declared.flops_per_ns /= 32;
  const auto unequal = Explained(towers, fetches, 4096);
  ASSERT_TRUE(unequal.ok()) << unequal.status().ToString();
  EXPECT_EQ(on(*unequal, "GPU:0"), 5) << ToText(*unequal);
  EXPECT_EQ(on(*unequal, "GPU:1"), 3) << ToText(*unequal);
  EXPECT_NE(unequal->summary.find("; the step waits for GPU:1, busy for 330 ms (GPU:0 275 ms)"), std::string::npos)
      << unequal->summary;
}

TEST_F(CostTest, NegativeAndNanCostsArePluginFaultsAndUnknown) {
  slots[1].declared.flops_per_ns = -5;
  slots[1].declared.link_bytes_per_ns = -1;
  weir_kernel& bad = Register("Sigmoid", "gpu");
  bad.estimate = [](const weir_prep_args*, const weir_profile*, weir_cost* cost, weir_error*) -> int32_t {
    cost->whole_ns = -1;
    return WEIR_OK;
  };
  weir_kernel& nan = Register("Tanh", "gpu");
  nan.estimate = [](const weir_prep_args*, const weir_profile*, weir_cost* cost, weir_error*) -> int32_t {
    cost->whole_ns = cost->flops = cost->bytes = cost->fixed_ns = kNaN;
    return WEIR_OK;
  };
  const auto placed = Explained(
      {kX, {"s", "Sigmoid", {"x"}, kFloat}, {"t", "Tanh", {"s"}, kFloat}, {"m", "MatMul", {"t", "t"}, kFloat}}, {"m"},
      8);
  ASSERT_TRUE(placed.ok()) << placed.status().ToString();
  std::string warnings;
  for (const std::string& warning : placed->warnings) warnings += warning + "\n";
  for (const char* what :
       {"plugin fault: /job:localhost/replica:0/task:0/device:GPU:0 (test_gpu): its cost profile: "
        "peak_flops_per_ns[",
        "is -5, wanted 1e-06 to 1e+08", "([device.\"GPU:0\"] in the configuration replaces its figures)",
        "link of cost/1: bandwidth", "is -1, wanted", "([link.\"GPU:0->CPU:0\"]",
        "estimate of kernel Sigmoid (test.so): -1 is no cost", "estimate of kernel Tanh (test.so): nothing but NaN",
        "it counts as unknown"}) {
    EXPECT_NE(warnings.find(what), std::string::npos) << what << "\n" << warnings;
  }
  for (const NodeReport& node : placed->nodes) {
    for (const CandidateReport& candidate : node.candidates) EXPECT_GE(candidate.exec_ns, -1);
  }
}

TEST_F(CostTest, UnknownDimensionsCountAsAssumedAndMarkAGuess) {
  PlaceOptions options;
  options.unknown_dim = 16;
  const auto placed = Explained({kX, {"n", "Neg", {"x"}, kFloat}}, {"n"}, -1, options);
  ASSERT_TRUE(placed.ok()) << placed.status().ToString();
  const CandidateReport& cpu = Node(*placed, "n").candidates[0];
  EXPECT_EQ(cpu.provenance, Provenance::kGuess);
  EXPECT_EQ(cpu.exec_ns, 3 + 26);  // 16 * 16 elements, 10 a nanosecond
  EXPECT_TRUE(placed->summary.ends_with("; 1 node has guessed cost")) << placed->summary;
}

TEST_F(CostTest, F299_PinsTakeTheLongestMatchAndReplaceTheGraphsRequest) {
  PlaceOptions options;
  options.pins = std::make_shared<config::Pins>(config::Pins::List{{"m", "/device:CPU:0"}, {"m.*1", "/device:GPU:1"}});
  const auto placed = Explained({kX,
                                 {"mat", "MatMul", {"x", "x"}, kFloat},
                                 {"mat1", "MatMul", {"mat", "x"}, kFloat, "/device:GPU:0"},
                                 {"other", "MatMul", {"mat1", "x"}, kFloat, "/device:GPU:0"}},
                                {"other"}, 1024, options);
  ASSERT_TRUE(placed.ok()) << placed.status().ToString();
  EXPECT_EQ(DeviceOf(*placed, "mat"), "CPU:0");
  EXPECT_EQ(DeviceOf(*placed, "mat1"), "GPU:1");
  EXPECT_EQ(DeviceOf(*placed, "other"), "GPU:0");
  options.pins = std::make_shared<config::Pins>(config::Pins::List{{"(", "/device:CPU:0"}});
  EXPECT_EQ(Explained(kChain, {"o"}, 4, options).status().code(), Code::kInvalidArgument);
}

TEST_F(CostTest, F299_ContradictoryPinsAreErrorsThatNameThem) {
  PlaceOptions options;
  options.pins = std::make_shared<config::Pins>(config::Pins::List{{"ma", "/device:CPU:0"}, {"at", "/device:GPU:1"}});
  const std::vector<testing::NodeLine> nodes = {kX, {"mat", "MatMul", {"x", "x"}, kFloat}};
  EXPECT_TRUE(Explained(nodes, {"mat"}, 4, options)
                  .status()
                  .message()
                  .starts_with("placement.pin: the patterns 'ma' and 'at' match equally much of 'mat' and ask for "
                               "different devices; remove one "
                               "of them, or make one match more of the name"));
  const op::AttrList with_a = {{"T", DType::kFloat}, {"_class", std::vector<std::string>{"loc:@a"}}};
  PlaceOptions hard;
  hard.allow_soft_placement = false;
  hard.pins = std::make_shared<config::Pins>(config::Pins::List{{"^a$", "/device:CPU:0"}, {"^b$", "/device:GPU:0"}});
  const auto apart = Explained({kX, {"a", "Neg", {"x"}, kFloat}, {"b", "Neg", {"a"}, with_a}}, {"b"}, 4, hard);
  const std::string text(apart.status().message());
  for (const char* part :
       {"Cannot merge devices with incompatible types", "\nweir: [placement.pin] \"^b$\" = \"/device:GPU:0\" pins 'b'",
        "\nweir: [placement.pin] \"^a$\" = \"/device:CPU:0\" pins 'a'"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
  hard.pins = std::make_shared<config::Pins>(config::Pins::List{{"^a$", "/device:NPU:0"}});
  const auto none = Explained({kX, {"a", "Neg", {"x"}, kFloat}}, {"a"}, 4, hard);
  EXPECT_NE(none.status().message().find("[placement.pin] \"^a$\" = \"/device:NPU:0\" pins 'a'"), std::string::npos)
      << none.status().ToString();
}

TEST_F(CostTest, APlanFromOutsideCountsWhereTheGraphAsksForNothing) {
  PlaceOptions options;
  options.plan = {{"m", "/device:GPU:1"}, {"o", "/device:GPU:1"}};
  const auto placed = Explained({kX, {"m", "MatMul", {"x", "x"}, kFloat}, {"o", "Neg", {"m"}, kFloat, "/device:CPU:0"}},
                                {"o"}, 4, options);
  ASSERT_TRUE(placed.ok()) << placed.status().ToString();
  EXPECT_EQ(DeviceOf(*placed, "m"), "GPU:1");
  EXPECT_EQ(DeviceOf(*placed, "o"), "CPU:0");
}

TEST_F(CostTest, F296_LostRequestsWarnAndStrictDevicesRefuses) {
  const std::vector<testing::NodeLine> nodes = {kX, {"l", "Log", {"x"}, kFloat, "/device:GPU:0"}};
  PlaceOptions options;
  options.absent_plugins = {"npu.so: libnpu.so.1 is missing"};
  const auto placed = Explained(nodes, {"l"}, 4, options);
  ASSERT_TRUE(placed.ok()) << placed.status().ToString();
  ASSERT_EQ(placed->warnings.size(), 1u);
  EXPECT_EQ(placed->warnings[0],
            "1 node asks for /device:GPU:0 and runs on CPU:0 [Log 1]; not loaded: npu.so: libnpu.so.1 is missing");
  options.strict_devices = true;
  const auto refused = Explained(nodes, {"l"}, 4, options);
  EXPECT_EQ(refused.status().code(), Code::kFailedPrecondition);
  EXPECT_NE(refused.status().message().find("strict_devices = true"), std::string::npos);
}

TEST_F(CostTest, StateStaysWhereItIsAndFollowsItsUsersInTheWholeGraph) {
  const op::AttrList variable = {{"dtype", DType::kFloat}, {"shape", PartialShape::Of({2, 2})}};
  const std::vector<testing::NodeLine> nodes = {
      kX,
      {"v", "VariableV2", {}, variable},
      {"init", "Assign", {"v", "x"}, kFloat},
      {"use", "MatMul", {"v", "x"}, kFloat},
  };
  PlaceOptions tf;
  tf.algorithm = Algorithm::kTf;
  const auto set = Explained(nodes, {"init"}, 2, tf);
  ASSERT_TRUE(set.ok()) << set.status().ToString();
  EXPECT_EQ(DeviceOf(*set, "v"), "GPU:0") << ToText(*set);  // TensorFlow's order, regardless of this step's costs
  EXPECT_EQ(DeviceOf(*set, "init"), "GPU:0");
  const auto cheap = Explained(nodes, {"init"}, 2);
  ASSERT_TRUE(cheap.ok()) << cheap.status().ToString();
  EXPECT_EQ(DeviceOf(*cheap, "v"), "CPU:0") << ToText(*cheap);
  const std::map<graph::NodeId, int> foreseen = {{1, 1}};
  PlaceOptions told;
  told.preferred = &foreseen;
  const auto ahead = Explained(nodes, {"init"}, 2, told);
  ASSERT_TRUE(ahead.ok()) << ahead.status().ToString();
  EXPECT_EQ(DeviceOf(*ahead, "v"), "GPU:0") << ToText(*ahead);
  EXPECT_EQ(Node(*ahead, "v").reason, Reason::kCost);
  EXPECT_EQ(Node(*ahead, "v").candidates[0].verdict, "its state is used faster elsewhere, over all steps of the graph");
  const std::map<graph::NodeId, int> placed = {{1, 2}};
  PlaceOptions options;
  options.placed = &placed;
  const auto later = Explained(nodes, {"init"}, 2, options);
  ASSERT_TRUE(later.ok()) << later.status().ToString();
  EXPECT_EQ(DeviceOf(*later, "v"), "GPU:1");
  EXPECT_EQ(Node(*later, "v").reason, Reason::kState);
}

TEST_F(CostTest, F112_StateHasTheDeviceItAsksForAndItsUsersFollow) {
  const op::AttrList variable = {{"dtype", DType::kFloat}, {"shape", PartialShape::Of({2, 2})}};
  PlaceOptions hard;
  hard.allow_soft_placement = false;
  const auto placed = Explained({kX,
                                 {"v", "VariableV2", {}, variable, "/device:CPU:0"},
                                 {"init", "Assign", {"v", "x"}, kFloat, "/device:GPU:1"},
                                 {"read", "Identity", {"v"}, kFloat},
                                 {"use", "MatMul", {"read", "x"}, kFloat, "/device:GPU:1"},
                                 {"direct", "MatMul", {"v", "x"}, kFloat, "/device:GPU:1"}},
                                {"init", "use", "direct"}, 2, hard);
  ASSERT_TRUE(placed.ok()) << placed.status().ToString();
  EXPECT_EQ(DeviceOf(*placed, "v"), "CPU:0");
  EXPECT_EQ(DeviceOf(*placed, "init"), "CPU:0");  // the state's own request overrides its user's
  EXPECT_EQ(DeviceOf(*placed, "use"), "GPU:1");
  EXPECT_EQ(DeviceOf(*placed, "direct"), "GPU:1");  // it reads the reference and does not change it
}

TEST_F(CostTest, F302_HardPlacementNamesTheNearestRequestAndTheConfigLine) {
  PlaceOptions hard;
  hard.allow_soft_placement = false;
  const auto none = Explained({kX, {"l", "Log", {"x"}, kFloat, "/device:GPU:0"}}, {"l"}, 2, hard);
  const std::string text(none.status().message());
  for (const char* part : {"Cannot assign a device for operation l: Could not satisfy explicit device specification "
                           "'/device:GPU:0' because "
                           "no supported kernel for GPU devices is available.",
                           "\nOp: Log\nNode attrs: T=DT_FLOAT\nRegistered kernels:\n  device='CPU'",
                           "weir: the nearest request that can be met is '/device:CPU:0'; `allow_soft_placement = "
                           "true` in the configuration"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
  hard.absent_plugins = {"tpu.so: libtpu.so is missing"};
  const auto missing = Explained({kX, {"n", "Neg", {"x"}, kFloat, "/device:TPU:0"}}, {"n"}, 2, hard);
  const std::string absent(missing.status().message());
  EXPECT_NE(
      absent.find("{{node n}} was explicitly assigned to /device:TPU:0 but available devices are [ "
                  "/job:localhost/replica:0/task:0/device:CPU:0, /job:localhost/replica:0/task:0/device:GPU:0, "
                  "/job:localhost/replica:0/task:0/device:GPU:1 ]. Make sure the device specification refers to a "
                  "valid device."),
      std::string::npos)
      << absent;
  EXPECT_NE(absent.find("not loaded: tpu.so: libtpu.so is missing"), std::string::npos) << absent;
}

TEST_F(CostTest, F303_ImpossibleColocationNamesBothNodes) {
  Register("Tanh", "gpu");
  const op::AttrList with_l = {{"T", DType::kFloat}, {"_class", std::vector<std::string>{"loc:@l"}}};
  const std::vector<testing::NodeLine> nodes = {kX, {"l", "Log", {"x"}, kFloat}, {"s", "Tanh", {"l"}, with_l}};
  PlaceOptions hard;
  hard.allow_soft_placement = false;
  const auto refused = Explained(nodes, {"s"}, 2, hard);
  EXPECT_NE(
      refused.status().message().find("Cannot colocate nodes {{colocation_node s}} and {{colocation_node l}} because "
                                      "no device type supports both of those nodes and the other nodes colocated "
                                      "with them."),
      std::string::npos)
      << refused.status().ToString();
  for (const char* part : {"\nLog: CPU (l)\n", "\nTanh: GPU (s)\n"}) {
    EXPECT_NE(refused.status().message().find(part), std::string::npos) << refused.status().ToString();
  }
  const auto soft = Explained(nodes, {"s"}, 2);
  ASSERT_TRUE(soft.ok()) << soft.status().ToString();
  EXPECT_EQ(DeviceOf(*soft, "l"), "CPU:0");
  EXPECT_EQ(DeviceOf(*soft, "s").substr(0, 3), "GPU");
  EXPECT_EQ(soft->warnings.at(0), "'s' is not colocated with 'l': no device runs both");
}

TEST_F(CostTest, IncompatibleRequestsOfColocatedNodesAreRefusedOrDropped) {
  const op::AttrList with_a = {{"T", DType::kFloat}, {"_class", std::vector<std::string>{"loc:@a"}}};
  const auto nodes = [&](const std::string& second) {
    return std::vector<testing::NodeLine>{
        kX, {"a", "Neg", {"x"}, kFloat, "/device:GPU:0"}, {"b", "Neg", {"a"}, with_a, second}};
  };
  PlaceOptions hard;
  hard.allow_soft_placement = false;
  const auto refused = Explained(nodes("/device:CPU:0"), {"b"}, 2, hard);
  EXPECT_NE(
      refused.status().message().find("Cannot colocate nodes {{colocation_node b}} and {{colocation_node a}}: Cannot "
                                      "merge devices with incompatible types"),
      std::string::npos)
      << refused.status().ToString();
  EXPECT_TRUE(Explained(nodes("/device:CPU:0"), {"b"}, 2).ok());
  EXPECT_EQ(Explained(nodes("/job:ps"), {"b"}, 2).status().code(), Code::kInvalidArgument);  // the job is never dropped
}

TEST_F(CostTest, EqualRunsGiveEqualPlans) {
  const auto first = Explained(kChain, {"o"}, 300);
  ASSERT_TRUE(first.ok());
  for (int k = 0; k < 9; ++k) {
    const auto again = Explained(kChain, {"o"}, 300);
    ASSERT_TRUE(again.ok());
    EXPECT_EQ(again->hash, first->hash);
    EXPECT_EQ(ToText(*again), ToText(*first));
  }
  const std::vector<testing::NodeLine> fans = {
      kX,
      {"a", "MatMul", {"x", "x"}, kFloat},
      {"b", "MatMul", {"x", "x"}, {{"T", DType::kFloat}, {"transpose_a", true}}},
      {"c", "MatMul", {"x", "x"}, {{"T", DType::kFloat}, {"transpose_b", true}}},
      {"d", "MatMul", {"a", "b"}, kFloat}};
  const auto one = Explained(fans, {"c", "d", "a"}, 1024);
  const auto other = Explained(fans, {"a", "d", "c"}, 1024);
  ASSERT_TRUE(one.ok() && other.ok());
  EXPECT_EQ(ToText(*one), ToText(*other)) << "the order of the fetches is no reason";
  EXPECT_EQ(one->hash, other->hash);
}

}  // namespace
}  // namespace weir::place
