// Training and traces on a device whose memory has handles instead of addresses (sdk/examples/handle_device), with
// kernels of its own and of another plugin.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <string>
#include <vector>

#include "core/client/extra.h"
#include "core/client/graph/graph_internal.h"
#include "core/client/session/session_interface.h"
#include "core/session/session.h"
#include "tests/support/text_graph.h"

namespace weir {
namespace {

namespace fs = std::filesystem;

constexpr const char* kThere = "/job:localhost/replica:0/task:0/device:HANDLE:0";

/// A folder with the CPU, its kernels, the device and the other plugin's kernels for it. Kept until the process ends.
const std::string& PluginFolder() {
  static const std::string folder = []() -> std::string {
    const char* build = std::getenv("WEIR_BUILD_DIR");
    std::string pattern = (fs::temp_directory_path() / "weir_handle_XXXXXX").string();
    if (build == nullptr || mkdtemp(pattern.data()) == nullptr) return {};
    const std::string made = fs::canonical(pattern).string();
    std::vector<fs::path> files = {fs::path(build) / "lib/weir/plugins/cpu.so",
                                   fs::path(build) / "lib/weir/plugins/kernels_eigen.so"};
    for (const auto& entry : fs::directory_iterator(fs::path(build) / "lib/weir/handle")) files.push_back(entry.path());
    for (const fs::path& file : files) {
      const fs::path to = fs::path(made) / file.filename();
      std::error_code error;
      if (!fs::copy_file(file, to, error)) return {};
      chmod(to.c_str(), 0755);
    }
    chmod(made.c_str(), 0755);
    static const std::string kept = made;
    std::atexit([] { fs::remove_all(kept); });
    return made;
  }();
  return folder;
}

Result<std::shared_ptr<session::Runtime>> Load() {
  plugin::LoadOptions options;
  options.folders = {PluginFolder()};
  return session::Runtime::Load(options);
}

class HandleDevice : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(PluginFolder(), "") << "the build lacks a plugin";
    Result<std::shared_ptr<session::Runtime>> runtime = Load();
    ASSERT_TRUE(runtime.ok()) << runtime.status().ToString();
    runtime_ = std::move(*runtime);
  }
  /// A session whose nodes run on the device or fail.
  std::unique_ptr<session::Session> OnDevice(const std::vector<testing::NodeLine>& nodes) {
    std::vector<testing::NodeLine> placed = nodes;
    for (testing::NodeLine& node : placed) {
      if (node.device.empty()) node.device = kThere;
    }
    const Result<graph::Definition>& graph = graphs_.emplace_back(testing::MakeGraph(placed));
    EXPECT_TRUE(graph.ok()) << graph.status().ToString();
    if (!graph.ok()) return nullptr;
    session::SessionOptions options;
    options.allow_soft_placement = false;
    Result<std::unique_ptr<session::Session>> session = session::Session::Make(runtime_, *graph, options);
    EXPECT_TRUE(session.ok()) << session.status().ToString();
    return session.ok() ? std::move(*session) : nullptr;
  }
  std::shared_ptr<session::Runtime> runtime_;
  std::deque<Result<graph::Definition>> graphs_;  // sessions refer to them
};

/// A network of two layers with the loss of squares; the losses of some steps.
Result<std::vector<float>> Train(const std::shared_ptr<session::Runtime>& runtime, const std::string& device,
                                 bool resources, int* elsewhere) {
  Graph graph;
  const AsDefault in(graph);
  const auto filled = [](const Shape& shape, float step) {
    std::vector<float> values(static_cast<size_t>(shape.elements()));
    for (size_t i = 0; i < values.size(); ++i) values[i] = std::sin(step * static_cast<float>(i + 1));
    return Tensor::Of<float>(shape, values);
  };
  const VariableOptions options{.use_resource = resources};
  const Variable w1(filled(Shape::Of({3, 5}), 0.7f), options), b1(filled(Shape::Of({5}), 0.3f), options);
  const Variable w2(filled(Shape::Of({5, 2}), 0.9f), options), b2(filled(Shape::Of({2}), 0.1f), options);
  const Output x = Placeholder(DType::kFloat, PartialShape::Of({4, 3}));
  const Output y = Placeholder(DType::kFloat, PartialShape::Of({4, 2}));
  const Output hidden = Relu(BiasAdd(MatMul(x, w1), b1));
  const Output loss = BuildOp("L2Loss", {BiasAdd(MatMul(hidden, w2), b2) - y}).output(0);
  const Operation train = GradientDescentOptimizer(0.05).Minimize(loss);
  const Operation init = GlobalVariablesInitializer();
  session::SessionOptions session_options;
  session_options.default_device = device;
  Session session(graph, InProcess(graph, session_options, runtime));
  WEIR_TRY(session.Run(init).status());
  std::vector<float> losses;
  const Feeds feeds = {{x, filled(Shape::Of({4, 3}), 1.3f)}, {y, filled(Shape::Of({4, 2}), 0.5f)}};
  for (int i = 0; i < 20; ++i) {
    session::RunReport report;
    WEIR_ASSIGN(const Fetched got, session.Run(Fetch::List{loss, train}, feeds, {}, &report));
    losses.push_back(got[0].tensor().as<float>()[0]);
    *elsewhere = 0;
    for (const auto& [where, nodes] : report.placement) {
      if (where.find(device) == std::string::npos) *elsewhere += nodes;
    }
  }
  return losses;
}

TEST_F(HandleDevice, TrainsASmallNetwork) {
  for (const bool resources : {false, true}) {
    int elsewhere = 0;
    const Result<std::vector<float>> wanted = Train(runtime_, "CPU:0", resources, &elsewhere);
    ASSERT_TRUE(wanted.ok()) << wanted.status().ToString();
    const Result<std::vector<float>> got = Train(runtime_, "HANDLE:0", resources, &elsewhere);
    ASSERT_TRUE(got.ok()) << got.status().ToString();
    EXPECT_EQ(elsewhere, 0) << "nodes that ran on another device";
    ASSERT_EQ(got->size(), wanted->size());
    for (size_t i = 0; i < got->size(); ++i) EXPECT_NEAR((*got)[i], (*wanted)[i], 1e-4f * (*wanted)[i]) << i;
    EXPECT_LT(got->back(), got->front() / 2) << "it did not learn";
  }
}

TEST_F(HandleDevice, KernelsOfAnotherPluginUseTheQueueByNativeValues) {
  const auto session = OnDevice({testing::Placeholder("x", PartialShape::Of({2, 3})),
                                 {"e", "Exp", {"x"}, testing::kFloat},
                                 {"s", "Mul", {"e", "e"}, testing::kFloat}});
  ASSERT_NE(session, nullptr);
  const std::vector<float> in = {0, 1, -1, 2, 0.5f, -3};
  const std::vector<session::Feed> feeds = {{"x:0", Tensor::Of<float>(Shape::Of({2, 3}), in)}};
  const auto got = session->Run(feeds, std::vector<std::string>{"s:0"}, {});
  ASSERT_TRUE(got.ok()) << got.status().ToString();
  for (size_t i = 0; i < in.size(); ++i) EXPECT_FLOAT_EQ((*got)[0].as<float>()[i], std::exp(in[i]) * std::exp(in[i]));
}

TEST_F(HandleDevice, ADynamicKernelOfAnotherPluginMakesItsOutputOnTheDevice) {
  const auto session = OnDevice({testing::Placeholder("c", PartialShape(), DType::kBool),
                                 {"w", "Where", {"c"}, {{"T", DType::kBool}}}});
  ASSERT_NE(session, nullptr);
  constexpr bool kValues[] = {false, true, true, false, false, true};
  Result<Tensor> condition = Tensor::Make(DType::kBool, Shape::Of({2, 3}));
  ASSERT_TRUE(condition.ok());
  std::memcpy(condition->mutable_raw(), kValues, sizeof kValues);
  for (int run = 0; run < 3; ++run) {
    const std::vector<session::Feed> feeds = {{"c:0", *condition}};
    const auto got = session->Run(feeds, std::vector<std::string>{"w:0"}, {});
    ASSERT_TRUE(got.ok()) << got.status().ToString();
    const auto rows = (*got)[0].as<int64_t>();
    EXPECT_EQ(std::vector<int64_t>(rows.begin(), rows.end()), (std::vector<int64_t>{0, 1, 0, 2, 1, 2}));
  }
}

TEST_F(HandleDevice, ALateErrorNamesTheNodeThatEnqueuedTheWork) {
  const auto session = OnDevice({testing::Placeholder("x", PartialShape::Of({3})),
                                 {"first", "Mul", {"x", "x"}, testing::kFloat},
                                 {"check", "CheckNumerics", {"first"}, {{"T", DType::kFloat}, {"message", "m"}}},
                                 {"second", "Mul", {"check", "check"}, testing::kFloat},
                                 {"third", "Sub", {"second", "x"}, testing::kFloat}});
  ASSERT_NE(session, nullptr);
  const auto run = [&](float value) {
    const std::vector<session::Feed> feeds = {{"x:0", Tensor::Vector<float>({1, value, 3})}};
    return session->Run(feeds, std::vector<std::string>{"third:0"}, {});
  };
  ASSERT_TRUE(run(2).ok()) << run(2).status().ToString();
  const auto failed = run(INFINITY);
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.status().code(), Code::kInvalidArgument) << failed.status().ToString();
  EXPECT_EQ(failed.status().node(), "check") << failed.status().ToString();
  EXPECT_NE(failed.status().message().find("m : Tensor had Inf values"), std::string::npos);
  EXPECT_NE(failed.status().message().find("reported late: the work failed after 'check' had enqueued it"),
            std::string::npos)
      << failed.status().ToString();
  const auto again = run(2);
  EXPECT_TRUE(again.ok()) << "a poisoned queue is not used again: " << again.status().ToString();
}

TEST_F(HandleDevice, ATraceShowsWhenTheDeviceDidTheWork) {
  const auto session = OnDevice({testing::Placeholder("a", PartialShape::Of({200, 200})),
                                 {"product", "MatMul", {"a", "a"}, testing::kFloat},
                                 {"sum", "AddV2", {"product", "a"}, testing::kFloat}});
  ASSERT_NE(session, nullptr);
  const Tensor a = Tensor::Of<float>(Shape::Of({200, 200}), std::vector<float>(40000, 1.0f));
  const std::vector<session::Feed> feeds = {{"a:0", a}};
  for (int run = 0; run < 2; ++run) {
    session::RunReport report;
    const auto got = session->Run(feeds, std::vector<std::string>{"sum:0"}, {}, {.trace = true}, &report);
    ASSERT_TRUE(got.ok()) << got.status().ToString();
    const auto find = [&](std::string_view op) {
      const auto at = std::ranges::find(report.trace.spans, op, &trace::Span::op);
      return at == report.trace.spans.end() ? trace::Span() : *at;
    };
    const trace::Span product = find("MatMul"), sum = find("AddV2");
    ASSERT_EQ(product.node, "product");
    ASSERT_EQ(sum.node, "sum");
    EXPECT_EQ(product.device, kThere);
    // 8 million multiplications do not end within the time of enqueueing them; one queue does one piece at a time.
    EXPECT_GT(product.end_ns - product.start_ns, 100000);
    EXPECT_GE(sum.start_ns, product.end_ns);
    EXPECT_GE(product.start_ns, 0);
    EXPECT_LE(sum.end_ns, report.trace.total_ns);
    EXPECT_TRUE(product.on_device && sum.on_device);
  }
}

TEST_F(HandleDevice, F298_RecordedTimesAreThoseOfTheDevice) {
  const auto session = OnDevice({testing::Placeholder("a", PartialShape::Of({200, 200})),
                                 {"product", "MatMul", {"a", "a"}, testing::kFloat},
                                 {"sum", "AddV2", {"product", "a"}, testing::kFloat}});
  ASSERT_NE(session, nullptr);
  const Tensor a = Tensor::Of<float>(Shape::Of({200, 200}), std::vector<float>(40000, 1.0f));
  const std::vector<session::Feed> feeds = {{"a:0", a}};
  const auto measured = session->MeasureStep(feeds, std::vector<std::string>{"sum:0"}, {}, 3);
  ASSERT_TRUE(measured.ok()) << measured.status().ToString();
  EXPECT_GT(measured->node_ns.at("product"), 100000);
  for (const char* recorded : {"\"MatMul float[200,200] float[200,200]", "\"AddV2 float[200,200] float[200,200]"}) {
    EXPECT_NE(measured->profile.find(recorded), std::string::npos) << measured->profile;
  }
}

TEST_F(HandleDevice, MemoryIsReportedByThePluginOnceTheDeviceIsOpen) {
  const Result<std::shared_ptr<session::Runtime>> fresh = Load();
  ASSERT_TRUE(fresh.ok()) << fresh.status().ToString();
  device::Device* const device = (*fresh)->plugins->devices().Find(kThere);
  ASSERT_NE(device, nullptr);
  const auto reported = [&] { return device->reported_memory(); };
  EXPECT_FALSE(reported().has_value()) << "it is not open";
  const auto block = device->allocator().Allocate(1000);
  ASSERT_TRUE(block.ok()) << block.status().ToString();
  EXPECT_EQ((*block)->memory().offset % 256, 0u);
  ASSERT_TRUE(reported().has_value());
  EXPECT_EQ(reported()->total, uint64_t{64} << 20);
  EXPECT_LT(reported()->free, reported()->total);
}

}  // namespace
}  // namespace weir
