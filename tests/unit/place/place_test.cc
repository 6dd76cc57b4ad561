#include "core/place/place.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/optimize/optimize.h"
#include "core/place/support.h"
#include "tests/support/text_graph.h"

namespace weir::place {
namespace {

/// Devices CPU:0 (platform cpu) and NPU:0 (platform npu), which has a kernel for Neg only; the CPU has Neg and Exp.
using testing::kFloat;

class PlaceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* kind : {"CPU", "NPU"}) AddDevice(kind, 0);
    Register(&cpu_neg_, "Neg", "cpu");
    Register(&cpu_exp_, "Exp", "cpu");
    Register(&npu_neg_, "Neg", "npu");
    Register(&cpu_add_, "AssignAddVariableOp", "cpu");
  }

  void AddDevice(const char* kind, uint32_t flags) {
    device::DeviceInfo info;
    info.name = *device::ParseDeviceName(std::string("/job:localhost/replica:0/task:0/device:") + kind + ":0");
    info.kind = kind;
    info.platform = kind == std::string("CPU") ? "cpu" : "npu";
    info.flags = WEIR_DEVICE_UNIFIED_MEMORY | flags;
    devices_.Add(std::make_shared<device::Device>(info, nullptr, nullptr, device::MemoryOptions()));
  }

  void Register(weir_kernel* record, const char* op, const char* platform) {
    record->struct_size = sizeof(*record);
    record->op = {op, std::string_view(op).size()};
    record->platform = {platform, std::string_view(platform).size()};
    record->prepare = [](const void*, const weir_prep_args*, weir_prepared*, weir_error*) -> int32_t {
      return WEIR_UNIMPLEMENTED;
    };
    record->unprepare = [](weir_prepared*) {};
    record->variable_writes = 1;  // of ops on handles
    const Status added = kernels_.Add(*ops(), {record, std::string("test_") + platform, "test.so", 0});
    ASSERT_TRUE(added.ok()) << added.ToString();
  }

  static const op::OpRegistry* ops() {
    static const Result<graph::Definition> graph = testing::MakeGraph({});
    return &graph->ops();
  }

  /// Device kind of each op node by name, or the error.
  Result<std::map<std::string, std::string>> Kinds(const std::vector<testing::NodeLine>& nodes,
                                                   const std::string& fetch, const PlaceOptions& options = {},
                                                   Explanation* explanation = nullptr) {
    WEIR_ASSIGN(const graph::Definition graph, testing::MakeGraph(nodes));
    graph::StepRequest request;
    request.fetches = {testing::At(graph, fetch)};
    request.feeds = {{testing::At(graph, "x"), DType::kFloat, PartialShape::Of({2})}};
    WEIR_ASSIGN(const graph::StepGraph step, optimize::Optimize({}, graph, request, nullptr));
    WEIR_ASSIGN(const graph::Placement placement, Place(options, step, devices_, kernels_, explanation));
    std::map<std::string, std::string> kinds;
    for (size_t i = 0; i < step.nodes.size(); ++i) {
      if (step.nodes[i].kind != graph::StepNode::Kind::kOp) continue;
      kinds[std::string(step.nodes[i].name())] =
          devices_.all()[static_cast<size_t>(placement.device_of[i])]->info().kind;
    }
    return kinds;
  }

  /// The same for consecutive steps that keep their state: "name: kind" in one line for each step, or its error. `feed`
  /// is fed to the steps that need it.
  std::string Steps(const std::vector<testing::NodeLine>& nodes, const std::vector<std::string>& targets,
                    PlaceOptions options = {}) {
    const Result<graph::Definition> graph = testing::MakeGraph(nodes);
    if (!graph.ok()) return graph.status().ToString();
    std::map<graph::NodeId, int> placed;
    options.placed = &placed;
    std::string text;
    for (const std::string& target : targets) {
      graph::StepRequest request;
      request.targets = {graph->Find(target)->id()};
      request.feeds = {{testing::At(*graph, "x"), DType::kFloat, PartialShape::Of({2})}};
      const Result<graph::StepGraph> step = optimize::Optimize({}, *graph, request, nullptr);
      if (!step.ok()) return step.status().ToString();
      const Result<graph::Placement> placement = Place(options, *step, devices_, kernels_);
      for (size_t i = 0; placement.ok() && i < step->nodes.size(); ++i) {
        const graph::StepNode& node = step->nodes[i];
        if (node.kind != graph::StepNode::Kind::kOp) continue;
        const int device = placement->device_of[i];
        if (MakesState(node)) placed.emplace(node.source->id(), device);
        text += fmt::format("{}:{} ", node.name(), devices_.all()[static_cast<size_t>(device)]->info().kind);
      }
      text += placement.ok() ? "\n" : std::string(placement.status().message()) + "\n";
    }
    return text;
  }

  weir_kernel cpu_neg_{}, cpu_exp_{}, npu_neg_{}, npu_log_{}, cpu_add_{};
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

TEST_F(PlaceTest, DefaultDeviceGetsTheNodesItSupports) {
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

TEST_F(PlaceTest, MissingDeviceIsNamedWithTheExistingOnes) {
  PlaceOptions hard;
  hard.allow_soft_placement = false;
  const auto failed = Kinds({kInput, {"a", "Neg", {"x"}, kFloat, "/device:GPU:3"}}, "a", hard);
  EXPECT_NE(failed.status().message().find("was explicitly assigned to /device:GPU:3 but available devices are [ "
                                           "/job:localhost/replica:0/task:0/device:CPU:0"),
            std::string::npos)
      << failed.status().ToString();
}

TEST_F(PlaceTest, AdviceMatchesSoftPlacement) {
  devices_ = device::DeviceSet();
  AddDevice("NPU", WEIR_DEVICE_OPT_IN);
  AddDevice("CPU", 0);
  PlaceOptions hard;
  hard.allow_soft_placement = false;
  const std::vector<testing::NodeLine> neg = {kInput, {"a", "Neg", {"x"}, kFloat, "/device:GPU:1"}};
  const std::string both(Kinds(neg, "a", hard).status().message());
  EXPECT_NE(both.find("'/device:CPU:0'; `allow_soft_placement = true`"), std::string::npos) << both;
  EXPECT_EQ(Kinds(neg, "a")->at("a"), "CPU");
  Register(&npu_log_, "Log", "npu");
  const std::vector<testing::NodeLine> log = {kInput, {"a", "Log", {"x"}, kFloat, "/device:GPU:1"}};
  for (const PlaceOptions& options : {PlaceOptions(), hard}) {
    const std::string text(Kinds(log, "a", options).status().message());
    EXPECT_TRUE(text.ends_with("weir: the nearest request that can be met is '/device:NPU:0'\n\t [[{{node a}}]]"))
        << text;
  }
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

TEST_F(PlaceTest, OpWithoutKernelListsTheRegisteredOnes) {
  const auto failed = Kinds({kInput, {"a", "Log", {"x"}, kFloat}}, "a");
  EXPECT_NE(failed.status().message().find("No OpKernel was registered to support Op 'Log' used by {{node a}}"),
            std::string::npos)
      << failed.status().ToString();
}

TEST_F(PlaceTest, MalformedRequestIsAnError) {
  const auto failed = Kinds({kInput, {"a", "Neg", {"x"}, kFloat, "/gadget:0:1"}}, "a");
  EXPECT_EQ(failed.status().code(), Code::kInvalidArgument);
}

testing::NodeLine Variable(const std::string& name, const std::vector<std::string>& with = {},
                           const std::string& device = {}) {
  op::AttrList attrs = {{"dtype", DType::kFloat}, {"shape", PartialShape::Of({2})}, {"shared_name", name}};
  if (!with.empty()) attrs.emplace_back("_class", with);
  return {name, "VarHandleOp", {}, attrs, device};
}

testing::NodeLine OnVariable(const std::string& name, const std::string& op, const std::vector<std::string>& inputs,
                             const std::string& device = {}) {
  return {name, op, inputs, {{"dtype", DType::kFloat}}, device};
}

testing::NodeLine NegWith(const std::string& name, const std::string& input, const std::string& with) {
  return {name, "Neg", {input}, {{"T", DType::kFloat}, {"_class", std::vector<std::string>{"loc:@" + with}}}};
}

const testing::NodeLine kInit = OnVariable("init", "AssignVariableOp", {"v", "x"});
const testing::NodeLine kUp = OnVariable("up", "AssignAddVariableOp", {"v", "x"});  // no kernel on the NPU
const testing::NodeLine kRead = OnVariable("read", "ReadVariableOp", {"v"});

TEST_F(PlaceTest, StateIsPlacedForTheWholeGraphByItsFirstStep) {
  const std::string npu = "v:NPU init:NPU \nv:NPU read:NPU \n", cpu = "v:CPU init:CPU \nv:CPU up:CPU \n";
  PlaceOptions by_default;
  by_default.default_device = "NPU:0";
  for (const Algorithm algorithm : {Algorithm::kCostSim, Algorithm::kTf, Algorithm::kSingle, Algorithm::kWhitePaper}) {
    PlaceOptions options;
    options.algorithm = algorithm;
    // Without costs by TensorFlow's order of devices; nothing here costs anything.
    const std::string here = algorithm == Algorithm::kTf ? npu : "v:CPU init:CPU \nv:CPU read:CPU \n";
    EXPECT_EQ(Steps({kInput, Variable("v"), kInit, kRead}, {"init", "read"}, options), here);
    EXPECT_EQ(Steps({kInput, Variable("v"), kInit, kUp}, {"init", "up"}, options), cpu);
  }
  EXPECT_EQ(Steps({kInput, Variable("v"), kInit, kRead}, {"init", "read"}, by_default), npu);
  EXPECT_EQ(Steps({kInput, Variable("v"), kInit, kUp}, {"init", "up"}, by_default), cpu);
  EXPECT_EQ(Steps({kInput, Variable("v", {}, "/device:NPU:0"), kInit, kUp}, {"init", "up"}),
            cpu);  // moved by soft placement
  const testing::NodeLine exp = {"e", "Exp", {"read"}, NegWith("n", "read", "v").attrs};
  EXPECT_EQ(Steps({kInput, Variable("v"), kInit, kRead, exp}, {"init", "e"}),
            "v:CPU init:CPU \nv:CPU read:CPU e:CPU \n");
}

TEST_F(PlaceTest, StateIsWhereALaterStepAsksForIt) {
  PlaceOptions hard;
  hard.allow_soft_placement = false;
  for (const PlaceOptions& options : {PlaceOptions(), hard}) {
    EXPECT_EQ(Steps({kInput, Variable("v"), kInit, OnVariable("read", "ReadVariableOp", {"v"}, "/cpu:0")},
                    {"init", "read"}, options),
              "v:CPU init:CPU \nv:CPU read:CPU \n");
  }
  // A request that no device meets does not affect other steps.
  const std::string text = Steps({kInput, Variable("v"), kInit, OnVariable("read", "ReadVariableOp", {"v"}, "/gpu:3")},
                                 {"init", "read"}, hard);
  EXPECT_TRUE(
      text.starts_with("v:CPU init:CPU \nCannot assign a device for operation read: {{node read}} was "
                       "explicitly assigned to /device:GPU:3 but available devices are"))
      << text;
}

TEST_F(PlaceTest, ColocatedStateThatIsSetInSeparateStepsStaysTogether) {
  const testing::NodeLine init_w = OnVariable("init_w", "AssignVariableOp", {"w", "x"});
  const testing::NodeLine read_w = OnVariable("read_w", "ReadVariableOp", {"w", "^read"});
  const std::vector<testing::NodeLine> nodes = {kInput, Variable("v"), kInit, Variable("w", {"loc:@v"}),
                                                init_w, kUp,           kRead, read_w};
  EXPECT_EQ(Steps(nodes, {"init", "init_w", "read_w"}),
            "v:CPU init:CPU \nw:CPU init_w:CPU \nw:CPU v:CPU read:CPU read_w:CPU \n");
  // State that is already on different devices stays there.
  const std::vector<testing::NodeLine> apart = {
      kInput, Variable("v", {}, "/cpu:0"), kInit, Variable("w", {"loc:@v"}, "/device:NPU:0"), init_w, kRead, read_w};
  const std::string inits = "v:CPU init:CPU \nw:NPU init_w:NPU \n";
  EXPECT_EQ(Steps(apart, {"init", "init_w", "read_w"}), inits + "w:NPU v:CPU read:CPU read_w:NPU \n");
  PlaceOptions hard;
  hard.allow_soft_placement = false;
  const std::string text = Steps(apart, {"init", "init_w", "read_w"}, hard);
  EXPECT_TRUE(text.starts_with(inits + "Cannot colocate nodes {{colocation_node w}} and {{colocation_node v}}: their "
                                       "states live on"))
      << text;
}

TEST_F(PlaceTest, ErrorsNameTheDeviceOfStateThatCannotMove) {
  PlaceOptions hard;
  hard.allow_soft_placement = false;
  const testing::NodeLine up_there = OnVariable("up", "AssignVariableOp", {"v", "x"}, "/cpu:0");
  const std::vector<testing::NodeLine> before = {kInput, Variable("v"), kInit};
  for (const auto& [later, options, error] :
       {std::tuple<testing::NodeLine, PlaceOptions, std::string>{
            kUp, PlaceOptions(),
            "Cannot assign a device for operation up: the state that it uses has been on "
            "/job:localhost/replica:0/task:0/device:NPU:0 since an earlier run, and "
            "AssignAddVariableOp has no kernel there."},
        {up_there, hard,
         "Cannot assign a device for operation up: Could not satisfy explicit device specification "
         "'/device:CPU:0' because the node {{colocation_node up}} was colocated with a group of nodes "
         "that required incompatible device '/job:localhost/replica:0/task:0/device:NPU:0'."}}) {
    std::vector<testing::NodeLine> nodes = before;
    nodes.push_back(later);
    const Result<graph::Definition> graph = testing::MakeGraph(nodes);
    ASSERT_TRUE(graph.ok());
    graph::StepRequest request;
    request.targets = {graph->Find("up")->id()};
    request.feeds = {{testing::At(*graph, "x"), DType::kFloat, PartialShape::Of({2})}};
    const Result<graph::StepGraph> step = optimize::Optimize({}, *graph, request, nullptr);
    ASSERT_TRUE(step.ok());
    PlaceOptions with_state = options;
    const std::map<graph::NodeId, int> placed = {{graph->Find("v")->id(), 1}};  // from before `up` was added
    with_state.placed = &placed;
    const Status status = Place(with_state, *step, devices_, kernels_).status();
    EXPECT_TRUE(status.message().starts_with(error)) << status.ToString();
  }
}

TEST_F(PlaceTest, TheStateOfALoopIsWhereAllOfItRuns) {
  const auto frame = [](const op::AttrList& attrs) {
    op::AttrList all = attrs;
    all.emplace_back("frame_name", std::string("f"));
    return all;
  };
  const op::AttrList handle = {{"T", DType::kResource}};
  EXPECT_EQ(Steps({kInput,
                   Variable("v"),
                   kInit,
                   {"enter", "Enter", {"x"}, frame(kFloat)},
                   {"enter_v", "Enter", {"v"}, frame(handle)},
                   {"e", "Exp", {"enter"}, kFloat},
                   {"exit", "Exit", {"e"}, kFloat}},
                  {"init"}),
            "v:CPU init:CPU \n");
}

TEST_F(PlaceTest, ConflictsInALoopSayThatItIsALoop) {
  const op::AttrList frame = {{"T", DType::kFloat}, {"frame_name", std::string("f")}};
  const std::vector<testing::NodeLine> nodes = {kInput,
                                                {"enter", "Enter", {"x"}, frame, "/cpu:0"},
                                                {"a", "Neg", {"enter"}, kFloat, "/device:NPU:0"},
                                                {"b", "Neg", {"a"}, kFloat, "/device:CPU:0"},
                                                {"exit", "Exit", {"b"}, kFloat}};
  PlaceOptions hard;
  hard.allow_soft_placement = false;
  const auto failed = Kinds(nodes, "exit", hard);
  EXPECT_NE(failed.status().message().find("{{colocation_node a}} and {{colocation_node enter}}: Cannot merge devices "
                                           "with incompatible types: '/device:NPU:0' and '/device:CPU:0'. The nodes "
                                           "of a loop share a device"),
            std::string::npos)
      << failed.status().ToString();
  Explanation explanation;
  ASSERT_TRUE(Kinds(nodes, "exit", {}, &explanation).ok());
  ASSERT_FALSE(explanation.warnings.empty());
  EXPECT_EQ(
      explanation.warnings[0],
      "'enter' asks for /device:CPU:0, in one group with it 'a' asks for /device:NPU:0: neither is kept. The nodes "
      "of a loop share a device");
}

}  // namespace
}  // namespace weir::place
