// Programs on two emulated GPUs, whose memory the host cannot read: towers, faults in a step, memory that runs out.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/client/extra.h"
#include "core/client/session/session_interface.h"
#include "core/session/runtime.h"
#include "core/session/session.h"
#include "core/tensor/number.h"
#include "plugins/gpu/platform/emulated_queue.h"
#include "sdk/abi/plugin.h"
#include "tests/support/gpu_plugins.h"

namespace weir {
namespace {

using testing::GpuFolder;
using testing::GpuOptions;

/// Empty, or the difference between an error and the wanted one.
std::string NotAnError(const Status& status, Code code, std::string_view text) {
  const bool as_wanted = status.code() == code && status.message().find(text) != std::string::npos;
  return as_wanted ? "" : std::string(text) + " is wanted, not " + status.ToString();
}

/// The elements of a fetch; empty on an error, which fails the test.
std::vector<double> ValuesOf(Session& session, const Fetch& fetch, const Feeds& feeds = {}) {
  const Result<Fetched> fetched = session.Run(fetch, feeds);
  EXPECT_TRUE(fetched.ok()) << fetched.status().ToString();
  std::vector<double> values;
  if (!fetched.ok()) return values;
  for (int64_t i = 0; i < fetched->tensor().elements(); ++i) values.push_back(ElementAsDouble(fetched->tensor(), i));
  return values;
}

/// The plugins are copied anew for each test.
class GpuSessions : public ::testing::Test {
 protected:
  void Load(const GpuOptions& options, config::Config config = {}) {
    runtime_.reset();
    folder_ = std::make_unique<GpuFolder>();
    ASSERT_FALSE(folder_->path().empty()) << "the plugins are not built";
    const plugin::LoadOptions load = folder_->Load(options, std::move(config));
    Result<std::shared_ptr<session::Runtime>> runtime = session::Runtime::Load(load);
    ASSERT_TRUE(runtime.ok()) << runtime.status().ToString();
    runtime_ = *runtime;
  }
  Result<std::unique_ptr<SessionInterface>> Open(Graph& graph, bool soft_placement = false) {
    session::SessionOptions options;
    options.allow_soft_placement = soft_placement;
    options.constant_folding = false;
    options.placement_log = [](const std::string&) {};
    return InProcess(graph, options, runtime_);
  }
  device::Device* Gpu(int i) const {
    return runtime_->plugins->devices().Find("/job:localhost/replica:0/task:0/device:GPU:" + std::to_string(i));
  }

  std::unique_ptr<GpuFolder> folder_;
  std::shared_ptr<session::Runtime> runtime_;
};

/// The mean of each variable's gradients over the towers.
std::vector<GradientAndVariable> MeanOfTowers(const std::vector<std::vector<GradientAndVariable>>& towers) {
  std::vector<GradientAndVariable> mean;
  for (size_t v = 0; v < towers[0].size(); ++v) {
    std::vector<Operand> each;
    for (const std::vector<GradientAndVariable>& tower : towers)
      each.emplace_back(ExpandDims(tower[v].first.values, 0));
    mean.push_back(towers[0][v]);
    mean.back().first.values = ReduceMean(Concat(each, 0), 0);
  }
  return mean;
}

struct TowersOnCards {
  Graph graph;
  AsDefault in{graph};
  Feeds feeds;
  Operation train;
  std::vector<Output> losses;
  std::vector<Variable> variables;
};

/// Regression of y on x with shared variables on the CPU and a tower on each of `devices`.
void BuildTowers(TowersOnCards& towers, const std::vector<std::string>& devices) {
  std::vector<float> xs(64 * 8), ys(64);
  for (size_t i = 0; i < xs.size(); ++i) xs[i] = static_cast<float>((i * 37) % 11) / 11.0f - 0.5f;
  for (size_t i = 0; i < ys.size(); ++i) ys[i] = xs[8 * i] * 2 - xs[8 * i + 3] + 0.25f;
  std::vector<std::vector<GradientAndVariable>> all;
  GradientDescentOptimizer optimizer(0.2);
  const size_t rows = 64 / devices.size();
  for (size_t t = 0; t < devices.size(); ++t) {
    const NameScope scope("tower_" + std::to_string(t));
    const VariableScope shared("model", {.reuse = Reuse::kAuto});
    Output w, b;
    {
      const DeviceScope on_cpu("/cpu:0");
      w = GetVariable("w", {.shape = Shape::Of({8, 1}), .initializer = ZerosInitializer()});
      b = GetVariable("b", {.shape = Shape::Of({1}), .initializer = ZerosInitializer()});
    }
    const DeviceScope on(devices[t]);
    const Output x = Placeholder(DType::kFloat, PartialShape::Of({-1, 8})),
                 y = Placeholder(DType::kFloat, PartialShape::Of({-1, 1}));
    const Output loss = ReduceMean(Square(MatMul(x, w) + b - y));
    towers.losses.push_back(loss);
    Result<std::vector<GradientAndVariable>> pairs = optimizer.ComputeGradients(loss);
    ASSERT_TRUE(pairs.ok()) << pairs.status().ToString();
    all.push_back(*pairs);
    const auto cut = [&](const std::vector<float>& from, size_t columns) {
      const auto begin = from.begin() + static_cast<std::ptrdiff_t>(t * rows * columns);
      return Tensor::Of<float>(Shape::Of({static_cast<int64_t>(rows), static_cast<int64_t>(columns)}),
                               {begin, begin + static_cast<std::ptrdiff_t>(rows * columns)});
    };
    towers.feeds.emplace_back(x, cut(xs, 8));
    towers.feeds.emplace_back(y, cut(ys, 1));
  }
  const DeviceScope on_cpu("/cpu:0");
  const Result<Operation> train = optimizer.ApplyGradients(MeanOfTowers(all));
  ASSERT_TRUE(train.ok()) << train.status().ToString();
  towers.train = *train;
  towers.variables = GlobalVariables();
}

TEST_F(GpuSessions, TowersOnTwoCardsTrainAsOneOnTheCpu) {
  ASSERT_NO_FATAL_FAILURE(Load({{"speed", "1,0.5"}, {"latency_us", "20"}}));
  std::vector<std::vector<double>> trained;
  for (const std::vector<std::string>& devices :
       {std::vector<std::string>{"/cpu:0"}, {"/gpu:0", "/gpu:1"}, {"/gpu:1", "/gpu:0", "/cpu:0", "/gpu:1"}}) {
    TowersOnCards towers;
    ASSERT_NO_FATAL_FAILURE(BuildTowers(towers, devices));
    Session session(towers.graph, Open(towers.graph));
    ASSERT_TRUE(session.status().ok()) << session.status().ToString();
    const Status initialized = session.Run(GlobalVariablesInitializer()).status();
    ASSERT_TRUE(initialized.ok()) << initialized.ToString();
    double first = 0, last = 0;
    for (int step = 0; step < 20; ++step) {
      last = 0;
      for (const Output& loss : towers.losses) last += ValuesOf(session, loss, towers.feeds).at(0);
      if (step == 0) first = last;
      const Status trained_step = session.Run(towers.train, towers.feeds).status();
      ASSERT_TRUE(trained_step.ok()) << trained_step.ToString();
    }
    EXPECT_LT(last, first / 2);
    std::vector<double>& values = trained.emplace_back();
    for (const Variable& v : towers.variables) {
      for (const double value : ValuesOf(session, v)) values.push_back(value);
    }
  }
  for (const std::vector<double>& values : trained) {
    ASSERT_EQ(values.size(), 9u);
    for (size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(values[i], trained[0][i], 1e-5) << i;
  }
  EXPECT_GT(Gpu(0)->memory_use().peak, 0u);
  EXPECT_GT(Gpu(1)->memory_use().peak, 0u);
}

TEST_F(GpuSessions, GradientsRunWhereTheirOpsAreRequiredToRun) {
  ASSERT_NO_FATAL_FAILURE(Load({{"devices", "1"}}));
  std::vector<std::vector<double>> all;
  for (const char* device : {"/cpu:0", "/gpu:0"}) {
    Graph graph;
    const AsDefault in(graph);
    const DeviceScope on(device);
    const Output x = Placeholder(DType::kFloat, PartialShape()), y = Placeholder(DType::kFloat, PartialShape());
    const Output rows = BuildOp("Where", {Greater(y, 0.0f)}).output(0);
    const Output picked = BuildOp("GatherNd", {ReduceSum(Tanh(x * y + 0.5f), 0), rows}).output(0);
    const Tensor paddings = Tensor::Of<int32_t>(Shape::Of({1, 2}), {1, 2});
    const Output mirrored = BuildOp("MirrorPad", {y, paddings}, {{"mode", "REFLECT"}}).output(0);
    const Output loss = ReduceSum(Square(picked)) + ReduceMean(Concat({mirrored, Square(mirrored)}, 0));
    const auto gradients = Gradients({loss}, {x, y});
    ASSERT_TRUE(gradients.ok()) << gradients.status().ToString();
    Session session(graph, Open(graph));
    const Feeds feeds = {{x, Tensor::Of<float>(Shape::Of({2, 1}), {1, 2})}, {y, Tensor::Vector<float>({0.5, -1, 2})}};
    std::vector<double>& values = all.emplace_back();
    for (const Gradient& gradient : *gradients) {
      for (const double value : ValuesOf(session, gradient.values, feeds)) values.push_back(value);
    }
  }
  ASSERT_EQ(all[0].size(), 5u);
  ASSERT_EQ(all[1].size(), 5u);
  for (size_t i = 0; i < 5; ++i) EXPECT_NEAR(all[0][i], all[1][i], 1e-5) << i;
}

TEST_F(GpuSessions, ACardLostInAStepFailsThatSessionAndTheOtherCardGoesOn) {
  ASSERT_NO_FATAL_FAILURE(Load({{"lose_at", "6"}, {"fault_device", "0"}}));
  Graph graph;
  const AsDefault in(graph);
  const Output x = Placeholder(DType::kFloat, PartialShape::Of({-1, 4}));
  std::vector<Output> squares;
  for (const char* device : {"/gpu:0", "/gpu:1"}) {
    const DeviceScope on(device);
    squares.push_back(Square(x, "square_on_" + std::string(1, device[5])));
  }
  Session session(graph, Open(graph));
  const Feeds feeds = {{x, Tensor::Of<float>(Shape::Of({1, 4}), {1, 2, 3, 4})}};
  Status lost;
  for (int i = 0; i < 8 && lost.ok(); ++i) lost = session.Run(squares[0], feeds).status();
  EXPECT_EQ(NotAnError(lost, Code::kUnavailable, "GPU:0"), "");
  const Status later = session.Run(squares[0], feeds).status();
  EXPECT_EQ(NotAnError(later, Code::kUnavailable, "the device was lost"), "");
  for (int i = 0; i < 8; ++i) EXPECT_EQ(ValuesOf(session, squares[1], feeds), (std::vector<double>{1, 4, 9, 16}));
}

TEST_F(GpuSessions, AStepThatExceedsTheCapNamesTheLargestHoldersAndTheCap) {
  config::Config config;
  config.device["GPU:0"].memory_limit_mb = 8;
  ASSERT_NO_FATAL_FAILURE(Load({}, config));
  Graph graph;
  const AsDefault in(graph);
  const DeviceScope on("/gpu:0");
  const Output x = Placeholder(DType::kFloat, PartialShape::Of({-1, 1024}), "x");
  const Output squared = Square(x, "squared"), sum = Add(MatMul(x, x, {.transpose_b = true}), 1.0f);
  Session session(graph, Open(graph));
  const auto rows = [](int64_t n) {
    return Tensor::Of<float>(Shape::Of({n, 1024}), std::vector<float>(static_cast<size_t>(n) * 1024, 1.0f));
  };
  EXPECT_TRUE(session.Run(squared, {{x, rows(256)}}).ok());
  const Status exhausted = session.Run({squared, sum}, {{x, rows(4096)}}).status();
  EXPECT_EQ(NotAnError(exhausted, Code::kResourceExhausted, "memory_limit_mb"), "");
  for (const char* holder : {"GPU:0", "squared", "MatMul", "float [4096,1024]", "float [4096,4096]"}) {
    EXPECT_NE(exhausted.message().find(holder), std::string::npos) << holder << "\n" << exhausted.message();
  }
  EXPECT_TRUE(session.Run(squared, {{x, rows(256)}}).ok()) << "memory came back";
}

TEST_F(GpuSessions, AKernelThatHangsIsGivenUpAtTheDeadline) {
  ASSERT_NO_FATAL_FAILURE(Load({{"hang_at", "1"}, {"fault_device", "1"}}));
  Graph graph;
  const AsDefault in(graph);
  const Output x = Placeholder(DType::kFloat, PartialShape::Of({-1}));
  Output square;
  {
    const DeviceScope on("/gpu:1");
    square = Square(x);
  }
  session::SessionOptions options;
  options.constant_folding = false;
  options.operation_timeout_in_ms = 200;
  Session session(graph, InProcess(graph, options, runtime_));
  const Status late = session.Run(square, {{x, Tensor::Vector<float>({1, 2})}}).status();
  EXPECT_EQ(late.code(), Code::kDeadlineExceeded) << late.ToString();
}

/// What the emulated cards of a loaded folder recorded and replayed so far.
struct CaptureCounts {
  explicit CaptureCounts(const GpuFolder& folder) {
    void* const library = dlopen((folder.path() + "/gpu_emulated.so").c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    void* const query = library == nullptr ? nullptr : dlsym(library, WEIR_PLUGIN_QUERY_SYMBOL);
    if (query == nullptr) return;
    const weir_plugin* const plugin =
        reinterpret_cast<weir_plugin_query_fn>(query)(WEIR_ABI_MAJOR, WEIR_ABI_MINOR);
    const std::string_view id = WEIR_EMULATED_COUNTS_INTERFACE;
    counts = static_cast<const weir_emulated_counts*>(plugin->get_interface({id.data(), id.size()}));
  }
  int captures() const { return counts == nullptr ? -1 : static_cast<int>(counts->captures()); }
  int replays() const { return counts == nullptr ? -1 : static_cast<int>(counts->replays()); }
  const weir_emulated_counts* counts = nullptr;
};

/// A chain of ops on a vector.
Output Chain(const Output& x, int length) {
  Output y = x;
  for (int i = 0; i < length; ++i) y = i % 2 == 0 ? Tanh(y) : y * y + x;
  return y;
}

TEST_F(GpuSessions, RepeatedStepsAreRecordedAtTheThirdRunAndLaunchedAsAWhole) {
  ASSERT_NO_FATAL_FAILURE(Load({{"devices", "1"}, {"latency_us", "50"}}));
  const CaptureCounts counts(*folder_);
  ASSERT_EQ(counts.captures(), 0);
  Graph graph;
  const AsDefault in(graph);
  const Output x = Placeholder(DType::kFloat, PartialShape::Of({-1}));
  Output on_card, on_host;
  {
    const DeviceScope on("/gpu:0");
    on_card = Chain(x, 12);
  }
  {
    const DeviceScope on("/cpu:0");
    on_host = Chain(x, 12);
  }
  Session session(graph, Open(graph));
  // Feeds and lengths change; a plan belongs to one length, and is recorded for it.
  for (int step = 0; step < 18; ++step) {
    std::vector<float> values(static_cast<size_t>(step % 2 == 0 ? 5 : 64));
    for (size_t i = 0; i < values.size(); ++i) values[i] = 0.01f * static_cast<float>(i + 7 * step) - 0.5f;
    const Feeds feeds = {{x, Tensor::Of<float>(Shape::Of({static_cast<int64_t>(values.size())}), values)}};
    const std::vector<double> card = ValuesOf(session, on_card, feeds), host = ValuesOf(session, on_host, feeds);
    ASSERT_EQ(card.size(), values.size());
    for (size_t i = 0; i < card.size(); ++i) ASSERT_NEAR(card[i], host[i], 1e-5) << "step " << step << ", " << i;
    if (step < 4) {
      EXPECT_EQ(counts.captures(), 0) << "step " << step;
    }
  }
  EXPECT_GE(counts.captures(), 2);
  EXPECT_LE(counts.captures(), 6);
  EXPECT_GE(counts.replays(), 2 * (9 - 2));
}

TEST_F(GpuSessions, KernelsThatTakeConstantsFromTheHostAreRecordedWithTheOthers) {
  ASSERT_NO_FATAL_FAILURE(Load({{"devices", "1"}, {"latency_us", "20"}}));
  const CaptureCounts counts(*folder_);
  Graph graph;
  const AsDefault in(graph);
  const Output x = Placeholder(DType::kFloat, PartialShape::Of({2, 3}));
  Output y;
  {
    const DeviceScope on("/gpu:0");
    // Orders and axes lie in host memory.
    y = Tanh(Transpose(Tanh(x), {1, 0}));
    y = Tanh(ReduceSum(y, 1));
    y = Tanh(Tile(y, std::vector<int>{2}));
  }
  Session session(graph, Open(graph));
  for (int step = 0; step < 8; ++step) {
    std::vector<float> values(6);
    for (size_t i = 0; i < 6; ++i) values[i] = 0.1f * static_cast<float>(i) - 0.05f * static_cast<float>(step);
    const std::vector<double> got = ValuesOf(session, y, {{x, Tensor::Of<float>(Shape::Of({2, 3}), values)}});
    ASSERT_EQ(got.size(), 6u);
    for (size_t i = 0; i < 6; ++i) {
      const float sum = std::tanh(std::tanh(values[i % 3])) + std::tanh(std::tanh(values[i % 3 + 3]));
      ASSERT_NEAR(got[i], std::tanh(std::tanh(sum)), 1e-5) << "step " << step << ", element " << i;
    }
  }
  EXPECT_EQ(counts.captures(), 1);  // one stretch from the feed to the fetch
  EXPECT_GE(counts.replays(), 4);
}

TEST_F(GpuSessions, StepsWithVariablesThatMoveAreRightWhetherRecordedOrNot) {
  ASSERT_NO_FATAL_FAILURE(Load({{"devices", "1"}, {"latency_us", "20"}}));
  const CaptureCounts counts(*folder_);
  Graph graph;
  const AsDefault in(graph);
  const DeviceScope on("/gpu:0");
  const Variable v(Tensor::Vector<float>({1, 2, 3}), {.name = "v"});
  const Output value = Placeholder(DType::kFloat, PartialShape::Of({3}));
  const Output assign = v.Assign(value), add = v.AssignAdd(OnesLike(value));
  const Output y = Chain(v + value, 6);
  Session session(graph, Open(graph, true));
  ASSERT_TRUE(session.Run(GlobalVariablesInitializer()).ok());
  std::vector<float> own = {1, 2, 3};
  for (int step = 0; step < 30; ++step) {
    const float f = 0.1f * static_cast<float>(step % 7);
    const Feeds feeds = {{value, Tensor::Vector<float>({f, -f, 0.5f})}};
    if (step % 6 == 5) {
      ASSERT_TRUE(session.Run(assign, feeds).ok());
      own = {f, -f, 0.5f};
    }
    if (step % 2 == 0) {
      ASSERT_TRUE(session.Run(add, feeds).ok());
      for (float& element : own) element += 1;
    }
    const std::vector<double> got = ValuesOf(session, y, feeds);
    ASSERT_EQ(got.size(), 3u);
    const std::vector<float> given = {f, -f, 0.5f};
    for (size_t i = 0; i < 3; ++i) {
      const float x = own[i] + given[i];
      float wanted = x;
      for (int k = 0; k < 6; ++k) wanted = k % 2 == 0 ? std::tanh(wanted) : wanted * wanted + x;
      ASSERT_NEAR(got[i], wanted, 1e-4 * (1 + std::abs(wanted))) << "step " << step << ", element " << i;
    }
  }
  EXPECT_GT(counts.replays(), 0);
}

TEST_F(GpuSessions, ACardLostInARecordedStepFailsTheStep) {
  ASSERT_NO_FATAL_FAILURE(Load({{"devices", "1"}, {"lose_at", "60"}}));
  Graph graph;
  const AsDefault in(graph);
  const Output x = Placeholder(DType::kFloat, PartialShape::Of({-1}));
  Output y;
  {
    const DeviceScope on("/gpu:0");
    y = Chain(x, 6);
  }
  Session session(graph, Open(graph));
  Status lost;
  for (int i = 0; i < 30 && lost.ok(); ++i) lost = session.Run(y, {{x, Tensor::Vector<float>({1, 2})}}).status();
  EXPECT_EQ(NotAnError(lost, Code::kUnavailable, "GPU:0"), "");
  EXPECT_GT(CaptureCounts(*folder_).replays(), 0);
}

}  // namespace
}  // namespace weir
