// Placement reports of a session, on the devices of the built plugins.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/config/pins.h"
#include "core/place/place.h"
#include "core/session/session.h"
#include "tests/support/text_graph.h"

namespace weir::session {
namespace {

using testing::kFloat;
using testing::MakeGraph;
using testing::Placeholder;

class PlacementTest : public ::testing::Test {
 protected:
  void Open(const std::vector<testing::NodeLine>& nodes, SessionOptions options = {}) {
    options.placement_log = [this](const std::string& lines) { log_ += lines; };
    Result<graph::Definition> graph = MakeGraph(nodes);
    ASSERT_TRUE(graph.ok()) << graph.status().ToString();
    graph_ = std::make_unique<graph::Definition>(std::move(*graph));
    const Result<std::shared_ptr<Runtime>> runtime = Runtime::Default();
    ASSERT_TRUE(runtime.ok());
    Result<std::unique_ptr<Session>> session = Session::Make(*runtime, *graph_, std::move(options));
    ASSERT_TRUE(session.ok()) << session.status().ToString();
    session_ = std::move(*session);
  }

  Status Run(const std::vector<std::string>& fetches, int64_t size = 2) {
    return session_->Run(Feeds(size), fetches, {}).status();
  }
  static std::vector<Feed> Feeds(int64_t size) {
    return {{"x", *Tensor::Make(DType::kFloat, *Shape::Make(std::vector<int64_t>{size}))}};
  }

  std::unique_ptr<graph::Definition> graph_;
  std::unique_ptr<Session> session_;
  std::string log_;
};

const testing::NodeLine kInput = Placeholder("x", PartialShape());
const std::string kCpu = "/job:localhost/replica:0/task:0/device:CPU:0";

TEST_F(PlacementTest, F108_F301_EachNodeIsLoggedOnceInTensorFlowsForm) {
  SessionOptions options;
  options.log_device_placement = true;
  Open({kInput, {"a", "Square", {"x"}, kFloat}, {"b", "Neg", {"a"}, kFloat}}, options);
  ASSERT_TRUE(Run({"a"}).ok());
  EXPECT_EQ(log_, "x: (Placeholder): " + kCpu + "\na: (Square): " + kCpu + "\nplaced 1 node: CPU:0 1 (100.0 %)\n");
  log_.clear();
  ASSERT_TRUE(Run({"b"}).ok());
  EXPECT_EQ(log_, "b: (Neg): " + kCpu + "\nplaced 2 nodes: CPU:0 2 (100.0 %)\n");
  log_.clear();
  ASSERT_TRUE(Run({"b"}).ok());  // the same plan
  EXPECT_EQ(log_, "");
  ASSERT_TRUE(Run({"b"}, 3).ok());  // another plan with the same devices
  EXPECT_EQ(log_, "placed 2 nodes: CPU:0 2 (100.0 %)\n");
}

TEST_F(PlacementTest, F108_NodesThatTheStepDoesNotRunAreLoggedToo) {
  SessionOptions options;
  options.log_device_placement = true;
  const Tensor two = Tensor::Vector<float>({1, 2});
  Open({kInput,
        testing::Const("c", two),
        testing::Const("d", two),  // equal to c
        {"sum", "Add", {"c", "d"}, kFloat, "/gpu:7"},
        {"a", "Neg", {"x"}, kFloat},
        {"b", "Add", {"a", "sum"}, kFloat},
        {"other", "Neg", {"a"}, kFloat}},
       options);
  ASSERT_TRUE(Run({"b"}).ok());
  std::string lines;
  for (const char* node : {"x: (Placeholder)", "a: (Neg)", "c: (Const)", "d: (Const)", "sum: (Add)", "b: (Add)"}) {
    lines += node + (": " + kCpu) + "\n";
  }
  EXPECT_EQ(log_, lines + "placed 2 nodes: CPU:0 2 (100.0 %)\n");
  log_.clear();
  ASSERT_TRUE(Run({"sum"}).ok());
  EXPECT_EQ(log_, "placed 0 nodes: the step computes nothing\n");
  const std::vector<std::string> fetches = {"sum"};
  const Result<place::Explanation> explanation = session_->ExplainPlacement(Feeds(2), fetches, {});
  ASSERT_TRUE(explanation.ok()) << explanation.status().ToString();
  EXPECT_TRUE(explanation->nodes.empty());
  EXPECT_NE(place::ToText(*explanation).find("\nsum  Add  not run by the step  -> " + kCpu + "\n"), std::string::npos);
}

TEST_F(PlacementTest, F105_F107_RequestsOfNodesThatTheStepDoesNotRunAreChecked) {
  const Tensor one = Tensor::Vector<float>({1, 2});
  const auto with = [](testing::NodeLine node, const char* device) {
    node.device = device;
    return node;
  };
  const testing::NodeLine c = testing::Const("c", one);
  const testing::NodeLine folded = {"n", "Neg", {"c"}, kFloat}, y = {"y", "Add", {"x", "n"}, kFloat};
  for (const char* device : {"/device:GPU:2", "/job:ps"}) {
    const bool job = device == std::string("/job:ps");
    for (const std::vector<testing::NodeLine>& nodes :
         {std::vector<testing::NodeLine>{kInput, with(c, device), folded, y},
          {with(kInput, device), c, folded, y},
          {kInput, c, with(folded, device), y}}) {
      const auto asks = [](const testing::NodeLine& node) { return !node.device.empty(); };
      const std::string name = std::find_if(nodes.begin(), nodes.end(), asks)->name;
      for (const bool soft : {false, true}) {
        SessionOptions options;
        options.allow_soft_placement = soft;
        Open(nodes, options);
        const Status status = Run({"y"});
        EXPECT_EQ(status.ok(), soft && !job) << name << " " << device;
        if (status.ok()) continue;
        EXPECT_TRUE(status.message().starts_with("Cannot assign a device for operation " + name + ": {{node " + name +
                                                 "}} was explicitly assigned to " + device +
                                                 " but available devices are [ " + kCpu + " ]. "))
            << status.ToString();
        EXPECT_EQ(status.node(), name);
      }
    }
  }
  // A fed node with its own name, and a node that no run needs.
  SessionOptions hard;
  hard.allow_soft_placement = false;
  Open({kInput, c, with(folded, "/gpu:0"), y}, hard);
  std::vector<Feed> feeds = Feeds(2);
  feeds.emplace_back("n", one);
  const std::vector<std::string> fetch_y = {"y"}, fetch_c = {"c"};
  EXPECT_EQ(session_->Run(feeds, fetch_y, {}).status().node(), "n");
  EXPECT_TRUE(session_->Run({}, fetch_c, {}).ok());
}

TEST_F(PlacementTest, F107_F296_SoftPlacementWarnsOnce) {
  Open({kInput, {"b", "Neg", {"x"}, kFloat, "/gpu:7"}});
  ASSERT_TRUE(Run({"b"}).ok());
  EXPECT_TRUE(log_.starts_with("weir: placement: 1 node asks for /device:GPU:7 and runs on CPU:0 [Neg 1]")) << log_;
  log_.clear();
  ASSERT_TRUE(Run({"b"}, 5).ok());
  EXPECT_EQ(log_.find("asks for"), std::string::npos) << log_;
}

TEST_F(PlacementTest, F105_F107_HardPlacementFailsWithTensorFlowsText) {
  SessionOptions options;
  options.allow_soft_placement = false;
  Open({kInput, {"b", "Neg", {"x"}, kFloat, "/device:GPU:7"}, {"t", "Neg", {"x"}, kFloat, "/job:ps/task:0"}}, options);
  const Status gpu = Run({"b"});
  EXPECT_EQ(gpu.code(), Code::kInvalidArgument);
  EXPECT_NE(gpu.message().find("Cannot assign a device for operation b: {{node b}} was explicitly assigned to "
                               "/device:GPU:7 but available devices are [ "),
            std::string::npos)
      << gpu.ToString();
  EXPECT_NE(gpu.message().find("`allow_soft_placement = true`"), std::string::npos) << gpu.ToString();  // F302
  const Status job = Run({"t"});
  EXPECT_NE(job.message().find("was explicitly assigned to /job:ps/task:0 but available devices are"),
            std::string::npos)
      << job.ToString();
}

TEST_F(PlacementTest, F295_ThePlacementCanBeAskedForWithoutRunning) {
  Open({kInput, {"a", "Square", {"x"}, kFloat}, {"b", "Neg", {"a"}, kFloat, "/cpu:0"}});
  const std::vector<std::string> fetches = {"b"};
  const Result<place::Explanation> explanation = session_->ExplainPlacement(Feeds(2), fetches, {});
  ASSERT_TRUE(explanation.ok()) << explanation.status().ToString();
  ASSERT_EQ(explanation->nodes.size(), 2u);
  EXPECT_EQ(explanation->nodes[0].name, "a");
  EXPECT_EQ(explanation->nodes[0].op, "Square");
  EXPECT_EQ(explanation->nodes[0].device, kCpu);
  EXPECT_EQ(explanation->nodes[1].reason, place::Reason::kRequested);
  EXPECT_EQ(explanation->nodes[1].requested, "/device:CPU:0");
  EXPECT_GE(explanation->nodes[0].candidates.at(0).exec_ns, 0);
  EXPECT_EQ(log_, "");
}

TEST_F(PlacementTest, OptionsOfThePlacerReachIt) {
  auto placement = std::make_shared<place::PlaceOptions>();
  placement->pins = std::make_shared<config::Pins>(config::Pins::List{{"b", "/device:NPU:0"}});
  SessionOptions options;
  options.allow_soft_placement = false;
  options.placement = placement;
  Open({kInput, {"b", "Neg", {"x"}, kFloat}}, options);
  EXPECT_NE(Run({"b"}).message().find("/device:NPU:0"), std::string::npos);
}

}  // namespace
}  // namespace weir::session
