// What a task does with the sessions of a master that stays away.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "core/cluster/wire_channel.h"
#include "core/cluster/worker_server.h"
#include "core/kernel/host.h"
#include "tests/support/fault_proxy.h"
#include "tests/support/text_graph.h"
#include "tests/unit/cluster/wire_pair.h"

namespace weir::cluster {
namespace {

using std::chrono::milliseconds;
using testing::FaultProxy;
using testing::In;
using testing::NodeLine;
using testing::RuntimeOf;
using testing::SocketTransport;
using testing::Until;

const TaskName kKeeper{"ps", 0}, kMasterTask{"worker", 0};
constexpr milliseconds kBriefly{50};
constexpr std::chrono::hours kForEver{10};

kernel::TransportEntry SocketEntry() {
  for (const kernel::TransportEntry& entry : RuntimeOf(kMasterTask)->plugins->transports()) {
    if (kernel::Text(entry.api->scheme) == std::string_view("weir")) return entry;
  }
  ADD_FAILURE() << "the plugin remote is missing";
  return {};
}

/// A task that listens, and a task that reaches it through a proxy and is the master of sessions on both.
class KeptSessions {
 public:
  explicit KeptSessions(milliseconds longest_away) : entry_(SocketEntry()) {
    far_ = *LocalWorker::Make({kKeeper, RuntimeOf(kKeeper), nobody_});
    server_ = std::make_shared<WorkerServer>(entry_, Services{far_, nullptr}, ByteBudget::OfProcess(),
                                             std::vector<Alternate>(), longest_away);
    LocalEnd self;
    self.task = kKeeper;
    self.incarnation = far_->incarnation();
    const weir_service service = server_->AsService();
    const weir_transport_end end = EndOf(self);
    const Status listens = kernel::CallPlugin("listen", [&](weir_error* error) {
      return entry_.api->listen(&end, &service, kernel::ViewOf("localhost:0"), -1, &listener_, error);
    });
    EXPECT_TRUE(listens.ok()) << listens.ToString();
    address_ = kernel::Text(entry_.api->address(listener_));
    proxy_ = std::make_unique<FaultProxy>(address_);
    NewMaster();
  }
  ~KeptSessions() {
    workers_.reset();
    entry_.api->close(listener_);
    far_->Close();
  }
  KeptSessions(const KeptSessions&) = delete;
  KeptSessions& operator=(const KeptSessions&) = delete;

  /// The master is another process from now on.
  void NewMaster() {
    workers_ = std::make_shared<Workers>();
    here_ = *LocalWorker::Make({kMasterTask, RuntimeOf(kMasterTask), workers_});
    workers_->Add(here_);
    LocalEnd self;
    self.task = kMasterTask;
    self.incarnation = here_->incarnation();
    workers_->Add(*SocketTransport()->ConnectWorker(kKeeper, proxy_->address(), self));
  }
  /// With a variable of 1 MiB and a queue there, which are the session's alone.
  std::unique_ptr<session::Session> Open() {
    const std::string there = "/job:ps/task:0";
    const op::AttrList one = {{"dtype", DType::kFloat}, {"shape", PartialShape::Of({1 << 18})}};
    const op::AttrList fill = {{"T", DType::kFloat}, {"index_type", DType::kInt32}};
    const op::AttrList queued = {{"component_types", std::vector<DType>{DType::kFloat}}};
    const auto on = [&](NodeLine node) {
      node.device = there;
      return node;
    };
    auto made = testing::MakeGraph({{"v", "VariableV2", {}, one, there},
                                    on(testing::Const("dims", Tensor::Vector<int32_t>({1 << 18}))),
                                    on(testing::Const("value", Tensor::Scalar<float>(2))),
                                    {"full", "Fill", {"dims", "value"}, fill, there},
                                    {"init", "Assign", {"v", "full"}, testing::kFloat, there},
                                    {"y", "Neg", {"v"}, testing::kFloat, there},
                                    {"q", "FIFOQueueV2", {}, queued, there},
                                    {"got", "QueueDequeueV2", {"q"}, queued, there}});
    EXPECT_TRUE(made.ok()) << made.status().ToString();
    graphs_.push_back(std::make_unique<graph::Definition>(*std::move(made)));
    MasterOptions master;
    master.task = kMasterTask;
    master.isolate_session_state = true;
    session::SessionOptions options;
    options.explain = session::SessionOptions::Explain::kNone;
    options.placement_log = [](const std::string&) {};
    auto prepared = OpenClusterSession(RuntimeOf(kMasterTask), workers_, master, std::move(options));
    EXPECT_TRUE(prepared.ok()) << prepared.status().ToString();
    if (!prepared.ok()) return nullptr;
    auto session = session::Session::Make(prepared->runtime, *graphs_.back(), std::move(prepared->options));
    EXPECT_TRUE(session.ok()) << session.status().ToString();
    if (!session.ok()) return nullptr;
    const Status ready = Run(**session, "init");
    EXPECT_TRUE(ready.ok()) << ready.ToString();
    return *std::move(session);
  }
  static Status Run(session::Session& session, const std::string& target) {
    session::RunOptions options;
    options.timeout_in_ms = 120000;
    const std::vector<std::string> targets = {target};
    return session.Run({}, {}, targets, options).status();
  }
  /// The master has no way back.
  void Isolate() {
    proxy_->PauseAccept();
    proxy_->Reset();
  }

  LocalWorker& far() { return *far_; }
  WorkerServer& server() { return *server_; }
  FaultProxy& proxy() { return *proxy_; }
  uint64_t BytesThere() const { return RuntimeOf(kKeeper)->plugins->devices().all()[0]->memory_use().in_use; }

 private:
  const kernel::TransportEntry entry_;
  const std::shared_ptr<Workers> nobody_ = std::make_shared<Workers>();
  std::shared_ptr<LocalWorker> far_, here_;
  std::shared_ptr<WorkerServer> server_;
  weir_listener* listener_ = nullptr;
  std::string address_;
  std::unique_ptr<FaultProxy> proxy_;
  std::shared_ptr<Workers> workers_;
  std::vector<std::unique_ptr<graph::Definition>> graphs_;
};

TEST(GoneMaster, AllThatItsSessionsHadIsFreedAfterTheLimit) {
  KeptSessions kept(kBriefly);
  const uint64_t before = kept.BytesThere();
  auto first = kept.Open(), second = kept.Open();
  ASSERT_TRUE(first != nullptr && second != nullptr);
  EXPECT_EQ(kept.far().counts().sessions, 2u);
  EXPECT_GE(kept.far().counts().parts, 2u);
  EXPECT_GE(kept.BytesThere(), before + (2u << 20)) << "their variables";
  kept.Isolate();
  const auto empty = [&] {
    const LocalWorker::Counts counts = kept.far().counts();
    return counts.sessions + counts.parts + counts.steps + counts.running == 0;
  };
  EXPECT_TRUE(Until(empty));
  EXPECT_TRUE(Until([&] { return kept.BytesThere() <= before; })) << kept.BytesThere() << " of " << before;
  EXPECT_EQ(kept.server().away(), 0u);
  // A master that comes back after all is told, and begins anew.
  kept.proxy().ResumeAccept();
  const Status late = KeptSessions::Run(*first, "y");
  EXPECT_EQ(late.code(), Code::kAborted) << late.ToString();
  EXPECT_NE(late.message().find("is not found in /job:ps/replica:0/task:0"), std::string::npos) << late.ToString();
  first.reset();
  second.reset();
  first = kept.Open();
  ASSERT_NE(first, nullptr);
  EXPECT_TRUE(KeptSessions::Run(*first, "y").ok());
}

TEST(GoneMaster, AStepThatWaitsEndsWithIt) {
  KeptSessions kept(kBriefly);
  const auto session = kept.Open();
  ASSERT_NE(session, nullptr);
  Status ended;
  std::thread step([&] { ended = KeptSessions::Run(*session, "got"); });
  EXPECT_TRUE(Until([&] { return kept.far().counts().running == 1; }));
  kept.Isolate();
  step.join();
  EXPECT_EQ(ended.code(), Code::kUnavailable) << ended.ToString();
  EXPECT_TRUE(Until([&] { return kept.far().counts().sessions == 0; }));
}

TEST(GoneMaster, AnIdleOneThatLivesKeepsItsSessions) {
  KeptSessions kept(kBriefly);
  const auto session = kept.Open();
  ASSERT_NE(session, nullptr);
  std::this_thread::sleep_for(10 * kBriefly);  // what would end it, were it missed
  EXPECT_EQ(kept.far().counts().sessions, 1u);
  EXPECT_TRUE(KeptSessions::Run(*session, "y").ok());
}

TEST(GoneMaster, AnIdleOneComesBackByItself) {
  KeptSessions kept(kForEver);
  const auto session = kept.Open();
  ASSERT_NE(session, nullptr);
  const auto lose = [&] {
    const uint64_t before = kept.proxy().counts().accepted;
    kept.proxy().PauseAccept();
    kept.proxy().Reset();
    EXPECT_TRUE(Until([&] { return kept.server().away() == 1; }));
    kept.proxy().ResumeAccept();
    EXPECT_TRUE(Until([&] { return kept.proxy().counts().accepted > before; })) << "without a step";
    EXPECT_TRUE(Until([&] { return kept.server().away() == 0; }));
  };
  lose();
  lose();
  EXPECT_EQ(kept.far().counts().sessions, 1u);
  const Status goes_on = KeptSessions::Run(*session, "y");
  EXPECT_TRUE(goes_on.ok()) << "with its variables: " << goes_on.ToString();
}

TEST(GoneMaster, ASuccessorEndsItsSessionsAtOnce) {
  KeptSessions kept(kForEver);
  const auto session = kept.Open();
  ASSERT_NE(session, nullptr);
  kept.NewMaster();
  const auto next = kept.Open();
  ASSERT_NE(next, nullptr);
  EXPECT_TRUE(Until([&] { return kept.far().counts().sessions == 1; }));
  EXPECT_TRUE(KeptSessions::Run(*next, "y").ok());
}

TEST(GoneMaster, OpenSessionsAreNoWorkThatADrainWaitsFor) {
  KeptSessions kept(kForEver);
  const auto session = kept.Open();
  ASSERT_NE(session, nullptr);
  EXPECT_TRUE(Until([&] { return kept.server().calls() == 0; })) << "a held session is no call";
  EXPECT_TRUE(kept.server().Drain(In(testing::kSoon)).ok());
}

}  // namespace
}  // namespace weir::cluster
