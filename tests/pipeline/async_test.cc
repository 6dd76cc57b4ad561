// Whole graphs on the asynchronous device: alone, and cut at random between two such devices and the CPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "core/base/errors.h"
#include "core/client/extra.h"
#include "core/client/graph/graph_internal.h"
#include "core/client/session/session_interface.h"
#include "tests/support/async_plugins.h"
#include "tests/support/random_cut.h"
#include "tools/examples/digits/digits.h"

namespace weir {
namespace {

const std::vector<std::string> kDevices = {"/device:CPU:0", "/device:ASYNC:0", "/device:ASYNC:1"};

class AsyncPipeline : public testing::AsyncTest {
 protected:
  void SetUp() override {
    plugin::LoadOptions options;
    options.folders = {plugins_.folder()};
    Result<std::shared_ptr<session::Runtime>> runtime = session::Runtime::Load(options);
    ASSERT_TRUE(runtime.ok()) << runtime.status().ToString();
    runtime_ = std::move(*runtime);
    testing::AsyncTest::SetUp();
  }
  std::shared_ptr<session::Runtime> runtime_;
};

/// The network of the digits example, small steps.
struct Training {
  explicit Training(uint32_t seed = 20) : in(graph) {
    SetRandomSeed(seed);
    images = Placeholder(DType::kFloat, PartialShape::Of({-1, digits::kPixels}), "images");
    labels = Placeholder(DType::kInt64, PartialShape::Of({-1}), "labels");
    const Output hidden = Dense(images, 32, Relu, "hidden");
    const Output logits = Dense(hidden, digits::kClasses, {}, "logits");
    loss = ReduceMean(SparseSoftmaxCrossEntropyWithLogits(labels, logits), {}, {.name = "loss"});
    accuracy = ReduceMean(Cast(Equal(ArgMax(logits, 1), labels), DType::kFloat), {}, {.name = "accuracy"});
    step = Variable(Tensor::Scalar<int64_t>(0), {.name = "global_step", .trainable = false});
    train = AdamOptimizer(0.003).Minimize(loss, {.global_step = step});
    init = GlobalVariablesInitializer();
  }

  /// Loss and accuracy after some steps. `apart`: each device runs a separate part.
  Result<std::vector<Tensor>> Run(const std::shared_ptr<session::Runtime>& runtime, const digits::Digits& data,
                                  const std::string& device, int steps, bool apart = false) {
    session::SessionOptions options;
    options.default_device = device;
    options.cut_between_devices = apart;
    options.operation_timeout_in_ms = 60000;
    Session session(graph, InProcess(graph, options, runtime));
    WEIR_TRY(session.status());
    WEIR_TRY(session.Run(init).status());
    for (int i = 0; i < steps; ++i) {
      const digits::Batch batch = data.Slice(i * 16, i * 16 + 16);
      WEIR_TRY(session.Run(train, {{images, batch.images}, {labels, batch.labels}}).status());
    }
    const digits::Batch sample = data.Slice(0, 64);
    const Fetch::List fetches = {loss, accuracy, step};
    WEIR_ASSIGN(const Fetched now, session.Run(fetches, {{images, sample.images}, {labels, sample.labels}}));
    return std::vector<Tensor>{now[0].tensor(), now[1].tensor(), now[2].tensor()};
  }

  Graph graph;
  AsDefault in;
  Output images, labels, loss, accuracy;
  Variable step;
  Operation train, init;
};

Result<digits::Digits> LoadDigits() {
  const char* source = std::getenv("WEIR_SOURCE_DIR");
  return digits::Digits::Load(std::string(source == nullptr ? "." : source) + "/tools/examples/digits/digits.csv");
}

bool Same(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  for (size_t i = 0; i < a.size(); ++i) {
    if (!a[i].SameBits(b[i])) return false;
  }
  return a.size() == b.size();
}

TEST_F(AsyncPipeline, TrainingAloneGivesTheBitsOfTheCpu) {
  Result<digits::Digits> data = LoadDigits();
  ASSERT_TRUE(data.ok()) << data.status().ToString();
  Training t;
  const auto wanted = t.Run(runtime_, *data, "CPU:0", 40);
  ASSERT_TRUE(wanted.ok()) << wanted.status().ToString();
  plugins_.Configure("", {{"jitter_us", 20}});
  const auto got = t.Run(runtime_, *data, "ASYNC:0", 40);
  ASSERT_TRUE(got.ok()) << got.status().ToString();
  EXPECT_TRUE(Same(*wanted, *got)) << (*got)[0].SummarizeValues() << " instead of " << (*wanted)[0].SummarizeValues();
  EXPECT_GT(plugins_.Counts().operations, 40u * 20u) << "the work ran somewhere else";
}

TEST_F(AsyncPipeline, F018_RandomCutsOfTrainingGiveOneResult) {
  Result<digits::Digits> data = LoadDigits();
  ASSERT_TRUE(data.ok()) << data.status().ToString();
  const char* given = std::getenv("WEIR_ASYNC_CUTS");
  constexpr int kCuts = WEIR_SANITIZER_KIND == 0 ? 1000 : 60;  // with sanitizers a cut takes up to a second
  const int cuts = given == nullptr ? kCuts : std::atoi(given);
  Training t;
  const auto wanted = t.Run(runtime_, *data, "CPU:0", 3);
  ASSERT_TRUE(wanted.ok()) << wanted.status().ToString();
  for (int seed = 0; seed < cuts; ++seed) {
    std::mt19937 random(static_cast<uint32_t>(seed));
    testing::PlaceAtRandom(kDevices, random, Internals(t.graph).definition);
    const auto got = t.Run(runtime_, *data, "", 3);
    ASSERT_TRUE(got.ok()) << "seed " << seed << ": " << got.status().ToString();
    ASSERT_TRUE(Same(*wanted, *got)) << "seed " << seed;
    if (seed % 10 != 0) continue;
    const auto apart = t.Run(runtime_, *data, "", 3, true);
    ASSERT_TRUE(apart.ok()) << "seed " << seed << ": " << apart.status().ToString();
    ASSERT_TRUE(Same(*wanted, *apart)) << "seed " << seed;
  }
  EXPECT_EQ(plugins_.Counts().races, 0u);
}

TEST_F(AsyncPipeline, CopiesRunBesideKernels) {
  constexpr int kKernels = 6;
  Graph graph;
  const AsDefault in(graph);
  Output sum = Placeholder(DType::kFloat, PartialShape::Of({64}), "x");
  Feeds feeds = {{sum, std::vector<float>(64, 1.0f)}};
  Fetch::List sums;
  for (int i = 0; i < kKernels; ++i) {
    const Output w = Placeholder(DType::kFloat, PartialShape::Of({64}));
    feeds.emplace_back(w, std::vector<float>(64, static_cast<float>(i)));
    sum = BuildOp("AddV2", {sum, w}).output(0);
    sums.emplace_back(sum);
  }
  session::SessionOptions options;
  options.default_device = "ASYNC:0";
  Session session(graph, InProcess(graph, options, runtime_));
  ASSERT_TRUE(session.Run(sums, feeds).ok()) << "makes the plan";
  constexpr auto kLatency = std::chrono::milliseconds(5);
  plugins_.Configure("", {{"latency_us", std::chrono::microseconds(kLatency).count()}});
  auto shortest = std::chrono::steady_clock::duration::max();
  uint64_t operations = 0;
  for (int attempt = 0; attempt < 3; ++attempt) {
    plugins_.Reset();
    const auto begin = std::chrono::steady_clock::now();
    const Result<Fetched> got = session.Run(sums, feeds);
    shortest = std::min(shortest, std::chrono::steady_clock::now() - begin);
    ASSERT_TRUE(got.ok()) << got.status().ToString();
    EXPECT_EQ((*got)[kKernels - 1].tensor().as<float>()[63], 1.0f + kKernels * (kKernels - 1) / 2);
    operations = plugins_.Counts().operations;
  }
  EXPECT_EQ(operations, 1u + 3 * kKernels) << "an upload and a download for each kernel";
  EXPECT_LT(shortest, kLatency * operations) << "one behind the other they cannot take less";
}

TEST_F(AsyncPipeline, RunsThatShareVariablesOfTheDeviceTakeTurns) {
  Graph graph;
  const AsDefault in(graph);
  const Variable v(std::vector<float>(1000, 0.0f), {.name = "v"});
  const Output add = v.AssignAdd(std::vector<float>(1000, 1.0f));
  const Output twice = BuildOp("AddV2", {v.value(), v.value()}).output(0);
  const Operation init = GlobalVariablesInitializer();
  session::SessionOptions options;
  options.default_device = "ASYNC:0";
  Session session(graph, InProcess(graph, options, runtime_));
  ASSERT_TRUE(session.Run(init).ok());
  plugins_.Configure("", {{"jitter_us", 50}});
  constexpr int kThreads = 4, kRuns = 50;
  std::vector<Status> failures(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kRuns && failures[static_cast<size_t>(t)].ok(); ++i) {
        const Result<Fetched> updated = session.Run(add);
        if (!updated.ok()) failures[static_cast<size_t>(t)] = updated.status();
        const Result<Fetched> read = session.Run(twice);
        if (!read.ok()) {
          failures[static_cast<size_t>(t)] = read.status();
          continue;
        }
        const auto values = read->tensor().as<float>();
        if (values[0] != values[999]) failures[static_cast<size_t>(t)] = Internal("a torn read");
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Status& failure : failures) EXPECT_TRUE(failure.ok()) << failure.ToString();
  const Result<Fetched> all = session.Run(v);
  ASSERT_TRUE(all.ok()) << all.status().ToString();
  EXPECT_EQ(all->tensor().as<float>()[500], float{kThreads * kRuns});
}

TEST_F(AsyncPipeline, LosingTheDeviceFailsTheSessionAndNotTheProcess) {
  Graph graph;
  const AsDefault in(graph);
  const Output x = Placeholder(DType::kFloat, PartialShape::Of({-1}), "x");
  const Output y = BuildOp("Exp", {BuildOp("Neg", {x}).output(0)}).output(0);
  session::SessionOptions on_async, on_cpu;
  on_async.default_device = "ASYNC:0";
  on_cpu.default_device = "CPU:0";
  Session async(graph, InProcess(graph, on_async, runtime_)), cpu(graph, InProcess(graph, on_cpu, runtime_));
  const Feeds feeds = {{x, std::vector<float>{1, 2, 3}}};
  ASSERT_TRUE(Eval(y, feeds, &async).ok());
  // Loses the device at every point of a step.
  plugins_.Configure("async-0", {{"lose_at", 2}});
  const Result<Tensor> lost = Eval(y, feeds, &async);
  EXPECT_EQ(lost.status().code(), Code::kUnavailable) << lost.status().ToString();
  EXPECT_NE(lost.status().message().find("is lost"), std::string::npos) << lost.status().ToString();
  const Result<Tensor> later = Eval(y, feeds, &async);
  EXPECT_EQ(later.status().code(), Code::kUnavailable) << later.status().ToString();
  EXPECT_NE(later.status().message().find("the device was lost"), std::string::npos) << later.status().ToString();
  EXPECT_TRUE(Eval(y, feeds, &cpu).ok());
}

TEST_F(AsyncPipeline, MemoryThatCannotBeHadIsResourceExhausted) {
  Graph graph;
  const AsDefault in(graph);
  const Output x = Placeholder(DType::kFloat, PartialShape::Of({-1}), "x");
  const Output y = BuildOp("Neg", {x}).output(0);
  session::SessionOptions options;
  options.default_device = "ASYNC:1";
  Session session(graph, InProcess(graph, options, runtime_));
  ASSERT_TRUE(Eval(y, {{x, std::vector<float>{1, 2, 3}}}, &session).ok()) << "opens the device";
  plugins_.Configure("async-1", {{"fail_alloc", 1}});
  const Result<Tensor> failed = Eval(y, {{x, std::vector<float>(1 << 20)}}, &session);
  EXPECT_EQ(failed.status().code(), Code::kResourceExhausted) << failed.status().ToString();
  plugins_.Configure("async-1", {{"fail_alloc", 0}});
  const Result<Tensor> fine = Eval(y, {{x, std::vector<float>(1 << 20)}}, &session);
  EXPECT_TRUE(fine.ok()) << fine.status().ToString();
}

TEST_F(AsyncPipeline, F318_ADeviceThatHangsEndsTheStepAndIsLost) {
  Graph graph;
  const AsDefault in(graph);
  const Output x = Placeholder(DType::kFloat, PartialShape::Of({-1}), "x");
  const Output y = BuildOp("Exp", {BuildOp("Neg", {x}).output(0)}).output(0);
  session::SessionOptions on_async, on_cpu;
  on_async.default_device = "ASYNC:1";
  on_async.cancel_limit_ms = 50;
  on_cpu.default_device = "CPU:0";
  Session async(graph, InProcess(graph, on_async, runtime_)), cpu(graph, InProcess(graph, on_cpu, runtime_));
  const Feeds feeds = {{x, std::vector<float>{1, 2, 3}}};
  ASSERT_TRUE(Eval(y, feeds, &async).ok());
  plugins_.Configure("async-1", {{"hang_at", 1}});
  session::RunOptions options;
  options.timeout_in_ms = 50;
  const Status hung = async.Run(y, feeds, options, nullptr).status();
  EXPECT_EQ(hung.code(), Code::kDeadlineExceeded) << hung.ToString();
  EXPECT_NE(hung.message().find("device:ASYNC:1 did not do its work within 50 ms after that and counts as lost"),
            std::string::npos)
      << hung.ToString();
  const Status later = Eval(y, feeds, &async).status();
  EXPECT_EQ(later.code(), Code::kUnavailable) << later.ToString();
  EXPECT_NE(later.message().find("the device was lost"), std::string::npos) << later.ToString();
  EXPECT_TRUE(Eval(y, feeds, &cpu).ok());
  plugins_.Configure("async-1", {{"hang_at", -1}});
}

}  // namespace
}  // namespace weir
