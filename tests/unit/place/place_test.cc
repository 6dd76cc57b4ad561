#include "core/place/place.h"

#include <gtest/gtest.h>

#include "core/optimize/optimize.h"
#include "tests/support/text_graph.h"

namespace weir::place {
namespace {

/// Devices CPU:0 (platform cpu) and NPU:0 (platform npu), which has a kernel for Neg only; the CPU has Neg and Exp.
using testing::kFloat;

class PlaceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* kind : {"CPU", "NPU"}) {
      device::DeviceInfo info;
      info.name = *device::ParseDeviceName(std::string("/job:localhost/replica:0/task:0/device:") + kind + ":0");
      info.kind = kind;
      info.platform = kind == std::string("CPU") ? "cpu" : "npu";
      info.flags = WEIR_DEVICE_UNIFIED_MEMORY;
      devices_.Add(std::make_shared<device::Device>(info, nullptr, nullptr, device::MemoryOptions()));
    }
    Register(&cpu_neg_, "Neg", "cpu");
    Register(&cpu_exp_, "Exp", "cpu");
    Register(&npu_neg_, "Neg", "npu");
  }

  void Register(weir_kernel* record, const char* op, const char* platform) {
    record->struct_size = sizeof(*record);
    record->op = {op, std::string_view(op).size()};
    record->platform = {platform, std::string_view(platform).size()};
    record->prepare = [](const void*, const weir_prep_args*, weir_prepared*, weir_error*) -> int32_t {
      return WEIR_UNIMPLEMENTED;
    };
    record->unprepare = [](weir_prepared*) {};
    const Status added = kernels_.Add(*ops(), {record, std::string("test_") + platform, "test.so", 0});
    ASSERT_TRUE(added.ok()) << added.ToString();
  }

  static const op::OpRegistry* ops() {
    static const Result<graph::Graph> graph = testing::MakeGraph({});
    return &graph->ops();
  }

  /// Device kind of each op node by name, or the error.
  Result<std::map<std::string, std::string>> Kinds(const std::vector<testing::NodeLine>& nodes,
                                                   const std::string& fetch, const PlaceOptions& options = {}) {
    WEIR_ASSIGN(const graph::Graph graph, testing::MakeGraph(nodes));
    graph::StepRequest request;
    request.fetches = {testing::At(graph, fetch)};
    request.feeds = {{testing::At(graph, "x"), DType::kFloat, PartialShape::Of({2})}};
    WEIR_ASSIGN(const graph::StepGraph step, optimize::Optimize({}, graph, request, nullptr));
    WEIR_ASSIGN(const graph::Placement placement, Place(options, step, devices_, kernels_));
    std::map<std::string, std::string> kinds;
    for (size_t i = 0; i < step.nodes.size(); ++i) {
      if (step.nodes[i].kind != graph::StepNode::Kind::kOp) continue;
      kinds[std::string(step.nodes[i].name())] =
          devices_.all()[static_cast<size_t>(placement.device_of[i])]->info().kind;
    }
    return kinds;
  }

  weir_kernel cpu_neg_{}, cpu_exp_{}, npu_neg_{};
  device::DeviceSet devices_;
  kernel::KernelRegistry kernels_;
};

const testing::NodeLine kInput = testing::Placeholder("x", PartialShape());

TEST_F(PlaceTest, UnconstrainedNodesGoToTheCpu) {
  const auto kinds = Kinds({kInput, {"a", "Neg", {"x"}, kFloat}}, "a");
  ASSERT_TRUE(kinds.ok()) << kinds.status().ToString();
  EXPECT_EQ(kinds->at("a"), "CPU");
}

TEST_F(PlaceTest, RequestsAreMetInEverySpelling) {
  for (const char* device : {"/device:NPU:0", "/job:localhost/device:NPU:0", "NPU:0"}) {
    const auto kinds = Kinds({kInput, {"a", "Neg", {"x"}, kFloat, device}}, "a");
    ASSERT_TRUE(kinds.ok()) << device << ": " << kinds.status().ToString();
    EXPECT_EQ(kinds->at("a"), "NPU") << device;
  }
}

TEST_F(PlaceTest, DefaultDeviceTakesWhatItCan) {
  PlaceOptions options;
  options.default_device = "NPU:0";
  const auto kinds = Kinds({kInput, {"a", "Neg", {"x"}, kFloat}, {"b", "Exp", {"a"}, kFloat}}, "b", options);
  ASSERT_TRUE(kinds.ok()) << kinds.status().ToString();
  EXPECT_EQ(kinds->at("a"), "NPU");
  EXPECT_EQ(kinds->at("b"), "CPU");
}

TEST_F(PlaceTest, SoftPlacementFallsBackHardPlacementFails) {
  const std::vector<testing::NodeLine> nodes = {kInput, {"b", "Exp", {"x"}, kFloat, "/device:NPU:0"}};
  const auto soft = Kinds(nodes, "b");
  ASSERT_TRUE(soft.ok()) << soft.status().ToString();
  EXPECT_EQ(soft->at("b"), "CPU");
  PlaceOptions hard;
  hard.allow_soft_placement = false;
  const auto failed = Kinds(nodes, "b", hard);
  EXPECT_EQ(failed.status().code(), Code::kInvalidArgument);
  EXPECT_EQ(failed.status().node(), "b");
}

TEST_F(PlaceTest, MissingDeviceIsNamedWithWhatThereIs) {
  PlaceOptions hard;
  hard.allow_soft_placement = false;
  const auto failed = Kinds({kInput, {"a", "Neg", {"x"}, kFloat, "/device:GPU:3"}}, "a", hard);
  EXPECT_NE(failed.status().message().find("was explicitly assigned to /device:GPU:3 but available devices are [ "
                                           "/job:localhost/replica:0/task:0/device:CPU:0"),
            std::string::npos)
      << failed.status().ToString();
}

TEST_F(PlaceTest, ColocatedNodesStayTogether) {
  const std::vector<std::string> with_a = {"loc:@a"};
  const auto kinds = Kinds({kInput,
                            {"a", "Neg", {"x"}, kFloat, "/device:NPU:0"},
                            {"b", "Neg", {"a"}, {{"T", DType::kFloat}, {"_class", with_a}}}},
                           "b");
  ASSERT_TRUE(kinds.ok()) << kinds.status().ToString();
  EXPECT_EQ(kinds->at("b"), "NPU");
  PlaceOptions hard;
  hard.allow_soft_placement = false;
  const auto failed = Kinds({kInput,
                             {"a", "Neg", {"x"}, kFloat, "/device:NPU:0"},
                             {"b", "Neg", {"a"}, {{"T", DType::kFloat}, {"_class", with_a}}, "/device:CPU:0"}},
                            "b", hard);
  EXPECT_NE(failed.status().message().find("Cannot colocate nodes {{colocation_node b}} and {{colocation_node a}}"),
            std::string::npos)
      << failed.status().ToString();
}

TEST_F(PlaceTest, OpWithoutKernelSaysWhatIsRegistered) {
  const auto failed = Kinds({kInput, {"a", "Log", {"x"}, kFloat}}, "a");
  EXPECT_NE(failed.status().message().find("No OpKernel was registered to support Op 'Log' used by {{node a}}"),
            std::string::npos)
      << failed.status().ToString();
}

TEST_F(PlaceTest, MalformedRequestIsAnError) {
  const auto failed = Kinds({kInput, {"a", "Neg", {"x"}, kFloat, "/gadget:0:1"}}, "a");
  EXPECT_EQ(failed.status().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace weir::place
