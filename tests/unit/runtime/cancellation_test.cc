#include "core/runtime/cancellation.h"
#include "core/base/errors.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <list>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace weir::runtime {
namespace {

using namespace std::chrono_literals;

TEST(Cancellation, GoesDownTheTree) {
  Cancellation session, step(&session), other(&session), call(&step);
  std::string order;
  CancelCallback of_call, of_other;
  ASSERT_TRUE(of_call.Register(call, [&] { order += "c"; }));
  ASSERT_TRUE(of_other.Register(other, [&] { order += "o"; }));
  EXPECT_TRUE(step.Cancel(Aborted("the step")));
  EXPECT_EQ(order, "c");
  EXPECT_TRUE(call.cancelled());
  EXPECT_EQ(call.status().message(), "the step");
  EXPECT_FALSE(session.cancelled());
  EXPECT_FALSE(other.cancelled());
  EXPECT_TRUE(session.Cancel(Cancelled("closed")));
  EXPECT_EQ(order, "co");
  EXPECT_EQ(other.status().message(), "closed");
  EXPECT_EQ(call.status().message(), "the step") << "the lowest says why";
}

TEST(Cancellation, TheFirstOneCounts) {
  Cancellation node;
  EXPECT_TRUE(node.status().ok());
  EXPECT_TRUE(node.Cancel(Aborted("first")));
  EXPECT_FALSE(node.Cancel(Aborted("second")));
  EXPECT_EQ(node.status().message(), "first");
}

TEST(Cancellation, RegistrationSaysWhetherItIsTooLate) {
  Cancellation root, late(&root);
  root.Cancel(Cancelled("over"));
  int calls = 0;
  CancelCallback at_root, below;
  EXPECT_FALSE(at_root.Register(root, [&] { ++calls; }));
  EXPECT_FALSE(below.Register(late, [&] { ++calls; }));
  EXPECT_EQ(calls, 0);
  EXPECT_EQ(late.status().message(), "over");
}

TEST(Cancellation, DeregisteredCallbacksAreNotCalled) {
  Cancellation root;
  int calls = 0;
  CancelCallback a, b;
  ASSERT_TRUE(a.Register(root, [&] { calls += 1; }));
  ASSERT_TRUE(b.Register(root, [&] { calls += 10; }));
  EXPECT_TRUE(a.Deregister());
  EXPECT_TRUE(a.Deregister()) << "twice is once";
  root.Cancel(Cancelled("now"));
  EXPECT_EQ(calls, 10);
  EXPECT_FALSE(b.Deregister());
}

TEST(Cancellation, ACallbackMayDestroyItself) {
  Cancellation root;
  auto callback = std::make_unique<CancelCallback>();
  ASSERT_TRUE(callback->Register(root, [&] { callback.reset(); }));
  root.Cancel(Cancelled("now"));
  EXPECT_EQ(callback, nullptr);
}

TEST(Cancellation, DeregisteringWaitsForTheCallbackThatRuns) {
  Cancellation root;
  std::atomic<bool> running{false}, over{false};
  CancelCallback callback;
  ASSERT_TRUE(callback.Register(root, [&] {
    running = true;
    std::this_thread::sleep_for(20ms);
    over = true;
  }));
  std::thread canceller([&] { root.Cancel(Cancelled("now")); });
  while (!running) std::this_thread::yield();
  EXPECT_FALSE(callback.Deregister());
  EXPECT_TRUE(over);
  canceller.join();
}

TEST(Cancellation, ADeadlineCancelsByItself) {
  Cancellation session, step(&session);
  EXPECT_EQ(step.deadline(), Cancellation::Clock::time_point::max());
  const auto at = Cancellation::Clock::now() + 5ms;
  std::atomic<bool> told{false};
  {
    Cancellation other(&session);
    other.CancelAt(Cancellation::Clock::now() + 1h, DeadlineExceeded("never"));
  }
  step.CancelAt(at, DeadlineExceeded("too late"));
  EXPECT_EQ(Cancellation(&step).deadline(), at);
  CancelCallback callback;
  ASSERT_TRUE(callback.Register(step, [&] { told = true; }));
  while (!told) std::this_thread::sleep_for(1ms);
  EXPECT_GE(Cancellation::Clock::now(), at);
  EXPECT_EQ(step.status().message(), "too late");
  EXPECT_FALSE(session.cancelled());
}

TEST(Cancellation, ADeadlineInThePastCancelsAtOnce) {
  Cancellation step;
  step.CancelAt(Cancellation::Clock::now() - 1s, DeadlineExceeded("too late"));
  while (!step.cancelled()) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(step.status().code(), Code::kDeadlineExceeded);
}

// Some threads register and deregister callbacks while others cancel: each callback is called at most once, and never
// after it was deregistered.
TEST(Cancellation, CallbacksComeAndGoWhileItIsCancelled) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    Cancellation root, step(&root);
    constexpr int kThreads = 3;
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        std::mt19937 random(seed * kThreads + static_cast<unsigned>(t));
        for (int i = 0; i < 50; ++i) {
          std::atomic<int> calls{0};
          std::list<CancelCallback> callbacks(3);
          std::vector<bool> registered;
          for (CancelCallback& one : callbacks) registered.push_back(one.Register(step, [&calls] { ++calls; }));
          int expected = 0, k = 0;
          for (CancelCallback& one : callbacks) {
            const bool uncalled = one.Deregister();
            if (registered[static_cast<size_t>(k++)] && !uncalled) ++expected;
          }
          if (calls != expected) ++wrong;
          if (random() % 100 == 0) step.Cancel(Cancelled("by a thread"));
        }
      });
    }
    if (seed % 2 == 0) root.Cancel(Cancelled("by the root"));
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0) << seed;
  }
}

TEST(Timer, RunsAtItsTimeAndNotAfterItIsGone) {
  std::atomic<int> runs{0};
  const auto start = Timer::Clock::now();
  const Timer late(start + 4ms, [&] { runs += 100; });
  const Timer early(start + 2ms, [&] { runs += 1; });
  {
    const Timer gone(start + 1ms + 1h, [&] { runs += 1000; });
  }
  while (runs < 101) std::this_thread::sleep_for(1ms);
  EXPECT_GE(Timer::Clock::now(), start + 4ms);
  EXPECT_EQ(runs, 101);
}

}  // namespace
}  // namespace weir::runtime
