// Ops that complete later: they hold no thread, end with their step, and are harmless if they never complete.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <list>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "core/base/errors.h"
#include "core/session/session.h"
#include "tests/support/text_graph.h"
#include "tests/unit/session/flow.h"

namespace weir::session {
namespace {

using namespace std::chrono_literals;
using testing::kFloat;
using testing::NodeLine;

/// Ops (CheckNumerics) that wait until they are served or their step ends.
class WaitingOps {
 public:
  WaitingOps() {
    plugin::LoadOptions options;
    options.folders = {WEIR_WAITING_PLUGINS};
    options.kernels.AddHostAsync("CheckNumerics", [this](kernel::BuiltinCall call, runtime::Completion done) {
      Wait(std::move(call), std::move(done));
    });
    Result<std::shared_ptr<Runtime>> loaded = Runtime::Load(options);
    EXPECT_TRUE(loaded.ok()) << loaded.status().ToString();
    if (loaded.ok()) runtime_ = *loaded;
  }
  std::shared_ptr<Runtime> runtime() const { return runtime_; }

  size_t waiting() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return waiters_.size();
  }
  int cancelled() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return cancelled_;
  }
  /// Completes one waiting op, if there is any, with its input.
  bool Serve(std::mt19937& random) {
    std::list<Waiter> one;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (waiters_.empty()) return false;
      auto chosen = waiters_.begin();
      std::advance(chosen, static_cast<int64_t>(random() % std::min<size_t>(waiters_.size(), 50)));
      one.splice(one.begin(), waiters_, chosen);
    }
    one.front().cancel.Deregister();
    one.front().done(std::vector<Tensor>{one.front().input});
    return true;
  }

 private:
  struct Waiter {
    Tensor input;
    runtime::Completion done;
    runtime::CancelCallback cancel;
  };

  void Wait(kernel::BuiltinCall call, runtime::Completion done) {
    std::list<Waiter> one(1);
    const auto waiter = one.begin();
    waiter->input = call.inputs[0];
    waiter->done = std::move(done);
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      waiters_.splice(waiters_.end(), one);
      // The callback takes the lock, so it runs after this block.
      if (waiter->cancel.Register(*call.cancellation, [this, waiter, step = call.cancellation] { End(waiter, *step); }))
        return;
      one.splice(one.begin(), waiters_, waiter);
    }
    one.front().done(call.cancellation->status());
  }

  void End(std::list<Waiter>::iterator waiter, const runtime::Cancellation& step) {
    std::list<Waiter> one;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      const auto same = [&](const Waiter& other) { return &other == &*waiter; };
      if (std::ranges::none_of(waiters_, same)) return;
      one.splice(one.begin(), waiters_, waiter);
      ++cancelled_;
    }
    one.front().done(step.status());
  }

  std::shared_ptr<Runtime> runtime_;
  mutable std::mutex mutex_;  // protects both
  std::list<Waiter> waiters_;
  int cancelled_ = 0;
};

struct Wide {
  Wide(const WaitingOps& ops, int width, int threads, int64_t cancel_limit_ms = SessionOptions().cancel_limit_ms) {
    std::vector<NodeLine> nodes = {kX};
    for (int i = 0; i < width; ++i) {
      names.push_back("w" + std::to_string(i));
      nodes.push_back({names.back(), "CheckNumerics", {"x"}, {{"T", DType::kFloat}, {"message", std::string("m")}}});
    }
    graph = testing::MakeGraph(nodes);
    SessionOptions options;
    options.inter_op_parallelism_threads = threads;
    options.common_subexpressions = false;
    options.cancel_limit_ms = cancel_limit_ms;
    Result<std::unique_ptr<Session>> made = Session::Make(ops.runtime(), *graph, options);
    EXPECT_TRUE(made.ok()) << made.status().ToString();
    session = std::move(*made);
  }
  Result<std::vector<Tensor>> Run(const RunOptions& options = {}) {
    const std::vector<Feed> feeds = {{"x:0", Tensor::Vector<float>({1, 2})}};
    return session->Run(feeds, {}, names, options);
  }
  std::vector<std::string> names;
  Result<graph::Definition> graph = NotFound("none yet");
  std::unique_ptr<Session> session;
};

size_t ThreadsOfTheProcess() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return static_cast<size_t>(std::distance(begin(tasks), end(tasks)));
}

TEST(Suspended, F319_TwoThousandOpsWaitOnTwoThreads) {
  WaitingOps ops;
  constexpr int kWidth = 2000;
  Wide wide(ops, kWidth, 2);
  for (int run = 0; run < 2; ++run) {
    Status status;
    std::thread caller([&] { status = wide.Run().status(); });
    while (ops.waiting() < kWidth) std::this_thread::sleep_for(1ms);
    std::vector<std::thread> servers;
    for (unsigned t = 0; t < 2; ++t) {
      servers.emplace_back([&ops, t] {
        std::mt19937 random(t);
        while (ops.Serve(random)) continue;
      });
    }
    for (std::thread& server : servers) server.join();
    caller.join();
    EXPECT_TRUE(status.ok()) << status.ToString();
  }
}

TEST(Suspended, F319_TenThousandOpsWaitWithoutThreadsAndEndAtOnce) {
  WaitingOps ops;
  constexpr int kWidth = 10000;
  Wide wide(ops, kWidth, 4);
  runtime::Cancellation cancellation;
  RunOptions options;
  options.cancellation = &cancellation;
  Status status;
  std::thread caller([&] { status = wide.Run(options).status(); });
  while (ops.waiting() < kWidth) std::this_thread::sleep_for(1ms);
  EXPECT_LE(ThreadsOfTheProcess(), 12u);
  cancellation.Cancel(Cancelled("enough"));
  caller.join();
  EXPECT_EQ(status.code(), Code::kCancelled);
  EXPECT_NE(status.message().find("enough"), std::string::npos) << status.ToString();
  EXPECT_EQ(ops.waiting(), 0u);
  EXPECT_EQ(ops.cancelled(), kWidth);
}

TEST(Suspended, AStepIsGivenUpWhileItsOpsEnd) {
  WaitingOps ops;
  constexpr int kWidth = 500;
  Wide wide(ops, kWidth, 2, 0);
  for (int run = 1; run <= 20; ++run) {
    runtime::Cancellation cancellation;
    RunOptions options;
    options.cancellation = &cancellation;
    Status status;
    std::thread caller([&] { status = wide.Run(options).status(); });
    while (ops.waiting() < kWidth) std::this_thread::sleep_for(1ms);
    cancellation.Cancel(Cancelled("enough"));
    caller.join();
    EXPECT_EQ(status.code(), Code::kCancelled) << status.ToString();
    EXPECT_EQ(ops.cancelled(), run * kWidth);
  }
}

TEST(Suspended, ADeadlineAndTheEndOfTheSessionEndThemToo) {
  WaitingOps ops;
  Wide wide(ops, 20, 2);
  RunOptions options;
  options.timeout_in_ms = 20;
  const Status late = wide.Run(options).status();
  EXPECT_EQ(late.code(), Code::kDeadlineExceeded) << late.ToString();
  EXPECT_NE(late.message().find("running: 'w"), std::string::npos) << late.ToString();
  Status status;
  std::thread caller([&] { status = wide.Run().status(); });
  while (ops.waiting() < 20) std::this_thread::sleep_for(1ms);
  EXPECT_TRUE(wide.session->Close().ok());
  caller.join();
  EXPECT_NE(status.message().find("Session::Close()"), std::string::npos) << status.ToString();
  EXPECT_EQ(ops.cancelled(), 40);
}

TEST(Suspended, OpsThatAreServedWhileTheirStepEndsCompleteOnce) {
  WaitingOps ops;
  Wide wide(ops, 60, 3);
  int ended = 0;
  for (unsigned seed = 0; seed < 100; ++seed) {
    runtime::Cancellation cancellation;
    RunOptions options;
    options.cancellation = &cancellation;
    std::atomic<bool> over{false};
    std::thread server([&] {
      std::mt19937 random(seed);
      for (unsigned served = 0; !over;) {
        if (!ops.Serve(random)) std::this_thread::yield();
        if (++served == seed) cancellation.Cancel(Cancelled("now"));
      }
    });
    const Status status = wide.Run(options).status();
    over = true;
    server.join();
    ended += status.ok() ? 0 : 1;
    EXPECT_TRUE(status.ok() || status.code() == Code::kCancelled) << status.ToString();
    EXPECT_EQ(ops.waiting(), 0u);
  }
  EXPECT_GT(ended, 0);
}

TEST(Suspended, AKernelGetsCancelAtTheEndOfItsStep) {
  Flow f({kX, {"y", "Tanh", {"x"}, kFloat}, {"z", "Log", {"x"}, kFloat}});
  RunOptions options;
  options.timeout_in_ms = 20;
  EXPECT_EQ(f.Run({"y:0"}, options).status().code(), Code::kDeadlineExceeded);
  const Status failed = f.Run({"y:0", "z:0"}).status();
  EXPECT_EQ(failed.code(), Code::kOutOfRange) << failed.ToString();
  EXPECT_EQ(failed.node(), "z");
}

TEST(Suspended, F318_AStepDoesNotWaitForAKernelThatNeverCompletes) {
  SessionOptions options;
  options.cancel_limit_ms = 30;
  options.operation_timeout_in_ms = 30;
  Flow f({kX, {"y", "Ceil", {"x"}, kFloat}, {"z", "Abs", {"x"}, kFloat}}, options);
  for (int i = 0; i < 2; ++i) {
    const Status late = f.Run({"y:0"}).status();
    EXPECT_EQ(late.code(), Code::kDeadlineExceeded) << late.ToString();
    EXPECT_NE(late.message().find("did not complete: 'y' on CPU:0 within 30 ms"), std::string::npos) << late.ToString();
  }
  RunOptions patient;
  patient.timeout_in_ms = 10000;
  EXPECT_TRUE(f.Run({"z:0"}, patient).ok()) << "the host's device is not lost";
}

TEST(Suspended, CompletionsAfterStepAndSessionAreHarmless) {
  SessionOptions options;
  options.cancel_limit_ms = 1;
  options.operation_timeout_in_ms = 1;
  for (int i = 0; i < 5; ++i) {
    Flow f({kX, {"y", "Sigmoid", {"x"}, kFloat}, {"z", "Sigmoid", {"x"}, kFloat}}, options);
    EXPECT_EQ(f.Run({"y:0", "z:0"}).status().code(), Code::kDeadlineExceeded);
  }
  std::this_thread::sleep_for(400ms);  // the ops complete meanwhile
}

TEST(Suspended, AKernelThatCompletesTwiceIsNamed) {
  Flow f({kX, {"y", "Floor", {"x"}, kFloat}});
  (void)f.Run({"y:0"});
  const Status faulty = f.Run({"y:0"}).status();
  EXPECT_EQ(faulty.code(), Code::kInternal) << faulty.ToString();
  EXPECT_NE(faulty.message().find("kernel Floor of "), std::string::npos) << faulty.ToString();
  EXPECT_NE(faulty.message().find("twice"), std::string::npos) << faulty.ToString();
  EXPECT_EQ(faulty.node(), "y");
}

TEST(Suspended, CallsOfAStatefulKernelFollowEachOther) {
  Flow f({kX, {"y", "Reciprocal", {"x"}, kFloat}});
  std::vector<std::thread> threads;
  std::vector<Status> failures(6);
  for (Status& failure : failures) {
    threads.emplace_back([&] {
      for (int i = 0; i < 30 && failure.ok(); ++i) failure = f.Run({"y:0"}).status();
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Status& failure : failures) EXPECT_TRUE(failure.ok()) << failure.ToString();
}

/// Layers of two ops that wait for the layer before.
std::vector<NodeLine> Layers(int layers) {
  std::vector<NodeLine> nodes = {kX};
  std::string last = "x";
  for (int i = 0; i < layers; ++i) {
    const std::string n = std::to_string(i);
    for (const char* side : {"a", "b"}) {
      nodes.push_back({side + n, "CheckNumerics", {last}, {{"T", DType::kFloat}, {"message", std::string(side)}}});
    }
    nodes.push_back({"sum" + n, "AddV2", {"a" + n, "b" + n}, kFloat});
    last = "sum" + n;
  }
  return nodes;
}

TEST(Suspended, CancelledAfterEachCompletionAStepLeavesNothing) {
  constexpr int kLayers = 5, kOps = 2 * kLayers;
  const auto until = [](const auto& holds) {  // another thread makes it so
    const auto limit = std::chrono::steady_clock::now() + 60s;
    bool held = holds();
    while (!held && std::chrono::steady_clock::now() < limit) {
      std::this_thread::yield();
      held = holds();
    }
    return held;
  };
  for (const int threads : {1, 2}) {
    WaitingOps ops;
    const Result<graph::Definition> graph = testing::MakeGraph(Layers(kLayers));
    ASSERT_TRUE(graph.ok()) << graph.status().ToString();
    SessionOptions options;
    options.inter_op_parallelism_threads = threads;
    Result<std::unique_ptr<Session>> session = Session::Make(ops.runtime(), *graph, options);
    ASSERT_TRUE(session.ok()) << session.status().ToString();
    std::mt19937 random(7);
    for (int served = 0; served <= kOps; ++served) {
      runtime::Cancellation cancellation;
      RunOptions run;
      run.cancellation = &cancellation;
      Result<std::vector<Tensor>> got = NotFound("none yet");
      std::thread runner([&] {
        const std::vector<Feed> feeds = {{"x:0", Tensor::Vector<float>({1, 2})}};
        got = (*session)->Run(feeds, std::vector<std::string>{"sum4:0"}, {}, run);
      });
      bool reached = true;
      for (int i = 0; i < served && reached; ++i) reached = until([&] { return ops.Serve(random); });
      // Both ops of a layer wait, or the one that is left of it.
      const size_t open = served == kOps ? 0 : 2 - served % 2;
      reached = reached && until([&] { return ops.waiting() == open; });
      if (served < kOps || !reached) cancellation.Cancel(Cancelled("now"));
      runner.join();
      ASSERT_TRUE(reached) << served;
      EXPECT_EQ(got.status().code(), served < kOps ? Code::kCancelled : Code::kOk) << served << got.status().ToString();
      EXPECT_EQ(ops.waiting(), 0u) << served;
    }
    EXPECT_EQ(ops.cancelled(), 3 * kLayers) << "two at the first op of each layer, one at its second";
  }
}

TEST(Suspended, StepsEndAtAnyPoint) {
  std::vector<NodeLine> nodes = {kX};
  std::string last = "x";
  for (int i = 0; i < 6; ++i) {
    const std::string n = std::to_string(i);
    nodes.push_back({"later" + n, "Abs", {last}, kFloat});
    nodes.push_back({"alone" + n, "Reciprocal", {last}, kFloat});
    nodes.push_back({"sum" + n, "AddV2", {"later" + n, "alone" + n}, kFloat});
    last = "sum" + n;
  }
  nodes.push_back({"told", "Tanh", {"sum2"}, kFloat});
  Flow f(nodes, {}, 2);
  int ended = 0;
  for (int point = 0; point < 60; ++point) {
    runtime::Cancellation cancellation;
    RunOptions options;
    options.cancellation = &cancellation;
    std::thread other([&] {
      std::this_thread::sleep_for(std::chrono::microseconds(400 * point));
      cancellation.Cancel(Cancelled("now"));
    });
    const bool waits = point % 2 == 0;  // waits for the end of the step
    const Status status =
        f.Run(waits ? std::vector<std::string>{last + ":0", "told:0"} : std::vector{last + ":0"}, options).status();
    other.join();
    ended += status.code() == Code::kCancelled ? 1 : 0;
    EXPECT_TRUE(status.code() == Code::kCancelled || (status.ok() && !waits)) << status.ToString();
  }
  EXPECT_GE(ended, 30);
  const auto whole = f.Run({last + ":0"});
  ASSERT_TRUE(whole.ok()) << whole.status().ToString();
  EXPECT_TRUE((*whole)[0].SameBits(Tensor::Vector<float>({64, 128})));
}

}  // namespace
}  // namespace weir::session
