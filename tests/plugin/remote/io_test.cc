#include "plugins/remote/io.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

namespace weir_remote {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr auto kSoon = std::chrono::seconds(120);

/// A flag that threads wait for.
class Event {
 public:
  void Set() {
    const std::lock_guard<std::mutex> lock(mutex_);
    set_ = true;
    changed_.notify_all();
  }
  bool is_set() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return set_;
  }
  bool Wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    return changed_.wait_for(lock, kSoon, [this] { return set_; });
  }

 private:
  mutable std::mutex mutex_;  // protects set_
  std::condition_variable changed_;
  bool set_ = false;
};

/// What a job of the core does.
struct CoreJob {
  std::function<void()> work;
  Event begun, ended;
  std::thread::id callback, job;
  bool accepted = false, second = false, inside = false;

  static void Run(void* arg) {
    auto* const self = static_cast<CoreJob*>(arg);
    self->job = std::this_thread::get_id();
    self->inside = Io::Get().IsInside();
    self->begun.Set();
    self->work();
    self->ended.Set();
  }
  /// From a callback. A job before may count for a moment after its end.
  void Start() {
    while (!accepted) {
      Event asked;
      Io::Get().Post([this, &asked] {
        callback = std::this_thread::get_id();
        accepted = Io::Get().RunAfter(&CoreJob::Run, this);
        second = Io::Get().RunAfter(&CoreJob::Run, this);
        asked.Set();
      });
      ASSERT_TRUE(asked.Wait());
    }
  }
};

TEST(Io, AJobRunsOnTheThreadOfItsCallbackOutside) {
  CoreJob task;
  task.work = [] {};
  task.Start();
  ASSERT_TRUE(task.ended.Wait());
  EXPECT_FALSE(task.second) << "one at a time";
  EXPECT_EQ(task.job, task.callback);
  EXPECT_FALSE(task.inside);
  EXPECT_FALSE(Io::Get().RunAfter(&CoreJob::Run, &task)) << "no callback";
}

TEST(Io, OthersReceiveWhileAJobBlocks) {
  CoreJob task;
  Event go;
  task.work = [&go] { EXPECT_TRUE(go.Wait()); };
  task.Start();
  ASSERT_TRUE(task.begun.Wait());
  std::thread::id other;
  bool accepted = true;
  Event ran;
  Io::Get().Post([&] {
    other = std::this_thread::get_id();
    accepted = Io::Get().RunAfter(&CoreJob::Run, nullptr);
    ran.Set();
  });
  ASSERT_TRUE(ran.Wait());
  EXPECT_NE(other, task.job);
  EXPECT_FALSE(accepted) << "while there is one";
  Io::Get().HandOver();  // somebody receives already, perhaps
  Event timed;
  asio::steady_timer timer(Io::Get().context(), milliseconds(1));
  timer.async_wait(Io::Handler([&timed](const boost::system::error_code&) { timed.Set(); }));
  EXPECT_TRUE(timed.Wait());
  EXPECT_FALSE(task.ended.is_set());
  go.Set();
  ASSERT_TRUE(task.ended.Wait());
}

TEST(Io, AJobReceivesWhatItWaitsFor) {
  // Another thread may have begun to receive by then: then it runs there.
  bool here = false;
  for (int i = 0; i < 1000 && !here; ++i) {
    CoreJob task;
    std::atomic<bool> came{false};
    std::thread::id at;
    bool asked = true;
    task.work = [&] {
      asio::post(Io::Get().context(), Io::Handler([&] {
                   at = std::this_thread::get_id();
                   asked = Io::Get().RunAfter(&CoreJob::Run, nullptr);
                   came = true;
                 }));
      const auto over = [&came] { return came.load(); };
      Io::Get().Receive(over, milliseconds(100));
      while (!came) std::this_thread::yield();
    };
    task.Start();
    ASSERT_TRUE(task.ended.Wait());
    here = at == task.job;
    EXPECT_TRUE(!here || !asked) << "no job within a job";
  }
  EXPECT_TRUE(here);
}

/// Has a message when a test says so.
class FakeSource final : public Source, public std::enable_shared_from_this<FakeSource> {
 public:
  bool Look() override {
    if (!Io::Get().IsInside()) outside = true;
    if (!has.exchange(false)) return false;
    Io::Get().Came(shared_from_this());
    taken.Set();
    return true;
  }
  std::atomic<bool> has{false}, outside{false};
  Event taken;
};

TEST(Io, AThreadThatLooksAsksTheSourceThatHadMessages) {
  const auto source = std::make_shared<FakeSource>();
  Io::Get().PollFor(milliseconds(100));
  source->has = true;  // no handler tells of it
  for (int i = 0; i < 100000 && !source->taken.is_set(); ++i) {
    Event came;
    Io::Get().Post([&] {
      Io::Get().Came(source);
      came.Set();
    });
    ASSERT_TRUE(came.Wait());
  }
  Io::Get().PollFor(microseconds(0));
  EXPECT_TRUE(source->taken.is_set());
  EXPECT_FALSE(source->outside);
}

TEST(Io, AThreadThatDoesNotLookAsksNobody) {
  const auto source = std::make_shared<FakeSource>();
  Io::Get().PollFor(microseconds(0));
  source->has = true;
  for (int i = 0; i < 100; ++i) {
    Event came;
    Io::Get().Post([&] {
      Io::Get().Came(source);
      came.Set();
    });
    ASSERT_TRUE(came.Wait());
  }
  EXPECT_FALSE(source->taken.is_set());
}

TEST(Io, AThreadThatWaitsReceivesOnceThePluginHasLeftItTheTurn) {
  Event started;  // the first object starts the plugin's thread
  Io::Get().Post([&started] { started.Set(); });
  ASSERT_TRUE(started.Wait());
  int own = 0;
  for (int i = 0; i < 10000 && own < 3; ++i) {
    std::atomic<bool> came{false};
    std::thread::id at;
    asio::post(Io::Get().context(), Io::Handler([&] {
                 at = std::this_thread::get_id();
                 came = true;
               }));
    const bool received = Io::Get().Receive([&came] { return came.load(); }, milliseconds(5));
    while (!came) std::this_thread::yield();
    if (at == std::this_thread::get_id()) ++own;
    EXPECT_TRUE(received || at != std::this_thread::get_id());
  }
  EXPECT_EQ(own, 3);
  // Nobody waits any more: the plugin's thread receives again.
  Event ran;
  std::thread::id at;
  asio::post(Io::Get().context(), Io::Handler([&] {
               at = std::this_thread::get_id();
               ran.Set();
             }));
  ASSERT_TRUE(ran.Wait());
  EXPECT_NE(at, std::this_thread::get_id());
}

TEST(Io, NobodyTakesTheTurnWhereRequestsOrAnswersMayCome) {
  for (void (Io::*const count)(int) : {&Io::CountListeners, &Io::CountCalls}) {
    (Io::Get().*count)(2);
    const auto refused = [] { return !Io::Get().Receive([] { return false; }, microseconds(0)); };
    // What was given away before comes back first.
    const auto end = Clock::now() + kSoon;
    Io::Get().Post([] {});
    while (!refused() && Clock::now() < end) std::this_thread::sleep_for(milliseconds(1));
    for (int i = 0; i < 100; ++i) {
      Event came;
      Io::Get().Post([&came] { came.Set(); });
      ASSERT_TRUE(came.Wait());
      EXPECT_TRUE(refused());
    }
    (Io::Get().*count)(-2);
  }
}

TEST(Io, ACallbackDoesNotReceive) {
  Event ran;
  bool received = true;
  Io::Get().Post([&] {
    received = Io::Get().Receive([] { return true; }, milliseconds(1));
    ran.Set();
  });
  ASSERT_TRUE(ran.Wait());
  EXPECT_FALSE(received);
}

TEST(Io, ManyThreadsWaitAndPostAtOnce) {
  constexpr int kThreads = 4;
  const int rounds = WEIR_SANITIZER_KIND == 0 ? 2000 : 300;
  std::atomic<int> jobs{0};
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < rounds; ++i) {
        Event came;
        const auto done = [&came] { return came.is_set(); };
        std::atomic<int>* const counted = &jobs;
        Io::Get().Post([&came, counted, job = (i + t) % 3 == 0] {
          const auto count = [](void* arg) { ++*static_cast<std::atomic<int>*>(arg); };
          if (job && !Io::Get().RunAfter(count, counted)) ++*counted;
          came.Set();
        });
        Io::Get().Receive(done, milliseconds(1));
        ASSERT_TRUE(came.Wait());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  int wanted = 0;
  for (int t = 0; t < kThreads; ++t) {
    for (int i = 0; i < rounds; ++i) wanted += (i + t) % 3 == 0 ? 1 : 0;
  }
  const auto end = Clock::now() + kSoon;
  while (jobs < wanted && Clock::now() < end) std::this_thread::yield();
  EXPECT_EQ(jobs, wanted);
}

TEST(Io, AJobThatGoesOnDoesNotHoldUpTheEnd) {
  CoreJob task;
  Event go;
  task.work = [&go] { EXPECT_TRUE(go.Wait()); };
  task.Start();
  ASSERT_TRUE(task.begun.Wait());
  Io::Get().Stop();
  Event ran;
  Io::Get().Post([&ran] { ran.Set(); });  // starts again
  EXPECT_TRUE(ran.Wait());
  EXPECT_FALSE(task.ended.is_set());
  go.Set();
  ASSERT_TRUE(task.ended.Wait());
  CoreJob next;
  next.work = [] {};
  next.Start();
  EXPECT_TRUE(next.ended.Wait());
}

}  // namespace
}  // namespace weir_remote
